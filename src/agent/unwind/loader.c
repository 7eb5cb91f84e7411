/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/loader.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "agent/unwind/known_binaries.h"
#include "agent/unwind/table_fetch.h"
#include "agent/unwind/table_placer.h"
#include "agent/unwind/unwind_metrics.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#define KEEP_DEFAULT_NS (10 * CLOCK_NS_PER_S)
#define RETRY_FIRST_NS (10 * CLOCK_NS_PER_S)
#define RETRY_DOUBLINGS_MAX 3 /* 80 s */

/*
 * Who found no room is tried again soon while it is asked for, and then makes those go that were
 * unused for a shorter time: it has shown that it is used more often than they are.
 */
#define ROOM_RETRY_FIRST_NS (CLOCK_NS_PER_S / 2)
#define ROOM_KEEP_DIVISOR 10

/* Tables that stacks wait for overtake the first in the queue so many times in a row. */
#define OVERTAKEN_MAX 7u

#define MISSING_SHOWN_MAX 256u
#define WARNINGS_MAX 32 /* in the log, of tables that are not to be had; /metrics has them all */

/* The share of a CPU: a stock of CPU time that fills up by a fifth of the time that passes. */
#define CPU_STOCK_NS (3 * CLOCK_NS_PER_S)
#define CPU_SHARE_DIVISOR 5

/* With more binaries than the first, those unused for longest are forgotten down to the second. */
#define FORGET_ABOVE (UNWIND_BINARIES_MAX / 8 * 7)
#define FORGET_DOWN_TO (UNWIND_BINARIES_MAX / 4 * 3)

struct unwind_loader {
	/* Under the lock. */
	struct metric_collector missing; /* of /metrics */
	struct lock lock;
	struct lock_condition changed;
	struct known_binaries known;
	uint32_t queue[UNWIND_QUEUE_MAX];
	uint32_t queue_count;
	uint32_t overtaken; /* how often the first one was, in a row */
	uint32_t pinned;
	bool busy;
	uint32_t chunks_count; /* that may be asked for */
	int chunk_fds[TABLE_CHUNKS_MAX];

	atomic_bool stop;
	bool started;
	pthread_t thread;

	/* The worker's alone. */
	int64_t keep_ns, job_keep_ns;
	uint32_t warnings;
	struct table_fetch fetch;
	struct table_placer placer;
	int64_t stock_ns; /* of CPU time; negative = overdrawn */
	int64_t stock_at_ns;
	int64_t last_uses_ns[UNWIND_BINARIES_MAX + 1]; /* by owner, for the placer */
};

/* What the worker takes along for one binary. */
struct job {
	uint32_t id;
	struct file_key key;
	struct table_request request;
	struct table_found found;
	bool was_loaded;	    /* once; its file need not be open */
	bool is_in_map;		    /* there is an entry */
	bool is_final, is_closed;   /* nothing will be different; the file was not open */
	enum table_missing missing; /* UNWIND_FAILED; before: as the map says it */
};

void unwind_loader_metrics_register(void)
{
	unwind_metrics_register();
}

const char *unwind_state_name(enum unwind_state state)
{
	static const char *const names[UNWIND_STATES] = { "waiting", "loaded", "empty", "evicted",
							  "failed" };

	return names[state];
}

static uint32_t owner_of(uint32_t id)
{
	return id + 1; /* 0 is TABLE_OWNER_NONE */
}

bool unwind_loader_is_known(struct unwind_loader *loader, const struct file_key *key)
{
	int64_t now_ns = clock_monotonic_ns();
	struct known_binary *binary;
	uint32_t id;
	bool known;

	if (!loader->started)
		return true;
	lock_take(&loader->lock);
	binary = known_find(&loader->known, key, &id);
	known = binary && known_is_settled(binary, now_ns);
	lock_give(&loader->lock);
	return known;
}

bool unwind_loader_hurry(struct unwind_loader *loader, const struct file_key *key)
{
	struct known_binary *binary;
	bool is_waiting;
	uint32_t id;

	lock_take(&loader->lock);
	binary = known_find(&loader->known, key, &id);
	is_waiting = binary && binary->state == UNWIND_WAITING;
	if (is_waiting)
		binary->is_hurried = true;
	lock_give(&loader->lock);
	return is_waiting;
}

