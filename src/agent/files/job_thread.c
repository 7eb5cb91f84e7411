/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/job_thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"

#define STUCK_NS (10 * CLOCK_NS_PER_S)
#define STOP_NS (2 * CLOCK_NS_PER_S)

struct jobs {
	struct job *first, *last;
	size_t count;
};

/* A thread; when it is abandoned it frees itself, and the jobs with the last one. */
struct worker {
	struct job_thread *owner;
	pthread_t thread;
	struct job *job; /* at hand */
	int64_t began_at_ns;
	void *own;
	bool abandoned, ended;
};

struct job_thread {
	const struct job_thread_work *work;
	int urgent_fd;
	struct lock lock; /* guards what follows */
	struct lock_condition more, idle;
	struct jobs waiting, done;
	struct worker *worker; /* NULL = none has been started, or the last one was abandoned */
	int stuck;
	int users; /* the owner, and threads */
	bool stopping;
	bool is_told; /* urgent_fd is readable */
};

static void append(struct jobs *jobs, struct job *job)
{
	job->next = NULL;
	if (jobs->first)
		jobs->last->next = job;
	else
		jobs->first = job;
	jobs->last = job;
	jobs->count++;
}

static struct job *take_first(struct jobs *jobs)
{
	struct job *job = jobs->first;

	if (!job)
		return NULL;
	jobs->first = job->next;
	jobs->count--;
	return job;
}

static void free_jobs(const struct job_thread *thread, struct jobs *jobs)
{
	struct job *job;

	while ((job = take_first(jobs)))
		thread->work->free_job(job);
}

/* Without the lock. */
static void drop_user(struct job_thread *thread)
{
	bool last;

	lock_take(&thread->lock);
	last = !--thread->users;
	lock_give(&thread->lock);
	if (!last)
		return;
	free_jobs(thread, &thread->waiting);
	free_jobs(thread, &thread->done);
	lock_free(&thread->lock);
	lock_condition_free(&thread->more);
	lock_condition_free(&thread->idle);
	if (thread->urgent_fd >= 0)
		close(thread->urgent_fd);
	free(thread);
}

/* With the lock held. */
static void tell(struct job_thread *thread)
{
	lock_assert_held(&thread->lock);
	if (!thread->is_told)
		thread->is_told = !eventfd_write(thread->urgent_fd, 1);
}

/* With the lock held. */
static void tell_no_more(struct job_thread *thread)
{
	eventfd_t count;

	lock_assert_held(&thread->lock);
	if (thread->is_told)
		thread->is_told = eventfd_read(thread->urgent_fd, &count) != 0;
}

/* With the lock held, which it lets go of meanwhile. */
static void do_next(struct worker *worker)
{
	struct job_thread *thread = worker->owner;
	struct job *job;

	lock_assert_held(&thread->lock);
	job = take_first(&thread->waiting);
	worker->job = job;
	worker->began_at_ns = clock_monotonic_ns();
	lock_give(&thread->lock);
	thread->work->do_job(job, worker->own);
	lock_take(&thread->lock);
	worker->job = NULL;
	append(&thread->done, job);
	if (job->is_urgent)
		tell(thread);
	if (!thread->waiting.first)
		lock_broadcast(&thread->idle);
}

static void *work_loop(void *data)
{
	struct worker *worker = data;
	struct job_thread *thread = worker->owner;
	bool abandoned;

	lock_take(&thread->lock);
	while (!worker->abandoned) {
		while (!thread->waiting.first && !thread->stopping && !worker->abandoned)
			lock_wait(&thread->more, &thread->lock);
		if (thread->stopping || worker->abandoned)
			break;
		do_next(worker);
	}
	if (thread->work->fini_own)
		thread->work->fini_own(worker->own);
	free(worker->own);
	worker->ended = true;
	lock_broadcast(&thread->idle);
	abandoned = worker->abandoned;
	lock_give(&thread->lock);
	if (abandoned)
		free(worker);
	drop_user(thread);
	return NULL;
}

/* With the lock held. */
static void start_worker(struct job_thread *thread)
{
	struct worker *worker = mem_new(struct worker);

	lock_assert_held(&thread->lock);
	worker->owner = thread;
	worker->own = mem_calloc(1, thread->work->own_bytes + 1);
	if (pthread_create(&worker->thread, NULL, work_loop, worker)) {
		free(worker->own);
		free(worker);
		return; /* tried again with the next job */
	}
	pthread_setname_np(worker->thread, thread->work->name);
	thread->worker = worker;
	thread->users++;
}

