/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/drain.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/attach/host_checks.h"
#include "agent/collect/accounts.h"
#include "agent/collect/counts.h"
#include "agent/collect/known_jvms.h"
#include "agent/collect/late_samples.h"
#include "agent/collect/warm_up.h"
#include "agent/describe/batch.h"
#include "agent/describe/kernel_symbols.h"
#include "agent/identify/cgroup.h"
#include "agent/identify/container_names.h"
#include "agent/jit/jit.h"
#include "agent/procs/process_attributes.h"
#include "agent/procs/procs_metrics.h"
#include "agent/procs/tracker.h"
#include "agent/runtime/runtimes.h"
#include "agent/unwind/loader.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#define POLL_MS 200
#define OVERDUE_POLL_MS 10
#define WARM_UP_NS (5 * CLOCK_NS_PER_S) /* at most; with tables in the cache far less */
#define FOLLOW_CPUS_NS CLOCK_NS_PER_S
#define FINISH_STEP_NS (50 * CLOCK_NS_PER_MS) /* at the end; then it may have to be at once */
#define RUNTIMES_SETTLE_NS (100 * CLOCK_NS_PER_MS)
#define JIT_SETTLE_NS (100 * CLOCK_NS_PER_MS) /* far less than it takes to fill the ring buffer */
#define FILES_SETTLE_NS (200 * CLOCK_NS_PER_MS)
#define ATTRIBUTES_SETTLE_NS (100 * CLOCK_NS_PER_MS)
#define CONTAINERS_SETTLE_NS (100 * CLOCK_NS_PER_MS)
/*
 * So seldom that most new programs of a build end without a sample: tables are made of what has
 * one. Its stack is copied, and waits for them.
 */
#define SELDOM_HZ_MAX 49
#define FIRST_WINDOW_NS (2 * CLOCK_NS_PER_S) /* whoever starts an agent waits to see something */

struct drain {
	struct drain_options options;
	struct sampler *sampler;
	struct tracker tracker;
	struct counts counts;
	struct accounts *accounts;
	struct late_samples late;
	struct known_jvms jvms;
	struct counts_key key; /* of the sample at hand */
	unsigned keep;	       /* enum counts_keep */
	struct kernel_symbols kernel_symbols;
	_Atomic int64_t settle_ns; /* see drain_stop */
	struct kernel_image kernel_image;
	struct jit *jit;
	struct runtimes *runtimes;
	uint64_t runtimes_known; /* of binaries.runtimes */
	struct container_names *containers;
	struct pod_names *pods;
	struct cloud_names *cloud;
	struct process_attributes *attributes;
	_Atomic(struct agent_config *) next_config; /* that nobody has used yet; or NULL */
	struct unwind_loader *loader;
	struct sample_counters reported; /* the program's counters, as far as in the metrics */
	int stop_fd;
	int64_t window_start_ns; /* monotonic */
	int64_t follow_cpus_at_ns;
	uint64_t batch_seed;
	uint64_t batches;
};

static METRIC_COUNTER(samples_total, "firn_agent_samples_total", "",
		      "Samples taken by the BPF program (idle CPUs not counted).");
static METRIC_COUNTER(drained_total, "firn_agent_drained_samples_total", "",
		      "Samples received from the ring buffer and counted.");
static METRIC_COUNTER(lost_ring_full, "firn_agent_lost_samples_total", "{reason=\"ring_full\"}",
		      "Samples lost.");
static METRIC_COUNTER(lost_bad_record, "firn_agent_lost_samples_total", "{reason=\"bad_record\"}",
		      "Samples lost.");
static METRIC_COUNTER(lost_no_room, "firn_agent_lost_samples_total", "{reason=\"no_room\"}",
		      "Samples lost.");
static METRIC_COUNTER(bytes_total, "firn_agent_ring_bytes_total", "",
		      "Bytes of samples sent through the ring buffer.");
static METRIC_COUNTER(kernel_failed, "firn_agent_kernel_stacks_failed_total", "",
		      "Samples whose kernel stack was not available.");
static METRIC_COUNTER(windows_short, "firn_agent_windows_cut_short_total", "",
		      "Report windows ended early because a table was full.");
static METRIC_COUNTER(windows_total, "firn_agent_windows_total", "", "Report windows ended.");
static struct metric bpf_seconds = { METRIC_TYPE_COUNTER,
				     "firn_agent_bpf_seconds_total",
				     "",
				     "Time spent in the BPF program.",
				     1e-9,
				     0 };

#define FRAMES "firn_agent_user_frames_total"
#define FRAMES_HELP "User frames left, by how."
static METRIC_COUNTER(frames_by_table, FRAMES, "{by=\"unwind_table\"}", FRAMES_HELP);
static METRIC_COUNTER(frames_by_pointer, FRAMES, "{by=\"frame_pointer\"}", FRAMES_HELP);
static METRIC_COUNTER(spaces_read, "firn_agent_mapping_lists_read_total", "",
		      "Times that the BPF program listed a process's executable mappings.");
static METRIC_COUNTER(spaces_busy, "firn_agent_mapping_lists_busy_total", "",
		      "Times that it could not: the process was just changing them.");
