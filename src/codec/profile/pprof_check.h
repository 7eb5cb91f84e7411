/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_check - whether a decoded profile means something to every reader, and what may be taken
 * out of it without touching the rest. For who hands profiles on as they are; ingest repairs.
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
