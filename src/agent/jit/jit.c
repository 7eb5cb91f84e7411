/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/jit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/jit/code_files.h"
#include "agent/jit/code_reader.h"
#include "agent/jit/jit_metrics.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"

#define INTERVAL_MIN_NS (200 * CLOCK_NS_PER_MS)
#define INTERVAL_MAX_NS (10 * CLOCK_NS_PER_S)
#define INTERVAL_MAX_WITHOUT_FILES_NS (60 * CLOCK_NS_PER_S)
#define REST_FACTOR 20	 /* at most a twentieth of the time is spent on one process */
#define SHARE_DIVISOR 20 /* ... and on all together, after a burst */
#define UNUSED_KEEP_NS (300 * CLOCK_NS_PER_S) /* of processes that live */
#define STUCK_NS (10 * CLOCK_NS_PER_S)
#define STUCK_MAX 4
#define STOP_NS (2 * CLOCK_NS_PER_S)
#define WANTED_MAX 64 /* addresses of code whose images are looked for at once */
#define PUTS_BURST_NS (JIT_PUTS_MAX * JIT_PUT_NS)
#define PUTS_MIN 1024 /* looking for lines to put is worth it for so many */

/* The files of one process: the worker's while they are read. */
struct files {
	struct process_identity identity;
	struct code_reader perf_map, jitdump;
	struct code_rows rows; /* of the jitdump */
	struct code_map_builder builder;
	struct code_map *map; /* the last one built */
	struct code_images images;
	uint64_t *wanted; /* addresses of code without a name */
	size_t wanted_count;
	enum frame_kind runtime;
	bool is_stuck;	 /* one is where a file system does not answer */
	uint64_t mapped; /* that is being read (jit_note); the worker has a copy */
	uint64_t looked; /* the same when all mappings were last gone through; 0 = not yet */
};

struct entry {
	struct process_identity identity;
	struct code_map *map; /* the drain thread's; may be NULL, like all maps here */
	struct code_image_set *images;
	bool is_noted; /* since the last jit_settle */
	int64_t used_at_ns;
	uint32_t number;       /* of its lines in the kernel; 0 = there are none */
	bool is_left_by_other; /* its code: it has no lines */

	/* Under the lock. */
	struct files *files;	/* NULL = given up */
	struct code_map *fresh; /* newer than `map` */
	struct code_image_set *fresh_images;
	bool is_fresh;				  /* there is something newer */
	const struct code_image_set *told_images; /* the last; to be compared only */
	uint64_t *wanted;
	size_t wanted_count, wanted_capacity;
	enum frame_kind runtime;
	size_t bytes; /* of the newest map and the rows */
	size_t lines; /* of rows */
	size_t open_files;
	bool has_files;	 /* some were found */
	bool queued;	 /* or being read */
	bool unknown;	 /* an address without a name since it was last queued */
	bool forgotten;	 /* the worker frees it */
	uint64_t mapped; /* see jit_note */
	int64_t read_at_ns, read_again_at_ns, interval_ns;
	struct entry *next; /* in the queue */
};

struct worker {
	struct jit *jit;
	pthread_t thread;
	/* Under the lock. */
	bool busy;	       /* reading or closing files */
	struct entry *reading; /* NULL while it closes those of a forgotten one */
	int64_t began_at_ns;
	bool abandoned; /* nobody waits for it: what it reads is its own to free */
	bool ended;
};

struct jit {
	struct entry **entries; /* the drain thread's, like the map */
	size_t count, capacity;
	struct idmap map; /* by identity */
	int64_t swept_at_ns;
	size_t bytes_max;
	struct root_files *files; /* a reference */
	struct jit_program program;
	uint32_t numbers;	     /* of processes with lines, so far */
	int64_t puts_ns, puts_at_ns; /* a stock: JIT_PUT_NS for each line; negative = overdrawn */

