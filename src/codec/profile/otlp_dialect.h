/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_dialect - which version of OTLP Profiles a request is written in.
 *
 * Versions 1.8, 1.9 and 1.10 number some fields of Profile and Sample differently. The marks:
 *
 *   no dictionary beside profiles                              <= 1.5, refused
 *   Profile 3 or 6 length-delimited, Profile 5 varint          1.7, refused
 *   Profile 8 of 16 bytes, Profile 9 varint, Profile 12,
 *   ValueType 3                                                1.8
 *   Profile 7 of 16 bytes, Profile 8 varint                    >= 1.9
 *   Sample 3 length-delimited or Sample 4 varint               <= 1.9
 *   Sample 3 varint or Sample 4 length-delimited               >= 1.10
 *
 * where Sample is {stack, values, attributes, link, times} up to 1.9 and {stack, attributes, link,
 * values, times} since.
 *
 * Samples with fields 1, 2 and 5 alone (the eBPF profiler sends attributes and times, no values)
 * leave the last query open. Then, over the whole request: a sample with field 2 but no times
 * must have values in it (without values and times it would be void): <= 1.9. Different lengths
 * of fields 2 and 5 cannot be values and times: >= 1.10. With equal lengths throughout it is
 * >= 1.10 only if all numbers are indexes into the attribute table that no sample repeats.
 */
#ifndef FIRN_CODEC_PROFILE_OTLP_DIALECT_H
#define FIRN_CODEC_PROFILE_OTLP_DIALECT_H

#include "codec/profile/otlp.h"

/* ERR_UNSUPPORTED names a dialect that is too old; ERR_INVALID: broken, or contradicting marks. */
int otlp_dialect_detect(struct slice request, enum otlp_dialect *ret, struct err *err);

const char *otlp_dialect_name(enum otlp_dialect dialect); /* "1.10" */

#endif
