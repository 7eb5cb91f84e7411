/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_reader - the thread that reads code objects out of processes (firn-runtime).
 *
 * A process can make whoever reads its memory wait for as long as it likes. So a thread that has
 * been at one job for 10 s is left to itself with its job and replaced, four times at most; after
 * that nothing is read any more. Nobody waits for the thread but script_reader_settle, and that for
 * a bounded time.
 *
 * Owned by the drain thread, which makes jobs and takes them back when they are done.
 */
#ifndef FIRN_AGENT_RUNTIME_SCRIPT_READER_H
#define FIRN_AGENT_RUNTIME_SCRIPT_READER_H

#include "agent/procs/process.h"
#include "agent/runtime/dotnet/dotnet_process.h"
#include "agent/runtime/hotspot/hotspot_process.h"
#include "agent/runtime/runtime_file.h"
#include "agent/runtime/script_code.h"

#define SCRIPT_JOB_ITEMS 64
#define SCRIPT_JOBS_MAX 1024 /* that wait */

struct script_job_item {
	uint64_t address;
	uint32_t proof;
	uint32_t result; /* enum script_code_result */
	struct script_code code;
};

struct script_job {
	struct script_job *next;
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
	uint64_t *wanted; /* addresses of code */
	size_t wanted_count;
	int64_t took_ns;
	size_t count;
	struct script_job_item items[SCRIPT_JOB_ITEMS];
};

struct script_reader;

struct script_reader *script_reader_new(void);
void script_reader_free(struct script_reader *reader); /* accepts NULL; waits 2 s at most */

void script_job_free(struct script_job *job); /* and what was read; accepts NULL */

/* Takes the job. False when too many wait: it is freed. */
bool script_reader_put(struct script_reader *reader, struct script_job *job, int64_t now_ns);

/* Whether a job would not be taken now. */
bool script_reader_is_full(struct script_reader *reader);

/* A job that is done, the caller's; NULL = there is none. */
struct script_job *script_reader_take(struct script_reader *reader);

/* Waits until all jobs are done; false when they are not in time. */
bool script_reader_settle(struct script_reader *reader, int64_t timeout_ns);

/* Now and then: replaces a thread that is stuck. */
void script_reader_look_after(struct script_reader *reader, int64_t now_ns);

#endif
