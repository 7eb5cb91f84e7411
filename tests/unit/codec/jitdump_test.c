/* SPDX-License-Identifier: Apache-2.0 */
/* Records of jitdump files, in both byte orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strbuf.h"
#include "codec/process/jitdump.h"

static bool swapped; /* what the writer below writes */

static void put32(struct strbuf *out, uint32_t value)
{
	value = swapped ? __builtin_bswap32(value) : value;
	strbuf_add(out, &value, sizeof(value));
}

static void put64(struct strbuf *out, uint64_t value)
{
	value = swapped ? __builtin_bswap64(value) : value;
	strbuf_add(out, &value, sizeof(value));
}

static void put_header(struct strbuf *out, uint32_t version, uint32_t bytes)
{
	put32(out, 0x4a695444);
	put32(out, version);
	put32(out, bytes);
	put32(out, 62); /* EM_X86_64 */
	put32(out, 0xdeadbeef);
	put32(out, 4711);
	put64(out, 123456789);
	put64(out, 0);
}

static void put_load(struct strbuf *out, uint64_t start, uint64_t bytes)
{
	put32(out, 4711);
	put32(out, 4712);
	put64(out, 1); /* vma: not where the code is */
	put64(out, start);
	put64(out, bytes);
	put64(out, 9);
	strbuf_add(out, "JS:*f /a.js:1:2\0\xcc\xcc", 18);
}

static void headers_and_records_are_read_in_both_byte_orders(void **state)
{
	(void)state;
	for (int order = 0; order < 2; order++) {
		struct strbuf out = { 0 };
		struct jitdump_header header;
		struct jitdump_record record;
		struct jitdump_load load;
		struct slice rest;

		swapped = order;
		put_header(&out, 1, 40);
		put32(&out, JITDUMP_LOAD);
		put32(&out, 16 + 58);
		put64(&out, 55);
		put_load(&out, 0x7f0000001000, 2);
		rest = strbuf_slice(&out);
		assert_int_equal(jitdump_parse_header(rest, &header, NULL), 0);
		assert_int_equal(header.swapped, swapped);
		assert_int_equal(header.bytes, 40);
		assert_int_equal(header.machine, 62);
		assert_int_equal(header.pid, 4711);
		assert_int_equal(header.started_at, 123456789);
		rest = slice_tail(rest, 40);
		assert_int_equal(jitdump_parse_record(rest, swapped, &record, NULL), 0);
		assert_int_equal(record.id, JITDUMP_LOAD);
		assert_int_equal(record.bytes, rest.len);
		assert_int_equal(record.at, 55);
		rest = slice_tail(rest, JITDUMP_RECORD_HEAD_BYTES);
		assert_int_equal(jitdump_parse_load(rest, swapped, &load, NULL), 0);
		assert_int_equal(load.code.start, 0x7f0000001000);
		assert_int_equal(load.code.bytes, 2);
		assert_int_equal(load.index, 9);
		assert_true(slice_is(load.name, "JS:*f /a.js:1:2"));
		strbuf_free(&out);
	}
	swapped = false;
}

static void moves_and_lines_are_read(void **state)
{
	struct strbuf out = { 0 };
	struct jitdump_move move;
	struct jitdump_source source;

	(void)state;
	put64(&out, 0);	  /* pid, tid */
	put64(&out, 1);	  /* vma */
	put64(&out, 256); /* from */
	put64(&out, 512); /* to */
	put64(&out, 16);
	put64(&out, 9);
	assert_int_equal(jitdump_parse_move(strbuf_slice(&out), false, &move, NULL), 0);
	assert_int_equal(move.from, 256);
	assert_int_equal(move.to.start, 512);
	assert_int_equal(move.to.bytes, 16);
	out.len--;
	assert_int_equal(jitdump_parse_move(strbuf_slice(&out), false, &move, NULL), -ERR_INVALID);

	strbuf_clear(&out);
	put64(&out, 256);
	put64(&out, 2);
	put64(&out, 256);
	put32(&out, 17);
	put32(&out, 0);
	strbuf_add(&out, "/srv/a.jl", 10);
	assert_int_equal(jitdump_parse_debug_info(strbuf_slice(&out), false, &source, NULL), 0);
	assert_int_equal(source.code, 256);
	assert_int_equal(source.line, 17);
	assert_true(slice_is(source.file, "/srv/a.jl"));
	out.len--; /* the NUL */
	assert_int_equal(jitdump_parse_debug_info(strbuf_slice(&out), false, &source, NULL),
			 -ERR_INVALID);

	strbuf_clear(&out);
	put64(&out, 256);
	put64(&out, 0);
	assert_int_equal(jitdump_parse_debug_info(strbuf_slice(&out), false, &source, NULL), 0);
	assert_int_equal(source.file.len, 0);
	strbuf_free(&out);
}