	struct lock lock; /* guards what follows */
	struct lock_condition work, idle;
	struct entry *first, *last; /* the queue */
	struct worker *worker;	    /* NULL = none is needed, or can be had */
	size_t bytes, open_files, lines;
	int64_t stock_ns, stock_at_ns; /* of CPU time for reading; negative = overdrawn */
	unsigned stuck;
	unsigned users; /* of this memory: the owner, and each worker */
	bool stopping;

	int news_fd; /* readable when there is something for jit_update; -1 = it tells nothing */
};

static void files_free(struct files *files)
{
	if (!files)
		return;
	code_reader_fini(&files->perf_map);
	code_reader_fini(&files->jitdump);
	code_rows_fini(&files->rows);
	code_map_builder_free(&files->builder);
	code_map_unref(files->map);
	code_images_fini(&files->images);
	free(files->wanted);
	free(files);
}

static void entry_free(struct entry *entry)
{
	files_free(entry->files);
	code_map_unref(entry->map);
	code_map_unref(entry->fresh);
	code_image_set_unref(entry->images);
	code_image_set_unref(entry->fresh_images);
	free(entry->wanted);
	free(entry);
}

static struct entry *entry_new(const struct jit *jit, const struct process_identity *identity,
			       bool is_code, int64_t now_ns)
{
	struct entry *entry = mem_new(struct entry);
	struct files *files = mem_new(struct files);

	code_reader_init(&files->perf_map, CODE_PERF_MAP);
	code_reader_init(&files->jitdump, CODE_JITDUMP);
	files->jitdump.rows = jit->program.put_line ? &files->rows : NULL;
	files->identity = *identity;
	files->runtime = FRAME_NATIVE;
	entry->identity = *identity;
	entry->files = files;
	entry->runtime = FRAME_NATIVE;
	entry->interval_ns = INTERVAL_MIN_NS;
	/* Most processes that end soon make no code, but have odd addresses in their stacks. */
	entry->read_again_at_ns = now_ns + (is_code ? 0 : INTERVAL_MIN_NS);
	return entry;
}

/* A jitdump is among the files that are mapped; with those that were there, so was none. */
static bool must_look_at_mappings(const struct files *files)
{
	return !files->mapped || files->mapped != files->looked || files->jitdump.inode;
}

/*
 * True when others are known now. Of a process that ends meanwhile those stay that were known: its
 * memory cannot be read any more.
 */
static bool read_images(const struct jit *jit, struct files *files)
{
	struct process_memory process = { (int)files->identity.pid };
	struct memory_reader memory = process_memory_reader(&process);
	struct code_image_set *before = code_image_set_ref(files->images.set);
	struct code_memory_range ranges[WANTED_MAX];
	bool is_new;
	size_t count = code_files_find_memory(&files->identity, files->wanted, files->wanted_count,
					      ranges);

	code_images_update(&files->images, &memory, ranges, count, jit->bytes_max / 4,
			   files->jitdump.rows);
	is_new = files->images.set != before;
	if (!code_files_is_there(&files->identity)) {
		code_images_fini(&files->images);
		files->images.set = before;
		before = NULL;
		is_new = false;
	}
	code_image_set_unref(before);
	return is_new;
}

/*
 * One turn, without the lock. True when there is more to read; *ret_cpu_ns is what other processes
 * took for it.
 */
