/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/script_reader.h"

#include <pthread.h>
#include <stdlib.h>

#include "agent/runtime/python/python_code.h"
#include "agent/runtime/hotspot/java_code.h"
#include "agent/runtime/ruby/ruby_code.h"
#include "agent/runtime/runtime_metrics.h"
#include "agent/runtime/v8/v8_code.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"

#define STUCK_NS (10 * CLOCK_NS_PER_S)
#define STUCK_MAX 4
#define STOP_NS (2 * CLOCK_NS_PER_S)

struct jobs {
	struct script_job *first, *last;
	size_t count;
};

/* A thread; when it is abandoned it frees itself, and the reader with the last one. */
struct worker {
	struct script_reader *reader;
	pthread_t thread;
	struct script_job *job; /* at hand */
	int64_t began_at_ns;
	struct v8_lines lines; /* the thread's own */
	bool abandoned, ended;
};

struct script_reader {
	struct lock lock; /* guards all of it */
	struct lock_condition work, idle;
	struct jobs waiting, done;
	struct worker *worker; /* NULL = none has been started, or the last one was abandoned */
	int stuck;
	int users; /* the owner, and threads */
	bool stopping;
};

void script_job_free(struct script_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->count; i++)
		script_code_fini(&job->items[i].code);
	free(job->hotspot);
	dotnet_process_free(job->dotnet);
	free(job->wanted);
	free(job);
}

static void append(struct jobs *jobs, struct script_job *job)
{
	job->next = NULL;
	if (jobs->first)
		jobs->last->next = job;
	else
		jobs->first = job;
	jobs->last = job;
	jobs->count++;
}

static struct script_job *take_first(struct jobs *jobs)
{
	struct script_job *job = jobs->first;

	if (!job)
		return NULL;
	jobs->first = job->next;
	jobs->count--;
	return job;
}

static void free_jobs(struct jobs *jobs)
{
	struct script_job *job;

	while ((job = take_first(jobs)))
		script_job_free(job);
}

static uint64_t process_key(const struct script_job *job)
{
	return hash_mix(hash_mix(job->identity.start_ns, job->identity.pid), job->identity.exec_id);
}

static enum script_code_result read_java(const struct script_job *job,
					 const struct memory_reader *memory,
					 struct script_job_item *item)
{
	item->code.java = java_code_read(memory, job->hotspot, item->address);
	if (!item->code.java)
		return SCRIPT_CODE_GONE;
	item->code.proof = item->code.java->proof;
	return SCRIPT_CODE_READ;
}

static enum script_code_result read_code(struct worker *worker, const struct script_job *job,
					 const struct memory_reader *memory,
					 struct script_job_item *item)
{
	switch (job->layout.kind) {
	case RUNTIME_V8:
		return v8_code_read(memory, &job->layout.v8, &worker->lines, process_key(job),
				    item->address, &item->code);
	case RUNTIME_RUBY:
		return ruby_code_read(memory, &job->layout.ruby, job->bias, item->address,
				      &item->code);
	case RUNTIME_HOTSPOT:
		return read_java(job, memory, item);
	default:
		return python_code_read(memory, &job->layout.python, job->bias, job->proof_words,
					item->address, &item->code);
	}
}

static void read_item(struct worker *worker, const struct script_job *job,
		      const struct memory_reader *memory, struct script_job_item *item)
{
	item->result = read_code(worker, job, memory, item);
	if (item->result == SCRIPT_CODE_READ && item->code.proof != item->proof) {
		script_code_fini(&item->code);
		item->result = SCRIPT_CODE_GONE;
	}
}

static void read_job(struct worker *worker, struct script_job *job)
{
	struct process_memory process = { (int)job->identity.pid };
	struct memory_reader memory = process_memory_reader(&process);
	int64_t began_at_ns = clock_monotonic_ns();

	if (job->dotnet)
		job->answer =
			dotnet_process_read(job->dotnet, &memory, job->wanted, job->wanted_count);
	else if (!job->count)
		job->state = hotspot_process_read(&memory, job->bias, &job->layout.hotspot,
						  job->hotspot);
	for (size_t i = 0; i < job->count; i++)
		read_item(worker, job, &memory, &job->items[i]);
	job->took_ns = clock_monotonic_ns() - began_at_ns;
	metric_add(&runtime_read_seconds, job->took_ns);
}

/* Without the lock. */
static void drop_user(struct script_reader *reader)
{
	bool last;

	lock_take(&reader->lock);
	last = !--reader->users;
	lock_give(&reader->lock);
	if (!last)
		return;
	free_jobs(&reader->waiting);
	free_jobs(&reader->done);
	lock_free(&reader->lock);
	lock_condition_free(&reader->work);
	lock_condition_free(&reader->idle);
	free(reader);
}

