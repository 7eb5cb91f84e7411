/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/team.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>

#define THREADS_MAX 64u

struct team {
	team_step_f *step;
	void *context;
	size_t count;
	_Atomic size_t next;
	struct work_shared *shared;
};

struct member {
	struct team *team;
	struct work *work;
	pthread_t thread;
	struct err err;
	size_t failed_at; /* SIZE_MAX: it did not */
	int rc;
};

/* Calls of team_run that want threads, in the whole process. */
static _Atomic uint32_t teams_running;

static uint32_t cpus_count(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

static uint32_t share_of(const struct work *work, uint32_t teams)
{
	uint32_t share = cpus_count() / (teams ? teams : 1);

	assert(work->shared);
	if (work->shared->threads_max)
		share = work->shared->threads_max;
	if (share > THREADS_MAX)
		share = THREADS_MAX;
	return share ? share : 1;
}

uint32_t team_size(const struct work *work)
{
	return share_of(work, atomic_load(&teams_running) + 1);
}

static void *work_off(void *context)
{
	struct member *member = context;
	struct team *team = member->team;

	while (!atomic_load_explicit(&team->shared->failed, memory_order_relaxed)) {
		size_t index = atomic_fetch_add(&team->next, 1);

		if (index >= team->count)
			break;
		member->rc = team->step(team->context, member->work, index, &member->err);
		if (member->rc) {
			member->failed_at = index;
			atomic_store(&team->shared->failed, true);
		}
	}
	return NULL;
}

/* The members' error that counts: others may only have been told to stop. */
static const struct member *first_failed(const struct member *members, uint32_t count)
{
	const struct member *first = NULL;

	assert(count >= 1 && count <= THREADS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct member *member = &members[i];

		if (member->failed_at == SIZE_MAX)
			continue;
		if (!first || (first->rc == -ERR_CANCELLED && member->rc != -ERR_CANCELLED) ||
		    (member->failed_at < first->failed_at && member->rc != -ERR_CANCELLED))
			first = member;
	}
	return first;
}

static int run_alone(struct work *work, size_t count, team_step_f *step, void *context,
		     struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		int rc = step(context, work, i, err);

		if (rc)
			return rc;
	}
	return 0;
}

/* `threads` members, the caller being the first. */
static int run_together(struct work *work, uint32_t threads, struct team *team, struct err *err)
{
	struct member members[THREADS_MAX] = { { .team = team } };
	const struct member *failed;
	uint32_t started = 1;

	assert(threads >= 2 && threads <= THREADS_MAX);
	assert(threads - 1 <= work->crew_count);
	assert(team->step && team->shared == work->shared);
	for (uint32_t i = 0; i < threads; i++)
		members[i] = (struct member){ .team = team,
					      .work = i ? &work->crew[i - 1] : work,
					      .failed_at = SIZE_MAX };
	/* Fewer threads than wanted are no error: somebody does the steps. */
	while (started < threads &&
	       !pthread_create(&members[started].thread, NULL, work_off, &members[started]))
		started++;
	work_off(&members[0]);
	for (uint32_t i = 1; i < started; i++)
		pthread_join(members[i].thread, NULL);
	failed = first_failed(members, started);
	if (!failed)
		return 0;
	if (err)
		*err = failed->err;
	return failed->rc;
}

int team_run(struct work *work, size_t count, uint64_t cost, team_step_f *step, void *context,
	     struct err *err)
{
	struct team team = {
		.step = step, .context = context, .count = count, .shared = work->shared
	};
	uint32_t threads = 1;
	int rc;

	assert(work->shared);
	if (count < 2 || (cost < TEAM_COST_MIN && work->shared->threads_max < 2))
		return run_alone(work, count, step, context, err);
	threads = share_of(work, atomic_fetch_add(&teams_running, 1) + 1);
	if (threads > 1)
		work_begin_crew(work, threads - 1);
	if (threads > work->crew_count + 1)
		threads = (uint32_t)work->crew_count + 1;
	if (threads > count)
		threads = (uint32_t)count;
	rc = threads < 2 ? run_alone(work, count, step, context, err)
			 : run_together(work, threads, &team, err);
	atomic_fetch_sub(&teams_running, 1);
	return rc;
}
