/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_dictionary_encode.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "server/persist/part/part_popularity.h"

#define NONE UINT32_MAX
#define STREAM_BYTES_MIN                                                                           \
	((size_t)16 << 10) /* for a frame of its own; small ones help each other                   \
			    */

/* Numbers. */

static int text_order(const void *left, const void *right, void *context)
{
	const struct tables_view *view = context;

	return slice_compare(tables_text(view, *(const uint32_t *)left),
			     tables_text(view, *(const uint32_t *)right));
}

static void want(struct part_numbers *numbers, uint32_t string, uint32_t *list, uint32_t *count)
{
	if (numbers->strings[string] != NONE)
		return;
	numbers->strings[string] = 0; /* until they are sorted */
	list[(*count)++] = string;
}

static void number_label_strings(const struct tables_view *view, struct part_numbers *numbers)
{
	uint32_t *list = mem_new_array(uint32_t, view->strings_count), count = 0;

	for (uint32_t i = 0; i < view->labels_count; i++) {
		want(numbers, view->labels[i].name, list, &count);
		want(numbers, view->labels[i].value, list, &count);
		want(numbers, view->labels[i].unit, list, &count);
	}
	if (count)
		qsort_r(list, count, sizeof(*list), text_order, (void *)(uintptr_t)view);
	for (uint32_t i = 0; i < count; i++)
		numbers->strings[list[i]] = i + 1;
	assert(count < view->strings_count);
	numbers->label_strings_count = count + 1;
	free(list);
}

static uint32_t frame_text(const struct frame *frame, size_t field)
{
	uint32_t text;

	memcpy(&text, (const char *)frame + part_frame_texts[field], sizeof(text));
	return text;
}

/* Frames in the order in which nodes meet them first; those of no node last. */
static void number_frames(const struct tables_view *view, struct part_numbers *numbers)
{
	uint32_t count = 0;

	numbers->frames = mem_realloc(NULL, view->frames_count + 1ull, sizeof(uint32_t));
	numbers->frames_in_order = mem_new_array(uint32_t, view->frames_count);
	memset(numbers->frames, 0xff, view->frames_count * sizeof(uint32_t));
	for (uint32_t i = 1; i < view->nodes_count; i++) {
		uint32_t frame = view->nodes[i].frame;

		if (numbers->frames[frame] != NONE)
			continue;
		numbers->frames_in_order[count] = frame;
		numbers->frames[frame] = count++;
	}
	for (uint32_t i = 0; i < view->frames_count; i++) {
		if (numbers->frames[i] != NONE)
			continue;
		numbers->frames_in_order[count] = i;
		numbers->frames[i] = count++;
	}
	assert(count == view->frames_count);
}

static const struct frame *frame_at(const struct tables_view *view,
				    const struct part_numbers *numbers, uint32_t number)
{
	return &view->frames[numbers->frames_in_order[number]];
}

static void number_strings(const struct tables_view *view, struct part_numbers *numbers)
{
	numbers->strings = mem_realloc(NULL, view->strings_count, sizeof(uint32_t));
	memset(numbers->strings, 0xff, view->strings_count * sizeof(uint32_t));
	numbers->strings[0] = 0;
	number_label_strings(view, numbers);
	numbers->strings_count = numbers->label_strings_count;
	for (size_t field = 0; field < PART_FRAME_TEXTS; field++) {
		for (uint32_t i = 0; i < view->frames_count; i++) {
			uint32_t text = frame_text(frame_at(view, numbers, i), field);

			if (numbers->strings[text] == NONE)
				numbers->strings[text] = numbers->strings_count++;
		}
	}
	assert(numbers->strings_count <= view->strings_count);
}

/* Sets that no series has come first; a row may have one of a series besides. */
static void number_row_label_sets(const struct tables_view *view, struct part_numbers *numbers)
{
	numbers->row_label_sets = mem_new_array(uint32_t, view->label_sets_count);
	for (uint32_t i = 0; i < view->series_count; i++)
		numbers->row_label_sets[view->series[i].label_set] = NONE;
	numbers->row_label_sets[0] = NONE;
	for (uint32_t i = 1; i < view->label_sets_count; i++)
		if (numbers->row_label_sets[i] != NONE)
			numbers->row_label_sets[i] = ++numbers->row_label_sets_count;
	for (uint32_t i = 0; i < view->series_count; i++)
		numbers->row_label_sets[view->series[i].label_set] =
			numbers->row_label_sets_count + 1 + i;
	numbers->row_label_sets[0] = 0;
}

