/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - one process image: what /proc says about a process between two calls of exec.
 *
 * The kernel names an image by (pid, start, number of execs), so a reused pid or an exec is a new
 * image, never a mix of two. What /proc says is taken only if name and start still match the
 * sample; if the process has gone, and had not called exec since fork, its parent is asked instead,
 * whose binaries lie at the same addresses.
 *
 * Owned by the drain thread.
 */
#ifndef FIRN_AGENT_PROCS_PROCESS_H
#define FIRN_AGENT_PROCS_PROCESS_H

#include "agent/bpf/shared.h"
#include "agent/procs/mappings.h"

struct process_identity {
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	uint32_t pid, exec_id;
};

struct process {
	struct process_identity identity;
	uint32_t parent_pid;
	bool image_of_parent;		  /* see SAMPLE_IMAGE_OF_PARENT */
	bool known;			  /* /proc was read */
	char name[SAMPLE_NAME_BYTES + 1]; /* comm */
	char *executable;		  /* path, NULL = not known or a kernel thread */
	char *cgroups;			  /* /proc/PID/cgroup, NULL = not known */
	struct mappings mappings;
	int64_t seen_at_ns; /* monotonic, of its last sample */
	int64_t read_again_at_ns;
	int64_t read_interval_ns;
};

struct process *process_new(const struct record_head *head, int64_t now_ns);
void process_free(struct process *process, int64_t now_ns); /* accepts NULL */

/* Notes the sample's name and time: a program may rename itself. */
void process_touch(struct process *process, const struct record_head *head, int64_t now_ns);

/*
 * Reads /proc for the first time, as long as that shows this image. When the process has ended,
 * what is known of the same image is taken: from `relative`, the parent or another of its children
 * (NULL = none is known), else from the parent's /proc. `thread` is the one that was sampled.
 */
void process_get_known(struct process *process, uint32_t thread, const struct process *relative,
		       int64_t now_ns);

/*
 * Makes sure, as far as possible, that the addresses have a mapping and these their binaries:
 * reads the mappings of a known process again for unknown addresses, at growing intervals.
 */
void process_locate(struct process *process, struct binaries *binaries, uint32_t thread,
		    const uint64_t *addresses, size_t count, int64_t now_ns);

bool process_has_ended(const struct process *process);
size_t process_bytes(const struct process *process);

#endif
