/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_fill - a store of many bytes, quickly: values that nothing compresses.
 *
 *     store_fill DIR MB
 *
 * For what depends on the size of parts alone, as uploading and restoring them does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "server/persist/store_admin.h"

#define COLUMNS 16u
#define STACKS 1000u
#define REPORTS 50u /* of a batch */
#define VALUE_BYTES 5
#define START_NS (1700006400 * CLOCK_NS_PER_S)

static int64_t at_ns = START_NS;

static int64_t model_clock(void *context)
{
	(void)context;
	return at_ns;
}

static void check(int rc, const struct err *err)
{
	if (rc) {
		fprintf(stderr, "store_fill: %s\n", err->message);
		exit(2);
	}
}

static uint64_t draw(void)
{
	static uint64_t state = 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t make_series(struct tables *tables)
{
	struct label label = { .name = tables_string(tables, slice_of("service_name")),
			       .value = tables_string(tables, slice_of("fill")) };
	struct column columns[COLUMNS];
	struct group group = { .name = tables_string(tables, slice_of("fill")),
			       .period_type = tables_string(tables, slice_of("cpu")),
			       .period_unit = tables_string(tables, slice_of("count")),
			       .column_count = COLUMNS };

	for (uint32_t i = 0; i < COLUMNS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "c%u", i);
		columns[i] =
			(struct column){ .sample_type = tables_string(tables, slice_of(name)),
					 .sample_unit = tables_string(tables, slice_of("count")),
					 .kind = COLUMN_DELTA };
	}
	return tables_series(tables, tables_label_set(tables, &label, 1),
			     tables_group(tables, &group, columns));
}

static void add_report(struct tables *tables, uint32_t series, const uint32_t *nodes)
{
	tables_report_begin(tables, series, at_ns, CLOCK_NS_PER_S, (uint64_t)at_ns);
	for (uint32_t i = 0; i < STACKS; i++) {
		int64_t values[COLUMNS];

		for (uint32_t c = 0; c < COLUMNS; c++)
			values[c] = (int64_t)(draw() >> 24); /* sums stay below 2^63 */
		tables_row(tables, nodes[i], 0, values);
	}
	at_ns += 10 * CLOCK_NS_PER_S;
}

/* A batch of REPORTS reports; their rows take 4 MB. */
static void append(struct store *store, struct tables *tables)
{
	struct append_result result;
	struct tables_view view;
	uint32_t nodes[STACKS], series;
	struct err err = { 0 };

	tables_reset(tables);
	series = make_series(tables);
	for (uint32_t i = 0; i < STACKS; i++) {
		struct frame frame = { .kind = FRAME_NATIVE, .address = 4096 + i };

		nodes[i] = tables_node(tables, 0, tables_frame(tables, &frame));
	}
	for (uint32_t i = 0; i < REPORTS; i++)
		add_report(tables, series, nodes);
	view = tables_view_of(tables);
	check(store_append(store, &view, &result, &err), &err);
}

int main(int argc, char **argv)
{
	struct store_options options = { .clock = model_clock, .no_background = true };
	uint64_t bytes = 0, wanted;
	struct err err = { 0 };
	struct tables tables;
	struct store *store;

	if (argc != 3) {
		fprintf(stderr, "usage: store_fill DIR MB\n");
		return 2;
	}
	options.path = argv[1];
	wanted = strtoull(argv[2], NULL, 10) << 20;
	check(store_open(&options, &store, &err), &err);
	tables_init(&tables);
	for (uint64_t batches = 1; bytes < wanted; batches++) {
		append(store, &tables);
		bytes += (uint64_t)REPORTS * STACKS * COLUMNS * VALUE_BYTES;
		if (batches % 5 == 0)
			check(store_seal(store, &err), &err);
	}
	check(store_seal(store, &err), &err);
	store_close(store);
	tables_free(&tables);
	return 0;
}