static void number_ranks(const struct part_dictionary *dictionary, struct part_numbers *numbers)
{
	uint32_t first[PART_CLASSES + 1] = { 0 }, nodes = dictionary->view->nodes_count;

	for (uint32_t i = 0; i < nodes; i++)
		first[part_class_of(dictionary->rows_of_node[i])]++;
	for (unsigned int class = PART_CLASSES; class -- > 1;) {
		uint32_t count = first[class];

		first[class] = numbers->ranks_count;
		numbers->ranks_count += count;
	}
	assert(numbers->ranks_count <= nodes);
	numbers->ranks = mem_realloc(NULL, nodes, sizeof(uint32_t));
	memset(numbers->ranks, 0xff, nodes * sizeof(uint32_t));
	for (uint32_t i = 0; i < nodes; i++)
		if (dictionary->rows_of_node[i])
			numbers->ranks[i] = first[part_class_of(dictionary->rows_of_node[i])]++;
}

void part_numbers_make(const struct part_dictionary *dictionary, struct part_numbers *ret)
{
	*ret = (struct part_numbers){ 0 };
	number_frames(dictionary->view, ret);
	number_strings(dictionary->view, ret);
	number_row_label_sets(dictionary->view, ret);
	number_ranks(dictionary, ret);
}

void part_numbers_free(struct part_numbers *numbers)
{
	free(numbers->strings);
	free(numbers->frames);
	free(numbers->frames_in_order);
	free(numbers->row_label_sets);
	free(numbers->ranks);
	*numbers = (struct part_numbers){ 0 };
}

/* Series and labels. */

/* Sorted strings as what they share with the one before, and the rest. */
static void encode_sorted_strings(const struct tables_view *view,
				  const struct part_numbers *numbers, struct strbuf *out)
{
	uint32_t *by_number = mem_new_array(uint32_t, numbers->label_strings_count);
	struct strbuf shared = { 0 }, lengths = { 0 }, rests = { 0 };
	struct slice previous = { 0 };

	for (uint32_t i = 0; i < view->strings_count; i++)
		if (numbers->strings[i] < numbers->label_strings_count)
			by_number[numbers->strings[i]] = i;
	strbuf_add_varint(out, numbers->label_strings_count - 1);
	for (uint32_t i = 1; i < numbers->label_strings_count; i++) {
		struct slice text = tables_text(view, by_number[i]);
		size_t same = 0;

		while (same < text.len && same < previous.len &&
		       text.data[same] == previous.data[same])
			same++;
		strbuf_add_varint(&shared, same);
		strbuf_add_varint(&lengths, text.len - same);
		strbuf_add_slice(&rests, slice_tail(text, same));
		previous = text;
	}
	strbuf_add_slice(out, strbuf_slice(&shared));
	strbuf_add_slice(out, strbuf_slice(&lengths));
	strbuf_add_slice(out, strbuf_slice(&rests));
	strbuf_free(&shared);
	strbuf_free(&lengths);
	strbuf_free(&rests);
	free(by_number);
}

/* The labels of series as columns: per name, a value (0: none) for each series. */
struct label_columns {
	uint32_t *column_of; /* by string number; NONE */
	uint32_t *names;     /* by column: string numbers, ascending */
	uint32_t *values;    /* column * series + series: string number + 1 */
	uint32_t count;
};

