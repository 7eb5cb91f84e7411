/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/sampler.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/attach/features.h"
#include "agent/attach/host_checks.h"
#include "agent/attach/libbpf_log.h"
#include "agent/attach/perf_events.h"
#include "agent/attach/tracepoints.h"
#include "agent/bpf/script_proof.h"
#include "agent/bpf/space.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sample.skel.h"

/*
 * The ring buffer holds this many seconds of records of 100 frames (most are shorter), within
 * bounds. It is read five times a second, and when it is half full.
 */
#define RING_SECONDS 2u
#define RING_RECORD_BYTES 1024u
#define RING_BYTES_MIN ((uint64_t)256 * 1024)
#define RING_BYTES_MAX ((uint64_t)64 * 1024 * 1024)

#define FOLLOWED_CALLS 5

#define KERNEL_ADDRESSES (1ull << 63) /* where they begin: [vsyscall] is there */

struct sampler {
	struct sampler_options options;
	struct perf_events events;
	struct sample_bpf *skeleton;
	bool attached;
	bool warned;	  /* that a CPU is not sampled, which is tried again */
	int64_t slept_ns; /* the machine, since it was started: at most */
	struct bpf_link *follow_exec, *follow_fork, *follow_calls[FOLLOWED_CALLS];
	struct bpf_link *choose_child, *drop_chosen; /* NULL when all processes are sampled */
	struct ring_buffer *ring;
	int cpus;
};

static uint32_t ring_bytes(unsigned frequency_hz, int cpus)
{
	uint64_t want = (uint64_t)RING_SECONDS * frequency_hz * (uint64_t)cpus * RING_RECORD_BYTES;
	uint64_t bytes = RING_BYTES_MIN;

	while (bytes < want && bytes < RING_BYTES_MAX)
		bytes *= 2;
	return (uint32_t)bytes;
}

/* Not those that loop, where the kernel cannot; those that choose, where there is a choice. */
static void choose_programs(struct sample_bpf *skeleton)
{
	bool has_loop = skeleton->rodata->has_loop, only_chosen = skeleton->rodata->only_chosen;

	bpf_program__set_autoload(skeleton->progs.sample_cpu, has_loop);
	bpf_program__set_autoload(skeleton->progs.sample_by_pointer, !has_loop);
	bpf_program__set_autoload(skeleton->progs.follow_running, has_loop);
	bpf_program__set_autoload(skeleton->progs.list_programs, has_loop);
	bpf_program__set_autoload(skeleton->progs.send_staged, has_loop);
	bpf_program__set_autoload(skeleton->progs.follow_exec, has_loop);
	bpf_program__set_autoload(skeleton->progs.follow_fork, has_loop);
	bpf_program__set_autoload(skeleton->progs.follow_protection, has_loop);
	bpf_program__set_autoload(skeleton->progs.follow_size, has_loop);
	bpf_program__set_autoload(skeleton->progs.choose_child, only_chosen);
	bpf_program__set_autoload(skeleton->progs.drop_chosen, only_chosen);
}

/* Among the chunks of unwind tables. */
static int add_first_chunk(struct sample_bpf *skeleton)
{
	int fd = bpf_map__fd(skeleton->maps.first_chunk);
	uint32_t index = 0;

	return bpf_map__update_elem(skeleton->maps.chunks, &index, sizeof(index), &fd, sizeof(fd),
				    BPF_ANY);
}

