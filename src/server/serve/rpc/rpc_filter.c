/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/rpc/rpc_filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define DIGITS_BYTES 24

struct reading {
	struct filter_list *filters;
	struct filter *filter;
	struct err *err;
};

static int begin_filter(struct reading *reading, enum filter_action action)
{
	reading->filter = filter_list_add(reading->filters, action);
	if (!reading->filter)
		return err_set(reading->err, ERR_LIMIT, "Query: more than %d filters", FILTERS_MAX);
	return 0;
}

static int add(struct reading *reading, const struct filter_condition *condition)
{
	return filter_add_condition(reading->filters, reading->filter, condition, reading->err);
}

/*
 * StringCondition{ equal = 1; not_equal = 2; contains = 3; not_contains = 4; starts_with = 5;
 * not_starts_with = 6 }
 */
static int read_text(struct reading *reading, const struct pb_reader *outer, struct slice bytes,
		     enum filter_field of)
{
	static const enum filter_op ops[] = { FILTER_IS, FILTER_CONTAINS, FILTER_STARTS_WITH };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field)) {
		struct filter_condition condition = { .field = of, .any_case = true };

		if (field.wire != PB_BYTES || field.number > 6)
			continue;
		condition.op = ops[(field.number - 1) / 2];
		condition.negated = field.number % 2 == 0;
		condition.text = field.bytes;
		rc = add(reading, &condition);
	}
	return !rc && in.problem ? pb_fail(&in, "StringCondition", reading->err) : rc;
}

/* NumberCondition{ equal = 1; not_equal = 2 } */
static int read_number(struct reading *reading, const struct pb_reader *outer, struct slice bytes,
		       enum filter_field of)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field)) {
		struct filter_condition condition = { .field = of,
						      .op = FILTER_IS,
						      .negated = field.number == 2 };
		char digits[DIGITS_BYTES];

		if (field.wire != PB_VARINT || field.number > 2)
			continue;
		snprintf(digits, sizeof(digits), "%" PRIu64, field.value);
		condition.text = slice_of(digits); /* which filters are shown and parsed by */
		rc = add(reading, &condition);
	}
	return !rc && in.problem ? pb_fail(&in, "NumberCondition", reading->err) : rc;
}

/*
 * FilterCriteria{ function_name = 1; system_name = 2; binary = 3; filename = 4; address = 5;
 * line_number = 6 }: all have to hold for one frame.
 */
static int read_criteria(struct reading *reading, const struct pb_reader *outer, struct slice bytes)
{
	static const enum filter_field fields[] = {
		[1] = FILTER_FUNCTION, [2] = FILTER_SYSTEM_NAME, [3] = FILTER_BINARY,
		[4] = FILTER_FILE,     [5] = FILTER_ADDRESS,	 [6] = FILTER_LINE
	};
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number > 6)
			continue;
		if (field.number <= 4)
			rc = read_text(reading, &in, field.bytes, fields[field.number]);
		else
			rc = read_number(reading, &in, field.bytes, fields[field.number]);
	}
	return !rc && in.problem ? pb_fail(&in, "FilterCriteria", reading->err) : rc;
}

/* FunctionNameStackFilter{ function_to_filter = 1; exclude = 2 } */
static int read_function_name(struct reading *reading, const struct pb_reader *outer,
			      struct slice bytes)
{
	struct filter_condition condition = { .field = FILTER_FUNCTION,
					      .op = FILTER_CONTAINS,
					      .any_case = true };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		if (field.number == 1 && field.wire == PB_BYTES)
			condition.text = field.bytes;
		else if (field.number == 2 && field.wire == PB_VARINT)
			condition.negated = field.value;
	}
	return in.problem ? pb_fail(&in, "FunctionNameStackFilter", reading->err)
			  : add(reading, &condition);
}

/* One of several texts, as a regular expression: everything but letters and digits is quoted. */
static void add_alternative(struct strbuf *pattern, struct slice text)
{
	strbuf_add_text(pattern, pattern->len ? "|" : "(?i).*(");
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c < 0x80 && !isalnum(c))
			strbuf_add_byte(pattern, '\\');
		strbuf_add_byte(pattern, (char)c);
	}
}

/* BinaryFrameFilter{ include_binaries = 1 }: any of them */
static int read_binaries(struct reading *reading, const struct pb_reader *outer, struct slice bytes)
{
	struct filter_condition condition = { .field = FILTER_BINARY, .op = FILTER_REGEX };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct strbuf pattern = { 0 };
	struct pb_field field;
	int rc = 0;

	while (pb_next(&in, &field))
		if (field.number == 1 && field.wire == PB_BYTES)
			add_alternative(&pattern, field.bytes);
	if (in.problem) {
		rc = pb_fail(&in, "BinaryFrameFilter", reading->err);
	} else if (pattern.len) {
		strbuf_add_text(&pattern, ").*");
		condition.text = strbuf_slice(&pattern);
		rc = add(reading, &condition);
	}
	strbuf_free(&pattern);
	return rc;
}

/* StackFilter and FrameFilter: an older form = 1; criteria = 2 */
static int read_side(struct reading *reading, const struct pb_reader *outer, struct slice bytes,
		     bool is_stack)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number > 2)
			continue;
		rc = begin_filter(reading, is_stack ? FILTER_SHOW_STACK : FILTER_SHOW_FRAME);
		if (!rc && field.number == 2)
			rc = read_criteria(reading, &in, field.bytes);
		else if (!rc && is_stack)
			rc = read_function_name(reading, &in, field.bytes);
		else if (!rc)
			rc = read_binaries(reading, &in, field.bytes);
	}
	return !rc && in.problem ? pb_fail(&in, "Filter", reading->err) : rc;
}

int rpc_filter_read(const struct pb_reader *outer, struct slice bytes, struct filter_list *filters,
		    struct err *err)
{
	struct reading reading = { .filters = filters, .err = err };
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number <= 2)
			rc = read_side(&reading, &in, field.bytes, field.number == 1);
	return !rc && in.problem ? pb_fail(&in, "Filter", err) : rc;
}