/* Under the lock: what stands against one more in the queue, or NULL. */
static struct metric *refusal(const struct unwind_loader *loader, const struct known_binary *known,
			      int fd)
{
	if (fd < 0 && !(known && known->cache_name))
		return &unwind_refused_not_open;
	if (loader->queue_count >= UNWIND_QUEUE_MAX)
		return &unwind_refused_queue;
	if (fd >= 0 && loader->pinned >= UNWIND_PINNED_MAX)
		return &unwind_refused_files;
	if (!known && loader->known.count >= UNWIND_BINARIES_MAX)
		return &unwind_refused_binaries;
	return NULL;
}

static void enqueue(struct unwind_loader *loader, uint32_t id, int fd, const char *build_id,
		    const char *path)
{
	struct known_binary *binary = loader->known.items[id];

	assert(loader->queue_count < UNWIND_QUEUE_MAX);
	assert(id < UNWIND_BINARIES_MAX);
	binary->state = UNWIND_WAITING;
	binary->is_hurried = false;
	binary->fd = fd;
	loader->pinned += fd >= 0;
	if (build_id && build_id[0])
		known_set_text(&binary->build_id, build_id);
	if (path)
		known_set_text(&binary->path, path);
	loader->queue[loader->queue_count++] = id;
	metric_add(&unwind_waiting, 1);
	lock_broadcast(&loader->changed);
}

bool unwind_loader_want(struct unwind_loader *loader, const struct file_key *key, int fd,
			const char *build_id, const char *path)
{
	int64_t now_ns = clock_monotonic_ns();
	struct metric *refused = NULL;
	struct known_binary *binary;
	bool queued = false;
	uint32_t id;

	lock_take(&loader->lock);
	binary = known_find(&loader->known, key, &id);
	if (loader->started && !(binary && known_is_settled(binary, now_ns))) {
		refused = refusal(loader, binary, fd);
		queued = !refused;
		if (queued)
			enqueue(loader, binary ? id : known_add(&loader->known, key), fd, build_id,
				path);
	}
	lock_give(&loader->lock);
	if (!queued && fd >= 0)
		close(fd);
	if (refused)
		metric_add(refused, 1);
	return loader->started && !refused;
}

void unwind_loader_cannot_open(struct unwind_loader *loader, const struct file_key *key,
			       const char *path)
{
	struct known_binary *binary;
	uint32_t id;

	lock_take(&loader->lock);
	binary = known_find(&loader->known, key, &id);
	if (loader->started && !binary && loader->queue_count < UNWIND_QUEUE_MAX &&
	    loader->known.count < UNWIND_BINARIES_MAX)
		enqueue(loader, known_add(&loader->known, key), -1, NULL, path);
	lock_give(&loader->lock);
}

/* The binary when the map has it; worker only. */
static struct known_binary *find_in_map(struct unwind_loader *loader, uint32_t id)
{
	struct known_binary *binary;

	assert(id < UNWIND_BINARIES_MAX);
	lock_take(&loader->lock);
	binary = loader->known.items[id];
	if (binary && !binary->is_in_map)
		binary = NULL;
	lock_give(&loader->lock);
	return binary;
}

/* Reads the unwinder's notes of when it last used the tables. */
static void read_uses(struct unwind_loader *loader)
{
	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++) {
		struct known_binary *binary = find_in_map(loader, id);
		int64_t used_at_ns;

		if (!binary)
			continue;
		used_at_ns = table_placer_used_at_ns(&loader->placer, &binary->key);
		lock_take(&loader->lock);
		binary->used_at_ns = used_at_ns;
		lock_give(&loader->lock);
	}
}

