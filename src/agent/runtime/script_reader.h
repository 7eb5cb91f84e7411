/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_reader - the work of the thread `firn-runtime`: it reads code objects from processes, job
 * by job (files/job_thread.h says what happens if a process makes it wait).
 *
 * The drain thread makes jobs and takes them back when they are done.
 */
#ifndef FIRN_AGENT_RUNTIME_SCRIPT_READER_H
#define FIRN_AGENT_RUNTIME_SCRIPT_READER_H

#include "agent/files/job_thread.h"
#include "agent/procs/process.h"
#include "agent/runtime/beam/beam_process.h"
#include "agent/runtime/dotnet/dotnet_process.h"
#include "agent/runtime/hotspot/hotspot_process.h"
#include "agent/runtime/runtime_file.h"
#include "agent/runtime/script_code.h"

#define SCRIPT_JOB_ITEMS 64
#define SCRIPT_JOBS_MAX 1024 /* that wait */

struct script_job_item {
	uint64_t key; /* what it is known by: its address, mostly */
	uint64_t address;
	bool is_place; /* in code of V8; otherwise of an object */
	bool is_again; /* of a copy that was gone: another value may be at its address */
	uint32_t proof;
	uint32_t result; /* enum script_code_result */
	struct script_code code;
};

struct script_job {
	struct job job; /* `pid` is that of the identity */
	struct process_identity identity;
	uint32_t proof_words;
	uint64_t bias;
	struct runtime_layout layout;
	/* Of a HotSpot, the job's own; a job without items is there to fill it. */
	struct hotspot_process *hotspot;
	enum hotspot_state state;
	/* Of a .NET, the job's for as long as it lasts; such a job has no items. */
	struct dotnet_process *dotnet;
	enum dotnet_answer answer;
	/* The same of an Erlang. */
	struct beam_process *beam;
	enum beam_answer beam_answer;
	uint64_t *wanted; /* addresses of code */
	size_t wanted_count;
	int64_t took_ns;
	bool tells_lost; /* urgent when an item was gone: another copy may be there still */
	size_t count;
	struct script_job_item items[SCRIPT_JOB_ITEMS];
};

extern const struct job_thread_work script_reader_work; /* its jobs are script_jobs */

struct script_job *script_job_new(const struct process_identity *identity);
void script_job_free(struct script_job *job); /* and what was read; accepts NULL */

#endif