static bool read_files(const struct jit *jit, struct files *files, bool keep_open,
		       int64_t *ret_cpu_ns)
{
	struct code_files_wish wish = {
		.perf_map = &files->perf_map,
		.jitdump = &files->jitdump,
		.look_at_mappings = must_look_at_mappings(files),
	};
	struct code_files found;
	struct code_map *map;
	size_t dropped;
	bool more;

	*ret_cpu_ns = 0;
	/* They need not wait for files, which the next turn reads. */
	if ((files->images.count || files->wanted_count) && read_images(jit, files))
		return false;
	if (code_files_open(jit->files, &files->identity, &wish, &found)) {
		/* Else those opened before are left. */
		code_reader_adopt(&files->perf_map, &found.perf_map);
		code_reader_adopt(&files->jitdump, &found.jitdump);
		if (wish.look_at_mappings) {
			files->runtime = found.runtime;
			files->looked = found.is_stuck ? 0 : files->mapped;
		}
		*ret_cpu_ns = found.cpu_ns;
		metric_add(&jit_stuck, found.is_stuck && !files->is_stuck);
		files->is_stuck = found.is_stuck;
	}
	more = code_reader_read(&files->perf_map, &files->builder, files->map);
	if (files->builder.count < CODE_MAP_ADDED_MAX)
		more |= code_reader_read(&files->jitdump, &files->builder, files->map);
	if (files->builder.count) {
		map = code_map_build(&files->builder, files->map, &dropped);
		code_map_unref(files->map);
		files->map = map;
		metric_add(&jit_entries_dropped, (int64_t)dropped);
	}
	code_map_builder_free(&files->builder);
	if (!keep_open || files->perf_map.is_copy)
		code_reader_close(&files->perf_map);
	if (!keep_open || files->jitdump.is_copy)
		code_reader_close(&files->jitdump);
	return more;
}

/* The functions from here to `drop_user` are called with the lock held. */

static void queue(struct jit *jit, struct entry *entry)
{
	lock_assert_held(&jit->lock);
	entry->queued = true;
	entry->unknown = false;
	entry->next = NULL;
	if (jit->first)
		jit->last->next = entry;
	else
		jit->first = entry;
	jit->last = entry;
	lock_signal(&jit->work);
}

static struct entry *take_first(struct jit *jit)
{
	struct entry *entry = jit->first;

	jit->first = entry->next;
	return entry;
}

static void plan_next(struct entry *entry, int64_t now_ns, int64_t spent_ns)
{
	int64_t max_ns = entry->has_files ? INTERVAL_MAX_NS : INTERVAL_MAX_WITHOUT_FILES_NS;

	if (now_ns - entry->read_at_ns > 2 * entry->interval_ns)
		entry->interval_ns = INTERVAL_MIN_NS;
	else
		entry->interval_ns *= 2;
	if (entry->interval_ns < spent_ns * REST_FACTOR)
		entry->interval_ns = spent_ns * REST_FACTOR;
	if (entry->interval_ns > max_ns)
		entry->interval_ns = max_ns;
	entry->read_at_ns = now_ns;
	entry->read_again_at_ns = now_ns + entry->interval_ns;
}

static void tell_news(const struct jit *jit)
{
	const uint64_t one = 1;
	ssize_t written = write(jit->news_fd, &one, sizeof(one));

	(void)written; /* it cannot fail but where it is readable already */
}

static void publish(struct jit *jit, struct entry *entry)
{
	struct files *files = entry->files;
	size_t bytes =
		code_map_bytes(files->map) + code_rows_bytes(&files->rows) + files->images.bytes;
	size_t open_files = (size_t)(files->perf_map.fd >= 0) + (size_t)(files->jitdump.fd >= 0);
	bool is_new;

	lock_assert_held(&jit->lock);
	if (files->map != entry->map && files->map != entry->fresh) {
		code_map_unref(entry->fresh);
		entry->fresh = code_map_ref(files->map);
	}
	is_new = files->images.set != entry->told_images;
	code_image_set_unref(entry->fresh_images);
	entry->fresh_images = code_image_set_ref(files->images.set);
	entry->told_images = files->images.set;
	entry->is_fresh = true;
	if (jit->news_fd >= 0 && (files->rows.is_changed || is_new))
		tell_news(jit);
	jit->bytes += bytes - entry->bytes;
	jit->open_files += open_files - entry->open_files;
	jit->lines += files->rows.count - entry->lines;
	entry->lines = files->rows.count;
	entry->bytes = bytes;
	entry->open_files = open_files;
	entry->runtime = files->runtime;
	entry->has_files = files->perf_map.inode || files->jitdump.inode || files->images.found;
}

