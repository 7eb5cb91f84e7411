/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/sources/symbol_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "server/resolve/table/spill.h"
#include "server/resolve/worker/symbol_worker.h"

#define SUFFIX ".symbols"
#define HALF_SUFFIX ".half" /* not yet whole */
#define SHARD_CHARS 2
#define TRIES_MAX 2 /* after the first */

static METRIC_COUNTER(built, "firn_resolve_tables_built_total", "", "Symbol tables built.");
static METRIC_COUNTER(build_ns, "firn_resolve_build_seconds_total", "",
		      "Time spent building symbol tables.");
static METRIC_COUNTER(reused, "firn_resolve_tables_reused_total", "",
		      "Symbol tables opened from disk instead of built.");
static METRIC_COUNTER(dropped, "firn_resolve_tables_dropped_total", "",
		      "Symbol tables deleted: over the budget, damaged or of another version.");
static METRIC_GAUGE(kept_bytes, "firn_resolve_tables_bytes", "", "Symbol tables on disk.");

struct symbol_store {
	char *path; /* NULL: nothing is kept */
	uint64_t budget_bytes;
	struct lock lock; /* for the rest, and for deleting files */
	uint64_t bytes;	  /* of all tables */
	uint64_t made;	  /* names of files that are not yet whole */
};

/* A file that is kept. */
struct kept_file {
	char *path;
	uint64_t bytes;
	int64_t used_ns;
};

struct kept_list {
	struct kept_file *items;
	size_t count, capacity;
};

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &built, &build_ns, &reused, &dropped,
						  &kept_bytes };

	build_ns.scale = 1e-9;
	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	symbol_worker_init();
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(name + len - suffix_len, suffix);
}

/* Notes the tables of one shard; removes files that a crash left half made. */
static void list_shard(const char *path, struct kept_list *list)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		struct strbuf name = { 0 };
		struct stat st;

		strbuf_addf(&name, "%s/%s", path, entry->d_name);
		if (has_suffix(entry->d_name, HALF_SUFFIX)) {
			unlink(strbuf_text(&name));
		} else if (has_suffix(entry->d_name, SUFFIX) && !stat(strbuf_text(&name), &st)) {
			mem_grow(list->items, list->count, list->capacity);
			list->items[list->count++] = (struct kept_file){
				.path = mem_strndup(name.data, name.len),
				.bytes = (uint64_t)st.st_size,
				.used_ns = st.st_mtim.tv_sec * CLOCK_NS_PER_S + st.st_mtim.tv_nsec,
			};
		}
		strbuf_free(&name);
	}
	if (directory)
		closedir(directory);
}

static struct kept_list list_files(const struct symbol_store *store)
{
	struct kept_list list = { 0 };
	DIR *directory = opendir(store->path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		struct strbuf shard = { 0 };

		if (strlen(entry->d_name) != SHARD_CHARS || entry->d_name[0] == '.')
			continue;
		strbuf_addf(&shard, "%s/%s", store->path, entry->d_name);
		list_shard(strbuf_text(&shard), &list);
		strbuf_free(&shard);
	}
	if (directory)
		closedir(directory);
	return list;
}

static void free_list(struct kept_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
}

int symbol_store_open(const char *path, uint64_t budget_bytes, struct symbol_store **ret,
		      struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct symbol_store *store;
	struct kept_list list;

	pthread_once(&once, register_metrics);
	if (path && mkdir(path, 0700) && errno != EEXIST)
		return err_set_errno(err, errno, "make the folder \"%s\" for symbol tables", path);
	store = mem_new(struct symbol_store);
	store->budget_bytes = budget_bytes;
	lock_init(&store->lock, "symbol_store", LOCK_RESOLVE + 1);
	if (path) {
		store->path = mem_strndup(path, strlen(path));
		list = list_files(store);
		for (size_t i = 0; i < list.count; i++)
			store->bytes += list.items[i].bytes;
		free_list(&list);
		metric_set(&kept_bytes, (int64_t)store->bytes);
	}
	*ret = store;
	return 0;
}

void symbol_store_close(struct symbol_store *store)
{
	if (!store)
		return;
	lock_free(&store->lock);
	free(store->path);
	free(store);
}

