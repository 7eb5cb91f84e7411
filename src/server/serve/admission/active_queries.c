/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/active_queries.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"

#define TEXT_BYTES_MAX 4096 /* of a query, for the list */

struct running_entry {
	struct running_entry *previous, *next;
	struct arena arena; /* the texts */
	struct running_what what;
	int64_t started_at_ns, began_ns; /* wall clock, monotonic */
	struct query_progress progress;
	_Atomic bool stopped;
};

struct running {
	pthread_mutex_t lock; /* guards the rest */
	struct running_entry *first, *last;
	uint64_t number;
};

struct running *running_new(void)
{
	struct running *running = mem_new(struct running);

	pthread_mutex_init(&running->lock, NULL);
	return running;
}

void running_free(struct running *running)
{
	if (!running)
		return;
	pthread_mutex_destroy(&running->lock);
	free(running);
}

static struct slice copy(struct running_entry *entry, struct slice text)
{
	if (text.len > TEXT_BYTES_MAX)
		text.len = TEXT_BYTES_MAX;
	return arena_copy(&entry->arena, text);
}

struct running_entry *running_add(struct running *running, const struct running_what *what)
{
	struct running_entry *entry = mem_new(struct running_entry);
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
	pthread_mutex_lock(&running->lock);
	running->number++;
	if (!what->id.len) {
		snprintf(made, sizeof(made), "q%llu", (unsigned long long)running->number);
		entry->what.id = copy(entry, slice_of(made));
	}
	entry->previous = running->last;
	if (running->last)
		running->last->next = entry;
	else
		running->first = entry;
	running->last = entry;
	pthread_mutex_unlock(&running->lock);
	return entry;
}

void running_remove(struct running *running, struct running_entry *entry)
{
	if (!entry)
		return;
	pthread_mutex_lock(&running->lock);
	if (entry->previous)
		entry->previous->next = entry->next;
	else
		running->first = entry->next;
	if (entry->next)
		entry->next->previous = entry->previous;
	else
		running->last = entry->previous;
	pthread_mutex_unlock(&running->lock);
	arena_free(&entry->arena);
	free(entry);
}

const _Atomic bool *running_stopped(const struct running_entry *entry)
{
	return &entry->stopped;
}

struct query_progress *running_progress(struct running_entry *entry)
{
	return &entry->progress;
}

size_t running_stop(struct running *running, struct slice tenant, struct slice id)
{
	size_t count = 0;

	pthread_mutex_lock(&running->lock);
	for (struct running_entry *at = running->first; at; at = at->next) {
		if (!slice_equal(at->what.tenant, tenant) || !slice_equal(at->what.id, id))
			continue;
		count += !atomic_exchange(&at->stopped, true);
	}
	pthread_mutex_unlock(&running->lock);
	return count;
}

void running_each(struct running *running, struct slice tenant, running_visit_f *visit,
		  void *context)
{
	int64_t now_ns = clock_monotonic_ns();

	pthread_mutex_lock(&running->lock);
	for (struct running_entry *at = running->first; at; at = at->next) {
		struct running_state state = { .what = at->what,
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
	pthread_mutex_unlock(&running->lock);
}
