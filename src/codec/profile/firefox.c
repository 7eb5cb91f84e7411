/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/firefox.h"

#include <math.h>

#include "codec/wire/json_read.h"

#define VALUE_MAX 9e18
#define NOT_THERE SIZE_MAX

/* What weights are. */
static const struct unit {
	const char *name; /* in the file */
	const char *type, *unit;
	double scale;
} units[] = {
	{ "samples", "samples", "count", 1 },
	{ "bytes", "space", "bytes", 1 },
	{ "tracing-ms", "wall", "nanoseconds", 1e6 },
};

struct reader {
	struct stack_builder *into;
	const json_t *shared; /* tables that a thread lacks; may be NULL */
	const json_t *thread;
	const json_t *frame_stack, *prefix; /* of the stack table */
	const json_t *frame_func, *frame_line;
	const json_t *func_name, *func_file, *func_source, *source_file;
	const json_t *strings;
	const struct unit *unit; /* of all threads; NULL = not known yet */
	struct err *err;
};

bool firefox_is(struct slice text)
{
	return text.data && text.len && text.data[0] == '{' &&
	       memmem(text.data, text.len, "\"threads\"", 9) &&
	       memmem(text.data, text.len, "\"stackTable\"", 12);
}

static int wrong(const struct reader *reader, const char *what)
{
	return err_set(reader->err, ERR_INVALID, "Firefox profile: %s", what);
}

static const json_t *table(const struct reader *reader, const char *name)
{
	const json_t *own = json_object_get(reader->thread, name);

	return own ? own : json_object_get(reader->shared, name);
}

/* An index of a column, NOT_THERE for null and for what is none. */
static size_t index_at(const json_t *column, size_t at)
{
	const json_t *item = json_array_get(column, at);

	if (!json_is_integer(item) || json_integer_value(item) < 0)
		return NOT_THERE;
	return (size_t)json_integer_value(item);
}

static struct slice text_at(const struct reader *reader, size_t at)
{
	return json_text_of(at == NOT_THERE ? NULL : json_array_get(reader->strings, at));
}

static void push(struct reader *reader, size_t number)
{
	size_t func = index_at(reader->frame_func, number);
	size_t source = func == NOT_THERE ? func : index_at(reader->func_source, func);
	struct stack_builder_frame frame = { 0 };

	if (func != NOT_THERE) {
		frame.name = text_at(reader, index_at(reader->func_name, func));
		frame.file = text_at(reader, index_at(reader->func_file, func));
	}
	if (source != NOT_THERE && !frame.file.len)
		frame.file = text_at(reader, index_at(reader->source_file, source));
	frame.line = json_integer_value(json_array_get(reader->frame_line, number));
	if (frame.line < 0)
		frame.line = 0;
	if (!frame.name.len)
		frame.name = SLICE_LITERAL("(anonymous)");
	stack_builder_push(reader->into, &frame);
}

/* Leaf first, as deep as stacks are kept. Stacks come after their prefixes: no way leads back. */
static int push_stack(struct reader *reader, size_t stack)
{
	for (size_t depth = 0; stack != NOT_THERE && depth < STACK_BUILDER_DEPTH_MAX; depth++) {
		size_t frame = index_at(reader->frame_stack, stack);
		size_t prefix = index_at(reader->prefix, stack);

		if (frame == NOT_THERE || frame >= json_array_size(reader->frame_func))
			return wrong(reader, "a stack names a frame that is not there");
		if (prefix != NOT_THERE && prefix >= stack)
			return wrong(reader, "a stack's prefix comes after it");
		push(reader, frame);
		stack = prefix;
	}
	return 0;
}

static const struct unit *unit_of(const json_t *samples)
{
	const char *name = json_string_value(json_object_get(samples, "weightType"));

	for (size_t i = 0; name && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(name, units[i].name))
			return &units[i];
	return &units[0];
}

static int begin_type(struct reader *reader, const json_t *samples)
{
	const struct unit *unit = unit_of(samples);

	if (reader->unit && reader->unit != unit)
		return wrong(reader, "threads have different units");
	if (!reader->unit)
		stack_builder_type(reader->into, unit->type, unit->unit);
	reader->unit = unit;
	return 0;
}

static int read_samples(struct reader *reader)
{
	const json_t *samples = json_object_get(reader->thread, "samples");
	const json_t *stacks = json_object_get(samples, "stack");
	const json_t *weights = json_object_get(samples, "weight");
	const char *name = json_string_value(json_object_get(reader->thread, "name"));
	int rc = begin_type(reader, samples);

	for (size_t i = 0; !rc && !reader->into->full && i < json_array_size(stacks); i++) {
		size_t stack = index_at(stacks, i);
		double weight =
			json_is_array(weights) ? json_number_value(json_array_get(weights, i)) : 1;
		int64_t value;

		weight *= reader->unit->scale;
		if (!(fabs(weight) < VALUE_MAX))
			return wrong(reader, "a weight is too large");
		value = (int64_t)llround(weight);
		if (stack == NOT_THERE || value <= 0)
			continue; /* idle, or memory given back */
		rc = push_stack(reader, stack);
		if (rc)
			continue;
		stack_builder_sample(reader->into, false, &value);
		if (name)
			stack_builder_label(reader->into, "thread_name", slice_of(name));
	}
	return rc;
}

static int read_thread(struct reader *reader)
{
	const json_t *stacks = table(reader, "stackTable"), *frames = table(reader, "frameTable");
	const json_t *functions = table(reader, "funcTable");

	reader->strings = table(reader, "stringArray");
	if (!json_is_object(stacks) || !json_is_object(frames) || !json_is_object(functions) ||
	    !json_is_array(reader->strings))
		return wrong(reader, "a thread has no tables of stacks, frames, functions and "
				     "strings; only the processed format is read");
	reader->frame_stack = json_object_get(stacks, "frame");
	reader->prefix = json_object_get(stacks, "prefix");
	reader->frame_func = json_object_get(frames, "func");
	reader->frame_line = json_object_get(frames, "line");
	reader->func_name = json_object_get(functions, "name");
	reader->func_file = json_object_get(functions, "fileName");
	reader->func_source = json_object_get(functions, "source");
	reader->source_file = json_object_get(table(reader, "sources"), "filename");
	return read_samples(reader);
}

int firefox_decode(struct slice text, struct stack_builder *into, struct err *err)
{
	struct reader reader = { .into = into, .err = err };
	json_error_t problem;
	json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &problem);
	const json_t *threads = json_object_get(root, "threads");
	int rc = 0;

	if (!root)
		return err_set(err, ERR_INVALID, "Firefox profile: %s at byte %d", problem.text,
			       problem.position);
	reader.shared = json_object_get(root, "shared");
	for (size_t i = 0; !rc && !into->full && i < json_array_size(threads); i++) {
		reader.thread = json_array_get(threads, i);
		rc = read_thread(&reader);
	}
	if (!rc)
		rc = stack_builder_check(into, "Firefox profile", err);
	json_decref(root);
	return rc;
}
