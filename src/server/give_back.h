/* SPDX-License-Identifier: Apache-2.0 */
/*
 * give_back - a thread that returns free memory to the system after requests.
 *
 * A large answer takes hundreds of MB for a moment, which then stay in the heaps, in spare arenas,
 * or as resident pages of symbol tables. Each second this thread frees spare arenas that
 * nobody took since its last look, and cached answers that are too old, and trims the heaps if much
 * has become free. Nothing waits for it.
 */
#ifndef FIRN_SERVER_GIVE_BACK_H
#define FIRN_SERVER_GIVE_BACK_H

#include "base/err.h"

struct answer_cache;
struct give_back;
struct resolver;

/* Both must live until give_back_stop. */
MUST_USE int give_back_start(struct resolver *resolver, struct answer_cache *answers,
			     struct give_back **ret, struct err *err);
void give_back_stop(struct give_back *give_back); /* accepts NULL */

#endif
