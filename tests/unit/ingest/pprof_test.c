/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_from_pprof: what becomes of Go's own profiles, and of profiles with something wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codec/archive/compress.h"
#include "codec/profile/pprof.h"
#include "server/ingest/ingest.h"
#include "server/ingest/repairs.h"
#include "tables_text.h"

#define NOW_NS (1700000000ll * CLOCK_NS_PER_S)

/* A profile being built, and what ingest made of it. */
struct world {
	struct pprof profile;
	struct pprof_builder *builder;
	struct strbuf wire;
	struct ingest_scratch *scratch;
	struct ingest_limits limits;
	struct tables tables;
	struct tables_view view;
	struct err err;
	int64_t repaired[REPAIR_KINDS]; /* counts before */
};

#define ADD(column, ...)                                                                           \
	do {                                                                                       \
		assert_true(COLUMN_ROOM(column, 1, 1000000));                                      \
		(column)->data[(column)->count++] = (__typeof__(*(column)->data))__VA_ARGS__;      \
	} while (0)

static int64_t text(struct world *w, const char *chars)
{
	return pprof_builder_string(w->builder, slice_of(chars));
}

static void add_type(struct world *w, const char *type, const char *unit)
{
	ADD(&w->profile.sample_types, { text(w, type), text(w, unit) });
}

/* One value per call for each location list; ids end with 0. */
static void add_sample(struct world *w, int64_t value, const uint64_t *locations)
{
	struct pprof *p = &w->profile;
	struct pprof_sample sample = { .location_first = (uint32_t)p->location_ids.count,
				       .value_first = (uint32_t)p->values.count,
				       .label_first = (uint32_t)p->labels.count,
				       .value_count = 1 };

	for (; locations[sample.location_count]; sample.location_count++)
		ADD(&p->location_ids, locations[sample.location_count]);
	ADD(&p->values, value);
	ADD(&p->samples, sample);
}

#define IDS(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

/* Attaches to the sample added last. */
static void add_label(struct world *w, struct pprof_label label)
{
	ADD(&w->profile.labels, label);
	w->profile.samples.data[w->profile.samples.count - 1].label_count++;
}

static void add_mapping(struct world *w, struct pprof_mapping mapping)
{
	ADD(&w->profile.mappings, mapping);
}

static void add_function(struct world *w, uint64_t id, const char *name, const char *file)
{
	ADD(&w->profile.functions, { .id = id, .name = text(w, name), .filename = text(w, file) });
}

static void add_location(struct world *w, uint64_t id, uint64_t mapping, uint64_t address)
{
	ADD(&w->profile.locations, { .id = id,
				     .mapping_id = mapping,
				     .address = address,
				     .line_first = (uint32_t)w->profile.lines.count });
}

/* Attaches to the location added last. */
static void add_line(struct world *w, uint64_t function, int64_t line)
{
	ADD(&w->profile.lines, { .function_id = function, .line = line });
	w->profile.locations.data[w->profile.locations.count - 1].line_count++;
}

static void begin(struct world *w)
{
	*w = (struct world){ .limits = ingest_limits_default };
	pprof_init(&w->profile);
	w->builder = pprof_builder_new(&w->profile);
	w->scratch = ingest_scratch_new(NULL);
	tables_init(&w->tables);
	w->profile.time_nanos = NOW_NS;
	for (int i = 0; i < REPAIR_KINDS; i++)
		w->repaired[i] = repairs_counted((enum repair)i);
}

/* With one sample type, on a CPU profile of one function. */
static void begin_simple(struct world *w)
{
	begin(w);
	add_type(w, "cpu", "nanoseconds");
	w->profile.duration_nanos = 10 * CLOCK_NS_PER_S;
	add_function(w, 1, "main", "main.c");
	add_location(w, 1, 0, 0);
	add_line(w, 1, 7);
}

static void end(struct world *w)
{
	pprof_builder_free(w->builder);
	pprof_free(&w->profile);
	strbuf_free(&w->wire);
	tables_free(&w->tables);
	ingest_scratch_free(w->scratch);
}

static int64_t repairs_of(const struct world *w, enum repair repair)
{
	return repairs_counted(repair) - w->repaired[repair];
}

static int take_input(struct world *w, struct ingest_pprof *input)
{
	int status;

	input->now_ns = NOW_NS;
	status = ingest_from_pprof(w->scratch, &w->limits, input, &w->tables, &w->err);
	w->view = tables_view_of(&w->tables);
	return status;
}

