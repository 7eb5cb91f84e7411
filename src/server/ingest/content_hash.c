/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/content_hash.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"

void content_hash_free(struct content_hash *hash)
{
	free(hash->strings.data);
	free(hash->frames.data);
	free(hash->nodes.data);
	free(hash->label_sets.data);
	*hash = (struct content_hash){ 0 };
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

/* Room for all elements of a table; there is no limit but the table's own. */
#define REACH(column, elements)                                                                    \
	do {                                                                                       \
		if ((elements) > (column)->count) {                                                \
			bool ok_ = COLUMN_ROOM(column, (elements) - (column)->count, SIZE_MAX);    \
			assert(ok_);                                                               \
		}                                                                                  \
	} while (0)

void content_hash_update(struct content_hash *hash, const struct tables *tables)
{
	struct tables_view view = tables_view_of(tables);

	hash->view = view;
	REACH(&hash->strings, view.strings_count);
	for (size_t i = hash->strings.count; i < view.strings_count; i++) {
		struct slice text = tables_text(&view, (uint32_t)i);

		hash->strings.data[hash->strings.count++] = hash_stable(text.data, text.len, 0);
	}
	REACH(&hash->frames, view.frames_count);
	for (size_t i = hash->frames.count; i < view.frames_count; i++)
		hash->frames.data[hash->frames.count++] = frame_hash(hash, &view.frames[i]);
	REACH(&hash->nodes, view.nodes_count);
	for (size_t i = hash->nodes.count; i < view.nodes_count; i++) {
		const struct node *node = &view.nodes[i];
		uint64_t words[2] = { 0 };

		if (i) { /* parents come before their children */
			words[0] = hash->nodes.data[node->parent];
			words[1] = hash->frames.data[node->frame];
		}
		hash->nodes.data[hash->nodes.count++] = hash_words(1, words, 2);
	}
	REACH(&hash->label_sets, view.label_sets_count);
	for (size_t i = hash->label_sets.count; i < view.label_sets_count; i++)
		hash->label_sets.data[hash->label_sets.count++] =
			label_set_hash(hash, &view.label_sets[i]);
}

uint64_t content_hash_row(const struct content_hash *hash, uint64_t seed, const struct row *row,
			  const int64_t *values, uint32_t columns)
{
	const uint64_t words[] = { hash->nodes.data[row->stack],
				   hash->label_sets.data[row->label_set] };

	seed = hash_words(seed, words, 2);
	return hash_stable(values, columns * sizeof(*values), seed);
}
