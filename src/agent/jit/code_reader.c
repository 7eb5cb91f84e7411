/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jit/code_reader.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/jit/jit_metrics.h"
#include "base/mem.h"
#include "codec/process/jitdump.h"
#include "codec/process/perf_map.h"

#define WINDOW_BYTES ((size_t)256 * 1024)

struct read_turn {
	struct code_reader *reader;
	struct code_map_builder *builder;
	const struct code_map *base;
	uint64_t file_bytes;
	char *window; /* WINDOW_BYTES */
	size_t read_bytes;
};

void code_reader_init(struct code_reader *reader, enum code_format format)
{
	*reader = (struct code_reader){ .format = format, .fd = -1 };
}

void code_reader_close(struct code_reader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	reader->fd = -1;
}

void code_reader_fini(struct code_reader *reader)
{
	code_reader_close(reader);
	strbuf_free(&reader->source_file);
	strbuf_free(&reader->frames);
}

static void start_over(struct code_reader *reader)
{
	reader->offset = 0;
	reader->seen_bytes = 0;
	reader->in_long_line = false;
	reader->damaged = false;
	reader->source_line = 0;
	strbuf_clear(&reader->frames);
	if (reader->rows)
		code_rows_forget(reader->rows);
}

void code_reader_adopt(struct code_reader *reader, const struct code_file *file)
{
	if (file->fd < 0)
		return;
	code_reader_close(reader);
	if (file->device != reader->device || file->inode != reader->inode)
		start_over(reader);
	reader->fd = file->fd;
	reader->is_copy = file->is_copy;
	reader->copied_from = file->copied_from;
	reader->device = file->device;
	reader->inode = file->inode;
}

struct lender_part code_reader_wants(const struct code_reader *reader)
{
	return (struct lender_part){
		.from = reader->offset - reader->seen_bytes,
		.bytes_max = reader->format == CODE_PERF_MAP ? CODE_READER_PERF_MAP_BYTES_MAX
							     : CODE_READER_COPY_BYTES_MAX,
		.is_end = reader->format == CODE_PERF_MAP,
	};
}

/* Up to `len` bytes from the reader's offset into the window; less only at the file's end. */
static struct slice read_window(struct read_turn *turn, size_t len)
{
	size_t total = 0;
	ssize_t got;

	while (total < len && (got = pread(turn->reader->fd, turn->window + total, len - total,
					   (off_t)(turn->reader->offset + total))) > 0)
		total += (size_t)got;
	turn->read_bytes += total;
	return slice_from(turn->window, total);
}

/* True if the bytes before the offset are still those that were read. */
static bool goes_on(const struct code_reader *reader, uint64_t file_bytes)
{
	uint8_t now[CODE_READER_SEEN_BYTES];

	if (file_bytes < reader->offset)
		return false;
	if (reader->is_copy && reader->copied_from > reader->offset - reader->seen_bytes)
		return true; /* it has grown by more than is copied */
	return !reader->seen_bytes || (pread(reader->fd, now, reader->seen_bytes,
					     (off_t)(reader->offset - reader->seen_bytes)) ==
					       (ssize_t)reader->seen_bytes &&
				       !memcmp(now, reader->seen, reader->seen_bytes));
}

static void remember_seen(struct code_reader *reader)
{
	size_t len = reader->offset < CODE_READER_SEEN_BYTES ? (size_t)reader->offset
							     : CODE_READER_SEEN_BYTES;
	ssize_t got = pread(reader->fd, reader->seen, len, (off_t)(reader->offset - len));

	reader->seen_bytes = got > 0 && (size_t)got == len ? len : 0;
}

/* Cut where no character of UTF-8 is split. */
static struct slice cut_name(struct slice name)
{
	if (name.len <= CODE_READER_NAME_BYTES_MAX)
		return name;
	name.len = CODE_READER_NAME_BYTES_MAX;
	while (name.len && ((unsigned char)name.data[name.len] & 0xc0) == 0x80)
		name.len--;
	return name;
}

static bool add_line(struct read_turn *turn, struct slice text)
{
	struct perf_map_line line;
	struct code_place place = { 0 };

	if (perf_map_parse_line(text, &line, NULL)) {
		metric_add(&jit_entries_bad, 1);
		return true;
	}
	place.name = cut_name(line.name);
	if (!code_map_builder_add(turn->builder, line.start, line.bytes, &place))
		return false;
	metric_add(&jit_entries, 1);
	return true;
}

