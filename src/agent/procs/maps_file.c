/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/procs/procs_metrics.h"
#include "base/mem.h"
#include "codec/procmaps.h"

#define CHUNK_BYTES ((size_t)64 * 1024)
#define LINE_BYTES_MAX ((size_t)32 * 1024) /* a path is at most 4 kB, escaped fourfold */

static void mapping_fini(struct mapping *mapping, int64_t now_ns)
{
	binary_unref(mapping->binary, now_ns);
	free(mapping->path);
}

void mappings_free(struct mappings *mappings, int64_t now_ns)
{
	for (size_t i = 0; i < mappings->count; i++)
		mapping_fini(&mappings->items[i], now_ns);
	free(mappings->items);
	*mappings = (struct mappings){ 0 };
}

void mappings_copy(struct mappings *into, const struct mappings *from)
{
	into->items = mem_new_array(struct mapping, from->count + 1);
	into->count = from->count;
	into->capacity = from->count + 1;
	for (size_t i = 0; i < from->count; i++) {
		const struct mapping *mapping = &from->items[i];

		into->items[i] = *mapping;
		into->items[i].binary = binary_ref(mapping->binary);
		if (mapping->path)
			into->items[i].path = mem_strndup(mapping->path, strlen(mapping->path));
	}
}

/* Paths that name no file, although the kernel gives the memory an inode. */
static bool is_file(const struct procmaps_line *line)
{
	return line->inode && line->path.len && line->path.data[0] == '/' &&
	       !slice_starts_with(line->path, SLICE_LITERAL("//anon")) &&
	       !slice_starts_with(line->path, SLICE_LITERAL("/dev/zero")) &&
	       !slice_starts_with(line->path, SLICE_LITERAL("/SYSV"));
}

static void add_line(struct mappings *fresh, const struct procmaps_line *line)
{
	struct mapping mapping = { .start = line->start, .end = line->end };

	if (is_file(line)) {
		struct strbuf path = { 0 };

		procmaps_add_path(&path, line->path);
		mapping.kind = MAPPING_FILE;
		mapping.offset = line->offset;
		mapping.inode = line->inode;
		mapping.path = path.data;
	} else {
		mapping.kind = slice_is(line->path, "[vdso]") ? MAPPING_VDSO : MAPPING_ANONYMOUS;
	}
	mem_grow(fresh->items, fresh->count, fresh->capacity);
	fresh->items[fresh->count++] = mapping;
}

/* Takes whole lines off the front of `text`; the kernel writes them in order of address. */
static void take_lines(struct mappings *fresh, struct strbuf *text)
{
	struct slice rest = strbuf_slice(text);
	size_t at;

	while ((at = slice_find_byte(rest, '\n')) != SIZE_MAX) {
		struct procmaps_line line;
		uint64_t end = fresh->count ? fresh->items[fresh->count - 1].end : 0;

		if (procmaps_parse_line(slice_from(rest.data, at), &line, NULL))
			metric_add(&procs_map_lines_bad, 1);
		else if (line.executable && line.start >= end && fresh->count < MAPPINGS_MAX)
			add_line(fresh, &line);
		rest = slice_tail(rest, at + 1);
	}
	memmove(text->data, rest.data, rest.len);
	text->len = rest.len;
}

/* Keeps the older mapping's binary where the two are the same. */
static void inherit(struct mapping *fresh, struct mapping *old)
{
	if (fresh->kind != old->kind || fresh->inode != old->inode || fresh->start != old->start ||
	    fresh->offset != old->offset)
		return;
	fresh->opened = old->opened;
	fresh->binary = binary_ref(old->binary);
}

/* Merges two sorted lists: all of `fresh`, and of `old` what overlaps nothing. */
static void merge(struct mappings *mappings, struct mappings *fresh, int64_t now_ns)
{
	struct mappings merged = { 0 };
	size_t at = 0;

	for (size_t i = 0; i < mappings->count; i++) {
		struct mapping *old = &mappings->items[i];

		for (; at < fresh->count && fresh->items[at].end <= old->start; at++) {
			mem_grow(merged.items, merged.count, merged.capacity);
			merged.items[merged.count++] = fresh->items[at];
		}
		for (size_t j = at; j < fresh->count && fresh->items[j].start < old->end; j++)
			inherit(&fresh->items[j], old);
		if (merged.count < MAPPINGS_MAX &&
		    (at == fresh->count || fresh->items[at].start >= old->end)) {
			mem_grow(merged.items, merged.count, merged.capacity);
			merged.items[merged.count++] = *old;
		} else {
			mapping_fini(old, now_ns);
		}
	}
	for (; at < fresh->count; at++) {
		mem_grow(merged.items, merged.count, merged.capacity);
		merged.items[merged.count++] = fresh->items[at];
	}
	free(mappings->items);
	free(fresh->items);
	*mappings = merged;
}

int mappings_read(struct mappings *mappings, int fd, int64_t now_ns, struct err *err)
{
	struct mappings fresh = { 0 };
	struct strbuf text = { 0 };
	size_t total = 0;
	ssize_t len;

	do {
		len = read(fd, strbuf_reserve(&text, CHUNK_BYTES), CHUNK_BYTES);
		if (len > 0) {
			text.len += (size_t)len;
			total += (size_t)len;
			take_lines(&fresh, &text);
		}
	} while (len > 0 && total < MAPPINGS_READ_BYTES_MAX && text.len < LINE_BYTES_MAX);
	metric_add(&procs_map_reads, 1);
	metric_add(&procs_map_bytes, (int64_t)total);
	if (len > 0)
		metric_add(&procs_maps_cut, 1);
	strbuf_free(&text);
	if (len < 0) {
		mappings_free(&fresh, now_ns);
		return err_set_errno(err, errno, "read memory maps");
	}
	merge(mappings, &fresh, now_ns);
	return total > 0;
}

struct mapping *mappings_find(const struct mappings *mappings, uint64_t address)
{
	size_t low = 0, high = mappings->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mappings->items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == mappings->count || mappings->items[low].start > address)
		return NULL;
	return &mappings->items[low];
}

size_t mappings_bytes(const struct mappings *mappings)
{
	return mappings->capacity * sizeof(*mappings->items) + mappings->count * 64;
}
