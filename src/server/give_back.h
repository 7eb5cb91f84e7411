/* SPDX-License-Identifier: Apache-2.0 */
/*
 * give_back - a thread that returns to the system what requests leave behind.
 *
 * A large answer takes hundreds of MB for a moment. What it frees stays in the heaps, or waits for
 * the next one, and what it read of symbol tables stays mapped, until someone gives it back: this
 * thread looks every few seconds, gives up what nobody took since it looked last and answers that
 * are too old, and returns what is free when it has become much since the last time. Nothing waits
 * for it.
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
