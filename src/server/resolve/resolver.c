/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "codec/elf/elf_inspect.h"
#include "server/resolve/read/debug_files.h"
#include "server/resolve/sources/symbol_store.h"

#define CACHE_BYTES_DEFAULT ((uint64_t)512 << 20)
#define BINARIES_MAX 16384u
#define OFFERS_MAX 512u	   /* descriptors kept open */
#define OFFERS_SEEN_MAX 4u /* of one build id */
#define RETRY_NS (60 * CLOCK_NS_PER_S)

static METRIC_COUNTER(failed, "firn_resolve_tables_failed_total", "",
		      "Files that symbol tables could not be built from.");
static METRIC_COUNTER(evicted, "firn_resolve_tables_evicted_total", "",
		      "Symbol tables unmapped to stay within the cache's budget.");
static METRIC_COUNTER(offers_closed, "firn_resolve_offers_closed_total", "",
		      "Offered files closed again because too many were open.");
static METRIC_COUNTER(not_kept, "firn_resolve_binaries_not_kept_total", "",
		      "Look-ups in binaries that were one too many to remember.");
static METRIC_GAUGE(cache_bytes, "firn_resolve_cache_bytes", "", "Symbol tables that are mapped.");

/* A table with the number of those who use it: its cache entry and running look-ups. */
struct shared_table {
	struct symbol_table *table;
	size_t users;
	_Atomic bool has_missed; /* some address of its code has no symbol */
};

enum binary_state {
	BINARY_NEW,
	BINARY_QUEUED,	 /* for the builder */
	BINARY_BUILDING, /* by some thread; the others wait */
	BINARY_READY,
	BINARY_FAILED,
};

/* What is known of one build id. */
struct binary {
	struct slice build_id; /* owned */
	enum binary_state state;
	bool retry;   /* a new source has come */
	bool is_used; /* since resolver_take_used */
	enum resolve_reason reason;
	char *detail; /* of RESOLVE_BAD_FILE: the error */
	int64_t failed_at_ns;
	struct shared_table *shared;
	uint64_t used_at; /* the resolver's ticks */
	int offer_fd;	  /* -1: none */
	char *offer_path;
	enum elf_quality offer_quality;
	uint64_t offered_at;
	char *wanted_path; /* of the look-up that queued it */
	char *asked_path;  /* of the look-up that it was last built for */
	uint64_t queued_at;
	uint64_t cost_ns, cost_of_ns;
	/* Offers that a table was made of, or would have been had there been no better one. */
	struct symbol_source seen[OFFERS_SEEN_MAX];
	unsigned seen_count;
};

struct resolver {
	char *debuginfo_path, *uploads_path;
	bool local_files, build_ahead, public_files_only;
	uint64_t budget_bytes;
	struct symbol_store *store;
	_Atomic uint64_t version;
	_Atomic bool stopping;
	pthread_t builder;

	struct lock lock;	      /* for all below */
	struct lock_condition built;  /* some binary was settled */
	struct lock_condition queued; /* work for the builder, or its end */
	struct binary **binaries;
	size_t binaries_count, binaries_capacity;
	struct idmap map; /* build id -> binaries */
	uint64_t ticks;
	uint64_t tables_bytes;
	size_t offers_count;
};

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &failed, &evicted, &offers_closed, &not_kept,
						  &cache_bytes };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

/* Gives up one use; the last one frees. */
static void release(struct shared_table *shared)
{
	if (shared && --shared->users == 0) {
		symbol_table_free(shared->table);
		free(shared);
	}
}

static void drop_table(struct resolver *resolver, struct binary *binary)
{
	if (!binary->shared)
		return;
	resolver->tables_bytes -= symbol_table_bytes(binary->shared->table);
	metric_set(&cache_bytes, (int64_t)resolver->tables_bytes);
	release(binary->shared);
	binary->shared = NULL;
}

static void drop_offer(struct resolver *resolver, struct binary *binary)
{
	if (binary->offer_fd < 0)
		return;
	close(binary->offer_fd);
	binary->offer_fd = -1;
	free(binary->offer_path);
	binary->offer_path = NULL;
	resolver->offers_count--;
}

static void free_binary(struct resolver *resolver, struct binary *binary)
{
	drop_table(resolver, binary);
	drop_offer(resolver, binary);
	free(binary->wanted_path);
	free(binary->asked_path);
	free(binary->detail);
	free((char *)binary->build_id.data);
	free(binary);
}

