/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/binaries.h"

#include <assert.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/procs/procs_metrics.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#define UNUSED_KEEP_NS (300 * CLOCK_NS_PER_S)

void binaries_init(struct binaries *binaries, bool announce)
{
	*binaries = (struct binaries){ .announce = announce };
}

static void binary_free(struct binary *binary)
{
	free(binary->elf);
	free(binary->path);
	free(binary);
}

void binaries_fini(struct binaries *binaries)
{
	for (size_t i = 0; i < binaries->count; i++)
		binary_free(binaries->items[i]);
	free(binaries->items);
	idmap_free(&binaries->map);
	binary_news_free(binaries->news, binaries->news_count);
	*binaries = (struct binaries){ 0 };
}

void binary_news_free(struct binary_news *news, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		close(news[i].fd);
		free(news[i].path);
	}
	free(news);
}

static bool identity_equal(const void *context, uint32_t id, const void *key)
{
	const struct binaries *binaries = context;

	return !memcmp(&binaries->items[id]->identity, key, sizeof(struct binary_identity));
}

static uint64_t identity_hash(const struct binary_identity *identity)
{
	return hash_bytes(identity, sizeof(*identity));
}

/* The file's headers, or NULL when it is no ELF file. */
static struct elf_info *read_elf(int fd, const char *path)
{
	struct elf_info *elf = mem_new(struct elf_info);
	struct err err;

	if (!elf_read_info(fd, path, elf, &err))
		return elf;
	log_debug("agent", "mapped file has no readable ELF headers", "reason=\"%s\"", err.message);
	metric_add(&procs_binaries_unreadable, 1);
	free(elf);
	return NULL;
}

static void announce(struct binaries *binaries, const struct binary *binary, int fd)
{
	struct binary_news *news;

	mem_grow(binaries->news, binaries->news_count, binaries->news_capacity);
	news = &binaries->news[binaries->news_count++];
	memcpy(news->build_id, binary->elf->build_id, sizeof(news->build_id));
	news->path = mem_strndup(binary->path, strlen(binary->path));
	news->fd = fd;
}

static struct binary *add(struct binaries *binaries, const struct binary_identity *identity, int fd,
			  const char *path)
{
	struct binary *binary;

	if (binaries->count >= BINARIES_MAX) {
		metric_add(&procs_binaries_refused, 1);
		close(fd);
		return NULL;
	}
	binary = mem_new(struct binary);
	binary->identity = *identity;
	binary->path = mem_strndup(path, strlen(path));
	binary->elf = read_elf(fd, path);
	if (binaries->announce && binary->elf && binary->elf->build_id[0])
		announce(binaries, binary, fd);
	else
		close(fd);
	mem_grow(binaries->items, binaries->count, binaries->capacity);
	binaries->items[binaries->count] = binary;
	idmap_add(&binaries->map, identity_hash(identity), (uint32_t)binaries->count);
	binaries->count++;
	metric_set(&procs_binaries, (int64_t)binaries->count);
	return binary;
}

struct binary *binaries_get(struct binaries *binaries, int fd, const char *path, int64_t now_ns)
{
	struct binary_identity identity;
	struct binary *binary;
	struct stat stat;
	uint32_t id;

	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode)) {
		close(fd);
		return NULL;
	}
	identity = (struct binary_identity){
		.device = stat.st_dev,
		.inode = stat.st_ino,
		.bytes = (uint64_t)stat.st_size,
		.changed_ns = stat.st_mtim.tv_sec * CLOCK_NS_PER_S + stat.st_mtim.tv_nsec,
	};
	id = idmap_find(&binaries->map, identity_hash(&identity), identity_equal, binaries,
			&identity);
	if (id != IDMAP_NONE) {
		binary = binaries->items[id];
		close(fd);
	} else {
		binary = add(binaries, &identity, fd, path);
	}
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

void binaries_sweep(struct binaries *binaries, int64_t now_ns)
{
	int64_t keep_ns = binaries->count >= BINARIES_MAX ? 0 : UNUSED_KEEP_NS;
	size_t kept = 0;

	for (size_t i = 0; i < binaries->count; i++) {
		struct binary *binary = binaries->items[i];

		if (!binary->references && now_ns - binary->used_at_ns >= keep_ns)
			binary_free(binary);
		else
			binaries->items[kept++] = binary;
	}
	if (kept == binaries->count)
		return;
	binaries->count = kept;
	idmap_clear(&binaries->map);
	for (size_t i = 0; i < kept; i++)
		idmap_add(&binaries->map, identity_hash(&binaries->items[i]->identity),
			  (uint32_t)i);
	metric_set(&procs_binaries, (int64_t)kept);
}

struct binary_news *binaries_take_news(struct binaries *binaries, size_t *ret_count)
{
	struct binary_news *news = binaries->news;

	*ret_count = binaries->news_count;
	binaries->news = NULL;
	binaries->news_count = binaries->news_capacity = 0;
	return news;
}
