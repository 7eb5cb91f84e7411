/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wire/json_read.h"

#include "base/budget.h"
#include "base/mem.h"

/*
 * What jansson takes, allocator's own bytes included. An object has a table of 8 slots, a pair its
 * key and its share of a table that doubles; an array has room for 8 values and doubles, with both
 * halves there for the moment. Texts are held twice while they are read.
 */
#define OBJECT_BYTES 240u
#define ARRAY_BYTES 144u
#define PAIR_BYTES 144u
#define VALUE_BYTES 64u /* a number, and its place in an array */
#define TEXT_BYTES 40u	/* how much larger a text is, without its bytes */
#define TEXT_FACTOR 2u
#define TRIM_FROM_BYTES ((size_t)8 << 20)

/* Of what a mark outside of texts begins. */
static size_t bytes_of_mark(char c)
{
	switch (c) {
	case '{':
		return OBJECT_BYTES;
	case '[':
		return ARRAY_BYTES + VALUE_BYTES;
	case ':':
		return PAIR_BYTES + VALUE_BYTES;
	case ',':
		return VALUE_BYTES;
	default:
		return 0;
	}
}

/* One pass over the text, which may be no JSON at all. */
static size_t bytes_in_memory(struct slice text)
{
	size_t bytes = VALUE_BYTES + text.len * TEXT_FACTOR;
	bool in_text = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c == '"') {
			in_text = !in_text;
			bytes += in_text ? TEXT_BYTES : 0;
		} else if (in_text) {
			i += c == '\\';
		} else {
			bytes += bytes_of_mark(c);
		}
	}
	return bytes;
}

int json_read(struct slice text, size_t flags, const char *what, struct budget *budget,
	      struct json_read *ret, struct err *err)
{
	size_t bytes = bytes_in_memory(text);
	json_error_t problem;

	*ret = (struct json_read){ .budget = budget };
	if (!budget_take(budget, bytes))
		return budget_fail(budget, bytes, what, err);
	ret->paid_bytes = bytes;
	ret->root = json_loadb(text.len ? text.data : "", text.len, flags, &problem);
	if (!ret->root)
		return err_set(err, ERR_INVALID, "%s: JSON at byte %d, line %d: %s", what,
			       problem.position, problem.line, problem.text);
	return 0;
}

void json_read_free(struct json_read *read)
{
	json_decref(read->root);
	/* Many small pieces: the allocator would keep them all. */
	if (read->paid_bytes >= TRIM_FROM_BYTES)
		mem_trim();
	budget_give(read->budget, read->paid_bytes);
	*read = (struct json_read){ .budget = read->budget };
}

struct slice json_text_of(const json_t *value)
{
	return json_is_string(value)
		       ? slice_from(json_string_value(value), json_string_length(value))
		       : SLICE_LITERAL("");
}

struct slice json_text_at(const json_t *object, const char *name)
{
	return json_text_of(json_object_get(object, name));
}