static void resolver_release(struct resolver *resolver)
{
	for (size_t i = 0; i < resolver->binaries_count; i++)
		free_binary(resolver, resolver->binaries[i]);
	free(resolver->binaries);
	idmap_free(&resolver->map);
	symbol_store_close(resolver->store);
	lock_condition_free(&resolver->built);
	lock_condition_free(&resolver->queued);
	lock_free(&resolver->lock);
	free(resolver->debuginfo_path);
	free(resolver->uploads_path);
	free(resolver);
}

static const struct {
	const char *code, *text;
} reasons[RESOLVE_REASONS] = {
	[RESOLVE_OK] = { "ok", "resolved" },
	[RESOLVE_NO_FILE] = { "no_file", "the server has no file with this build ID" },
	[RESOLVE_NO_SYMBOLS] = { "no_symbols",
				 "the file is stripped: it has no names for this code" },
	[RESOLVE_OUTSIDE] = { "outside_file", "the code is not in the file that is here" },
	[RESOLVE_BAD_FILE] = { "bad_file", "the file that is here could not be read" },
	[RESOLVE_NO_BUILD_ID] = { "no_build_id",
				  "the binary has no build ID to find symbols by: link it with "
				  "-Wl,--build-id" },
	[RESOLVE_PENDING] = { "pending", "its symbols are being read" },
};

const char *resolve_reason_code(enum resolve_reason reason)
{
	return reason < RESOLVE_REASONS ? reasons[reason].code : "unknown";
}

const char *resolve_reason_text(enum resolve_reason reason)
{
	return reason < RESOLVE_REASONS ? reasons[reason].text : "unknown";
}

uint64_t resolver_version(const struct resolver *resolver)
{
	return atomic_load(&resolver->version);
}

void resolver_rest(struct resolver *resolver)
{
	lock_take(&resolver->lock);
	for (size_t i = 0; i < resolver->binaries_count; i++)
		if (resolver->binaries[i]->shared)
			symbol_table_rest(resolver->binaries[i]->shared->table);
	lock_give(&resolver->lock);
}

static bool binary_equal(const void *context, uint32_t id, const void *key)
{
	struct binary *const *binaries = context;

	return slice_equal(binaries[id]->build_id, *(const struct slice *)key);
}

static uint64_t hash_of(struct slice text)
{
	return hash_bytes(text.data, text.len);
}

static bool is_busy(const struct binary *binary)
{
	return binary->state == BINARY_QUEUED || binary->state == BINARY_BUILDING;
}

/* Forgets what holds neither a table nor an offer, to make room. */
static void forget_idle(struct resolver *resolver)
{
	size_t kept = 0;

	idmap_clear(&resolver->map);
	for (size_t i = 0; i < resolver->binaries_count; i++) {
		struct binary *binary = resolver->binaries[i];

		if (!is_busy(binary) && !binary->shared && binary->offer_fd < 0) {
			free_binary(resolver, binary);
			continue;
		}
		idmap_add(&resolver->map, hash_of(binary->build_id), (uint32_t)kept);
		resolver->binaries[kept++] = binary;
	}
	resolver->binaries_count = kept;
}

/* Finds or adds; NULL when full. */
static struct binary *binary_of(struct resolver *resolver, struct slice build_id)
{
	struct binary *binary;
	uint32_t id = idmap_find(&resolver->map, hash_of(build_id), binary_equal,
				 resolver->binaries, &build_id);

	if (id != IDMAP_NONE)
		return resolver->binaries[id];
	if (resolver->binaries_count == BINARIES_MAX)
		forget_idle(resolver);
	if (resolver->binaries_count == BINARIES_MAX) {
		metric_add(&not_kept, 1);
		return NULL;
	}
	binary = mem_new(struct binary);
	binary->build_id = slice_from(mem_strndup(build_id.data, build_id.len), build_id.len);
	binary->offer_fd = -1;
	mem_grow(resolver->binaries, resolver->binaries_count, resolver->binaries_capacity);
	idmap_add(&resolver->map, hash_of(build_id), (uint32_t)resolver->binaries_count);
	resolver->binaries[resolver->binaries_count++] = binary;
	return binary;
}

