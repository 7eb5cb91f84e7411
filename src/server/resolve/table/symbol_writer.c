/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "base/mem.h"

#define OUT_BYTES ((size_t)1 << 20)

/*
 * Texts are found faster in small blocks, and take less room in large ones: what matters is how
 * many there are. All that fit one block may share it.
 */
#define FEW_FUNCTIONS 32768u
#define FEW_TEXTS_PER_BLOCK SYMBOL_TEXTS_PER_BLOCK_MAX
#define FEW_LEVEL 17
#define MANY_TEXTS_PER_BLOCK SYMBOL_TEXTS_MANY
_Static_assert(MANY_TEXTS_PER_BLOCK *(SYMBOL_TEXT_BYTES_MAX + 1) <= SYMBOL_TEXT_BLOCK_BYTES_MAX,
	       "a block of the longest texts can be read back");
#define MANY_LEVEL 9
#define ONCE_LEVEL 1

void symbol_writer_init(struct symbol_writer *writer, int fd)
{
	*writer = (struct symbol_writer){ .fd = fd };
	writer->scopes.fields = SCOPE_FIELDS;
	writer->functions.fields = FUNCTION_FIELDS;
	writer->written = SYMBOL_HEADER_BYTES;
	writer->encoder = ZSTD_createCCtx();
}

static void free_records(struct record_writer *records)
{
	strbuf_free(&records->offsets);
	strbuf_free(&records->packs);
}

