/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lexicons beside a model: dictionaries that grow, in tables of which a reader sees any share.
 *
 * What rows a statement is answered with is decided by the statement's own words. Reports read with
 * lexicons say what was written, and are all there that are there without.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "put_rows.h"
#include "server/persist/log/tables_check.h"

#define DICTS 6u
#define FLUSHES_MAX 40u
#define PER_FLUSH_MAX 5u
#define NUMBERS_MAX (FLUSHES_MAX * PER_FLUSH_MAX + 1)
#define START_NS (1000 * CLOCK_NS_PER_S)

/* Numbers from `first` on that one flush added. */
struct range {
	uint32_t first, count;
};

struct flush {
	struct range ranges[3]; /* frames, stacks (each with a node), label sets */
	bool visible[3];	/* whether the rows are in the tables */
};

struct dict {
	uint64_t id;
	bool of_a;   /* the tenant */
	bool is_old; /* of version 1: frames from 0 on, stacks are nodes */
	struct flush flushes[FLUSHES_MAX];
	uint32_t flushes_count;
	uint32_t counts[3];
	uint32_t parents[NUMBERS_MAX], frames[NUMBERS_MAX], ends[NUMBERS_MAX];
};

struct model {
	uint64_t random;
	struct dict dicts[DICTS];
	uint32_t rows_sent;
};

static uint32_t random_below(struct model *model, uint32_t limit)
{
	model->random = model->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(model->random >> 33) % limit;
}

static void begin_model(struct model *model, uint64_t seed)
{
	*model = (struct model){ .random = seed };
	for (uint32_t i = 0; i < DICTS; i++) {
		model->dicts[i].id = 1000 * seed + i;
		model->dicts[i].of_a = i % 2;
		model->dicts[i].is_old = i >= DICTS - 2;
	}
}

static void grow_dict(struct model *model, struct dict *dict)
{
	struct flush *flush = &dict->flushes[dict->flushes_count];

	if (dict->flushes_count == FLUSHES_MAX)
		return;
	dict->flushes_count++;
	for (int kind = 0; kind < 3; kind++) {
		uint32_t more = random_below(model, PER_FLUSH_MAX) + (dict->counts[kind] == 0);

		flush->ranges[kind] = (struct range){ dict->counts[kind] + 1, more };
		flush->visible[kind] = true;
		dict->counts[kind] += more;
	}
	for (uint32_t i = 0; i < flush->ranges[CH_DICT_OF_STACKS].count; i++) {
		uint32_t number = flush->ranges[CH_DICT_OF_STACKS].first + i;

		dict->parents[number] = random_below(model, number);
		dict->frames[number] = 1 + random_below(model, dict->counts[CH_DICT_OF_FRAMES]);
		dict->ends[number] =
			dict->is_old ? number
				     : flush->ranges[CH_DICT_OF_STACKS].first +
					       random_below(model,
							    flush->ranges[CH_DICT_OF_STACKS].count);
	}
}

/* A number as the statement has it behind `words`; 0: it has not. */
static uint64_t number_behind(const char *sql, const char *words)
{
	const char *at = strstr(sql, words);

	return at ? strtoull(at + strlen(words), NULL, 10) : 0;
}

