/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found - what a discovery has found: targets with their labels, before relabelling.
 *
 * Built by one thread, then immutable. Owns its text. Bounded: FOUND_TARGETS_MAX, FOUND_BYTES_MAX;
 * what is beyond is left out and told (`is_cut`).
 */
#ifndef FIRN_SERVER_SCRAPE_FOUND_H
#define FIRN_SERVER_SCRAPE_FOUND_H

#include "base/arena.h"
#include "config/rule_labels.h"

#define FOUND_TARGETS_MAX 100000u
#define FOUND_BYTES_MAX ((size_t)64 << 20)

struct found_target {
	struct rule_label *labels;
	size_t count;
};

struct found {
	struct arena arena;
	struct found_target *targets;
	size_t count, capacity;
	struct rule_label *adding; /* labels of the target that is being made */
	size_t adding_count, adding_capacity;
	bool is_cut;
};

struct found *found_new(void);
void found_free(struct found *found); /* accepts NULL */

/*
 * A label of the next target. The last one of a name counts; an empty value is none. Copied.
 */
void found_label(struct found *found, struct slice name, struct slice value);
/* prefix + name with what may not stand in a label's name as '_': "__meta_docker_", "a.b" */
void found_label_of(struct found *found, const char *prefix, struct slice name, struct slice value);
void found_labelf(struct found *found, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Labels that were added so far are those of a target now, and of the next ones from `keep` on. */
void found_target(struct found *found, size_t keep);

/* How many labels wait: to go back to with found_target. */
static inline size_t found_mark(const struct found *found)
{
	return found->adding_count;
}
static inline void found_forget(struct found *found, size_t mark)
{
	found->adding_count = mark;
}

/* All targets of another. */
void found_add_all(struct found *found, const struct found *from);

#endif
