/* SPDX-License-Identifier: Apache-2.0 */
/* The files that are here, and what is left of uploads that were cut off: finding, keeping,
 * removing. */
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/debuginfo/debuginfo_int.h"

#define TOUCH_NS (60 * CLOCK_NS_PER_S) /* uses closer together are not told to the disk */

static METRIC_COUNTER(removed, "firn_debuginfo_files_removed_total", "",
		      "Files removed because they were over the age or the size.");
static METRIC_GAUGE(files, "firn_debuginfo_files", "", "Stored files of debug information.");
static METRIC_GAUGE(files_bytes, "firn_debuginfo_bytes", "", "Their size.");

void debuginfo_kept_register(void)
{
	static struct metric *const metrics[] = { &removed, &files, &files_bytes };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

int64_t debuginfo_now_ns(const struct debuginfo *debuginfo)
{
	return debuginfo->options.clock ? debuginfo->options.clock(debuginfo->options.clock_context)
					: clock_real_ns();
}

bool debuginfo_normalise_id(struct slice build_id, char ret[ELF_BUILD_ID_TEXT_BYTES])
{
	if (build_id.len < 4 || build_id.len % 2 || build_id.len >= ELF_BUILD_ID_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < build_id.len; i++) {
		char c = build_id.data[i];

		if (c >= 'A' && c <= 'F')
			c = (char)(c - 'A' + 'a');
		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return false;
		ret[i] = c;
	}
	ret[build_id.len] = '\0';
	return true;
}

struct key {
	struct slice build_id;
	enum debuginfo_kind kind;
};

static bool entry_equal(const void *context, uint32_t id, const void *key)
{
	const struct entry *entry = (const struct entry *)context + id;
	const struct key *wanted = key;

	return entry->kind == wanted->kind && slice_is(wanted->build_id, entry->build_id);
}

static uint64_t hash_of(struct slice build_id, enum debuginfo_kind kind)
{
	return hash_mix(hash_bytes(build_id.data, build_id.len), kind + 1);
}

static uint32_t index_of(const struct debuginfo *debuginfo, struct slice build_id,
			 enum debuginfo_kind kind)
{
	const struct key key = { build_id, kind };

	return idmap_find(&debuginfo->map, hash_of(build_id, kind), entry_equal, debuginfo->entries,
			  &key);
}

struct entry *debuginfo_find(struct debuginfo *debuginfo, struct slice build_id,
			     enum debuginfo_kind kind)
{
	uint32_t id = index_of(debuginfo, build_id, kind);

	return id == IDMAP_NONE ? NULL : &debuginfo->entries[id];
}

static void publish(const struct debuginfo *debuginfo)
{
	metric_set(&files, (int64_t)debuginfo->count);
	metric_set(&files_bytes, (int64_t)debuginfo->bytes);
}

void debuginfo_put(struct debuginfo *debuginfo, struct slice build_id, enum debuginfo_kind kind,
		   const struct debuginfo_record *record, int64_t used_at_ns)
{
	struct entry *entry = debuginfo_find(debuginfo, build_id, kind);

	if (!entry) {
		mem_grow(debuginfo->entries, debuginfo->count, debuginfo->capacity);
		idmap_add(&debuginfo->map, hash_of(build_id, kind), (uint32_t)debuginfo->count);
		entry = &debuginfo->entries[debuginfo->count++];
		*entry = (struct entry){ .build_id = mem_strndup(build_id.data, build_id.len),
					 .kind = kind };
	}
	debuginfo->bytes += record->bytes - entry->record.bytes;
	entry->record = *record;
	entry->used_at_ns = used_at_ns;
	publish(debuginfo);
}

static void map_again(struct debuginfo *debuginfo)
{
	idmap_clear(&debuginfo->map);
	for (size_t i = 0; i < debuginfo->count; i++)
		idmap_add(&debuginfo->map,
			  hash_of(slice_of(debuginfo->entries[i].build_id),
				  debuginfo->entries[i].kind),
			  (uint32_t)i);
}

/* Removes the file; the last entry takes its place. False when it could not be. */
static bool remove_entry(struct debuginfo *debuginfo, size_t index, const char *why)
{
	struct entry *entry = &debuginfo->entries[index];
	struct err err;

	if (disk_remove(debuginfo->path, slice_of(entry->build_id), entry->kind, &err)) {
		log_warn("debuginfo", "file stays", "cause=\"%s\"", err.message);
		return false;
	}
	log_info("debuginfo", "removed", "build_id=%s bytes=%llu cause=\"%s\"", entry->build_id,
		 (unsigned long long)entry->record.bytes, why);
	metric_add(&removed, 1);
	debuginfo->bytes -= entry->record.bytes;
	free(entry->build_id);
	*entry = debuginfo->entries[--debuginfo->count];
	map_again(debuginfo);
	publish(debuginfo);
	return true;
}

void debuginfo_make_room(struct debuginfo *debuginfo, const struct entry *keep, uint64_t bytes)
{
	uint64_t bytes_max = debuginfo->options.bytes_max;
	const char *kept_id = keep ? keep->build_id : NULL;

	while ((bytes_max && debuginfo->count && debuginfo->bytes + bytes > bytes_max) ||
	       debuginfo->count >= FILES_MAX) {
		size_t oldest = SIZE_MAX;

		for (size_t i = 0; i < debuginfo->count; i++)
			if (debuginfo->entries[i].build_id != kept_id &&
			    (oldest == SIZE_MAX || debuginfo->entries[i].used_at_ns <
							   debuginfo->entries[oldest].used_at_ns))
				oldest = i;
		if (oldest == SIZE_MAX || !remove_entry(debuginfo, oldest, "over the size of all"))
			return;
	}
}

void debuginfo_touch(struct debuginfo *debuginfo, struct slice build_id, enum debuginfo_kind kind,
		     int64_t now_ns)
{
	struct entry *entry = debuginfo_find(debuginfo, build_id, kind);

	if (!entry)
		return;
	if (now_ns - entry->used_at_ns > TOUCH_NS || now_ns < entry->used_at_ns)
		disk_touch(debuginfo->path, build_id, kind, now_ns);
	entry->used_at_ns = now_ns;
}

/* Uses are told by build id: all of its files count as used. */
void debuginfo_note_uses(struct debuginfo *debuginfo)
{
	int64_t now_ns = debuginfo_now_ns(debuginfo);

	for (size_t i = 0; debuginfo->options.take_used && i < debuginfo->count; i++) {
		struct slice build_id = slice_of(debuginfo->entries[i].build_id);

		if (!debuginfo->options.take_used(debuginfo->options.context, build_id))
			continue;
		for (int kind = 0; kind < DEBUGINFO_KINDS; kind++)
			debuginfo_touch(debuginfo, build_id, (enum debuginfo_kind)kind, now_ns);
	}
}

void debuginfo_add_garbage(struct debuginfo *debuginfo, const char *id)
{
	mem_grow(debuginfo->garbage, debuginfo->garbage_count, debuginfo->garbage_capacity);
	memcpy(debuginfo->garbage[debuginfo->garbage_count++], id, DISK_UPLOAD_ID_BYTES);
	lock_signal(&debuginfo->wake);
}

static void drop_partial(struct debuginfo *debuginfo, size_t index)
{
	debuginfo_add_garbage(debuginfo, debuginfo->partials[index].id);
	debuginfo->partials[index] = debuginfo->partials[--debuginfo->partials_count];
}

static size_t oldest_partial(const struct debuginfo *debuginfo, uint64_t *ret_bytes)
{
	size_t oldest = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < debuginfo->partials_count; i++) {
		*ret_bytes += debuginfo->partials[i].received;
		if (debuginfo->partials[i].at_ns < debuginfo->partials[oldest].at_ns)
			oldest = i;
	}
	return oldest;
}