/* Whole lines off the front of the window; false when the builder is full. */
static bool take_lines(struct read_turn *turn, struct slice window)
{
	struct code_reader *reader = turn->reader;
	size_t at;

	while ((at = slice_find_byte(window, '\n')) != SIZE_MAX) {
		if (!reader->in_long_line && !add_line(turn, slice_from(window.data, at)))
			return false;
		reader->in_long_line = false;
		reader->offset += at + 1;
		window = slice_tail(window, at + 1);
	}
	return true;
}

/* True when there is more. */
static bool read_perf_map(struct read_turn *turn)
{
	struct code_reader *reader = turn->reader;

	if (turn->file_bytes - reader->offset > CODE_READER_PERF_MAP_BYTES_MAX) {
		reader->offset = turn->file_bytes - CODE_READER_PERF_MAP_BYTES_MAX;
		reader->in_long_line = true;
	}
	while (turn->read_bytes < CODE_READER_TURN_BYTES) {
		uint64_t before = reader->offset;
		struct slice window = read_window(turn, WINDOW_BYTES);

		if (!take_lines(turn, window))
			return true;
		if (window.len < WINDOW_BYTES)
			return false;
		if (reader->offset == before) { /* no newline in all of it */
			reader->offset += window.len;
			reader->in_long_line = true;
		}
	}
	return true;
}

static bool add_load(struct read_turn *turn, struct slice body)
{
	struct code_reader *reader = turn->reader;
	struct jitdump_load load;
	struct code_place place = { 0 };

	if (jitdump_parse_load(body, reader->swapped, &load, NULL)) {
		metric_add(&jit_entries_bad, 1);
		return true;
	}
	place.name = cut_name(load.name);
	if (reader->source_line && reader->source_code == load.code.start) {
		place.file = strbuf_slice(&reader->source_file);
		place.line = reader->source_line;
	}
	if (!code_map_builder_add(turn->builder, load.code.start, load.code.bytes, &place))
		return false;
	reader->source_line = 0;
	if (reader->has_rows)
		code_rows_load(reader->rows, &load.code, strbuf_slice(&reader->frames));
	strbuf_clear(&reader->frames);
	metric_add(&jit_entries, 1);
	return true;
}

static bool add_move(struct read_turn *turn, struct slice body)
{
	struct jitdump_move move;
	struct strbuf copy = { 0 };
	struct code_place place;
	bool added = true;

	if (jitdump_parse_move(body, turn->reader->swapped, &move, NULL) ||
	    !code_map_builder_find(turn->builder, turn->base, move.from, &place)) {
		metric_add(&jit_entries_bad, 1);
		return true;
	}
	/* The texts of the builder move when one is added. */
	strbuf_add_slice(&copy, place.name);
	strbuf_add_slice(&copy, place.file);
	place.file = slice_from(copy.data + place.name.len, place.file.len);
	place.name = slice_from(copy.data, place.name.len);
	added = code_map_builder_add(turn->builder, move.to.start, move.to.bytes, &place);
	if (added && turn->reader->has_rows)
		code_rows_load(turn->reader->rows, &move.to, slice_from(NULL, 0));
	strbuf_free(&copy);
	return added;
}

static void keep_source(struct code_reader *reader, struct slice body)
{
	struct jitdump_source source;

	if (jitdump_parse_debug_info(body, reader->swapped, &source, NULL)) {
		metric_add(&jit_entries_bad, 1);
		return;
	}
	strbuf_clear(&reader->source_file);
	strbuf_add_slice(&reader->source_file, cut_name(source.file));
	reader->source_code = source.code;
	reader->source_line = source.line;
}

static void keep_unwinding(struct code_reader *reader, struct slice body)
{
	struct jitdump_unwinding unwinding;

	strbuf_clear(&reader->frames);
	if (!reader->has_rows)
		return;
	if (jitdump_parse_unwinding(body, reader->swapped, &unwinding, NULL))
		metric_add(&jit_entries_bad, 1);
	else if (unwinding.address)
		code_rows_tell(reader->rows, &unwinding);
	else if (unwinding.frames.len <= CODE_READER_FRAMES_BYTES_MAX)
		strbuf_add_slice(&reader->frames, unwinding.frames);
	else
		metric_add(&jit_unwinding_dropped, 1);
}