static METRIC_COUNTER(spaces_sent, "firn_agent_mapping_records_total", "",
		      "Records of changed mappings received from the BPF program.");
static METRIC_COUNTER(spaces_lost, "firn_agent_mapping_records_lost_total", "",
		      "Records of changed mappings lost because the ring buffer was full.");

static METRIC_COUNTER(stacks_sent, "firn_agent_stack_copies_total", "",
		      "Stacks copied by the BPF program, to be unwound later.");
static METRIC_COUNTER(stacks_lost, "firn_agent_stack_copies_lost_total", "",
		      "Stacks that it could not copy: the ring buffer was half full.");

#define STACKS "firn_agent_stacks_total"
#define STACKS_HELP "User stacks by the reason why they ended."
static METRIC_COUNTER(end_complete, STACKS, "{end=\"complete\"}", STACKS_HELP);
static METRIC_COUNTER(end_no_info, STACKS, "{end=\"no_unwind_info\"}", STACKS_HELP);
static METRIC_COUNTER(end_pending, STACKS, "{end=\"table_pending\"}", STACKS_HELP);
static METRIC_COUNTER(end_failed, STACKS, "{end=\"table_failed\"}", STACKS_HELP);
static METRIC_COUNTER(end_no_room, STACKS, "{end=\"table_no_room\"}", STACKS_HELP);
static METRIC_COUNTER(end_unsupported, STACKS, "{end=\"unsupported_rule\"}", STACKS_HELP);
static METRIC_COUNTER(end_bad_address, STACKS, "{end=\"bad_address\"}", STACKS_HELP);
static METRIC_COUNTER(end_no_mappings, STACKS, "{end=\"no_mappings\"}", STACKS_HELP);
static METRIC_COUNTER(end_no_fp, STACKS, "{end=\"no_frame_pointer\"}", STACKS_HELP);
static METRIC_COUNTER(end_unreadable, STACKS, "{end=\"unreadable\"}", STACKS_HELP);
static METRIC_COUNTER(end_too_deep, STACKS, "{end=\"too_deep\"}", STACKS_HELP);
static METRIC_COUNTER(end_32_bit, STACKS, "{end=\"32_bit\"}", STACKS_HELP);
static METRIC_COUNTER(end_no_registers, STACKS, "{end=\"no_user_registers\"}", STACKS_HELP);
static METRIC_COUNTER(end_guessed, STACKS, "{end=\"guessed_frame_pointer\"}", STACKS_HELP);
static METRIC_COUNTER(end_kernel_walk, STACKS, "{end=\"kernel_walk\"}", STACKS_HELP);

/* The program's counters, by enum sample_counter. */
static struct metric *const counter_metrics[COUNTERS] = {
	[COUNTER_SAMPLES] = &samples_total,
	[COUNTER_RING_FULL] = &lost_ring_full,
	[COUNTER_BYTES] = &bytes_total,
	[COUNTER_RUN_NS] = &bpf_seconds,
	[COUNTER_KERNEL_STACK_FAILED] = &kernel_failed,
	[COUNTER_STACK_END_FIRST + STACK_COMPLETE] = &end_complete,
	[COUNTER_FRAMES_BY_TABLE] = &frames_by_table,
	[COUNTER_FRAMES_BY_POINTER] = &frames_by_pointer,
	[COUNTER_SPACES_READ] = &spaces_read,
	[COUNTER_SPACES_BUSY] = &spaces_busy,
	[COUNTER_SPACES_SENT] = &spaces_sent,
	[COUNTER_SPACES_LOST] = &spaces_lost,
	[COUNTER_STACKS_SENT] = &stacks_sent,
	[COUNTER_STACKS_LOST] = &stacks_lost,
	[COUNTER_STACK_END_FIRST + STACK_NO_UNWIND_INFO] = &end_no_info,
	[COUNTER_STACK_END_FIRST + STACK_TABLE_PENDING] = &end_pending,
	[COUNTER_STACK_END_FIRST + STACK_TABLE_FAILED] = &end_failed,
	[COUNTER_STACK_END_FIRST + STACK_TABLE_NO_ROOM] = &end_no_room,
	[COUNTER_STACK_END_FIRST + STACK_UNSUPPORTED_RULE] = &end_unsupported,
	[COUNTER_STACK_END_FIRST + STACK_BAD_ADDRESS] = &end_bad_address,
	[COUNTER_STACK_END_FIRST + STACK_NO_MAPPINGS] = &end_no_mappings,
	[COUNTER_STACK_END_FIRST + STACK_NO_FRAME_POINTER] = &end_no_fp,
	[COUNTER_STACK_END_FIRST + STACK_UNREADABLE] = &end_unreadable,
	[COUNTER_STACK_END_FIRST + STACK_TOO_DEEP] = &end_too_deep,
	[COUNTER_STACK_END_FIRST + STACK_32_BIT] = &end_32_bit,
	[COUNTER_STACK_END_FIRST + STACK_NO_USER_REGISTERS] = &end_no_registers,
	[COUNTER_STACK_END_FIRST + STACK_GUESSED_POINTER] = &end_guessed,
	[COUNTER_STACK_END_FIRST + STACK_KERNEL_WALK] = &end_kernel_walk,
};