/* With the lock held. */
static void take_wanted(struct entry *entry)
{
	free(entry->files->wanted);
	entry->files->wanted = entry->wanted;
	entry->files->wanted_count = entry->wanted_count;
	entry->wanted = NULL;
	entry->wanted_count = entry->wanted_capacity = 0;
}

/* Reads an entry's files; false when the worker was abandoned over it. */
static bool read_entry(struct worker *worker, struct entry *entry)
{
	struct jit *jit = worker->jit;
	struct files *files = entry->files;
	bool keep_open = jit->open_files < JIT_OPEN_MAX;
	bool more = false, room = jit->bytes < jit->bytes_max;
	int64_t began_at_ns = clock_monotonic_ns(), now_ns, cpu_ns = 0;

	worker->began_at_ns = began_at_ns;
	worker->busy = true;
	worker->reading = entry;
	files->mapped = entry->mapped;
	take_wanted(entry);
	code_rows_begin(&files->rows, entry->lines + JIT_LINES_MAX - jit->lines);
	lock_give(&jit->lock);
	if (room)
		more = read_files(jit, files, keep_open, &cpu_ns);
	now_ns = clock_monotonic_ns();
	metric_add(&jit_reads, 1);
	metric_add(&jit_read_seconds, now_ns - began_at_ns);
	lock_take(&jit->lock);
	worker->busy = false;
	worker->reading = NULL;
	if (worker->abandoned) {
		lock_give(&jit->lock);
		files_free(files);
		lock_take(&jit->lock);
		return false;
	}
	jit->stock_ns -= cpu_ns;
	publish(jit, entry);
	plan_next(entry, now_ns, now_ns - began_at_ns);
	entry->queued = false;
	if (more || entry->forgotten) {
		bool unknown = entry->unknown;

		queue(jit, entry);
		entry->unknown = unknown;
	}
	return true;
}

/* Closing a file can take as long as reading it. False as above. */
static bool free_entry(struct worker *worker, struct entry *entry)
{
	struct jit *jit = worker->jit;

	jit->bytes -= entry->bytes;
	jit->open_files -= entry->open_files;
	jit->lines -= entry->lines;
	worker->began_at_ns = clock_monotonic_ns();
	worker->busy = true;
	lock_give(&jit->lock);
	entry_free(entry);
	lock_take(&jit->lock);
	worker->busy = false;
	return !worker->abandoned;
}