/* Drops the tables used least recently, but for `keep`, until the rest fits. */
static void evict(struct resolver *resolver, const struct binary *keep)
{
	while (resolver->tables_bytes > resolver->budget_bytes) {
		struct binary *oldest = NULL;

		for (size_t i = 0; i < resolver->binaries_count; i++) {
			struct binary *binary = resolver->binaries[i];

			if (binary != keep && binary->state == BINARY_READY &&
			    (!oldest || binary->used_at < oldest->used_at))
				oldest = binary;
		}
		if (!oldest)
			return;
		drop_table(resolver, oldest);
		oldest->state = BINARY_NEW;
		metric_add(&evicted, 1);
	}
}

/* True if an offered file is what it was said to be. */
static bool offer_matches(int fd, const char *name, struct slice build_id)
{
	struct elf_info info;
	struct err err;

	if (elf_read_info(fd, name, &info, &err)) {
		log_warn("resolver", "offered file is unusable", "cause=\"%s\"", err.message);
		return false;
	}
	if (!slice_is(build_id, info.build_id)) {
		log_warn("resolver", "offered file has another build id",
			 "file=\"%s\" build_id=%s wanted=%.*s", name, info.build_id,
			 SLICE_FMT(build_id));
		return false;
	}
	return true;
}

static bool add_upload(const struct resolver *resolver, struct slice build_id, const char *suffix,
		       struct symbol_sources *sources)
{
	int fd = debug_files_open_upload(resolver->uploads_path, build_id, suffix, NULL);

	if (fd >= 0)
		symbol_sources_add(sources, fd, SLICE_LITERAL("an uploaded file"));
	return fd >= 0;
}

/* Takes over offer_fd and offer_name, which may be -1 and NULL. */
static void find_sources(const struct resolver *resolver, struct slice build_id, struct slice path,
			 int offer_fd, char *offer_name, struct symbol_sources *sources)
{
	if (offer_fd >= 0 && offer_matches(offer_fd, offer_name, build_id)) {
		symbol_sources_set_binary(sources, offer_fd, slice_of(offer_name));
		offer_fd = -1;
	} else if (resolver->local_files) {
		int fd = debug_files_open_binary(path, build_id, NULL);

		if (fd >= 0)
			symbol_sources_set_binary(sources, fd, path);
	}
	sources->has_binary |= add_upload(resolver, build_id, "bin", sources);
	add_upload(resolver, build_id, "debug", sources);
	sources->uploads_path = resolver->uploads_path;
	symbol_sources_find(sources, resolver->debuginfo_path, build_id);
	if (offer_fd >= 0)
		close(offer_fd);
	free(offer_name);
}

/* What came of building a table. */
struct outcome {
	enum resolve_reason reason;
	struct symbol_table *table; /* with RESOLVE_OK */
	char *detail;		    /* with RESOLVE_BAD_FILE; owned */
};

/* Everything that takes time, without the lock. */
static struct outcome make_table(const struct resolver *resolver, struct slice build_id,
				 struct slice path, int offer_fd, char *offer_name)
{
	struct symbol_sources sources = { .count = 0 };
	struct outcome outcome = { .reason = RESOLVE_OK };
	struct err err = { 0 };
	int status;

	find_sources(resolver, build_id, path, offer_fd, offer_name, &sources);
	status = symbol_store_get(resolver->store, build_id, &sources, &resolver->stopping,
				  &outcome.table, &err);
	if (status == -ERR_NOT_FOUND) {
		outcome.reason = RESOLVE_NO_FILE;
	} else if (status) {
		outcome.reason = RESOLVE_BAD_FILE;
		outcome.detail = mem_strndup(err.message, strlen(err.message));
		metric_add(&failed, 1);
		log_warn("resolver", "no symbol table", "build_id=%.*s cause=\"%s\"",
			 SLICE_FMT(build_id), err.message);
	} else if (*outcome.table->note) {
		log_warn("resolver", "a symbol table lacks debug information",
			 "build_id=%.*s cause=\"%s\"", SLICE_FMT(build_id), outcome.table->note);
	}
	symbol_sources_close(&sources);
	return outcome;
}

