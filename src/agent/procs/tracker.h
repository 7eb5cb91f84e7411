/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker - every process image that has samples in the current window, and those still alive; the
 * lists of their mappings, and the binaries behind these.
 *
 * Mappings are taken from records of kind RECORD_SPACE, which name all executable memory. When a
 * sample has an address outside of it the list is out of date, or there is none: then
 * /proc/PID/maps is read, at growing intervals.
 *
 * Indexes, of images and of lists, are dense and stay valid until tracker_sweep, which is called
 * when a window has been turned into tables. Owned by the drain thread. Bounds:
 * TRACKER_PROCESSES_MAX and TRACKER_BYTES_MAX; over these the longest unseen are forgotten at the
 * sweep (and read again from /proc when they come back). Reading /proc and files has a budget
 * (proc_budget), and so has waiting for files (files/lender.h): what is not there in time is taken
 * when it comes.
 */
#ifndef FIRN_AGENT_PROCS_TRACKER_H
#define FIRN_AGENT_PROCS_TRACKER_H

#include "agent/files/lender.h"
#include "agent/procs/cgroup_names.h"
#include "agent/procs/proc_budget.h"
#include "agent/procs/process.h"
#include "agent/procs/space_parts.h"

#define TRACKER_PROCESSES_MAX 16384
#define TRACKER_BYTES_MAX ((size_t)32 << 20)
#define TRACKER_FULL UINT32_MAX

struct tracker_options {
	bool announce_binaries;
	struct binaries_tables tables;
	struct lender *lender; /* borrowed; NULL = files are not opened */

	/*
	 * Gets the mappings of an image that were read from /proc, for kernels that do not list
	 * them themselves: sampler_put_space. May be NULL. All is valid during the call.
	 */
	void (*space_read)(void *context, const struct record_head *head,
			   const struct space_mapping *mappings, size_t count);
	void *space_read_context;
};

struct tracker {
	struct tracker_options options;
	struct process **items;
	size_t count, capacity;
	struct idmap map;	 /* by identity */
	struct idmap family_map; /* known images, by pid and by parent's pid */
	struct binaries binaries;
	struct spaces spaces;
	struct space_parts parts;
	struct cgroup_names cgroups;
	struct proc_budget budget;
	int64_t wait_left_ns; /* for files, until the next sweep */
	uint32_t readings;    /* of lists, to tell their keys apart */
};

void tracker_init(struct tracker *tracker, const struct tracker_options *options);
void tracker_fini(struct tracker *tracker, int64_t now_ns);

/* The image of the sample, made when new; TRACKER_FULL when there is no room before a sweep. */
uint32_t tracker_get(struct tracker *tracker, const struct record_head *head, int64_t now_ns);

/* A process that is known; NULL = none. */
struct process *tracker_find(struct tracker *tracker, const struct process_identity *identity);

static inline struct process *tracker_process(const struct tracker *tracker, uint32_t index)
{
	return tracker->items[index];
}

/*
 * Takes a record of kind RECORD_SPACE: when it completes a list, that is the image's from now on;
 * when it asks for one (SPACE_READ_PROC), /proc is read.
 * False when there is no room before a sweep; nothing was done then. Unsound records are counted.
 */
bool tracker_take_space(struct tracker *tracker, const struct space_record *record, size_t len,
			int64_t now_ns);

/* The index of the list that held when a sample was taken, or SPACE_NONE. */
uint32_t tracker_space_at(const struct tracker *tracker, uint32_t index, int64_t at_ns);

/*
 * Looks at a stack seen for the first time: its process, mappings and binaries, while they are
 * there. Returns the index of the list to look its addresses up in, or SPACE_NONE.
 */
uint32_t tracker_locate(struct tracker *tracker, uint32_t index, const struct sample *sample,
			const uint64_t *addresses, size_t count, int64_t now_ns);

/* For a stack seen before: tries again what could not be read of its process, at intervals. */
void tracker_look_again(struct tracker *tracker, uint32_t index, const struct sample *sample,
			int64_t now_ns);

/* Takes the files that have been opened since. */
void tracker_take_files(struct tracker *tracker, int64_t now_ns);

/* The same, but waits for those that will soon be there. */
void tracker_settle(struct tracker *tracker, int64_t timeout_ns, int64_t now_ns);

/*
 * The list of a stack that was counted with an index; the process's present one when it had none.
 * NULL when nothing is known.
 */
const struct space *tracker_space(const struct tracker *tracker, uint32_t index, uint32_t space);

/* Whether tables are wanted of files that only processes without a sample map. */
static inline void tracker_set_only_sampled(struct tracker *tracker, bool only_sampled)
{
	tracker->binaries.tables.only_sampled = only_sampled;
}

/* Forgets images that have ended, and some more when over the bounds. Indexes change. */
void tracker_sweep(struct tracker *tracker, int64_t now_ns);

/* Aborts when images, lists and binaries contradict one another; a sweep ends with it. */
void tracker_check(const struct tracker *tracker);

#endif
