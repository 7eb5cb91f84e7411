/* SPDX-License-Identifier: Apache-2.0 */
/* The second helping of part_dictionary_decode.h. */
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"
#include "server/persist/part/decode/part_dictionary_decode.h"
#include "server/persist/part/part_popularity.h"
#include "server/persist/log/tables_check.h"

static int corrupt(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "stacks: %s", what);
}

static void *array(struct part_stacks_image *image, size_t count, size_t element_bytes)
{
	image->bytes += count * element_bytes;
	return mem_calloc(count ? count : 1, element_bytes);
}

/* Label sets, series and columns are those of the first helping. */
void part_stacks_free(struct part_stacks_image *image)
{
	free((void *)(uintptr_t)image->view.string_bytes);
	free((void *)(uintptr_t)image->view.strings);
	free((void *)(uintptr_t)image->view.frames);
	free((void *)(uintptr_t)image->view.nodes);
	free(image->node_of_rank);
	*image = (struct part_stacks_image){ 0 };
}

/* Behind the strings of the first helping. */
static int read_strings(struct slice bytes, const struct part_dictionary_shape *shape,
			const struct tables_view *series, struct part_stacks_image *image,
			struct err *err)
{
	struct byte_reader lengths = byte_reader_of(bytes), in = lengths;
	uint32_t count = shape->strings - shape->label_strings, first = series->strings_count;
	uint64_t total = series->string_bytes_count;
	struct string_ref *refs;
	char *to;

	if (count > bytes.len)
		return corrupt("more strings than bytes", err);
	for (uint32_t i = 0; i < count; i++)
		byte_reader_varint(&in);
	if (in.failed)
		return corrupt("lengths of strings end early", err);
	to = array(image, total + byte_reader_left(&in), 1);
	refs = array(image, (size_t)first + count, sizeof(*refs));
	image->view.string_bytes = to;
	image->view.strings = refs;
	memcpy(to, series->string_bytes, total);
	memcpy(refs, series->strings, first * sizeof(*refs));
	for (uint32_t i = 0; i < count; i++) {
		struct slice text = byte_reader_bytes(&in, byte_reader_varint32(&lengths));

		if (in.failed || lengths.failed)
			return corrupt("strings end early", err);
		memcpy(to + total, text.data, text.len);
		refs[first + i] = (struct string_ref){ total, (uint32_t)text.len };
		total += text.len;
	}
	image->view.string_bytes_count = total;
	image->view.strings_count = first + count;
	return byte_reader_left(&in) ? corrupt("too many strings", err) : 0;
}

/* Frames. */

/* Numbers of strings in the part are not yet ids: the type's lie in between. */
static void set_text(struct frame *frame, size_t field, uint32_t text)
{
	memcpy((char *)frame + part_frame_texts[field], &text, sizeof(text));
}

static uint32_t text_of(const struct frame *frame, size_t field)
{
	uint32_t text;

	memcpy(&text, (const char *)frame + part_frame_texts[field], sizeof(text));
	return text;
}

static int read_text_field(struct byte_reader *in, const struct part_dictionary_shape *shape,
			   size_t field, uint32_t *newest, struct frame *frames, struct err *err)
{
	uint32_t text = 0;

	for (uint32_t i = 0; i < shape->frames; i++) {
		uint64_t code = byte_reader_varint(in);

		if (code == PART_TEXT_NEW)
			text = *newest + 1;
		else if (code == PART_TEXT_NONE)
			text = 0;
		else if (code != PART_TEXT_SAME && code - PART_TEXT_BACK > *newest)
			return corrupt("a frame names a string before the first", err);
		else if (code != PART_TEXT_SAME)
			text = *newest - (uint32_t)(code - PART_TEXT_BACK);
		if (in->failed || text >= shape->strings)
			return corrupt("a frame names a string that is not there", err);
		if (text > *newest)
			*newest = text;
		set_text(&frames[i], field, text);
	}
	return 0;
}

typedef bool set_number_f(struct frame *frame, uint64_t number);

