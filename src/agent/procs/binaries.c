/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/binaries.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/procs/procs_metrics.h"
#include "agent/runtime/c_library.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#define UNUSED_KEEP_NS (300 * CLOCK_NS_PER_S)
#define PIN_KEEP_NS (10 * CLOCK_NS_PER_S)
#define BINARIES_GIVEN_BACK_MAX (BINARIES_PINNED_MAX / 2) /* new ones find room too */
#define TRY_INTERVAL_MIN_NS (50 * CLOCK_NS_PER_MS)
#define TRY_INTERVAL_TOLD_NS (400 * CLOCK_NS_PER_MS) /* after four tries it is said */
#define TRY_INTERVAL_MAX_NS (30 * CLOCK_NS_PER_S)

void binaries_init(struct binaries *binaries, bool announce, const struct binaries_tables *tables)
{
	*binaries = (struct binaries){ .announce = announce };
	if (tables)
		binaries->tables = *tables;
}

static void unpin(struct binaries *binaries, struct binary *binary)
{
	if (binary->fd < 0)
		return;
	close(binary->fd);
	binary->fd = -1;
	binaries->pinned--;
}

static void binary_free(struct binaries *binaries, struct binary *binary)
{
	unpin(binaries, binary);
	free(binary->elf);
	elf_origin_free(&binary->origin);
	free(binary->runtime);
	free(binary->path);
	free(binary);
}

void binaries_fini(struct binaries *binaries)
{
	for (size_t i = 0; i < binaries->count; i++)
		binary_free(binaries, binaries->items[i]);
	free(binaries->items);
	idmap_free(&binaries->map);
	for (size_t i = 0; i < binaries->news_count; i++)
		binary_news_free(&binaries->news[i]);
	free(binaries->news);
	*binaries = (struct binaries){ 0 };
}

void binary_news_free(struct binary_news *news)
{
	close(news->fd);
	free(news->path);
}

static bool key_equal(const void *context, uint32_t id, const void *key)
{
	const struct binaries *binaries = context;

	return !memcmp(&binaries->items[id]->key, key, sizeof(struct file_key));
}

static uint64_t key_hash(const struct file_key *key)
{
	return hash_bytes(key, sizeof(*key));
}

static struct binary *add(struct binaries *binaries, const struct file_key *key)
{
	struct binary *binary;

	if (binaries->count >= BINARIES_MAX) {
		metric_add(&procs_binaries_refused, 1);
		return NULL;
	}
	binary = mem_new(struct binary);
	binary->key = *key;
	binary->fd = -1;
	mem_grow(binaries->items, binaries->count, binaries->capacity);
	binaries->items[binaries->count] = binary;
	idmap_add(&binaries->map, key_hash(key), (uint32_t)binaries->count);
	binaries->count++;
	metric_set(&procs_binaries, (int64_t)binaries->count);
	return binary;
}

struct binary *binaries_find(const struct binaries *binaries, const struct file_key *key)
{
	uint32_t id = idmap_find(&binaries->map, key_hash(key), key_equal, binaries, key);

	return id == IDMAP_NONE ? NULL : binaries->items[id];
}

struct binary *binaries_get(struct binaries *binaries, const struct file_key *key, int64_t now_ns)
{
	struct binary *binary = binaries_find(binaries, key);

	if (!binary)
		binary = add(binaries, key);
	if (binary)
		binary->used_at_ns = now_ns;
	return binary_ref(binary);
}

struct binary *binary_ref(struct binary *binary)
{
	if (binary)
		binary->references++;
	return binary;
}

void binary_unref(struct binary *binary, int64_t now_ns)
{
	if (!binary)
		return;
	assert(binary->references > 0);
	binary->references--;
	binary->used_at_ns = now_ns;
}

static bool table_is_missing(const struct binaries *binaries, const struct binary *binary)
{
	const struct binaries_tables *tables = &binaries->tables;

	return tables->want && !tables->is_known(tables->context, &binary->key);
}

static bool table_is_wanted(const struct binaries *binaries, const struct binary *binary)
{
	return (binary->is_sampled || !binaries->tables.only_sampled) &&
	       table_is_missing(binaries, binary);
}

/* True if its file may be needed once more, when its process may have gone. */
static bool is_to_be_pinned(const struct binaries *binaries, const struct binary *binary)
{
	return (binaries->announce && !binary->announced) ||
	       (binaries->tables.only_sampled && !binary->is_sampled &&
		table_is_missing(binaries, binary));
}

bool binaries_needs_file(const struct binaries *binaries, const struct binary *binary)
{
	if (!binary->opened)
		return true;
	if (binary->has_frames && binaries->announce && !binary->announced)
		return binary->fd < 0;
	return table_is_wanted(binaries, binary);
}

/* Takes the headers over. */
static void open_first(struct binaries *binaries, struct binary *binary, int fd,
		       struct elf_info *elf, const char *path)
{
	binary->opened = true;
	binary->elf = elf;
	binary->announced = !elf || !elf->build_id[0];
	binary->runtime = elf ? runtime_file_read(fd, elf) : NULL;
	binary->musl_keys_at = elf ? c_library_read(fd, elf) : 0;
	if (elf)
		elf_origin_read(fd, path, elf, &binary->origin);
	binaries->runtimes += binary->runtime || binary->musl_keys_at;
	if (elf)
		return;
	log_debug("agent", "mapped file has no readable ELF headers", "path=\"%s\"", path);
	metric_add(&procs_binaries_unreadable, 1);
}