static int load_with(struct sampler *sampler, bool has_loop, bool has_vma_iterator, struct err *err)
{
	uint32_t bytes = ring_bytes(sampler->options.frequency_hz, sampler->cpus);
	int code;

	sampler->skeleton = sample_bpf__open();
	if (!sampler->skeleton)
		return err_set_errno(err, errno, "open the BPF object");
	sampler->skeleton->rodata->has_loop = has_loop;
	sampler->skeleton->rodata->has_vma_iterator = has_vma_iterator;
	sampler->skeleton->rodata->wakeup_bytes = bytes / 2;
	sampler->skeleton->rodata->stacks_below = bytes / 2;
	sampler->skeleton->rodata->only_chosen = sampler->options.pids != NULL;
	choose_programs(sampler->skeleton);
	code = bpf_map__set_max_entries(sampler->skeleton->maps.samples, bytes);
	if (!code)
		code = bpf_map__set_max_entries(sampler->skeleton->maps.stack_records,
						(uint32_t)sampler->cpus);
	if (!code)
		code = bpf_map__set_max_entries(sampler->skeleton->maps.scratches,
						(uint32_t)sampler->cpus);
	if (!code && !sampler->options.pids)
		code = bpf_map__set_max_entries(sampler->skeleton->maps.chosen, 1);
	if (!code)
		code = sample_bpf__load(sampler->skeleton);
	if (!code)
		code = add_first_chunk(sampler->skeleton);
	if (code)
		return err_set_errno(err, -code, "load the BPF program into the kernel");
	return 0;
}

static int load(struct sampler *sampler, struct err *err)
{
	bool has_loop = features_have_loop();
	bool has_vma_iterator = has_loop && features_have_vma_iterator();
	int code;

	if (!has_loop)
		log_warn(
			"agent",
			"this kernel has no bpf_loop (5.17): user stacks come from its own "
			"frame-pointer walk, at most 127 frames and without a reason for their end",
			NULL);
	code = load_with(sampler, has_loop, has_vma_iterator, err);
	if (!code || !has_vma_iterator)
		return code;
	/* That it is there does not say that every kind of program may call it. */
	sample_bpf__destroy(sampler->skeleton);
	code = load_with(sampler, has_loop, false, err);
	if (!code)
		log_warn("agent",
			 "this kernel does not let programs list mappings: they are read from "
			 "/proc",
			 NULL);
	return code;
}

/* From here on, what the chosen processes start is chosen, too. */
static int choose_processes(struct sampler *sampler, struct err *err)
{
	struct sample_bpf *skeleton = sampler->skeleton;
	const struct sampler_options *options = &sampler->options;
	int fd = bpf_map__fd(skeleton->maps.chosen);
	uint8_t yes = 1;
	size_t running = 0;

	if (!options->pids)
		return 0;
	if (!host_checks_share_process_ids())
		return err_set(err, ERR_UNSUPPORTED,
			       "sample processes: their ids here are not the host's; share "
			       "those: " HOST_CHECKS_SHARE_IDS);
	sampler->choose_child = bpf_program__attach(skeleton->progs.choose_child);
	sampler->drop_chosen = bpf_program__attach(skeleton->progs.drop_chosen);
	if (!sampler->choose_child || !sampler->drop_chosen)
		return err_set_errno(err, errno, "follow what processes start");
	for (size_t i = 0; i < options->pids_count; i++) {
		uint32_t tgid = (uint32_t)options->pids[i];

		if (bpf_map_update_elem(fd, &tgid, &yes, BPF_ANY))
			return err_set_errno(err, errno, "choose process %u", tgid);
		if (!kill(options->pids[i], 0) || errno != ESRCH)
			running++;
		else /* before drop_chosen could see it: another may get its number */
			bpf_map_delete_elem(fd, &tgid);
	}
	if (!running)
		return err_set(err, ERR_NOT_FOUND, "sample processes: none of them is running");
	return 0;
}

/* 0, or -errno. */
static int attach_to_clock(struct sampler *sampler, struct perf_clock *clock)
{
	const struct sample_bpf *skeleton = sampler->skeleton;
	struct bpf_program *program = skeleton->rodata->has_loop
					      ? skeleton->progs.sample_cpu
					      : skeleton->progs.sample_by_pointer;

	clock->link = bpf_program__attach_perf_event(program, clock->fd);
	if (!clock->link)
		return -errno;
	clock->fd = -1; /* the link closes it */
	return 0;
}

static int attach_to_clocks(struct sampler *sampler, struct err *err)
{
	for (size_t i = 0; i < sampler->events.count; i++) {
		int code = attach_to_clock(sampler, &sampler->events.clocks[i]);

		if (code)
			return err_set_errno(err, -code, "attach the BPF program to a perf event");
	}
	return 0;
}

