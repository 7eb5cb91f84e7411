/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "base/mem.h"

#define OUT_BYTES ((size_t)1 << 20)
#define TEXT_LEVEL 9 /* of zstd: the blocks are small, higher ones gain nothing */

/* Numbers of any width, the lowest bits first. */
struct bit_writer {
	struct strbuf *out;
	uint64_t held;
	unsigned held_bits; /* below 8 between calls */
};

static void put_bits(struct bit_writer *bits, uint32_t value, unsigned width)
{
	bits->held |= (uint64_t)value << bits->held_bits;
	for (bits->held_bits += width; bits->held_bits >= 8; bits->held_bits -= 8) {
		strbuf_add_byte(bits->out, (char)bits->held);
		bits->held >>= 8;
	}
}

static void end_bits(struct bit_writer *bits)
{
	if (bits->held_bits)
		strbuf_add_byte(bits->out, (char)bits->held);
	bits->held = bits->held_bits = 0;
}

static unsigned width_of(uint32_t value)
{
	return value ? 32 - (unsigned)__builtin_clz(value) : 0;
}

void symbol_writer_init(struct symbol_writer *writer, int fd)
{
	*writer = (struct symbol_writer){ .fd = fd };
	writer->scopes.fields = SCOPE_FIELDS;
	writer->calls.fields = CALL_FIELDS;
	writer->functions.fields = FUNCTION_FIELDS;
	writer->written = SYMBOL_HEADER_BYTES;
	writer->encoder = ZSTD_createCCtx();
}

void symbol_writer_free(struct symbol_writer *writer)
{
	strbuf_free(&writer->out);
	strbuf_free(&writer->regions);
	strbuf_free(&writer->starts);
	free(writer->scopes.numbers);
	free(writer->calls.numbers);
	free(writer->functions.numbers);
	strbuf_free(&writer->text_offsets);
	strbuf_free(&writer->text_blocks);
	strbuf_free(&writer->texts);
	ZSTD_freeCCtx(writer->encoder);
}

static void write_at(struct symbol_writer *writer, const char *data, size_t len, uint64_t offset)
{
	while (len && !writer->error_number) {
		ssize_t done = pwrite(writer->fd, data, len, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			writer->error_number = done ? errno : EIO;
			return;
		}
		data += done;
		len -= (size_t)done;
		offset += (uint64_t)done;
	}
}

static void flush(struct symbol_writer *writer)
{
	writer->crc = hash_crc32c(writer->crc, writer->out.data, writer->out.len);
	write_at(writer, writer->out.data, writer->out.len, writer->written);
	writer->written += writer->out.len;
	strbuf_clear(&writer->out);
}

static uint64_t position(const struct symbol_writer *writer)
{
	return writer->written + writer->out.len;
}

/* The files of a block of rows, and what its numbers have in common. */
struct block_plan {
	uint32_t files[SYMBOL_BLOCK_ROWS_MAX], line_bases[SYMBOL_BLOCK_ROWS_MAX];
	uint8_t file_of[SYMBOL_BLOCK_ROWS_MAX]; /* by row */
	unsigned files_count;
	uint32_t scope_base;
	unsigned address_width, scope_width, file_width, line_width, column_width;
	unsigned path_width, base_width;
};

static unsigned widest(unsigned width, uint32_t value)
{
	unsigned other = width_of(value);

	return other > width ? other : width;
}

static void plan_files(struct block_plan *plan, const struct symbol_row *rows, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned file = 0;

		while (file < plan->files_count && plan->files[file] != rows[i].file)
			file++;
		if (file == plan->files_count) {
			plan->files[plan->files_count++] = rows[i].file;
			plan->line_bases[file] = rows[i].line;
		}
		if (rows[i].line < plan->line_bases[file])
			plan->line_bases[file] = rows[i].line;
		plan->file_of[i] = (uint8_t)file;
	}
	plan->file_width = width_of(plan->files_count - 1);
	for (unsigned i = 0; i < plan->files_count; i++) {
		plan->path_width = widest(plan->path_width, plan->files[i]);
		plan->base_width = widest(plan->base_width, plan->line_bases[i]);
	}
}

