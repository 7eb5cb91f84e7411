/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of series whose labels leave it to each row whether it counts, or in which group. */
#include "base/hash.h"

#include <assert.h>

#include "server/query/select/select.h"

struct select_row_group { /* the group of a (template, label set) pair */
	const struct select_segment *in;
	uint32_t template_id;
	uint32_t label_set;
	uint32_t group;
};

static bool row_group_same(const void *context, uint32_t id, const void *key)
{
	const struct selection *selection = context;
	const struct select_row_group *have = &selection->row_group_list[id], *want = key;

	return have->in == want->in && have->template_id == want->template_id &&
	       have->label_set == want->label_set;
}

/* Fills in what the template leaves to the row's labels. */
static uint32_t group_of_labels(struct selection *selection, const struct select_row_group *key)
{
	const struct query_params *params = selection->params;
	const struct tables_view *view = key->in->view;
	const struct label_set *set = &view->label_sets[key->label_set];
	struct groups_tuple tuple = selection->templates.list[key->template_id];
	char digits[MATCH_NUMBER_BYTES];

	assert(key->label_set < key->in->view->label_sets_count);
	assert(key->template_id < selection->templates.count);
	for (size_t i = 0; i < params->group_by_count; i++) {
		for (uint32_t at = 0; at < set->label_count; at++) {
			const struct label *label = &view->labels[set->label_first + at];

			if (!(tuple.from_rows >> i & 1) || tuple.values[i].len ||
			    !slice_equal(tables_text(view, label->name), params->group_by[i]))
				continue;
			tuple.values[i] = match_label_text(view, label, digits);
			if (label->numeric)
				tuple.values[i] =
					arena_copy(&selection->work->arena, tuple.values[i]);
		}
	}
	tuple.from_rows = 0;
	return groups_intern(&selection->groups, &tuple);
}

static int row_group(struct selection *selection, const struct select_row_group *wanted,
		     uint32_t *ret, struct err *err)
{
	struct select_row_group key = *wanted;
	uint64_t hash = hash_mix(hash_mix((uintptr_t)key.in, key.template_id), key.label_set);
	uint32_t id = idmap_find(&selection->row_group_map, hash, row_group_same, selection, &key);

	assert(selection->row_group_count <= selection->row_group_capacity);
	if (id == IDMAP_NONE) {
		key.group = group_of_labels(selection, &key);
		if (key.group == IDMAP_NONE ||
		    !WORK_GROW(&selection->work->arena, selection->row_group_list,
			       selection->row_group_count, selection->row_group_capacity))
			return work_over_budget(selection->work, err);
		id = (uint32_t)selection->row_group_count++;
		selection->row_group_list[id] = key;
		idmap_add(&selection->row_group_map, hash, id);
	}
	*ret = selection->row_group_list[id].group;
	return 0;
}

/* Rows of a report mostly come with few label sets: each remembers its last answer. */
static int remembered_group(struct selection *selection, struct select_segment *in,
			    uint32_t template_id, uint32_t label_set, uint32_t *ret,
			    struct err *err)
{
	const struct select_row_group wanted = { .in = in,
						 .template_id = template_id,
						 .label_set = label_set };
	struct select_row_labels *labels = in->row_labels ? &in->row_labels[label_set] : NULL;
	int rc;

	assert(label_set < in->view->label_sets_count);
	if (labels && labels->template_id == template_id + 1) {
		*ret = labels->group;
		return 0;
	}
	rc = row_group(selection, &wanted, ret, err);
	if (!rc && labels) {
		labels->template_id = template_id + 1;
		labels->group = *ret;
	}
	return rc;
}

int select_row(struct selection *selection, struct select_segment *in,
	       const struct select_series *series, uint32_t label_set, uint32_t *ret_group,
	       struct err *err)
{
	assert(label_set < in->view->label_sets_count);
	if (series->row_matchers) {
		struct match_result result = { 0 }; /* the empty set says nothing */
		uint64_t satisfied;

		if (in->row_labels)
			result = in->row_labels[label_set].result;
		satisfied = result.passes | (~result.present & in->match.passes_empty);

		if (series->row_matchers & ~satisfied) {
			*ret_group = SELECT_NONE;
			return 0;
		}
	}
	if (series->group != SELECT_NONE) {
		*ret_group = series->group;
		return 0;
	}
	return remembered_group(selection, in, series->template_id, label_set, ret_group, err);
}