/* With the lock held. */
static void abandon(struct job_thread *thread)
{
	lock_assert_held(&thread->lock);
	thread->worker->abandoned = true;
	pthread_detach(thread->worker->thread);
	thread->worker = NULL;
}

/* With the lock held. */
static void look_after(struct job_thread *thread, int64_t now_ns)
{
	struct worker *worker = thread->worker;

	lock_assert_held(&thread->lock);
	if (worker && worker->job && now_ns - worker->began_at_ns > STUCK_NS) {
		log_warn("agent", "reading a process takes too long: given up", "thread=%s pid=%u",
			 thread->work->name, (unsigned)worker->job->pid);
		abandon(thread);
		thread->stuck++;
		metric_add(thread->work->stuck, 1);
	}
	if (!thread->worker && thread->waiting.first && thread->stuck < JOB_THREAD_STUCK_MAX)
		start_worker(thread);
}

struct job_thread *job_thread_new(const struct job_thread_work *work)
{
	struct job_thread *thread = mem_new(struct job_thread);

	assert(work->do_job && work->free_job && work->waiting_max);
	thread->work = work;
	thread->urgent_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lock_init(&thread->lock, work->name, work->lock_rank);
	lock_condition_init(&thread->more);
	lock_condition_init(&thread->idle);
	thread->users = 1;
	return thread;
}

/* With the lock held, when a job has been put. With others before it, it was told of the first. */
static bool is_to_be_woken(const struct job_thread *thread)
{
	lock_assert_held(&thread->lock);
	return thread->waiting.count == 1 && thread->worker && !thread->worker->job;
}

bool job_thread_put(struct job_thread *thread, struct job *job, int64_t now_ns)
{
	bool taken, wakes = false;

	lock_take(&thread->lock);
	taken = thread->waiting.count < thread->work->waiting_max;
	if (taken) {
		append(&thread->waiting, job);
		look_after(thread, now_ns);
		wakes = is_to_be_woken(thread);
	}
	lock_give(&thread->lock);
	if (wakes) /* without the lock, which it would only wait for */
		lock_signal(&thread->more);
	if (!taken)
		thread->work->free_job(job);
	return taken;
}

bool job_thread_is_full(struct job_thread *thread)
{
	bool is_full;

	lock_take(&thread->lock);
	is_full = thread->waiting.count >= thread->work->waiting_max;
	lock_give(&thread->lock);
	return is_full;
}

struct job *job_thread_take(struct job_thread *thread)
{
	struct job *job;

	lock_take(&thread->lock);
	job = take_first(&thread->done);
	if (!thread->done.first)
		tell_no_more(thread);
	lock_give(&thread->lock);
	return job;
}

int job_thread_fd(const struct job_thread *thread)
{
	return thread->urgent_fd;
}

/* With the lock held. */
static bool is_busy(const struct job_thread *thread)
{
	lock_assert_held(&thread->lock);
	return thread->worker && (thread->waiting.first || thread->worker->job);
}

bool job_thread_settle(struct job_thread *thread, int64_t timeout_ns)
{
	int64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
	bool busy, late = false;

	lock_take(&thread->lock);
	while (is_busy(thread) && !late)
		late = !lock_wait_until(&thread->idle, &thread->lock, deadline_ns);
	busy = is_busy(thread);
	lock_give(&thread->lock);
	return !busy;
}

void job_thread_look_after(struct job_thread *thread, int64_t now_ns)
{
	lock_take(&thread->lock);
	look_after(thread, now_ns);
	lock_give(&thread->lock);
}

void job_thread_free(struct job_thread *thread)
{
	int64_t deadline_ns = clock_monotonic_ns() + STOP_NS;
	struct worker *worker;
	bool late = false;

	if (!thread)
		return;
	lock_take(&thread->lock);
	thread->stopping = true;
	lock_broadcast(&thread->more);
	worker = thread->worker;
	while (worker && !worker->ended && !late)
		late = !lock_wait_until(&thread->idle, &thread->lock, deadline_ns);
	if (worker && !worker->ended) {
		abandon(thread);
		worker = NULL;
	}
	lock_give(&thread->lock);
	if (worker)
		pthread_join(worker->thread, NULL);
	free(worker);
	drop_user(thread);
}
