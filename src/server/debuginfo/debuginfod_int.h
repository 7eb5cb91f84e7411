/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfod_int - what the parts of debuginfod share. debuginfod.c: debug information;
 * debuginfod_source.c: source files; debuginfod_kept.c: what of both is on disk.
 */
#ifndef FIRN_SERVER_DEBUGINFO_DEBUGINFOD_INT_H
#define FIRN_SERVER_DEBUGINFO_DEBUGINFOD_INT_H

#include <stdatomic.h>

#include "base/lock.h"
#include "net/client/fetch.h"
#include "server/debuginfo/debuginfo_int.h"
#include "server/debuginfo/debuginfod.h"

#define DEBUGINFOD_THREADS 4
#define NOT_THERE_NS (3600 * CLOCK_NS_PER_S)
#define FOUND 1
#define DEBUGINFOD_SOURCE_PREFIX "source-"
#define DEBUGINFOD_NONE_SUFFIX ".none"
#define MISSES_MAX 16384u /* remembered on disk, of files and of sources */

struct debuginfod {
	struct debuginfo *store;
	struct strbuf folder;
	struct strbuf servers;		/* all addresses; misses are theirs */
	struct strbuf *urls;		/* without "/" at the end */
	_Atomic int64_t *down_until_ns; /* of each: monotonic; 0 = it answered */
	size_t urls_count;
	struct tls *tls;
	_Atomic bool stopping;
	_Atomic bool paused;
	_Atomic bool idle;     /* stopping or paused: what is under way ends */
	_Atomic size_t misses; /* on disk, at most: one that is written anew counts again */

	struct lock lock; /* for all below; taken before the store's and the resolver's */
	struct lock_condition wake;
	struct asked *asked; /* debuginfod.c */
	size_t asked_count, asked_capacity;
	struct idmap map;
	int64_t polled_at_ns; /* monotonic */
	pthread_t threads[DEBUGINFOD_THREADS];
	size_t threads_count;
};

extern struct metric debuginfod_fetched, debuginfod_not_there, debuginfod_failed;

/* The deadline of one server, so that the servers after it have time, too. */
static inline int64_t debuginfod_share(const struct debuginfod *debuginfod, size_t index,
				       int64_t deadline_at_ns)
{
	int64_t now_ns = clock_monotonic_ns();

	return now_ns + (deadline_at_ns - now_ns) / (int64_t)(debuginfod->urls_count - index);
}

/* ERR_UNAVAILABLE while a server that could not be reached is skipped. */
int debuginfod_check_up(const struct debuginfod *debuginfod, size_t index, struct err *err);
/* Notes the result of a request: `status` is 0 if there was no answer. */
void debuginfod_note_reached(struct debuginfod *debuginfod, size_t index, int rc, int status);

/* When these servers said that they do not have it; 0: never, or too long ago. */
int64_t debuginfod_read_miss(const struct debuginfod *debuginfod, const char *name);
/* Remembers it, while there is room for more. Losing one costs a request. */
void debuginfod_write_miss(struct debuginfod *debuginfod, const char *name);

/* Adds the kept text to `out`; false: there is none. */
bool debuginfod_read_source(const struct debuginfod *debuginfod, const char *name,
			    struct strbuf *out);
void debuginfod_keep_source(const struct debuginfod *debuginfod, const char *name,
			    struct slice text);

#endif
