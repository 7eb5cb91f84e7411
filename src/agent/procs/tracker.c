/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/tracker.h"

#include <assert.h>
#include <fcntl.h>
#include <time.h>

#include "agent/procs/procs_metrics.h"
#include "base/hash.h"
#include "base/mem.h"

/* Images without samples for so long are forgotten even when alive. */
#define UNSEEN_KEEP_NS (300 * CLOCK_NS_PER_S)

/* Samples of a process that has ended may still wait in the ring buffer for so long. */
#define ENDED_KEEP_NS (5 * CLOCK_NS_PER_S)

/* What could not be read is tried again so often, as long as there are samples. */
#define LOOK_AGAIN_NS (50 * CLOCK_NS_PER_MS)

/* Files are there in less than a thousandth of this. A file system that hangs must not cost more.
 */
#define WAIT_PER_WINDOW_NS (500 * CLOCK_NS_PER_MS)
#define WAIT_AT_START_NS (3 * CLOCK_NS_PER_S) /* all that runs is to be got to know */

void tracker_init(struct tracker *tracker, const struct tracker_options *options)
{
	*tracker = (struct tracker){ .options = *options, .wait_left_ns = WAIT_AT_START_NS };
	binaries_init(&tracker->binaries, options->announce_binaries, &options->tables);
	spaces_init(&tracker->spaces, &tracker->binaries);
}