void drain_metrics_register(void)
{
	static struct metric *const own[] = { &drained_total, &lost_bad_record, &lost_no_room,
					      &windows_short, &windows_total };

	for (size_t i = 0; i < COUNTERS; i++)
		if (counter_metrics[i])
			metrics_register(&counter_metrics[i], 1);
	unwind_loader_metrics_register();
	lender_metrics_register();
	container_names_metrics_register();
	pod_names_metrics_register();
	process_attributes_metrics_register();
	batch_metrics_register();
	late_samples_metrics_register();
	metrics_register(own, sizeof(own) / sizeof(own[0]));
}

uint64_t drain_taken_samples(void)
{
	return (uint64_t)metric_get(&samples_total);
}

uint64_t drain_lost_samples(void)
{
	return (uint64_t)(metric_get(&lost_ring_full) + metric_get(&lost_bad_record) +
			  metric_get(&lost_no_room));
}

static void report_counters(struct drain *drain)
{
	struct sample_counters now;

	sampler_counters(drain->sampler, &now);
	for (size_t i = 0; i < COUNTERS; i++)
		if (counter_metrics[i])
			metric_add(counter_metrics[i],
				   (int64_t)(now.of[i] - drain->reported.of[i]));
	drain->reported = now;
	accounts_set_counters(drain->accounts, &now);
}

static bool list_programs(void *context, struct strbuf *ret)
{
	const struct drain *drain = context;

	return sampler_list_programs(drain->sampler, ret);
}

static void refresh_kernel_symbols(struct drain *drain, int64_t now_ns)
{
	kernel_symbols_refresh(&drain->kernel_symbols, &drain->options.handles.kernel,
			       list_programs, drain, now_ns);
}

static void want_container(struct drain *drain, const struct process *process, int64_t now_ns)
{
	struct cgroup cgroup;

	cgroup_parse(slice_of(process->cgroups), &cgroup);
	container_names_want(drain->containers, cgroup.container, cgroup.runtime, now_ns);
	pod_names_want(drain->pods, &cgroup, now_ns);
}

/* Those that have samples in this window: they are still seen. */
static void want_names(struct drain *drain, int64_t now_ns)
{
	for (uint32_t i = 0; i < drain->tracker.count; i++) {
		struct process *process = tracker_process(&drain->tracker, i);

		if (process->seen_at_ns < drain->window_start_ns)
			continue;
		want_container(drain, process, now_ns);
		process_attributes_want(drain->attributes, process, now_ns);
	}
}

static struct process *find_process(void *context, const struct process_identity *identity)
{
	struct drain *drain = context;

	return tracker_find(&drain->tracker, identity);
}

static void take_attributes(struct drain *drain, int64_t now_ns)
{
	process_attributes_take(drain->attributes, find_process, drain, now_ns);
}

static void allow_variables(struct drain *drain)
{
	size_t count = 0;
	const struct slice *names = agent_config_variables(drain->options.config, &count);

	process_attributes_set_variables(drain->attributes, names, count);
}

static void take_config(struct drain *drain)
{
	struct agent_config *next = atomic_exchange(&drain->next_config, NULL);

	if (!next)
		return;
	agent_config_free(drain->options.config);
	drain->options.config = next;
	allow_variables(drain);
}

void drain_set_config(struct drain *drain, struct agent_config *config)
{
	agent_config_free(atomic_exchange(&drain->next_config, config));
}

/* Excluded binaries are not announced. */
static void keep_back(const struct drain *drain, struct window *window)
{
	size_t kept = 0;

	for (size_t i = 0; drain->options.config && i < window->news_count; i++) {
		if (agent_config_keeps_symbols(drain->options.config, window->news[i].path))
			binary_news_free(&window->news[i]);
		else
			window->news[kept++] = window->news[i];
	}
	if (drain->options.config)
		window->news_count = kept;
}

static void build(struct drain *drain, struct window *window, int64_t now_ns)
{
	uint64_t identity[] = { drain->batch_seed, drain->batches++ };
	struct batch_window batch = {
		.counts = &drain->counts,
		.tracker = &drain->tracker,
		.kernel_symbols = &drain->kernel_symbols,
		.kernel_image = &drain->kernel_image,
		.jit = drain->jit,
		.runtimes = drain->runtimes,
		.labels = { drain->options.node, drain->containers, drain->pods, drain->cloud,
			    drain->options.config },
		.thread_labels = drain->options.thread_labels,
		.sample_labels = drain->options.sample_labels,
		.duration_ns = now_ns - drain->window_start_ns,
		.start_ns = clock_real_ns() - (now_ns - drain->window_start_ns),
		.period_ns = CLOCK_NS_PER_S / drain->options.sampler.frequency_hz,
		.batch_id = hash_stable(identity, sizeof(identity), 0),
	};

	refresh_kernel_symbols(drain, now_ns);
	tracker_settle(&drain->tracker, FILES_SETTLE_NS, now_ns);
	jit_settle(drain->jit, JIT_SETTLE_NS);
	runtimes_settle(drain->runtimes, RUNTIMES_SETTLE_NS);
	want_names(drain, now_ns);
	container_names_settle(drain->containers, CONTAINERS_SETTLE_NS);
	pod_names_settle(drain->pods, CONTAINERS_SETTLE_NS);
	process_attributes_settle(drain->attributes, ATTRIBUTES_SETTLE_NS);
	take_attributes(drain, now_ns);
	if (drain->counts.samples)
		batch_build(&window->tables, &batch);
	binaries_give_back(&drain->tracker.binaries, window->news, window->news_count);
	free(window->news);
	window->news = binaries_take_news(&drain->tracker.binaries, &window->news_count);
	keep_back(drain, window);
}