/* Takes over what the outcome owns. */
static void settle(struct resolver *resolver, struct binary *binary, struct outcome *outcome)
{
	/* Frames were answered without names before, or with worse ones. */
	bool is_news = binary->reason != RESOLVE_OK || binary->shared;

	if (outcome->reason == RESOLVE_OK) {
		drop_table(resolver, binary);
		binary->shared = mem_new(struct shared_table);
		*binary->shared = (struct shared_table){ .table = outcome->table, .users = 1 };
		resolver->tables_bytes += symbol_table_bytes(outcome->table);
		metric_set(&cache_bytes, (int64_t)resolver->tables_bytes);
		if (is_news)
			atomic_fetch_add(&resolver->version, 1);
	}
	binary->state = binary->shared ? BINARY_READY : BINARY_FAILED;
	binary->reason = binary->shared ? RESOLVE_OK : outcome->reason;
	free(binary->detail);
	binary->detail = outcome->detail;
	binary->failed_at_ns = clock_monotonic_ns();
	evict(resolver, binary);
	lock_broadcast(&resolver->built);
}

static bool must_build(const struct binary *binary)
{
	if (binary->state == BINARY_NEW || binary->retry)
		return true;
	return binary->state == BINARY_FAILED &&
	       clock_monotonic_ns() - binary->failed_at_ns >= RETRY_NS;
}

/* Lets go of the lock while it builds. */
static void build_binary(struct resolver *resolver, struct binary *binary, struct slice path)
{
	struct outcome outcome;
	char *offer_name = NULL;
	int offer_fd = -1;

	lock_assert_held(&resolver->lock);
	binary->state = BINARY_BUILDING;
	binary->retry = false;
	free(binary->asked_path);
	binary->asked_path = mem_strndup(path.data, path.len);
	if (binary->offer_fd >= 0) {
		offer_fd = fcntl(binary->offer_fd, F_DUPFD_CLOEXEC, 0);
		offer_name = mem_strndup(binary->offer_path, strlen(binary->offer_path));
		binary->offered_at = ++resolver->ticks;
	}
	lock_give(&resolver->lock);
	outcome = make_table(resolver, binary->build_id, path, offer_fd, offer_name);
	lock_take(&resolver->lock);
	settle(resolver, binary, &outcome);
}

static void enqueue(struct resolver *resolver, struct binary *binary, struct slice path)
{
	free(binary->wanted_path);
	binary->wanted_path = mem_strndup(path.data, path.len);
	binary->state = BINARY_QUEUED;
	binary->queued_at = ++resolver->ticks;
	lock_signal(&resolver->queued);
}

/* False when the time is over. */
static bool wait_built(struct resolver *resolver, int64_t until_ns)
{
	if (until_ns != RESOLVE_WAIT_ALWAYS)
		return lock_wait_until(&resolver->built, &resolver->lock, until_ns);
	lock_wait(&resolver->built, &resolver->lock);
	return true;
}

/* Returns when the binary is settled or the time is over; NULL when it cannot be remembered. */
static struct binary *settled_binary(struct resolver *resolver, struct slice build_id,
				     struct slice path, int64_t wait_until_ns, bool wants_best)
{
	struct binary *binary;

	/* While one waits the list may change: look again each time. */
	while ((binary = binary_of(resolver, build_id))) {
		bool build =
			binary->state == BINARY_QUEUED || (!is_busy(binary) && must_build(binary));

		if (build && wait_until_ns == RESOLVE_WAIT_ALWAYS) {
			build_binary(resolver, binary, path);
			return binary;
		}
		if (build && binary->state != BINARY_QUEUED)
			enqueue(resolver, binary, path);
		if (binary->shared && !wants_best)
			return binary; /* what there is, until the better one is made */
		if (!is_busy(binary))
			return binary;
		if (!wait_built(resolver, wait_until_ns))
			return binary_of(resolver, build_id);
	}
	return NULL;
}

static void open_symbols(struct resolver *resolver, struct slice build_id, struct slice path,
			 bool needs_segments, int64_t wait_until_ns, bool wants_best,
			 struct resolver_symbols *ret)
{
	struct binary *binary;