static void what_is_no_jitdump_is_refused(void **state)
{
	struct strbuf out = { 0 };
	struct jitdump_header header;
	struct jitdump_record record;
	struct jitdump_load load;

	(void)state;
	assert_int_equal(jitdump_parse_header(SLICE_LITERAL("JiTD"), &header, NULL), -ERR_INVALID);
	put_header(&out, 2, 40);
	assert_int_equal(jitdump_parse_header(strbuf_slice(&out), &header, NULL), -ERR_UNSUPPORTED);
	strbuf_clear(&out);
	put_header(&out, 1, 39);
	assert_int_equal(jitdump_parse_header(strbuf_slice(&out), &header, NULL), -ERR_INVALID);
	strbuf_clear(&out);
	put32(&out, JITDUMP_CLOSE);
	put32(&out, 15);
	put64(&out, 0);
	assert_int_equal(jitdump_parse_record(strbuf_slice(&out), false, &record, NULL),
			 -ERR_INVALID);
	strbuf_clear(&out);
	put_load(&out, UINT64_MAX, 2);
	assert_int_equal(jitdump_parse_load(strbuf_slice(&out), false, &load, NULL), -ERR_INVALID);
	strbuf_clear(&out);
	put_load(&out, 0x1000, 0);
	assert_int_equal(jitdump_parse_load(strbuf_slice(&out), false, &load, NULL), -ERR_INVALID);
	strbuf_clear(&out);
	put_load(&out, 0x1000, 2);
	for (size_t len = 0; len < 56; len++)
		assert_int_equal(jitdump_parse_load(slice_from(out.data, len), false, &load, NULL),
				 -ERR_INVALID);
	strbuf_free(&out);
}

static int parse_unwinding(uint64_t bytes, uint64_t header_bytes, uint64_t mapped_bytes,
			   struct slice data, struct jitdump_unwinding *ret)
{
	struct strbuf out = { 0 };
	int code;

	put64(&out, bytes);
	put64(&out, header_bytes);
	put64(&out, mapped_bytes);
	strbuf_add_slice(&out, data);
	code = jitdump_parse_unwinding(strbuf_slice(&out), swapped, ret, NULL);
	/* The test's own text lives longer. */
	if (!code && ret->frames.len)
		ret->frames.data = data.data + (ret->frames.data - out.data - 24);
	strbuf_free(&out);
	return code;
}

static void unwinding_information_lies_as_its_writer_puts_it(void **state)
{
	struct slice behind = SLICE_LITERAL("\x14 frames\x01\x1b header");
	struct strbuf llvm = { 0 };
	struct jitdump_unwinding unwinding;

	(void)state;
	swapped = false;
	assert_int_equal(parse_unwinding(17, 9, 24, behind, &unwinding), 0);
	assert_true(slice_is(unwinding.frames, "\x14 frames"));
	assert_int_equal(unwinding.address, 0);
	assert_int_equal(parse_unwinding(17, 9, 0, behind, &unwinding), 0); /* V8, of a stub */
	assert_int_equal(unwinding.frames.len, 0);
	assert_int_equal(parse_unwinding(0, 0, 0, slice_from(NULL, 0), &unwinding), 0);
	assert_int_equal(unwinding.frames.len, 0);

	strbuf_add(&llvm, "\x01\x0c\xff\xff", 4);
	put64(&llvm, 0x7f0000001000);
	strbuf_add_text(&llvm, "frames");
	assert_int_equal(parse_unwinding(18, 12, 0, strbuf_slice(&llvm), &unwinding), 0);
	assert_true(slice_is(unwinding.frames, "frames"));
	assert_int_equal(unwinding.address, 0x7f0000001000);
	strbuf_free(&llvm);
}

static void unwinding_information_without_sense_is_refused(void **state)
{
	struct slice relative = SLICE_LITERAL("\x01\x1b\x03\x3b header, frames");
	struct slice behind = SLICE_LITERAL("\x14 frames");
	struct jitdump_unwinding unwinding;

	(void)state;
	swapped = false;
	assert_int_not_equal(parse_unwinding(relative.len, 12, 40, relative, &unwinding), 0);
	assert_int_not_equal(parse_unwinding(4, 4, 4, relative, &unwinding), 0);
	assert_int_not_equal(parse_unwinding(behind.len + 1, 0, 9, behind, &unwinding), 0);
	assert_int_not_equal(parse_unwinding(UINT64_MAX, 0, 9, behind, &unwinding), 0);
	assert_int_not_equal(parse_unwinding(behind.len, behind.len + 1, 9, behind, &unwinding), 0);
	assert_int_not_equal(jitdump_parse_unwinding(behind, false, &unwinding, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_and_records_are_read_in_both_byte_orders),
		cmocka_unit_test(moves_and_lines_are_read),
		cmocka_unit_test(what_is_no_jitdump_is_refused),
		cmocka_unit_test(unwinding_information_lies_as_its_writer_puts_it),
		cmocka_unit_test(unwinding_information_without_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