static void end_window(struct drain *drain)
{
	struct window *window = drain->options.take_empty(drain->options.context);
	int64_t now_ns = clock_monotonic_ns();

	take_config(drain);
	build(drain, window, now_ns);
	accounts_add_window(drain->accounts, &drain->counts, &drain->tracker);
	drain->options.give(drain->options.context, window);
	drain->window_start_ns = now_ns;
	counts_clear(&drain->counts);
	tracker_sweep(&drain->tracker, now_ns);
	jit_sweep(drain->jit, now_ns);
	runtimes_sweep(drain->runtimes, now_ns);
	sampler_sweep_jvms(drain->sampler);
	container_names_sweep(drain->containers, now_ns);
	pod_names_sweep(drain->pods, now_ns);
	report_counters(drain);
	metric_add(&windows_total, 1);
}

/* For jit_note. Only the kernel side's lists have what was mapped a moment ago. */
static uint64_t files_mapped(const struct drain *drain, uint32_t process,
			     const struct space *mappings)
{
	uint64_t hash = 1;

	if (!tracker_process(&drain->tracker, process)->space_is_whole)
		return 0;
	for (uint32_t i = 0; i < mappings->count; i++)
		if (mappings->mappings[i].kind == MAPPING_FILE)
			hash = hash_mix(hash, (uintptr_t)mappings->mappings[i].binary);
	return hash;
}

/* For a new stack: requests the names of its generated code. */
static void note_generated(struct drain *drain, uint32_t process, uint32_t space, int64_t now_ns)
{
	const struct space *mappings = tracker_space(&drain->tracker, process, space);
	const uint64_t *addresses = counts_key_user_frames(&drain->key);

	const struct process_identity *identity =
		&tracker_process(&drain->tracker, process)->identity;
	bool has_code = runtimes_has_code(drain->runtimes, identity);
	const struct mapping *mapping = NULL;
	uint64_t mapped = 0;

	for (size_t i = 0; mappings && i < drain->key.stack.user_count; i++) {
		bool is_generated;

		mapping = space_find_near(mappings, mapping, addresses[i]);
		is_generated = mapping_is_generated(mapping);
		if (is_generated && !mapped)
			mapped = files_mapped(drain, process, mappings);
		if (is_generated)
			jit_note(drain->jit, identity,
				 &(struct jit_address){ addresses[i], mapping, mapped }, now_ns);
		if (has_code && !mapping_is_elf(mapping, addresses[i]))
			runtimes_note_code(drain->runtimes, identity, addresses[i], now_ns);
	}
}

/* Whether there is an interpreter in it, and what its frames in this stack are called. */
static void note_script(struct drain *drain, uint32_t index, int64_t now_ns)
{
	const struct process *process = tracker_process(&drain->tracker, index);

	runtimes_look(drain->runtimes, process, process->space, now_ns);
	runtimes_note(drain->runtimes, &process->identity, counts_key_script_words(&drain->key),
		      drain->key.stack.script_words / 2, now_ns);
}

/* When in the window a sample was taken. */
static uint32_t tick_of(const struct drain *drain, const struct sample *sample)
{
	int64_t since_ns = (int64_t)sample->head.at_ns - drain->window_start_ns;

	if (!drain->options.sample_times || since_ns / TABLES_TICK_NS >= COUNTS_NO_TIME)
		return COUNTS_NO_TIME;
	return since_ns > 0 ? (uint32_t)(since_ns / TABLES_TICK_NS) : 0;
}

/* At once: a process, and its container, may be gone before the window ends. */
static void note_names(struct drain *drain, uint32_t index, int64_t now_ns)
{
	struct process *process = drain->tracker.items[index];

	process_attributes_want(drain->attributes, process, now_ns);
	if (process->is_noted || !process->cgroups)
		return;
	process->is_noted = true;
	want_container(drain, process, now_ns);
}

/* The program leaves it to us where a second walk may change it. */
static void count_end(const struct sample *sample)
{
	if (sample->user_end < STACK_ENDS)
		metric_add(counter_metrics[COUNTER_STACK_END_FIRST + sample->user_end], 1);
}

