/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - one process image: what is known of a process between two calls of exec.
 *
 * The kernel names an image by (pid, start, number of execs), so a reused pid or an exec is a new
 * image, never a mix of two. What /proc says is taken only if name and start still match the
 * sample; if the process has gone, and had not called exec since fork, its parent is asked instead,
 * whose binaries lie at the same addresses.
 *
 * Its mappings come from the kernel side, in order with the samples, or else from /proc. The list
 * before the present one is kept for samples that were taken before the change and come after it.
 *
 * Owned by the drain thread.
 */
#ifndef FIRN_AGENT_PROCS_PROCESS_H
#define FIRN_AGENT_PROCS_PROCESS_H

#include "agent/bpf/shared.h"
#include "agent/identify/meta_labels.h"
#include "agent/procs/maps_file.h"
#include "agent/procs/opener.h"
#include "agent/procs/space.h"

struct process_identity {
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	uint32_t pid, exec_id;
};

#define PROCESS_PAST_MAX 8 /* lists changed within the time that a sample may be late */

struct process_space {
	struct space *space; /* a reference; NULL = not known */
	int64_t since_ns;    /* monotonic: when it began to hold */
};

/* When it is next asked what it says of itself (process_attributes.h). */
struct process_look {
	int64_t due_ns; /* monotonic */
	uint64_t context_at, variables_version;
	uint32_t pause; /* index of the next one */
	bool is_asked;
};

struct process {
	struct process_identity identity;
	uint32_t parent_pid;
	uint32_t thread;		  /* that was last seen */
	bool image_of_parent;		  /* see SAMPLE_IMAGE_OF_PARENT */
	bool known;			  /* /proc was read, or is beyond reach */
	bool is_noted;			  /* its container was asked for */
	bool is_sampled;		  /* and its binaries are marked so */
	char name[SAMPLE_NAME_BYTES + 1]; /* comm */
	char *executable;		  /* path, NULL = not known or a kernel thread */
	char *cgroups;			  /* /proc/PID/cgroup, NULL = not known */
	struct meta_labels attributes;	  /* what it says of itself */
	struct process_look look;
	struct space *space;	/* that holds now: a reference; NULL = not known */
	int64_t space_since_ns; /* as above */
	struct process_space past[PROCESS_PAST_MAX]; /* the last one first, then NULL */
	bool space_is_whole;			     /* it came from the kernel side, and not cut */
	int64_t seen_at_ns;			     /* monotonic: its last record was read */
	uint64_t newest_ns;			     /* monotonic, of its newest record */
	int64_t look_again_at_ns;		     /* something could not be read; 0 = no */
	int64_t read_again_at_ns;
	int64_t read_interval_ns;
};

struct process *process_new(const struct record_head *head, int64_t now_ns);
void process_free(struct process *process); /* accepts NULL */

/* Notes the record's name and thread, if it is the newest: a program may rename itself. */
void process_touch(struct process *process, const struct record_head *head, int64_t now_ns);

/*
 * Takes the reference. A list from before `space_since_ns` holds for late samples only, which
 * process_forget_past says that there are no more of.
 */
void process_set_space(struct process *process, struct space *space, int64_t at_ns, bool whole);
void process_forget_past(struct process *process);

/*
 * The list that held at a time, or the first one known after it; NULL when none is known. Only the
 * kernel side knows times: of lists from /proc it is always the last.
 */
struct space *process_space_at(const struct process *process, int64_t at_ns);

/*
 * Reads executable and cgroups from /proc, as long as that shows this image; `cgroups` are given
 * when they are known already (else NULL). When the process has ended, what is known of the same
 * image is taken: from `relative`, the parent or another of its children (NULL = none is known),
 * else from the parent's /proc.
 */
void process_describe(struct process *process, const char *cgroups, const struct process *relative);

/* /proc/PID while that shows this image, for the caller to close; -1 when it does not any more. */
int process_open_image(const struct process *process);

/* True if it is time to read the mappings again; the next time is later. */
bool process_may_read_maps(struct process *process, int64_t now_ns);

/* Reads the mappings from /proc, as above. False when there are none to be had. */
bool process_read_maps(const struct process *process, struct maps_file *ret);

/* Where the file of a mapping may be found. */
struct opener_place process_place(const struct process *process, uint64_t start, uint64_t end);

/* The file that it runs, as far as mappings tell; NULL = not known. */
const struct binary *process_binary(const struct process *process);

/* The path of its executable: told by /proc, else that of its first mapping. NULL = not known. */
const char *process_executable(const struct process *process);

bool process_has_ended(const struct process *process);
size_t process_bytes(const struct process *process); /* without the lists of mappings */

#endif
