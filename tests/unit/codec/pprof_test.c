/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: Go's own profiles keep everything on the way through decoder and encoder, as Go's tool
 * sees it (skipped without `go`), and bad bytes are refused with their place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/archive/compress.h"
#include "codec/wire/pb.h"
#include "codec/profile/pprof.h"

#define ELEMENTS_MAX 100000

static const char *const golden[] = { "go_cpu", "go_heap", "go_mutex", "go_block", "go_goroutine" };

/* Everything that a stream gives. */
static void read_all(FILE *file, struct strbuf *out)
{
	size_t n;

	while ((n = fread(strbuf_reserve(out, 65536), 1, 65536, file)) > 0)
		out->len += n;
	strbuf_add(out, "", 0);
}

static void golden_path(struct strbuf *out, const char *name)
{
	const char *root = getenv("FIRN_TESTS");

	strbuf_clear(out);
	strbuf_addf(out, "%s/golden/pprof/%s.pb.gz", root ? root : "tests", name);
}

static void read_golden(const char *name, struct strbuf *out)
{
	struct strbuf path = { 0 }, gzipped = { 0 };
	struct err err;
	FILE *file;

	golden_path(&path, name);
	file = fopen(strbuf_text(&path), "rb");
	if (!file)
		fail_msg("cannot open %s", strbuf_text(&path));
	read_all(file, &gzipped);
	fclose(file);
	if (compress_gunzip(strbuf_slice(&gzipped), 1 << 20, out, &err))
		fail_msg("%s", err.message);
	strbuf_free(&gzipped);
	strbuf_free(&path);
}

static void go_raw(const char *path, struct strbuf *out)
{
	struct strbuf command = { 0 };
	FILE *tool;

	strbuf_addf(&command, "HOME=/nonexistent go tool pprof -raw '%s' 2>/dev/null", path);
	tool = popen(strbuf_text(&command), "r");
	assert_non_null(tool);
	read_all(tool, out);
	assert_int_equal(pclose(tool), 0);
	strbuf_free(&command);
}

static void go_reads_the_same_from_what_we_encode(void **state)
{
	struct pprof profile;

	(void)state;
	if (system("command -v go >/dev/null 2>&1"))
		skip();
	pprof_init(&profile);
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct strbuf wire = { 0 }, again = { 0 }, path = { 0 }, theirs = { 0 },
			      ours = { 0 };
		char temporary[] = "/tmp/pprof_test_XXXXXX";
		int fd = mkstemp(temporary);
		struct err err;

		assert_true(fd >= 0);
		read_golden(golden[i], &wire);
		if (pprof_decode(strbuf_slice(&wire), ELEMENTS_MAX, &profile, &err))
			fail_msg("%s: %s", golden[i], err.message);
		pprof_encode(&profile, &again);
		assert_int_equal(write(fd, again.data, again.len), again.len);
		close(fd);
		golden_path(&path, golden[i]);
		go_raw(strbuf_text(&path), &theirs);
		go_raw(temporary, &ours);
		unlink(temporary);
		assert_true(theirs.len > 0);
		assert_string_equal(strbuf_text(&ours), strbuf_text(&theirs));
		strbuf_free(&wire);
		strbuf_free(&again);
		strbuf_free(&path);
		strbuf_free(&theirs);
		strbuf_free(&ours);
	}
	pprof_free(&profile);
}

static void heap_profile_is_in_columns(void **state)
{
	struct strbuf wire = { 0 };
	struct pprof profile;
	const struct pprof_sample *sample;

	(void)state;
	pprof_init(&profile);
	read_golden("go_heap", &wire);
	assert_int_equal(pprof_decode(strbuf_slice(&wire), ELEMENTS_MAX, &profile, NULL), 0);
	assert_int_equal(profile.sample_types.count, 4);
	assert_int_equal(profile.samples.count, 6);
	sample = &profile.samples.data[1];
	assert_int_equal(sample->value_count, 4);
	assert_int_equal(profile.values.data[sample->value_first], 2340);
	assert_int_equal(sample->label_count, 1);
	assert_int_equal(profile.labels.data[sample->label_first].num, 16384);
	assert_int_equal(sample->location_count, 2);
	assert_int_equal(profile.locations.data[0].line_count, 2);
	assert_int_equal(profile.period, 524288);
	assert_true(profile.mappings.data[0].has_functions);
	assert_true(
		slice_is(profile.strings.data[profile.sample_types.data[3].type], "inuse_space"));
	pprof_free(&profile);
	strbuf_free(&wire);
}

