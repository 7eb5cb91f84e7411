/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget - how many bytes of requests and answers one server holds in memory at a time.
 *
 * Heads and bodies are taken as they arrive and refused when nothing is left; answers are taken
 * always, since they exist already, and so hold up the requests that come after them. Over the
 * "tight" mark, bodies that have not begun wait on the wire. Safe from any thread.
 */
#ifndef FIRN_NET_HTTP_BUDGET_H
#define FIRN_NET_HTTP_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget {
	_Atomic int64_t used_bytes;
	int64_t max_bytes; /* set once, before use */
};

bool budget_take(struct budget *budget, size_t bytes); /* false: nothing was taken */
void budget_force(struct budget *budget, size_t bytes);
void budget_give(struct budget *budget, size_t bytes);

bool budget_is_tight(const struct budget *budget); /* over 3/4 of max */

#endif