static int take(struct world *w)
{
	strbuf_clear(&w->wire);
	pprof_encode(&w->profile, &w->wire);
	return take_input(w, &(struct ingest_pprof){ .bytes = strbuf_slice(&w->wire) });
}

static void assert_taken(struct world *w)
{
	if (take(w))
		fail_msg("%s", w->err.message);
}

static void assert_refused(struct world *w, enum err_code code, const char *words)
{
	assert_int_equal(take(w), -(int)code);
	assert_int_equal(w->err.code, code);
	if (!strstr(w->err.message, words))
		fail_msg("\"%s\" does not say \"%s\"", w->err.message, words);
	assert_int_equal(w->tables.reports.count, 0);
}

/* The stack of a row, leaf first, one frame per line. */
static void assert_stack(const struct world *w, uint64_t row, const char *expected)
{
	struct strbuf text = { 0 };

	for (uint32_t node = w->view.rows[row].stack; node; node = w->view.nodes[node].parent) {
		tables_text_add_frame(&text, &w->view, w->view.nodes[node].frame);
		strbuf_add_byte(&text, '\n');
	}
	assert_string_equal(strbuf_text(&text), expected);
	strbuf_free(&text);
}

static void assert_name(const struct world *w, const char *expected)
{
	struct slice name = tables_text(&w->view, w->view.groups[0].name);

	if (!slice_is(name, expected))
		fail_msg("name is \"%.*s\", not \"%s\"", SLICE_FMT(name), expected);
}

static struct slice read_golden(const char *name, struct strbuf *out)
{
	struct strbuf path = { 0 };
	const char *root = getenv("FIRN_TESTS");
	size_t n;
	FILE *file;

	strbuf_addf(&path, "%s/golden/pprof/%s", root ? root : "tests", name);
	file = fopen(strbuf_text(&path), "rb");
	if (!file)
		fail_msg("cannot open %s", strbuf_text(&path));
	while ((n = fread(strbuf_reserve(out, 65536), 1, 65536, file)) > 0)
		out->len += n;
	fclose(file);
	strbuf_free(&path);
	return strbuf_slice(out);
}

struct golden_case {
	const char *file, *name;
	uint32_t columns;
	enum column_kind kinds[4];
};