static void plan_block(struct block_plan *plan, const struct symbol_row *rows, unsigned count)
{
	*plan = (struct block_plan){ .scope_base = UINT32_MAX };
	plan_files(plan, rows, count);
	for (unsigned i = 0; i < count; i++)
		if (rows[i].scope < plan->scope_base)
			plan->scope_base = rows[i].scope;
	for (unsigned i = 0; i < count; i++) {
		plan->address_width =
			widest(plan->address_width, (uint32_t)(rows[i].address - rows[0].address));
		if (rows[i].scope != SYMBOL_NONE)
			plan->scope_width =
				widest(plan->scope_width, rows[i].scope - plan->scope_base + 1);
		plan->line_width =
			widest(plan->line_width, rows[i].line - plan->line_bases[plan->file_of[i]]);
		plan->column_width = widest(plan->column_width, rows[i].column);
	}
}

static void write_block(struct symbol_writer *writer)
{
	const struct symbol_row *rows = writer->rows;
	struct bit_writer bits = { .out = &writer->out };
	struct block_plan plan;
	uint8_t header[8];

	plan_block(&plan, rows, writer->rows_count);
	memcpy(header,
	       (uint8_t[]){ (uint8_t)writer->rows_count, (uint8_t)plan.files_count,
			    (uint8_t)plan.address_width, (uint8_t)plan.scope_width,
			    (uint8_t)plan.line_width, (uint8_t)plan.column_width,
			    (uint8_t)plan.path_width, (uint8_t)plan.base_width },
	       sizeof(header));
	strbuf_add_u32(&writer->out, plan.scope_base);
	strbuf_add(&writer->out, header, sizeof(header));
	for (unsigned i = 0; i < plan.files_count; i++) {
		put_bits(&bits, plan.files[i], plan.path_width);
		put_bits(&bits, plan.line_bases[i], plan.base_width);
	}
	for (unsigned i = 0; i < writer->rows_count; i++) {
		bool has_scope = rows[i].scope != SYMBOL_NONE;

		put_bits(&bits, (uint32_t)(rows[i].address - rows[0].address), plan.address_width);
		put_bits(&bits, has_scope ? rows[i].scope - plan.scope_base + 1 : 0,
			 plan.scope_width);
		put_bits(&bits, plan.file_of[i], plan.file_width);
		put_bits(&bits, rows[i].line - plan.line_bases[plan.file_of[i]], plan.line_width);
		put_bits(&bits, rows[i].column, plan.column_width);
	}
	end_bits(&bits);
}

static void add_start(struct symbol_writer *writer)
{
	uint64_t start = writer->rows[0].address;

	if (!writer->regions_count || start - writer->region_base > UINT32_MAX) {
		writer->region_base = start;
		strbuf_add_u64(&writer->regions, start);
		strbuf_add_u32(&writer->regions, writer->blocks_count);
		strbuf_add_u32(&writer->regions, 0);
		writer->regions_count++;
	}
	strbuf_add_u32(&writer->starts, (uint32_t)(start - writer->region_base));
	strbuf_add_u32(&writer->starts, (uint32_t)(position(writer) - SYMBOL_HEADER_BYTES));
	writer->blocks_count++;
}

static void close_block(struct symbol_writer *writer)
{
	if (!writer->rows_count)
		return;
	add_start(writer);
	write_block(writer);
	writer->rows_count = 0;
	if (position(writer) > UINT32_MAX) /* offsets of blocks are 32 bits */
		writer->error_number = EFBIG;
	if (writer->out.len >= OUT_BYTES)
		flush(writer);
}

void symbol_writer_row(struct symbol_writer *writer, const struct symbol_row *row)
{
	if (writer->rows_count == SYMBOL_BLOCK_ROWS_MAX ||
	    (writer->rows_count && row->address - writer->rows[0].address > UINT32_MAX))
		close_block(writer);
	writer->rows[writer->rows_count++] = *row;
}

void record_writer_add(struct record_writer *records, const uint32_t *fields)
{
	for (unsigned i = 0; i < records->fields; i++) {
		mem_grow(records->numbers, records->numbers_count, records->numbers_capacity);
		records->numbers[records->numbers_count++] = fields[i];
	}
	records->count++;
}

static void close_texts(struct symbol_writer *writer)
{
	size_t bound = ZSTD_compressBound(writer->texts.len), len;

	if (!writer->texts.len)
		return;
	strbuf_add_u32(&writer->text_offsets, (uint32_t)writer->text_blocks.len);
	len = ZSTD_compressCCtx(writer->encoder, strbuf_reserve(&writer->text_blocks, bound), bound,
				writer->texts.data, writer->texts.len, TEXT_LEVEL);
	if (ZSTD_isError(len))
		writer->error_number = ENOMEM;
	else
		writer->text_blocks.len += len;
	strbuf_clear(&writer->texts);
}