static const int64_t *last_uses(void *context)
{
	struct unwind_loader *loader = context;
	int64_t limit_ns = clock_monotonic_ns() - loader->job_keep_ns;

	read_uses(loader);
	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++) {
		const struct known_binary *binary = find_in_map(loader, id);
		int64_t use_ns = INT64_MAX;

		if (binary && !known_is_vdso(binary))
			use_ns = known_last_use_ns(binary);
		loader->last_uses_ns[owner_of(id)] = use_ns > limit_ns ? INT64_MAX : use_ns;
	}
	return loader->last_uses_ns;
}

static void remove_table(struct unwind_loader *loader, uint32_t id)
{
	struct known_binary *binary = loader->known.items[id];

	assert(id < UNWIND_BINARIES_MAX);
	binary->is_in_map = false;
	table_placer_remove(&loader->placer, &binary->key, owner_of(id));
	metric_add(&unwind_tables, -(binary->state == UNWIND_LOADED));
	metric_add(&unwind_rows, -(int64_t)binary->rows);
	metric_add(&unwind_bytes, -(int64_t)binary->bytes);
}

static void evict(void *context, uint32_t owner)
{
	struct unwind_loader *loader = context;
	struct known_binary *binary;

	assert(owner != TABLE_OWNER_NONE);
	binary = loader->known.items[owner - 1];
	remove_table(loader, owner - 1);
	lock_take(&loader->lock);
	binary->state = UNWIND_EVICTED;
	binary->rows = binary->bytes = 0;
	lock_give(&loader->lock);
	metric_add(&unwind_evictions, 1);
}

static struct slice vdso_image(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = image;
	const Elf64_Phdr *segments;
	uint64_t bytes;

	if (!image)
		return (struct slice){ 0 };
	segments = (const Elf64_Phdr *)((const char *)image + header->e_phoff);
	bytes = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;
	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_offset + segments[i].p_filesz > bytes)
			bytes = segments[i].p_offset + segments[i].p_filesz;
	return slice_from(image, bytes);
}

/* Nothing that may change: the file is what it is. */
static bool is_final(int code)
{
	return code == -ERR_INVALID || code == -ERR_UNSUPPORTED || code == -ERR_LIMIT;
}

/* There is no table, and the map says why. */
static enum unwind_state fail(struct unwind_loader *loader, struct job *job,
			      enum table_missing missing, int code)
{
	struct err err;

	job->is_final = is_final(code);
	job->is_closed = code == -ERR_NOT_FOUND;
	if (!job->is_in_map || job->missing != missing)
		job->is_in_map |=
			!table_placer_put_missing(&loader->placer, &job->key, missing, &err);
	job->missing = missing;
	return UNWIND_FAILED;
}

static enum unwind_state load(struct unwind_loader *loader, struct job *job, struct err *err)
{
	int code = table_fetch_get(&loader->fetch, &job->request, &job->found, err);

	if (!code && job->found.file.header.segments_count) {
		code = table_placer_put(&loader->placer, &job->key, owner_of(job->id),
					&job->found.file, err);
		if (code == -ERR_NO_MEMORY || code == -ERR_LIMIT)
			return fail(loader, job, TABLE_MISSING_NO_ROOM, code);
		job->is_in_map |= !code;
		return code ? fail(loader, job, TABLE_MISSING_FAILED, code) : UNWIND_LOADED;
	}
	if (code == -ERR_NOT_FOUND && job->was_loaded)
		return UNWIND_EVICTED;
	if (code && (job->found.is_elf || !is_final(code)))
		return fail(loader, job, TABLE_MISSING_FAILED, code);
	if (!code)
		err->message[0] = '\0';
	code = table_placer_put_missing(&loader->placer, &job->key,
					code ? TABLE_MISSING_NO_ELF : TABLE_NOT_MISSING, err);
	job->is_in_map |= !code;
	return code ? UNWIND_FAILED : UNWIND_EMPTY;
}

static void count_outcome(const struct known_binary *binary)
{
	switch (binary->state) {
	case UNWIND_LOADED:
		metric_add(&unwind_tables, 1);
		metric_add(&unwind_rows, (int64_t)binary->rows);
		metric_add(&unwind_bytes, (int64_t)binary->bytes);
		metric_add(&unwind_reloads, binary->loads > 1);
		break;
	case UNWIND_EMPTY:
		metric_add(&unwind_empty, 1);
		break;
	default:
		metric_add(&unwind_failures, 1);
	}
}

