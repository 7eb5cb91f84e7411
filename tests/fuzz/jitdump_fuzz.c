/* SPDX-License-Identifier: Apache-2.0 */
/* Jitdump files: read as from a file that grows, in two steps; then the records one by one. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/jit/code_reader.h"
#include "codec/process/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_body(struct slice body, bool swapped)
{
	struct jitdump_load load;
	struct jitdump_move move;
	struct jitdump_source source;
	struct err err;

	if (!jitdump_parse_load(body, swapped, &load, &err) &&
	    (!load.code.bytes || !load.name.len || load.name.len > body.len))
		abort();
	if (!jitdump_parse_move(body, swapped, &move, &err) && !move.to.bytes)
		abort();
	if (!jitdump_parse_debug_info(body, swapped, &source, &err) && source.file.len > body.len)
		abort();
}

static void read_some(struct code_reader *reader, struct code_map **map)
{
	struct code_map_builder builder = { 0 };
	struct code_map *next;
	size_t dropped;

	code_reader_read(reader, &builder, *map);
	next = code_map_build(&builder, *map, &dropped);
	code_map_unref(*map);
	code_map_builder_free(&builder);
	*map = next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct code_reader reader;
	struct code_map *map = NULL;
	size_t half = size / 2;

	check_body(slice_from(data, size), false);
	check_body(slice_from(data, size), true);
	if (fd < 0)
		fd = memfd_create("jit-1.dump", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, half, 0) != (ssize_t)half)
		abort();
	code_reader_init(&reader, CODE_JITDUMP);
	code_reader_adopt(&reader, &(struct code_file){ .fd = dup(fd) });
	read_some(&reader, &map);
	if (pwrite(fd, data + half, size - half, (off_t)half) != (ssize_t)(size - half))
		abort();
	read_some(&reader, &map);
	if (reader.offset > size)
		abort();
	code_map_unref(map);
	code_reader_fini(&reader);
	return 0;
}
