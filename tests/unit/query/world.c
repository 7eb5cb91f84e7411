/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "server/query/render/render.h"

void world_init(struct world *world, size_t views_count)
{
	*world = (struct world){ .views_count = views_count };
	for (size_t i = 0; i < views_count; i++)
		tables_init(&world->tables[i]);
}

void world_free(struct world *world)
{
	for (size_t i = 0; i < world->views_count; i++)
		tables_free(&world->tables[i]);
}

struct query_source world_source(struct world *world)
{
	for (size_t i = 0; i < world->views_count; i++) {
		world->views[i] = tables_view_of(&world->tables[i]);
		segment_of_tables(&world->segments[i], &world->views[i]);
	}
	return (struct query_source){ .segments = world->segments,
				      .segments_count = world->views_count };
}

uint32_t world_labels(struct tables *tables, const char *labels)
{
	struct label list[TABLES_LABELS_PER_SET_MAX];
	struct slice rest = slice_of(labels);
	uint32_t count = 0;

	while (rest.len) {
		struct slice value, name = slice_cut(slice_cut(rest, ',', &rest), '=', &value);

		list[count] = (struct label){ .name = tables_string(tables, name) };
		if (value.len && value.data[0] == '#') {
			list[count].numeric = 1;
			list[count].number = strtoll(value.data + 1, NULL, 10);
		} else {
			list[count].value = tables_string(tables, value);
		}
		count++;
	}
	return tables_label_set(tables, list, count);
}

static uint32_t frame_of(struct tables *tables, struct slice text)
{
	struct slice binary, address, name = slice_cut(text, '@', &binary);
	struct frame frame = { .kind = FRAME_NATIVE };

	binary = slice_cut(binary, ':', &address);
	frame.function = tables_string(tables, name);
	frame.mapping_file = tables_string(tables, binary);
	if (address.len)
		frame.address = strtoull(address.data, NULL, 0);
	return tables_frame(tables, &frame);
}

uint32_t world_stack(struct tables *tables, const char *stack)
{
	struct slice rest = slice_of(stack);
	uint32_t node = 0;

	while (rest.len)
		node = tables_node(tables, node, frame_of(tables, slice_cut(rest, ';', &rest)));
	return node;
}

uint32_t world_series(struct tables *tables, const char *type, int64_t period, const char *labels)
{
	struct profile_type parsed;
	struct column column;
	struct group group;

	assert_int_equal(profile_type_parse(slice_of(type), &parsed, NULL), 0);
	group = (struct group){
		.name = tables_string(tables, parsed.name),
		.period_type = tables_string(tables, parsed.period_type),
		.period_unit = tables_string(tables, parsed.period_unit),
		.period = period,
		.column_count = 1,
	};
	column = (struct column){
		.sample_type = tables_string(tables, parsed.sample_type),
		.sample_unit = tables_string(tables, parsed.sample_unit),
		.kind = parsed.delta ? COLUMN_DELTA : COLUMN_GAUGE,
	};
	return tables_series(tables, world_labels(tables, labels),
			     tables_group(tables, &group, &column));
}

void world_report(struct tables *tables, uint32_t series, int64_t start_ns, int64_t duration_ns)
{
	assert_int_not_equal(tables_report_begin(tables, series, start_ns, duration_ns, 0),
			     TABLES_FULL);
}

void world_row(struct tables *tables, const char *stack, const char *labels, int64_t value)
{
	assert_true(tables_row(tables, world_stack(tables, stack), world_labels(tables, labels),
			       &value));
}

int world_ask(struct world *world, const char *selector, struct query_params *params,
	      struct tree **ret, struct err *err)
{
	struct query_source source = world_source(world);
	struct selector parsed;
	int rc;

	assert_int_equal(selector_parse(slice_of(selector), &parsed, NULL), 0);
	params->selector = &parsed;
	rc = query_tree(&source, params, ret, err);
	params->selector = NULL;
	selector_free(&parsed);
	return rc;
}

struct tree *world_tree(struct world *world, const char *selector, int64_t from_ns, int64_t to_ns)
{
	return world_tree_by(world, selector, from_ns, to_ns, "");
}

struct tree *world_tree_by(struct world *world, const char *selector, int64_t from_ns,
			   int64_t to_ns, const char *group_by)
{
	struct query_params params = { .from_ns = from_ns, .to_ns = to_ns };
	struct slice rest = slice_of(group_by);
	struct tree *tree = NULL;
	struct err err = { 0 };

	while (rest.len)
		params.group_by[params.group_by_count++] = slice_cut(rest, ',', &rest);
	if (world_ask(world, selector, &params, &tree, &err))
		fail_msg("%s: %s", selector, err.message);
	return tree;
}

static int line_order(const void *left, const void *right)
{
	return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

char *world_folded(const struct tree *tree)
{
	struct strbuf folded = { 0 }, sorted = { 0 };
	struct slice *lines = NULL, rest;
	size_t count = 0, capacity = 0;

	render_folded(tree, &folded);
	for (rest = strbuf_slice(&folded); rest.len;) {
		mem_grow(lines, count, capacity);
		lines[count++] = slice_cut(rest, '\n', &rest);
	}
	if (count)
		qsort(lines, count, sizeof(*lines), line_order);
	strbuf_add_text(&sorted, "");
	for (size_t i = 0; i < count; i++)
		strbuf_addf(&sorted, "%.*s\n", SLICE_FMT(lines[i]));
	strbuf_reserve(&sorted, 1)[0] = '\0';
	free(lines);
	strbuf_free(&folded);
	return sorted.data;
}
