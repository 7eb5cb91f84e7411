/* SPDX-License-Identifier: Apache-2.0 */
/* Records: there and back, what is cleaned, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/debuginfo/record.h"

static void record_comes_back_as_it_was(void **state)
{
	struct debuginfo_record record = { .bytes = 1ull << 40,
					   .quality = ELF_QUALITY_GOPCLNTAB,
					   .has_offsets = true,
					   .sha256 = "ab",
					   .hash = "CD",
					   .upload_id = "ef01",
					   .name = "a b.debug",
					   .sections = ELF_HAS_DEBUG_INFO | ELF_HAS_DYNSYM,
					   .origin = DEBUGINFO_FROM_DEBUGINFOD,
					   .alternate = "0a",
					   .build_id = "bc",
					   .uploaded_at_ns = INT64_MAX };
	struct debuginfo_record back;
	struct strbuf text = { 0 };

	(void)state;
	debuginfo_record_write(&record, &text);
	assert_int_equal(debuginfo_record_parse(strbuf_slice(&text), &back, NULL), 0);
	assert_true(back.bytes == record.bytes && back.quality == record.quality &&
		    back.has_offsets && back.uploaded_at_ns == INT64_MAX);
	assert_int_equal(back.sections, record.sections);
	assert_int_equal(back.origin, DEBUGINFO_FROM_DEBUGINFOD);
	assert_string_equal(back.alternate, "0a");
	assert_string_equal(back.build_id, "bc");
	assert_string_equal(back.sha256, "ab");
	assert_string_equal(back.hash, "CD");
	assert_string_equal(back.upload_id, "ef01");
	assert_string_equal(back.name, "a b.debug");
	strbuf_free(&text);
}

static void names_are_cleaned_and_cut_at_a_character(void **state)
{
	struct debuginfo_record record = { .bytes = 0 };
	struct strbuf name = { 0 };

	(void)state;
	debuginfo_record_set_name(&record, SLICE_LITERAL("a\nhash 00\x7f\r.so"));
	assert_string_equal(record.name, "ahash 00.so");
	debuginfo_record_set_name(&record, SLICE_LITERAL("bad \xff utf-8"));
	assert_string_equal(record.name, "");
	for (int i = 0; i < 200; i++)
		strbuf_add_text(&name, "\xc3\xa9");
	debuginfo_record_set_name(&record, strbuf_slice(&name));
	assert_int_equal(strlen(record.name), 254); /* 255 would cut the last one in two */
	strbuf_free(&name);
	debuginfo_record_set_hash(&record, SLICE_LITERAL("no hex"));
	assert_string_equal(record.hash, "");
}

static void damaged_records_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"firn debuginfo 2\n",
		"firn debuginfo 1\nbytes -1\n",
		"firn debuginfo 1\nbytes 18446744073709551616\n",
		"firn debuginfo 1\nquality best\n",
		"firn debuginfo 1\noffsets 2\n",
		"firn debuginfo 1\nsections debug_info,none\n",
		"firn debuginfo 1\norigin nowhere\n",
		"firn debuginfo 1\nsha256 xyz\n",
		"firn debuginfo 1\nuploaded_at_ns 9223372036854775808\n",
	};
	struct debuginfo_record record;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(debuginfo_record_parse(slice_of(texts[i]), &record, NULL),
				 -ERR_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_comes_back_as_it_was),
		cmocka_unit_test(names_are_cleaned_and_cut_at_a_character),
		cmocka_unit_test(damaged_records_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
