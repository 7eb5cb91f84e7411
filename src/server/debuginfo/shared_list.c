/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/shared_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define USED ".used-"
#define RECORD ".record"

static const char *const kinds[DEBUGINFO_KINDS] = {
	[DEBUGINFO_BINARY] = "binary",
	[DEBUGINFO_DEBUG] = "debug",
	[DEBUGINFO_SOURCES] = "sources",
	[DEBUGINFO_PACKAGE] = "dwp",
};

static struct shared_key key_of(const struct shared_object *object, const char *rest)
{
	struct shared_key key;

	snprintf(key.text, sizeof(key.text), SHARED_PREFIX "%s/%s-%s%s", object->build_id,
		 kinds[object->kind], object->sha256, rest);
	return key;
}

struct shared_key shared_file_key(const struct shared_object *object)
{
	return key_of(object, "");
}

struct shared_key shared_record_key(const struct shared_object *object)
{
	return key_of(object, RECORD);
}

struct shared_key shared_use_key(const struct shared_object *object, uint32_t day)
{
	char rest[32];

	snprintf(rest, sizeof(rest), USED "%u", day);
	return key_of(object, rest);
}

static bool is_hex(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!(text.data[i] >= '0' && text.data[i] <= '9') &&
		    !(text.data[i] >= 'a' && text.data[i] <= 'f'))
			return false;
	return true;
}

/* "<kind>-" taken off. */
static bool take_kind(struct slice *name, enum debuginfo_kind *ret)
{
	struct slice rest, kind = slice_cut(*name, '-', &rest);

	for (int i = 0; i < DEBUGINFO_KINDS; i++) {
		if (!slice_is(kind, kinds[i]))
			continue;
		*ret = (enum debuginfo_kind)i;
		*name = rest;
		return true;
	}
	return false;
}

static bool take_day(struct slice text, uint32_t *ret)
{
	uint32_t day = 0;

	if (!text.len || text.len > 7)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		day = day * 10 + (uint32_t)(text.data[i] - '0');
	}
	*ret = day;
	return true;
}

/* What the key says: one of a file, a record, or a use. */
static bool parse(struct slice key, struct shared_object *ret)
{
	struct slice name, build_id, hash;

	*ret = (struct shared_object){ 0 };
	if (!slice_starts_with(key, slice_of(SHARED_PREFIX)))
		return false;
	build_id = slice_cut(slice_tail(key, strlen(SHARED_PREFIX)), '/', &name);
	if (build_id.len < 4 || build_id.len % 2 || build_id.len >= sizeof(ret->build_id) ||
	    !is_hex(build_id) || !take_kind(&name, &ret->kind) ||
	    name.len < sizeof(ret->sha256) - 1)
		return false;
	hash = slice_from(name.data, sizeof(ret->sha256) - 1);
	name = slice_tail(name, hash.len);
	if (!is_hex(hash))
		return false;
	memcpy(ret->build_id, build_id.data, build_id.len);
	memcpy(ret->sha256, hash.data, hash.len);
	ret->has_file = !name.len;
	ret->has_record = slice_is(name, RECORD);
	if (ret->has_file || ret->has_record)
		return true;
	return slice_starts_with(name, slice_of(USED)) &&
	       take_day(slice_tail(name, strlen(USED)), &ret->used_day);
}

static int compare(const void *left, const void *right)
{
	const struct shared_object *a = left, *b = right;
	int order = strcmp(a->build_id, b->build_id);

	if (order)
		return order;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->sha256, b->sha256);
}

static void note_use(struct shared_list *list, struct shared_object *object, uint32_t day)
{
	uint32_t older = day < object->used_day ? day : object->used_day;

	if (older) {
		struct shared_key key = shared_use_key(object, older);

		strbuf_add(&list->old_uses, key.text, strlen(key.text) + 1);
	}
	if (day > object->used_day)
		object->used_day = day;
}

/* Keys of one file come one after the other. */
static int take_entry(void *context, const struct bucket_entry *entry, struct err *err)
{
	struct shared_list *list = context;
	struct shared_object object, *last;

	if (!parse(entry->key, &object))
		return 0;
	last = list->count ? &list->objects[list->count - 1] : NULL;
	if (!last || compare(last, &object) != 0) {
		if (list->count == SHARED_OBJECTS_MAX)
			return err_set(err, ERR_LIMIT, "more than %u files of debug information",
				       SHARED_OBJECTS_MAX);
		mem_grow(list->objects, list->count, list->capacity);
		last = &list->objects[list->count++];
		*last = object;
		last->used_day = 0;
	}
	last->has_file |= object.has_file;
	last->has_record |= object.has_record;
	if (object.used_day)
		note_use(list, last, object.used_day);
	return 0;
}

int shared_list_read(struct shared_list *list, struct bucket *bucket, int64_t now_ns,
		     struct err *err)
{
	int rc = bucket->list(bucket, SHARED_PREFIX, NULL, false, take_entry, list, err);

	if (list->count)
		qsort(list->objects, list->count, sizeof(*list->objects), compare);
	for (size_t i = 0; i < list->count; i++)
		list->objects[i].seen_at_ns = now_ns;
	return rc;
}

void shared_list_adopt(struct shared_list *fresh, struct shared_list *list)
{
	for (size_t i = 0; i < fresh->count; i++) {
		struct shared_object *object = &fresh->objects[i];
		const struct shared_object *was = shared_list_find(list, slice_of(object->build_id),
								   object->kind, object->sha256);

		if (!was)
			continue;
		object->seen_at_ns = was->seen_at_ns;
		object->again_ns = was->again_ns;
		object->is_settled = was->is_settled;
	}
	shared_list_free(list);
	*list = *fresh;
	*fresh = (struct shared_list){ 0 };
}

void shared_list_free(struct shared_list *list)
{
	free(list->objects);
	strbuf_free(&list->old_uses);
	*list = (struct shared_list){ 0 };
}

size_t shared_list_first(const struct shared_list *list, struct slice build_id)
{
	size_t from = 0, to = list->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (slice_compare(slice_of(list->objects[middle].build_id), build_id) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

struct shared_object *shared_list_find(const struct shared_list *list, struct slice build_id,
				       enum debuginfo_kind kind, const char *sha256)
{
	for (size_t i = shared_list_first(list, build_id);
	     i < list->count && slice_is(build_id, list->objects[i].build_id); i++)
		if (list->objects[i].kind == kind && !strcmp(list->objects[i].sha256, sha256))
			return &list->objects[i];
	return NULL;
}