/*
 * How long the machine was suspended, which takes most CPUs offline for a moment: at least, and at
 * most. These differ by the time that this thread waits for a CPU between two looks at the clocks.
 */
static int64_t slept_ns(int64_t *ret_most)
{
	int64_t before_ns = clock_monotonic_ns(), both_ns;
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	both_ns = time.tv_sec * CLOCK_NS_PER_S + time.tv_nsec;
	*ret_most = both_ns - before_ns;
	return both_ns - clock_monotonic_ns();
}

static bool has_cpu(const unsigned *cpus, size_t count, int cpu)
{
	for (size_t i = 0; i < count; i++)
		if ((int)cpus[i] == cpu)
			return true;
	return false;
}

/* Those of CPUs that are, or were, offline. */
static void drop_clocks(struct perf_events *events, const unsigned *online, size_t count, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < events->count; i++) {
		if (all || !has_cpu(online, count, events->clocks[i].cpu))
			bpf_link__destroy(events->clocks[i].link);
		else
			events->clocks[kept++] = events->clocks[i];
	}
	events->count = kept;
}

static void add_clock(struct sampler *sampler, unsigned cpu)
{
	struct perf_events *events = &sampler->events;
	int code;

	for (size_t i = 0; i < events->count; i++)
		if (events->clocks[i].cpu == (int)cpu)
			return;
	code = perf_events_open_cpu(events, cpu, sampler->options.frequency_hz);
	if (code == -ENODEV)
		return; /* went offline again */
	if (!code) {
		code = attach_to_clock(sampler, &events->clocks[events->count - 1]);
		if (code)
			close(events->clocks[--events->count].fd);
	}
	if (code && !sampler->warned)
		log_warn("agent", "a CPU that came online is not sampled", "cpu=%u cause=\"%s\"",
			 cpu, strerrordesc_np(-code));
	sampler->warned = code != 0;
}

void sampler_follow_cpus(struct sampler *sampler)
{
	int64_t most, least = slept_ns(&most);
	unsigned *online;
	struct err err;
	size_t count;

	if (!sampler->attached)
		return;
	online = mem_new_array(unsigned, PERF_EVENTS_CPUS_MAX);
	if (!perf_events_read_online(online, &count, &err)) {
		drop_clocks(&sampler->events, online, count,
			    least - sampler->slept_ns > CLOCK_NS_PER_MS);
		for (size_t i = 0; i < count; i++)
			add_clock(sampler, online[i]);
	}
	sampler->slept_ns = most;
	free(online);
}

/* System calls that change mappings: those that say a protection, and those that do not. */
static const struct {
	const char *name;
	bool has_protection;
} followed_calls[FOLLOWED_CALLS] = {
	{ "sys_exit_mmap", true },	    { "sys_exit_mprotect", true },
	{ "sys_exit_pkey_mprotect", true }, { "sys_exit_munmap", false },
	{ "sys_exit_mremap", false },
};

static bool follow_call(struct sampler *sampler, size_t call)
{
	const struct sample_bpf *skeleton = sampler->skeleton;
	struct err err;
	int fd;

	if (tracepoints_open("syscalls", followed_calls[call].name, &fd, &err)) {
		log_warn("agent", "cannot follow changes of mappings", "cause=\"%s\"", err.message);
		return false;
	}
	sampler->follow_calls[call] = bpf_program__attach_perf_event(
		followed_calls[call].has_protection ? skeleton->progs.follow_protection
						    : skeleton->progs.follow_size,
		fd);
	if (sampler->follow_calls[call])
		return true; /* the link closes fd */
	log_warn("agent", "cannot follow changes of mappings", "cause=\"%s: %s\"",
		 followed_calls[call].name, strerrordesc_np(errno));
	close(fd);
	return false;
}

