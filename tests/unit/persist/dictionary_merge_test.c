/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random dictionaries merged, against what their texts say: each stack and series that is used is
 * there once, under the id that the maps give, with the rows of all inputs; nothing else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "server/persist/part/dictionary_merge.h"

#define INPUTS_MAX 6
#define ROUNDS 300

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed % sides);
}

struct world {
	struct tables tables[INPUTS_MAX];
	struct tables_view views[INPUTS_MAX];
	struct dictionary_input inputs[INPUTS_MAX];
	size_t count;
};

static uint32_t string(struct tables *tables, const char *prefix, uint32_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%u", prefix, number);
	return tables_string(tables, slice_of(text));
}

static uint32_t random_label_set(struct tables *tables, uint32_t names, uint32_t values)
{
	struct label labels[4];
	uint32_t count = dice(4), made = 0;

	for (uint32_t i = 0; i < count && i < names; i++) {
		bool numeric = names > 3 && dice(2);

		labels[made++] = (struct label){
			.name = string(tables, "n", i),
			.value = numeric ? 0 : string(tables, "v", dice(values)),
			.numeric = numeric,
			.number = numeric ? dice(3) : 0,
		};
	}
	return tables_label_set(tables, labels, made);
}

static void add_random_stacks(struct tables *tables)
{
	uint32_t stacks = dice(60);

	for (uint32_t i = 0; i < stacks; i++) {
		uint32_t node = 0, depth = dice(7);

		while (depth--) {
			struct frame frame = { .kind = FRAME_NATIVE, .line = dice(2) };

			frame.function = string(tables, "f", dice(4));
			node = tables_node(tables, node, tables_frame(tables, &frame));
		}
	}
}

static void make_input(struct world *world)
{
	struct tables *tables = &world->tables[world->count];
	struct dictionary_input *input = &world->inputs[world->count];
	struct tables_view *view = &world->views[world->count++];
	struct column column = { 0 };
	struct group group = { .column_count = 1, .period = 7 };
	uint8_t *used;
	uint64_t *rows;
	uint32_t id;

	tables_init(tables);
	for (uint32_t i = dice(5); i--;)
		string(tables, "v", dice(50)); /* ids differ from input to input */
	group.name = string(tables, "on_cpu", 1);
	id = tables_group(tables, &group, &column);
	for (uint32_t i = 1 + dice(12); i--;)
		tables_series(tables, random_label_set(tables, 3, 4), id);
	for (uint32_t i = dice(8); i--;)
		random_label_set(tables, 4, 3);
	add_random_stacks(tables);
	*view = tables_view_of(tables);
	*input = (struct dictionary_input){ .view = view };
	input->rows_of_node = rows = mem_new_array(uint64_t, view->nodes_count);
	for (uint32_t i = 0; i < view->nodes_count; i++)
		rows[i] = dice(2) ? dice(100) : 0;
	input->series_used = used = mem_new_array(uint8_t, view->series_count);
	for (uint32_t i = 0; i < view->series_count; i++)
		used[i] = (uint8_t)(dice(4) != 0);
	input->label_sets_used = used = mem_new_array(uint8_t, view->label_sets_count);
	for (uint32_t i = 0; i < view->label_sets_count; i++)
		used[i] = (uint8_t)dice(2);
}

static void free_world(struct world *world)
{
	for (size_t i = 0; i < world->count; i++) {
		free((void *)(uintptr_t)world->inputs[i].rows_of_node);
		free((void *)(uintptr_t)world->inputs[i].series_used);
		free((void *)(uintptr_t)world->inputs[i].label_sets_used);
		dictionary_input_free_maps(&world->inputs[i]);
		tables_free(&world->tables[i]);
	}
}

/* Texts of things, equal when they are. */

static void put_labels(struct strbuf *out, const struct tables_view *view, uint32_t set)
{
	const struct label_set *labels = &view->label_sets[set];

	for (uint32_t i = 0; i < labels->label_count; i++) {
		const struct label *label = &view->labels[labels->label_first + i];

		strbuf_addf(out, "%.*s=%.*s/%u/%lld,", SLICE_FMT(tables_text(view, label->name)),
			    SLICE_FMT(tables_text(view, label->value)), label->numeric,
			    (long long)label->number);
	}
}

static void put_stack(struct strbuf *out, const struct tables_view *view, uint32_t node)
{
	for (; node; node = view->nodes[node].parent) {
		const struct frame *frame = &view->frames[view->nodes[node].frame];

		strbuf_addf(out, "%.*s:%u;", SLICE_FMT(tables_text(view, frame->function)),
			    frame->line);
	}
}

typedef void put_f(struct strbuf *out, const struct tables_view *view, uint32_t id);

static void check_same(put_f *put, const struct tables_view *a, uint32_t id_a,
		       const struct tables_view *b, uint32_t id_b)
{
	struct strbuf text_a = { 0 }, text_b = { 0 };

	put(&text_a, a, id_a);
	put(&text_b, b, id_b);
	assert_string_equal(strbuf_text(&text_a), strbuf_text(&text_b));
	strbuf_free(&text_a);
	strbuf_free(&text_b);
}

static void put_series(struct strbuf *out, const struct tables_view *view, uint32_t series)
{
	put_labels(out, view, view->series[series].label_set);
}

