/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_set - the labels of one target while rules work on them: names once each, in the order in
 * which Prometheus' label builder goes through them (what was there at the start by name, then what
 * rules added as they did).
 *
 * Owns its text. An empty value is no label. Bounded: LABEL_SET_BYTES_MAX of text in all; what
 * would go beyond is left out, and `is_cut` stays set. One thread.
 */
#ifndef FIRN_CONFIG_LABEL_SET_H
#define FIRN_CONFIG_LABEL_SET_H

#include "base/arena.h"

#define LABEL_SET_BYTES_MAX ((size_t)8 << 20)

struct label {
	struct slice name, value;
	bool is_added; /* by a rule */
};

struct label_set {
	struct label *labels;
	size_t count, capacity;
	struct arena arena;
	bool is_cut;
};

void label_set_init(struct label_set *set);
void label_set_free(struct label_set *set); /* may be used again */

/* The value, or an empty slice. Lives until label_set_free. */
struct slice label_set_get(const struct label_set *set, struct slice name);

/* Both are copied. An empty value removes the label. */
void label_set_put(struct label_set *set, struct slice name, struct slice value);
void label_set_remove(struct label_set *set, struct slice name);

void label_set_copy(struct label_set *to, const struct label_set *from);

/* By name; what is there is the start from now on. */
void label_set_sort(struct label_set *set);

/* Whether the labels, in any order, are the same. Both are sorted. */
bool label_set_equal(const struct label_set *a, const struct label_set *b);

/* [a-zA-Z_][a-zA-Z0-9_]* */
bool label_set_is_name(struct slice name);

#endif