/* The last one frees what no worker came to: that may be a worker which was stuck. */
static void drop_user(struct jit *jit)
{
	bool last;

	lock_take(&jit->lock);
	last = !--jit->users;
	lock_give(&jit->lock);
	if (!last)
		return;
	while (jit->first)
		entry_free(take_first(jit));
	root_files_unref(jit->files);
	lock_free(&jit->lock);
	lock_condition_free(&jit->work);
	lock_condition_free(&jit->idle);
	if (jit->news_fd >= 0)
		close(jit->news_fd);
	free(jit);
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

/* How long until there is CPU time for another reading; 0 = now. */
static int64_t until_stock_ns(struct jit *jit)
{
	int64_t now_ns = clock_monotonic_ns();

	lock_assert_held(&jit->lock);
	jit->stock_ns += (now_ns - jit->stock_at_ns) / SHARE_DIVISOR;
	jit->stock_at_ns = now_ns;
	if (jit->stock_ns > JIT_BURST_NS)
		jit->stock_ns = JIT_BURST_NS;
	return jit->stock_ns > 0 ? 0 : (1 - jit->stock_ns) * SHARE_DIVISOR;
}

/* Waits for an entry and for CPU time to read it; NULL when it is time to stop. */
static struct entry *wait_for_entry(struct jit *jit)
{
	while (true) {
		int64_t wait_ns = 0;

		if (jit->first && !jit->first->forgotten && !jit->stopping)
			wait_ns = until_stock_ns(jit);
		if (jit->first && !wait_ns)
			return take_first(jit);
		if (!jit->first && jit->stopping)
			return NULL;
		if (jit->first)
			lock_wait_until(&jit->work, &jit->lock, clock_monotonic_ns() + wait_ns);
		else
			lock_wait(&jit->work, &jit->lock);
	}
}

static void *work_loop(void *data)
{
	struct worker *worker = data;
	struct jit *jit = worker->jit;
	bool go_on = true;

	lock_take(&jit->lock);
	while (go_on) {
		struct entry *entry = wait_for_entry(jit);
		int64_t began_ns = cpu_ns();

		if (!entry)
			break;
		go_on = entry->forgotten ? free_entry(worker, entry) : read_entry(worker, entry);
		jit->stock_ns -= cpu_ns() - began_ns;
		if (!jit->first)
			lock_broadcast(&jit->idle);
	}
	worker->ended = true;
	lock_broadcast(&jit->idle);
	go_on = worker->abandoned; /* the owner frees it otherwise, once it has ended */
	lock_give(&jit->lock);
	if (go_on)
		free(worker);
	drop_user(jit);
	return NULL;
}

/* With the lock held. */
static void start_worker(struct jit *jit)
{
	struct worker *worker = mem_new(struct worker);

	lock_assert_held(&jit->lock);
	worker->jit = jit;
	if (pthread_create(&worker->thread, NULL, work_loop, worker)) {
		free(worker);
		return; /* tried again with the next reading */
	}
	pthread_setname_np(worker->thread, "firn-jit");
	jit->worker = worker;
	jit->users++;
}

/* With the lock held: its rows are not being made now. */
static bool is_at_rest(const struct jit *jit, const struct entry *entry)
{
	return entry->files && (!jit->worker || jit->worker->reading != entry);
}

struct putting {
	const struct jit *jit;
	uint32_t number;
};

static void put_line(void *context, uint64_t number, const struct code_line *line)
{
	const struct putting *putting = context;
	const struct jit_program *program = &putting->jit->program;
	struct code_line_key key = { .line = number, .number = putting->number };

	program->put_line(program->context, &key, line);
}

static int64_t puts_stock_ns(struct jit *jit)
{
	int64_t now_ns = clock_monotonic_ns();

	jit->puts_ns += now_ns - jit->puts_at_ns;
	jit->puts_at_ns = now_ns;
	if (jit->puts_ns > PUTS_BURST_NS)
		jit->puts_ns = PUTS_BURST_NS;
	return jit->puts_ns;
}

/* With the lock held, and the entry at rest. */
static void put_changes(struct jit *jit, struct entry *entry, size_t max)
{
	struct putting putting = { jit, entry->number };
	size_t count = code_rows_take_changes(&entry->files->rows, max, put_line, &putting);

	jit->puts_ns -= (int64_t)count * JIT_PUT_NS;
}

/* With the lock held, and the entry at rest if it has lines. */
static void drop_lines(struct jit *jit, struct entry *entry)
{
	lock_assert_held(&jit->lock);
	if (!entry->number)
		return;
	jit->program.drop_process(jit->program.context, entry->identity.pid, entry->number);
	if (entry->files) {
		code_rows_forget(&entry->files->rows);
		code_rows_forget_blocks(&entry->files->rows);
		put_changes(jit, entry, SIZE_MAX);
	}
	entry->number = 0;
}

/* The same: its code is left in another way. */
static void stop_lines(struct jit *jit, struct entry *entry)
{
	drop_lines(jit, entry);
	jit->lines -= entry->lines;
	entry->lines = 0;
	entry->is_left_by_other = true;
	entry->files->jitdump.rows = NULL;
	entry->files->jitdump.has_rows = false;
	code_rows_fini(&entry->files->rows);
}

/* With the lock held: what is new goes to the kernel. */
static void take_lines(struct jit *jit, struct entry *entry)
{
	uint32_t number =
		entry->number ? entry->number : (jit->numbers + 1) | CODE_NUMBER_OF_JITDUMP;

	lock_assert_held(&jit->lock);
	if (!is_at_rest(jit, entry) || entry->is_left_by_other || !entry->files->rows.is_changed ||
	    puts_stock_ns(jit) < PUTS_MIN * JIT_PUT_NS)
		return;
	if (!entry->number &&
	    !jit->program.put_process(jit->program.context, &entry->identity, number)) {
		stop_lines(jit, entry);
		return;
	}
	jit->numbers += !entry->number;
	entry->number = number;
	put_changes(jit, entry, (size_t)(jit->puts_ns / JIT_PUT_NS));
}

/* With the lock held: whether it is still so that the process has lines. */
static void renew_lines(struct jit *jit, struct entry *entry)
{
	if (entry->number && is_at_rest(jit, entry) &&
	    !jit->program.put_process(jit->program.context, &entry->identity, entry->number))
		stop_lines(jit, entry);
}

/* With the lock held: leaves the worker to itself, and its process without names. */
static void abandon_worker(struct jit *jit)
{
	struct worker *worker = jit->worker;
	struct entry *entry = worker->reading;

	lock_assert_held(&jit->lock);
	worker->abandoned = true;
	pthread_detach(worker->thread);
	jit->worker = NULL;
	if (!entry)
		return;
	entry->files = NULL;
	entry->queued = false;
	if (entry->forgotten)
		queue(jit, entry);
}

/* With the lock held. */
static void look_after_worker(struct jit *jit, int64_t now_ns)
{
	struct worker *worker = jit->worker;
	struct entry *reading = worker ? worker->reading : NULL;

	lock_assert_held(&jit->lock);
	if (worker && worker->busy && now_ns - worker->began_at_ns > STUCK_NS) {
		log_warn("jit", "reading names of generated code took too long: given up", "pid=%u",
			 reading ? (unsigned)reading->identity.pid : 0);
		abandon_worker(jit);
		if (reading) /* without what is the worker's now: its lines stay, and are not used
			      */
			drop_lines(jit, reading);
		jit->stuck++;
		metric_add(&jit_stuck, 1);
	}
	if (!jit->worker && jit->first && jit->stuck < STUCK_MAX)
		start_worker(jit);
}

struct jit *jit_new(uint64_t memory_bytes, struct root_files *files,
		    const struct jit_program *program)
{
	struct jit *jit = mem_new(struct jit);
	size_t share = (size_t)(memory_bytes / 1024);

	jit->bytes_max = share > JIT_BYTES_MAX ? JIT_BYTES_MAX : share;
	if (share < JIT_BYTES_MIN)
		jit->bytes_max = JIT_BYTES_MIN;

	lock_init(&jit->lock, "jit", LOCK_AGENT + 6);
	lock_condition_init(&jit->work);
	lock_condition_init(&jit->idle);
	jit->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	jit->files = root_files_ref(files);
	if (program)
		jit->program = *program;
	jit->users = 1;
	jit->stock_ns = JIT_BURST_NS;
	jit->puts_ns = PUTS_BURST_NS;
	jit->stock_at_ns = jit->puts_at_ns = clock_monotonic_ns();
	return jit;
}

/* With the lock held: the worker frees it, as closing files may take its time. */
static void forget(struct jit *jit, struct entry *entry)
{
	lock_assert_held(&jit->lock);
	entry->forgotten = true;
	if (!entry->queued)
		queue(jit, entry);
}

void jit_free(struct jit *jit)
{
	int64_t deadline_ns = clock_monotonic_ns() + STOP_NS;
	struct worker *worker;
	bool late = false;

	if (!jit)
		return;
	root_files_stop(jit->files);
	lock_take(&jit->lock);
	for (size_t i = 0; i < jit->count; i++)
		forget(jit, jit->entries[i]);
	jit->stopping = true;
	look_after_worker(jit, clock_monotonic_ns());
	lock_signal(&jit->work);
	worker = jit->worker;
	while (worker && !worker->ended && !late)
		late = !lock_wait_until(&jit->idle, &jit->lock, deadline_ns);
	if (worker && !worker->ended) {
		abandon_worker(jit);
		worker = NULL;
	}
	lock_give(&jit->lock);
	if (worker)
		pthread_join(worker->thread, NULL);
	free(worker);
	free(jit->entries);
	idmap_free(&jit->map);
	drop_user(jit);
}

static uint64_t hash_identity(const struct process_identity *identity)
{
	return hash_mix(hash_mix(identity->start_ns, identity->pid), identity->exec_id);
}

static bool same_identity(const void *context, uint32_t id, const void *key)
{
	const struct jit *jit = context;
	const struct process_identity *have = &jit->entries[id]->identity, *wanted = key;

	return have->pid == wanted->pid && have->start_ns == wanted->start_ns &&
	       have->exec_id == wanted->exec_id;
}

static struct entry *find_entry(struct jit *jit, const struct process_identity *identity)
{
	uint32_t id = idmap_find(&jit->map, hash_identity(identity), same_identity, jit, identity);

	return id == IDMAP_NONE ? NULL : jit->entries[id];
}

static void add_entry(struct jit *jit, struct entry *entry)
{
	mem_grow(jit->entries, jit->count, jit->capacity);
	idmap_add(&jit->map, hash_identity(&entry->identity), (uint32_t)jit->count);
	jit->entries[jit->count++] = entry;
}

/* With the lock held. */
static void take_fresh(struct jit *jit, struct entry *entry)
{
	lock_assert_held(&jit->lock);
	take_lines(jit, entry);
	if (!entry->is_fresh)
		return;
	if (entry->fresh) {
		code_map_unref(entry->map);
		entry->map = entry->fresh;
		entry->fresh = NULL;
	}
	code_image_set_unref(entry->images);
	entry->images = entry->fresh_images;
	entry->fresh_images = NULL;
	entry->is_fresh = false;
}

/* A name that the process has told last. */
static bool find_place(const struct entry *entry, uint64_t address, struct code_place *ret)
{
	return code_image_set_find(entry->images, address, ret) ||
	       code_map_find(entry->map, address, ret);
}

/* With the lock held. */
static void want(struct entry *entry, const struct jit_address *address)
{
	entry->unknown = true;
	if (!address->is_code || entry->wanted_count == WANTED_MAX)
		return;
	mem_grow(entry->wanted, entry->wanted_count, entry->wanted_capacity);
	entry->wanted[entry->wanted_count++] = address->address;
}

void jit_note(struct jit *jit, const struct process_identity *identity,
	      const struct jit_address *address, int64_t now_ns)
{
	struct entry *entry = find_entry(jit, identity);
	struct code_place place;

	if (!entry && jit->count == JIT_PROCESSES_MAX)
		return;
	if (!entry) {
		entry = entry_new(jit, identity, address->is_code, now_ns);
		add_entry(jit, entry);
	}
	entry->used_at_ns = now_ns;
	entry->is_noted = true;
	if (find_place(entry, address->address, &place))
		return;
	lock_take(&jit->lock);
	take_fresh(jit, entry);
	if (entry->files && !find_place(entry, address->address, &place)) {
		want(entry, address);
		entry->mapped = address->mapped;
		if (!entry->queued && now_ns >= entry->read_again_at_ns)
			queue(jit, entry);
		look_after_worker(jit, now_ns);
	}
	lock_give(&jit->lock);
}

int jit_fd(const struct jit *jit)
{
	return jit->news_fd;
}

void jit_update(struct jit *jit)
{
	uint64_t count;

	if (read(jit->news_fd, &count, sizeof(count)) != sizeof(count))
		return;
	lock_take(&jit->lock);
	for (size_t i = 0; i < jit->count; i++)
		take_fresh(jit, jit->entries[i]);
	lock_give(&jit->lock);
}

/* With the lock held. */
static bool is_read_at_end(const struct entry *entry)
{
	if (!entry->files || entry->queued)
		return false;
	/* Another image may have come to the place of one. */
	if (entry->images && entry->is_noted)
		return true;
	return entry->unknown && (entry->has_files || !entry->read_at_ns);
}

void jit_settle(struct jit *jit, int64_t timeout_ns)
{
	int64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
	bool late = false;

	lock_take(&jit->lock);
	for (size_t i = 0; i < jit->count; i++) {
		struct entry *entry = jit->entries[i];

		if (is_read_at_end(entry))
			queue(jit, entry);
		entry->is_noted = false;
	}
	look_after_worker(jit, clock_monotonic_ns());
	while (jit->worker && (jit->first || jit->worker->busy) && !late)
		late = !lock_wait_until(&jit->idle, &jit->lock, deadline_ns);
	for (size_t i = 0; i < jit->count; i++) {
		take_fresh(jit, jit->entries[i]);
		renew_lines(jit, jit->entries[i]);
	}
	metric_set(&jit_unwinding_lines, (int64_t)jit->lines);
	lock_give(&jit->lock);
}

bool jit_find(struct jit *jit, const struct process_identity *identity, uint64_t address,
	      struct code_name *ret, struct slice *ret_raw)
{
	struct entry *entry = find_entry(jit, identity);
	struct code_place place;
	enum frame_kind runtime;
	bool is_wasm = entry && code_image_set_find(entry->images, address, &place);

	if (!is_wasm && (!entry || !code_map_find(entry->map, address, &place))) {
		metric_add(&jit_not_found, 1);
		return false;
	}
	*ret_raw = place.name;
	metric_add(&jit_found, 1);
	if (is_wasm) {
		*ret = (struct code_name){ .kind = FRAME_WASM,
					   .function = wasm_image_function(place.name) };
		return true;
	}
	lock_take(&jit->lock);
	runtime = entry->runtime;
	lock_give(&jit->lock);
	code_name_parse(&place, runtime, ret);
	return true;
}

bool jit_keeps_pointer(struct jit *jit, const struct process_identity *identity, uint64_t address,
		       bool is_innermost)
{
	const struct entry *entry = find_entry(jit, identity);

	return entry && code_image_set_is_framed(entry->images, address, is_innermost);
}

static int by_use(const void *a, const void *b)
{
	const struct entry *first = *(struct entry *const *)a, *second = *(struct entry *const *)b;

	return (first->used_at_ns < second->used_at_ns) - (first->used_at_ns > second->used_at_ns);
}

/*
 * True if an entry may go. One that is not needed goes after a while although there is a process of
 * its number: that may be another one, or have called exec since.
 */
static bool is_over(const struct jit *jit, const struct entry *entry, int64_t now_ns)
{
	if (now_ns - entry->used_at_ns >= UNUSED_KEEP_NS)
		return true;
	return entry->used_at_ns < jit->swept_at_ns && kill((pid_t)entry->identity.pid, 0) &&
	       errno == ESRCH;
}

/* Else the next time. Lines cannot be taken back while they are being made. */
static bool can_forget(struct jit *jit, const struct entry *entry)
{
	return !entry->number || !entry->files ||
	       (is_at_rest(jit, entry) && puts_stock_ns(jit) > 0);
}

void jit_sweep(struct jit *jit, int64_t now_ns)
{
	size_t count = jit->count, kept_bytes = 0;

	if (count)
		qsort(jit->entries, count, sizeof(*jit->entries), by_use);
	idmap_clear(&jit->map);
	jit->count = 0;
	lock_take(&jit->lock);
	for (size_t i = 0; i < count; i++) {
		struct entry *entry = jit->entries[i];

		bool goes = is_over(jit, entry, now_ns) ||
			    kept_bytes + entry->bytes > jit->bytes_max / 4 * 3;

		if (goes && can_forget(jit, entry)) {
			drop_lines(jit, entry);
			forget(jit, entry);
			continue;
		}
		kept_bytes += entry->bytes;
		add_entry(jit, entry);
	}
	look_after_worker(jit, now_ns);
	metric_set(&jit_map_bytes, (int64_t)jit->bytes);
	lock_give(&jit->lock);
	jit->swept_at_ns = now_ns;
	metric_set(&jit_processes, (int64_t)jit->count);
}
