/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/tracker.h"

#include "agent/procs/procs_metrics.h"
#include "base/hash.h"
#include "base/mem.h"

/* Images without samples for so long are forgotten even when alive. */
#define UNSEEN_KEEP_NS (300 * CLOCK_NS_PER_S)

/* Samples of a process that has ended may still wait in the ring buffer for so long. */
#define ENDED_KEEP_NS (5 * CLOCK_NS_PER_S)

void tracker_init(struct tracker *tracker, bool announce_binaries)
{
	*tracker = (struct tracker){ 0 };
	binaries_init(&tracker->binaries, announce_binaries);
}

void tracker_fini(struct tracker *tracker, int64_t now_ns)
{
	for (size_t i = 0; i < tracker->count; i++)
		process_free(tracker->items[i], now_ns);
	free(tracker->items);
	idmap_free(&tracker->map);
	idmap_free(&tracker->family_map);
	binaries_fini(&tracker->binaries);
	*tracker = (struct tracker){ 0 };
}

static uint64_t identity_hash(const struct process_identity *identity)
{
	return hash_bytes(identity, sizeof(*identity));
}

static bool identity_equal(const void *context, uint32_t id, const void *key)
{
	const struct tracker *tracker = context;

	return !memcmp(&tracker->items[id]->identity, key, sizeof(struct process_identity));
}

static uint64_t pid_hash(uint32_t pid)
{
	return hash_bytes(&pid, sizeof(pid));
}

/* Whether an image is that of `key`, a child: its parent's own, or of another child of that. */
static bool is_image_of_child(const void *context, uint32_t id, const void *key)
{
	const struct tracker *tracker = context;
	const struct process *process = tracker->items[id], *child = key;
	uint32_t owner = process->image_of_parent ? process->parent_pid : process->identity.pid;

	return (owner == child->parent_pid || process->identity.pid == child->parent_pid) &&
	       process->identity.exec_id == child->identity.exec_id &&
	       !strcmp(process->name, child->name);
}

static const struct process *find_family(const struct tracker *tracker, const struct process *child)
{
	uint32_t index = IDMAP_NONE;

	if (child->image_of_parent)
		index = idmap_find(&tracker->family_map, pid_hash(child->parent_pid),
				   is_image_of_child, tracker, child);
	return index == IDMAP_NONE ? NULL : tracker->items[index];
}

/* Makes a known image findable by its children, and by its parent's other children. */
static void index_family(struct tracker *tracker, uint32_t index)
{
	const struct process *process = tracker->items[index];

	idmap_add(&tracker->family_map, pid_hash(process->identity.pid), index);
	if (process->image_of_parent && !find_family(tracker, process))
		idmap_add(&tracker->family_map, pid_hash(process->parent_pid), index);
}

uint32_t tracker_get(struct tracker *tracker, const struct record_head *head, int64_t now_ns)
{
	struct process_identity identity = { head->process_start_ns, head->tgid, head->exec_id };
	uint64_t hash = identity_hash(&identity);
	uint32_t index = idmap_find(&tracker->map, hash, identity_equal, tracker, &identity);

	if (index != IDMAP_NONE) {
		process_touch(tracker->items[index], head, now_ns);
		return index;
	}
	if (tracker->count >= TRACKER_PROCESSES_MAX)
		return TRACKER_FULL;
	index = (uint32_t)tracker->count;
	mem_grow(tracker->items, tracker->count, tracker->capacity);
	tracker->items[tracker->count++] = process_new(head, now_ns);
	idmap_add(&tracker->map, hash, index);
	metric_set(&procs_processes, (int64_t)tracker->count);
	return index;
}

void tracker_locate(struct tracker *tracker, uint32_t index, uint32_t thread,
		    const uint64_t *addresses, size_t count, int64_t now_ns)
{
	struct process *process = tracker->items[index];

	if (!process->known) {
		process_get_known(process, thread, find_family(tracker, process), now_ns);
		if (process->known)
			index_family(tracker, index);
	}
	process_locate(process, &tracker->binaries, thread, addresses, count, now_ns);
}

static int by_last_seen(const void *a, const void *b)
{
	const struct process *const *first = a, *const *second = b;

	return ((*first)->seen_at_ns < (*second)->seen_at_ns) -
	       ((*first)->seen_at_ns > (*second)->seen_at_ns); /* latest first */
}

/* Whether an image without recent samples may go; asks the kernel only about those. */
static bool is_over(const struct process *process, int64_t now_ns)
{
	int64_t unseen_ns = now_ns - process->seen_at_ns;

	return unseen_ns >= UNSEEN_KEEP_NS ||
	       (unseen_ns >= ENDED_KEEP_NS && process_has_ended(process));
}

static size_t drop(struct tracker *tracker, int64_t now_ns)
{
	size_t kept = 0, bytes = 0;

	for (size_t i = 0; i < tracker->count; i++) {
		struct process *process = tracker->items[i];
		bool over = is_over(process, now_ns);
		bool room = bytes < TRACKER_BYTES_MAX && kept < TRACKER_PROCESSES_MAX / 2;

		if (!over && room) {
			bytes += process_bytes(process);
			tracker->items[kept++] = process;
			continue;
		}
		if (!over)
			metric_add(&procs_processes_evicted, 1);
		process_free(process, now_ns);
	}
	return kept;
}

void tracker_sweep(struct tracker *tracker, int64_t now_ns)
{
	if (tracker->count)
		qsort(tracker->items, tracker->count, sizeof(*tracker->items), by_last_seen);
	tracker->count = drop(tracker, now_ns);
	idmap_clear(&tracker->map);
	idmap_clear(&tracker->family_map);
	for (size_t i = 0; i < tracker->count; i++) {
		struct process *process = tracker->items[i];

		idmap_add(&tracker->map, identity_hash(&process->identity), (uint32_t)i);
		if (process->known)
			index_family(tracker, (uint32_t)i);
	}
	metric_set(&procs_processes, (int64_t)tracker->count);
	binaries_sweep(&tracker->binaries, now_ns);
}