static char *path_of(const struct symbol_store *store, struct slice build_id)
{
	struct strbuf path = { 0 };
	char *copy;

	strbuf_addf(&path, "%s/%.*s/%.*s" SUFFIX, store->path, SHARD_CHARS, build_id.data,
		    (int)build_id.len - SHARD_CHARS, build_id.data + SHARD_CHARS);
	copy = mem_strndup(path.data, path.len);
	strbuf_free(&path);
	return copy;
}

/* Under the lock. */
static void remove_file(struct symbol_store *store, const char *path, uint64_t bytes)
{
	if (unlink(path))
		return;
	store->bytes -= bytes < store->bytes ? bytes : store->bytes;
	metric_set(&kept_bytes, (int64_t)store->bytes);
	metric_add(&dropped, 1);
}

/* The table that is kept, or NULL; what cannot be used is deleted. */
static struct symbol_table *load(struct symbol_store *store, const char *path,
				 struct slice build_id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct symbol_table *table = NULL;
	struct stat st = { .st_size = 0 };
	struct err err = { 0 };
	int status;

	if (fd < 0)
		return NULL;
	status = symbol_table_open(fd, path, &table, &err);
	if (!status && !slice_is(build_id, table->info.build_id)) {
		status =
			err_set(&err, ERR_CORRUPT, "open symbol table \"%s\": it is of build id %s",
				path, table->info.build_id);
		symbol_table_free(table);
		table = NULL;
	}
	if (!status) {
		futimens(fd, NULL); /* used now */
	} else {
		log_warn("resolver", "stored symbol table is unusable; it is built again",
			 "cause=\"%s\"", err.message);
		fstat(fd, &st);
		lock_take(&store->lock);
		remove_file(store, path, (uint64_t)st.st_size);
		lock_give(&store->lock);
	}
	close(fd);
	return table;
}

static bool has_source(const struct symbol_table *table, const struct symbol_source *source)
{
	for (uint32_t i = 0; i < table->sources_count; i++)
		if (table->sources[i].bytes == source->bytes &&
		    table->sources[i].kind == source->kind)
			return true;
	return false;
}

bool symbol_store_is_news(const struct symbol_table *table, int fd, enum symbol_input_kind kind)
{
	const struct symbol_input input = { .fd = fd, .name = "", .kind = kind };
	struct symbol_source source;

	return !symbol_reader_source(&input, &source, NULL) && !has_source(table, &source);
}

/* True if all files that there are went into the table. */
static bool has_all(const struct symbol_table *table, const struct symbol_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		if (symbol_store_is_news(table, sources->inputs[i].fd, sources->inputs[i].kind))
			return false;
	return true;
}

static bool is_worse(const struct symbol_table *table, const struct symbol_table *than)
{
	if (table->origin != than->origin)
		return table->origin < than->origin;
	return table->debug_bytes < than->debug_bytes;
}

/*
 * What went wrong over its debug information may go right: in another version of firn, or because
 * the host was busy or short of memory.
 */
static bool may_try_again(const struct symbol_table *kept)
{
	return *kept->note && (kept->maker != symbol_table_maker() || kept->tries < TRIES_MAX);
}

static void make_room(struct symbol_store *store, const char *keep)
{
	struct kept_list list;

	if (store->bytes <= store->budget_bytes)
		return;
	list = list_files(store);
	while (store->bytes > store->budget_bytes) {
		struct kept_file *oldest = NULL;

		for (size_t i = 0; i < list.count; i++)
			if (list.items[i].bytes && strcmp(list.items[i].path, keep) &&
			    (!oldest || list.items[i].used_ns < oldest->used_ns))
				oldest = &list.items[i];
		if (!oldest)
			break;
		remove_file(store, oldest->path, oldest->bytes);
		oldest->bytes = 0;
	}
	free_list(&list);
}

