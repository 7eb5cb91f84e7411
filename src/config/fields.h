/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields - reads maps of a configuration file into structs, by tables: a row has the key, the kind
 * of its value and the member that receives it. Unknown and repeated keys are errors with their
 * line.
 *
 * All text is copied into the reader's arena.
 */
#ifndef FIRN_CONFIG_FIELDS_H
#define FIRN_CONFIG_FIELDS_H

#include <stddef.h>

#include "base/arena.h"
#include "config/document.h"

#define FIELDS_LIST_MAX 100000u /* elements of one list */

struct fields_reader {
	struct document *document;
	struct arena *arena;
	struct slice
		directory; /* of the file, with a trailing slash, or empty: the base of paths */
};

enum field_kind {
	FIELD_TEXT,	/* struct slice */
	FIELD_PATH,	/* struct slice */
	FIELD_BOOL,	/* bool */
	FIELD_DURATION, /* int64_t, ns, more than 0 */
	FIELD_SIZE,	/* uint64_t, bytes */
	FIELD_COUNT,	/* uint64_t */
	FIELD_TEXTS,	/* struct field_texts */
	FIELD_PAIRS,	/* struct field_pairs: a map of texts */
	FIELD_MAP,	/* a struct that `fields` describes */
	FIELD_OTHER,	/* `take` reads it; `into` is at the offset in the struct */
	FIELD_IGNORED,
	FIELD_REFUSED, /* a key of Prometheus or Parca that firn does not support */
};

struct field_texts {
	struct slice *items;
	size_t count;
};

struct field_pair {
	struct slice name, value;
};

struct field_pairs {
	struct field_pair *items;
	size_t count;
};

typedef int field_take_f(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
			 struct err *err);

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	const struct field *fields; /* for FIELD_MAP; the last row has no name */
	field_take_f *take;	    /* for FIELD_OTHER */
};

/* A row for a value that is a member of a struct. */
#define FIELD_AT(name, kind, type, member)                                                         \
	{                                                                                          \
		name, kind, offsetof(type, member), NULL, NULL                                     \
	}

int fields_read(struct fields_reader *reader, const struct yaml_node_s *map,
		const struct field *fields, void *into, struct err *err);

/* Adds a zeroed element to a list in the arena; NULL and an error if there are too many. */
void *fields_add(struct fields_reader *reader, void *list_of_pointer, size_t size, size_t *count,
		 const struct yaml_node_s *at, struct err *err);

int fields_text(struct fields_reader *reader, const struct yaml_node_s *value, struct slice *ret,
		struct err *err);
field_take_f fields_texts, fields_pairs; /* for use by other `take` functions */

#endif