void symbol_writer_text(struct symbol_writer *writer, struct slice text)
{
	size_t shared = 0;

	if (writer->texts_count % SYMBOL_TEXTS_PER_BLOCK == 0) {
		close_texts(writer);
		writer->last_text = (struct slice){ "", 0 };
	}
	while (shared < text.len && shared < writer->last_text.len &&
	       text.data[shared] == writer->last_text.data[shared])
		shared++;
	strbuf_add_varint(&writer->texts, shared);
	strbuf_add_varint(&writer->texts, text.len - shared);
	strbuf_add_slice(&writer->texts, slice_tail(text, shared));
	writer->last_text = text;
	writer->texts_count++;
}

/* A part of the file from pieces of memory. */
static void add_part(struct symbol_writer *writer, struct strbuf *spans, struct slice a,
		     struct slice b)
{
	strbuf_add_u64(spans, position(writer));
	strbuf_add_u64(spans, a.len + b.len);
	strbuf_add_slice(&writer->out, a);
	strbuf_add_slice(&writer->out, b);
	if (writer->out.len >= OUT_BYTES)
		flush(writer);
}

/* Offsets of blocks count from the part's start, where the offsets themselves are. */
static void add_blocks(struct symbol_writer *writer, struct strbuf *spans, struct strbuf *offsets,
		       struct strbuf *blocks)
{
	struct strbuf shifted = { 0 };
	size_t count = offsets->len / sizeof(uint32_t) + 1;

	strbuf_add_u32(offsets, (uint32_t)blocks->len);
	if (blocks->len + count * sizeof(uint32_t) > UINT32_MAX)
		writer->error_number = EFBIG;
	for (size_t i = 0; i < count; i++)
		strbuf_add_u32(&shifted,
			       symbol_u32((const uint8_t *)offsets->data + i * sizeof(uint32_t)) +
				       (uint32_t)(count * sizeof(uint32_t)));
	add_part(writer, spans, strbuf_slice(&shifted), strbuf_slice(blocks));
	strbuf_free(&shifted);
	strbuf_free(blocks);
}

static void add_records(struct symbol_writer *writer, struct strbuf *spans,
			const struct record_writer *records)
{
	uint8_t widths[SYMBOL_RECORDS_HEADER_BYTES] = { 0 };
	struct strbuf part = { 0 };
	struct bit_writer bits = { .out = &part };

	for (size_t i = 0; i < records->numbers_count; i++) {
		uint8_t *width = &widths[i % records->fields];

		*width = (uint8_t)widest(*width, records->numbers[i]);
	}
	strbuf_add(&part, widths, sizeof(widths));
	for (size_t i = 0; i < records->numbers_count; i++)
		put_bits(&bits, records->numbers[i], widths[i % records->fields]);
	end_bits(&bits);
	add_part(writer, spans, strbuf_slice(&part), (struct slice){ "", 0 });
	strbuf_free(&part);
}

static void add_segments(const struct elf_info *info, struct strbuf *out)
{
	for (size_t i = 0; i < info->segments_count; i++) {
		strbuf_add_u64(out, info->segments[i].offset);
		strbuf_add_u64(out, info->segments[i].address);
		strbuf_add_u64(out, info->segments[i].file_bytes);
		strbuf_add_u64(out, info->segments[i].memory_bytes);
		strbuf_add_u64(out, info->segments[i].executable);
	}
}

static void add_sources(const struct symbol_table *about, struct strbuf *out)
{
	for (uint32_t i = 0; i < about->sources_count; i++) {
		strbuf_add_u64(out, about->sources[i].bytes);
		strbuf_add_u32(out, about->sources[i].kind);
		strbuf_add_u32(out, 0);
	}
}

/* All parts behind the rows, in the order of enum symbol_part. */
static void add_parts(struct symbol_writer *writer, const struct symbol_table *about,
		      struct strbuf *spans)
{
	const struct slice none = { "", 0 };
	struct strbuf segments = { 0 }, sources = { 0 };

