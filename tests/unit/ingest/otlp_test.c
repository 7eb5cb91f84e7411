/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_from_otlp: requests that another encoder wrote, in every dialect (tests/golden/otlp), and
 * small ones made here to have something wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codec/profile/otlp_dialect.h"
#include "codec/wire/pb.h"
#include "model/profile_type.h"
#include "server/ingest/ingest.h"
#include "server/ingest/repairs.h"
#include "tables_text.h"

#define NOW_NS (1700000000ll * CLOCK_NS_PER_S)

struct world {
	struct ingest_scratch *scratch;
	struct ingest_limits limits;
	struct tables tables;
	struct tables_view view;
	struct strbuf wire;
	struct ingest_partial partial;
	struct err err;
	int64_t repaired[REPAIR_KINDS]; /* counts before */
};

static void begin(struct world *w)
{
	*w = (struct world){ .limits = ingest_limits_default, .scratch = ingest_scratch_new(NULL) };
	tables_init(&w->tables);
	for (int i = 0; i < REPAIR_KINDS; i++)
		w->repaired[i] = repairs_counted((enum repair)i);
}

static void end(struct world *w)
{
	ingest_scratch_free(w->scratch);
	tables_free(&w->tables);
	strbuf_free(&w->wire);
}

static int64_t repairs_of(const struct world *w, enum repair repair)
{
	return repairs_counted(repair) - w->repaired[repair];
}

static int take(struct world *w)
{
	int status = ingest_from_otlp(w->scratch, &w->limits, strbuf_slice(&w->wire), NOW_NS,
				      &w->tables, &w->partial, &w->err);

	w->view = tables_view_of(&w->tables);
	return status;
}

static void assert_taken(struct world *w)
{
	if (take(w))
		fail_msg("%s", w->err.message);
}

static void take_golden(struct world *w, const char *name)
{
	struct strbuf path = { 0 };
	const char *root = getenv("FIRN_TESTS");
	size_t n;
	FILE *file;

	strbuf_addf(&path, "%s/golden/otlp/%s.pb", root ? root : "tests", name);
	file = fopen(strbuf_text(&path), "rb");
	if (!file)
		fail_msg("cannot open %s", strbuf_text(&path));
	strbuf_clear(&w->wire);
	while ((n = fread(strbuf_reserve(&w->wire, 65536), 1, 65536, file)) > 0)
		w->wire.len += n;
	fclose(file);
	strbuf_free(&path);
	assert_taken(w);
}

static void assert_tables(const struct world *w, const char *expected)
{
	struct strbuf text = { 0 };

	tables_text_add(&text, &w->tables);
	assert_string_equal(strbuf_text(&text), expected);
	strbuf_free(&text);
}

static const char *const dialects[] = { "1.8", "1.9", "1.10" };

static void times_alone_count_one_each_in_every_dialect(void **state)
{
#define SERIES                                                                                     \
	"on_cpu:samples:count:cpu:nanoseconds:delta 52631578 {canary=\"true\" "                    \
	"container.id=\"c0ffee\" hosts=\"[\"x\",\"y\"]\" n=\"-7\" ratio=\"0.5\" raw=\"01fe\" "     \
	"service.name=\"shop\" zone=\"{\"a\":1,\"b\":2}\" } "                                      \
	"1700000000000000000+10000000000"
	static const char expected[] =
		SERIES " in all 4\n" SERIES
		       "{cpu.logical_number=3 process.pid=4711 thread.name=\"worker\" }"
		       " | kernel 0 0x0 [kernel]  do_sys_open () :0:0 0"
		       " | cpython 1 0x0   inner () app.py:5:0 3"
		       " | cpython 0 0x0   outer () app.py:9:0 0 2 @0 @0\n" SERIES
		       "{process.pid=4711 thread.name=\"worker\" }"
		       " | native 0 0x1234 /usr/bin/app abcd  () :0:0 0 2 @0 @0\n";

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct strbuf name = { 0 };
		struct world w;

		begin(&w);
		strbuf_addf(&name, "ebpf_%s", dialects[i]);
		take_golden(&w, strbuf_text(&name));
		assert_tables(&w, expected);
		assert_int_equal(repairs_of(&w, REPAIR_PROCESS_IDENTITY), 1);
		assert_int_equal(w.view.reports[0].moment_count, 4);
		for (uint32_t m = 0; m < 4; m++) {
			assert_int_equal(w.view.moments[m].row, m / 2);
			assert_int_equal(w.view.moments[m].tick, 0); /* nanoseconds */
			assert_int_equal(w.view.moments[m].link, 0);
		}
		strbuf_free(&name);
		end(&w);
	}