/* Whether the statement asks for the dictionary, and beyond which number. */
static bool asks_for(const char *sql, uint64_t id, const char *column, uint32_t *ret_from)
{
	char words[64], text[32];
	const char *list = strstr(sql, "dict IN ("), *end = list ? strchr(list, ')') : NULL;
	const char *at;

	*ret_from = 0;
	snprintf(words, sizeof(words), "dict = %llu AND %s > ", (unsigned long long)id, column);
	if (strstr(sql, words)) {
		*ret_from = (uint32_t)number_behind(sql, words);
		return true;
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
	at = list ? strstr(list, text) : NULL;
	return at && at < end;
}

static void put_name(char name[64], const struct dict *dict, uint32_t frame)
{
	snprintf(name, 64, "f%llu.%u", (unsigned long long)dict->id, frame);
}

static void put_old_nodes(const struct dict *dict, struct range range, struct strbuf *rows)
{
	uint32_t numbers[PER_FLUSH_MAX + 1], frames[PER_FLUSH_MAX + 1];

	for (uint32_t i = 0; i < range.count; i++) {
		numbers[i] = range.first + i;
		frames[i] = dict->frames[range.first + i] - 1;
	}
	put_numbers(rows, range.count, numbers);
	put_numbers(rows, range.count, &dict->parents[range.first]);
	put_numbers(rows, range.count, frames);
	put_stacks(rows, 0, 0, NULL, 0, 0, NULL);
}

static void put_flush_stacks(const struct dict *dict, struct range range, struct strbuf *rows)
{
	uint32_t ups[PER_FLUSH_MAX + 1];

	strbuf_add_u64(rows, dict->id);
	if (dict->is_old) {
		put_old_nodes(dict, range, rows);
		return;
	}
	put_numbers(rows, 0, NULL);
	put_numbers(rows, 0, NULL);
	put_numbers(rows, range.count, &dict->frames[range.first]);
	for (uint32_t i = 0; i < range.count; i++)
		ups[i] = range.first + i - dict->parents[range.first + i];
	put_stacks(rows, range.first, range.count, ups, range.first, range.count,
		   &dict->ends[range.first]);
}

static void put_set(const struct dict *dict, uint32_t number, struct strbuf *rows)
{
	char text[64];

	put_name(text, dict, number);
	strbuf_add_u64(rows, dict->id);
	put_number(rows, number);
	strbuf_add_varint(rows, 1);
	put(rows, "k");
	strbuf_add_varint(rows, 1);
	put(rows, text);
	strbuf_add_varint(rows, 1);
	put(rows, "");
	strbuf_add_varint(rows, 1);
	strbuf_add_u64(rows, 0);
	strbuf_add_varint(rows, 1);
	ch_put_u8(rows, 0);
}

static void put_flush(struct model *model, const struct dict *dict, enum ch_dict_kind kind,
		      struct range range, uint32_t from, struct strbuf *rows)
{
	char name[64];

	if (kind == CH_DICT_OF_STACKS) {
		if (range.count && (!from || (!dict->is_old && range.first > from)))
			put_flush_stacks(dict, range, rows);
		return;
	}
	for (uint32_t number = range.first; number < range.first + range.count; number++) {
		uint32_t written = number - (dict->is_old && kind == CH_DICT_OF_FRAMES);

		if (from && written <= from)
			continue;
		model->rows_sent++;
		put_name(name, dict, number);
		if (kind == CH_DICT_OF_FRAMES)
			put_frame(rows, dict->id, written, name);
		else
			put_set(dict, number, rows);
	}
}

static void answer(struct model *model, const struct ch_reading *reading, enum ch_dict_kind kind,
		   const char *sql, struct strbuf *rows)
{
	static const char *const columns[] = { "frame", "first_stack", "lset" };

	for (uint32_t i = 0; i < DICTS; i++) {
		const struct dict *dict = &model->dicts[i];
		uint32_t from;

		if (!asks_for(sql, dict->id, columns[kind], &from))
			continue;
		if (reading->wanted.one_tenant &&
		    slice_is(reading->wanted.tenant, "a") != dict->of_a)
			continue;
		for (uint32_t j = 0; j < dict->flushes_count; j++)
			if (dict->flushes[j].visible[kind])
				put_flush(model, dict, kind, dict->flushes[j].ranges[kind], from,
					  rows);
	}
}

/* A report of one row; its start says what it is. */
struct asked {
	const struct dict *dict;
	uint32_t stack, label_set;
};

static void put_report(struct strbuf *rows, const struct asked *asked, uint32_t at)
{
	strbuf_add_u64(rows, 5);
	strbuf_add_u64(rows, (uint64_t)(START_NS + at));
	strbuf_add_u64(rows, 9);
	strbuf_add_u64(rows, CLOCK_NS_PER_S);
	strbuf_add_u64(rows, asked->dict->id);
	put_numbers(rows, 1, &asked->stack);
	strbuf_add_varint(rows, 1);
	strbuf_add_u64(rows, 1);
	put_numbers(rows, 1, &asked->label_set);
	for (int i = 0; i < 3; i++)
		strbuf_add_varint(rows, 0);
}

static void check_row(const struct tables_view *view, const struct row *row,
		      const struct asked *asked)
{
	const struct dict *dict = asked->dict;
	uint32_t node = row->stack, number = asked->stack ? dict->ends[asked->stack] : 0;
	char name[64];

	for (; number && node; number = dict->parents[number], node = view->nodes[node].parent) {
		const struct frame *frame = &view->frames[view->nodes[node].frame];

		put_name(name, dict, dict->frames[number]);
		assert_true(slice_is(tables_text(view, frame->function), name));
	}
	assert_int_equal(number, 0);
	assert_int_equal(node, 0);
	if (asked->label_set) {
		put_name(name, dict, asked->label_set);
		assert_true(
			slice_is(tables_label_value(view, row->label_set, slice_of("k")), name));
	} else {
		assert_int_equal(row->label_set, 0);
	}
}

#define ASKED_MAX 30u

/* Which of the reports could be read. */
static void read_reports(struct model *model, struct ch_lexicons *lexicons, const char *tenant,
			 const struct asked *asked, uint32_t count, bool ret_read[ASKED_MAX])
{
	static const struct store_query every = { .by_series = true };
	struct budget memory = { .max_bytes = 64 << 20 };
	struct ch_store store = { .lexicons = lexicons };
	struct strbuf series = { 0 }, sql = { 0 }, rows = { 0 };
	struct ch_reading reading;
	struct tables_view view;
	struct err err;

	ch_reading_init(&reading, &memory);
	reading.query = &every;
	reading.store = lexicons ? &store : NULL;
	if (tenant)
		reading.wanted =
			(struct ch_wanted){ .one_tenant = true, .tenant = slice_of(tenant) };
	reading.wanted.to_ns = INT64_MAX;
	put_series(&series, 5, "a", COLUMN_DELTA, true);
	ch_catalogue_init(&reading.catalogue);
	assert_int_equal(
		ch_catalogue_take(&reading.catalogue, &reading.wanted, strbuf_slice(&series), &err),
		0);
	for (uint32_t i = 0; i < count; i++)
		put_report(&reading.reports, &asked[i], i);
	assert_int_equal(ch_find_dicts(&reading, &err), 0);
	for (int kind = 0; kind < 3; kind++) {
		strbuf_clear(&sql);
		strbuf_clear(&rows);
		if (!ch_dict_statement(&reading, (enum ch_dict_kind)kind, &sql))
			continue;
		answer(model, &reading, (enum ch_dict_kind)kind, strbuf_text(&sql), &rows);
		assert_int_equal(ch_take_dict_rows(&reading, (enum ch_dict_kind)kind,
						   strbuf_slice(&rows), &err),
				 0);
	}
	assert_int_equal(ch_take_reports(&reading, &err), 0);
	view = tables_view_of(reading.tables);
	assert_int_equal(tables_check(&view, NULL), 0);
	memset(ret_read, 0, ASKED_MAX * sizeof(*ret_read));
	for (uint32_t i = 0; i < view.reports_count; i++) {
		uint32_t at = (uint32_t)(view.reports[i].start_ns - START_NS);

		ret_read[at] = true;
		check_row(&view, &view.rows[view.reports[i].row_first], &asked[at]);
	}
	assert_int_equal(view.reports_count + reading.unreadable, count);
	ch_reading_free(&reading);
	assert_int_equal(memory.used_bytes, 0);
	strbuf_free(&series);
	strbuf_free(&sql);
	strbuf_free(&rows);
}

static uint32_t choose(struct model *model, struct asked *asked)
{
	uint32_t count = 1 + random_below(model, ASKED_MAX - 1);

	for (uint32_t i = 0; i < count; i++) {
		const struct dict *dict = &model->dicts[random_below(model, DICTS)];

		/* One more than there are: nobody wrote the last. */
		asked[i] = (struct asked){
			.dict = dict,
			.stack = random_below(model, dict->counts[CH_DICT_OF_STACKS] + 2),
			.label_set = random_below(model, dict->counts[CH_DICT_OF_LABEL_SETS] + 2),
		};
	}
	return count;
}

/* Rows of flushes become visible, in any order, or vanish. */
static void change_tables(struct model *model, bool hides)
{
	struct dict *dict = &model->dicts[random_below(model, DICTS)];

	grow_dict(model, dict);
	for (uint32_t i = 0; hides && i < dict->flushes_count; i++)
		for (int kind = 0; kind < 3; kind++)
			dict->flushes[i].visible[kind] = random_below(model, 4) > 0;
}

static void check_life(uint64_t seed, size_t bytes_max, bool hides)
{
	static const char *const tenants[] = { NULL, "a", "b" };
	struct ch_lexicons *lexicons = ch_lexicons_new(bytes_max);
	struct model *model = mem_new(struct model);

	begin_model(model, seed);
	for (uint32_t step = 0; step < 40; step++) {
		const char *tenant = tenants[random_below(model, 3)];
		bool with[ASKED_MAX], without[ASKED_MAX];
		struct asked asked[ASKED_MAX];
		uint32_t count;

		change_tables(model, hides);
		count = choose(model, asked);
		read_reports(model, NULL, tenant, asked, count, without);
		read_reports(model, lexicons, tenant, asked, count, with);
		for (uint32_t i = 0; i < count; i++) {
			assert_true(with[i] || !without[i]);
			assert_true(hides || with[i] == without[i]);
		}
		assert_true(ch_lexicons_bytes_used(lexicons) <= bytes_max);
	}
	ch_lexicons_free(lexicons);
	free(model);
}

static void answers_are_those_without_lexicons(void **state)
{
	static const size_t limits[] = { 0, 4000, 20000, 1 << 20 };

	const char *wanted = getenv("FIRN_TEST_ROUNDS");
	uint64_t rounds = wanted ? strtoull(wanted, NULL, 10) : 3;

	(void)state;
	for (uint64_t seed = 1; seed <= rounds; seed++)
		for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
			for (int hides = 0; hides < 2; hides++)
				check_life(seed, limits[i], hides);
}

/* The second time nothing is asked; then what was added alone. */
static void what_was_read_is_not_asked_again(void **state)
{
	struct ch_lexicons *lexicons = ch_lexicons_new(1 << 20);
	struct model *model = mem_new(struct model);
	struct dict *dict = &model->dicts[0];
	bool read[ASKED_MAX];
	struct asked asked;
	uint32_t sent;

	(void)state;
	begin_model(model, 3);
	for (int i = 0; i < 10; i++)
		grow_dict(model, dict);
	asked = (struct asked){ dict, dict->counts[CH_DICT_OF_STACKS],
				dict->counts[CH_DICT_OF_LABEL_SETS] };
	for (int i = 0; i < 2; i++) {
		read_reports(model, lexicons, NULL, &asked, 1, read);
		assert_true(read[0]);
		assert_int_equal(model->rows_sent, dict->counts[CH_DICT_OF_FRAMES] +
							   dict->counts[CH_DICT_OF_LABEL_SETS]);
	}
	sent = model->rows_sent;
	while (dict->counts[CH_DICT_OF_STACKS] == asked.stack)
		grow_dict(model, dict);
	asked.stack = dict->counts[CH_DICT_OF_STACKS];
	read_reports(model, lexicons, NULL, &asked, 1, read);
	assert_true(read[0]);
	assert_true(model->rows_sent - sent <= 10 * PER_FLUSH_MAX);
	ch_lexicons_free(lexicons);
	free(model);
}

static struct ch_lexicon *fill(struct ch_lexicons *lexicons, uint64_t id)
{
	struct ch_lexicon *lexicon = ch_lexicon_take(lexicons, id, false, slice_of(""));

	lock_take(&lexicon->lock);
	assert_true(ch_lexicon_add_stack(lexicon, 1, 1));
	lock_give(&lexicon->lock);
	return lexicon;
}

static bool is_kept(struct ch_lexicons *lexicons, uint64_t id)
{
	struct ch_lexicon *lexicon = ch_lexicon_take(lexicons, id, false, slice_of(""));
	bool kept = lexicon->stacks_count > 0;

	ch_lexicon_give(lexicons, lexicon);
	return kept;
}

/* What is in use stays; of the rest, what was used longest ago goes. */
static void the_least_recently_used_is_evicted(void **state)
{
	struct ch_lexicons *lexicons;
	struct ch_lexicon *used;
	size_t each;

	(void)state;
	lexicons = ch_lexicons_new(1 << 20);
	used = fill(lexicons, 1);
	each = ch_lexicon_bytes(used);
	ch_lexicon_give(lexicons, used);
	ch_lexicons_free(lexicons);

	lexicons = ch_lexicons_new(3 * each + each / 2);
	used = fill(lexicons, 1);
	for (uint64_t id = 2; id <= 4; id++)
		ch_lexicon_give(lexicons, fill(lexicons, id));
	ch_lexicon_give(lexicons, fill(lexicons, 2)); /* used again */
	assert_int_equal(ch_lexicons_bytes_used(lexicons), 3 * each);
	ch_lexicon_give(lexicons, used);
	assert_true(is_kept(lexicons, 1));
	assert_true(is_kept(lexicons, 2));
	assert_true(is_kept(lexicons, 4));
	assert_false(is_kept(lexicons, 3));
	ch_lexicons_free(lexicons);
}

struct reader {
	pthread_t thread;
	struct ch_lexicons *lexicons;
	uint64_t seed;
};

/* All readers know the same dictionaries, as they are at the end. */
static void *read_beside_others(void *argument)
{
	const struct reader *reader = argument;
	struct model *model = mem_new(struct model);

	begin_model(model, 7);
	for (uint32_t i = 0; i < DICTS; i++)
		for (uint32_t j = 0; j < FLUSHES_MAX; j++)
			grow_dict(model, &model->dicts[i]);
	model->random = reader->seed;
	for (uint32_t step = 0; step < 40; step++) {
		bool with[ASKED_MAX], without[ASKED_MAX];
		struct asked asked[ASKED_MAX];
		uint32_t count = choose(model, asked);

		read_reports(model, NULL, NULL, asked, count, without);
		read_reports(model, reader->lexicons, NULL, asked, count, with);
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(with[i], without[i]);
	}
	free(model);
	return NULL;
}

static void readers_share_lexicons(void **state)
{
	struct ch_lexicons *lexicons = ch_lexicons_new(40000); /* two or three of six */
	struct reader readers[3];

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		readers[i] = (struct reader){ .lexicons = lexicons, .seed = i + 1 };
		assert_int_equal(
			pthread_create(&readers[i].thread, NULL, read_beside_others, &readers[i]),
			0);
	}
	for (size_t i = 0; i < 3; i++)
		pthread_join(readers[i].thread, NULL);
	assert_true(ch_lexicons_bytes_used(lexicons) <= 40000);
	ch_lexicons_free(lexicons);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_those_without_lexicons),
		cmocka_unit_test(what_was_read_is_not_asked_again),
		cmocka_unit_test(the_least_recently_used_is_evicted),
		cmocka_unit_test(readers_share_lexicons),
	};

	return cmocka_run_group_tests_name("clickhouse_lexicon", tests, NULL, NULL);
}