void debuginfo_drop_partials(struct debuginfo *debuginfo, const char *build_id)
{
	uint64_t bytes, bytes_max = debuginfo->options.bytes_max / PARTIAL_PART;
	int64_t oldest_ns = debuginfo_now_ns(debuginfo) - PARTIAL_NS;
	size_t oldest;

	for (size_t i = 0; i < debuginfo->partials_count;) {
		const struct partial *partial = &debuginfo->partials[i];

		if (partial->at_ns < oldest_ns ||
		    (build_id && !strcmp(partial->build_id, build_id)))
			drop_partial(debuginfo, i);
		else
			i++;
	}
	while ((oldest = oldest_partial(debuginfo, &bytes), bytes) && bytes_max &&
	       bytes > bytes_max)
		drop_partial(debuginfo, oldest);
}

void debuginfo_add_partial(struct debuginfo *debuginfo, const struct partial *partial)
{
	uint64_t bytes;

	if (debuginfo->partials_count == PARTIALS_MAX)
		drop_partial(debuginfo, oldest_partial(debuginfo, &bytes));
	debuginfo->partials[debuginfo->partials_count++] = *partial;
	debuginfo_drop_partials(debuginfo, NULL);
}

void debuginfo_remove_old(struct debuginfo *debuginfo)
{
	int64_t oldest_ns = debuginfo_now_ns(debuginfo) - debuginfo->options.retention_ns;

	for (size_t i = 0; debuginfo->options.retention_ns && i < debuginfo->count;)
		if (debuginfo->entries[i].used_at_ns >= oldest_ns ||
		    !remove_entry(debuginfo, i, "not used for longer than the retention time"))
			i++;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *const *left = a, *const *right = b;
	int order = strcmp((*left)->build_id, (*right)->build_id);

	return order ? order : (int)(*left)->kind - (int)(*right)->kind;
}

bool debuginfo_may_see(struct debuginfo *debuginfo, struct slice build_id, enum debuginfo_kind kind,
		       struct slice tenant)
{
	char id[ELF_BUILD_ID_TEXT_BYTES];
	const struct entry *entry;
	bool may_see;

	if (!debuginfo_normalise_id(build_id, id))
		return false;
	lock_take(&debuginfo->lock);
	entry = debuginfo_find(debuginfo, slice_of(id), kind);
	may_see = entry ? debuginfo_record_has_owner(&entry->record, tenant) : !tenant.len;
	lock_give(&debuginfo->lock);
	return may_see;
}

void debuginfo_each(struct debuginfo *debuginfo, debuginfo_file_f *visit, void *context)
{
	const struct entry **sorted;

	lock_take(&debuginfo->lock);
	sorted = mem_new_array(const struct entry *, debuginfo->count);
	for (size_t i = 0; i < debuginfo->count; i++)
		sorted[i] = &debuginfo->entries[i];
	qsort(sorted, debuginfo->count, sizeof(*sorted), compare_entries);
	for (size_t i = 0; i < debuginfo->count; i++) {
		const struct debuginfo_file file = { slice_of(sorted[i]->build_id), sorted[i]->kind,
						     &sorted[i]->record, sorted[i]->used_at_ns };

		visit(context, &file);
	}
	free(sorted);
	lock_give(&debuginfo->lock);
}