static bool set_address(struct frame *frame, uint64_t number)
{
	frame->address = number;
	return true;
}

static bool set_line(struct frame *frame, uint64_t number)
{
	frame->line = (uint32_t)number;
	return number <= UINT32_MAX;
}

static bool set_column(struct frame *frame, uint64_t number)
{
	frame->column = (uint32_t)number;
	return number <= UINT32_MAX;
}

static bool set_start_line(struct frame *frame, uint64_t number)
{
	frame->start_line = (uint32_t)number;
	return number <= UINT32_MAX;
}

static int read_by_text(struct byte_reader *in, const struct part_dictionary_shape *shape,
			size_t field, set_number_f *set, uint64_t *newest, struct frame *frames,
			struct err *err)
{
	memset(newest, 0, shape->strings * sizeof(*newest));
	for (uint32_t i = 0; i < shape->frames; i++) {
		uint64_t *last = &newest[text_of(&frames[i], field)];

		*last += (uint64_t)byte_reader_zigzag(in);
		if (!set(&frames[i], *last))
			return corrupt("a line number is too large", err);
	}
	return in->failed ? corrupt("frames end early", err) : 0;
}

static int read_numbers(struct byte_reader *in, const struct part_dictionary_shape *shape,
			struct frame *frames, struct err *err)
{
	static const struct {
		set_number_f *set;
		size_t field; /* of part_frame_texts: the binary, the function */
	} fields[] = {
		{ set_address, 0 }, { set_line, 2 }, { set_column, 2 }, { set_start_line, 2 }
	};
	uint64_t *newest = mem_new_array(uint64_t, shape->strings);
	int rc = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && !rc; i++)
		rc = read_by_text(in, shape, fields[i].field, fields[i].set, newest, frames, err);
	free(newest);
	return rc;
}

static int read_frames(struct slice bytes, const struct part_dictionary_shape *shape,
		       struct part_stacks_image *image, struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	uint32_t newest = shape->label_strings - 1;
	uint32_t shift = image->view.strings_count - shape->strings; /* the type's */
	struct frame *frames;
	int rc = 0;

	if (shape->frames > bytes.len)
		return corrupt("more frames than bytes", err);
	frames = array(image, shape->frames, sizeof(*frames));
	image->view.frames = frames;
	image->view.frames_count = shape->frames;
	for (uint32_t i = 0; i < shape->frames; i++)
		frames[i].kind = byte_reader_varint32(&in);
	for (uint32_t i = 0; i < shape->frames; i++)
		frames[i].flags = byte_reader_varint32(&in);
	for (size_t field = 0; field < PART_FRAME_TEXTS && !rc; field++)
		rc = read_text_field(&in, shape, field, &newest, frames, err);
	if (!rc)
		rc = read_numbers(&in, shape, frames, err);
	if (!rc && byte_reader_left(&in))
		rc = corrupt("bytes behind the frames", err);
	for (uint32_t i = 0; i < shape->frames; i++)
		for (size_t field = 0; field < PART_FRAME_TEXTS; field++)
			if (text_of(&frames[i], field) >= shape->label_strings)
				set_text(&frames[i], field, text_of(&frames[i], field) + shift);
	return rc;
}

/* Nodes. */

/* Adds the nodes of a path down from node `at`. */
static bool go_down(const struct part_dictionary_shape *shape, struct node *nodes, uint32_t *made,
		    uint32_t at, uint64_t down)
{
	if (down > shape->nodes - *made)
		return false;
	for (; down; down--) {
		nodes[*made].parent = at;
		at = (*made)++;
	}
	return true;
}

static int read_parents(struct byte_reader *in, const struct part_dictionary_shape *shape,
			struct node *nodes, struct err *err)
{
	uint64_t paths = byte_reader_varint(in);
	struct byte_reader downs = *in;
	uint32_t made = 1;