/* With the list of mappings that held; NULL: the process's at that time. */
static bool count(struct drain *drain, const struct sample *sample, const struct space *held)
{
	int64_t now_ns = clock_monotonic_ns();
	uint32_t process = tracker_get(&drain->tracker, &sample->head, now_ns), space;
	struct counts_key *key = &drain->key;

	if (process == TRACKER_FULL ||
	    !counts_key_of(&drain->counts, sample, process, drain->keep, key))
		return false;
	space = held ? held->index
		     : tracker_space_at(&drain->tracker, process, (int64_t)sample->head.at_ns);
	if (!counts_has(&drain->counts, key, space)) {
		uint32_t located =
			tracker_locate(&drain->tracker, process, sample,
				       counts_key_user_frames(key), key->stack.user_count, now_ns);

		space = held ? held->index : located;
		note_generated(drain, process, space, now_ns);
		note_script(drain, process, now_ns);
		note_names(drain, process, now_ns);
	} else {
		tracker_look_again(&drain->tracker, process, sample, now_ns);
		runtimes_note_again(
			drain->runtimes, &tracker_process(&drain->tracker, process)->identity,
			counts_key_script_words(key), key->stack.script_words / 2, now_ns);
	}
	if (counts_add(&drain->counts, key, space, tick_of(drain, sample)) == COUNTS_FULL)
		return false;
	metric_add(&drained_total, 1);
	return true;
}

static void take_sample(struct drain *drain, const struct sample *sample, const struct space *held)
{
	if (count(drain, sample, held))
		return;
	metric_add(&windows_short, 1);
	end_window(drain); /* makes room */
	if (!count(drain, sample, held))
		metric_add(&lost_no_room, 1);
}

/* It waits for its second walk; its process is looked at while it is there. */
static bool hold_sample(struct drain *drain, const struct sample *sample)
{
	int64_t now_ns = clock_monotonic_ns(), at_ns = (int64_t)sample->head.at_ns;
	uint32_t process = tracker_get(&drain->tracker, &sample->head, now_ns);
	struct space *space = NULL;

	if (process == TRACKER_FULL)
		return false;
	/* A list that was missing, or too old, is about to come. */
	if (sample->user_end != STACK_NO_MAPPINGS)
		space = process_space_at(tracker_process(&drain->tracker, process), at_ns);
	if (!late_samples_take(&drain->late, sample, space, now_ns))
		return false;
	tracker_locate(&drain->tracker, process, sample,
		       (const uint64_t *)sample->frames + sample->kernel_count, sample->user_count,
		       now_ns);
	return true;
}

/* For a waiting sample: what is known of its process's mappings by now. */
static const struct space *find_late_space(void *context, const struct sample *sample)
{
	struct drain *drain = context;
	uint32_t process = tracker_get(&drain->tracker, &sample->head, clock_monotonic_ns());

	return process == TRACKER_FULL ? NULL
				       : process_space_at(tracker_process(&drain->tracker, process),
							  (int64_t)sample->head.at_ns);
}

static void take_late_sample(void *context, const struct sample *sample, const struct space *space)
{
	struct drain *drain = context;

	count_end(sample);
	take_sample(drain, sample, space);
}

static void walk_late_samples(struct drain *drain)
{
	late_samples_walk(&drain->late,
			  &(struct late_samples_user){ find_late_space, take_late_sample, drain },
			  clock_monotonic_ns());
}

/* No more samples come: those that still wait do so for a moment. */
static void finish_late_samples(struct drain *drain)
{
	int64_t began_ns = clock_monotonic_ns(), now_ns = began_ns;

	walk_late_samples(drain);
	while (late_samples_are_coming(&drain->late) &&
	       now_ns - began_ns < atomic_load(&drain->settle_ns)) {
		tracker_settle(&drain->tracker, FINISH_STEP_NS, now_ns);
		unwind_loader_wait_idle(drain->loader, FINISH_STEP_NS);
		walk_late_samples(drain);
		if (late_samples_are_coming(&drain->late)) /* neither waits for copies of files */
			poll(NULL, 0, OVERDUE_POLL_MS);
		now_ns = clock_monotonic_ns();
	}
	late_samples_give_up(&drain->late);
	walk_late_samples(drain);
}

static void take_samples(struct drain *drain, const void *record, size_t len)
{
	const struct sample *sample;

	while ((sample = counts_next_sample(&record, &len))) {
		if (sample->head.flags & SAMPLE_HAS_STACK && hold_sample(drain, sample))
			continue;
		if (sample->head.flags & SAMPLE_HAS_STACK)
			count_end(sample);
		take_sample(drain, sample, NULL);
	}
	if (len)
		metric_add(&lost_bad_record, 1);
}

/* Before its first sample, if that may be. */
static void look_for_runtime(struct drain *drain, const struct record_head *head, int64_t now_ns)
{
	uint32_t index = tracker_get(&drain->tracker, head, now_ns);
	const struct process *process;

	if (index == TRACKER_FULL)
		return;
	process = tracker_process(&drain->tracker, index);
	runtimes_look(drain->runtimes, process, process->space, now_ns);
}

/* A file turned out to be a runtime: processes have had it mapped before. */
static void look_for_new_runtimes(struct drain *drain, int64_t now_ns)
{
	if (drain->runtimes_known == drain->tracker.binaries.runtimes)
		return;
	drain->runtimes_known = drain->tracker.binaries.runtimes;
	for (uint32_t i = 0; i < drain->tracker.count; i++) {
		const struct process *process = tracker_process(&drain->tracker, i);

		runtimes_look(drain->runtimes, process, process->space, now_ns);
	}
}

