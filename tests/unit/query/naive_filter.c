/* SPDX-License-Identifier: Apache-2.0 */
#include "naive_filter.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const actions[] = { "show-stack", "hide-stack", "show-from", "show-frame",
				       "hide-frame" };
static const char *const fields[] = { "function", "binary", "file", "kind", "address", "line" };
static const char *const ops[] = { "=", "*=", "^=", "=~" };
static const char *const negated_ops[] = { "!=", "!*=", "!^=", "!~" };

/* By field; some fit nothing. */
static const char *const values[][6] = {
	{ "main", "run", "inl", "<module>", "[anon]", "n" },
	{ "app", "libx.so", "/lib/libx.so", "[kernel]", "lib", "" },
	{ "a.py", "b.py", ".py", "", "a", "c" },
	{ "native", "cpython", "kernel", "n", "ruby", "" },
	{ "16", "0x30", "40", "0x0", "81", "7" },
	{ "1", "2", "9", "0", "4", "5" },
};
static const char *const patterns[][6] = {
	{ "m.*", ".*n", "run|work", "0x5[01] .*", "x", ".*" },
	{ ".*so", "app|.kernel.", "/.*", "", "lib.*", "a" },
	{ ".*py", "", "[ab].py", "c", "a.*", ".+" },
	{ "n.*", ".*python", "kernel|native", "", "r.*", ".*" },
};

static void draw_condition(struct naive_condition *condition, uint32_t (*draw)(uint32_t below))
{
	condition->field = (int)draw(6);
	condition->op = condition->field < 4 ? (int)draw(4) : 0;
	condition->negated = !draw(4);
	condition->value = condition->op == 3 ? patterns[condition->field][draw(6)]
					      : values[condition->field][draw(6)];
}

void naive_filters_draw(struct naive_filters *filters, uint32_t (*draw)(uint32_t below))
{
	size_t at = 0, room = sizeof(filters->text);

	filters->count = 1 + (int)draw(NAIVE_FILTERS_MAX);
	for (int i = 0; i < filters->count; i++) {
		struct naive_filter *filter = &filters->list[i];

		filter->action = (int)draw(5);
		filter->count = 1 + (int)draw(NAIVE_CONDITIONS_MAX);
		at += (size_t)snprintf(filters->text + at, room - at, "%s%s ", i ? ";" : "",
				       actions[filter->action]);
		for (int c = 0; c < filter->count; c++) {
			struct naive_condition *condition = &filter->conditions[c];

			draw_condition(condition, draw);
			at += (size_t)snprintf(filters->text + at, room - at, "%s%s%s\"%s\"",
					       c ? "," : "", fields[condition->field],
					       condition->negated ? negated_ops[condition->op]
								  : ops[condition->op],
					       condition->value);
		}
	}
	assert_true(at < room);
}

static const char *text_of(const struct naive_condition *condition, const struct naive_frame *frame)
{
	const char *slash;

	if (condition->field == 0)
		return frame->name;
	if (condition->field == 2)
		return frame->file;
	if (condition->field == 3)
		return frame->kind;
	slash = strchr(condition->value, '/') ? NULL : strrchr(frame->binary, '/');
	return slash ? slash + 1 : frame->binary;
}

/* Without the negation. */
static bool fits(const struct naive_condition *condition, const struct naive_frame *frame)
{
	const char *text, *value = condition->value;
	char pattern[64];
	regex_t regex;
	bool fit;

	if (condition->field == 4)
		return frame->address == strtoull(value, NULL, 0);
	if (condition->field == 5)
		return frame->line == strtoull(value, NULL, 0);
	text = text_of(condition, frame);
	if (condition->op == 0)
		return !strcmp(text, value);
	if (condition->op == 1)
		return strstr(text, value);
	if (condition->op == 2)
		return !strncmp(text, value, strlen(value));
	snprintf(pattern, sizeof(pattern), "^(%s)$", value);
	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	fit = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return fit;
}

static bool frame_meets(const struct naive_filter *filter, const struct naive_frame *frame)
{
	for (int i = 0; i < filter->count; i++)
		if (fits(&filter->conditions[i], frame) == filter->conditions[i].negated)
			return false;
	return true;
}

/* What is asked of some frame holds for one, what is negated for all. */
static bool stack_meets(const struct naive_filter *filter, const struct naive_frame *frames,
			uint32_t count)
{
	struct naive_filter positive = *filter;
	bool found = false;

	positive.count = 0;
	for (int i = 0; i < filter->count; i++)
		if (!filter->conditions[i].negated)
			positive.conditions[positive.count++] = filter->conditions[i];
	for (uint32_t f = 0; f < count; f++) {
		found |= frame_meets(&positive, &frames[f]);
		for (int i = 0; i < filter->count; i++)
			if (filter->conditions[i].negated &&
			    fits(&filter->conditions[i], &frames[f]))
				return false;
	}
	return found || !positive.count;
}

bool naive_filters_show(const struct naive_filters *filters, const struct naive_frame *frames,
			uint32_t count)
{
	for (int i = 0; i < filters->count; i++) {
		const struct naive_filter *filter = &filters->list[i];
		bool met = false;

		if (filter->action > 2)
			continue;
		for (uint32_t f = 0; filter->action == 2 && f < count; f++)
			met |= frame_meets(filter, &frames[f]);
		if (filter->action < 2)
			met = stack_meets(filter, frames, count) == (filter->action == 0);
		if (!met)
			return false;
	}
	return true;
}

void naive_filters_frames(const struct naive_filters *filters, struct naive_frame *frames,
			  uint32_t *count)
{
	uint32_t first = 0, kept = 0;

	for (int i = 0; i < filters->count; i++) {
		uint32_t from = 0;

		if (filters->list[i].action != 2)
			continue;
		while (from < *count && !frame_meets(&filters->list[i], &frames[from]))
			from++;
		first = from > first ? from : first;
	}
	for (uint32_t f = first; f < *count; f++) {
		bool shown = true;

		for (int i = 0; i < filters->count; i++) {
			bool meets = frame_meets(&filters->list[i], &frames[f]);

			shown &= filters->list[i].action != 3 || meets;
			shown &= filters->list[i].action != 4 || !meets;
		}
		if (shown)
			frames[kept++] = frames[f];
	}
	*count = kept;
}