	*ret = (struct resolver_symbols){ .reason = RESOLVE_NO_BUILD_ID };
	if (!debug_files_id_valid(build_id))
		return;
	lock_take(&resolver->lock);
	binary = settled_binary(resolver, build_id, path, wait_until_ns, wants_best);
	if (binary)
		binary->is_used = true;
	if (!binary || (needs_segments && binary->shared && !binary->shared->table->has_binary &&
			!elf_has_offsets(&binary->shared->table->info))) {
		ret->reason = RESOLVE_NO_FILE;
	} else if (!binary->shared) {
		/* New: its table went, or it was forgotten, while this one waited. */
		if (is_busy(binary) || binary->state == BINARY_NEW)
			binary->reason = RESOLVE_PENDING;
		ret->reason = binary->reason;
		if (binary->detail && binary->reason == RESOLVE_BAD_FILE)
			ret->detail = mem_strndup(binary->detail, strlen(binary->detail));
	} else {
		ret->reason = RESOLVE_OK;
		ret->is_provisional = is_busy(binary);
		ret->shared = binary->shared;
		ret->shared->users++;
		ret->texts = symbol_texts_new(ret->shared->table);
		if (*ret->shared->table->note)
			ret->detail = mem_strndup(ret->shared->table->note,
						  strlen(ret->shared->table->note));
		binary->used_at = ++resolver->ticks;
	}
	lock_give(&resolver->lock);
}

void resolver_open(struct resolver *resolver, struct slice build_id, struct slice path,
		   bool needs_segments, int64_t wait_until_ns, struct resolver_symbols *ret)
{
	bool wants_best = wait_until_ns == RESOLVE_WAIT_ALWAYS;

	open_symbols(resolver, build_id, path, needs_segments, wait_until_ns, wants_best, ret);
}

void resolver_open_best(struct resolver *resolver, struct slice build_id, struct slice path,
			bool needs_segments, int64_t wait_until_ns, struct resolver_symbols *ret)
{
	open_symbols(resolver, build_id, path, needs_segments, wait_until_ns, true, ret);
}

void resolver_close(struct resolver *resolver, struct resolver_symbols *symbols)
{
	symbol_texts_free(symbols->texts);
	if (symbols->shared) {
		lock_take(&resolver->lock);
		release(symbols->shared);
		lock_give(&resolver->lock);
	}
	free(symbols->detail);
	*symbols = (struct resolver_symbols){ 0 };
}

static bool is_inside(const struct elf_info *info, uint64_t address)
{
	for (size_t i = 0; i < info->segments_count; i++)
		if (address >= info->segments[i].address &&
		    address - info->segments[i].address < info->segments[i].memory_bytes)
			return true;
	return false;
}

/* Nothing is known of an address: of code, or of none. */
static enum resolve_reason reason_of_miss(const struct resolver_symbols *symbols, uint64_t address)
{
	if (!is_inside(&symbols->shared->table->info, address))
		return RESOLVE_OUTSIDE;
	if (!atomic_load_explicit(&symbols->shared->has_missed, memory_order_relaxed))
		atomic_store(&symbols->shared->has_missed, true);
	return RESOLVE_NO_SYMBOLS;
}

/* The address as the table has it; false, with the reason, when there is nothing to look it up in.
 */
static bool find_in_table(const struct resolver_symbols *symbols, bool is_offset, uint64_t *address,
			  enum resolve_reason *ret_reason)
{
	*ret_reason = symbols->reason;
	if (!symbols->shared)
		return false;
	*ret_reason = RESOLVE_OUTSIDE;
	return !is_offset ||
	       elf_offset_to_address(&symbols->shared->table->info, *address, address);
}

enum resolve_reason resolver_find_lines(const struct resolver_symbols *symbols, uint64_t address,
					bool is_offset,
					struct symbol_line ret_lines[SYMBOL_CHAIN_MAX],
					size_t *ret_count)
{
	enum resolve_reason reason;

	*ret_count = 0;
	if (!find_in_table(symbols, is_offset, &address, &reason))
		return reason;
	*ret_count = symbol_texts_find(symbols->shared->table, address, ret_lines);
	return *ret_count && !ret_lines[*ret_count - 1].is_unnamed
		       ? RESOLVE_OK
		       : reason_of_miss(symbols, address);
}

enum resolve_reason resolver_find(const struct resolver_symbols *symbols, uint64_t address,
				  bool is_offset, struct symbol_line ret_lines[SYMBOL_CHAIN_MAX],
				  size_t *ret_count)
{
	enum resolve_reason reason =
		resolver_find_lines(symbols, address, is_offset, ret_lines, ret_count);

	for (size_t i = 0; i < *ret_count; i++)
		symbol_texts_fill(symbols->texts, &ret_lines[i]);
	return reason;
}

/* True if all that is known of a scope's function is where it is. */
static bool is_unnamed(const struct symbol_table *table, uint32_t scope)
{
	struct symbol_caller function;

	return table->named_count < table->functions.count &&
	       symbol_lookup_scope(table, scope, &function) &&
	       symbol_table_is_unnamed(table, function.function);
}

