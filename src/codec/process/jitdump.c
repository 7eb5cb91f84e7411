/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/process/jitdump.h"

#include <inttypes.h>

#define MAGIC 0x4a695444u
#define MAGIC_SWAPPED 0x4454694au
#define VERSION 1
#define HEADER_BYTES_MAX 4096u

#define LOAD_NAME 40 /* where it begins in the body */
#define MOVE_BYTES 48
#define DEBUG_INFO_LINES 16
#define DEBUG_INFO_FILE 16 /* in a line of it */
#define UNWINDING_DATA 24
#define EH_FRAME_HEADER_VERSION 1  /* no .eh_frame begins so: a length of 1 is none */
#define LLVM_HEADER_BYTES 12u	   /* version, encodings, the address of .eh_frame */
#define LLVM_POINTER_ENCODING 0x0c /* DW_EH_PE_sdata8, absolute */

static uint32_t u32_at(struct slice bytes, size_t offset, bool swapped)
{
	uint32_t value;

	memcpy(&value, bytes.data + offset, sizeof(value));
	return swapped ? __builtin_bswap32(value) : value;
}

static uint64_t u64_at(struct slice bytes, size_t offset, bool swapped)
{
	uint64_t value;

	memcpy(&value, bytes.data + offset, sizeof(value));
	return swapped ? __builtin_bswap64(value) : value;
}

int jitdump_parse_header(struct slice bytes, struct jitdump_header *ret, struct err *err)
{
	uint32_t magic = bytes.len < JITDUMP_HEADER_BYTES ? 0 : u32_at(bytes, 0, false);
	struct jitdump_header header = { .swapped = magic == MAGIC_SWAPPED };
	uint32_t version;

	if (magic != MAGIC && magic != MAGIC_SWAPPED)
		return err_set(err, ERR_INVALID, "read jitdump header: not a jitdump file");
	version = u32_at(bytes, 4, header.swapped);
	if (version != VERSION)
		return err_set(err, ERR_UNSUPPORTED, "read jitdump header: version %" PRIu32,
			       version);
	header.bytes = u32_at(bytes, 8, header.swapped);
	if (header.bytes < JITDUMP_HEADER_BYTES || header.bytes > HEADER_BYTES_MAX)
		return err_set(err, ERR_INVALID, "read jitdump header: size %" PRIu32,
			       header.bytes);
	header.machine = u32_at(bytes, 12, header.swapped);
	header.pid = u32_at(bytes, 20, header.swapped);
	header.started_at = u64_at(bytes, 24, header.swapped);
	*ret = header;
	return 0;
}

int jitdump_parse_record(struct slice bytes, bool swapped, struct jitdump_record *ret,
			 struct err *err)
{
	struct jitdump_record record;

	if (bytes.len < JITDUMP_RECORD_HEAD_BYTES)
		return err_set(err, ERR_INVALID, "read jitdump record: cut short");
	record.id = u32_at(bytes, 0, swapped);
	record.bytes = u32_at(bytes, 4, swapped);
	record.at = u64_at(bytes, 8, swapped);
	if (record.bytes < JITDUMP_RECORD_HEAD_BYTES)
		return err_set(err, ERR_INVALID, "read jitdump record: size %" PRIu32,
			       record.bytes);
	*ret = record;
	return 0;
}

static bool make_code(uint64_t start, uint64_t bytes, struct jitdump_code *ret)
{
	uint64_t end;

	if (!bytes || bytes > UINT32_MAX || __builtin_add_overflow(start, bytes, &end))
		return false;
	*ret = (struct jitdump_code){ .start = start, .bytes = (uint32_t)bytes };
	return true;
}

/* The text up to its NUL. */
static bool take_text(struct slice bytes, size_t offset, struct slice *ret)
{
	struct slice rest = slice_tail(bytes, offset);
	size_t end = slice_find_byte(rest, '\0');

	if (end == SIZE_MAX)
		return false;
	*ret = slice_from(rest.data, end);
	return true;
}