static void take_space(struct drain *drain, const struct space_record *record, size_t len)
{
	int64_t now_ns = clock_monotonic_ns();

	if (tracker_take_space(&drain->tracker, record, len, now_ns)) {
		look_for_runtime(drain, &record->head, now_ns);
		return;
	}
	metric_add(&windows_short, 1);
	end_window(drain); /* makes room */
	if (!tracker_take_space(&drain->tracker, record, len, clock_monotonic_ns()))
		metric_add(&procs_space_lists_lost, 1);
}

static bool put_script(void *context, uint32_t tgid, const struct script_process *script)
{
	struct drain *drain = context;

	return sampler_put_script(drain->sampler, tgid, script);
}

static bool put_jvm(void *context, uint32_t tgid, const struct jvm_entry *entry)
{
	struct drain *drain = context;

	return sampler_put_jvm(drain->sampler, tgid, entry);
}

static void put_jvm_file(void *context, const struct file_key *key, const struct jvm_file *file)
{
	struct drain *drain = context;

	sampler_put_jvm_file(drain->sampler, key, file);
	known_jvms_add(&drain->jvms, key, file);
}

static bool find_jvm(void *context, uint32_t tgid, struct jvm_entry *ret)
{
	struct drain *drain = context;

	return sampler_find_jvm(drain->sampler, tgid, ret);
}

static bool put_code(void *context, uint32_t tgid, const struct code_process *process)
{
	struct drain *drain = context;

	return sampler_put_code(drain->sampler, tgid, process);
}

static void put_code_line(void *context, const struct code_line_key *key,
			  const struct code_line *line)
{
	struct drain *drain = context;

	sampler_put_code_line(drain->sampler, key, line);
}

/* Whose code a runtime of its own leaves has no lines by a jitdump: V8's, .NET's, Erlang's. */
static bool put_jit_process(void *context, const struct process_identity *identity, uint32_t number)
{
	struct drain *drain = context;
	struct code_process process = { .start_ns = identity->start_ns,
					.exec_id = identity->exec_id,
					.number = number };

	return !runtimes_has_code(drain->runtimes, identity) &&
	       sampler_put_code(drain->sampler, identity->pid, &process);
}

static void drop_jit_process(void *context, uint32_t pid, uint32_t number)
{
	struct drain *drain = context;

	sampler_drop_code(drain->sampler, pid, number);
}

static void ask_for_copies(void *context, uint64_t proof)
{
	struct drain *drain = context;

	sampler_ask_for_copies(drain->sampler, proof);
}

static void drop_script(void *context, uint32_t tgid)
{
	struct drain *drain = context;

	sampler_drop_script(drain->sampler, tgid);
}

static void put_space(void *context, const struct record_head *head,
		      const struct space_mapping *mappings, size_t count)
{
	struct drain *drain = context;

	sampler_put_space(drain->sampler, head, mappings, count);
}

static void take_record(void *context, const struct record_head *record, size_t len)
{
	struct drain *drain = context;

	if (len >= sizeof(*record) && record->kind == RECORD_SAMPLE)
		take_samples(drain, record, len);
	else if (len >= sizeof(*record) && record->kind == RECORD_SPACE)
		take_space(drain, (const struct space_record *)record, len);
	else if (len >= sizeof(*record) && record->kind == RECORD_STACK &&
		 late_samples_take_stack(&drain->late, (const struct stack_record *)record, len))
		return;
	else
		metric_add(&lost_bad_record, 1);
}

static bool table_is_known(void *context, const struct file_key *key)
{
	struct drain *drain = context;

	return unwind_loader_is_known(drain->loader, key);
}

static void want_table(void *context, const struct file_key *key, int fd, const char *build_id,
		       const char *path)
{
	struct drain *drain = context;

	unwind_loader_want(drain->loader, key, fd, build_id, path);
}

static void cannot_open(void *context, const struct file_key *key, const char *path)
{
	struct drain *drain = context;

	unwind_loader_cannot_open(drain->loader, key, path);
}

static bool find_tables(void *context, const struct file_key *key, struct binary_tables *ret)
{
	struct drain *drain = context;

	return unwind_loader_find(drain->loader, key, ret);
}

static int chunk_fd(void *context, uint32_t index)
{
	struct drain *drain = context;

	return unwind_loader_chunk_fd(drain->loader, index);
}

static bool is_table_coming(void *context, const struct file_key *key)
{
	struct drain *drain = context;
	const struct binary *binary = binaries_find(&drain->tracker.binaries, key);

	return unwind_loader_hurry(drain->loader, key) || (binary && binary->asked);
}

static bool is_table_lost(void *context, const struct file_key *key)
{
	struct drain *drain = context;
	const struct binary *binary = binaries_find(&drain->tracker.binaries, key);

	return binary && binary_cannot_be_opened(binary);
}

/* A share of the memory, so that what this host runs fits; it is taken when it is needed. */
static uint64_t table_memory(const struct drain *drain)
{
	uint64_t share = host_checks_memory_bytes() / 100;

	if (drain->options.unwind_memory_bytes)
		return drain->options.unwind_memory_bytes;
	return share > UNWIND_ARENA_DEFAULT_BYTES ? share : UNWIND_ARENA_DEFAULT_BYTES;
}