/*
 * Once for each file; not of one that may have room in a moment, nor of one that nobody could open,
 * of which there are many where programs end soon.
 */
static void tell_failure(struct unwind_loader *loader, struct known_binary *binary, bool is_closed)
{
	bool is_for_now = known_is_homeless(binary) && binary->failures < 2;

	if (binary->is_told || is_for_now || is_closed || atomic_load(&loader->stop) ||
	    loader->warnings == WARNINGS_MAX)
		return;
	loader->warnings++;
	binary->is_told = true;
	log_warn("agent", "no unwind table: stacks through this file are truncated",
		 "path=\"%s\" reason=\"%s\"%s", binary->path ? binary->path : "",
		 binary->reason ? binary->reason : "",
		 loader->warnings == WARNINGS_MAX
			 ? " further=\"see firn_agent_unwind_missing in /metrics\""
			 : "");
}

static void note_failure(struct unwind_loader *loader, struct known_binary *binary,
			 const struct job *job, int64_t now_ns)
{
	int64_t first_ns =
		job->missing == TABLE_MISSING_NO_ROOM ? ROOM_RETRY_FIRST_NS : RETRY_FIRST_NS;

	binary->missing = job->missing;
	binary->retry_at_ns = now_ns + (first_ns << binary->failures);
	if (job->is_final)
		binary->retry_at_ns = INT64_MAX;
	if (job->is_closed)
		binary->retry_at_ns = now_ns; /* as soon as somebody has it open */
	if (binary->failures < RETRY_DOUBLINGS_MAX)
		binary->failures++;
	tell_failure(loader, binary, job->is_closed);
}

static void note_load(struct known_binary *binary, const struct table_file *file)
{
	binary->bytes = table_placer_bytes(file);
	binary->rows = file->header.rows_count;
	binary->sources = file->header.sources;
	binary->used_at_ns = 0;
	binary->failures = 0;
	binary->missing = TABLE_NOT_MISSING;
	binary->loads++;
}

/* What the job brought becomes what everybody sees. */
static void settle(struct unwind_loader *loader, const struct job *job, enum unwind_state state,
		   const struct err *err)
{
	struct known_binary *binary = loader->known.items[job->id];
	int64_t now_ns = clock_monotonic_ns();

	lock_take(&loader->lock);
	binary->state = state;
	binary->settled_at_ns = now_ns;
	binary->is_in_map = job->is_in_map;
	if (job->found.build_id[0])
		known_set_text(&binary->build_id, job->found.build_id);
	if (job->found.name[0])
		known_set_text(&binary->cache_name, job->found.name);
	if (job->found.build_ns)
		binary->build_ns = job->found.build_ns;
	binary->cached = job->found.cached;
	metric_add(&unwind_waiting, -1);
	known_set_text(&binary->reason, state == UNWIND_LOADED ? NULL : err->message);
	for (; loader->chunks_count < loader->placer.chunks.count; loader->chunks_count++)
		loader->chunk_fds[loader->chunks_count] =
			loader->placer.chunks.chunks[loader->chunks_count]->fd;
	if (state == UNWIND_FAILED)
		note_failure(loader, binary, job, now_ns);
	else if (state == UNWIND_EVICTED)
		known_set_text(&binary->cache_name, NULL);
	else if (state == UNWIND_LOADED)
		note_load(binary, &job->found.file);
	count_outcome(binary);
	lock_give(&loader->lock);
}

static void work(struct unwind_loader *loader, struct job *job)
{
	struct err err = { 0 };
	enum unwind_state state;

	loader->job_keep_ns = loader->keep_ns;
	if (job->missing == TABLE_MISSING_NO_ROOM)
		loader->job_keep_ns /= ROOM_KEEP_DIVISOR;
	state = load(loader, job, &err);
	settle(loader, job, state, &err);
	if (loader->fetch.cache)
		metric_set(&unwind_cache_bytes, (int64_t)table_cache_bytes(loader->fetch.cache));
	log_debug("agent", "unwind table", "state=%s path=\"%s\" reason=\"%s\"",
		  unwind_state_name(state), job->request.path, err.message);
	table_found_close(&job->found);
}

