/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_check - checks that every reader understands a decoded profile, and reduces it to one
 * sample type. For `firn convert`, which copies profiles; ingest repairs instead.
 */
#ifndef FIRN_CODEC_PROFILE_PPROF_CHECK_H
#define FIRN_CODEC_PROFILE_PPROF_CHECK_H

#include "codec/profile/pprof.h"

/*
 * Ids are not 0, each is there once and leads somewhere (a location may be without mapping), all
 * strings are there, the first is "", and samples have as many values as there are types.
 */
bool pprof_is_sound(const struct pprof *profile);

/* Reduces a sound profile to the values of this sample type and the samples that have one. */
void pprof_keep_type(struct pprof *profile, size_t type);

#endif