static int start_loader(struct drain *drain, struct err *err)
{
	struct sampler_maps maps = sampler_maps(drain->sampler);
	struct unwind_loader_options options = { .chunks_fd = maps.chunks_fd,
						 .first_chunk_fd = maps.first_chunk_fd,
						 .tables_fd = maps.tables_fd,
						 .space_versions = maps.space_versions,
						 .arena_bytes = table_memory(drain),
						 .cache_path = drain->options.unwind_cache_path };

	return unwind_loader_start(&options, &drain->loader, err);
}

/*
 * So that the first samples are whole: the mappings and tables of what runs, and of a program about
 * to be run, with the libraries that whoever started us has mapped: it will need some of them too.
 */
static void warm_up(struct drain *drain)
{
	sampler_follow(drain->sampler);
	if (drain->options.program) {
		struct lender *lender = drain->options.handles.lender;

		warm_up_program(&drain->tracker.binaries, lender, drain->options.program);
		warm_up_process(&drain->tracker.binaries, lender, (uint32_t)getppid());
	}
	sampler_drain(drain->sampler);
	tracker_settle(&drain->tracker, WARM_UP_NS, clock_monotonic_ns());
	unwind_loader_wait_idle(drain->loader, WARM_UP_NS);
	sampler_drain(drain->sampler); /* what has changed meanwhile */
}

static void expect_samples(struct drain *drain, unsigned frequency_hz)
{
	tracker_set_only_sampled(&drain->tracker, frequency_hz <= SELDOM_HZ_MAX);
}

/* Those of former agents: their processes need not be asked first. */
static void put_known_jvms(struct drain *drain)
{
	known_jvms_open(&drain->jvms, drain->options.unwind_cache_path);
	for (uint64_t i = 0; i < drain->jvms.count; i++)
		sampler_put_jvm_file(drain->sampler, &drain->jvms.items[i].key,
				     &drain->jvms.items[i].file);
}

static int start_sampling(struct drain *drain, struct err *err)
{
	int code = sampler_start(&drain->options.sampler, &drain->sampler, err);

	if (!code)
		code = start_loader(drain, err);
	if (code)
		return code;
	late_samples_init(
		&drain->late,
		&(struct second_walk_source){ find_tables, chunk_fd, is_table_coming, is_table_lost,
					      sampler_maps(drain->sampler).space_versions, drain },
		drain->options.sampler.frequency_hz);
	put_known_jvms(drain);
	warm_up(drain);
	expect_samples(drain, drain->options.sampler.frequency_hz);
	return sampler_attach(drain->sampler, err);
}

static void find_kernel_image(struct drain *drain)
{
	struct kernel_image *image = &drain->kernel_image;
	struct utsname host;

	if (uname(&host))
		return;
	kernel_image_find(image, "", "/sys/kernel/notes", host.release);
	if (image->fd >= 0 && drain->options.announce_binaries)
		binaries_add_news(&drain->tracker.binaries, image->build_id, image->path,
				  image->fd);
}

int drain_new(const struct drain_options *options, struct drain **ret, struct err *err)
{
	struct drain *drain = mem_new(struct drain);
	int code = 0;

	drain->options = *options;
	drain->options.sampler.take = take_record;
	drain->options.sampler.take_context = drain;
	if (getrandom(&drain->batch_seed, sizeof(drain->batch_seed), 0) < 0)
		drain->batch_seed = (uint64_t)clock_real_ns();
	tracker_init(&drain->tracker,
		     &(struct tracker_options){ .announce_binaries = options->announce_binaries,
						.tables = { .is_known = table_is_known,
							    .want = want_table,
							    .cannot_open = cannot_open,
							    .context = drain },
						.lender = drain->options.handles.lender,
						.space_read = put_space,
						.space_read_context = drain });
	counts_init(&drain->counts);
	drain->keep = sample_labels_keep(options->sample_labels) |
		      (options->thread_labels ? COUNTS_THREAD_NAME : 0u);
	drain->jit = jit_new(
		host_checks_memory_bytes(), options->handles.root_files,
		&(struct jit_program){ put_jit_process, put_code_line, drop_jit_process, drain });
	drain->runtimes = runtimes_new(
		&(struct runtimes_options){ put_script, put_jvm, put_jvm_file, find_jvm, put_code,
					    put_code_line, ask_for_copies, drop_script, drain });
	drain->accounts = accounts_new();
	drain->attributes = process_attributes_new();
	if (options->config)
		allow_variables(drain);
	drain->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	code = container_names_new(options->container_sockets, options->container_sockets_count,
				   &drain->containers, err);
	if (!code && options->pods)
		code = pod_names_new(options->pods, &drain->pods, err);
	if (!code && options->cloud)
		code = cloud_names_new(options->cloud, &drain->cloud, err);
	if (!code && drain->stop_fd < 0)
		code = err_set_errno(err, errno, "make an eventfd");
	if (!code)
		code = start_sampling(drain, err);
	if (code) {
		drain_free(drain);
		return code;
	}
	drain->window_start_ns = clock_monotonic_ns();
	refresh_kernel_symbols(drain, drain->window_start_ns);
	find_kernel_image(drain);
	*ret = drain;
	return 0;
}