/* False when the builder is full, or enough was done in this turn. */
static bool add_record(struct read_turn *turn, const struct jitdump_record *record,
		       struct slice body)
{
	if (turn->reader->has_rows && code_rows_is_spent(turn->reader->rows))
		return false;
	switch (record->id) {
	case JITDUMP_LOAD:
		return add_load(turn, body);
	case JITDUMP_MOVE:
		return add_move(turn, body);
	case JITDUMP_DEBUG_INFO:
		keep_source(turn->reader, body);
		return true;
	case JITDUMP_UNWINDING_INFO:
		keep_unwinding(turn->reader, body);
		return true;
	default:
		return true;
	}
}

/* How much of a record's body is looked at. */
static size_t body_wanted(const struct jitdump_record *record)
{
	size_t body = record->bytes - JITDUMP_RECORD_HEAD_BYTES;
	size_t wanted = record->id == JITDUMP_UNWINDING_INFO ? JITDUMP_UNWINDING_BYTES_MAX
							     : JITDUMP_BODY_BYTES_MAX;

	return body < wanted ? body : wanted;
}

/* False when no further record can be taken now. */
static bool take_record(struct read_turn *turn, struct slice *window, bool *ret_full)
{
	struct code_reader *reader = turn->reader;
	struct jitdump_record record;
	size_t body;

	if (window->len < JITDUMP_RECORD_HEAD_BYTES)
		return false;
	if (jitdump_parse_record(*window, reader->swapped, &record, NULL)) {
		reader->damaged = true;
		metric_add(&jit_entries_bad, 1);
		return false;
	}
	if (record.bytes > turn->file_bytes - reader->offset)
		return false; /* not all written */
	body = body_wanted(&record);
	if (window->len < JITDUMP_RECORD_HEAD_BYTES + body)
		return false;
	if (!add_record(turn, &record,
			slice_from(window->data + JITDUMP_RECORD_HEAD_BYTES, body))) {
		*ret_full = true;
		return false;
	}
	reader->offset += record.bytes;
	*window = slice_tail(*window, record.bytes);
	return true;
}

static void take_header(struct read_turn *turn)
{
	struct code_reader *reader = turn->reader;
	struct slice window = read_window(turn, JITDUMP_HEADER_BYTES);
	struct jitdump_header header;

	if (window.len < JITDUMP_HEADER_BYTES)
		return;
	if (jitdump_parse_header(window, &header, NULL)) {
		reader->damaged = true;
		metric_add(&jit_entries_bad, 1);
		return;
	}
	reader->swapped = header.swapped;
	/* CPython 3.13 says none. */
	reader->has_rows = reader->rows && !header.swapped &&
			   (header.machine == EM_X86_64 || header.machine == EM_NONE);
	if (header.bytes <= turn->file_bytes)
		reader->offset = header.bytes;
}

/* True when there is more. */
static bool read_jitdump(struct read_turn *turn)
{
	struct code_reader *reader = turn->reader;
	bool full = false;

	if (!reader->offset)
		take_header(turn);
	while (reader->offset && !reader->damaged && turn->read_bytes < CODE_READER_TURN_BYTES) {
		uint64_t before = reader->offset;
		struct slice window = read_window(turn, WINDOW_BYTES);

		while (take_record(turn, &window, &full))
			;
		if (full)
			return true;
		if (reader->offset == before)
			return false;
	}
	return reader->offset && !reader->damaged;
}

bool code_reader_read(struct code_reader *reader, struct code_map_builder *builder,
		      const struct code_map *base)
{
	struct read_turn turn = { .reader = reader, .builder = builder, .base = base };
	struct stat stat;
	bool more;

	if (reader->fd < 0 || fstat(reader->fd, &stat) || stat.st_size < 0)
		return false;
	turn.file_bytes = (uint64_t)stat.st_size;
	if (!goes_on(reader, turn.file_bytes)) {
		start_over(reader);
		metric_add(&jit_files_anew, 1);
		if (reader->is_copy && reader->copied_from)
			return true; /* its beginning is not there */
	}
	if (reader->damaged || turn.file_bytes == reader->offset)
		return false;
	turn.window = mem_calloc(WINDOW_BYTES, 1);
	more = reader->format == CODE_PERF_MAP ? read_perf_map(&turn) : read_jitdump(&turn);
	free(turn.window);
	remember_seen(reader);
	metric_add(&jit_read_bytes, (int64_t)turn.read_bytes);
	return more;
}
