/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule_labels - the labels of one target while rules change them. Names are unique, in the order of
 * Prometheus' label builder: first the initial labels by name, then added ones in the order of
 * their addition.
 *
 * Owns its text. An empty value means no label. Bounded: RULE_LABELS_BYTES_MAX of text in all; a
 * label beyond that is left out, and `is_cut` is set. One thread.
 */
#ifndef FIRN_CONFIG_RULE_LABELS_H
#define FIRN_CONFIG_RULE_LABELS_H

#include "base/arena.h"

#define RULE_LABELS_BYTES_MAX ((size_t)8 << 20)

struct rule_label {
	struct slice name, value;
	bool is_added; /* by a rule */
};

struct rule_labels {
	struct rule_label *labels;
	size_t count, capacity;
	struct arena arena;
	bool is_cut;
};

void rule_labels_init(struct rule_labels *set);
void rule_labels_free(struct rule_labels *set); /* may be used again */

/* The value, or an empty slice. Lives until rule_labels_free. */
struct slice rule_labels_get(const struct rule_labels *set, struct slice name);

/* Both are copied. An empty value removes the label. */
void rule_labels_put(struct rule_labels *set, struct slice name, struct slice value);
void rule_labels_remove(struct rule_labels *set, struct slice name);

void rule_labels_copy(struct rule_labels *to, const struct rule_labels *from);

/* Sorts by name; the present labels become the initial ones. */
void rule_labels_sort(struct rule_labels *set);

/* True if the labels, in any order, are the same. Both are sorted. */
bool rule_labels_equal(const struct rule_labels *a, const struct rule_labels *b);

/* [a-zA-Z_][a-zA-Z0-9_]* */
bool rule_labels_is_name(struct slice name);

#endif
