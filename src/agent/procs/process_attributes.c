/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/process_attributes.h"

#include <stdlib.h>
#include <time.h>

#include "agent/files/job_thread.h"
#include "agent/identify/process_reading.h"
#include "base/lock.h"
#include "base/mem.h"

#define COST_FACTOR 1000

/*
 * A process publishes its context once its SDK runs, which takes longer than most processes of a
 * build live. To look for one means to go through all of its mappings.
 */
#define CONTEXT_AGE_NS CLOCK_NS_PER_S

struct reading_job {
	struct job job;
	struct process_identity identity;
	uint64_t variables_version;
	struct process_reading reading;
	int64_t took_ns;
};

struct process_attributes {
	struct job_thread *thread; /* its jobs are reading_jobs */
	struct strbuf variables;
	uint64_t variables_version;
};

static METRIC_COUNTER(read_total, "firn_agent_process_readings_total", "",
		      "Times that a process was asked what it says of itself.");
static METRIC_COUNTER(stuck_total, "firn_agent_process_readings_stuck_total", "",
		      "Readings given up because a process kept its reader waiting.");

void process_attributes_metrics_register(void)
{
	static struct metric *const own[] = { &read_total, &stuck_total };

	metrics_register(own, sizeof(own) / sizeof(own[0]));
}

static void do_job(struct job *job, void *own)
{
	struct reading_job *reading = (struct reading_job *)job;
	int64_t began_ns = clock_monotonic_ns();

	(void)own;
	process_reading_do(&reading->reading);
	reading->took_ns = clock_monotonic_ns() - began_ns;
	metric_add(&read_total, 1);
}

static void free_job(struct job *job)
{
	struct reading_job *reading = (struct reading_job *)job;

	process_reading_fini(&reading->reading);
	free(reading);
}

static const struct job_thread_work work = {
	.name = "firn-attributes",
	.lock_rank = LOCK_AGENT + 10,
	.waiting_max = PROCESS_ATTRIBUTES_WAITING_MAX,
	.stuck = &stuck_total,
	.do_job = do_job,
	.free_job = free_job,
};

struct process_attributes *process_attributes_new(void)
{
	struct process_attributes *attributes = mem_new(struct process_attributes);

	attributes->thread = job_thread_new(&work);
	return attributes;
}

void process_attributes_free(struct process_attributes *attributes)
{
	if (!attributes)
		return;
	job_thread_free(attributes->thread);
	strbuf_free(&attributes->variables);
	free(attributes);
}

void process_attributes_set_variables(struct process_attributes *attributes,
				      const struct slice *names, size_t count)
{
	strbuf_clear(&attributes->variables);
	for (size_t i = 0; i < count; i++) {
		strbuf_add_slice(&attributes->variables, names[i]);
		strbuf_add_byte(&attributes->variables, '\0');
	}
	attributes->variables_version++;
}

static bool is_young(const struct process *process)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec <
	       (int64_t)process->identity.start_ns + CONTEXT_AGE_NS;
}

void process_attributes_want(struct process_attributes *attributes, struct process *process,
			     int64_t now_ns)
{
	struct process_look *look = &process->look;
	bool is_new = look->variables_version != attributes->variables_version;
	struct reading_job *job;
	int proc;

	job_thread_look_after(attributes->thread, now_ns);
	if (look->is_asked || (now_ns < look->due_ns && !is_new) ||
	    job_thread_is_full(attributes->thread))
		return;
	proc = process_open_image(process);
	if (proc < 0)
		return;
	job = mem_new(struct reading_job);
	job->job.pid = process->identity.pid;
	job->identity = process->identity;
	job->variables_version = attributes->variables_version;
	job->reading.proc = proc;
	job->reading.context_at = look->context_at;
	job->reading.is_young = is_young(process);
	strbuf_add_slice(&job->reading.variables, strbuf_slice(&attributes->variables));
	look->is_asked = job_thread_put(attributes->thread, &job->job, now_ns);
}

static void take_one(struct process *process, struct reading_job *job, int64_t now_ns)
{
	static const int64_t pauses_ns[] = { 2 * CLOCK_NS_PER_S, 10 * CLOCK_NS_PER_S,
					     60 * CLOCK_NS_PER_S, 300 * CLOCK_NS_PER_S };
	struct process_look *look = &process->look;
	int64_t pause_ns = pauses_ns[look->pause];

	if (look->pause + 1 < sizeof(pauses_ns) / sizeof(*pauses_ns))
		look->pause++;
	if (pause_ns < COST_FACTOR * job->took_ns)
		pause_ns = COST_FACTOR * job->took_ns;
	look->is_asked = false;
	look->due_ns = now_ns + pause_ns;
	look->context_at = job->reading.context_at;
	look->variables_version = job->variables_version;
	if (!job->reading.labels.count)
		return; /* it has ended meanwhile: what was known stays */
	meta_labels_free(&process->attributes);
	process->attributes = job->reading.labels;
	job->reading.labels = (struct meta_labels){ 0 };
}

void process_attributes_take(struct process_attributes *attributes, process_find_f *find,
			     void *context, int64_t now_ns)
{
	struct job *done;

	while ((done = job_thread_take(attributes->thread))) {
		struct reading_job *job = (struct reading_job *)done;
		struct process *process = find(context, &job->identity);

		if (process)
			take_one(process, job, now_ns);
		free_job(done);
	}
}

void process_attributes_settle(struct process_attributes *attributes, int64_t timeout_ns)
{
	job_thread_settle(attributes->thread, timeout_ns);
}
