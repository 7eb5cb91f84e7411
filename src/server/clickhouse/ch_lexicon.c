/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_lexicon.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BUCKETS 1024u

METRIC_GAUGE(ch_lexicons_bytes, "firn_clickhouse_dictionaries_bytes", "",
	     "Memory of dictionaries that queries have read, kept for the next");
METRIC_COUNTER(ch_lexicon_hits, "firn_clickhouse_dictionary_hits_total", "",
	       "Dictionaries that a query needed and that were in memory");
METRIC_COUNTER(ch_lexicon_misses, "firn_clickhouse_dictionary_misses_total", "",
	       "Dictionaries that a query read, whole or what was new");

struct ch_lexicons {
	struct lock lock;
	size_t bytes, bytes_max;
	struct ch_lexicon *buckets[BUCKETS]; /* ids are random */
	struct ch_lexicon *oldest, *newest;  /* of those that nobody uses */
};

struct ch_lexicons *ch_lexicons_new(size_t bytes_max)
{
	struct ch_lexicons *all = mem_new(struct ch_lexicons);

	all->bytes_max = bytes_max;
	lock_init(&all->lock, "clickhouse.lexicons", LOCK_STORE + 20);
	return all;
}

static struct ch_lexicon *new_lexicon(uint64_t id, bool one_tenant, struct slice tenant)
{
	struct ch_lexicon *lexicon = mem_new(struct ch_lexicon);

	lock_init(&lexicon->lock, "clickhouse.lexicon", LOCK_STORE + 21);
	lexicon->id = id;
	lexicon->one_tenant = one_tenant;
	if (one_tenant)
		strbuf_add_slice(&lexicon->tenant, tenant);
	return lexicon;
}

static void free_rows(struct ch_lexicon_rows *rows)
{
	strbuf_free(&rows->bytes);
	free(rows->at);
}

static void free_lexicon(struct ch_lexicon *lexicon)
{
	assert(!lexicon->users);
	free_rows(&lexicon->frames);
	free_rows(&lexicon->label_sets);
	free(lexicon->nodes);
	free(lexicon->stacks);
	strbuf_free(&lexicon->tenant);
	lock_free(&lexicon->lock);
	free(lexicon);
}

static size_t rows_bytes(const struct ch_lexicon_rows *rows)
{
	return rows->bytes.capacity + (size_t)rows->count * sizeof(*rows->at);
}

size_t ch_lexicon_bytes(const struct ch_lexicon *lexicon)
{
	return sizeof(*lexicon) + lexicon->tenant.capacity + rows_bytes(&lexicon->frames) +
	       rows_bytes(&lexicon->label_sets) +
	       (size_t)lexicon->nodes_count * sizeof(*lexicon->nodes) +
	       (size_t)lexicon->stacks_count * sizeof(*lexicon->stacks);
}

static bool is_sought(const struct ch_lexicon *lexicon, uint64_t id, bool one_tenant,
		      struct slice tenant)
{
	return lexicon->id == id && lexicon->one_tenant == one_tenant &&
	       (!one_tenant || slice_equal(strbuf_slice(&lexicon->tenant), tenant));
}

static void unlink_idle(struct ch_lexicons *all, struct ch_lexicon *lexicon)
{
	*(lexicon->older ? &lexicon->older->newer : &all->oldest) = lexicon->newer;
	*(lexicon->newer ? &lexicon->newer->older : &all->newest) = lexicon->older;
	lexicon->older = lexicon->newer = NULL;
}

static void link_idle(struct ch_lexicons *all, struct ch_lexicon *lexicon)
{
	lexicon->older = all->newest;
	*(all->newest ? &all->newest->newer : &all->oldest) = lexicon;
	all->newest = lexicon;
}

struct ch_lexicon *ch_lexicon_take(struct ch_lexicons *all, uint64_t id, bool one_tenant,
				   struct slice tenant)
{
	struct ch_lexicon **bucket, *lexicon;

	if (!all) {
		lexicon = new_lexicon(id, one_tenant, tenant);
		lexicon->users = 1;
		return lexicon;
	}
	bucket = &all->buckets[id % BUCKETS];
	lock_take(&all->lock);
	for (lexicon = *bucket; lexicon && !is_sought(lexicon, id, one_tenant, tenant);)
		lexicon = lexicon->next;
	if (!lexicon) {
		lexicon = new_lexicon(id, one_tenant, tenant);
		lexicon->next = *bucket;
		*bucket = lexicon;
	} else if (!lexicon->users) {
		unlink_idle(all, lexicon);
	}
	lexicon->users++;
	lock_give(&all->lock);
	return lexicon;
}