/* When thousands of different binaries have run: those unused for longest are heard of no more. */
static void forget_some(struct unwind_loader *loader)
{
	uint32_t *ids = mem_new_array(uint32_t, UNWIND_BINARIES_MAX);
	uint32_t count, forgettable;

	read_uses(loader);
	lock_take(&loader->lock);
	count = loader->known.count - FORGET_DOWN_TO;
	forgettable = known_list_forgettable(&loader->known, ids);
	if (count > forgettable)
		count = forgettable;
	for (uint32_t i = 0; i < count; i++)
		if (loader->known.items[ids[i]]->is_in_map)
			remove_table(loader, ids[i]);
	known_forget(&loader->known, ids, count);
	lock_give(&loader->lock);
	free(ids);
}

static int64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

static void wait_until(struct unwind_loader *loader, int64_t at_ns)
{
	lock_wait_until(&loader->changed, &loader->lock, at_ns);
}

static void fill_stock(struct unwind_loader *loader, int64_t now_ns)
{
	loader->stock_ns += (now_ns - loader->stock_at_ns) / CPU_SHARE_DIVISOR;
	loader->stock_at_ns = now_ns;
	if (loader->stock_ns > CPU_STOCK_NS)
		loader->stock_ns = CPU_STOCK_NS;
}

/*
 * Asks again for tables that found no room and that the unwinder has looked for
 * since. Returns when the next ones are due.
 */
static int64_t ask_for_room(struct unwind_loader *loader, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;

	lock_assert_held(&loader->lock);
	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++) {
		struct known_binary *binary = loader->known.items[id];

		if (!binary || !known_is_homeless(binary))
			continue;
		if (now_ns >= binary->retry_at_ns) {
			if (loader->queue_count < UNWIND_QUEUE_MAX &&
			    table_placer_used_at_ns(&loader->placer, &binary->key) >
				    binary->settled_at_ns) {
				enqueue(loader, id, -1, NULL, NULL);
				continue;
			}
			binary->retry_at_ns = now_ns + ROOM_RETRY_FIRST_NS;
		}
		if (binary->retry_at_ns < next_ns)
			next_ns = binary->retry_at_ns;
	}
	return next_ns;
}

/* Waits until there is work and CPU time for it; false when stopping. */
static bool wait_for_work(struct unwind_loader *loader)
{
	bool paused = false;

	assert(loader->queue_count <= UNWIND_QUEUE_MAX);
	lock_assert_held(&loader->lock);
	while (!atomic_load(&loader->stop)) {
		int64_t now_ns = clock_monotonic_ns();

		fill_stock(loader, now_ns);
		if (!loader->queue_count) {
			int64_t next_ns = ask_for_room(loader, now_ns);

			if (loader->queue_count)
				continue;
			if (next_ns == INT64_MAX)
				lock_wait(&loader->changed, &loader->lock);
			else
				wait_until(loader, next_ns);
			continue;
		}
		if (loader->stock_ns > 0)
			return true;
		metric_add(&unwind_pauses, !paused);
		paused = true;
		wait_until(loader, now_ns - loader->stock_ns * CPU_SHARE_DIVISOR + CLOCK_NS_PER_MS);
	}
	return false;
}

/* Where in the queue the next one is. */
static uint32_t find_next(const struct unwind_loader *loader)
{
	for (uint32_t i = 0; loader->overtaken < OVERTAKEN_MAX && i < loader->queue_count; i++)
		if (loader->known.items[loader->queue[i]]->is_hurried)
			return i;
	return 0;
}

static uint32_t take_next(struct unwind_loader *loader)
{
	uint32_t at = find_next(loader), id = loader->queue[at];

	assert(loader->queue_count > 0);
	loader->overtaken = at ? loader->overtaken + 1 : 0;
	loader->queue_count--;
	memmove(loader->queue + at, loader->queue + at + 1,
		(loader->queue_count - at) * sizeof(loader->queue[0]));
	return id;
}