static void go_profiles_get_their_names_and_kinds(void **state)
{
	static const struct golden_case cases[] = {
		{ "go_cpu.pb.gz", "process_cpu", 2, { COLUMN_DELTA, COLUMN_DELTA } },
		{ "go_heap.pb.gz",
		  "memory",
		  4,
		  { COLUMN_CUMULATIVE, COLUMN_CUMULATIVE, COLUMN_GAUGE, COLUMN_GAUGE } },
		{ "go_mutex.pb.gz", "mutex", 2, { COLUMN_CUMULATIVE, COLUMN_CUMULATIVE } },
		{ "go_block.pb.gz", "mutex", 2, { COLUMN_CUMULATIVE, COLUMN_CUMULATIVE } },
		{ "go_goroutine.pb.gz", "goroutine", 1, { COLUMN_GAUGE } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct strbuf bytes = { 0 };

		begin(&w);
		if (take_input(&w, &(struct ingest_pprof){
					   .bytes = read_golden(cases[i].file, &bytes) }))
			fail_msg("%s: %s", cases[i].file, w.err.message);
		assert_name(&w, cases[i].name);
		assert_int_equal(w.view.groups[0].column_count, cases[i].columns);
		for (uint32_t c = 0; c < cases[i].columns; c++)
			assert_int_equal(w.view.columns[c].kind, cases[i].kinds[c]);
		assert_true(w.view.rows_count > 0);
		for (uint32_t f = 0; f < w.view.frames_count; f++)
			assert_int_equal(w.view.frames[f].kind, FRAME_GO);
		strbuf_free(&bytes);
		end(&w);
	}
}

static void heap_profile_keeps_values_labels_and_inlining(void **state)
{
	struct strbuf bytes = { 0 };
	struct world w;
	const struct label *label;

	(void)state;
	begin(&w);
	take_input(&w, &(struct ingest_pprof){ .bytes = read_golden("go_heap.pb.gz", &bytes) });
	assert_int_equal(w.view.rows_count, 6);
	assert_int_equal(w.view.values[0], 16);
	assert_int_equal(w.view.values[1], 540842);
	assert_int_equal(w.view.groups[0].period, 524288);
	label = &w.view.labels[w.view.label_sets[w.view.rows[0].label_set].label_first];
	assert_true(slice_is(tables_text(&w.view, label->name), "bytes"));
	assert_int_equal(label->number, 32768);
	assert_stack(
		&w, 0,
		"go 3 0xb771e /tmp/workload/workload  main.allocate () ./workload.go:28:0 0\n"
		"go 2 0xb771e /tmp/workload/workload  main.main () ./workload.go:68:0 0\n"
		"go 2 0x378d1 /tmp/workload/workload  runtime.main () runtime/proc.go:250:0 0\n");
	strbuf_free(&bytes);
	end(&w);
}

static void names_follow_the_rule(void **state)
{
	static const struct {
		const char *type, *unit, *period, *fallback, *name;
	} cases[] = {
		{ "cpu", "nanoseconds", "", "x", "process_cpu" },
		{ "samples", "count", "cpu", "x", "process_cpu" },
		{ "samples", "count", "wall", "x", "x" },
		{ "inuse_space", "bytes", "space", "x", "memory" },
		{ "alloc_objects", "count", "", "x", "memory" },
		{ "contentions", "count", "contentions", "x", "mutex" },
		{ "delay", "nanoseconds", "contentions", "go_block", "block" },
		{ "goroutine", "count", "goroutine", "x", "goroutine" },
		{ "wall", "nanoseconds", "wall", "", "wall" },
		{ "wall", "nanoseconds", "wall", "web", "web" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct slice name;

		begin(&w);
		add_type(&w, cases[i].type, cases[i].unit);
		w.profile.period_type.type = text(&w, cases[i].period);
		name = ingest_default_name(&w.profile, slice_of(cases[i].fallback));
		if (!slice_is(name, cases[i].name))
			fail_msg("case %zu: %.*s", i, SLICE_FMT(name));
		end(&w);
	}
}

static void labels_of_the_request_make_the_series(void **state)
{
	static const struct ingest_label labels[] = {
		{ SLICE_LITERAL("__name__"), SLICE_LITERAL("service_cpu") },
		{ SLICE_LITERAL("k8s.pod/näme"), SLICE_LITERAL("web-1") },
		{ SLICE_LITERAL("__address__"), SLICE_LITERAL("host:1") },
		{ SLICE_LITERAL(""), SLICE_LITERAL("nobody") },
		{ SLICE_LITERAL("twice"), SLICE_LITERAL("first") },
		{ SLICE_LITERAL("twice"), SLICE_LITERAL("last") },
		{ SLICE_LITERAL("empty"), SLICE_LITERAL("") },
		{ SLICE_LITERAL("bad\xff"), SLICE_LITERAL("a\xc3") },
	};
	struct world w;
	struct ingest_pprof input = { .labels = labels, .labels_count = 8 };

	(void)state;
	begin_simple(&w);
	add_sample(&w, 5, IDS(1));
	pprof_encode(&w.profile, &w.wire);
	input.bytes = strbuf_slice(&w.wire);
	assert_int_equal(take_input(&w, &input), 0);
	assert_name(&w, "service_cpu");
	assert_int_equal(w.view.label_sets[w.view.series[0].label_set].label_count, 3);
	assert_true(slice_is(tables_label_value(&w.view, w.view.series[0].label_set,
						SLICE_LITERAL("k8s.pod/näme")),
			     "web-1"));
	assert_true(slice_is(
		tables_label_value(&w.view, w.view.series[0].label_set, SLICE_LITERAL("twice")),
		"last"));
	assert_true(slice_is(tables_label_value(&w.view, w.view.series[0].label_set,
						SLICE_LITERAL("bad\xef\xbf\xbd")),
			     "a\xef\xbf\xbd"));
	assert_int_equal(repairs_of(&w, REPAIR_LABEL_RESERVED), 1);
	assert_int_equal(repairs_of(&w, REPAIR_LABEL_EMPTY), 1);
	assert_int_equal(repairs_of(&w, REPAIR_LABEL_DUPLICATE), 1);
	assert_int_equal(repairs_of(&w, REPAIR_UTF8), 2);
	end(&w);
}

static void too_many_labels_are_refused(void **state)
{
	struct ingest_label labels[65];
	char names[65][8];
	struct world w;
	struct ingest_pprof input = { .labels = labels, .labels_count = 65 };

	(void)state;
	begin_simple(&w);
	for (int i = 0; i < 65; i++) {
		snprintf(names[i], sizeof(names[i]), "l%d", i);
		labels[i] = (struct ingest_label){ slice_of(names[i]), SLICE_LITERAL("x") };
	}
	pprof_encode(&w.profile, &w.wire);
	input.bytes = strbuf_slice(&w.wire);
	assert_int_equal(take_input(&w, &input), -ERR_LIMIT);
	end(&w);
}

static void a_retry_has_the_same_identity(void **state)
{
	static const struct ingest_label here = { SLICE_LITERAL("node"), SLICE_LITERAL("a") };
	static const struct ingest_label there = { SLICE_LITERAL("node"), SLICE_LITERAL("b") };
	struct world w;
	struct ingest_pprof input = { .labels = &here, .labels_count = 1 };

	(void)state;
	begin_simple(&w);
	add_sample(&w, 5, IDS(1));
	pprof_encode(&w.profile, &w.wire);
	input.bytes = strbuf_slice(&w.wire);
	take_input(&w, &input);
	take_input(&w, &input);
	input.labels = &there;
	take_input(&w, &input);
	assert_int_equal(w.view.reports_count, 3);
	assert_true(w.view.reports[0].batch_id == w.view.reports[1].batch_id);
	assert_int_equal(w.view.reports[0].series, w.view.reports[1].series);
	assert_false(w.view.reports[0].batch_id == w.view.reports[2].batch_id);
	end(&w);
}

static void addresses_become_file_offsets(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_mapping(&w, (struct pprof_mapping){ .id = 1,
						.memory_start = 0x7f0000,
						.memory_limit = 0x7f9000,
						.file_offset = 0x1000,
						.filename = text(&w, "/lib/x.so"),
						.build_id = text(&w, "ABCDEF") });
	add_mapping(&w, (struct pprof_mapping){ .id = 2, .filename = text(&w, "/lib/y.so") });
	add_mapping(&w, (struct pprof_mapping){ .id = 3,
						.memory_start = 0xffffffff81000000,
						.memory_limit = UINT64_MAX,
						.filename = text(&w, "[kernel.kallsyms]_stext") });
	add_location(&w, 2, 1, 0x7f0123);
	add_location(&w, 3, 2, 0x401000);
	add_location(&w, 4, 3, 0xffffffff81000010);
	add_location(&w, 5, 1, 0x10);
	add_sample(&w, 1, IDS(2, 3, 4, 5));
	assert_taken(&w);
	assert_stack(&w, 0,
		     "native 2 0x1123 /lib/x.so abcdef  () :0:0 0\n"
		     "native 0 0x401000 /lib/y.so   () :0:0 0\n"
		     "kernel 0 0xffffffff81000010 [kernel]   () :0:0 0\n"
		     "native 0 0x10 /lib/x.so abcdef  () :0:0 0\n");
	assert_int_equal(repairs_of(&w, REPAIR_ADDRESS), 1);
	end(&w);
}

static void kernel_modules_are_named_in_brackets(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_mapping(&w,
		    (struct pprof_mapping){
			    .id = 1,
			    .filename = text(&w, "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz") });
	add_mapping(&w,
		    (struct pprof_mapping){ .id = 2, .filename = text(&w, "/boot/vmlinux-6.1") });
	add_location(&w, 2, 1, 1);
	add_location(&w, 3, 2, 2);
	add_sample(&w, 1, IDS(2, 3));
	assert_taken(&w);
	assert_stack(&w, 0, "kernel 0 0x1 [ext4]   () :0:0 0\nkernel 0 0x2 [kernel]   () :0:0 0\n");
	end(&w);
}

static void what_leads_nowhere_becomes_unknown(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_location(&w, 2, 9, 0x500); /* no such mapping */
	add_location(&w, 3, 0, 0);     /* no such function */
	add_line(&w, 77, 5);
	add_location(&w, 4, 0, 0);     /* nothing at all */
	add_location(&w, 5, 0, 0x600); /* function 0, as .NET sent it, but an address */
	add_line(&w, 0, 0);
	add_sample(&w, 1, IDS(2, 3, 99, 4, 5));
	assert_taken(&w);
	assert_stack(&w, 0,
		     "native 0 0x500    () :0:0 0\n"
		     "unknown 0 0x0   [unknown] () :5:0 0\n"
		     "unknown 0 0x0   [unknown] () :0:0 0\n"
		     "unknown 0 0x0   [unknown] () :0:0 0\n"
		     "native 0 0x600    () :0:0 0\n");
	assert_int_equal(repairs_of(&w, REPAIR_MAPPING_ID), 1);
	assert_int_equal(repairs_of(&w, REPAIR_FUNCTION_ID), 2);
	assert_int_equal(repairs_of(&w, REPAIR_LOCATION_ID), 1);
	end(&w);
}

static void string_indexes_out_of_range_are_empty(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_sample(&w, 1, IDS(1));
	add_label(&w, (struct pprof_label){ .key = 99999, .str = 1 });
	w.profile.functions.data[0].filename = -5;
	assert_taken(&w);
	assert_int_equal(w.view.rows[0].label_set, 0);
	assert_int_equal(repairs_of(&w, REPAIR_STRING_INDEX), 2);
	assert_int_equal(repairs_of(&w, REPAIR_LABEL_EMPTY), 1);
	end(&w);
}

static void ids_may_be_sparse_and_doubled(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_function(&w, 7000000000000, "far", "");
	add_location(&w, 0xffffffffffffffff, 0, 0);
	add_line(&w, 7000000000000, 1);
	add_location(&w, 1, 0, 0x123); /* the second of this id */
	add_sample(&w, 1, IDS(0xffffffffffffffff, 1));
	assert_taken(&w);
	assert_stack(&w, 0,
		     "unknown 0 0x0   far () :1:0 0\nunknown 0 0x0   main () main.c:7:0 0\n");
	assert_int_equal(repairs_of(&w, REPAIR_DUPLICATE_ID), 1);
	end(&w);
}

static void samples_of_one_stack_and_labels_add_up(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_sample(&w, 5, IDS(1));
	add_sample(&w, 6, IDS(1));
	add_label(&w, (struct pprof_label){ .key = text(&w, "k"), .str = text(&w, "v") });
	add_sample(&w, 7, IDS(1));
	add_sample(&w, INT64_MAX, IDS(1));
	assert_taken(&w);
	assert_int_equal(w.view.rows_count, 2);
	assert_true(w.view.values[0] == INT64_MAX);
	assert_int_equal(w.view.values[1], 6);
	assert_int_equal(repairs_of(&w, REPAIR_VALUE_OVERFLOW), 1);
	end(&w);
}

static void samples_without_meaning_are_dropped(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_sample(&w, 0, IDS(1));
	add_sample(&w, -3, IDS(1));
	add_sample(&w, 4, IDS(1));
	assert_taken(&w);
	assert_int_equal(w.view.rows_count, 1);
	assert_int_equal(w.view.totals[0], 4);
	assert_int_equal(repairs_of(&w, REPAIR_ZERO_SAMPLE), 1);
	assert_int_equal(repairs_of(&w, REPAIR_NEGATIVE_VALUE), 1);
	end(&w);
}

/* Heap profiles have them where a program's counters were read apart. */
static void a_negative_value_takes_no_others_with_it(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_type(&w, "wall", "nanoseconds");
	add_sample(&w, 5, IDS(1));
	ADD(&w.profile.values, -2);
	add_sample(&w, -1, IDS(1));
	ADD(&w.profile.values, 7);
	for (size_t i = 0; i < w.profile.samples.count; i++)
		w.profile.samples.data[i].value_count = 2;
	assert_taken(&w);
	assert_int_equal(w.view.totals[0], 5);
	assert_int_equal(w.view.totals[1], 7);
	assert_int_equal(repairs_of(&w, REPAIR_NEGATIVE_VALUE), 2);
	end(&w);
}

static void an_idle_profile_is_a_report_of_nothing(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	assert_taken(&w);
	assert_int_equal(w.view.reports_count, 1);
	assert_int_equal(w.view.totals[0], 0);
	end(&w);
}

static void labels_of_samples_may_be_numbers_and_repeat(void **state)
{
	const struct label_set *set;
	struct world w;

	(void)state;
	begin_simple(&w);
	add_sample(&w, 1, IDS(1));
	add_label(&w, (struct pprof_label){
			      .key = text(&w, "size"), .num = 64, .num_unit = text(&w, "bytes") });
	add_label(&w, (struct pprof_label){ .key = text(&w, "tag"), .str = text(&w, "b") });
	add_label(&w, (struct pprof_label){ .key = text(&w, "tag"), .str = text(&w, "a") });
	add_label(&w, (struct pprof_label){ .key = text(&w, "void") });
	assert_taken(&w);
	set = &w.view.label_sets[w.view.rows[0].label_set];
	assert_int_equal(set->label_count, 3);
	assert_int_equal(w.view.labels[set->label_first].number, 64);
	assert_true(slice_is(tables_text(&w.view, w.view.labels[set->label_first].unit), "bytes"));
	assert_true(slice_is(tables_text(&w.view, w.view.labels[set->label_first + 1].value), "a"));
	end(&w);
}

static void deep_stacks_keep_their_leaves(void **state)
{
	uint64_t ids[12] = { 0 };
	struct world w;

	(void)state;
	begin_simple(&w);
	w.limits.stack_depth_max = 2;
	for (uint64_t i = 0; i < 11; i++) {
		ids[i] = 2 + i;
		add_location(&w, 2 + i, 0, 0x10 + i);
	}
	add_sample(&w, 1, ids);
	add_sample(&w, 1, IDS(2, 3));
	assert_taken(&w);
	assert_stack(&w, 0,
		     "native 0 0x10    () :0:0 0\n"
		     "native 0 0x11    () :0:0 0\n"
		     "marker 0 0x0   [truncated: too deep] () :0:0 0\n");
	assert_stack(&w, 1, "native 0 0x10    () :0:0 0\nnative 0 0x11    () :0:0 0\n");
	assert_int_equal(repairs_of(&w, REPAIR_DEEP_STACK), 1);
	end(&w);
}

static void times_are_repaired_where_they_can_be(void **state)
{
	static const struct {
		int64_t given, start;
		enum repair repair;
	} cases[] = {
		{ 0, NOW_NS, REPAIR_TIME_MISSING },
		{ -5, NOW_NS, REPAIR_TIME_MISSING },
		{ (NOW_NS - CLOCK_NS_PER_S) / 1000, NOW_NS - CLOCK_NS_PER_S, REPAIR_TIME_UNIT },
		{ NOW_NS / 1000000, NOW_NS, REPAIR_TIME_UNIT },
		{ NOW_NS / 1000000000, NOW_NS, REPAIR_TIME_UNIT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		begin_simple(&w);
		w.profile.time_nanos = cases[i].given;
		w.profile.duration_nanos = -1;
		assert_taken(&w);
		assert_true(w.view.reports[0].start_ns == cases[i].start);
		assert_int_equal(repairs_of(&w, cases[i].repair), 1);
		assert_int_equal(w.view.reports[0].duration_ns, 0);
		assert_int_equal(repairs_of(&w, REPAIR_DURATION), 1);
		end(&w);
	}
}

static void type_names_can_be_queried(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	add_type(&w, "a:b{c}", "d e");
	assert_taken(&w);
	assert_true(slice_is(tables_text(&w.view, w.view.columns[0].sample_type), "a_b_c_"));
	assert_true(slice_is(tables_text(&w.view, w.view.columns[0].sample_unit), "d_e"));
	assert_int_equal(repairs_of(&w, REPAIR_TYPE_TEXT), 3);
	end(&w);
}

static void long_strings_are_cut_between_characters(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	w.limits.string_bytes_max = 12;
	w.profile.functions.data[0].name = text(&w, "elevenbytesö and more");
	add_sample(&w, 1, IDS(1));
	assert_taken(&w);
	assert_stack(&w, 0, "unknown 0 0x0   elevenbytes () main.c:7:0 0\n");
	assert_int_equal(repairs_of(&w, REPAIR_LONG_STRING), 1);
	end(&w);
}

static void refusals_say_what_and_where(void **state)
{
	struct world w;

	(void)state;
	begin_simple(&w);
	add_sample(&w, 1, IDS(1));
	add_sample(&w, 1, IDS(1));
	w.profile.samples.data[1].value_count = 0;
	assert_refused(&w, ERR_INVALID, "sample 1 has 0 values");
	end(&w);

	begin(&w);
	assert_refused(&w, ERR_INVALID, "no sample types");
	end(&w);

	begin(&w);
	add_type(&w, "", "count");
	assert_refused(&w, ERR_INVALID, "sample type 0 has no name");
	end(&w);

	begin(&w);
	for (int i = 0; i < 17; i++)
		add_type(&w, "t", "u");
	assert_refused(&w, ERR_LIMIT, "17 sample types");
	end(&w);

	begin_simple(&w);
	w.limits.samples_max = 1;
	add_sample(&w, 1, IDS(1));
	add_sample(&w, 2, IDS(1));
	assert_refused(&w, ERR_LIMIT, "more than 1 elements");
	end(&w);

	begin_simple(&w);
	w.limits.decompressed_bytes_max = 4;
	assert_refused(&w, ERR_LIMIT, "more than 4");
	end(&w);
}

static void stacks_cannot_explode(void **state)
{
	uint64_t first[300], second[300];
	struct world w;

	(void)state;
	begin_simple(&w);
	w.limits.samples_max = 187; /* 16 frames each on the average: 2992 */
	add_location(&w, 2, 0, 5);
	add_line(&w, 1, 1);
	add_line(&w, 1, 2);
	for (int i = 0; i < 299; i++) {
		first[i] = 1;
		second[i] = 2;
	}
	first[299] = second[299] = 0;
	for (int i = 0; i < 10; i++)
		add_sample(&w, 1, i % 2 ? first : second);
	assert_refused(&w, ERR_LIMIT, "too many frames");
	end(&w);
}

static void gzip_in_parts_and_bombs(void **state)
{
	struct strbuf parts = { 0 };
	struct world w;
	struct ingest_pprof input;

	(void)state;
	begin_simple(&w);
	add_sample(&w, 5, IDS(1));
	pprof_encode(&w.profile, &w.wire);
	compress_gzip(slice_from(w.wire.data, 10), 6, &parts);
	compress_gzip(slice_tail(strbuf_slice(&w.wire), 10), 6, &parts);
	input = (struct ingest_pprof){ .bytes = strbuf_slice(&parts) };
	assert_int_equal(take_input(&w, &input), 0);
	assert_int_equal(w.view.totals[0], 5);
	w.limits.decompressed_bytes_max = 20;
	assert_int_equal(take_input(&w, &input), -ERR_LIMIT);
	parts.len -= 9;
	w.limits = ingest_limits_default;
	input.bytes = strbuf_slice(&parts);
	assert_int_equal(take_input(&w, &input), -ERR_INVALID);
	input.bytes = SLICE_LITERAL("");
	assert_int_equal(take_input(&w, &input), -ERR_INVALID);
	input.bytes = SLICE_LITERAL("heap profile: 1: 2 [3: 4] @ heapz_v2/524288\n");
	assert_int_equal(take_input(&w, &input), -ERR_INVALID);
	assert_int_equal(w.view.reports_count, 1);
	strbuf_free(&parts);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_profiles_get_their_names_and_kinds),
		cmocka_unit_test(heap_profile_keeps_values_labels_and_inlining),
		cmocka_unit_test(names_follow_the_rule),
		cmocka_unit_test(labels_of_the_request_make_the_series),
		cmocka_unit_test(too_many_labels_are_refused),
		cmocka_unit_test(a_retry_has_the_same_identity),
		cmocka_unit_test(addresses_become_file_offsets),
		cmocka_unit_test(kernel_modules_are_named_in_brackets),
		cmocka_unit_test(what_leads_nowhere_becomes_unknown),
		cmocka_unit_test(string_indexes_out_of_range_are_empty),
		cmocka_unit_test(ids_may_be_sparse_and_doubled),
		cmocka_unit_test(samples_of_one_stack_and_labels_add_up),
		cmocka_unit_test(samples_without_meaning_are_dropped),
		cmocka_unit_test(a_negative_value_takes_no_others_with_it),
		cmocka_unit_test(an_idle_profile_is_a_report_of_nothing),
		cmocka_unit_test(labels_of_samples_may_be_numbers_and_repeat),
		cmocka_unit_test(deep_stacks_keep_their_leaves),
		cmocka_unit_test(times_are_repaired_where_they_can_be),
		cmocka_unit_test(type_names_can_be_queried),
		cmocka_unit_test(long_strings_are_cut_between_characters),
		cmocka_unit_test(refusals_say_what_and_where),
		cmocka_unit_test(stacks_cannot_explode),
		cmocka_unit_test(gzip_in_parts_and_bombs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
