/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/folded.h"

#include <math.h>
#include <stdlib.h>

#define VALUE_BYTES_MAX 40
#define VALUE_MAX 9e18

static bool parse_value(struct slice text, int64_t *ret)
{
	char copy[VALUE_BYTES_MAX + 1], *end;
	uint64_t whole;
	double value;

	if (slice_parse_u64(text, &whole) && whole <= INT64_MAX) {
		*ret = (int64_t)whole;
		return true;
	}
	if (!text.len || text.len > VALUE_BYTES_MAX || text.data[0] < '0' || text.data[0] > '9')
		return false;
	memcpy(copy, text.data, text.len);
	copy[text.len] = 0;
	value = strtod(copy, &end);
	if (*end || !(value >= 0 && value < VALUE_MAX))
		return false;
	*ret = (int64_t)llround(value);
	return true;
}

static struct stack_builder_frame frame_of(struct slice name)
{
	struct stack_builder_frame frame = { .name = name };
	const char *end = name.data + name.len;

	if (name.len < 5 || end[-1] != ']' || end[-3] != '[' || end[-4] != '_' ||
	    !memchr("kijw", end[-2], 4))
		return frame;
	frame.name.len -= 4;
	if (end[-2] == 'k')
		frame.mapping = SLICE_LITERAL("[kernel]");
	return frame;
}

static bool take_line(struct slice line, struct stack_builder *into)
{
	const char *blank = line.len ? memrchr(line.data, ' ', line.len) : NULL;
	struct slice stack;
	int64_t value;

	if (!blank || !parse_value(slice_tail(line, (size_t)(blank - line.data) + 1), &value))
		return false;
	stack = slice_trim((struct slice){ line.data, (size_t)(blank - line.data) });
	while (stack.len) {
		struct slice name = slice_cut(stack, ';', &stack);
		struct stack_builder_frame frame = frame_of(name);

		if (name.len)
			stack_builder_push(into, &frame);
	}
	stack_builder_sample(into, true, &value);
	return true;
}

int folded_decode(struct slice text, struct stack_builder *into, struct err *err)
{
	size_t number = 0;

	stack_builder_type(into, "samples", "count");
	while (text.len) {
		struct slice line = slice_trim(slice_cut(text, '\n', &text));

		number++;
		if (!line.len || line.data[0] == '#')
			continue;
		if (!take_line(line, into))
			return err_set(err, ERR_INVALID,
				       "folded stacks: line %zu is not \"frame;frame VALUE\"",
				       number);
	}
	return stack_builder_check(into, "folded stacks", err);
}
