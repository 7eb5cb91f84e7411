/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta_labels - labels of a process for relabelling rules. The names are those of Parca's agent and
 * of Prometheus' service discovery (docs/labels.md).
 *
 * Each name is there once: adding it again replaces the value. Zero-initialised is empty. Limits:
 * META_LABELS_MAX labels, META_LABELS_BYTES_MAX of text, META_LABELS_VALUE_MAX for a value; labels
 * beyond them, or not in UTF-8, are left out, never cut. Not thread-safe.
 */
#ifndef FIRN_AGENT_IDENTIFY_META_LABELS_H
#define FIRN_AGENT_IDENTIFY_META_LABELS_H

#include "base/strbuf.h"

#define META_LABELS_MAX 256
#define META_LABELS_BYTES_MAX ((size_t)32 << 10)
#define META_LABELS_VALUE_MAX 1024
#define META_LABELS_NAME_MAX 256

struct meta_label {
	uint32_t name_at, name_len, value_at, value_len; /* in the text */
};

struct meta_labels {
	struct strbuf text;
	struct meta_label *items;
	size_t count, capacity;
};

void meta_labels_free(struct meta_labels *labels); /* and leaves it empty */
void meta_labels_copy(struct meta_labels *to, const struct meta_labels *from); /* adds them all */
/* Adds those whose names are not there yet. */
void meta_labels_fill(struct meta_labels *to, const struct meta_labels *from);

/* Nothing for an empty value. */
void meta_labels_add(struct meta_labels *labels, const char *name, struct slice value);

/* Of a label or annotation: its name after `prefix`, with '_' for what a label's name cannot have.
 */
void meta_labels_add_of(struct meta_labels *labels, const char *prefix, struct slice key,
			struct slice value);

/* Both live until the next change. Empty when it is not there. */
struct slice meta_labels_find(const struct meta_labels *labels, const char *name);
struct slice meta_labels_name(const struct meta_labels *labels, size_t index);
struct slice meta_labels_value(const struct meta_labels *labels, size_t index);

#endif
