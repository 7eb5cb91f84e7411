/* SPDX-License-Identifier: Apache-2.0 */
/*
 * give_back - a thread that returns to the system what requests leave behind.
 *
 * A large answer takes hundreds of MB for a moment. What it frees stays in the heaps, and what it
 * read of symbol tables stays mapped, until someone gives it back: this thread looks every few
 * seconds, and does when it has become much since it did the last time. Nothing waits for it.
 */
#ifndef FIRN_SERVER_GIVE_BACK_H
#define FIRN_SERVER_GIVE_BACK_H

#include "base/err.h"

struct give_back;
struct resolver;

/* The resolver must live until give_back_stop. */
MUST_USE int give_back_start(struct resolver *resolver, struct give_back **ret, struct err *err);
void give_back_stop(struct give_back *give_back); /* accepts NULL */

#endif
