/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_dialect - which version of OTLP Profiles a request is written in.
 *
 * Versions 1.8, 1.9 and 1.10 number some fields of Profile and Sample differently. The marks:
 *
 *   no dictionary beside profiles, but tables in them          1.5
 *   Profile 3 a number or length-delimited, Profile 6
 *   length-delimited, Profile 5 varint                         1.7
 *   Profile 8 of 16 bytes, Profile 9 varint, Profile 12,
 *   ValueType 3                                                1.8
 *   Profile 7 of 16 bytes, Profile 8 varint                    >= 1.9
 *
 * Sample is {stack, values, attributes, link, times} up to 1.9 and {stack, attributes, link,
 * values, times} since. Wire types do not tell these apart: a parser must accept repeated numbers
 * packed and one by one, and senders write both. So both readings are tried on the samples of the
 * request, and the one with fewer contradictions is chosen. Contradictions, the strongest first: a
 * link, which is one number, is packed or comes twice in a sample; a sample has neither values nor
 * times; values and times of a sample differ in number; attributes repeat in a sample, or
 * attributes or links are outside of the dictionary's tables; a repeated field came as one number.
 * Without any difference the dialect is >= 1.10. A request with impossible links in both readings
 * is refused, and so is one whose Profile fields contradict its samples.
 */
#ifndef FIRN_CODEC_PROFILE_OTLP_DIALECT_H
#define FIRN_CODEC_PROFILE_OTLP_DIALECT_H

#include "codec/profile/otlp.h"

/* ERR_UNSUPPORTED: of no dialect known; ERR_INVALID: broken, or contradicting marks. */
int otlp_dialect_detect(struct slice request, enum otlp_dialect *ret, struct err *err);

const char *otlp_dialect_name(enum otlp_dialect dialect); /* "1.10" */

#endif