/* Under the lock. What the job borrows of the binary stays as it is while the binary waits. */
static struct job take_job(struct unwind_loader *loader)
{
	uint32_t id = take_next(loader);
	struct known_binary *binary = loader->known.items[id];
	struct job job = {
		.id = id,
		.key = binary->key,
		.request = { .fd = binary->fd,
			     .path = binary->path ? binary->path : "",
			     .name = binary->cache_name ? binary->cache_name : "" },
		.was_loaded = binary->cache_name || binary->loads,
		.is_in_map = binary->is_in_map,
		.missing = binary->missing,
	};

	if (known_is_vdso(binary))
		job.request.image = vdso_image();
	binary->fd = -1;
	return job;
}

static void *run(void *data)
{
	struct unwind_loader *loader = data;

	/* At the process's priority: what waits for us has cut stacks, and the stock bounds us. */
	lock_take(&loader->lock);
	while (wait_for_work(loader)) {
		int64_t start_ns = thread_cpu_ns();
		struct job job = take_job(loader);
		bool crowded;

		crowded = loader->known.count > FORGET_ABOVE;
		loader->busy = true;
		lock_give(&loader->lock);
		if (crowded)
			forget_some(loader);
		work(loader, &job);
		lock_take(&loader->lock);
		if (job.request.fd >= 0) {
			close(job.request.fd);
			loader->pinned--;
		}
		loader->stock_ns -= thread_cpu_ns() - start_ns;
		loader->busy = false;
		lock_broadcast(&loader->changed);
	}
	lock_give(&loader->lock);
	return NULL;
}

bool unwind_loader_wait_idle(struct unwind_loader *loader, int64_t timeout_ns)
{
	int64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
	bool idle;

	lock_take(&loader->lock);
	while ((loader->queue_count || loader->busy) && clock_monotonic_ns() < deadline_ns)
		wait_until(loader, deadline_ns);
	idle = !loader->queue_count && !loader->busy;
	lock_give(&loader->lock);
	return idle;
}

size_t unwind_loader_describe(struct unwind_loader *loader, struct unwind_binary *ret, size_t max)
{
	size_t count = 0;

	assert(ret || !max);
	lock_take(&loader->lock);
	for (uint32_t id = 0; count < max && id < UNWIND_BINARIES_MAX; id++)
		if (loader->known.items[id])
			known_describe(loader->known.items[id], &ret[count++]);
	lock_give(&loader->lock);
	for (size_t i = 0; i < count; i++)
		if (ret[i].state == UNWIND_LOADED)
			ret[i].used_at_ns = table_placer_used_at_ns(&loader->placer, &ret[i].key);
	return count;
}

bool unwind_loader_find(struct unwind_loader *loader, const struct file_key *key,
			struct binary_tables *ret)
{
	return loader->started && !bpf_map_lookup_elem(loader->placer.tables_fd, key, ret);
}

int unwind_loader_chunk_fd(struct unwind_loader *loader, uint32_t index)
{
	int fd;

	lock_take(&loader->lock);
	fd = index < loader->chunks_count ? loader->chunk_fds[index] : -1;
	lock_give(&loader->lock);
	return fd;
}

/* The files without a table, and why, for /metrics. */
static void render_missing(void *context, struct strbuf *out)
{
	struct unwind_loader *loader = context;
	uint32_t shown = 0;

	metrics_add_family(out, "firn_agent_unwind_missing", "gauge",
			   "Files without an unwind table, and why.");
	lock_take(&loader->lock);
	for (uint32_t id = 0; shown < MISSING_SHOWN_MAX && id < UNWIND_BINARIES_MAX; id++) {
		const struct known_binary *binary = loader->known.items[id];

		if (!binary || binary->state != UNWIND_FAILED || !binary->path)
			continue;
		shown++;
		strbuf_add_text(out, "firn_agent_unwind_missing{path=\"");
		metrics_add_label_value(out, slice_of(binary->path));
		strbuf_add_text(out, "\",reason=\"");
		metrics_add_label_value(out, slice_of(binary->reason));
		strbuf_add_text(out, "\"} 1\n");
	}
	lock_give(&loader->lock);
}

