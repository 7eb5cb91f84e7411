/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/active_queries.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"

#define TEXT_BYTES_MAX 4096 /* of a query, for the list */

struct active_query {
	struct active_query *previous, *next;
	struct arena arena; /* the texts */
	struct active_query_what what;
	int64_t started_at_ns, began_ns; /* wall clock, monotonic */
	struct query_progress progress;
	_Atomic bool stopped;
};

struct active_queries {
	struct lock lock; /* guards the rest */
	struct active_query *first, *last;
	uint64_t number;
};

struct active_queries *active_queries_new(void)
{
	struct active_queries *active = mem_new(struct active_queries);

	lock_init(&active->lock, "active_queries", LOCK_SERVE + 3);
	return active;
}

void active_queries_free(struct active_queries *active)
{
	if (!active)
		return;
	lock_free(&active->lock);
	free(active);
}

static struct slice copy(struct active_query *entry, struct slice text)
{
	if (text.len > TEXT_BYTES_MAX)
		text.len = TEXT_BYTES_MAX;
	return arena_copy(&entry->arena, text);
}

struct active_query *active_queries_add(struct active_queries *active,
					const struct active_query_what *what)
{
	struct active_query *entry = mem_new(struct active_query);
	char made[32];

	arena_init(&entry->arena, 0);
	entry->what = *what;
	entry->what.id = copy(entry, what->id);
	entry->what.tenant = copy(entry, what->tenant);
	entry->what.path = copy(entry, what->path);
	entry->what.query = copy(entry, what->query);
	entry->what.by = copy(entry, what->by);
	entry->started_at_ns = clock_real_ns();
	entry->began_ns = clock_monotonic_ns();
	lock_take(&active->lock);
	active->number++;
	if (!what->id.len) {
		snprintf(made, sizeof(made), "q%llu", (unsigned long long)active->number);
		entry->what.id = copy(entry, slice_of(made));
	}
	entry->previous = active->last;
	if (active->last)
		active->last->next = entry;
	else
		active->first = entry;
	active->last = entry;
	lock_give(&active->lock);
	return entry;
}

void active_queries_remove(struct active_queries *active, struct active_query *entry)
{
	if (!entry)
		return;
	lock_take(&active->lock);
	if (entry->previous)
		entry->previous->next = entry->next;
	else
		active->first = entry->next;
	if (entry->next)
		entry->next->previous = entry->previous;
	else
		active->last = entry->previous;
	lock_give(&active->lock);
	arena_free(&entry->arena);
	free(entry);
}

const _Atomic bool *active_queries_stopped(const struct active_query *entry)
{
	return &entry->stopped;
}

struct query_progress *active_queries_progress(struct active_query *entry)
{
	return &entry->progress;
}

size_t active_queries_stop(struct active_queries *active, struct slice tenant, struct slice id)
{
	size_t count = 0;

	lock_take(&active->lock);
	for (struct active_query *at = active->first; at; at = at->next) {
		if (!slice_equal(at->what.tenant, tenant) || !slice_equal(at->what.id, id))
			continue;
		count += !atomic_exchange(&at->stopped, true);
	}
	lock_give(&active->lock);
	return count;
}

void active_queries_each(struct active_queries *active, struct slice tenant,
			 active_queries_visit_f *visit, void *context)
{
	int64_t now_ns = clock_monotonic_ns();

	lock_take(&active->lock);
	for (struct active_query *at = active->first; at; at = at->next) {
		struct active_query_state state = { .what = at->what,
						    .started_at_ns = at->started_at_ns,
						    .took_ns = now_ns - at->began_ns,
						    .blocks_done = at->progress.blocks_done,
						    .blocks_all = at->progress.blocks_all,
						    .bytes_done = at->progress.bytes_done,
						    .bytes_all = at->progress.bytes_all,
						    .is_stopped = at->stopped };

		if (slice_equal(at->what.tenant, tenant))
			visit(context, &state);
	}
	lock_give(&active->lock);
}
