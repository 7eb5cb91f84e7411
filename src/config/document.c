/* SPDX-License-Identifier: Apache-2.0 */
#include "config/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

#include "base/mem.h"
#include "base/whole_file.h"
#include "config/options.h"

#define KEYS_MAX 64u /* known keys of one map */
#define FOUND 1

struct document {
	yaml_document_t document;
	char *where;
};

static int parse_error(const yaml_parser_t *parser, const char *where, struct err *err)
{
	return err_set(err, ERR_INVALID, "%s:%zu: %s", where, parser->problem_mark.line + 1,
		       parser->problem ? parser->problem : "not YAML");
}

int document_parse(struct slice text, const char *where, struct document **ret, struct err *err)
{
	struct document *document;
	yaml_parser_t parser;
	int rc = 0;

	if (text.len > DOCUMENT_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%s: larger than %zu bytes", where,
			       DOCUMENT_BYTES_MAX);
	if (!yaml_parser_initialize(&parser))
		abort(); /* out of memory: as mem.h */
	yaml_parser_set_input_string(&parser, (const unsigned char *)(text.len ? text.data : ""),
				     text.len);
	document = mem_new(struct document);
	if (yaml_parser_load(&parser, &document->document)) {
		document->where = mem_strndup(where, strlen(where));
		*ret = document;
	} else {
		rc = parse_error(&parser, where, err);
		free(document);
	}
	yaml_parser_delete(&parser);
	return rc;
}

void document_free(struct document *document)
{
	if (!document)
		return;
	yaml_document_delete(&document->document);
	free(document->where);
	free(document);
}

const struct yaml_node_s *document_root(struct document *document)
{
	return yaml_document_get_root_node(&document->document);
}

size_t document_line(const struct yaml_node_s *value)
{
	return value->start_mark.line + 1;
}

int document_error(const struct document *document, const struct yaml_node_s *value,
		   struct err *err, const char *format, ...)
{
	char message[ERR_MESSAGE_BYTES / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	return err_set(err, ERR_INVALID, "%s:%zu: %s", document->where, document_line(value),
		       message);
}

static struct slice scalar(const struct yaml_node_s *value)
{
	return slice_from(value->data.scalar.value, value->data.scalar.length);
}

static bool is_null(const struct yaml_node_s *value)
{
	struct slice text;

	if (value->type != YAML_SCALAR_NODE || value->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	text = scalar(value);
	return !text.len || slice_is(text, "~") || slice_is(text, "null");
}

int document_each_pair(struct document *document, const struct yaml_node_s *map,
		       document_pair_f *pair, void *context, struct err *err)
{
	if (is_null(map))
		return 0;
	if (map->type != YAML_MAPPING_NODE)
		return document_error(document, map, err, "expected a map (key: value)");
	for (const yaml_node_pair_t *at = map->data.mapping.pairs.start;
	     at < map->data.mapping.pairs.top; at++) {
		const struct yaml_node_s *key =
			yaml_document_get_node(&document->document, at->key);
		const struct yaml_node_s *value =
			yaml_document_get_node(&document->document, at->value);
		int rc;

		if (key->type != YAML_SCALAR_NODE)
			return document_error(document, key, err, "a key must be text");
		if (is_null(value))
			continue;
		rc = pair(context, scalar(key), value, err);
		if (rc)
			return rc;
	}
	return 0;
}

struct taking {
	struct document *document;
	const struct document_key *keys;
	size_t keys_count;
	uint64_t seen;
	void *context;
};

static int unknown_key(const struct taking *taking, struct slice key,
		       const struct yaml_node_s *value, struct err *err)
{
	const char *names[KEYS_MAX], *nearest;
	char text[64];

	for (size_t i = 0; i < taking->keys_count; i++)
		names[i] = taking->keys[i].name;
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(key));
	nearest = options_nearest(text, names, taking->keys_count);
	return document_error(taking->document, value, err, "unknown key \"%s\"%s%s%s", text,
			      nearest ? "; is \"" : "", nearest ? nearest : "",
			      nearest ? "\" meant?" : "");
}

static int take_pair(void *context, struct slice key, const struct yaml_node_s *value,
		     struct err *err)
{
	struct taking *taking = context;

	for (size_t i = 0; i < taking->keys_count; i++) {
		if (!slice_is(key, taking->keys[i].name))
			continue;
		if (taking->seen & (uint64_t)1 << i)
			return document_error(taking->document, value, err, "\"%s\" is given twice",
					      taking->keys[i].name);
		taking->seen |= (uint64_t)1 << i;
		return taking->keys[i].take(taking->context, value, err);
	}
	return unknown_key(taking, key, value, err);
}

int document_take_map(struct document *document, const struct yaml_node_s *map,
		      const struct document_key *keys, size_t keys_count, void *context,
		      struct err *err)
{
	struct taking taking = { document, keys, keys_count, 0, context };

	return document_each_pair(document, map, take_pair, &taking, err);
}

static int look_for_key(void *context, struct slice key, const struct yaml_node_s *value,
			struct err *err)
{
	const char *const *wanted = context;

	(void)value;
	(void)err;
	for (; *wanted; wanted++)
		if (slice_is(key, *wanted))
			return FOUND;
	return 0;
}

bool document_file_has_key(const char *path, const char *const *keys)
{
	struct strbuf text = { 0 };
	struct document *document;
	bool is_found = false;

	if (!whole_file_read(path, DOCUMENT_BYTES_MAX, &text, NULL) &&
	    !document_parse(strbuf_slice(&text), path, &document, NULL)) {
		if (document_root(document))
			is_found =
				document_each_pair(document, document_root(document), look_for_key,
						   (void *)(uintptr_t)keys, NULL) == FOUND;
		document_free(document);
	}
	strbuf_wipe(&text);
	return is_found;
}

int document_each_item(struct document *document, const struct yaml_node_s *list,
		       document_item_f *item, void *context, struct err *err)
{
	if (is_null(list))
		return 0;
	if (list->type != YAML_SEQUENCE_NODE)
		return document_error(document, list, err, "expected a list");
	for (const yaml_node_item_t *at = list->data.sequence.items.start;
	     at < list->data.sequence.items.top; at++) {
		int rc = item(context, yaml_document_get_node(&document->document, *at), err);

		if (rc)
			return rc;
	}
	return 0;
}

int document_text(const struct document *document, const struct yaml_node_s *value,
		  struct slice *ret, struct err *err)
{
	if (value->type != YAML_SCALAR_NODE)
		return document_error(document, value, err, "expected text");
	*ret = scalar(value);
	if (memchr(ret->data, '\0', ret->len))
		return document_error(document, value, err, "text with a NUL byte");
	return 0;
}

int document_bool(const struct document *document, const struct yaml_node_s *value, bool *ret,
		  struct err *err)
{
	struct slice text = { 0 };

	if (value->type == YAML_SCALAR_NODE)
		text = scalar(value);
	*ret = slice_is(text, "true");
	if (*ret || slice_is(text, "false"))
		return 0;
	return document_error(document, value, err, "expected true or false");
}