static void open_cache(struct unwind_loader *loader, const struct unwind_loader_options *options)
{
	struct err err;

	if (options->cache_path && options->cache_path[0] &&
	    table_cache_open(options->cache_path, options->cache_bytes, &loader->fetch.cache, &err))
		log_warn("agent", "unwind tables are not cached on disk", "reason=\"%s\"",
			 err.message);
}

static int start_thread(struct unwind_loader *loader, struct err *err)
{
	int failed;

	enqueue(loader, known_add(&loader->known, &FILE_KEY_VDSO), -1, NULL, "[vdso]");
	loader->stock_ns = CPU_STOCK_NS;
	loader->stock_at_ns = clock_monotonic_ns();
	failed = pthread_create(&loader->thread, NULL, run, loader);
	if (failed)
		return err_set_errno(err, failed, "start the thread that loads unwind tables");
	pthread_setname_np(loader->thread, "firn-unwind");
	loader->started = true;
	return 0;
}

static struct unwind_loader *loader_new(const struct unwind_loader_options *options)
{
	struct unwind_loader *loader = mem_new(struct unwind_loader);

	lock_init(&loader->lock, "unwind_loader", LOCK_AGENT + 3);
	lock_condition_init(&loader->changed);
	loader->keep_ns = options->keep_ns ? options->keep_ns : KEEP_DEFAULT_NS;
	loader->fetch.cancel = &loader->stop;
	loader->placer = (struct table_placer){ .tables_fd = options->tables_fd,
						.space_versions = options->space_versions,
						.last_uses = last_uses,
						.evict = evict,
						.context = loader };
	table_chunks_init(&loader->placer.chunks, options->chunks_fd, options->first_chunk_fd,
			  options->arena_bytes ? options->arena_bytes : UNWIND_ARENA_DEFAULT_BYTES);
	return loader;
}

int unwind_loader_start(const struct unwind_loader_options *options, struct unwind_loader **ret,
			struct err *err)
{
	struct unwind_loader *loader = loader_new(options);
	int code = 0;

	loader->missing = (struct metric_collector){ .render = render_missing, .context = loader };
	metrics_add_collector(&loader->missing);
	if (options->chunks_fd >= 0 && options->tables_fd >= 0) {
		open_cache(loader, options);
		code = start_thread(loader, err);
	}
	if (code) {
		unwind_loader_free(loader);
		return code;
	}
	*ret = loader;
	return 0;
}

static void stop_thread(struct unwind_loader *loader)
{
	lock_take(&loader->lock);
	atomic_store(&loader->stop, true);
	lock_broadcast(&loader->changed);
	lock_give(&loader->lock);
	pthread_join(loader->thread, NULL);
}

/* The gauges count what is there: of this loader nothing is any more. */
static void take_back_gauges(const struct unwind_loader *loader)
{
	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++) {
		const struct known_binary *binary = loader->known.items[id];

		if (!binary)
			continue;
		metric_add(&unwind_tables, -(binary->state == UNWIND_LOADED));
		metric_add(&unwind_rows, -(int64_t)binary->rows);
		metric_add(&unwind_bytes, -(int64_t)binary->bytes);
		metric_add(&unwind_waiting, -(binary->state == UNWIND_WAITING));
	}
	metric_add(&unwind_chunk_bytes, -(int64_t)loader->placer.chunks.count * TABLE_CHUNK_BYTES);
}

void unwind_loader_free(struct unwind_loader *loader)
{
	if (!loader)
		return;
	metrics_remove_collector(&loader->missing);
	if (loader->started)
		stop_thread(loader);
	known_check(&loader->known);
	take_back_gauges(loader);
	known_binaries_free(&loader->known);
	table_chunks_fini(&loader->placer.chunks);
	table_cache_close(loader->fetch.cache);
	lock_condition_free(&loader->changed);
	lock_free(&loader->lock);
	free(loader);
}