/* Puts a whole file in the place of what is kept. */
static void put(struct symbol_store *store, const char *half, const char *path)
{
	struct stat was = { .st_size = 0 }, is;

	lock_take(&store->lock);
	if (stat(path, &was))
		was.st_size = 0;
	if (stat(half, &is) || rename(half, path)) {
		log_warn("resolver", "cannot store a symbol table", "file=\"%s\" cause=\"%s\"",
			 path, strerrordesc_np(errno));
		unlink(half);
	} else {
		store->bytes += (uint64_t)is.st_size;
		store->bytes -=
			(uint64_t)was.st_size < store->bytes ? (uint64_t)was.st_size : store->bytes;
		make_room(store, path);
		metric_set(&kept_bytes, (int64_t)store->bytes);
	}
	lock_give(&store->lock);
}

/* The file that a table is made in; *ret_half is its name, or NULL when it has none. */
static int open_half(struct symbol_store *store, struct slice build_id, char **ret_half,
		     struct err *err)
{
	struct strbuf path = { 0 };
	uint64_t number;
	int fd;

	*ret_half = NULL;
	if (!store->path)
		return spill_file(P_tmpdir, err);
	lock_take(&store->lock);
	number = ++store->made;
	lock_give(&store->lock);
	strbuf_addf(&path, "%s/%.*s", store->path, SHARD_CHARS, build_id.data);
	if (mkdir(strbuf_text(&path), 0700) && errno != EEXIST) {
		fd = err_set_errno(err, errno, "make the folder \"%s\"", strbuf_text(&path));
		strbuf_free(&path);
		return fd;
	}
	strbuf_addf(&path, "/%llu" HALF_SUFFIX, (unsigned long long)number);
	fd = open(strbuf_text(&path), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		fd = err_set_errno(err, errno, "make the file \"%s\"", strbuf_text(&path));
	else
		*ret_half = mem_strndup(path.data, path.len);
	strbuf_free(&path);
	return fd;
}

/* Makes a table; when it is better than what is kept (may be NULL), it takes its place. */
static int build(struct symbol_store *store, struct slice build_id, const char *path,
		 const struct symbol_sources *sources, const struct symbol_table *kept,
		 uint8_t tries, const _Atomic bool *cancelled, struct symbol_table **ret,
		 struct err *err)
{
	struct symbol_limits limits = symbol_limits_default;
	int64_t start_ns = clock_monotonic_ns();
	struct symbol_table *table = NULL;
	char *half;
	int fd = open_half(store, build_id, &half, err), status;

	if (fd < 0)
		return fd;
	limits.is_for_once = !store->path;
	status = symbol_sources_build(sources, &limits, store->path ? store->path : P_tmpdir,
				      cancelled, fd, err);
	if (!status && tries)
		status = symbol_table_set_tries(fd, tries, err);
	if (!status)
		status = symbol_table_open(fd, "a new one", &table, err);
	close(fd);
	if (!status) {
		metric_add(&built, 1);
		metric_add(&build_ns, clock_monotonic_ns() - start_ns);
	}
	if (!status && kept && is_worse(table, kept)) {
		symbol_table_free(table);
		status = err_set(err, ERR_EXISTS, "a better symbol table is kept");
	}
	if (half && !status)
		put(store, half, path);
	else if (half)
		unlink(half);
	free(half);
	if (!status)
		*ret = table;
	return status;
}

int symbol_store_get(struct symbol_store *store, struct slice build_id,
		     const struct symbol_sources *sources, const _Atomic bool *cancelled,
		     struct symbol_table **ret, struct err *err)
{
	char *path = store->path ? path_of(store, build_id) : NULL;
	struct symbol_table *kept = path ? load(store, path, build_id) : NULL, *table = NULL;
	bool is_retry = kept && sources->count && has_all(kept, sources) && may_try_again(kept);
	uint8_t tries = 0;
	int status = 0;

	if (is_retry && kept->maker == symbol_table_maker())
		tries = (uint8_t)(kept->tries + 1);
	if (!sources->count && !kept)
		status = err_set(err, ERR_NOT_FOUND, "no file with build id %.*s is known here",
				 SLICE_FMT(build_id));
	else if (!kept || is_retry || !has_all(kept, sources))
		status = build(store, build_id, path, sources, kept, tries, cancelled, &table, err);
	else
		metric_add(&reused, 1);
	free(path);
	if (table) {
		symbol_table_free(kept);
		kept = table;
	}
	if (status && !kept)
		return status;
	*ret = kept;
	return 0;
}