static int number_order(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static void gather_names(const struct tables_view *view, const struct part_numbers *numbers,
			 struct label_columns *columns)
{
	columns->column_of = mem_realloc(NULL, numbers->label_strings_count, sizeof(uint32_t));
	memset(columns->column_of, 0xff, numbers->label_strings_count * sizeof(uint32_t));
	columns->names = mem_new_array(uint32_t, numbers->label_strings_count);
	for (uint32_t i = 0; i < view->series_count; i++) {
		const struct label_set *set = &view->label_sets[view->series[i].label_set];

		for (uint32_t j = 0; j < set->label_count; j++) {
			uint32_t name = numbers->strings[view->labels[set->label_first + j].name];

			if (columns->column_of[name] != NONE)
				continue;
			columns->column_of[name] = 0;
			columns->names[columns->count++] = name;
		}
	}
	qsort(columns->names, columns->count, sizeof(uint32_t), number_order);
	for (uint32_t i = 0; i < columns->count; i++)
		columns->column_of[columns->names[i]] = i;
}

static void gather_values(const struct tables_view *view, const struct part_numbers *numbers,
			  struct label_columns *columns)
{
	columns->values =
		mem_calloc((size_t)columns->count * view->series_count + 1, sizeof(uint32_t));
	for (uint32_t i = 0; i < view->series_count; i++) {
		const struct label_set *set = &view->label_sets[view->series[i].label_set];

		for (uint32_t j = 0; j < set->label_count; j++) {
			const struct label *label = &view->labels[set->label_first + j];
			uint32_t column = columns->column_of[numbers->strings[label->name]];

			columns->values[(size_t)column * view->series_count + i] =
				numbers->strings[label->value] + 1;
		}
	}
}

/* Its distinct values, ascending; then each series' place among them. */
static void encode_label_column(const uint32_t *values, uint32_t series_count,
				uint32_t strings_count, struct strbuf *out)
{
	uint32_t *places = mem_new_array(uint32_t, (size_t)strings_count + 1);
	uint32_t count = 0, previous = 0;

	for (uint32_t i = 0; i < series_count; i++)
		places[values[i]] = 1;
	places[0] = 0;
	for (uint32_t i = 1; i <= strings_count; i++)
		if (places[i])
			places[i] = ++count;
	strbuf_add_varint(out, count);
	for (uint32_t i = 1; i <= strings_count; i++) {
		if (!places[i])
			continue;
		strbuf_add_varint(out, i - 1 - previous);
		previous = i - 1;
	}
	for (uint32_t i = 0; i < series_count; i++)
		strbuf_add_varint(out, places[values[i]]);
	free(places);
}

static void encode_label_columns(const struct tables_view *view, const struct part_numbers *numbers,
				 struct part_chunk_builder *out)
{
	struct label_columns columns = { 0 };
	uint32_t previous = 0;

	gather_names(view, numbers, &columns);
	gather_values(view, numbers, &columns);
	strbuf_add_varint(&out->raw, columns.count);
	for (uint32_t i = 0; i < columns.count; i++) {
		strbuf_add_varint(&out->raw, columns.names[i] - previous);
		previous = columns.names[i];
		encode_label_column(&columns.values[(size_t)i * view->series_count],
				    view->series_count, numbers->label_strings_count, &out->raw);
		part_chunk_cut(out, STREAM_BYTES_MIN);
	}
	free(columns.column_of);
	free(columns.names);
	free(columns.values);
}

static void encode_row_label_sets(const struct tables_view *view,
				  const struct part_numbers *numbers, struct strbuf *out)
{
	for (uint32_t i = 1; i < view->label_sets_count; i++) {
		const struct label_set *set = &view->label_sets[i];

		if (numbers->row_label_sets[i] > numbers->row_label_sets_count)
			continue; /* a series' */
		strbuf_add_varint(out, set->label_count);
		for (uint32_t j = 0; j < set->label_count; j++) {
			const struct label *label = &view->labels[set->label_first + j];

			strbuf_add_varint(out, (uint64_t)numbers->strings[label->name] << 1 |
						       label->numeric);
			if (label->numeric) {
				strbuf_add_varint(out, numbers->strings[label->unit]);
				strbuf_add_zigzag(out, label->number);
			} else {
				strbuf_add_varint(out, numbers->strings[label->value]);
			}
		}
	}
}

/* Frames. */

static void encode_strings(const struct tables_view *view, const struct part_numbers *numbers,
			   struct part_chunk_builder *out)
{
	uint32_t count = numbers->strings_count - numbers->label_strings_count;
	uint32_t *by_number = mem_new_array(uint32_t, count);

	for (uint32_t i = 0; i < view->strings_count; i++)
		if (numbers->strings[i] != NONE &&
		    numbers->strings[i] >= numbers->label_strings_count)
			by_number[numbers->strings[i] - numbers->label_strings_count] = i;
	for (uint32_t i = 0; i < count; i++)
		strbuf_add_varint(&out->raw, view->strings[by_number[i]].len);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	for (uint32_t i = 0; i < count; i++)
		strbuf_add_slice(&out->raw, tables_text(view, by_number[i]));
	part_chunk_cut(out, STREAM_BYTES_MIN);
	free(by_number);
}

static void encode_text_field(const struct tables_view *view, const struct part_numbers *numbers,
			      size_t field, uint32_t *newest, struct strbuf *out)
{
	uint32_t previous = 0;

	for (uint32_t i = 0; i < view->frames_count; i++) {
		uint32_t text = numbers->strings[frame_text(frame_at(view, numbers, i), field)];

		if (text == previous)
			strbuf_add_byte(out, PART_TEXT_SAME);
		else if (text == *newest + 1)
			strbuf_add_byte(out, PART_TEXT_NEW);
		else if (!text)
			strbuf_add_byte(out, PART_TEXT_NONE);
		else
			strbuf_add_varint(out, PART_TEXT_BACK + (*newest - text));
		if (text > *newest)
			*newest = text;
		previous = text;
	}
}

/* A number as the difference from the newest of the frames with the same text in some field. */
static void encode_by_text(const struct tables_view *view, const struct part_numbers *numbers,
			   size_t field, uint64_t (*number_of)(const struct frame *frame),
			   struct strbuf *out)
{
	uint64_t *newest = mem_new_array(uint64_t, numbers->strings_count);

	for (uint32_t i = 0; i < view->frames_count; i++) {
		const struct frame *frame = frame_at(view, numbers, i);
		uint64_t *last = &newest[numbers->strings[frame_text(frame, field)]];

		strbuf_add_zigzag(out, (int64_t)(number_of(frame) - *last));
		*last = number_of(frame);
	}
	free(newest);
}

static uint64_t address_of(const struct frame *frame)
{
	return frame->address;
}

static uint64_t line_of(const struct frame *frame)
{
	return frame->line;
}

static uint64_t column_of(const struct frame *frame)
{
	return frame->column;
}

static uint64_t start_line_of(const struct frame *frame)
{
	return frame->start_line;
}

static void encode_frames(const struct tables_view *view, const struct part_numbers *numbers,
			  struct part_chunk_builder *out)
{
	static const struct {
		uint64_t (*number_of)(const struct frame *frame);
		enum { BY_BINARY = 0, BY_FUNCTION = 2 } field; /* of part_frame_texts */
	} fields[] = {
		{ address_of, BY_BINARY },
		{ line_of, BY_FUNCTION },
		{ column_of, BY_FUNCTION },
		{ start_line_of, BY_FUNCTION },
	};
	uint32_t newest = numbers->label_strings_count - 1;

	for (uint32_t i = 0; i < view->frames_count; i++)
		strbuf_add_varint(&out->raw, frame_at(view, numbers, i)->kind);
	for (uint32_t i = 0; i < view->frames_count; i++)
		strbuf_add_varint(&out->raw, frame_at(view, numbers, i)->flags);
	for (size_t field = 0; field < PART_FRAME_TEXTS; field++) {
		encode_text_field(view, numbers, field, &newest, &out->raw);
		part_chunk_cut(out, STREAM_BYTES_MIN);
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		encode_by_text(view, numbers, fields[i].field, fields[i].number_of, &out->raw);
		part_chunk_cut(out, STREAM_BYTES_MIN);
	}
}

/* Nodes. */

/* Pairs (frame of the parent, frame) seen so far; the caller's frame for the root is `frames`. */
struct calls {
	struct call {
		uint32_t caller, frame, place; /* among the callees of the caller */
	} * items;
	uint32_t count, capacity;
	uint32_t *callees; /* by caller */
	struct idmap map;
};

static bool call_equal(const void *context, uint32_t id, const void *key)
{
	const struct calls *calls = context;
	const struct call *call = key;

	return calls->items[id].caller == call->caller && calls->items[id].frame == call->frame;
}

/* The place among the caller's callees + 1; 0 when the pair is new. */
static uint32_t find_call(struct calls *calls, uint32_t caller, uint32_t frame)
{
	struct call call = { caller, frame, calls->callees[caller] };
	uint64_t hash = hash_pair((uint64_t)caller << 32 | frame, 0);
	uint32_t id = idmap_find(&calls->map, hash, call_equal, calls, &call);

	if (id != IDMAP_NONE)
		return calls->items[id].place + 1;
	mem_grow(calls->items, calls->count, calls->capacity);
	calls->items[calls->count] = call;
	idmap_add(&calls->map, hash, calls->count++);
	calls->callees[caller]++;
	return 0;
}

/* What is known of the frames of nodes. */
struct stack_frames {
	struct strbuf places[PART_PLACE_LISTS];
	struct strbuf others;
};

/*
 * Frames that were called from there before, by their place; of others 0, unless elder siblings
 * have all that were. In a list of their own, others are 0 for the next frame that was never met,
 * or how popular it is.
 */
static void find_stack_frames(const struct tables_view *view, const uint32_t *numbers,
			      struct stack_frames *ret)
{
	struct calls calls = { .callees = mem_new_array(uint32_t, (size_t)view->frames_count + 1) };
	struct part_popularity popularity = part_popularity_new(view->frames_count);
	uint32_t *children = mem_new_array(uint32_t, view->nodes_count);

	for (uint32_t i = 1; i < view->nodes_count; i++) {
		uint32_t parent = view->nodes[i].parent, frame = numbers[view->nodes[i].frame];
		uint32_t caller = parent ? numbers[view->nodes[parent].frame] : view->frames_count;
		uint32_t callees = calls.callees[caller], elder = children[parent]++;
		uint32_t place = find_call(&calls, caller, frame);

		if (place && callees <= elder) { /* a child twice: as if it were called anew */
			calls.callees[caller]++;
			place = 0;
		}
		if (callees > elder)
			strbuf_add_varint(&ret->places[part_place_list(callees)], place);
		if (place)
			continue;
		strbuf_add_varint(&ret->others,
				  frame < popularity.count ? popularity.places[frame] + 1 : 0);
		part_popularity_meet(&popularity, frame);
	}
	assert(popularity.count <= view->frames_count);
	free(calls.items);
	free(calls.callees);
	free(children);
	idmap_free(&calls.map);
	part_popularity_free(&popularity);
}

static void encode_stack_frames(const struct tables_view *view, const uint32_t *numbers,
				struct part_chunk_builder *out)
{
	struct stack_frames frames = { 0 };

	find_stack_frames(view, numbers, &frames);
	for (size_t i = 0; i < PART_PLACE_LISTS; i++)
		strbuf_add_varint(&out->raw, frames.places[i].len);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	for (size_t i = 0; i < PART_PLACE_LISTS; i++) {
		strbuf_add_slice(&out->raw, strbuf_slice(&frames.places[i]));
		part_chunk_cut(out, STREAM_BYTES_MIN);
		strbuf_free(&frames.places[i]);
	}
	strbuf_add_slice(&out->raw, strbuf_slice(&frames.others));
	part_chunk_cut(out, STREAM_BYTES_MIN);
	strbuf_free(&frames.others);
}

/*
 * A walk through the trie: down to a leaf, up to where the next path branches off, down again. It
 * writes the number of nodes of each path and, for each path but the first, how far up it branches
 * off, minus 1.
 */
static void encode_paths(const struct tables_view *view, struct part_chunk_builder *out)
{
	struct strbuf ups = { 0 }, downs = { 0 };
	uint32_t down = 0, paths = 1;

	for (uint32_t i = 1; i < view->nodes_count; i++) {
		uint32_t at = i - 1, up = 0;

		while (at != view->nodes[i].parent) {
			assert(at && "nodes are depth-first");
			at = view->nodes[at].parent;
			up++;
		}
		if (up) {
			strbuf_add_varint(&downs, down);
			strbuf_add_varint(&ups, up - 1);
			paths++;
			down = 0;
		}
		down++;
	}
	strbuf_add_varint(&downs, down);
	strbuf_add_varint(&out->raw, paths);
	strbuf_add_slice(&out->raw, strbuf_slice(&downs));
	part_chunk_cut(out, STREAM_BYTES_MIN);
	strbuf_add_slice(&out->raw, strbuf_slice(&ups));
	part_chunk_cut(out, STREAM_BYTES_MIN);
	strbuf_free(&ups);
	strbuf_free(&downs);
}

static void encode_classes(const struct part_dictionary *dictionary, bool leaves,
			   struct strbuf *out)
{
	const struct tables_view *view = dictionary->view;

	for (uint32_t i = 0; i < view->nodes_count; i++) {
		bool leaf = i + 1 == view->nodes_count || view->nodes[i + 1].parent != i;

		if (leaf == leaves)
			strbuf_add_byte(out, (char)part_class_of(dictionary->rows_of_node[i]));
	}
}

static void encode_nodes(const struct part_dictionary *dictionary,
			 const struct part_numbers *numbers, struct part_chunk_builder *out)
{
	encode_paths(dictionary->view, out);
	encode_stack_frames(dictionary->view, numbers->frames, out);
	encode_classes(dictionary, true, &out->raw);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	encode_classes(dictionary, false, &out->raw);
	part_chunk_cut(out, STREAM_BYTES_MIN);
}

void part_dictionary_encode(const struct part_dictionary *dictionary,
			    const struct part_numbers *numbers, struct part_chunk_builder *builders)
{
	const struct tables_view *view = dictionary->view;
	struct part_chunk_builder *series = &builders[PART_SECTION_SERIES];

	encode_sorted_strings(view, numbers, &series->raw);
	part_chunk_cut(series, STREAM_BYTES_MIN);
	encode_label_columns(view, numbers, series);
	encode_row_label_sets(view, numbers, &series->raw);
	encode_strings(view, numbers, &builders[PART_SECTION_STRINGS]);
	encode_frames(view, numbers, &builders[PART_SECTION_FRAMES]);
	encode_nodes(dictionary, numbers, &builders[PART_SECTION_NODES]);
}
