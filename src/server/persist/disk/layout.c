/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/disk/layout.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"

/* Takes "<prefix><number>" off the front. */
static bool take_number(struct slice *text, const char *prefix, uint64_t *ret)
{
	struct slice rest = slice_tail(*text, strlen(prefix));
	size_t digits = 0;

	if (!slice_starts_with(*text, slice_of(prefix)))
		return false;
	while (digits < rest.len && rest.data[digits] >= '0' && rest.data[digits] <= '9')
		digits++;
	if (!slice_parse_u64(slice_from(rest.data, digits), ret))
		return false;
	*text = slice_tail(rest, digits);
	return true;
}

struct layout_name layout_parse(const char *name)
{
	struct slice text = slice_of(name);
	struct layout_name ret = { LAYOUT_FOREIGN, 0, 0 };
	struct slice rest = text;

	if (slice_is(text, LAYOUT_LOCK))
		ret.kind = LAYOUT_LOCK_FILE;
	else if (slice_is(text, LAYOUT_CURRENT))
		ret.kind = LAYOUT_CURRENT_FILE;
	else if (slice_is(text, LAYOUT_QUARANTINE))
		ret.kind = LAYOUT_QUARANTINE_DIR;
	else if (slice_is(text, "lost+found") || slice_is(text, LAYOUT_DEBUGINFO) ||
		 slice_is(text, LAYOUT_BUCKET))
		ret.kind = LAYOUT_SYSTEM;
	else if (take_number(&rest, "MANIFEST-", &ret.number) && !rest.len)
		ret.kind = LAYOUT_MANIFEST;
	else if (take_number(&rest, "part-", &ret.number) && slice_is(rest, ".firn"))
		ret.kind = LAYOUT_PART;
	else if (take_number(&rest, "state-", &ret.number) && slice_is(rest, ".firn"))
		ret.kind = LAYOUT_STATE;
	else if (take_number(&rest, "wal-", &ret.number) && take_number(&rest, "-", &ret.segment) &&
		 slice_is(rest, ".wal"))
		ret.kind = LAYOUT_WAL;
	else if (slice_ends_with(text, SLICE_LITERAL(".tmp")) &&
		 (slice_starts_with(text, slice_of(LAYOUT_CURRENT)) ||
		  slice_starts_with(text, slice_of(LAYOUT_BUCKET)) ||
		  slice_starts_with(text, slice_of("MANIFEST-")) ||
		  slice_starts_with(text, slice_of("part-")) ||
		  slice_starts_with(text, slice_of("state-"))))
		ret.kind = LAYOUT_TEMPORARY;
	return ret;
}

void layout_format(const struct layout_name *name, char ret[LAYOUT_NAME_BYTES_MAX])
{
	unsigned long long number = name->number;

	switch (name->kind) {
	case LAYOUT_MANIFEST:
		snprintf(ret, LAYOUT_NAME_BYTES_MAX, "MANIFEST-%06llu", number);
		return;
	case LAYOUT_WAL:
		snprintf(ret, LAYOUT_NAME_BYTES_MAX, "wal-%06llu-%04llu.wal", number,
			 (unsigned long long)name->segment);
		return;
	case LAYOUT_PART:
		snprintf(ret, LAYOUT_NAME_BYTES_MAX, "part-%06llu.firn", number);
		return;
	case LAYOUT_STATE:
		snprintf(ret, LAYOUT_NAME_BYTES_MAX, "state-%06llu.firn", number);
		return;
	default:
		assert(!"a kind without numbers has no format");
	}
}

struct layout_path layout_join(const char *dir, const char *name)
{
	struct layout_path path;
	int len = snprintf(path.text, sizeof(path.text), "%s/%s", dir, name);

	assert(len > 0 && len < (int)sizeof(path.text));
	return path;
}

struct layout_path layout_path_of(const char *dir, struct layout_name name)
{
	char text[LAYOUT_NAME_BYTES_MAX];

	layout_format(&name, text);
	return layout_join(dir, text);
}