	if (!paths || paths > byte_reader_left(in))
		return corrupt("more paths than bytes", err);
	for (uint64_t i = 0; i < paths; i++)
		byte_reader_varint(in);
	for (uint64_t i = 0; i < paths; i++) {
		uint64_t up = i ? byte_reader_varint(in) + 1 : 0;
		uint32_t at = made - 1;

		for (; up && at; up--)
			at = nodes[at].parent;
		if (in->failed || up ||
		    !go_down(shape, nodes, &made, at, byte_reader_varint(&downs)))
			return corrupt("a path leads out of the trie", err);
	}
	return made != shape->nodes ? corrupt("nodes end early", err) : 0;
}

/* Frames that were called from each frame, in lists that move to the end when they are full. */
struct callees {
	struct callee_list {
		uint32_t first, count, capacity;
	} * lists; /* by caller; the last is the root's */
	uint32_t *frames;
	size_t frames_count, frames_capacity;
};

static void add_callee(struct callees *callees, uint32_t caller, uint32_t frame)
{
	struct callee_list *list = &callees->lists[caller];

	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity ? 2 * list->capacity : 2;

		if (callees->frames_count + capacity > callees->frames_capacity) {
			callees->frames_capacity = 2 * callees->frames_capacity + capacity;
			callees->frames = mem_realloc(callees->frames, callees->frames_capacity,
						      sizeof(uint32_t));
		}
		memcpy(callees->frames + callees->frames_count, callees->frames + list->first,
		       list->count * sizeof(uint32_t));
		list->first = (uint32_t)callees->frames_count;
		list->capacity = capacity;
		callees->frames_count += capacity;
	}
	callees->frames[list->first + list->count++] = frame;
}

/* The next frame of those that were not called from there before. */
static bool read_other(struct byte_reader *in, const struct part_dictionary_shape *shape,
		       struct part_popularity *popularity, uint32_t *ret)
{
	uint64_t code = byte_reader_varint(in);

	if (in->failed || code > popularity->count || (!code && popularity->count == shape->frames))
		return false;
	*ret = code ? popularity->frames[code - 1] : popularity->count;
	part_popularity_meet(popularity, *ret);
	return true;
}

/* Where the lists of places begin; `in` is behind them afterwards. */
static bool find_places(struct byte_reader *in, struct byte_reader lists[PART_PLACE_LISTS])
{
	uint64_t bytes[PART_PLACE_LISTS];

	for (size_t i = 0; i < PART_PLACE_LISTS; i++)
		bytes[i] = byte_reader_varint(in);
	for (size_t i = 0; i < PART_PLACE_LISTS; i++)
		lists[i] = byte_reader_of(byte_reader_bytes(in, bytes[i]));
	return !in->failed;
}

static bool are_read(const struct byte_reader lists[PART_PLACE_LISTS])
{
	for (size_t i = 0; i < PART_PLACE_LISTS; i++)
		if (lists[i].failed || byte_reader_left(&lists[i]))
			return false;
	return true;
}

/* `children` counts those of each node that were met; zeroed. */
static int read_stack_frames(struct byte_reader *in, const struct part_dictionary_shape *shape,
			     struct callees *callees, struct part_popularity *popularity,
			     uint32_t *children, struct node *nodes, struct err *err)
{
	struct byte_reader lists[PART_PLACE_LISTS];

	if (!find_places(in, lists))
		return corrupt("places of frames end early", err);
	for (uint32_t i = 1; i < shape->nodes; i++) {
		uint32_t parent = nodes[i].parent;
		uint32_t caller = parent ? nodes[parent].frame : shape->frames;
		uint32_t count = callees->lists[caller].count;
		uint64_t place = 0;

		if (count > children[parent]++)
			place = byte_reader_varint(&lists[part_place_list(count)]);
		if (place > count)
			return corrupt("a frame was not called from there before", err);
		if (place) {
			nodes[i].frame = callees->frames[callees->lists[caller].first + place - 1];
			continue;
		}
		if (!read_other(in, shape, popularity, &nodes[i].frame))
			return corrupt("a node names a frame that is not there", err);
		add_callee(callees, caller, nodes[i].frame);
	}
	return in->failed || !are_read(lists) ? corrupt("frames of nodes end early", err) : 0;
}

