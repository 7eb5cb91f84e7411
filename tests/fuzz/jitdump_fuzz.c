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
	struct jitdump_unwinding unwinding;
	struct err err;

	if (!jitdump_parse_load(body, swapped, &load, &err) &&
	    (!load.code.bytes || !load.name.len || load.name.len > body.len))
		abort();
	if (!jitdump_parse_move(body, swapped, &move, &err) && !move.to.bytes)
		abort();
	if (!jitdump_parse_debug_info(body, swapped, &source, &err) && source.file.len > body.len)
		abort();
	if (!jitdump_parse_unwinding(body, swapped, &unwinding, &err) &&
	    unwinding.frames.len > body.len)
		abort();
}

#define LINES 64

/* Rows are in order, and in the line. */
static void check_line(void *context, uint64_t number, const struct code_line *line)
{
	const struct code_rows *rows = context;

	if (rows->count > LINES || (line && TABLE_ROW_OFFSET(line->rows[0])))
		abort();
	for (unsigned i = 1; line && i < TABLE_LINE_WORDS; i++)
		if (line->rows[i] != TABLE_ROW_UNUSED &&
		    (line->rows[i] <= line->rows[i - 1] ||
		     TABLE_ROW_OFFSET(line->rows[i]) >= CODE_LINE_BYTES))
			abort();
	(void)number;
}

static void read_some(struct code_reader *reader, struct code_map **map)
{
	struct code_map_builder builder = { 0 };
	struct code_map *next;
	size_t dropped;

	code_rows_begin(reader->rows, LINES);
	code_reader_read(reader, &builder, *map);
	next = code_map_build(&builder, *map, &dropped);
	code_map_unref(*map);
	code_map_builder_free(&builder);
	code_rows_take_changes(reader->rows, SIZE_MAX, check_line, reader->rows);
	*map = next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct code_reader reader;
	struct code_rows rows = { 0 };
	struct code_map *map = NULL;
	size_t half = size / 2;

	check_body(slice_from(data, size), false);
	check_body(slice_from(data, size), true);
	if (fd < 0)
		fd = memfd_create("jit-1.dump", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, half, 0) != (ssize_t)half)
		abort();
	code_reader_init(&reader, CODE_JITDUMP);
	reader.rows = &rows;
	code_reader_adopt(&reader, &(struct code_file){ .fd = dup(fd) });
	read_some(&reader, &map);
	if (pwrite(fd, data + half, size - half, (off_t)half) != (ssize_t)(size - half))
		abort();
	read_some(&reader, &map);
	if (reader.offset > size)
		abort();
	code_map_unref(map);
	code_reader_fini(&reader);
	code_rows_fini(&rows);
	return 0;
}