/* With the lock held, which it lets go of meanwhile. */
static void do_job(struct worker *worker)
{
	struct script_reader *reader = worker->reader;
	struct script_job *job;

	lock_assert_held(&reader->lock);
	job = take_first(&reader->waiting);
	worker->job = job;
	worker->began_at_ns = clock_monotonic_ns();
	lock_give(&reader->lock);
	read_job(worker, job);
	lock_take(&reader->lock);
	worker->job = NULL;
	append(&reader->done, job);
	if (!reader->waiting.first)
		lock_broadcast(&reader->idle);
}

static void *work_loop(void *data)
{
	struct worker *worker = data;
	struct script_reader *reader = worker->reader;
	bool abandoned;

	lock_take(&reader->lock);
	while (!worker->abandoned) {
		while (!reader->waiting.first && !reader->stopping && !worker->abandoned)
			lock_wait(&reader->work, &reader->lock);
		if (reader->stopping || worker->abandoned)
			break;
		do_job(worker);
	}
	v8_lines_fini(&worker->lines);
	worker->ended = true;
	lock_broadcast(&reader->idle);
	abandoned = worker->abandoned;
	lock_give(&reader->lock);
	if (abandoned)
		free(worker);
	drop_user(reader);
	return NULL;
}

/* With the lock held. */
static void start_worker(struct script_reader *reader)
{
	struct worker *worker = mem_new(struct worker);

	lock_assert_held(&reader->lock);
	worker->reader = reader;
	if (pthread_create(&worker->thread, NULL, work_loop, worker)) {
		free(worker);
		return; /* tried again with the next job */
	}
	pthread_setname_np(worker->thread, "firn-runtime");
	reader->worker = worker;
	reader->users++;
}

/* With the lock held. */
static void abandon(struct script_reader *reader)
{
	lock_assert_held(&reader->lock);
	reader->worker->abandoned = true;
	pthread_detach(reader->worker->thread);
	reader->worker = NULL;
}

/* With the lock held. */
static void look_after(struct script_reader *reader, int64_t now_ns)
{
	struct worker *worker = reader->worker;

	lock_assert_held(&reader->lock);
	if (worker && worker->job && now_ns - worker->began_at_ns > STUCK_NS) {
		log_warn("runtime", "reading a process takes too long: given up", "pid=%u",
			 (unsigned)worker->job->identity.pid);
		abandon(reader);
		reader->stuck++;
		metric_add(&runtime_stuck, 1);
	}
	if (!reader->worker && reader->waiting.first && reader->stuck < STUCK_MAX)
		start_worker(reader);
}

struct script_reader *script_reader_new(void)
{
	struct script_reader *reader = mem_new(struct script_reader);

	lock_init(&reader->lock, "script_reader", LOCK_AGENT + 8);
	lock_condition_init(&reader->work);
	lock_condition_init(&reader->idle);
	reader->users = 1;
	return reader;
}

bool script_reader_put(struct script_reader *reader, struct script_job *job, int64_t now_ns)
{
	bool taken;

	lock_take(&reader->lock);
	taken = reader->waiting.count < SCRIPT_JOBS_MAX;
	if (taken) {
		append(&reader->waiting, job);
		look_after(reader, now_ns);
		lock_signal(&reader->work);
	}
	lock_give(&reader->lock);
	if (!taken)
		script_job_free(job);
	return taken;
}

bool script_reader_is_full(struct script_reader *reader)
{
	bool is_full;

	lock_take(&reader->lock);
	is_full = reader->waiting.count >= SCRIPT_JOBS_MAX;
	lock_give(&reader->lock);
	return is_full;
}

struct script_job *script_reader_take(struct script_reader *reader)
{
	struct script_job *job;

	lock_take(&reader->lock);
	job = take_first(&reader->done);
	lock_give(&reader->lock);
	return job;
}

/* With the lock held. */
static bool is_busy(const struct script_reader *reader)
{
	lock_assert_held(&reader->lock);
	return reader->worker && (reader->waiting.first || reader->worker->job);
}

bool script_reader_settle(struct script_reader *reader, int64_t timeout_ns)
{
	int64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
	bool busy, late = false;

	lock_take(&reader->lock);
	while (is_busy(reader) && !late)
		late = !lock_wait_until(&reader->idle, &reader->lock, deadline_ns);
	busy = is_busy(reader);
	lock_give(&reader->lock);
	return !busy;
}

void script_reader_look_after(struct script_reader *reader, int64_t now_ns)
{
	lock_take(&reader->lock);
	look_after(reader, now_ns);
	lock_give(&reader->lock);
}

void script_reader_free(struct script_reader *reader)
{
	int64_t deadline_ns = clock_monotonic_ns() + STOP_NS;
	struct worker *worker;
	bool late = false;

	if (!reader)
		return;
	lock_take(&reader->lock);
	reader->stopping = true;
	lock_broadcast(&reader->work);
	worker = reader->worker;
	while (worker && !worker->ended && !late)
		late = !lock_wait_until(&reader->idle, &reader->lock, deadline_ns);
	if (worker && !worker->ended) {
		abandon(reader);
		worker = NULL;
	}
	lock_give(&reader->lock);
	if (worker)
		pthread_join(worker->thread, NULL);
	free(worker);
	drop_user(reader);
}