static void repeated_numbers_may_be_packed_or_not(void **state)
{
	/* Sample{1: 5, 1: packed 6 7, 2: packed 1 2, 2: 3} */
	static const struct slice wire =
		SLICE_LITERAL("\x12\x0c\x08\x05\x0a\x02\x06\x07\x12\x02\x01\x02\x10\x03");
	struct pprof profile;

	(void)state;
	pprof_init(&profile);
	assert_int_equal(pprof_decode(wire, ELEMENTS_MAX, &profile, NULL), 0);
	assert_int_equal(profile.location_ids.count, 3);
	assert_int_equal(profile.location_ids.data[0], 5);
	assert_int_equal(profile.location_ids.data[2], 7);
	assert_int_equal(profile.values.count, 3);
	assert_int_equal(profile.values.data[2], 3);
	pprof_free(&profile);
}

static void a_reused_struct_forgets_the_profile_before(void **state)
{
	struct strbuf wire = { 0 };
	struct pprof profile;

	(void)state;
	pprof_init(&profile);
	read_golden("go_cpu", &wire);
	assert_int_equal(pprof_decode(strbuf_slice(&wire), ELEMENTS_MAX, &profile, NULL), 0);
	assert_true(profile.duration_nanos > 0);
	assert_int_equal(pprof_decode(SLICE_LITERAL("\x32\x01x"), ELEMENTS_MAX, &profile, NULL), 0);
	assert_int_equal(profile.samples.count, 0);
	assert_int_equal(profile.strings.count, 1);
	assert_int_equal(profile.duration_nanos, 0);
	assert_int_equal(profile.period_type.type, 0);
	pprof_free(&profile);
	strbuf_free(&wire);
}

static void bad_profiles_are_refused(void **state)
{
	static const struct {
		struct slice wire;
		size_t elements_max;
		enum err_code code;
		const char *words;
	} cases[] = {
		{ SLICE_LITERAL("\x48\x05\x48\x06"), ELEMENTS_MAX, ERR_INVALID, "concatenated" },
		{ SLICE_LITERAL("\x12\x02\x0a\x05"), ELEMENTS_MAX, ERR_INVALID, "Sample: length" },
		{ SLICE_LITERAL("\x12\x03\x0a\x01\x80"), ELEMENTS_MAX, ERR_INVALID,
		  "broken packed numbers in field 1" },
		{ SLICE_LITERAL("\x10\x01"), ELEMENTS_MAX, ERR_INVALID,
		  "Profile: unexpected wire type in field 2" },
		{ SLICE_LITERAL("\x22\x02\x22\x01"), ELEMENTS_MAX, ERR_INVALID,
		  "Location: length" },
		{ SLICE_LITERAL("\x32\x00\x32\x00\x32\x00"), 2, ERR_LIMIT, "more than 2 elements" },
		{ SLICE_LITERAL("\x12\x05\x0a\x03\x01\x02\x03"), 2, ERR_LIMIT,
		  "more than 2 elements" },
	};
	struct pprof profile;

	(void)state;
	pprof_init(&profile);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(pprof_decode(cases[i].wire, cases[i].elements_max, &profile, &err),
				 -(int)cases[i].code);
		if (!strstr(err.message, cases[i].words))
			fail_msg("case %zu: %s", i, err.message);
	}
	pprof_free(&profile);
}

/*
 * The profile with samples, locations and functions that begin with a field that nobody knows, so
 * that they are read field by field; of the one numbered `cut` only `left` bytes. Returns how many
 * there are.
 */
