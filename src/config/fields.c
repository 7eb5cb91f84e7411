/* SPDX-License-Identifier: Apache-2.0 */
#include "config/fields.h"

#include <stdio.h>

#include "config/options.h"
#include "config/units.h"

#define FIELDS_MAX 64u /* of one map */

int fields_text(struct fields_reader *reader, const struct yaml_node_s *value, struct slice *ret,
		struct err *err)
{
	int rc = document_text(reader->document, value, ret, err);

	if (!rc)
		*ret = arena_copy(reader->arena, *ret);
	return rc;
}

static int take_path(struct fields_reader *reader, const struct yaml_node_s *value,
		     struct slice *ret, struct err *err)
{
	struct strbuf path = { 0 };
	int rc = document_text(reader->document, value, ret, err);

	if (rc)
		return rc;
	if (ret->len && ret->data[0] != '/')
		strbuf_add_slice(&path, reader->directory);
	strbuf_add_slice(&path, *ret);
	*ret = arena_copy(reader->arena, (struct slice){ strbuf_text(&path), path.len });
	strbuf_free(&path);
	return 0;
}

/* Room for a power of two of elements: full when their number is one. */
void *fields_add(struct fields_reader *reader, void *list_of_pointer, size_t size, size_t *count,
		 const struct yaml_node_s *at, struct err *err)
{
	void **list = list_of_pointer;

	if (*count >= FIELDS_LIST_MAX) {
		document_error(reader->document, at, err, "more than %u of these", FIELDS_LIST_MAX);
		return NULL;
	}
	if ((*count & (*count - 1)) == 0) {
		void *old = *list;

		*list = arena_alloc_array(reader->arena, *count ? 2 * *count : 1, size);
		if (!*list) {
			document_error(reader->document, at, err, "the file says too much");
			*list = old;
			return NULL;
		}
		if (*count)
			memcpy(*list, old, *count * size);
	}
	return (char *)*list + (*count)++ * size;
}

struct adding {
	struct fields_reader *reader;
	void *into;
};

static int add_text(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct adding *adding = context;
	struct field_texts *texts = adding->into;
	struct slice *text =
		fields_add(adding->reader, &texts->items, sizeof(*text), &texts->count, item, err);

	return text ? fields_text(adding->reader, item, text, err) : -ERR_INVALID;
}

int fields_texts(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
		 struct err *err)
{
	struct adding adding = { reader, into };

	return document_each_item(reader->document, value, add_text, &adding, err);
}

static int add_pair(void *context, struct slice key, const struct yaml_node_s *value,
		    struct err *err)
{
	struct adding *adding = context;
	struct field_pairs *pairs = adding->into;
	struct field_pair *pair =
		fields_add(adding->reader, &pairs->items, sizeof(*pair), &pairs->count, value, err);

	if (!pair)
		return -ERR_INVALID;
	pair->name = arena_copy(adding->reader->arena, key);
	return fields_text(adding->reader, value, &pair->value, err);
}

int fields_pairs(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
		 struct err *err)
{
	struct adding adding = { reader, into };

	return document_each_pair(reader->document, value, add_pair, &adding, err);
}

static int take_duration(struct fields_reader *reader, const struct yaml_node_s *value,
			 int64_t *into, struct err *err)
{
	struct slice text;
	struct err why;
	int rc = document_text(reader->document, value, &text, err);

	if (rc)
		return rc;
	if (units_parse_duration(text, into, &why))
		return document_error(reader->document, value, err, "%s", why.message);
	if (*into <= 0)
		return document_error(reader->document, value, err,
				      "the duration has to be more than 0");
	return 0;
}

static int take_size(struct fields_reader *reader, const struct yaml_node_s *value, uint64_t *into,
		     struct err *err)
{
	struct slice text;
	struct err why;
	int rc = document_text(reader->document, value, &text, err);

	if (rc)
		return rc;
	if (units_parse_size(text, into, NULL, &why))
		return document_error(reader->document, value, err, "%s", why.message);
	return 0;
}

static int take_count(struct fields_reader *reader, const struct yaml_node_s *value, uint64_t *into,
		      struct err *err)
{
	struct slice text;
	int rc = document_text(reader->document, value, &text, err);

	if (!rc && !slice_parse_u64(text, into))
		rc = document_error(reader->document, value, err, "\"%.*s\" is not a whole number",
				    SLICE_FMT(text));
	return rc;
}

static int take(struct fields_reader *reader, const struct field *field,
		const struct yaml_node_s *value, void *into, struct err *err)
{
	void *at = (char *)into + field->offset;

	switch (field->kind) {
	case FIELD_TEXT:
		return fields_text(reader, value, at, err);
	case FIELD_PATH:
		return take_path(reader, value, at, err);
	case FIELD_BOOL:
		return document_bool(reader->document, value, at, err);
	case FIELD_DURATION:
		return take_duration(reader, value, at, err);
	case FIELD_SIZE:
		return take_size(reader, value, at, err);
	case FIELD_COUNT:
		return take_count(reader, value, at, err);
	case FIELD_TEXTS:
		return fields_texts(reader, value, at, err);
	case FIELD_PAIRS:
		return fields_pairs(reader, value, at, err);
	case FIELD_MAP:
		return fields_read(reader, value, field->fields, at, err);
	case FIELD_OTHER:
		return field->take(reader, value, at, err);
	case FIELD_REFUSED:
		return document_error(reader->document, value, err, "\"%s\" is not supported",
				      field->name);
	case FIELD_IGNORED:
		break;
	}
	return 0;
}

struct reading {
	struct fields_reader *reader;
	const struct field *fields;
	void *into;
	uint64_t seen;
};

static int take_pair(void *context, struct slice key, const struct yaml_node_s *value,
		     struct err *err)
{
	struct reading *reading = context;
	const char *names[FIELDS_MAX], *nearest;
	size_t count = 0;
	char text[64];

	for (; count < FIELDS_MAX && reading->fields[count].name; count++) {
		names[count] = reading->fields[count].name;
		if (!slice_is(key, names[count]))
			continue;
		if (reading->seen & (uint64_t)1 << count)
			return document_error(reading->reader->document, value, err,
					      "\"%s\" is given twice", names[count]);
		reading->seen |= (uint64_t)1 << count;
		return take(reading->reader, &reading->fields[count], value, reading->into, err);
	}
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(key));
	nearest = options_nearest(text, names, count);
	return document_error(reading->reader->document, value, err, "unknown key \"%s\"%s%s%s",
			      text, nearest ? "; is \"" : "", nearest ? nearest : "",
			      nearest ? "\" meant?" : "");
}

int fields_read(struct fields_reader *reader, const struct yaml_node_s *map,
		const struct field *fields, void *into, struct err *err)
{
	struct reading reading = { reader, fields, into, 0 };

	return document_each_pair(reader->document, map, take_pair, &reading, err);
}
