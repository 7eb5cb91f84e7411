/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/maps_file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/procs/procs_metrics.h"
#include "base/mem.h"
#include "codec/process/procmaps.h"

#define CHUNK_BYTES ((size_t)64 * 1024)
#define LINE_BYTES_MAX ((size_t)32 * 1024) /* a path is at most 4 kB, escaped fourfold */
#define DEVICE_MINOR_BITS 20		   /* of dev_t within the kernel */

void maps_file_free(struct maps_file *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		free(maps->ranges[i].path);
	free(maps->ranges);
	*maps = (struct maps_file){ 0 };
}

/* Paths that name no file, although the kernel gives the memory an inode. */
static bool is_file(const struct procmaps_line *line)
{
	return line->inode && line->path.len && line->path.data[0] == '/' &&
	       !slice_starts_with(line->path, SLICE_LITERAL("//anon")) &&
	       !slice_starts_with(line->path, SLICE_LITERAL("/dev/zero")) &&
	       !slice_starts_with(line->path, SLICE_LITERAL("/SYSV"));
}

static void add_line(struct maps_file *maps, const struct procmaps_line *line)
{
	struct maps_range range = { .start = line->start, .end = line->end };

	if (is_file(line)) {
		struct strbuf path = { 0 };

		procmaps_add_path(&path, line->path);
		range.kind = MAPPING_FILE;
		range.offset = line->offset;
		range.inode = line->inode;
		range.device = (uint64_t)line->dev_major << DEVICE_MINOR_BITS | line->dev_minor;
		range.path = mem_strndup(path.data, path.len);
		strbuf_free(&path);
	} else {
		range.kind = slice_is(line->path, "[vdso]") ? MAPPING_VDSO : MAPPING_ANONYMOUS;
	}
	mem_grow(maps->ranges, maps->count, maps->capacity);
	maps->ranges[maps->count++] = range;
}

/* Takes whole lines off the front of `text`; the kernel writes them in order of address. */
static void take_lines(struct maps_file *maps, struct strbuf *text)
{
	struct slice rest = strbuf_slice(text);
	size_t at;

	while ((at = slice_find_byte(rest, '\n')) != SIZE_MAX) {
		struct procmaps_line line;
		uint64_t end = maps->count ? maps->ranges[maps->count - 1].end : 0;

		if (procmaps_parse_line(slice_from(rest.data, at), &line, NULL))
			metric_add(&procs_map_lines_bad, 1);
		else if (line.executable && line.start >= end && maps->count < SPACE_MAPPINGS_MAX)
			add_line(maps, &line);
		rest = slice_tail(rest, at + 1);
	}
	memmove(text->data, rest.data, rest.len);
	text->len = rest.len;
}

int maps_file_read(struct maps_file *maps, int fd, struct err *err)
{
	struct strbuf text = { 0 };
	size_t total = 0;
	ssize_t len;

	do {
		len = read(fd, strbuf_reserve(&text, CHUNK_BYTES), CHUNK_BYTES);
		if (len > 0) {
			text.len += (size_t)len;
			total += (size_t)len;
			take_lines(maps, &text);
		}
	} while (len > 0 && total < MAPS_FILE_BYTES_MAX && text.len < LINE_BYTES_MAX);
	metric_add(&procs_map_reads, 1);
	metric_add(&procs_map_bytes, (int64_t)total);
	if (len > 0)
		metric_add(&procs_maps_cut, 1);
	strbuf_free(&text);
	if (len < 0) {
		int error = errno;

		maps_file_free(maps);
		return err_set_errno(err, error, "read memory maps");
	}
	return total > 0;
}