static int rewrite(struct slice wire, bool unknown, int cut, size_t left, struct strbuf *out)
{
	struct pb_reader in = pb_reader_of(wire);
	struct pb_field field;
	int count = 0;

	while (pb_next(&in, &field)) {
		size_t begun;

		if (field.wire == PB_VARINT) {
			pb_put_varint_always(out, field.number, field.value);
		} else if (field.number != 2 && field.number != 4 && field.number != 5) {
			pb_put_bytes_always(out, field.number, field.bytes);
		} else {
			begun = pb_begin(out, field.number);
			if (unknown)
				strbuf_add(out, "\x78\x00", 2);
			if (count++ == cut && field.bytes.len > left)
				field.bytes.len = left;
			strbuf_add_slice(out, field.bytes);
			pb_end(out, begun);
		}
	}
	return count;
}

/* Decodes it, and writes what was read in one way; or the code of the refusal. */
static void read_again(struct slice wire, struct strbuf *out)
{
	struct pprof profile;
	struct err err;

	pprof_init(&profile);
	if (pprof_decode(wire, ELEMENTS_MAX, &profile, &err))
		strbuf_addf(out, "refused: %d", (int)err.code);
	else
		pprof_encode(&profile, out);
	pprof_free(&profile);
}

static void assert_read_alike(struct slice wire, int cut, size_t left)
{
	struct strbuf plain = { 0 }, other = { 0 }, made = { 0 }, expected = { 0 };

	rewrite(wire, false, cut, left, &plain);
	rewrite(wire, true, cut, left, &other);
	read_again(strbuf_slice(&plain), &made);
	read_again(strbuf_slice(&other), &expected);
	assert_true(slice_equal(strbuf_slice(&made), strbuf_slice(&expected)));
	strbuf_free(&plain);
	strbuf_free(&other);
	strbuf_free(&made);
	strbuf_free(&expected);
}

static void assert_cut_read_alike(struct slice wire)
{
	struct strbuf copy = { 0 };
	int count = rewrite(wire, false, -1, 0, &copy);

	assert_true(count > 10);
	for (int cut = -1; cut < count; cut += 1 + count / 50)
		for (size_t left = 0; left < 24; left++)
			assert_read_alike(wire, cut, left);
	strbuf_free(&copy);
}

/* With their fields in order they are read at once, else field by field. */
static void plain_messages_and_others_say_the_same(void **state)
{
	struct strbuf wire = { 0 }, bare = { 0 };
	struct pprof profile;

	(void)state;
	pprof_init(&profile);
	read_golden("go_cpu", &wire);
	assert_int_equal(pprof_decode(strbuf_slice(&wire), ELEMENTS_MAX, &profile, NULL), 0);
	for (size_t i = 0; i < profile.locations.count; i++)
		profile.locations.data[i].line_count = 0;
	for (size_t i = 0; i < profile.samples.count; i += 2)
		profile.samples.data[i].label_count = 0;
	pprof_encode(&profile, &bare);
	assert_cut_read_alike(strbuf_slice(&wire));
	assert_cut_read_alike(strbuf_slice(&bare));
	pprof_free(&profile);
	strbuf_free(&wire);
	strbuf_free(&bare);
}

static void builder_gives_equal_strings_one_index(void **state)
{
	struct pprof profile;
	struct pprof_builder *builder;
	char text[] = "one";

	(void)state;
	pprof_init(&profile);
	builder = pprof_builder_new(&profile);
	assert_int_equal(pprof_builder_string(builder, SLICE_LITERAL("")), 0);
	assert_int_equal(pprof_builder_string(builder, slice_of(text)), 1);
	text[0] = 'x'; /* the builder keeps a copy */
	assert_int_equal(pprof_builder_string(builder, SLICE_LITERAL("two")), 2);
	assert_int_equal(pprof_builder_string(builder, SLICE_LITERAL("one")), 1);
	assert_int_equal(profile.strings.count, 3);
	pprof_builder_free(builder);
	pprof_free(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_reads_the_same_from_what_we_encode),
		cmocka_unit_test(heap_profile_is_in_columns),
		cmocka_unit_test(repeated_numbers_may_be_packed_or_not),
		cmocka_unit_test(a_reused_struct_forgets_the_profile_before),
		cmocka_unit_test(bad_profiles_are_refused),
		cmocka_unit_test(plain_messages_and_others_say_the_same),
		cmocka_unit_test(builder_gives_equal_strings_one_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