/* Where this fails the agent reads /proc when the amount of executable memory has changed. */
static void follow(struct sampler *sampler)
{
	struct sample_bpf *skeleton = sampler->skeleton;
	bool all = true;

	if (!skeleton->rodata->has_loop)
		return;
	sampler->follow_exec = bpf_program__attach(skeleton->progs.follow_exec);
	sampler->follow_fork = bpf_program__attach(skeleton->progs.follow_fork);
	for (size_t i = 0; all && i < FOLLOWED_CALLS; i++)
		all = follow_call(sampler, i);
	for (uint32_t i = 0; all && skeleton->rodata->has_vma_iterator && i < SPACE_VERSIONS; i++)
		__atomic_or_fetch(&skeleton->bss->space_versions[i], SPACE_FOLLOWED,
				  __ATOMIC_SEQ_CST);
}

static void stop_following(struct sampler *sampler)
{
	bpf_link__destroy(sampler->follow_exec);
	bpf_link__destroy(sampler->follow_fork);
	bpf_link__destroy(sampler->choose_child);
	bpf_link__destroy(sampler->drop_chosen);
	sampler->follow_exec = sampler->follow_fork = NULL;
	sampler->choose_child = sampler->drop_chosen = NULL;
	for (size_t i = 0; i < FOLLOWED_CALLS; i++) {
		bpf_link__destroy(sampler->follow_calls[i]);
		sampler->follow_calls[i] = NULL;
	}
}

static int take_record(void *context, void *data, size_t len)
{
	struct sampler *sampler = context;

	sampler->options.take(sampler->options.take_context, data, len);
	return 0;
}

static int start(struct sampler *sampler, struct err *err)
{
	int code;

	sampler->cpus = libbpf_num_possible_cpus();
	if (sampler->cpus <= 0)
		return err_set_errno(err, -sampler->cpus, "count the CPUs");
	code = load(sampler, err);
	if (code)
		return code;
	sampler->ring = ring_buffer__new(bpf_map__fd(sampler->skeleton->maps.samples), take_record,
					 sampler, NULL);
	if (!sampler->ring)
		return err_set_errno(err, errno, "map the ring buffer");
	code = choose_processes(sampler, err);
	if (code)
		return code;
	return perf_events_open_cpus(&sampler->events, sampler->options.frequency_hz, err);
}

int sampler_start(const struct sampler_options *options, struct sampler **ret, struct err *err)
{
	struct sampler *sampler = mem_new(struct sampler);
	int code;

	sampler->options = *options;
	libbpf_log_install();
	code = start(sampler, err);
	if (code) {
		sampler_free(sampler);
		return code;
	}
	*ret = sampler;
	return 0;
}

/*
 * Has the program run over all things of its kind, and appends what it writes, unless `written` is
 * NULL; false, with errno, when the kernel refuses.
 */
static bool iterate(struct bpf_program *program, struct strbuf *written)
{
	struct bpf_link *link;
	char some[4096];
	ssize_t len = 0;
	int fd, failed;

	link = bpf_program__attach_iter(program, NULL);
	fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	failed = errno;
	while (fd >= 0 && (len = read(fd, some, sizeof(some))) > 0)
		if (written)
			strbuf_add(written, some, (size_t)len);
	if (len < 0)
		failed = errno;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	errno = failed;
	return fd >= 0 && len == 0;
}

/* Has the program look at all tasks: what it finds comes through the ring buffer. */
static void look_at_running(const struct sampler *sampler)
{
	if (!iterate(sampler->skeleton->progs.follow_running, NULL))
		log_debug("agent", "new processes are noticed at their first sample",
			  "cause=\"%s\"", strerrordesc_np(errno));
}

bool sampler_list_programs(struct sampler *sampler, struct strbuf *ret)
{
	return sampler->skeleton->rodata->has_loop &&
	       iterate(sampler->skeleton->progs.list_programs, ret);
}