enum resolve_reason resolver_check(const struct resolver_symbols *symbols, uint64_t address,
				   bool is_offset, bool *ret_is_address)
{
	enum resolve_reason reason;
	struct symbol_location location;

	*ret_is_address = true;
	if (!find_in_table(symbols, is_offset, &address, &reason))
		return reason;
	symbol_lookup_locations(symbols->shared->table, &address, 1, &location);
	if (location.scope == SYMBOL_NONE && !location.line)
		return reason_of_miss(symbols, address);
	*ret_is_address = false;
	return location.scope != SYMBOL_NONE && is_unnamed(symbols->shared->table, location.scope)
		       ? reason_of_miss(symbols, address)
		       : RESOLVE_OK;
}

/* The physical function at an address, by the number of its text and 1; 0: nothing is known. */
static uint64_t function_at(const struct resolver_symbols *symbols, uint64_t address)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	size_t count = symbol_texts_find(symbols->shared->table, address, lines);
	const struct symbol_line *line = count ? &lines[count - 1] : NULL;

	if (!line)
		return 0;
	return 1 + (uint64_t)(line->of.linkage_name ? line->of.linkage_name : line->of.name);
}

/*
 * How far to one side of an address the function goes, in bytes: as far as steps that double find
 * it, then half that, and so on.
 */
static uint64_t reach(const struct resolver_symbols *symbols, uint64_t address, int64_t direction,
		      uint64_t max)
{
	uint64_t function = function_at(symbols, address);
	uint64_t inside = 0, step = 1;
	bool growing = true;

	while (step) {
		uint64_t at = inside + step;
		uint64_t there = direction < 0 ? address - at : address + at;
		bool same = at <= max && function_at(symbols, there) == function;

		if (same)
			inside = at;
		else
			growing = false;
		step = growing ? step * 2 : step / 2;
	}
	return inside;
}

bool resolver_find_extent(const struct resolver_symbols *symbols, uint64_t address,
			  uint64_t bytes_max, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t down = bytes_max < address ? bytes_max : address;
	uint64_t up = bytes_max < UINT64_MAX - 1 - address ? bytes_max : UINT64_MAX - 1 - address;

	if (!symbols->shared || !function_at(symbols, address))
		return false;
	*ret_low = address - reach(symbols, address, -1, down);
	*ret_high = address + reach(symbols, address, 1, up) + 1;
	return true;
}

/* The process may read more than those who ask. */
static bool is_for_everyone(int fd)
{
	struct stat status;

	return !fstat(fd, &status) && status.st_mode & S_IROTH;
}

