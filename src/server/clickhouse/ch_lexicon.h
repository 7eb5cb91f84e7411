/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_lexicon - what ClickHouse has said of a dictionary (ch_dict.h), and those of queries before.
 *
 * A number of a dictionary means one thing for ever: the dictionary's name is random, one server
 * gives its numbers, and that server begins another dictionary when it does not know what was
 * stored. So what was read once stays true, whatever becomes of the tables (later rows, replicas
 * that lag, merges, partitions that are dropped, a backup that is restored), and nothing here is
 * ever invalid: a lexicon is added to until it is evicted. Retention and deletes hide reports,
 * which every query reads anew; a lexicon names none.
 *
 * A row that a lexicon lacks may exist all the same: rows may become visible in any order. A
 * lexicon knows how far its numbers are *whole*, that is, 1..n without a gap. A query whose reports
 * name no number beyond asks nothing; others ask for what lies beyond, and never for less.
 * Dictionaries of version 1 are not dense: they are asked for whole each time.
 *
 * A lexicon belongs to the readers of one tenant, or to those of all: a report that names another
 * tenant's dictionary finds nothing, as when the table is read.
 *
 * Memory: those that no reading uses are freed, least recently used first, while all take more than
 * the limit. Readings pay for those that they use. Thread-safe; all but taking and giving lexicons
 * is under the lexicon's own lock.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_LEXICON_H
#define FIRN_SERVER_CLICKHOUSE_CH_LEXICON_H

#include "base/lock.h"
#include "base/metrics.h"
#include "base/strbuf.h"

#define CH_NUMBERS_MAX ((uint32_t)1 << 25) /* of a kind; a writer begins anew long before */
#define CH_LEXICONS_BYTES_DEFAULT ((size_t)64 << 20)

/* Rows as they came, without their number. */
struct ch_lexicon_rows {
	struct strbuf bytes;
	size_t *at; /* by number, where they begin, plus one; 0: not known */
	uint32_t count;
	uint32_t whole;
};

struct ch_lexicon_node {
	uint32_t parent; /* less than its own number; 0: none */
	uint32_t frame;	 /* its number plus one (in version 1 they begin with 0); 0: not known */
};

struct ch_lexicon {
	struct lock lock;
	uint64_t id;
	bool one_tenant;
	struct strbuf tenant;

	/* Of version 1, stacks are numbered as nodes are; of version 2, by themselves. */
	bool numbers_stacks;
	struct ch_lexicon_rows frames, label_sets;
	struct ch_lexicon_node *nodes;
	uint32_t nodes_count;
	uint32_t frames_named; /* the largest number of a node's frame, plus one */
	uint32_t *stacks;      /* the node at which each ends; 0: not known */
	uint32_t stacks_count;
	uint32_t stacks_whole;

	/* Guarded by the lock of all. */
	uint32_t users;
	size_t counted_bytes;
	struct ch_lexicon *next;	  /* of its bucket */
	struct ch_lexicon *older, *newer; /* of those that nobody uses */
};

struct ch_lexicons;

extern struct metric ch_lexicons_bytes, ch_lexicon_hits, ch_lexicon_misses;

struct ch_lexicons *ch_lexicons_new(size_t bytes_max);
void ch_lexicons_free(struct ch_lexicons *all); /* accepts NULL; none is in use */
size_t ch_lexicons_bytes_used(struct ch_lexicons *all);

/* The dictionary's lexicon, which may be empty. `all` is NULL: one for this reading alone. */
struct ch_lexicon *ch_lexicon_take(struct ch_lexicons *all, uint64_t id, bool one_tenant,
				   struct slice tenant);
void ch_lexicon_give(struct ch_lexicons *all, struct ch_lexicon *lexicon);

size_t ch_lexicon_bytes(const struct ch_lexicon *lexicon);

/* A row that is there already stays. False: the number is out of bounds. */
MUST_USE bool ch_lexicon_add_row(struct ch_lexicon_rows *rows, uint32_t number, struct slice row);
MUST_USE bool ch_lexicon_add_node(struct ch_lexicon *lexicon, uint32_t number,
				  struct ch_lexicon_node node);
MUST_USE bool ch_lexicon_add_stack(struct ch_lexicon *lexicon, uint32_t number, uint32_t node);

/* Whether stacks up to this number, with all that they are made of, are there. */
bool ch_lexicon_has_stacks(const struct ch_lexicon *lexicon, uint32_t number);

/* The row and what follows it; empty: not known. */
static inline struct slice ch_lexicon_row(const struct ch_lexicon_rows *rows, uint32_t number)
{
	if (number >= rows->count || !rows->at[number])
		return (struct slice){ 0 };
	return slice_tail(strbuf_slice(&rows->bytes), rows->at[number] - 1);
}

/* NULL: not known. */
static inline const struct ch_lexicon_node *ch_lexicon_node(const struct ch_lexicon *lexicon,
							    uint32_t number)
{
	if (number >= lexicon->nodes_count || !lexicon->nodes[number].frame)
		return NULL;
	return &lexicon->nodes[number];
}

/* The node at which the stack ends; 0: not known. */
static inline uint32_t ch_lexicon_stack(const struct ch_lexicon *lexicon, uint32_t number)
{
	if (!lexicon->numbers_stacks)
		return number;
	return number < lexicon->stacks_count ? lexicon->stacks[number] : 0;
}

#endif
