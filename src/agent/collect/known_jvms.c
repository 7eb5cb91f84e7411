/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/known_jvms.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/unwind/table_cache.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

#define LIST_NAME "hotspot-libraries"
#define LIST_MAGIC 0x326d766a6e726966ull /* "firnjvm2" */

struct list_head {
	uint64_t magic, item_bytes, count, hash;
};

struct list {
	struct list_head head;
	struct known_jvm items[KNOWN_JVMS_MAX];
};

static uint64_t hash_items(const struct known_jvm *items, uint64_t count)
{
	return hash_stable(items, count * sizeof(*items), count);
}

bool known_jvms_parse(struct known_jvms *known, const void *data, size_t len)
{
	struct list_head head;

	known->count = 0;
	if (len < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	if (head.magic != LIST_MAGIC || head.item_bytes != sizeof(*known->items) ||
	    head.count > KNOWN_JVMS_MAX || len != sizeof(head) + head.count * sizeof(*known->items))
		return false;
	memcpy(known->items, (const char *)data + sizeof(head), head.count * sizeof(*known->items));
	if (hash_items(known->items, head.count) != head.hash)
		return false;
	known->count = head.count;
	return true;
}

static void read_list(struct known_jvms *known)
{
	struct list *list;
	ssize_t len;
	int fd;

	if (table_cache_find(known->cache, LIST_NAME, &fd, NULL))
		return;
	list = mem_new(struct list);
	len = pread(fd, list, sizeof(*list), 0);
	if (len > 0)
		known_jvms_parse(known, list, (size_t)len);
	free(list);
	close(fd);
}

void known_jvms_open(struct known_jvms *known, const char *cache_path)
{
	*known = (struct known_jvms){ 0 };
	if (cache_path && cache_path[0] && !table_cache_open(cache_path, 0, &known->cache, NULL))
		read_list(known);
}

void known_jvms_close(struct known_jvms *known)
{
	table_cache_close(known->cache);
	known->cache = NULL;
}

static bool write_list(const struct known_jvms *known, int fd)
{
	struct list_head head = { .magic = LIST_MAGIC,
				  .item_bytes = sizeof(*known->items),
				  .count = known->count,
				  .hash = hash_items(known->items, known->count) };
	size_t bytes = known->count * sizeof(*known->items);

	return pwrite(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       pwrite(fd, known->items, bytes, sizeof(head)) == (ssize_t)bytes;
}

static void keep(struct known_jvms *known)
{
	struct table_cache_draft draft;
	struct err err;

	if (!known->cache || table_cache_create(known->cache, &draft, NULL))
		return;
	if (!write_list(known, draft.fd))
		table_cache_discard(known->cache, &draft);
	else if (table_cache_publish(known->cache, &draft, LIST_NAME, &err))
		log_debug("agent", "a list was not kept", "cause=\"%s\"", err.message);
	close(draft.fd);
}

void known_jvms_add(struct known_jvms *known, const struct file_key *key,
		    const struct jvm_file *file)
{
	struct known_jvm *item;

	for (uint64_t i = 0; i < known->count; i++)
		if (!memcmp(&known->items[i].key, key, sizeof(*key)) &&
		    !memcmp(&known->items[i].file, file, sizeof(*file)))
			return;
	if (known->count == KNOWN_JVMS_MAX)
		memmove(known->items, known->items + 1, --known->count * sizeof(*known->items));
	item = &known->items[known->count++];
	memset(item, 0, sizeof(*item));
	item->key = *key;
	item->file = *file;
	keep(known);
}