void tracker_fini(struct tracker *tracker, int64_t now_ns)
{
	for (size_t i = 0; i < tracker->count; i++)
		process_free(tracker->items[i]);
	free(tracker->items);
	idmap_free(&tracker->map);
	idmap_free(&tracker->family_map);
	space_parts_fini(&tracker->parts);
	cgroup_names_fini(&tracker->cgroups);
	spaces_fini(&tracker->spaces, now_ns);
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

/* True if an image is that of `key`, a child: its parent's own, or of another child of that. */
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

struct process *tracker_find(struct tracker *tracker, const struct process_identity *identity)
{
	uint32_t index = idmap_find(&tracker->map, identity_hash(identity), identity_equal, tracker,
				    identity);

	return index == IDMAP_NONE ? NULL : tracker->items[index];
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

/* True if the budget has room for reading /proc; what is not read is counted. */
static bool may_read(struct tracker *tracker, int64_t now_ns)
{
	if (proc_budget_allows(&tracker->budget, now_ns))
		return true;
	metric_add(&procs_reads_put_off, 1);
	return false;
}

/* Has the file opened, and takes it when it comes. */
static void ask_for_file(struct tracker *tracker, const struct process *process,
			 const struct mapping *mapping, int64_t now_ns)
{
	struct binary *binary = mapping->binary;
	const struct lender_request request = {
		.wish = LENDER_MAPPED,
		.place = process_place(process, mapping->start, mapping->end),
		.key = binary->key,
		.mark = process->identity.pid,
	};

	binary->asked = tracker->options.lender && lender_ask(tracker->options.lender, &request);
	if (!binary->asked)
		binaries_fill(&tracker->binaries, binary, process->identity.pid, -1, NULL, "",
			      now_ns);
}

/* Opens the mapping's file when there is a need to. `again`: not before its time has come. */
static void look_at_file(struct tracker *tracker, struct process *process,
			 const struct mapping *mapping, bool again, int64_t now_ns)
{
	struct binary *binary = mapping->binary;

	if (binary)
		binary->is_sampled |= process->is_sampled;
	if (!binary || !binaries_needs_file(&tracker->binaries, binary))
		return;
	if (!binary->asked && (!again || now_ns >= binary->try_again_at_ns) &&
	    may_read(tracker, now_ns)) {
		if (binary->fd >= 0)
			binaries_fill(&tracker->binaries, binary, process->identity.pid,
				      fcntl(binary->fd, F_DUPFD_CLOEXEC, 0), NULL, "", now_ns);
		else
			ask_for_file(tracker, process, mapping, now_ns);
	}
	if (!binary->opened)
		process->look_again_at_ns = now_ns + LOOK_AGAIN_NS;
}

/* Takes what the answer has. */
static void take_file(struct tracker *tracker, struct lender_answer *answer, int64_t now_ns)
{
	struct binary *binary = binaries_find(&tracker->binaries, &answer->request.key);

	proc_budget_spend(&tracker->budget, answer->cpu_ns);
	if (binary && answer->request.wish == LENDER_MAPPED) {
		int64_t began_ns = cpu_ns();

		binary->asked = false;
		binaries_fill(&tracker->binaries, binary, (uint32_t)answer->request.mark,
			      answer->fd, answer->elf, answer->path ? answer->path : "", now_ns);
		answer->fd = -1;
		answer->elf = NULL;
		proc_budget_spend(&tracker->budget, cpu_ns() - began_ns);
	}
	lender_answer_free(answer);
}

void tracker_take_files(struct tracker *tracker, int64_t now_ns)
{
	struct lender_answer answer;

	if (!tracker->options.lender)
		return;
	lender_look_after(tracker->options.lender);
	while (lender_take(tracker->options.lender, &answer))
		take_file(tracker, &answer, now_ns);
}

void tracker_settle(struct tracker *tracker, int64_t timeout_ns, int64_t now_ns)
{
	if (tracker->options.lender)
		lender_wait(tracker->options.lender, timeout_ns);
	tracker_take_files(tracker, now_ns);
}

/* Waits for the lender, within the window's budget. */
static void wait_for_lender(struct tracker *tracker)
{
	int64_t began_ns = clock_monotonic_ns();

	if (tracker->wait_left_ns <= 0)
		return;
	lender_wait(tracker->options.lender, tracker->wait_left_ns);
	tracker->wait_left_ns -= clock_monotonic_ns() - began_ns;
}

static void look_at_files(struct tracker *tracker, struct process *process, bool again,
			  int64_t now_ns)
{
	const struct space *space = process->space;

	for (uint32_t i = 0; space && i < space->count; i++)
		if (space->mappings[i].kind == MAPPING_FILE)
			look_at_file(tracker, process, &space->mappings[i], again, now_ns);
}

static void add_range(struct tracker *tracker, const struct maps_range *range,
		      const struct file_key *key, int64_t now_ns)
{
	if (spaces_add(&tracker->spaces, range->start, range->end, range->offset, range->kind, key,
		       now_ns) &&
	    spaces_added(&tracker->spaces))
		binary_name(spaces_added(&tracker->spaces), range->path);
}

static uint64_t mark_of(uint32_t reading, size_t range)
{
	return (uint64_t)reading << 32 | range;
}

/* When the files of a list were changed; without it where that cannot be had in time. */
static struct file_key *find_keys(struct tracker *tracker, const struct process *process,
				  const struct maps_file *maps, int64_t now_ns)
{
	struct file_key *keys = mem_new_array(struct file_key, maps->count + 1);
	uint64_t mark = mark_of(++tracker->readings, 0);
	struct lender_answer answer;

	for (size_t i = 0; i < maps->count; i++) {
		const struct maps_range *range = &maps->ranges[i];
		struct lender_request request = {
			.wish = LENDER_KEY,
			.place = process_place(process, range->start, range->end),
			.key = { .inode = range->inode, .device = range->device },
			.path = range->path,
			.mark = mark + i,
		};

		keys[i] = range->kind == MAPPING_FILE ? request.key : FILE_KEY_VDSO;
		if (range->kind == MAPPING_FILE && tracker->options.lender)
			lender_ask(tracker->options.lender, &request);
	}
	if (!tracker->options.lender)
		return keys;
	wait_for_lender(tracker);
	while (lender_take(tracker->options.lender, &answer)) {
		if (answer.request.wish == LENDER_KEY && answer.is_done &&
		    answer.request.mark >= mark)
			keys[answer.request.mark - mark] = answer.key;
		take_file(tracker, &answer, now_ns);
	}
	return keys;
}

/* Tells the kernel side what it could not see by itself. */
static void hand_out(const struct tracker *tracker, const struct process *process)
{
	const struct space *space = process->space;
	const struct record_head head = {
		.process_start_ns = process->identity.start_ns,
		.tgid = process->identity.pid,
		.exec_id = process->identity.exec_id,
	};
	struct space_mapping *mappings;
	size_t count = 0;

	if (!tracker->options.space_read)
		return;
	mappings = mem_new_array(struct space_mapping, space->count + 1);
	for (uint32_t i = 0; i < space->count; i++) {
		const struct mapping *mapping = &space->mappings[i];

		mappings[count] = (struct space_mapping){
			.start = mapping->start,
			.end = mapping->end,
			.offset = mapping->offset,
		};
		if (mapping->kind == MAPPING_VDSO)
			mappings[count].file = FILE_KEY_VDSO;
		else if (mapping->binary)
			mappings[count].file = mapping->binary->key;
		count++;
	}
	tracker->options.space_read(tracker->options.space_read_context, &head, mappings, count);
	free(mappings);
}

static void read_maps(struct tracker *tracker, struct process *process, int64_t now_ns)
{
	struct maps_file maps = { 0 };
	struct file_key *keys;
	int64_t began_ns;

	if (tracker->spaces.bytes >= TRACKER_BYTES_MAX || !may_read(tracker, now_ns))
		return;
	began_ns = cpu_ns();
	if (process_read_maps(process, &maps)) {
		keys = find_keys(tracker, process, &maps, now_ns);
		spaces_begin(&tracker->spaces);
		for (size_t i = 0; i < maps.count; i++)
			add_range(tracker, &maps.ranges[i], &keys[i], now_ns);
		free(keys);
		process_set_space(process, spaces_end(&tracker->spaces, now_ns), now_ns, false);
		hand_out(tracker, process);
	}
	maps_file_free(&maps);
	proc_budget_spend(&tracker->budget, cpu_ns() - began_ns);
	look_at_files(tracker, process, false, now_ns);
}

static enum mapping_kind kind_of(const struct file_key *key)
{
	static const struct file_key vdso = FILE_KEY_VDSO, anonymous = FILE_KEY_ANONYMOUS;

	if (!memcmp(key, &anonymous, sizeof(*key)))
		return MAPPING_ANONYMOUS;
	return memcmp(key, &vdso, sizeof(*key)) ? MAPPING_FILE : MAPPING_VDSO;
}

static void take_list(struct tracker *tracker, struct process *process, int64_t at_ns,
		      const struct space_list *list, int64_t now_ns)
{
	struct spaces *spaces = &tracker->spaces;
	bool whole = !(list->flags & SPACE_CUT);

	spaces_begin(spaces);
	for (size_t i = 0; i < list->count; i++) {
		const struct space_mapping *mapping = &list->mappings[i];

		spaces_add(spaces, mapping->start, mapping->end, mapping->offset,
			   kind_of(&mapping->file), &mapping->file, now_ns);
	}
	if (!whole && process->space)
		spaces_keep(spaces, process->space);
	process_set_space(process, spaces_end(spaces, now_ns), at_ns, whole);
	look_at_files(tracker, process, false, now_ns);
}

bool tracker_take_space(struct tracker *tracker, const struct space_record *record, size_t len,
			int64_t now_ns)
{
	uint64_t lost = tracker->parts.lost;
	enum space_parts_result result;
	struct space_list list;
	uint32_t index;

	if (len < SPACE_RECORD_HEADER_BYTES) {
		metric_add(&procs_space_records_bad, 1);
		return true;
	}
	if (tracker->spaces.bytes >= TRACKER_BYTES_MAX)
		return false;
	index = tracker_get(tracker, &record->head, now_ns);
	if (index == TRACKER_FULL)
		return false;
	result = space_parts_take(&tracker->parts, record, len, &list);
	metric_add(&procs_space_lists_lost, (int64_t)(tracker->parts.lost - lost));
	if (result == SPACE_PARTS_BAD)
		metric_add(&procs_space_records_bad, 1);
	if (result == SPACE_PARTS_WHOLE && list.flags & SPACE_READ_PROC)
		read_maps(tracker, tracker->items[index], now_ns);
	else if (result == SPACE_PARTS_WHOLE)
		take_list(tracker, tracker->items[index], (int64_t)record->head.at_ns, &list,
			  now_ns);
	return true;
}

static void describe(struct tracker *tracker, uint32_t index, uint64_t cgroup_id, int64_t now_ns)
{
	struct process *process = tracker->items[index];
	int64_t began_ns;

	if (process->known)
		return;
	if (!may_read(tracker, now_ns)) {
		process->look_again_at_ns = now_ns + LOOK_AGAIN_NS;
		return;
	}
	began_ns = cpu_ns();
	process_describe(process, cgroup_names_find(&tracker->cgroups, cgroup_id),
			 find_family(tracker, process));
	if (process->cgroups)
		cgroup_names_learn(&tracker->cgroups, cgroup_id, process->cgroups);
	index_family(tracker, index);
	proc_budget_spend(&tracker->budget, cpu_ns() - began_ns);
}

static bool has_all(const struct space *space, const uint64_t *addresses, size_t count)
{
	const struct mapping *mapping = NULL;

	for (size_t i = 0; i < count; i++) {
		mapping = space_find_near(space, mapping, addresses[i]);
		if (!mapping)
			return false;
	}
	return true;
}

/*
 * The list for these addresses. Lists name all executable memory, so an address outside says that
 * the list is out of date. When /proc had to be read it is not known since when it held; then it is
 * the present list, unless only the one before has them all.
 */
static struct space *choose(struct tracker *tracker, struct process *process, int64_t at_ns,
			    const uint64_t *addresses, size_t count, int64_t now_ns)
{
	struct space *space = process_space_at(process, at_ns);

	if (has_all(space, addresses, count))
		return space;
	if (process_may_read_maps(process, now_ns))
		read_maps(tracker, process, now_ns);
	if (process->past[0].space && !has_all(process->space, addresses, count) &&
	    has_all(process->past[0].space, addresses, count))
		return process->past[0].space;
	return process_space_at(process, at_ns);
}

uint32_t tracker_space_at(const struct tracker *tracker, uint32_t index, int64_t at_ns)
{
	const struct space *space = process_space_at(tracker->items[index], at_ns);

	return space ? space->index : SPACE_NONE;
}

uint32_t tracker_locate(struct tracker *tracker, uint32_t index, const struct sample *sample,
			const uint64_t *addresses, size_t count, int64_t now_ns)
{
	struct process *process = tracker->items[index];
	const struct mapping *mapping = NULL;
	const struct space *space;
	bool wait = false;

	describe(tracker, index, sample->cgroup_id, now_ns);
	space = choose(tracker, process, (int64_t)sample->head.at_ns, addresses, count, now_ns);
	if (!process->is_sampled) {
		process->is_sampled = true;
		look_at_files(tracker, process, false, now_ns);
	}
	for (size_t i = 0; i < count; i++) {
		mapping = space_find_near(space, mapping, addresses[i]);
		if (!mapping || !mapping->binary)
			continue;
		binaries_add_frame(&tracker->binaries, mapping->binary);
		look_at_file(tracker, process, mapping, true, now_ns);
		wait |= mapping->binary->asked && !mapping->binary->opened;
	}
	if (wait) {
		wait_for_lender(tracker);
		tracker_take_files(tracker, now_ns);
	}
	return space ? space->index : SPACE_NONE;
}

void tracker_look_again(struct tracker *tracker, uint32_t index, const struct sample *sample,
			int64_t now_ns)
{
	struct process *process = tracker->items[index];

	if (!process->look_again_at_ns || now_ns < process->look_again_at_ns)
		return;
	process->look_again_at_ns = 0;
	describe(tracker, index, sample->cgroup_id, now_ns);
	look_at_files(tracker, process, true, now_ns);
}

const struct space *tracker_space(const struct tracker *tracker, uint32_t index, uint32_t space)
{
	return space == SPACE_NONE ? tracker->items[index]->space : tracker->spaces.items[space];
}

static int by_last_seen(const void *a, const void *b)
{
	const struct process *const *first = a, *const *second = b;

	return ((*first)->seen_at_ns < (*second)->seen_at_ns) -
	       ((*first)->seen_at_ns > (*second)->seen_at_ns); /* latest first */
}

/* True if an image without recent samples may go; asks the kernel only about those. */
static bool is_over(const struct process *process, int64_t now_ns)
{
	int64_t unseen_ns = now_ns - process->seen_at_ns;

	return unseen_ns >= UNSEEN_KEEP_NS ||
	       (unseen_ns >= ENDED_KEEP_NS && process_has_ended(process));
}

/* Lists are counted with the first image that has them. */
static size_t count_list(struct space *space)
{
	if (!space || space->counted)
		return 0;
	space->counted = true;
	return space_bytes(space);
}

/* Bytes of an image that stays. */
static size_t count_bytes(struct process *process, int64_t now_ns)
{
	size_t bytes = process_bytes(process) + count_list(process->space);

	if (now_ns - process->space_since_ns >= ENDED_KEEP_NS)
		process_forget_past(process);
	for (size_t i = 0; i < PROCESS_PAST_MAX; i++)
		bytes += count_list(process->past[i].space);
	return bytes;
}

static size_t drop(struct tracker *tracker, int64_t now_ns)
{
	size_t kept = 0, bytes = 0;

	for (size_t i = 0; i < tracker->count; i++) {
		struct process *process = tracker->items[i];
		bool over = is_over(process, now_ns);
		bool room = bytes < TRACKER_BYTES_MAX / 2 && kept < TRACKER_PROCESSES_MAX / 2;

		if (!over && room) {
			bytes += count_bytes(process, now_ns);
			tracker->items[kept++] = process;
			continue;
		}
		if (!over)
			metric_add(&procs_processes_evicted, 1);
		process_free(process);
	}
	for (size_t i = 0; i < tracker->spaces.count; i++)
		tracker->spaces.items[i]->counted = false;
	return kept;
}

static void check_list(const struct spaces *spaces, const struct space *space)
{
	assert(!space || (space->references > 0 && space->index < spaces->count));
	assert(!space || spaces->items[space->index] == space);
}

void tracker_check(const struct tracker *tracker)
{
	assert(tracker->count <= TRACKER_PROCESSES_MAX);
	for (size_t i = 0; i < tracker->count; i++) {
		const struct process *process = tracker->items[i];

		check_list(&tracker->spaces, process->space);
		for (size_t j = 0; j < PROCESS_PAST_MAX; j++)
			check_list(&tracker->spaces, process->past[j].space);
	}
	spaces_check(&tracker->spaces);
	binaries_check(&tracker->binaries);
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
	tracker->wait_left_ns = WAIT_PER_WINDOW_NS;
	spaces_sweep(&tracker->spaces, now_ns);
	binaries_sweep(&tracker->binaries, now_ns);
	tracker_check(tracker);
}
