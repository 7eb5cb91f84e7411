/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/speedscope.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/json_read.h"

#define VALUE_MAX 9e18
#define LOOK_BYTES 4096
#define SCHEMA "speedscope.app/file-format-schema.json"

struct reader {
	struct stack_builder *into;
	uint64_t *locations; /* by frame of the file */
	size_t locations_count;
	const char *unit; /* of the first profile */
	double scale;	  /* to nanoseconds, or 1 */
	struct err *err;
};

bool speedscope_is(struct slice text)
{
	size_t look = text.len < LOOK_BYTES ? text.len : LOOK_BYTES;

	if (!text.data || !text.len || text.data[0] != '{')
		return false;
	return memmem(text.data, look, SCHEMA, sizeof(SCHEMA) - 1) ||
	       memmem(text.data, text.len, "\"profiles\"", 10);
}

static int wrong(const struct reader *reader, const char *what)
{
	return err_set(reader->err, ERR_INVALID, "speedscope: %s", what);
}

static int read_frames(struct reader *reader, const json_t *frames)
{
	size_t count = json_array_size(frames);

	if (!json_is_array(frames))
		return wrong(reader, "shared.frames is not an array");
	reader->locations = mem_new_array(uint64_t, count + 1);
	reader->locations_count = count;
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(frames, i);
		struct stack_builder_frame frame = {
			.name = json_text_at(item, "name"),
			.file = json_text_at(item, "file"),
			.line = json_integer_value(json_object_get(item, "line")),
		};

		if (!frame.name.len)
			frame.name = SLICE_LITERAL("(anonymous)");
		reader->locations[i] = stack_builder_location(reader->into, &frame);
	}
	return 0;
}

static int begin_unit(struct reader *reader, const char *unit)
{
	static const struct {
		const char *name;
		double ns;
	} times[] = { { "nanoseconds", 1 },
		      { "microseconds", 1e3 },
		      { "milliseconds", 1e6 },
		      { "seconds", 1e9 } };

	if (!unit)
		return wrong(reader, "a profile has no unit");
	if (reader->unit)
		return strcmp(unit, reader->unit) == 0
			       ? 0
			       : wrong(reader, "its profiles have different units");
	reader->unit = unit;
	reader->scale = 1;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (strcmp(unit, times[i].name) != 0)
			continue;
		reader->scale = times[i].ns;
		stack_builder_type(reader->into, "cpu", "nanoseconds");
		return 0;
	}
	if (!strcmp(unit, "bytes"))
		stack_builder_type(reader->into, "space", "bytes");
	else
		stack_builder_type(reader->into, "samples", "count");
	return 0;
}

static bool value_of(const struct reader *reader, double weight, int64_t *ret)
{
	double value = weight * reader->scale;

	if (!(value >= 0 && value < VALUE_MAX))
		return false;
	*ret = (int64_t)llround(value);
	return true;
}

static int push(struct reader *reader, const json_t *frame)
{
	json_int_t at = json_is_integer(frame) ? json_integer_value(frame) : -1;

	if (at < 0 || (size_t)at >= reader->locations_count)
		return wrong(reader, "a stack names a frame that is not there");
	stack_builder_push_id(reader->into, reader->locations[at]);
	return 0;
}

static int read_sampled(struct reader *reader, const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples");
	const json_t *weights = json_object_get(profile, "weights");
	size_t count = json_array_size(samples);
	int rc = 0;

	if (!json_is_array(samples) || json_array_size(weights) != count)
		return wrong(reader, "a profile has not as many weights as samples");
	for (size_t i = 0; !rc && i < count; i++) {
		const json_t *stack = json_array_get(samples, i);
		int64_t value;

		if (!value_of(reader, json_number_value(json_array_get(weights, i)), &value))
			return wrong(reader, "a weight is negative or too large");
		for (size_t at = 0; !rc && at < json_array_size(stack); at++)
			rc = push(reader, json_array_get(stack, at));
		if (!rc)
			stack_builder_sample(reader->into, true, &value);
	}
	return rc;
}

/* What passed since the last event was spent in the stack that was open. */
static int spend(struct reader *reader, const size_t *open, size_t depth, double time)
{
	int64_t value;

	if (!value_of(reader, time, &value))
		return wrong(reader, "events are not in the order of their times");
	if (!value || !depth)
		return 0;
	for (size_t i = 0; i < depth; i++)
		stack_builder_push_id(reader->into, reader->locations[open[i]]);
	stack_builder_sample(reader->into, true, &value);
	return 0;
}

static int read_events(struct reader *reader, const json_t *events, double at, size_t *open)
{
	size_t depth = 0;

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);
		struct slice type = json_text_at(event, "type");
		double now = json_number_value(json_object_get(event, "at"));
		json_int_t frame = json_integer_value(json_object_get(event, "frame"));

		if (frame < 0 || (size_t)frame >= reader->locations_count)
			return wrong(reader, "an event names a frame that is not there");
		if (spend(reader, open, depth, now - at))
			return -ERR_INVALID;
		at = now;
		if (slice_is(type, "O") && depth < STACK_BUILDER_DEPTH_MAX)
			open[depth++] = (size_t)frame;
		else if (slice_is(type, "C") && depth && open[depth - 1] == (size_t)frame)
			depth--;
		else
			return wrong(reader, "events do not nest");
	}
	return 0;
}

static int read_evented(struct reader *reader, const json_t *profile)
{
	size_t *open = mem_new_array(size_t, STACK_BUILDER_DEPTH_MAX);
	int rc = read_events(reader, json_object_get(profile, "events"),
			     json_number_value(json_object_get(profile, "startValue")), open);

	free(open);
	return rc;
}

static int read_profiles(struct reader *reader, const json_t *profiles)
{
	size_t count = json_array_size(profiles);
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		const json_t *profile = json_array_get(profiles, i);
		struct slice type = json_text_at(profile, "type");

		rc = begin_unit(reader, json_string_value(json_object_get(profile, "unit")));
		if (!rc && slice_is(type, "sampled"))
			rc = read_sampled(reader, profile);
		else if (!rc && slice_is(type, "evented"))
			rc = read_evented(reader, profile);
		else if (!rc)
			rc = wrong(reader, "a profile is neither sampled nor evented");
	}
	return rc;
}

int speedscope_decode(struct slice text, struct stack_builder *into, struct err *err)
{
	struct reader reader = { .into = into, .err = err };
	struct json_read read;
	int rc = json_read(text, JSON_REJECT_DUPLICATES, "speedscope", into->budget, &read, err);

	if (!rc)
		rc = read_frames(&reader,
				 json_object_get(json_object_get(read.root, "shared"), "frames"));
	if (!rc)
		rc = read_profiles(&reader, json_object_get(read.root, "profiles"));
	if (!rc)
		rc = stack_builder_check(into, "speedscope", err);
	free(reader.locations);
	json_read_free(&read);
	return rc;
}