	add_segments(&about->info, &segments);
	add_sources(about, &sources);
	add_part(writer, spans, slice_of(about->info.build_id), none);
	add_part(writer, spans, slice_of(about->note), none);
	add_part(writer, spans, strbuf_slice(&segments), none);
	add_part(writer, spans, strbuf_slice(&sources), none);
	add_part(writer, spans, strbuf_slice(&writer->regions), none);
	add_part(writer, spans, strbuf_slice(&writer->starts), none);
	add_records(writer, spans, &writer->scopes);
	add_records(writer, spans, &writer->calls);
	add_records(writer, spans, &writer->functions);
	close_texts(writer);
	add_blocks(writer, spans, &writer->text_offsets, &writer->text_blocks);
	strbuf_free(&segments);
	strbuf_free(&sources);
}

/* The header behind its own checksum. */
static void add_header(const struct symbol_writer *writer, const struct symbol_table *about,
		       uint32_t files_count, struct slice spans, struct strbuf *out)
{
	const uint32_t counts[SYMBOL_COUNTS] = {
		[SYMBOL_COUNT_REGIONS] = writer->regions_count,
		[SYMBOL_COUNT_BLOCKS] = writer->blocks_count,
		[SYMBOL_COUNT_SCOPES] = writer->scopes.count,
		[SYMBOL_COUNT_CALLS] = writer->calls.count,
		[SYMBOL_COUNT_FUNCTIONS] = writer->functions.count,
		[SYMBOL_COUNT_FILES] = files_count,
		[SYMBOL_COUNT_TEXTS] = writer->texts_count,
		[SYMBOL_COUNT_SEGMENTS] = (uint32_t)about->info.segments_count,
		[SYMBOL_COUNT_SOURCES] = about->sources_count,
	};

	strbuf_add_u32(out, writer->crc);
	strbuf_add_u32(out, 0);
	strbuf_add_u64(out, writer->written - SYMBOL_HEADER_BYTES);
	strbuf_add_byte(out, (char)about->origin);
	strbuf_add_byte(out, (char)about->info.id_kind);
	strbuf_add_byte(out, (char)about->info.machine);
	strbuf_add_byte(out, (char)(about->info.machine >> 8));
	strbuf_add_byte(out, (char)about->info.type);
	strbuf_add_byte(out, (char)(about->info.type >> 8));
	strbuf_add_byte(out, (char)about->has_binary);
	strbuf_add_byte(out, 0);
	strbuf_add_u64(out, about->info.file_bytes);
	strbuf_add_u64(out, about->debug_bytes);
	for (size_t i = 0; i < SYMBOL_COUNTS; i++)
		strbuf_add_u32(out, counts[i]);
	strbuf_add_u32(out, 0);
	strbuf_add_slice(out, spans);
	while (out->len < SYMBOL_HEADER_BYTES - SYMBOL_AT_BODY_CRC)
		strbuf_add_byte(out, 0);
}

static void write_header(struct symbol_writer *writer, struct slice rest)
{
	struct strbuf start = { 0 };

	strbuf_add(&start, SYMBOL_MAGIC, 8);
	strbuf_add_u32(&start, SYMBOL_VERSION);
	strbuf_add_u32(&start, hash_crc32c(0, rest.data, rest.len));
	strbuf_add_slice(&start, rest);
	write_at(writer, start.data, start.len, 0);
	strbuf_free(&start);
}

int symbol_writer_finish(struct symbol_writer *writer, const struct symbol_table *about,
			 uint32_t files_count, struct err *err)
{
	struct strbuf spans = { 0 }, header = { 0 };

	close_block(writer);
	strbuf_add_u32(&writer->starts, UINT32_MAX); /* the end of the last block */
	strbuf_add_u32(&writer->starts, (uint32_t)(position(writer) - SYMBOL_HEADER_BYTES));
	strbuf_add_u64(&spans, SYMBOL_HEADER_BYTES);
	strbuf_add_u64(&spans, position(writer) - SYMBOL_HEADER_BYTES);
	add_parts(writer, about, &spans);
	strbuf_add_u64(&writer->out, 0); /* SYMBOL_SLACK_BYTES */
	flush(writer);
	add_header(writer, about, files_count, strbuf_slice(&spans), &header);
	write_header(writer, strbuf_slice(&header));
	strbuf_free(&spans);
	strbuf_free(&header);
	if (writer->error_number)
		return err_set_errno(err, writer->error_number, "write a symbol table");
	return 0;
}