#undef SERIES
}

static void times_beyond_the_limit_of_a_report_are_left_out(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	w.limits.moments_max = 3; /* of 4 */
	take_golden(&w, "ebpf_1.9");
	assert_int_equal(w.view.reports[0].moment_count, 3);
	assert_int_equal(w.view.moments[2].row, 1);
	assert_int_equal(w.view.totals[0], 4);
	assert_int_equal(repairs_of(&w, REPAIR_MOMENTS_MANY), 1);
	end(&w);
}

static void values_add_up_in_every_dialect(void **state)
{
#define SERIES                                                                                     \
	"my_memory_profiler:alloc_space:bytes:space:bytes:delta 524288 {deployment=\"blue\" "      \
	"service.name=\"shop\" } 1700000000000000000+10000000000"
	static const char expected[] = SERIES
		" in all 307\n" SERIES
		"{size=64bytes } | kernel 0 0x0 [kernel]  do_sys_open () :0:0 0"
		" | cpython 1 0x0   inner () app.py:5:0 3 | cpython 0 0x0   outer () app.py:9:0 0 "
		"300\n" SERIES "{size=64bytes } | native 0 0x1234 /usr/bin/app abcd  () :0:0 0 7\n";
	uint64_t batch_id = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct strbuf name = { 0 };
		struct world w;

		begin(&w);
		strbuf_addf(&name, "values_%s", dialects[i]);
		take_golden(&w, strbuf_text(&name));
		assert_tables(&w, expected);
		assert_int_equal(repairs_of(&w, REPAIR_TRACE_CONTEXT), 0);
		assert_int_equal(w.view.moments_count, 1);
		assert_int_equal(w.view.moments[0].row, 0);
		assert_int_equal(w.view.moments[0].tick, UINT32_MAX);
		assert_memory_equal(w.view.links[w.view.moments[0].link].trace_id,
				    "tttttttttttttttt", 16);
		assert_memory_equal(w.view.links[w.view.moments[0].link].span_id, "ssssssss", 8);
		if (i) /* by the profile's id, which is the same in all */
			assert_true(w.view.reports[0].batch_id == batch_id);
		batch_id = w.view.reports[0].batch_id;
		strbuf_free(&name);
		end(&w);
	}
#undef SERIES
}

static int64_t total_of(const struct world *w)
{
	int64_t sum = 0;

	for (uint64_t i = 0; i < w->view.values_count; i++)
		sum += w->view.values[i];
	return sum;
}