/* No two ids of the result say the same. */
static void check_distinct(put_f *put, const struct tables_view *view, uint32_t count)
{
	struct strbuf *texts = mem_new_array(struct strbuf, count);

	for (uint32_t i = 0; i < count; i++) {
		put(&texts[i], view, i);
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(strbuf_text(&texts[i]), strbuf_text(&texts[j]));
	}
	for (uint32_t i = 0; i < count; i++)
		strbuf_free(&texts[i]);
	free(texts);
}

static bool below_has_rows(const struct dictionary_input *input, uint32_t node)
{
	for (uint32_t i = 1; i < input->view->nodes_count; i++)
		for (uint32_t up = i; input->rows_of_node[i] && up;
		     up = input->view->nodes[up].parent)
			if (up == node)
				return true;
	return node == 0;
}

static void check_maps(const struct world *world, const struct dictionary *merged)
{
	struct tables_view view = merged->view;
	uint64_t *rows = mem_new_array(uint64_t, view.nodes_count);
	uint8_t *series = mem_new_array(uint8_t, view.series_count + 1);

	for (size_t i = 0; i < world->count; i++) {
		const struct dictionary_input *input = &world->inputs[i];

		for (uint32_t s = 0; s < input->view->series_count; s++) {
			assert_int_equal(input->series_used[s], input->series[s] != TABLES_FULL);
			if (!input->series_used[s])
				continue;
			check_same(put_series, input->view, s, &view, input->series[s]);
			series[input->series[s]] = 1;
		}
		for (uint32_t n = 0; n < input->view->nodes_count; n++) {
			assert_int_equal(below_has_rows(input, n), input->nodes[n] != TABLES_FULL);
			if (input->nodes[n] == TABLES_FULL)
				continue;
			check_same(put_stack, input->view, n, &view, input->nodes[n]);
			rows[input->nodes[n]] += input->rows_of_node[n];
		}
		for (uint32_t l = 1; l < input->view->label_sets_count; l++)
			if (input->label_sets_used[l])
				check_same(put_labels, input->view, l, &view, input->label_sets[l]);
	}
	assert_memory_equal(rows, merged->rows_of_node, view.nodes_count * sizeof(*rows));
	for (uint32_t s = 0; s < view.series_count; s++)
		assert_true(series[s]);
	free(rows);
	free(series);
}

/* A subtree is an interval of ids, every leaf has rows, series ascend. */
static void check_order(const struct dictionary *merged)
{
	struct tables_view view = merged->view;

	for (uint32_t n = 1; n < view.nodes_count; n++) {
		uint32_t up = n - 1;
		bool leaf = n + 1 == view.nodes_count || view.nodes[n + 1].parent != n;

		while (up != view.nodes[n].parent && up)
			up = view.nodes[up]
				     .parent; /* the parent is an ancestor of the node before */
		assert_int_equal(up, view.nodes[n].parent);
		if (leaf)
			assert_true(merged->rows_of_node[n] > 0);
	}
	for (uint32_t s = 1; s < view.series_count; s++)
		assert_true(dictionary_label_set_order(&view, view.series[s - 1].label_set,
						       view.series[s].label_set) < 0);
}

static int merge_world(struct world *world, struct dictionary *ret, struct err *err)
{
	struct dictionary_merge *merge = dictionary_merge_new();

	for (size_t i = 0; i < world->count; i++) {
		int rc = dictionary_merge_add(merge, &world->inputs[i], err);

		if (rc) {
			dictionary_merge_free(merge);
			return rc;
		}
	}
	dictionary_merge_finish(merge, ret);
	for (size_t i = 0; i < world->count; i++) {
		dictionary_map_nodes(ret, world->inputs[i].nodes, world->views[i].nodes_count);
		dictionary_map_series(ret, world->inputs[i].series, world->views[i].series_count);
	}
	return 0;
}

static void merged_dictionaries_hold_what_is_used_once(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct world world = { 0 };
		struct dictionary merged;
		struct tables_view view;
		struct err err;

		seed = round + 1;
		for (uint32_t i = 1 + dice(INPUTS_MAX); i--;)
			make_input(&world);
		print_message("# seed %u\n", round + 1);
		if (merge_world(&world, &merged, &err))
			fail_msg("%s", err.message);
		view = merged.view;
		check_maps(&world, &merged);
		check_order(&merged);
		check_distinct(put_stack, &view, view.nodes_count);
		check_distinct(put_series, &view, view.series_count);
		dictionary_free(&merged);
		free_world(&world);
	}
}

static void different_groups_are_refused(void **state)
{
	struct world world = { 0 };
	struct column column = { 0 };
	struct group group = { .column_count = 1, .period = 8 };
	struct dictionary merged;
	struct err err;

	(void)state;
	seed = 5;
	make_input(&world);
	make_input(&world);
	memset((void *)(uintptr_t)world.inputs[0].series_used, 1, world.views[0].series_count);
	free((void *)(uintptr_t)world.inputs[1].series_used);
	tables_series(&world.tables[1], 0, tables_group(&world.tables[1], &group, &column));
	world.views[1] = tables_view_of(&world.tables[1]);
	world.inputs[1].series_used = mem_new_array(uint8_t, world.views[1].series_count);
	memset((void *)(uintptr_t)world.inputs[1].series_used, 1, world.views[1].series_count);
	assert_int_equal(merge_world(&world, &merged, &err), -ERR_INVALID);
	assert_null(world.inputs[1].nodes);
	free_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merged_dictionaries_hold_what_is_used_once),
		cmocka_unit_test(different_groups_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