static void want_table(struct binaries *binaries, const struct binary *binary, int fd)
{
	const struct binaries_tables *tables = &binaries->tables;

	if (table_is_wanted(binaries, binary))
		tables->want(tables->context, &binary->key,
			     fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0),
			     binary->elf ? binary->elf->build_id : NULL,
			     binary->path ? binary->path : "");
}

static void put_off(struct binary *binary, int64_t now_ns)
{
	if (now_ns < binary->try_again_at_ns)
		return; /* tried early, with another process: that says nothing of the next time */
	binary->try_interval_ns =
		binary->try_interval_ns ? 2 * binary->try_interval_ns : TRY_INTERVAL_MIN_NS;
	if (binary->try_interval_ns > TRY_INTERVAL_MAX_NS)
		binary->try_interval_ns = TRY_INTERVAL_MAX_NS;
	binary->try_again_at_ns = now_ns + binary->try_interval_ns;
}

bool binary_cannot_be_opened(const struct binary *binary)
{
	return !binary->opened && !binary->asked && binary->try_interval_ns;
}

static void announce(struct binaries *binaries, struct binary *binary)
{
	struct binary_news *news;

	if (!binaries->announce || binary->announced || !binary->has_frames || binary->fd < 0)
		return;
	mem_grow(binaries->news, binaries->news_count, binaries->news_capacity);
	news = &binaries->news[binaries->news_count++];
	news->key = binary->key;
	memcpy(news->build_id, binary->elf->build_id, sizeof(news->build_id));
	news->path = mem_strndup(binary->path ? binary->path : "",
				 binary->path ? strlen(binary->path) : 0);
	news->pid = binary->pid;
	news->fd = binary->fd; /* counts as pinned until it is taken */
	binary->fd = -1;
	binary->announced = true;
}

void binaries_fill(struct binaries *binaries, struct binary *binary, uint32_t pid, int fd,
		   struct elf_info *elf, const char *path, int64_t now_ns)
{
	if (fd < 0) {
		assert(!elf);
		put_off(binary, now_ns);
		binary_name(binary, path);
		if (binary->opened)
			want_table(binaries, binary, -1);
		else if (binary->try_interval_ns >= TRY_INTERVAL_TOLD_NS &&
			 binaries->tables.cannot_open)
			binaries->tables.cannot_open(binaries->tables.context, &binary->key,
						     binary->path ? binary->path : "");
		return;
	}
	binary_name(binary, path);
	binary->pid = pid;
	if (!binary->opened)
		open_first(binaries, binary, fd, elf, path);
	else
		free(elf);
	want_table(binaries, binary, fd);
	if (binary->fd < 0 && is_to_be_pinned(binaries, binary) &&
	    binaries->pinned < BINARIES_PINNED_MAX) {
		binary->fd = fd;
		binary->pinned_at_ns = now_ns;
		binaries->pinned++;
	} else {
		close(fd);
	}
	announce(binaries, binary);
}

void binary_name(struct binary *binary, const char *path)
{
	if (!binary->path && path && path[0])
		binary->path = mem_strndup(path, strlen(path));
}

void binaries_add_frame(struct binaries *binaries, struct binary *binary)
{
	binary->has_frames = true;
	announce(binaries, binary);
}

void binaries_sweep(struct binaries *binaries, int64_t now_ns)
{
	int64_t keep_ns = binaries->count >= BINARIES_MAX ? 0 : UNUSED_KEEP_NS;
	size_t kept = 0;

	for (size_t i = 0; i < binaries->count; i++) {
		struct binary *binary = binaries->items[i];

		if (now_ns - binary->pinned_at_ns >= PIN_KEEP_NS)
			unpin(binaries, binary);
		if (!binary->references && now_ns - binary->used_at_ns >= keep_ns)
			binary_free(binaries, binary);
		else
			binaries->items[kept++] = binary;
	}
	if (kept == binaries->count)
		return;
	binaries->count = kept;
	idmap_clear(&binaries->map);
	for (size_t i = 0; i < kept; i++)
		idmap_add(&binaries->map, key_hash(&binaries->items[i]->key), (uint32_t)i);
	metric_set(&procs_binaries, (int64_t)kept);
}

void binaries_check(const struct binaries *binaries)
{
	size_t pinned = binaries->news_count;

	assert(binaries->count <= BINARIES_MAX);
	for (size_t i = 0; i < binaries->count; i++)
		pinned += binaries->items[i]->fd >= 0;
	assert(pinned == binaries->pinned);
}

void binaries_add_news(struct binaries *binaries, const char *build_id, const char *path, int fd)
{
	struct binary_news news = { .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0) };

	if (news.fd < 0)
		return;
	snprintf(news.build_id, sizeof(news.build_id), "%s", build_id);
	news.path = mem_strndup(path, strlen(path));
	mem_grow(binaries->news, binaries->news_count, binaries->news_capacity);
	binaries->news[binaries->news_count++] = news;
	binaries->pinned++;
}

struct binary_news *binaries_take_news(struct binaries *binaries, size_t *ret_count)
{
	struct binary_news *news = binaries->news;

	*ret_count = binaries->news_count;
	binaries->pinned -= binaries->news_count;
	binaries->news = NULL;
	binaries->news_count = binaries->news_capacity = 0;
	return news;
}

void binaries_give_back(struct binaries *binaries, struct binary_news *news, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct binary *binary = binaries_find(binaries, &news[i].key);

		if (binaries->pinned < BINARIES_GIVEN_BACK_MAX) {
			mem_grow(binaries->news, binaries->news_count, binaries->news_capacity);
			binaries->news[binaries->news_count++] = news[i];
			binaries->pinned++;
			continue;
		}
		if (binary)
			binary->announced = false;
		binary_news_free(&news[i]);
	}
}