void symbol_writer_free(struct symbol_writer *writer)
{
	strbuf_free(&writer->out);
	strbuf_free(&writer->regions);
	strbuf_free(&writer->starts);
	free_records(&writer->scopes);
	free_records(&writer->functions);
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

/* Begins anew to gather what becomes a block. */
static void clear_inputs(struct symbol_pack_input *inputs, unsigned fields)
{
	for (unsigned i = 0; i < fields; i++)
		inputs[i].must_patch = inputs[i].any = 0;
}

static void put_number(struct symbol_pack_input *input, unsigned at, uint32_t value)
{
	input->values[at] = input->patches[at] = value;
}

/* A line, told from that of a declaration. */
static void put_line(struct symbol_pack_input *input, unsigned at, uint32_t line, uint32_t declared)
{
	input->patches[at] = line;
	input->values[at] = line - declared;
	if (line < declared)
		input->must_patch |= 1ull << at;
}

/* A file; 0 is that of a declaration. */
static void put_file(struct symbol_pack_input *input, unsigned at, uint32_t file, uint32_t declared)
{
	put_number(input, at, file == declared ? 0 : file);
}

static void add_start(struct symbol_writer *writer)
{
	uint64_t start = writer->first_address;

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
	symbol_pack_write(writer->row_inputs, ROW_FIELDS, writer->rows_count, &writer->out);
	clear_inputs(writer->row_inputs, ROW_FIELDS);
	writer->rows_count = 0;
	if (position(writer) > UINT32_MAX) /* offsets of blocks are 32 bits */
		writer->error_number = EFBIG;
	if (writer->out.len >= OUT_BYTES)
		flush(writer);
}

void symbol_writer_row(struct symbol_writer *writer, const struct symbol_row *row,
		       const struct symbol_place *declared)
{
	struct symbol_pack_input *inputs = writer->row_inputs;
	unsigned at;

	if (writer->rows_count == SYMBOL_PACK_RECORDS ||
	    (writer->rows_count && row->address - writer->first_address > UINT32_MAX))
		close_block(writer);
	at = writer->rows_count++;
	if (at) {
		put_number(&inputs[ROW_STEP], at, (uint32_t)(row->address - writer->last_address));
	} else {
		writer->first_address = row->address;
		inputs[ROW_STEP].any = 1;
	}
	writer->last_address = row->address;
	put_number(&inputs[ROW_SCOPE], at, row->scope == SYMBOL_NONE ? 0 : row->scope + 1);
	put_line(&inputs[ROW_LINE], at, row->line, declared->line);
	put_file(&inputs[ROW_FILE], at, row->file, declared->file);
}

static void close_records(struct record_writer *records)
{
	if (!records->held)
		return;
	strbuf_add_u32(&records->offsets, (uint32_t)records->packs.len);
	symbol_pack_write(records->inputs, records->fields, records->held, &records->packs);
	clear_inputs(records->inputs, records->fields);
	records->held = 0;
}

/* Where in the open block the next record goes. */
static unsigned next_record(struct record_writer *records)
{
	if (records->held == SYMBOL_PACK_RECORDS)
		close_records(records);
	records->count++;
	return records->held++;
}

void symbol_writer_scope(struct symbol_writer *writer, uint32_t parent_step, uint32_t function,
			 const struct symbol_place *call, const struct symbol_place *caller)
{
	struct symbol_pack_input *inputs = writer->scopes.inputs;
	unsigned at = next_record(&writer->scopes);

	put_number(&inputs[SCOPE_PARENT_STEP], at, parent_step);
	put_number(&inputs[SCOPE_FUNCTION], at, function);
	if (!parent_step) {
		inputs[SCOPE_LINE].any |= 1ull << at;
		inputs[SCOPE_FILE].any |= 1ull << at;
		return;
	}
	put_line(&inputs[SCOPE_LINE], at, call->line, caller->line);
	put_file(&inputs[SCOPE_FILE], at, call->file, caller->file);
}

void symbol_writer_function(struct symbol_writer *writer, const struct symbol_place *declared)
{
	unsigned at = next_record(&writer->functions);

	put_number(&writer->functions.inputs[FUNCTION_FILE], at, declared->file);
	put_number(&writer->functions.inputs[FUNCTION_LINE], at, declared->line);
}

static void close_texts(struct symbol_writer *writer)
{
	size_t bound = ZSTD_compressBound(writer->texts.len), len;

	if (!writer->texts.len)
		return;
	strbuf_add_u32(&writer->text_offsets, (uint32_t)writer->text_blocks.len);
	len = ZSTD_compressCCtx(writer->encoder, strbuf_reserve(&writer->text_blocks, bound), bound,
				writer->texts.data, writer->texts.len, writer->level);
	if (ZSTD_isError(len))
		writer->error_number = ENOMEM;
	else
		writer->text_blocks.len += len;
	strbuf_clear(&writer->texts);
}

void symbol_writer_begin_texts(struct symbol_writer *writer, bool is_for_once,
			       uint32_t functions_count, uint64_t texts_bytes)
{
	bool few = functions_count <= FEW_FUNCTIONS && texts_bytes <= SYMBOL_TEXT_BLOCK_BYTES_MAX;

	writer->texts_per_block = few ? FEW_TEXTS_PER_BLOCK : MANY_TEXTS_PER_BLOCK;
	writer->level = is_for_once ? ONCE_LEVEL : few ? FEW_LEVEL : MANY_LEVEL;
}

void symbol_writer_text(struct symbol_writer *writer, struct slice text)
{
	if (writer->texts_count % writer->texts_per_block == 0)
		close_texts(writer);
	strbuf_add_slice(&writer->texts, text);
	strbuf_add_byte(&writer->texts, 0);
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
	close_records(&writer->scopes);
	add_blocks(writer, spans, &writer->scopes.offsets, &writer->scopes.packs);
	close_records(&writer->functions);
	if (writer->functions.count > SYMBOL_FUNCTIONS_MAX)
		writer->error_number = EFBIG;
	add_blocks(writer, spans, &writer->functions.offsets, &writer->functions.packs);
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
		[SYMBOL_COUNT_FUNCTIONS] = writer->functions.count,
		[SYMBOL_COUNT_FILES] = files_count,
		[SYMBOL_COUNT_TEXTS] = writer->texts_count,
		[SYMBOL_COUNT_SEGMENTS] = (uint32_t)about->info.segments_count,
		[SYMBOL_COUNT_SOURCES] = about->sources_count,
		[SYMBOL_COUNT_TEXTS_PER_BLOCK] = writer->texts_per_block,
		[SYMBOL_COUNT_UNNAMED] = writer->unnamed_count,
	};

	strbuf_add_u32(out, writer->crc);
	strbuf_add_u32(out, symbol_table_maker());
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
