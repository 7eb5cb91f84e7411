/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/content_hash.h"

#include <stdlib.h>

#include "base/budget.h"
#include "base/hash.h"

void content_hash_free(struct content_hash *hash)
{
	COLUMN_FREE(&hash->strings, hash->budget);
	COLUMN_FREE(&hash->frames, hash->budget);
	COLUMN_FREE(&hash->nodes, hash->budget);
	COLUMN_FREE(&hash->label_sets, hash->budget);
}

void content_hash_begin(struct content_hash *hash)
{
	hash->strings.count = hash->frames.count = hash->nodes.count = hash->label_sets.count = 0;
}

static uint64_t hash_words(uint64_t seed, const uint64_t *words, size_t count)
{
	return hash_stable(words, count * sizeof(*words), seed);
}

static uint64_t frame_hash(const struct content_hash *hash, const struct frame *frame)
{
	const uint64_t *strings = hash->strings.data;
	const uint64_t words[] = {
		frame->kind,
		frame->flags,
		frame->address,
		strings[frame->mapping_file],
		strings[frame->build_id],
		strings[frame->function],
		strings[frame->system_name],
		strings[frame->file],
		frame->line,
		frame->column,
		frame->start_line,
	};

	return hash_words(0, words, sizeof(words) / sizeof(words[0]));
}

/* Labels of a set are sorted by their text, so the order is the same in every table. */
static uint64_t label_set_hash(const struct content_hash *hash, const struct label_set *set)
{
	uint64_t sum = set->label_count;

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &hash->view.labels[set->label_first + i];
		const uint64_t words[] = {
			hash->strings.data[label->name], hash->strings.data[label->value],
			hash->strings.data[label->unit], label->numeric,
			(uint64_t)label->number,
		};

		sum = hash_words(sum, words, sizeof(words) / sizeof(words[0]));
	}
	return sum;
}

/* Whether there is room for all elements of a table. */
#define REACHES(hash, column, elements)                                                            \
	((elements) <= (column)->count ||                                                          \
	 COLUMN_ROOM_PAID(column, (hash)->budget, (elements) - (column)->count, SIZE_MAX))

static void add_node(struct content_hash *hash, size_t id)
{
	const struct node *node = &hash->view.nodes[id];
	uint64_t words[2] = { 0 };

	if (id) { /* parents come before their children */
		words[0] = hash->nodes.data[node->parent];
		words[1] = hash->frames.data[node->frame];
	}
	hash->nodes.data[hash->nodes.count++] = hash_words(1, words, 2);
}

bool content_hash_update(struct content_hash *hash, const struct tables *tables)
{
	struct tables_view view = tables_view_of(tables);

	hash->view = view;
	if (!REACHES(hash, &hash->strings, view.strings_count) ||
	    !REACHES(hash, &hash->frames, view.frames_count) ||
	    !REACHES(hash, &hash->nodes, view.nodes_count) ||
	    !REACHES(hash, &hash->label_sets, view.label_sets_count))
		return false;
	for (size_t i = hash->strings.count; i < view.strings_count; i++) {
		struct slice text = tables_text(&view, (uint32_t)i);

		hash->strings.data[hash->strings.count++] = hash_stable(text.data, text.len, 0);
	}
	for (size_t i = hash->frames.count; i < view.frames_count; i++)
		hash->frames.data[hash->frames.count++] = frame_hash(hash, &view.frames[i]);
	for (size_t i = hash->nodes.count; i < view.nodes_count; i++)
		add_node(hash, i);
	for (size_t i = hash->label_sets.count; i < view.label_sets_count; i++)
		hash->label_sets.data[hash->label_sets.count++] =
			label_set_hash(hash, &view.label_sets[i]);
	return true;
}

uint64_t content_hash_row(const struct content_hash *hash, uint64_t seed, const struct row *row,
			  const int64_t *values, uint32_t columns)
{
	const uint64_t words[] = { hash->nodes.data[row->stack],
				   hash->label_sets.data[row->label_set] };

	seed = hash_words(seed, words, 2);
	return hash_stable(values, columns * sizeof(*values), seed);
}