void sampler_follow(struct sampler *sampler)
{
	const struct sampler_options *options = &sampler->options;

	follow(sampler);
	if (!sampler->skeleton->rodata->has_loop)
		return;
	for (size_t i = 0; i < options->pids_count; i++) {
		sampler->skeleton->bss->asked_tgid = (uint32_t)options->pids[i];
		look_at_running(sampler);
	}
	if (!options->pids)
		look_at_running(sampler);
}

int sampler_attach(struct sampler *sampler, struct err *err)
{
	sampler->attached = true;
	slept_ns(&sampler->slept_ns);
	return attach_to_clocks(sampler, err);
}

int sampler_fd(const struct sampler *sampler)
{
	return ring_buffer__epoll_fd(sampler->ring);
}

void sampler_drain(struct sampler *sampler)
{
	ring_buffer__consume(sampler->ring);
}

/* A copy of the program's working memory of a CPU; the caller frees it. */
static char *read_scratch(const struct sampler *sampler, int cpu)
{
	const struct bpf_map *scratches = sampler->skeleton->maps.scratches;
	size_t bytes = bpf_map__value_size(scratches);
	char *copy = mem_calloc(1, bytes);

	if (bpf_map_lookup_elem(bpf_map__fd(scratches), &cpu, copy))
		memset(copy, 0, bytes);
	return copy;
}

void sampler_counters(const struct sampler *sampler, struct sample_counters *ret)
{
	*ret = (struct sample_counters){ 0 };
	for (int cpu = 0; cpu < sampler->cpus; cpu++) {
		char *scratch = read_scratch(sampler, cpu);
		const struct sample_counters *one =
			(const void *)(scratch + sampler->skeleton->rodata->counters_at);

		for (size_t i = 0; i < COUNTERS; i++)
			ret->of[i] += one->of[i];
		free(scratch);
	}
}

/* Has the program send what waits, while its clocks do not tick. False: it comes later. */
static bool send_staged(const struct sampler *sampler)
{
	const struct sample_bpf *skeleton = sampler->skeleton;
	struct bpf_test_run_opts run;
	uint64_t cpu;
	int code = 0;

	if (!skeleton->rodata->has_loop)
		return true; /* it never waits */
	/* libbpf refuses what is not zero behind the last field, too. */
	memset(&run, 0, sizeof(run));
	run.sz = sizeof(run);
	run.ctx_in = &cpu;
	run.ctx_size_in = sizeof(cpu);
	for (cpu = 0; cpu < (uint64_t)sampler->cpus && !code; cpu++)
		code = bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.send_staged), &run);
	if (code)
		log_warn("agent", "some samples count with the next frequency", "cause=\"%s\"",
			 strerrordesc_np(-code));
	return !code;
}

/* What the program has not sent yet. It never runs again: it would send the same. */
static void take_staged(struct sampler *sampler)
{
	for (int cpu = 0; cpu < sampler->cpus; cpu++) {
		char *scratch = read_scratch(sampler, cpu);
		const struct staged_samples *staged =
			(const void *)(scratch + sampler->skeleton->rodata->staged_at);

		if (staged->bytes && staged->bytes <= sizeof(staged->samples))
			sampler->options.take(sampler->options.take_context,
					      (const void *)staged->samples, staged->bytes);
		free(scratch);
	}
}

struct sampler_maps sampler_maps(const struct sampler *sampler)
{
	if (!sampler->skeleton->rodata->has_loop)
		return (struct sampler_maps){ .chunks_fd = -1,
					      .first_chunk_fd = -1,
					      .tables_fd = -1 };
	return (struct sampler_maps){ .chunks_fd = bpf_map__fd(sampler->skeleton->maps.chunks),
				      .first_chunk_fd =
					      bpf_map__fd(sampler->skeleton->maps.first_chunk),
				      .tables_fd = bpf_map__fd(sampler->skeleton->maps.tables),
				      .space_versions = sampler->skeleton->bss->space_versions };
}

static void put_part(int parts_fd, const struct space_head *head, uint32_t tgid, uint32_t index,
		     const struct space_mapping *mappings, size_t count)
{
	struct space_part_key key = { tgid, index };
	struct space_part part = { .start_ns = head->start_ns,
				   .exec_id = head->exec_id,
				   .count = (uint32_t)count };

	memcpy(part.mappings, mappings, count * sizeof(*mappings));
	bpf_map_update_elem(parts_fd, &key, &part, BPF_ANY);
}