/* Both profiles of old_*.pb, each type a series. */
static void dialects_before_stacks_say_the_same(void **state)
{
	static const char *const names[] = { "old_1.5", "old_1.7" };
	struct strbuf texts[2] = { { 0 }, { 0 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct world w;

		begin(&w);
		take_golden(&w, names[i]);
		assert_int_equal(w.view.reports_count, 4);
		assert_int_equal(total_of(&w), 2 * (3 + 1) + 300 + 301 + 2 * 7);
		assert_int_equal(repairs_of(&w, REPAIR_STACK_INDEX), 0);
		assert_int_equal(repairs_of(&w, REPAIR_LOCATION_ID), 0);
		assert_int_equal(repairs_of(&w, REPAIR_TRACE_CONTEXT), 0);
		assert_int_equal(w.view.moments_count, 4);
		tables_text_add(&texts[i], &w.tables);
		end(&w);
	}
	assert_string_equal(strbuf_text(&texts[0]), strbuf_text(&texts[1]));
	assert_non_null(strstr(strbuf_text(&texts[0]), "alloc_space:bytes:space:bytes:delta 524288 "
						       "{service.name=\"bank\" }"));
	assert_non_null(strstr(strbuf_text(&texts[0]), "/usr/bin/bank"));
	assert_non_null(strstr(strbuf_text(&texts[0]), "bank_main () bank.c:7"));
	assert_non_null(strstr(strbuf_text(&texts[0]), "{size=65 }"));
	strbuf_free(&texts[0]);
	strbuf_free(&texts[1]);
}

static void references_to_strings_are_resolved(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	take_golden(&w, "references_1.10");
	assert_true(slice_is(tables_label_value(&w.view, w.view.series[0].label_set,
						SLICE_LITERAL("service.name")),
			     "shop"));
	assert_true(slice_is(tables_text(&w.view, w.view.groups[0].name), "off_cpu"));
	end(&w);
}

static void content_makes_the_identity_where_the_sender_gives_none(void **state)
{
	struct world a, b;

	(void)state;
	begin(&a);
	begin(&b);
	tables_string(&b.tables, SLICE_LITERAL("shifts every id")); /* ids must not matter */
	take_golden(&a, "ebpf_1.9");
	take_golden(&b, "ebpf_1.10"); /* other bytes, same content */
	assert_true(a.view.reports[0].batch_id == b.view.reports[0].batch_id);
	take_golden(&a, "references_1.10");
	assert_false(a.view.reports[0].batch_id == a.view.reports[1].batch_id);
	end(&a);
	end(&b);
}

/* What a small request says; 0 and NULL leave a field out. */
struct sketch {
	uint32_t profile_type;	/* field 1 of Profile: string index of the type */
	const char *samples[4]; /* encoded Sample messages, in hex */
	const char *profile;	/* further fields of Profile, in hex */
	bool no_dictionary;
	int attributes, links; /* entries of these tables beside the empty one */
	struct slice encoded;  /* further samples */
};

static void add_hex(struct strbuf *out, const char *hex)
{
	for (; hex && hex[0]; hex += hex[2] == ' ' ? 3 : 2) {
		unsigned byte;

		assert_int_equal(sscanf(hex, "%2x", &byte), 1);
		strbuf_add_byte(out, (char)byte);
	}
}

/* One resource, scope and profile; strings "", "samples", "count"; a stack table of two. */
static void draw(struct strbuf *out, const struct sketch *sketch)
{
	size_t resource = pb_begin(out, OTLP_REQUEST_RESOURCE_PROFILES);
	size_t scope = pb_begin(out, OTLP_RESOURCE_PROFILES_SCOPE_PROFILES);
	size_t profile = pb_begin(out, OTLP_SCOPE_PROFILES_PROFILES);
	size_t inner = pb_begin(out, OTLP_PROFILE_SAMPLE_TYPE);

	pb_put_varint(out, OTLP_VALUE_TYPE_TYPE, sketch->profile_type);
	pb_put_varint(out, OTLP_VALUE_TYPE_UNIT, 2);
	pb_end(out, inner);
	for (int i = 0; i < 4 && sketch->samples[i]; i++) {
		inner = pb_begin(out, OTLP_PROFILE_SAMPLES);
		add_hex(out, sketch->samples[i]);
		pb_end(out, inner);
	}
	strbuf_add_slice(out, sketch->encoded);
	add_hex(out, sketch->profile);
	pb_end(out, profile);
	pb_end(out, scope);
	pb_end(out, resource);
	if (sketch->no_dictionary)
		return;
	inner = pb_begin(out, OTLP_REQUEST_DICTIONARY);
	pb_put_bytes_always(out, OTLP_DICTIONARY_STACK_TABLE, SLICE_LITERAL(""));
	pb_put_bytes_always(out, OTLP_DICTIONARY_STACK_TABLE, SLICE_LITERAL(""));
	for (int i = 0; i <= sketch->attributes; i++)
		pb_put_bytes_always(out, OTLP_DICTIONARY_ATTRIBUTE_TABLE, SLICE_LITERAL(""));
	for (int i = 0; i <= sketch->links; i++)
		pb_put_bytes_always(out, OTLP_DICTIONARY_LINK_TABLE, SLICE_LITERAL(""));
	pb_put_bytes_always(out, OTLP_DICTIONARY_STRING_TABLE, SLICE_LITERAL(""));
	pb_put_bytes_always(out, OTLP_DICTIONARY_STRING_TABLE, SLICE_LITERAL("samples"));
	pb_put_bytes_always(out, OTLP_DICTIONARY_STRING_TABLE, SLICE_LITERAL("count"));
	pb_end(out, inner);
}

/* Times of 8 bytes each, as Sample field 5. */
#define ONE_TIME "2a 08 0000000000000001"
#define TWO_TIMES "2a 10 0000000000000001 0000000000000002"

static void dialects_are_told_apart(void **state)
{
	static const struct {
		const char *what;
		struct sketch sketch;
		enum otlp_dialect dialect;
	} cases[] = {
		{ "no samples", { .samples = { NULL } }, OTLP_1_10 },
		{ "field 3 packed: attributes",
		  { .samples = { "08 01 12 01 05 1a 01 01" } },
		  OTLP_1_9 },
		{ "field 4 a number: link",
		  { .samples = { "08 01 12 01 05 20 01" }, .links = 1 },
		  OTLP_1_9 },
		{ "field 4 a number, and field 2 leads nowhere: link",
		  { .samples = { "08 01 12 01 05 20 01" } },
		  OTLP_1_9 },
		{ "field 3 a number: link",
		  { .samples = { "08 01 12 01 01 18 01 22 01 05" }, .attributes = 1, .links = 1 },
		  OTLP_1_10 },
		{ "field 4 a number, nothing else: values",
		  { .samples = { "08 01 20 04" }, .links = 9 },
		  OTLP_1_10 },
		{ "numbers one by one, attributes and values",
		  { .samples = { "08 01 10 01 20 04" }, .attributes = 1 },
		  OTLP_1_10 },
		{ "numbers one by one, values and attributes",
		  { .samples = { "08 01 10 04 18 01" }, .attributes = 1 },
		  OTLP_1_9 },
		{ "field 4 twice in a sample: values",
		  { .samples = { "08 01 10 01 20 00 20 01" TWO_TIMES },
		    .attributes = 1,
		    .links = 1 },
		  OTLP_1_10 },
		{ "field 4 packed: values", { .samples = { "08 01 22 01 05" } }, OTLP_1_10 },
		{ "field 2 alone: values",
		  { .samples = { "08 01 12 01 01" }, .attributes = 3 },
		  OTLP_1_9 },
		{ "more numbers than times",
		  { .samples = { "12 02 01 02" ONE_TIME }, .attributes = 3 },
		  OTLP_1_10 },
		{ "as many, all attributes",
		  { .samples = { "12 02 01 02" TWO_TIMES }, .attributes = 3 },
		  OTLP_1_10 },
		{ "as many, one repeats",
		  { .samples = { "12 02 01 01" TWO_TIMES }, .attributes = 3 },
		  OTLP_1_9 },
		{ "as many, one beyond the table",
		  { .samples = { "12 01 04" ONE_TIME }, .attributes = 3 },
		  OTLP_1_9 },
		{ "as many, one is 0",
		  { .samples = { "12 01 00" ONE_TIME }, .attributes = 3 },
		  OTLP_1_9 },
		{ "one sample decides for all",
		  { .samples = { "12 01 01" ONE_TIME, "12 01 02" ONE_TIME, "12 01 63" ONE_TIME },
		    .attributes = 3 },
		  OTLP_1_9 },
		{ "profile id in field 8",
		  { .profile = "42 10 00112233445566778899aabbccddeeff" },
		  OTLP_1_8 },
		{ "profile id in field 7",
		  { .profile = "3a 10 00112233445566778899aabbccddeeff" },
		  OTLP_1_10 },
		{ "attributes in field 12", { .profile = "62 01 01" }, OTLP_1_8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum otlp_dialect dialect = OTLP_DIALECTS;
		struct strbuf wire = { 0 };
		struct err err = { 0 };

		draw(&wire, &cases[i].sketch);
		if (otlp_dialect_detect(strbuf_slice(&wire), &dialect, &err))
			fail_msg("%s: %s", cases[i].what, err.message);
		if (dialect != cases[i].dialect)
			fail_msg("%s: read as %s", cases[i].what, otlp_dialect_name(dialect));
		strbuf_free(&wire);
	}
}

/* How an encoder may write repeated numbers. */
enum packing { PACKED, UNPACKED, MIXED, PACKINGS };
enum shape { VALUES, TIMES, VALUES_AND_TIMES, SHAPES };

static void put_numbers(struct strbuf *out, uint32_t field, const uint64_t *numbers, size_t count,
			bool packed)
{
	if (packed)
		pb_put_packed(out, field, numbers, count);
	for (size_t i = 0; i < count && !packed; i++)
		pb_put_varint_always(out, field, numbers[i]);
}

/* Three samples of 3, 7 and 3 in all, each with an attribute, the last with a link. */
static void put_samples(struct strbuf *out, bool old, enum packing packing, enum shape shape)
{
	static const struct {
		uint64_t values[2], times;
	} model[] = { { { 2, 1 }, 3 }, { { 3, 4 }, 7 }, { { 1, 2 }, 3 } };

	for (uint64_t i = 0; i < 3; i++) {
		bool packed = packing == PACKED || (packing == MIXED && i == 1);
		size_t sample = pb_begin(out, OTLP_PROFILE_SAMPLES);
		uint64_t attribute = i + 1;

		pb_put_varint(out, OTLP_SAMPLE_STACK_INDEX, 1);
		if (shape != TIMES)
			put_numbers(out, old ? 2 : 4, model[i].values, 2, packed);
		put_numbers(out, old ? 3 : 2, &attribute, 1, packed);
		if (i == 2)
			pb_put_varint(out, old ? 4 : 3, 1);
		for (uint64_t t = 0; shape != VALUES && t < (shape == TIMES ? model[i].times : 2);
		     t++)
			pb_put_fixed64(out, OTLP_SAMPLE_TIMESTAMPS_UNIX_NANO,
				       (uint64_t)NOW_NS + t + 1);
		pb_end(out, sample);
	}
}

static void totals_do_not_depend_on_how_numbers_are_packed(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * PACKINGS * SHAPES; i++) {
		struct sketch sketch = { .profile_type = 1, .attributes = 3, .links = 1 };
		struct strbuf samples = { 0 };
		struct world w;

		begin(&w);
		put_samples(&samples, i & 1, (enum packing)(i / 2 % PACKINGS),
			    (enum shape)(i / 2 / PACKINGS));
		sketch.encoded = strbuf_slice(&samples);
		draw(&w.wire, &sketch);
		assert_taken(&w);
		if (total_of(&w) != 13 || w.partial.rejected_profiles)
			fail_msg("case %d: %lld", i, (long long)total_of(&w));
		assert_int_equal(repairs_of(&w, REPAIR_ATTRIBUTE_INDEX), 0);
		strbuf_free(&samples);
		end(&w);
	}
}

static void a_profile_of_zeroes_is_not_taken_in_silence(void **state)
{
	static const struct sketch zeroes = { .profile_type = 1,
					      .samples = { "08 01 22 01 00", "08 01 22 01 00" } };
	struct world w;

	(void)state;
	begin(&w);
	draw(&w.wire, &zeroes);
	assert_taken(&w);
	assert_int_equal(w.partial.rejected_profiles, 1);
	assert_non_null(strstr(w.partial.message, "all its 2 samples have the value 0"));
	end(&w);
}

static void dialects_too_old_or_mixed_are_refused(void **state)
{
	static const struct {
		struct sketch sketch;
		enum err_code code;
		const char *words;
	} cases[] = {
		{ { .no_dictionary = true }, ERR_UNSUPPORTED, "neither a dictionary nor" },
		{ { .samples = { "22 01 05", "1a 01 05" } }, ERR_INVALID, "mixes" },
		{ { .samples = { "22 01 05" }, .profile = "62 01 01" }, ERR_INVALID, "mixes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		begin(&w);
		draw(&w.wire, &cases[i].sketch);
		assert_int_equal(take(&w), -(int)cases[i].code);
		if (!strstr(w.err.message, cases[i].words))
			fail_msg("case %zu: %s", i, w.err.message);
		assert_int_equal(w.view.reports_count, 0);
		end(&w);
	}
}

static void a_bad_profile_costs_only_itself(void **state)
{
	static const struct sketch good = { .profile_type = 1, .samples = { "08 01 22 01 05" } };
	static const struct sketch nameless = { .samples = { "08 01 22 01 05" },
						.no_dictionary = true };
	static const struct sketch uneven = { .profile_type = 1,
					      .samples = { "08 01 22 03 05 06 07" TWO_TIMES },
					      .no_dictionary = true };
	struct world w;

	(void)state;
	begin(&w);
	draw(&w.wire, &nameless);
	draw(&w.wire, &uneven);
	draw(&w.wire, &good);
	assert_taken(&w);
	assert_int_equal(w.partial.rejected_profiles, 2);
	assert_non_null(strstr(w.partial.message, "profile 0"));
	assert_non_null(strstr(w.partial.message, "no name"));
	assert_int_equal(w.view.reports_count, 1);
	assert_int_equal(w.view.totals[0], 5);
	end(&w);
}

static void broken_bytes_refuse_the_whole_request(void **state)
{
	static const struct sketch good = { .profile_type = 1, .samples = { "08 01 22 01 05" } };
	struct world w;
	size_t whole;

	(void)state;
	begin(&w);
	draw(&w.wire, &good);
	whole = w.wire.len;
	for (size_t len = 1; len < whole; len++) {
		w.wire.len = len;
		if (take(&w))
			assert_int_equal(w.view.reports_count, 0);
		tables_reset(&w.tables);
	}
	w.wire.len = whole;
	w.limits.decompressed_bytes_max = whole - 1;
	assert_int_equal(take(&w), -ERR_LIMIT);
	end(&w);
}

static void indexes_that_lead_nowhere_are_repaired(void **state)
{
	/* stack 77, attributes 5 (none such), link 0, values {3} */
	static const struct sketch sketch = { .profile_type = 1,
					      .samples = { "08 4d 12 01 05 22 01 03" } };
	struct world w;

	(void)state;
	begin(&w);
	draw(&w.wire, &sketch);
	assert_taken(&w);
	assert_tables(&w, "samples:samples:count:: 0 {} 1700000000000000000+0 in all 3\n"
			  "samples:samples:count:: 0 {} 1700000000000000000+0{}"
			  " | unknown 0 0x0   [unknown] () :0:0 0 3\n");
	assert_int_equal(repairs_of(&w, REPAIR_STACK_INDEX), 1);
	assert_int_equal(repairs_of(&w, REPAIR_ATTRIBUTE_INDEX), 1);
	assert_int_equal(repairs_of(&w, REPAIR_TIME_MISSING), 1);
	end(&w);
}

static void cumulative_temporality_of_1_8_is_kept(void **state)
{
	/* sample_type {type 1, unit 2, temporality 2}, duration 5 */
	static const struct sketch sketch = { .profile = "0a 06 08 01 10 02 18 02 20 05",
					      .samples = { "08 01 12 01 05 1a 00" } };
	struct world w;

	(void)state;
	begin(&w);
	draw(&w.wire, &sketch);
	assert_taken(&w);
	assert_int_equal(w.view.columns[0].kind, COLUMN_CUMULATIVE);
	end(&w);
}

/* How to write a request anew: what is changed are samples, locations and stacks. */
struct rewriting {
	bool unknown;  /* each begins with a field that nobody knows, so that it is not a plain one
			*/
	int cut, left; /* of one of them, its number, only so many bytes */
	int count;     /* so far */
	int longest;   /* bytes of one */
};

enum level { REQUEST, RESOURCE_PROFILES, SCOPE_PROFILES, PROFILE, DICTIONARY, LEAF, OTHER };

static enum level level_of(enum level in, uint32_t field)
{
	switch (in) {
	case REQUEST:
		return field == OTLP_REQUEST_DICTIONARY ? DICTIONARY : RESOURCE_PROFILES;
	case RESOURCE_PROFILES:
		return field == OTLP_RESOURCE_PROFILES_SCOPE_PROFILES ? SCOPE_PROFILES : OTHER;
	case SCOPE_PROFILES:
		return field == OTLP_SCOPE_PROFILES_PROFILES ? PROFILE : OTHER;
	case PROFILE:
		return field == OTLP_PROFILE_SAMPLES ? LEAF : OTHER;
	case DICTIONARY:
		return field == OTLP_DICTIONARY_LOCATION_TABLE ||
				       field == OTLP_DICTIONARY_STACK_TABLE
			       ? LEAF
			       : OTHER;
	default:
		return OTHER;
	}
}

static void rewrite(struct slice message, enum level level, struct rewriting *how,
		    struct strbuf *out)
{
	struct pb_reader in = pb_reader_of(message);
	struct pb_field field;

	if (level == LEAF) {
		size_t len = message.len;

		if (how->longest < (int)len)
			how->longest = (int)len;
		if (how->count++ == how->cut && len > (size_t)how->left)
			len = (size_t)how->left;
		if (how->unknown)
			strbuf_add(out, "\x78\x00", 2);
		strbuf_add(out, message.data, len);
		return;
	}
	while (pb_next(&in, &field)) {
		enum level inner = level_of(level, field.number);
		size_t begun;

		if (field.wire == PB_FIXED64) {
			pb_put_fixed64(out, field.number, field.value);
		} else if (field.wire == PB_VARINT) {
			pb_put_varint_always(out, field.number, field.value);
		} else if (inner == OTHER) {
			pb_put_bytes_always(out, field.number, field.bytes);
		} else {
			begun = pb_begin(out, field.number);
			rewrite(field.bytes, inner, how, out);
			pb_end(out, begun);
		}
	}
}

/* What a request makes: the tables as text, or the code of the refusal. */
static void take_rewritten(struct slice request, struct rewriting *how, struct strbuf *out)
{
	struct world w;

	begin(&w);
	rewrite(request, REQUEST, how, &w.wire);
	if (take(&w))
		strbuf_addf(out, "refused: %d", (int)w.err.code);
	else
		tables_text_add(out, &w.tables);
	end(&w);
}

/* With their fields in order they are read at once, else field by field. */
static void plain_messages_and_others_say_the_same(void **state)
{
	static const char *const names[] = { "ebpf_1.8",       "ebpf_1.9",   "ebpf_1.10",
					     "values_1.8",     "values_1.9", "values_1.10",
					     "references_1.10" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct rewriting size = { .cut = -1 };
		struct strbuf copy = { 0 };
		struct world w;

		begin(&w);
		take_golden(&w, names[i]);
		rewrite(strbuf_slice(&w.wire), REQUEST, &size, &copy);
		assert_true(size.count > 2);
		for (int cut = -1; cut < size.count; cut++) {
			for (int left = 0; left < (cut < 0 ? 1 : size.longest); left++) {
				struct rewriting plain = { .cut = cut, .left = left };
				struct rewriting other = { .cut = cut,
							   .left = left,
							   .unknown = true };
				struct strbuf made = { 0 }, expected = { 0 };

				take_rewritten(strbuf_slice(&w.wire), &plain, &made);
				take_rewritten(strbuf_slice(&w.wire), &other, &expected);
				assert_string_equal(strbuf_text(&made), strbuf_text(&expected));
				strbuf_free(&made);
				strbuf_free(&expected);
			}
		}
		strbuf_free(&copy);
		end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_alone_count_one_each_in_every_dialect),
		cmocka_unit_test(times_beyond_the_limit_of_a_report_are_left_out),
		cmocka_unit_test(values_add_up_in_every_dialect),
		cmocka_unit_test(references_to_strings_are_resolved),
		cmocka_unit_test(content_makes_the_identity_where_the_sender_gives_none),
		cmocka_unit_test(dialects_are_told_apart),
		cmocka_unit_test(dialects_before_stacks_say_the_same),
		cmocka_unit_test(totals_do_not_depend_on_how_numbers_are_packed),
		cmocka_unit_test(a_profile_of_zeroes_is_not_taken_in_silence),
		cmocka_unit_test(dialects_too_old_or_mixed_are_refused),
		cmocka_unit_test(a_bad_profile_costs_only_itself),
		cmocka_unit_test(broken_bytes_refuse_the_whole_request),
		cmocka_unit_test(indexes_that_lead_nowhere_are_repaired),
		cmocka_unit_test(cumulative_temporality_of_1_8_is_kept),
		cmocka_unit_test(plain_messages_and_others_say_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
