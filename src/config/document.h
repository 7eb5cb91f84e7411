/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document - configuration files: one YAML 1.1 document as a tree, with errors that name the line.
 *
 * libyaml parses the text; this module walks its tree and makes errors "FILE:LINE: ...". An alias
 * stands for the node that it names. One thread at a time. Limit: DOCUMENT_BYTES_MAX of text.
 */
#ifndef FIRN_CONFIG_DOCUMENT_H
#define FIRN_CONFIG_DOCUMENT_H

#include "base/err.h"
#include "base/slice.h"

#define DOCUMENT_BYTES_MAX ((size_t)1 << 20)

struct document;
struct yaml_node_s; /* libyaml's node: a value of the document */

/* `where` is the file's name, for messages; both are copied. An empty text is an empty map. */
int document_parse(struct slice text, const char *where, struct document **ret, struct err *err);
void document_free(struct document *document); /* accepts NULL */

/* NULL for an empty document. */
const struct yaml_node_s *document_root(struct document *document);

/* ERR_INVALID: "FILE:LINE: message". */
int document_error(const struct document *document, const struct yaml_node_s *value,
		   struct err *err, const char *format, ...) __attribute__((format(printf, 4, 5)));

size_t document_line(const struct yaml_node_s *value); /* from 1 */

/* Calls for each pair; stops at the first negative result. An absent value (null) is no pair. */
typedef int document_pair_f(void *context, struct slice key, const struct yaml_node_s *value,
			    struct err *err);
int document_each_pair(struct document *document, const struct yaml_node_s *map,
		       document_pair_f *pair, void *context, struct err *err);

/*
 * True if the file's map has one of these keys (a list that ends with NULL) at its top level; false
 * also if the file cannot be read or is not YAML.
 */
bool document_file_has_key(const char *path, const char *const *keys);

/* A key of a map and the function that reads its value: a table of these is the map's schema. */
struct document_key {
	const char *name;
	int (*take)(void *context, const struct yaml_node_s *value, struct err *err);
};
/* Unknown and repeated keys are errors that name the nearest known one. */
int document_take_map(struct document *document, const struct yaml_node_s *map,
		      const struct document_key *keys, size_t keys_count, void *context,
		      struct err *err);

typedef int document_item_f(void *context, const struct yaml_node_s *item, struct err *err);
int document_each_item(struct document *document, const struct yaml_node_s *list,
		       document_item_f *item, void *context, struct err *err);

/* Borrowed from the document. A NUL follows the text. */
int document_text(const struct document *document, const struct yaml_node_s *value,
		  struct slice *ret, struct err *err);
int document_bool(const struct document *document, const struct yaml_node_s *value, bool *ret,
		  struct err *err);

#endif