static void count(struct ch_lexicons *all, struct ch_lexicon *lexicon, size_t bytes)
{
	lock_assert_held(&all->lock);
	assert(all->bytes >= lexicon->counted_bytes);
	metric_add(&ch_lexicons_bytes, (int64_t)bytes - (int64_t)lexicon->counted_bytes);
	all->bytes += bytes - lexicon->counted_bytes;
	lexicon->counted_bytes = bytes;
}

static void evict(struct ch_lexicons *all, struct ch_lexicon *lexicon)
{
	struct ch_lexicon **at = &all->buckets[lexicon->id % BUCKETS];

	while (*at != lexicon)
		at = &(*at)->next;
	*at = lexicon->next;
	unlink_idle(all, lexicon);
	count(all, lexicon, 0);
	free_lexicon(lexicon);
}

void ch_lexicon_give(struct ch_lexicons *all, struct ch_lexicon *lexicon)
{
	if (!all) {
		lexicon->users--;
		free_lexicon(lexicon);
		return;
	}
	lock_take(&all->lock);
	lock_take(&lexicon->lock);
	count(all, lexicon, ch_lexicon_bytes(lexicon));
	lock_give(&lexicon->lock);
	assert(lexicon->users);
	if (!--lexicon->users)
		link_idle(all, lexicon);
	while (all->bytes > all->bytes_max && all->oldest)
		evict(all, all->oldest);
	lock_give(&all->lock);
}

void ch_lexicons_free(struct ch_lexicons *all)
{
	if (!all)
		return;
	lock_take(&all->lock);
	while (all->oldest)
		evict(all, all->oldest);
	lock_give(&all->lock);
	assert(!all->bytes);
	lock_free(&all->lock);
	free(all);
}

size_t ch_lexicons_bytes_used(struct ch_lexicons *all)
{
	size_t bytes;

	lock_take(&all->lock);
	bytes = all->bytes;
	lock_give(&all->lock);
	return bytes;
}

/* Room for the number, new elements zeroed. */
static void *grow(void *items, uint32_t count, uint32_t new_count, size_t size)
{
	items = mem_realloc(items, new_count, size);
	memset((char *)items + count * size, 0, (new_count - count) * size);
	return items;
}

static uint32_t count_for(uint32_t number)
{
	return number + number / 2 + 64;
}

bool ch_lexicon_add_row(struct ch_lexicon_rows *rows, uint32_t number, struct slice row)
{
	if (number >= CH_NUMBERS_MAX)
		return false;
	if (number >= rows->count) {
		uint32_t new_count = count_for(number);

		rows->at = grow(rows->at, rows->count, new_count, sizeof(*rows->at));
		rows->count = new_count;
	}
	if (rows->at[number])
		return true;
	rows->at[number] = rows->bytes.len + 1;
	strbuf_add_slice(&rows->bytes, row);
	while (rows->whole + 1 < rows->count && rows->at[rows->whole + 1])
		rows->whole++;
	return true;
}

bool ch_lexicon_add_node(struct ch_lexicon *lexicon, uint32_t number, struct ch_lexicon_node node)
{
	assert(node.parent < number);
	if (number >= CH_NUMBERS_MAX)
		return false;
	if (number >= lexicon->nodes_count) {
		uint32_t new_count = count_for(number);

		lexicon->nodes = grow(lexicon->nodes, lexicon->nodes_count, new_count,
				      sizeof(*lexicon->nodes));
		lexicon->nodes_count = new_count;
	}
	if (lexicon->nodes[number].frame)
		return true;
	lexicon->nodes[number] = node;
	if (node.frame > lexicon->frames_named)
		lexicon->frames_named = node.frame;
	return true;
}

bool ch_lexicon_add_stack(struct ch_lexicon *lexicon, uint32_t number, uint32_t node)
{
	if (number >= CH_NUMBERS_MAX)
		return false;
	if (number >= lexicon->stacks_count) {
		uint32_t new_count = count_for(number);

		lexicon->stacks = grow(lexicon->stacks, lexicon->stacks_count, new_count,
				       sizeof(*lexicon->stacks));
		lexicon->stacks_count = new_count;
	}
	if (!lexicon->stacks[number])
		lexicon->stacks[number] = node;
	while (lexicon->stacks_whole + 1 < lexicon->stacks_count &&
	       lexicon->stacks[lexicon->stacks_whole + 1])
		lexicon->stacks_whole++;
	return true;
}

bool ch_lexicon_has_stacks(const struct ch_lexicon *lexicon, uint32_t number)
{
	return !number || (lexicon->stacks_whole >= number &&
			   lexicon->frames.whole + 1 >= lexicon->frames_named);
}