static uint32_t space_flags(const struct space_mapping *mappings, size_t count)
{
	uint32_t flags = count > SPACE_PROGRAM_MAPPINGS_MAX ? SPACE_CUT : 0;

	for (size_t i = 0; i < count; i++)
		if (!mappings[i].file.inode && !mappings[i].file.device &&
		    mappings[i].start < KERNEL_ADDRESSES)
			flags |= SPACE_HAS_GENERATED;
	return flags;
}

/* What the program keeps of the process holds no longer. */
static void count_up(struct sampler *sampler, uint32_t tgid)
{
	__atomic_add_fetch(&sampler->skeleton->bss->space_versions[tgid & (SPACE_VERSIONS - 1)],
			   SPACE_VERSION_STEP, __ATOMIC_SEQ_CST);
}

void sampler_put_space(struct sampler *sampler, const struct record_head *head,
		       const struct space_mapping *mappings, size_t count)
{
	int spaces_fd = bpf_map__fd(sampler->skeleton->maps.spaces);
	int parts_fd = bpf_map__fd(sampler->skeleton->maps.space_parts);
	uint32_t tgid = head->tgid;
	struct space_head space;
	size_t at = 0;

	/* The program has noted there what the list depends on. */
	if (bpf_map_lookup_elem(spaces_fd, &tgid, &space) ||
	    space.start_ns != head->process_start_ns || space.exec_id != head->exec_id)
		return;
	if (space.parts && !(space.flags & SPACE_STALE))
		return; /* meanwhile the program has read one itself */
	if (space.flags & SPACE_STALE)
		space.executable_pages = 0; /* which they never are: the next sample asks again */
	space.differs_since = 0;
	space.flags = (space.flags & SPACE_HAS_GENERATED) | space_flags(mappings, count);
	space.fingerprint = space.sent = (uint64_t)clock_monotonic_ns(); /* of no other list */
	for (space.parts = 0; at < count && space.parts < SPACE_PARTS_MAX; space.parts++) {
		size_t left = count - at,
		       some = left < SPACE_PART_MAPPINGS ? left : SPACE_PART_MAPPINGS;

		space.firsts[space.parts] = mappings[at].start;
		put_part(parts_fd, &space, tgid, space.parts, mappings + at, some);
		at += some;
	}
	bpf_map_update_elem(spaces_fd, &tgid, &space, BPF_EXIST);
	count_up(sampler, tgid);
}

bool sampler_put_script(struct sampler *sampler, uint32_t tgid, const struct script_process *script)
{
	int fd = bpf_map__fd(sampler->skeleton->maps.script_processes);

	if (!sampler->skeleton->rodata->has_loop || bpf_map_update_elem(fd, &tgid, script, BPF_ANY))
		return false;
	count_up(sampler, tgid);
	return true;
}

bool sampler_put_jvm(struct sampler *sampler, uint32_t tgid, const struct jvm_entry *entry)
{
	int fd = bpf_map__fd(sampler->skeleton->maps.jvm_processes);

	if (!sampler->skeleton->rodata->has_loop || bpf_map_update_elem(fd, &tgid, entry, BPF_ANY))
		return false;
	count_up(sampler, tgid);
	return true;
}

bool sampler_find_jvm(struct sampler *sampler, uint32_t tgid, struct jvm_entry *ret)
{
	return !bpf_map_lookup_elem(bpf_map__fd(sampler->skeleton->maps.jvm_processes), &tgid, ret);
}

void sampler_put_jvm_file(struct sampler *sampler, const struct file_key *key,
			  const struct jvm_file *file)
{
	int fd = bpf_map__fd(sampler->skeleton->maps.jvm_files);

	if (!bpf_map_update_elem(fd, key, file, BPF_ANY))
		__atomic_or_fetch(&sampler->skeleton->bss->jvm_inodes, 1ull << (key->inode & 63),
				  __ATOMIC_SEQ_CST);
}