/* One byte per node: first those of the leaves, then the others'. */
static int read_classes(struct byte_reader *in, const struct part_dictionary_shape *shape,
			const struct node *nodes, uint8_t *classes, struct err *err)
{
	for (int leaves = 1; leaves >= 0; leaves--) {
		for (uint32_t i = 0; i < shape->nodes; i++) {
			bool leaf = i + 1 == shape->nodes || nodes[i + 1].parent != i;

			if (leaf == leaves)
				classes[i] = (uint8_t)byte_reader_fixed(in, 1);
		}
	}
	return in->failed ? corrupt("classes end early", err) : 0;
}

static int make_ranks(const struct part_dictionary_shape *shape, const uint8_t *classes,
		      struct part_stacks_image *image, struct err *err)
{
	uint32_t first[PART_CLASSES] = { 0 }, ranks = 0;

	for (uint32_t i = 0; i < shape->nodes; i++)
		first[classes[i]]++;
	for (unsigned int class = PART_CLASSES; class -- > 1;) {
		uint32_t count = first[class];

		first[class] = ranks;
		ranks += count;
	}
	if (ranks != shape->stacks)
		return corrupt("other stacks than the directory says", err);
	image->node_of_rank = array(image, ranks, sizeof(uint32_t));
	for (uint32_t i = 0; i < shape->nodes; i++)
		if (classes[i])
			image->node_of_rank[first[classes[i]]++] = i;
	return 0;
}

static int read_ranks(struct byte_reader *in, const struct part_dictionary_shape *shape,
		      struct part_stacks_image *image, struct err *err)
{
	uint8_t *classes = mem_new_array(uint8_t, shape->nodes);
	int rc = read_classes(in, shape, image->view.nodes, classes, err);

	if (!rc)
		rc = make_ranks(shape, classes, image, err);
	free(classes);
	return rc;
}

static int read_nodes(struct slice bytes, const struct part_dictionary_shape *shape,
		      struct part_stacks_image *image, struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	struct part_popularity popularity;
	struct callees callees = { 0 };
	uint32_t *children;
	struct node *nodes;
	int rc;

	if (!shape->nodes || shape->nodes > bytes.len)
		return corrupt("more nodes than bytes", err);
	nodes = array(image, shape->nodes, sizeof(*nodes));
	image->view.nodes = nodes;
	image->view.nodes_count = shape->nodes;
	callees.lists = mem_new_array(struct callee_list, (size_t)shape->frames + 1);
	/* So that there is something to move from and to, however little. */
	callees.frames_capacity = 2;
	callees.frames = mem_new_array(uint32_t, callees.frames_capacity);
	children = mem_new_array(uint32_t, shape->nodes);
	popularity = part_popularity_new(shape->frames);
	rc = read_parents(&in, shape, nodes, err);
	if (!rc)
		rc = read_stack_frames(&in, shape, &callees, &popularity, children, nodes, err);
	part_popularity_free(&popularity);
	free(callees.lists);
	free(callees.frames);
	free(children);
	if (!rc)
		rc = read_ranks(&in, shape, image, err);
	if (!rc && byte_reader_left(&in))
		rc = corrupt("bytes behind the nodes", err);
	return rc;
}

int part_stacks_decode(struct slice strings, struct slice frames, struct slice nodes,
		       const struct part_dictionary_shape *shape,
		       const struct part_series_image *series, struct part_stacks_image *ret,
		       struct err *err)
{
	struct part_stacks_image image = { .view = series->view };
	int rc;

	/* What is not made yet must not be freed as ours. */
	image.view.string_bytes = NULL;
	image.view.strings = NULL;
	image.view.nodes = NULL;
	rc = read_strings(strings, shape, &series->view, &image, err);
	if (!rc)
		rc = read_frames(frames, shape, &image, err);
	if (!rc)
		rc = read_nodes(nodes, shape, &image, err);
	if (!rc)
		rc = tables_check(&image.view, err);
	if (rc)
		part_stacks_free(&image);
	else
		*ret = image;
	return rc;
}
