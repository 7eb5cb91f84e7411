/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found - what a discovery has found: targets with their labels, before relabelling.
 *
 * Built by one thread, then immutable and shared. Owns its text. Most labels of a cluster's
 * targets are the same texts again (names, images, namespaces), so each text is kept once.
 *
 * Bounded: FOUND_TARGETS_MAX, and FOUND_BYTES_MAX of labels with each target in full; targets
 * beyond are left out (`is_cut`). All discoveries of the process together: discovery_memory; a
 * result beyond it `is_refused`, and discovery_publish keeps the previous targets.
 */
#ifndef FIRN_SERVER_SCRAPE_FOUND_H
#define FIRN_SERVER_SCRAPE_FOUND_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/idmap.h"
#include "config/rule_labels.h"

#define FOUND_TARGETS_MAX 100000u
#define FOUND_BYTES_MAX ((size_t)64 << 20)
#define FOUND_UNASKED_MAX 2000u /* so many are kept though rules drop them: lists show them */

/*
 * The memory that all discoveries of the process hold together: targets, objects of Kubernetes, and
 * answers while they are read.
 */
#define DISCOVERY_MEMORY_BYTES_MAX ((int64_t)192 << 20)
extern struct budget discovery_memory;
int discovery_memory_fail(struct err *err); /* ERR_LIMIT: it has none left */

struct found_label {
	struct slice name, value;
};

struct found_target {
	const struct found_label *labels;
	size_t count;
};

/*
 * Decides which targets to keep if there are many: the rules of a job drop most of a large cluster.
 */
struct found_filter {
	bool (*wants)(const void *context, const struct found_target *target);
	const void *context;
};

struct found {
	_Atomic unsigned refs;
	struct arena arena;
	struct found_target *targets;
	size_t count, capacity;
	/* Borrowed while it is built. */
	const struct found_filter *filter; /* NULL: all are kept */
	const _Atomic bool *stops;	   /* then the rest is left out; may be NULL */
	size_t left_out;		   /* that it did not want */
	size_t full_bytes;		   /* of the labels of all, told in full */
	struct found_label *adding;	   /* labels of the target that is being made */
	size_t adding_count, adding_capacity;
	struct slice *texts; /* each once, while it is built */
	size_t texts_count, texts_capacity;
	struct idmap texts_ids;
	size_t paid_bytes; /* of discovery_memory */
	bool is_cut, is_refused;
};

struct found *found_new(void);
struct found *found_share(struct found *found); /* any thread; freed once more */
void found_free(struct found *found);		/* accepts NULL */

/* It is whole: what only building needs is given up. */
void found_seal(struct found *found);

/*
 * A label of the next target. The last one of a name counts; an empty value is none. Copied.
 */
void found_label(struct found *found, struct slice name, struct slice value);
/* prefix + name with what may not stand in a label's name as '_': "__meta_docker_", "a.b" */
void found_label_of(struct found *found, const char *prefix, struct slice name, struct slice value);
void found_labelf(struct found *found, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Makes a target of the added labels; the first `keep` of them stay for the next target. */
void found_target(struct found *found, size_t keep);

/* True if all further targets are left out: long loops over hostile answers end then. */
static inline bool found_is_over(const struct found *found)
{
	return found->is_cut || found->is_refused || (found->stops && atomic_load(found->stops));
}

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
