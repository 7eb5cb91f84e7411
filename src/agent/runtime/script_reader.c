/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/script_reader.h"

#include <stdlib.h>

#include "agent/runtime/code_memory.h"
#include "agent/runtime/python/python_code.h"
#include "agent/runtime/hotspot/java_code.h"
#include "agent/runtime/jsc/jsc_code.h"
#include "agent/runtime/lua/lua_code.h"
#include "agent/runtime/perl/perl_code.h"
#include "agent/runtime/php/php_code.h"
#include "agent/runtime/puc/puc_code.h"
#include "agent/runtime/ruby/ruby_code.h"
#include "agent/runtime/runtime_metrics.h"
#include "agent/runtime/v8/v8_code.h"
#include "agent/runtime/v8/v8_optimized.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/mem.h"

/* The thread's own. */
struct reading {
	struct v8_lines lines;
	struct code_memory pages;
};

struct script_job *script_job_new(const struct process_identity *identity)
{
	struct script_job *job = mem_new(struct script_job);

	job->identity = *identity;
	job->job.pid = identity->pid;
	return job;
}

static void free_job(struct job *item)
{
	struct script_job *job = (struct script_job *)item;

	for (size_t i = 0; i < job->count; i++)
		script_code_fini(&job->items[i].code);
	free(job->hotspot);
	dotnet_process_free(job->dotnet);
	beam_process_free(job->beam);
	free(job->wanted);
	free(job);
}

void script_job_free(struct script_job *job)
{
	if (job)
		free_job(&job->job);
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

static enum script_code_result read_v8(struct v8_lines *lines, const struct script_job *job,
				       const struct memory_reader *memory,
				       struct script_job_item *item)
{
	struct v8_layout layout = job->layout.v8;
	uint64_t address = item->address >> (layout.is_compressed & 1);

	if (!item->is_place) {
		v8_layout_note(&layout, item->address);
		return v8_code_read(memory, &layout, lines, process_key(job), address, &item->code);
	}
	item->code.v8 = v8_optimized_read(memory, &layout, lines, process_key(job), item->address);
	item->code.proof = item->proof;
	return SCRIPT_CODE_READ;
}

static enum script_code_result read_code(struct v8_lines *lines, const struct script_job *job,
					 const struct memory_reader *memory,
					 struct script_job_item *item)
{
	switch (job->layout.kind) {
	case RUNTIME_V8:
		return read_v8(lines, job, memory, item);
	case RUNTIME_RUBY:
		return ruby_code_read(memory, &job->layout.ruby, job->bias, item->address,
				      &item->code);
	case RUNTIME_PHP:
		return php_code_read(memory, &job->layout.php, item->key, item->address,
				     &item->code);
	case RUNTIME_LUA:
		return lua_code_read(memory, &job->layout.lua, item->address, &item->code);
	case RUNTIME_JSC:
		return jsc_code_read(memory, &job->layout.jsc, job->bias, item->address,
				     &item->code);
	case RUNTIME_PUC:
		return puc_code_read(memory, &job->layout.puc, item->address, &item->code);
	case RUNTIME_PERL:
		return perl_code_read(memory, &job->layout.perl, job->bias, item->key,
				      item->address, &item->code);
	case RUNTIME_HOTSPOT:
		return read_java(job, memory, item);
	default:
		return python_code_read(memory, &job->layout.python, job->bias, job->proof_words,
					item->address, &item->code);
	}
}

/* With pages of its own: names are to be as old as the proof that they belong to. */
static void read_item(struct reading *reading, const struct script_job *job,
		      const struct memory_reader *process, struct script_job_item *item)
{
	struct memory_reader memory = code_memory_reader(&reading->pages);

	code_memory_begin(&reading->pages, process);
	item->result = read_code(&reading->lines, job, &memory, item);
	if (item->result == SCRIPT_CODE_READ && item->code.proof != item->proof) {
		script_code_fini(&item->code);
		item->result = SCRIPT_CODE_GONE;
	}
}

static enum hotspot_state read_hotspot(struct reading *reading, const struct script_job *job,
				       const struct memory_reader *process)
{
	struct memory_reader memory = code_memory_reader(&reading->pages);

	code_memory_begin(&reading->pages, process);
	return hotspot_process_read(&memory, job->bias, &job->layout.hotspot, job->hotspot);
}

static void read_job(struct job *item, void *own)
{
	struct script_job *job = (struct script_job *)item;
	struct reading *reading = own;
	struct process_memory process = { (int)job->identity.pid };
	struct memory_reader memory = process_memory_reader(&process);
	int64_t began_at_ns = clock_monotonic_ns();

	if (job->dotnet)
		job->answer =
			dotnet_process_read(job->dotnet, &memory, job->wanted, job->wanted_count);
	else if (job->beam)
		job->beam_answer =
			beam_process_read(job->beam, &memory, job->wanted, job->wanted_count);
	else if (!job->count)
		job->state = read_hotspot(reading, job, &memory);
	for (size_t i = 0; i < job->count; i++) {
		read_item(reading, job, &memory, &job->items[i]);
		job->job.is_urgent |= job->tells_lost && job->items[i].result == SCRIPT_CODE_GONE;
	}
	job->took_ns = clock_monotonic_ns() - began_at_ns;
	metric_add(&runtime_read_seconds, job->took_ns);
}

static void fini_reading(void *own)
{
	struct reading *reading = own;

	v8_lines_fini(&reading->lines);
}

const struct job_thread_work script_reader_work = {
	.name = "firn-runtime",
	.lock_rank = LOCK_AGENT + 8,
	.waiting_max = SCRIPT_JOBS_MAX,
	.stuck = &runtime_stuck,
	.do_job = read_job,
	.own_bytes = sizeof(struct reading),
	.fini_own = fini_reading,
	.free_job = free_job,
};
