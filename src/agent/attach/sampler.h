/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler - the BPF program's life: probe, open, load, attach, read, stop.
 *
 * Features are probed on the running kernel, never deduced from its version. One thread at a time.
 */
#ifndef FIRN_AGENT_ATTACH_SAMPLER_H
#define FIRN_AGENT_ATTACH_SAMPLER_H

#include <sys/types.h>

#include "agent/bpf/shared.h"
#include "base/err.h"
#include "base/slice.h"
#include "base/strbuf.h"

struct sampler;

struct sampler_options {
	unsigned frequency_hz;
	const pid_t *pids; /* these and what they start; NULL = all processes */
	size_t pids_count;

	/* Gets each record (bpf/shared.h); valid during the call. */
	void (*take)(void *context, const struct record_head *record, size_t len);
	void *take_context;
};

/*
 * Loads the programs and opens the clocks. Then changes of mappings are followed from
 * sampler_follow on, which also asks for the mappings of all that runs (or of the chosen
 * processes): sampler_drain hands these records over. Samples come after sampler_attach.
 */
int sampler_start(const struct sampler_options *options, struct sampler **ret, struct err *err);
void sampler_follow(struct sampler *sampler);
int sampler_attach(struct sampler *sampler, struct err *err);

/* Readable when many records wait (most of the time records wait without a notice). */
int sampler_fd(const struct sampler *sampler);

/* Hands over every record that waits. */
void sampler_drain(struct sampler *sampler);

/*
 * Starts sampling CPUs that came online since the last call. Call it periodically.
 */
void sampler_follow_cpus(struct sampler *sampler);

/*
 * Changes the frequency. Hands over earlier samples first, so that
 * samples of two frequencies never count together.
 */
void sampler_set_frequency(struct sampler *sampler, unsigned frequency_hz);

/* Sums of all CPUs since the start. */
void sampler_counters(const struct sampler *sampler, struct sample_counters *ret);

/*
 * Appends a struct program_code for the code of each loaded BPF program and of its functions. False
 * if this kernel does not tell. One thread at a time.
 */
bool sampler_list_programs(struct sampler *sampler, struct strbuf *ret);

/* What unwind tables are put into (bpf/table.h); -1 where this kernel cannot use them. */
struct sampler_maps {
	int chunks_fd, first_chunk_fd, tables_fd;
	uint32_t *space_versions; /* all to be counted up when a table is taken away */
};

struct sampler_maps sampler_maps(const struct sampler *sampler);

/*
 * Gives the program the executable mappings of a process image, sorted by address, when it asked
 * for them (SPACE_READ_PROC). `head` is that of the record that asked. Mappings beyond the
 * program's bound are left out.
 */
void sampler_put_space(struct sampler *sampler, const struct record_head *head,
		       const struct space_mapping *mappings, size_t count);

/*
 * Tells the program how the frames of a process's interpreter are read (bpf/script.h), from its
 * next sample on; a process that has one already gets the new one. False when there is no room, or
 * this kernel cannot. Dropped when the process has ended.
 */
bool sampler_put_script(struct sampler *sampler, uint32_t tgid,
			const struct script_process *script);
bool sampler_put_jvm(struct sampler *sampler, uint32_t tgid, const struct jvm_entry *entry);
bool sampler_put_code(struct sampler *sampler, uint32_t tgid, const struct code_process *process);
void sampler_drop_script(struct sampler *sampler, uint32_t tgid); /* all three, but for jitdumps' */

/* The process has lines of code under this number no more, unless another image has come. */
void sampler_drop_code(struct sampler *sampler, uint32_t tgid, uint32_t number);

/* The next samples of code with that proof (script_long_proof) wake the agent, new or not. */
void sampler_ask_for_copies(struct sampler *sampler, uint64_t proof);

/*
 * Tells the program of a library of HotSpot: processes that map it from now on need not be told of.
 */
void sampler_put_jvm_file(struct sampler *sampler, const struct file_key *key,
			  const struct jvm_file *file);

/* What the program has found out of a process that runs HotSpot; false = it knows of none. */
bool sampler_find_jvm(struct sampler *sampler, uint32_t tgid, struct jvm_entry *ret);

/* From time to time: has the program forget those that have ended. */
void sampler_sweep_jvms(struct sampler *sampler);

/*
 * Gives the program the unwind rows of a line of code; NULL removes them. If there is no room, the
 * walk uses the frame pointer, and marks the stack.
 */
void sampler_put_code_line(struct sampler *sampler, const struct code_line_key *key,
			   const struct code_line *line);

/* Stops sampling and hands over the last samples. Call it once, after sampler_attach. */
void sampler_stop(struct sampler *sampler);

void sampler_free(struct sampler *sampler); /* accepts NULL */

#endif