struct layout_path layout_path(const char *dir, enum layout_kind kind, uint64_t number)
{
	return layout_path_of(dir, (struct layout_name){ kind, number, 0 });
}

int layout_check_dir(const char *dir, struct err *err)
{
	size_t len = strlen(dir);

	if (!len || len > LAYOUT_PATH_BYTES_MAX - 4 * LAYOUT_NAME_BYTES_MAX)
		return err_set(err, ERR_INVALID, "storage path has %zu bytes; expected 1 to %d",
			       len, LAYOUT_PATH_BYTES_MAX - 4 * LAYOUT_NAME_BYTES_MAX);
	return 0;
}

static void add_name(void *context, const char *text)
{
	struct layout_list *list = context;
	struct layout_name name = layout_parse(text);

	if (name.kind == LAYOUT_FOREIGN || strlen(text) >= LAYOUT_NAME_BYTES_MAX) {
		if (!list->foreign++)
			snprintf(list->foreign_name, sizeof(list->foreign_name), "%s", text);
		return;
	}
	mem_grow(list->entries, list->count, list->capacity);
	list->entries[list->count].name = name;
	snprintf(list->entries[list->count++].text, LAYOUT_NAME_BYTES_MAX, "%s", text);
}

static int entry_order(const void *left, const void *right)
{
	const struct layout_name *a = &((const struct layout_entry *)left)->name;
	const struct layout_name *b = &((const struct layout_entry *)right)->name;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->segment > b->segment) - (a->segment < b->segment);
}

int layout_list(const struct vfs *vfs, const char *dir, struct layout_list *ret, struct err *err)
{
	struct layout_list list = { 0 };
	int rc = vfs->list_dir(vfs, dir, add_name, &list);

	if (rc) {
		free(list.entries);
		return err_set_errno(err, -rc, "list directory \"%s\"", dir);
	}
	if (list.count)
		qsort(list.entries, list.count, sizeof(*list.entries), entry_order);
	*ret = list;
	return 0;
}

static bool is_other(enum layout_kind kind)
{
	return kind == LAYOUT_WAL || kind == LAYOUT_MANIFEST || kind == LAYOUT_STATE;
}

int layout_other_bytes(const struct vfs *vfs, const char *dir, uint64_t *ret)
{
	struct layout_list list = { 0 };
	int rc = layout_list(vfs, dir, &list, NULL);
	uint64_t sum = 0;

	for (size_t i = 0; !rc && i < list.count; i++) {
		struct layout_path path = layout_join(dir, list.entries[i].text);
		struct vfs_file *file;
		uint64_t bytes;

		if (!is_other(list.entries[i].name.kind) ||
		    vfs_open(vfs, path.text, VFS_READ, &file, NULL))
			continue; /* it went meanwhile */
		if (!vfs->size(file, &bytes))
			sum += bytes;
		vfs_close(file);
	}
	free(list.entries);
	if (!rc)
		*ret = sum;
	return rc;
}

int layout_quarantine(const struct vfs *vfs, const char *dir, struct layout_name name,
		      struct err *err)
{
	struct layout_path quarantine = layout_join(dir, LAYOUT_QUARANTINE);
	struct layout_path from = layout_path_of(dir, name);
	struct layout_path to = layout_path_of(quarantine.text, name);
	int rc = vfs->mkdir(vfs, quarantine.text);

	assert(name.kind == LAYOUT_PART || name.kind == LAYOUT_STATE || name.kind == LAYOUT_WAL);
	if (rc && rc != -EEXIST)
		return err_set_errno(err, -rc, "make directory \"%s\"", quarantine.text);
	rc = vfs->rename(vfs, from.text, to.text);
	if (rc && rc != -ENOENT)
		return err_set_errno(err, -rc, "move \"%s\" to \"%s\"", from.text, to.text);
	rc = vfs_sync_dir(vfs, quarantine.text, err);
	return rc ? rc : vfs_sync_dir(vfs, dir, err);
}
