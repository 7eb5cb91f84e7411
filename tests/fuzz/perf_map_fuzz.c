/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf maps: lines that are accepted keep their promises, and so does the map built of them; a file
 * read while it grows says the same as one read at once.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/jit/code_name.h"
#include "agent/jit/code_reader.h"
#include "codec/process/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(struct slice text)
{
	struct code_place place = { .name = text };
	struct code_name name;

	code_name_parse(&place, FRAME_NATIVE, &name);
	if (name.function.len > text.len && !slice_is(name.function, "(anonymous)"))
		abort();
	if (name.file.len > text.len || (name.file.len && name.file.data < text.data))
		abort();
}

static void check_map(const struct code_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct code_range *range = &map->ranges[i];
		struct code_place place;

		if (!range->bytes ||
		    (i && map->ranges[i - 1].start + map->ranges[i - 1].bytes > range->start))
			abort();
		if (!code_map_find(map, range->start + range->bytes - 1, &place))
			abort();
	}
}

/* What a reader makes of the file when it has `first` bytes, and then all of them. */
static struct code_map *read_file(int fd, const uint8_t *data, size_t size, size_t first)
{
	struct code_map_builder builder = { 0 };
	struct code_reader reader;
	struct code_map *map;
	size_t dropped;

	code_reader_init(&reader, CODE_PERF_MAP);
	code_reader_adopt(&reader, &(struct code_file){ .fd = dup(fd) });
	if (ftruncate(fd, 0) || pwrite(fd, data, first, 0) != (ssize_t)first)
		abort();
	code_reader_read(&reader, &builder, NULL);
	if (pwrite(fd, data + first, size - first, (off_t)first) != (ssize_t)(size - first))
		abort();
	code_reader_read(&reader, &builder, NULL);
	code_reader_fini(&reader);
	map = code_map_build(&builder, NULL, &dropped);
	code_map_builder_free(&builder);
	return map;
}

static void check_growing(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct code_map *once, *twice;

	if (fd < 0)
		fd = memfd_create("perf-1.map", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	once = read_file(fd, data, size, size);
	twice = read_file(fd, data, size, size / 2);
	if (once->count != twice->count)
		abort();
	for (size_t i = 0; i < once->count; i++) {
		struct code_place first, second;

		if (once->ranges[i].start != twice->ranges[i].start ||
		    once->ranges[i].bytes != twice->ranges[i].bytes ||
		    !code_map_find(once, once->ranges[i].start, &first) ||
		    !code_map_find(twice, once->ranges[i].start, &second) ||
		    !slice_equal(first.name, second.name))
			abort();
	}
	code_map_unref(once);
	code_map_unref(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_from(data, size);
	struct code_map_builder builder = { 0 };
	struct code_map *map, *next;
	size_t dropped;

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);
		struct perf_map_line entry;
		struct code_place place = { 0 };
		struct err err;

		if (perf_map_parse_line(line, &entry, &err))
			continue;
		if (!entry.bytes || entry.start + entry.bytes < entry.start || !entry.name.len ||
		    entry.name.len > line.len)
			abort();
		check_name(entry.name);
		place.name = entry.name;
		code_map_builder_add(&builder, entry.start, entry.bytes, &place);
	}
	map = code_map_build(&builder, NULL, &dropped);
	check_map(map);
	next = code_map_build(&builder, map, &dropped); /* the same again changes nothing */
	check_map(next);
	code_map_unref(map);
	code_map_unref(next);
	code_map_builder_free(&builder);
	check_growing(data, size);
	return 0;
}
