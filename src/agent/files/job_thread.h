/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_thread - a thread for jobs that may never end, such as reading another process's memory.
 *
 * A process can block a reader of its memory for as long as it likes. So a thread that has worked
 * on one job for 10 s is abandoned with its job and replaced, JOB_THREAD_STUCK_MAX times at most;
 * after that no job runs any more. Only job_thread_settle and job_thread_free wait for the thread,
 * for a bounded time.
 *
 * Owned by one thread, which makes jobs, puts them and takes finished ones back.
 */
#ifndef FIRN_AGENT_FILES_JOB_THREAD_H
#define FIRN_AGENT_FILES_JOB_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"

#define JOB_THREAD_STUCK_MAX 4

/* The first member of each kind of job. */
struct job {
	struct job *next;
	uint32_t pid;	/* whose memory it reads, for the log */
	bool is_urgent; /* set by do_job: job_thread_fd tells that it is done */
};

struct job_thread_work {
	const char *name; /* of the thread: 15 characters at most */
	unsigned int lock_rank;
	size_t waiting_max;
	struct metric *stuck; /* counts abandoned threads */

	/* On the thread; `own` are the thread's own bytes, zero at first. */
	void (*do_job)(struct job *job, void *own);
	size_t own_bytes;
	void (*fini_own)(void *own); /* NULL = nothing to do */

	void (*free_job)(struct job *job);
};

struct job_thread;

struct job_thread *job_thread_new(const struct job_thread_work *work); /* `work` is static */
void job_thread_free(struct job_thread *thread); /* accepts NULL; waits 2 s at most */

/* Takes the job. False when too many wait: it is freed. */
bool job_thread_put(struct job_thread *thread, struct job *job, int64_t now_ns);

/* True if a job would not be taken now. */
bool job_thread_is_full(struct job_thread *thread);

/* A job that is done, the caller's; NULL = there is none. */
struct job *job_thread_take(struct job_thread *thread);

/* Readable while an urgent job is done and not taken, for poll. -1 = it tells nothing. */
int job_thread_fd(const struct job_thread *thread);

/* Waits until all jobs are done; false when they are not in time. */
bool job_thread_settle(struct job_thread *thread, int64_t timeout_ns);

/* Now and then: replaces a thread that is stuck. */
void job_thread_look_after(struct job_thread *thread, int64_t now_ns);

#endif