void sampler_sweep_jvms(struct sampler *sampler)
{
	int fd = bpf_map__fd(sampler->skeleton->maps.jvm_processes);
	uint32_t tgid = 0, next = 0;
	bool is_more = sampler->skeleton->bss->jvm_inodes && !bpf_map_get_next_key(fd, NULL, &tgid);

	for (size_t i = 0; is_more && i < JVM_PROCESSES_MAX; i++) {
		is_more = !bpf_map_get_next_key(fd, &tgid, &next);
		if (kill((pid_t)tgid, 0) && errno == ESRCH)
			bpf_map_delete_elem(fd, &tgid);
		tgid = next;
	}
}

bool sampler_put_code(struct sampler *sampler, uint32_t tgid, const struct code_process *process)
{
	int fd = bpf_map__fd(sampler->skeleton->maps.code_processes);

	if (!sampler->skeleton->rodata->has_loop ||
	    bpf_map_update_elem(fd, &tgid, process, BPF_ANY))
		return false;
	count_up(sampler, tgid);
	return true;
}

void sampler_put_code_line(struct sampler *sampler, const struct code_line_key *key,
			   const struct code_line *line)
{
	int fd = bpf_map__fd(sampler->skeleton->maps.code_lines);

	if (line)
		bpf_map_update_elem(fd, key, line, BPF_ANY);
	else
		bpf_map_delete_elem(fd, key);
}

static uint32_t number_of_code(struct sampler *sampler, uint32_t tgid)
{
	struct code_process process;
	int fd = bpf_map__fd(sampler->skeleton->maps.code_processes);

	return bpf_map_lookup_elem(fd, &tgid, &process) ? 0 : process.number;
}

void sampler_drop_code(struct sampler *sampler, uint32_t tgid, uint32_t number)
{
	if (number_of_code(sampler, tgid) == number)
		bpf_map_delete_elem(bpf_map__fd(sampler->skeleton->maps.code_processes), &tgid);
}

void sampler_drop_script(struct sampler *sampler, uint32_t tgid)
{
	uint32_t number = number_of_code(sampler, tgid);

	if (!(number & CODE_NUMBER_OF_JITDUMP))
		sampler_drop_code(sampler, tgid, number);
	bpf_map_delete_elem(bpf_map__fd(sampler->skeleton->maps.jvm_processes), &tgid);
	bpf_map_delete_elem(bpf_map__fd(sampler->skeleton->maps.script_processes), &tgid);
}

void sampler_ask_for_copies(struct sampler *sampler, uint64_t proof)
{
	uint32_t *lost = sampler->skeleton->bss->lost_copies;

	__atomic_add_fetch(&lost[script_lost_place(proof)], 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&sampler->skeleton->bss->lost_copies_in_all, 1, __ATOMIC_SEQ_CST);
}

static void detach(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->events.count; i++) {
		bpf_link__destroy(sampler->events.clocks[i].link);
		sampler->events.clocks[i].link = NULL;
	}
	sampler->attached = false;
	stop_following(sampler);
}

void sampler_stop(struct sampler *sampler)
{
	detach(sampler);
	sampler_drain(sampler);
	take_staged(sampler);
}

void sampler_set_frequency(struct sampler *sampler, unsigned frequency_hz)
{
	assert(frequency_hz && sampler->attached);
	drop_clocks(&sampler->events, NULL, 0, true);
	sampler_drain(sampler);
	if (send_staged(sampler))
		sampler_drain(sampler);
	sampler->options.frequency_hz = frequency_hz;
	sampler_follow_cpus(sampler); /* it opens a clock for every CPU that has none */
}

void sampler_free(struct sampler *sampler)
{
	if (!sampler)
		return;
	detach(sampler);
	perf_events_close(&sampler->events);
	ring_buffer__free(sampler->ring);
	sample_bpf__destroy(sampler->skeleton);
	free(sampler);
}