/* The program as an agent on this host lent it; negative: none did. */
static int open_offered(struct resolver *resolver, struct slice build_id)
{
	struct binary *binary;
	int fd = -1;

	lock_take(&resolver->lock);
	binary = binary_of(resolver, build_id);
	if (binary && binary->offer_fd >= 0)
		fd = fcntl(binary->offer_fd, F_DUPFD_CLOEXEC, 0);
	lock_give(&resolver->lock);
	if (fd >= 0 && !offer_matches(fd, "an offered file", build_id)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int resolver_open_binary(struct resolver *resolver, struct slice build_id, struct slice path,
			 struct err *err)
{
	int fd;

	if (!debug_files_id_valid(build_id))
		return err_set(err, ERR_NOT_FOUND, "the binary has no build id");
	fd = debug_files_open_upload(resolver->uploads_path, build_id, "bin", NULL);
	if (fd >= 0)
		return fd;
	fd = open_offered(resolver, build_id);
	if (fd < 0 && resolver->local_files)
		fd = debug_files_open_binary(path, build_id, NULL);
	if (fd >= 0 && resolver->public_files_only && !is_for_everyone(fd)) {
		close(fd);
		return err_set(err, ERR_DENIED,
			       "some users of this host may not read the program, and no login is "
			       "required "
			       "here (--web-config-file)");
	}
	return fd >= 0 ? fd
		       : err_set(err, ERR_NOT_FOUND,
				 "the program itself is not here; run `firn debuginfo upload %.*s`",
				 (int)(path.len < 512 ? path.len : 512), path.data);
}

bool resolver_is_local(const struct resolver *resolver, struct slice build_id, struct slice path)
{
	int fd = resolver->local_files && debug_files_id_valid(build_id)
			 ? debug_files_open_binary(path, build_id, NULL)
			 : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static struct binary *next_queued(const struct resolver *resolver)
{
	struct binary *next = NULL;

	for (size_t i = 0; i < resolver->binaries_count; i++) {
		struct binary *binary = resolver->binaries[i];

		if (binary->state == BINARY_QUEUED &&
		    (!next || binary->queued_at < next->queued_at))
			next = binary;
	}
	return next;
}

static void *run_builder(void *data)
{
	struct resolver *resolver = data;

	lock_take(&resolver->lock);
	while (!atomic_load(&resolver->stopping)) {
		struct binary *binary = next_queued(resolver);

		if (binary) {
			char *path = binary->wanted_path;

			binary->wanted_path = NULL;
			build_binary(resolver, binary, slice_of(path));
			free(path);
		} else {
			lock_wait(&resolver->queued, &resolver->lock);
		}
	}
	lock_give(&resolver->lock);
	return NULL;
}

static int start_builder(struct resolver *resolver, struct err *err)
{
	sigset_t all, old;
	int error_number;

	sigfillset(&all);
	sigdelset(&all, SIGPROF); /* asks what a thread does */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error_number = pthread_create(&resolver->builder, NULL, run_builder, resolver);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error_number)
		return err_set_errno(err, error_number, "start the thread that reads symbols");
	pthread_setname_np(resolver->builder, "firn-symbols");
	return 0;
}

int resolver_new(const struct resolver_options *options, struct resolver **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct resolver *resolver = mem_new(struct resolver);
	int status;

	pthread_once(&once, register_metrics);
	if (options->debuginfo_path)
		resolver->debuginfo_path =
			mem_strndup(options->debuginfo_path, strlen(options->debuginfo_path));
	if (options->uploads_path)
		resolver->uploads_path =
			mem_strndup(options->uploads_path, strlen(options->uploads_path));
	resolver->local_files = options->local_files;
	resolver->public_files_only = options->public_files_only;
	resolver->build_ahead = options->build_ahead;
	resolver->budget_bytes = options->cache_bytes ? options->cache_bytes : CACHE_BYTES_DEFAULT;
	atomic_init(&resolver->version, 1);
	lock_init(&resolver->lock, "resolver", LOCK_RESOLVE);
	lock_condition_init(&resolver->built);
	lock_condition_init(&resolver->queued);
	status = symbol_store_open(options->tables_path, SYMBOL_STORE_BYTES_DEFAULT,
				   &resolver->store, err);
	if (!status)
		status = start_builder(resolver, err);
	if (status) {
		resolver_release(resolver);
		return status;
	}
	*ret = resolver;
	return 0;
}

void resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return;
	lock_take(&resolver->lock);
	atomic_store(&resolver->stopping, true);
	lock_signal(&resolver->queued);
	lock_give(&resolver->lock);
	pthread_join(resolver->builder, NULL);
	resolver_release(resolver);
}

static void close_oldest_offer(struct resolver *resolver)
{
	struct binary *oldest = NULL;

	for (size_t i = 0; i < resolver->binaries_count; i++) {
		struct binary *binary = resolver->binaries[i];

		if (binary->offer_fd >= 0 && (!oldest || binary->offered_at < oldest->offered_at))
			oldest = binary;
	}
	if (oldest) {
		drop_offer(resolver, oldest);
		metric_add(&offers_closed, 1);
	}
}

/* True if this file of the build id was not offered before, by what can be told of it. */
static bool note_offer(struct binary *binary, int fd)
{
	const struct symbol_input input = { .fd = fd, .name = "" };
	struct symbol_source source;

	if (symbol_reader_source(&input, &source, NULL))
		return false;
	for (unsigned i = 0; i < binary->seen_count && i < OFFERS_SEEN_MAX; i++)
		if (binary->seen[i].bytes == source.bytes)
			return false;
	binary->seen[binary->seen_count++ % OFFERS_SEEN_MAX] = source;
	return true;
}

/* Keeps the best of several files with one build id. */
static void keep_offer(struct resolver *resolver, struct binary *binary, struct slice path, int fd,
		       enum elf_quality quality)
{
	drop_offer(resolver, binary);
	if (resolver->offers_count == OFFERS_MAX)
		close_oldest_offer(resolver);
	binary->offer_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (binary->offer_fd < 0) {
		log_warn("resolver", "cannot store an offered file", "file=\"%.*s\" cause=\"%s\"",
			 SLICE_FMT(path), strerrordesc_np(errno));
		return;
	}
	resolver->offers_count++;
	binary->offer_path = mem_strndup(path.data, path.len);
	binary->offer_quality = quality;
}

void resolver_offer(struct resolver *resolver, struct slice build_id, struct slice path, int fd)
{
	struct elf_inspection inspection = { .quality = ELF_QUALITY_NOTHING };
	struct binary *binary;

	if (!debug_files_id_valid(build_id))
		return;
	if (elf_inspect(fd, "an offered file", &inspection, NULL))
		inspection.quality = ELF_QUALITY_NOTHING;
	lock_take(&resolver->lock);
	binary = binary_of(resolver, build_id);
	if (binary) {
		bool is_new = note_offer(binary, fd);

		if (binary->offer_fd < 0 || inspection.quality > binary->offer_quality) {
			keep_offer(resolver, binary, path, fd, inspection.quality);
			is_new &= !binary->shared || symbol_store_is_news(binary->shared->table, fd,
									  SYMBOL_INPUT_MAIN);
			if (binary->state != BINARY_READY || is_new) {
				binary->retry = true;
				atomic_fetch_add(&resolver->version, 1);
			}
			if (resolver->build_ahead && !is_busy(binary) && must_build(binary))
				enqueue(resolver, binary, path);
		}
		binary->offered_at = ++resolver->ticks;
	}
	lock_give(&resolver->lock);
}

void resolver_file_added(struct resolver *resolver, struct slice build_id)
{
	struct binary *binary;

	if (!debug_files_id_valid(build_id))
		return;
	lock_take(&resolver->lock);
	binary = binary_of(resolver, build_id);
	if (binary) {
		binary->retry = true;
		atomic_fetch_add(&resolver->version, 1);
	}
	lock_give(&resolver->lock);
}

bool resolver_take_used(struct resolver *resolver, struct slice build_id)
{
	bool is_used = false;
	uint32_t id;

	lock_take(&resolver->lock);
	id = idmap_find(&resolver->map, hash_of(build_id), binary_equal, resolver->binaries,
			&build_id);
	if (id != IDMAP_NONE) {
		is_used = resolver->binaries[id]->is_used;
		resolver->binaries[id]->is_used = false;
	}
	lock_give(&resolver->lock);
	return is_used;
}

void resolver_note_cost(struct resolver *resolver, struct slice build_id, uint64_t cost_ns,
			uint64_t of_ns)
{
	uint32_t id;

	lock_take(&resolver->lock);
	id = idmap_find(&resolver->map, hash_of(build_id), binary_equal, resolver->binaries,
			&build_id);
	if (id != IDMAP_NONE && resolver->binaries[id]->cost_ns < cost_ns) {
		resolver->binaries[id]->cost_ns = cost_ns;
		resolver->binaries[id]->cost_of_ns = of_ns;
	}
	lock_give(&resolver->lock);
}

void resolver_each_missing(struct resolver *resolver, resolver_missing_f *visit, void *context)
{
	lock_take(&resolver->lock);
	for (size_t i = 0; i < resolver->binaries_count; i++) {
		const struct binary *binary = resolver->binaries[i];
		struct resolver_missing missing = {
			binary->build_id, slice_of(binary->asked_path),
			binary->reason,	  slice_of(binary->detail ? binary->detail : ""),
			binary->cost_ns,  binary->cost_of_ns
		};

		if (binary->shared && atomic_load(&binary->shared->has_missed)) {
			missing.reason = RESOLVE_NO_SYMBOLS;
			missing.detail = slice_of(binary->shared->table->note);
		} else if (binary->state != BINARY_FAILED) {
			continue;
		}
		visit(context, &missing);
	}
	lock_give(&resolver->lock);
}

void resolver_each_poor(struct resolver *resolver, resolver_poor_f *visit, void *context)
{
	lock_take(&resolver->lock);
	for (size_t i = 0; i < resolver->binaries_count; i++) {
		const struct binary *binary = resolver->binaries[i];

		if (binary->is_used && binary->shared &&
		    binary->shared->table->origin < SYMBOL_ORIGIN_GO)
			visit(context, binary->build_id, binary->cost_ns);
	}
	lock_give(&resolver->lock);
}