static int64_t window_length_ns(const struct drain *drain)
{
	if (!drain->batches && drain->options.window_ns > FIRST_WINDOW_NS)
		return FIRST_WINDOW_NS;
	return drain->options.window_ns;
}

/* The names of a new container may make a window longer; samples are taken meanwhile. */
static bool is_over(struct drain *drain, int64_t now_ns)
{
	int64_t left_ns = drain->window_start_ns + window_length_ns(drain) - now_ns;

	if (left_ns > 0)
		return false;
	return -left_ns >= CONTAINER_SOURCE_DEADLINE_NS ||
	       (!container_names_is_pending(drain->containers, now_ns) &&
		!pod_names_is_pending(drain->pods, now_ns));
}

static int wait_ms(const struct drain *drain, int64_t now_ns)
{
	int64_t left_ms =
		(drain->window_start_ns + window_length_ns(drain) - now_ns) / CLOCK_NS_PER_MS + 1;
	int64_t due_ns = runtimes_due_ns(drain->runtimes, now_ns);

	if (due_ns != INT64_MAX && (due_ns - now_ns) / CLOCK_NS_PER_MS + 1 < left_ms)
		left_ms = (due_ns - now_ns) / CLOCK_NS_PER_MS + 1;
	if (left_ms < OVERDUE_POLL_MS)
		return OVERDUE_POLL_MS;
	return left_ms < POLL_MS ? (int)left_ms : POLL_MS;
}

/*
 * As the configuration says, when it has changed. The window that ends now gets all samples that
 * were taken before; the new frequency, which is returned, is that of the next one.
 */
static unsigned change_frequency(struct drain *drain)
{
	unsigned now_hz = drain->options.sampler.frequency_hz, wanted_hz = 0;

	take_config(drain);
	if (!drain->options.default_frequency_hz)
		return now_hz;
	if (drain->options.config)
		wanted_hz = agent_config_frequency(drain->options.config);
	if (!wanted_hz)
		wanted_hz = drain->options.default_frequency_hz;
	if (wanted_hz != now_hz) {
		log_info("agent", "sampling", "frequency_hz=%u", wanted_hz);
		sampler_set_frequency(drain->sampler, wanted_hz);
		expect_samples(drain, wanted_hz);
	}
	return wanted_hz;
}

void *drain_run(void *data)
{
	struct drain *drain = data;
	struct pollfd fds[] = { { .fd = sampler_fd(drain->sampler), .events = POLLIN },
				{ .fd = drain->stop_fd, .events = POLLIN },
				{ .fd = runtimes_fd(drain->runtimes), .events = POLLIN },
				{ .fd = jit_fd(drain->jit), .events = POLLIN },
				{ .events = POLLIN } };
	const size_t last = sizeof(fds) / sizeof(fds[0]) - 1;

	while (!(fds[1].revents & POLLIN)) {
		int64_t now_ns;

		fds[last].fd = lender_fd(drain->options.handles.lender);
		poll(fds, last + 1, wait_ms(drain, clock_monotonic_ns()));
		sampler_drain(drain->sampler);
		runtimes_update(drain->runtimes, clock_monotonic_ns());
		jit_update(drain->jit);
		now_ns = clock_monotonic_ns();
		tracker_take_files(&drain->tracker, now_ns);
		look_for_new_runtimes(drain, now_ns);
		take_attributes(drain, now_ns);
		walk_late_samples(drain);
		if (now_ns >= drain->follow_cpus_at_ns) {
			sampler_follow_cpus(drain->sampler);
			drain->follow_cpus_at_ns = now_ns + FOLLOW_CPUS_NS;
		}
		if (is_over(drain, now_ns)) {
			unsigned frequency_hz = change_frequency(drain);

			end_window(drain);
			drain->options.sampler.frequency_hz = frequency_hz;
		}
	}
	sampler_stop(drain->sampler);
	finish_late_samples(drain);
	end_window(drain);
	return NULL;
}

void drain_stop(struct drain *drain, int64_t settle_ns)
{
	atomic_store(&drain->settle_ns, settle_ns);
	eventfd_write(drain->stop_fd, 1);
}

void drain_free(struct drain *drain)
{
	if (!drain)
		return;
	late_samples_free(&drain->late);
	known_jvms_close(&drain->jvms);
	/* These write to the sampler's maps. */
	unwind_loader_free(drain->loader);
	runtimes_free(drain->runtimes);
	jit_free(drain->jit);
	sampler_free(drain->sampler);
	tracker_fini(&drain->tracker, clock_monotonic_ns());
	host_handles_close(&drain->options.handles);
	counts_free(&drain->counts);
	container_names_free(drain->containers);
	pod_names_free(drain->pods);
	cloud_names_free(drain->cloud);
	process_attributes_free(drain->attributes);
	agent_config_free(drain->options.config);
	agent_config_free(atomic_load(&drain->next_config));
	accounts_free(drain->accounts);
	kernel_symbols_free(&drain->kernel_symbols);
	kernel_image_free(&drain->kernel_image);
	if (drain->stop_fd >= 0)
		close(drain->stop_fd);
	free(drain->options.node);
	free(drain);
}