int jitdump_parse_load(struct slice body, bool swapped, struct jitdump_load *ret, struct err *err)
{
	struct jitdump_load load;

	if (body.len < LOAD_NAME || !take_text(body, LOAD_NAME, &load.name) || !load.name.len)
		return err_set(err, ERR_INVALID, "read jitdump load record: no name");
	/* After pid and tid: vma, code address, size, index. Addresses are those at run time. */
	if (!make_code(u64_at(body, 16, swapped), u64_at(body, 24, swapped), &load.code))
		return err_set(err, ERR_INVALID, "read jitdump load record: bad code range");
	load.index = u64_at(body, 32, swapped);
	*ret = load;
	return 0;
}

int jitdump_parse_move(struct slice body, bool swapped, struct jitdump_move *ret, struct err *err)
{
	struct jitdump_move move;

	if (body.len < MOVE_BYTES)
		return err_set(err, ERR_INVALID, "read jitdump move record: cut short");
	move.from = u64_at(body, 16, swapped);
	if (!make_code(u64_at(body, 24, swapped), u64_at(body, 32, swapped), &move.to))
		return err_set(err, ERR_INVALID, "read jitdump move record: bad code range");
	*ret = move;
	return 0;
}

int jitdump_parse_debug_info(struct slice body, bool swapped, struct jitdump_source *ret,
			     struct err *err)
{
	struct jitdump_source source = { 0 };

	if (body.len < DEBUG_INFO_LINES)
		return err_set(err, ERR_INVALID, "read jitdump debug record: cut short");
	source.code = u64_at(body, 0, swapped);
	if (u64_at(body, 8, swapped)) {
		struct slice line = slice_tail(body, DEBUG_INFO_LINES);

		if (line.len < DEBUG_INFO_FILE || !take_text(line, DEBUG_INFO_FILE, &source.file))
			return err_set(err, ERR_INVALID, "read jitdump debug record: no line");
		source.line = u32_at(line, 8, swapped);
	}
	*ret = source;
	return 0;
}

/* LLVM puts .eh_frame_hdr first, as the specification says. */
static int parse_llvm_unwinding(struct slice data, size_t header_bytes, bool swapped,
				struct jitdump_unwinding *ret, struct err *err)
{
	if (header_bytes < LLVM_HEADER_BYTES || (uint8_t)data.data[1] != LLVM_POINTER_ENCODING)
		return err_set(err, ERR_UNSUPPORTED,
			       "read jitdump unwinding record: header without an address");
	*ret = (struct jitdump_unwinding){ .frames = slice_tail(data, header_bytes),
					   .address = u64_at(data, 4, swapped) };
	if (!ret->address)
		ret->frames.len = 0;
	return 0;
}

int jitdump_parse_unwinding(struct slice body, bool swapped, struct jitdump_unwinding *ret,
			    struct err *err)
{
	uint64_t bytes, header_bytes;
	struct slice data;

	if (body.len < UNWINDING_DATA)
		return err_set(err, ERR_INVALID, "read jitdump unwinding record: cut short");
	bytes = u64_at(body, 0, swapped);
	header_bytes = u64_at(body, 8, swapped);
	if (bytes > body.len - UNWINDING_DATA || header_bytes > bytes)
		return err_set(err, ERR_INVALID, "read jitdump unwinding record: bad sizes");
	data = slice_from(body.data + UNWINDING_DATA, (size_t)bytes);
	if (data.len && data.data[0] == EH_FRAME_HEADER_VERSION)
		return parse_llvm_unwinding(data, (size_t)header_bytes, swapped, ret, err);
	/* All others put it last. Where nothing is mapped, the header stands for nothing. */
	*ret = (struct jitdump_unwinding){ 0 };
	if (u64_at(body, 16, swapped))
		ret->frames = slice_from(data.data, (size_t)(bytes - header_bytes));
	return 0;
}
