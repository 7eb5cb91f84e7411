/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_reading.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SHARED_DICTS_MAX 500u /* each that is partly known makes a statement longer */
#define SERVICES_BYTES_MAX ((size_t)64 << 10)

void ch_reading_init(struct ch_reading *reading, struct budget *memory)
{
	*reading = (struct ch_reading){ .memory = memory, .pins = mem_new(struct ch_pins) };
	reading->tables = &reading->pins->tables;
	tables_init(reading->tables);
}

void ch_pins_free(struct ch_pins *pins, struct budget *memory)
{
	if (!pins)
		return;
	budget_give(memory, pins->taken);
	tables_free(&pins->tables);
	free(pins->sums);
	free(pins);
}

/* Where the lexicon of the dict at this place comes from. */
static struct ch_lexicons *lexicons_of(const struct ch_reading *reading, uint32_t at)
{
	return reading->store && at < SHARED_DICTS_MAX ? reading->store->lexicons : NULL;
}

void ch_reading_give_dicts(struct ch_reading *reading)
{
	for (uint32_t i = 0; i < reading->dicts_count; i++) {
		ch_lexicon_give(lexicons_of(reading, i), reading->dicts[i].lexicon);
		free(reading->dicts[i].stacks.ids);
		free(reading->dicts[i].label_sets.ids);
	}
	free(reading->dicts);
	idmap_free(&reading->dicts_map);
	reading->dicts = NULL;
	reading->dicts_map = (struct idmap){ 0 };
	reading->dicts_count = reading->dicts_capacity = 0;
	reading->dicts_bytes = 0;
}

static void free_pins(struct ch_reading *reading)
{
	if (reading->pins)
		reading->pins->taken = reading->taken;
	ch_pins_free(reading->pins, reading->memory);
	reading->pins = NULL;
	reading->taken = 0;
}

void ch_reading_free(struct ch_reading *reading)
{
	free_pins(reading);
	ch_reading_give_dicts(reading);
	ch_catalogue_free(&reading->catalogue);
	strbuf_free(&reading->reports);
	free(reading->rows);
	free(reading->values);
	free(reading->moments);
}

void ch_reading_again(struct ch_reading *reading)
{
	free_pins(reading);
	ch_reading_give_dicts(reading);
	strbuf_free(&reading->reports);
	reading->pins = mem_new(struct ch_pins);
	reading->tables = &reading->pins->tables;
	tables_init(reading->tables);
	reading->unreadable = 0;
	reading->sums_capacity = 0;
}

int ch_malformed(const char *table, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "ClickHouse: a row of %s cannot be read; is the table of another firn?",
		       table);
}

int ch_too_large(const struct ch_reading *reading, struct err *err)
{
	return err_set(err, ERR_NO_MEMORY,
		       "profiles of that time and of other running queries take more than %lld MiB "
		       "of memory; ask for a shorter time or for fewer series, or raise "
		       "--query-memory",
		       (long long)(reading->memory->max_bytes >> 20));
}

int ch_pay(struct ch_reading *reading, size_t bytes, struct err *err)
{
	size_t all = bytes + reading->dicts_bytes + tables_bytes(reading->tables);

	if (all > reading->taken && !budget_take(reading->memory, all - reading->taken))
		return ch_too_large(reading, err);
	if (all < reading->taken)
		budget_give(reading->memory, reading->taken - all);
	reading->taken = all;
	return 0;
}

static void name(struct ch_reading *reading, struct ch_numbers *numbers, uint32_t number)
{
	if (number >= CH_NUMBERS_MAX)
		return; /* which no lexicon knows */
	if (number >= numbers->count) {
		uint32_t count = number + number / 2 + 64;

		numbers->ids = mem_realloc(numbers->ids, count, sizeof(uint32_t));
		memset(numbers->ids + numbers->count, 0,
		       (count - numbers->count) * sizeof(uint32_t));
		reading->dicts_bytes += (count - numbers->count) * sizeof(uint32_t);
		numbers->count = count;
	}
	numbers->ids[number] = CH_NAMED;
}

void ch_name(struct ch_reading *reading, struct ch_read_dict *dict, uint32_t stack,
	     uint32_t label_set)
{
	if (stack > dict->stacks_max)
		dict->stacks_max = stack;
	if (label_set > dict->label_sets_max)
		dict->label_sets_max = label_set;
	if (stack)
		name(reading, &dict->stacks, stack);
	if (label_set)
		name(reading, &dict->label_sets, label_set);
}

static bool dict_equal(const void *context, uint32_t id, const void *key)
{
	const struct ch_reading *reading = context;

	return reading->dicts[id].id == *(const uint64_t *)key;
}

struct ch_read_dict *ch_find_dict(const struct ch_reading *reading, uint64_t id)
{
	uint32_t at = idmap_find(&reading->dicts_map, id, dict_equal, reading, &id);

	return at == IDMAP_NONE ? NULL : &reading->dicts[at];
}

struct ch_read_dict *ch_add_dict(struct ch_reading *reading, uint64_t id)
{
	const struct ch_wanted *wanted = &reading->wanted;
	struct ch_read_dict *dict = ch_find_dict(reading, id);
	struct ch_lexicon *lexicon;

	if (dict)
		return dict;
	lexicon = ch_lexicon_take(lexicons_of(reading, reading->dicts_count), id,
				  wanted->one_tenant, wanted->tenant);
	lock_take(&lexicon->lock);
	reading->dicts_bytes += ch_lexicon_bytes(lexicon);
	lock_give(&lexicon->lock);
	mem_grow(reading->dicts, reading->dicts_count, reading->dicts_capacity);
	dict = &reading->dicts[reading->dicts_count];
	*dict = (struct ch_read_dict){ .id = id, .lexicon = lexicon };
	idmap_add(&reading->dicts_map, id, reading->dicts_count++);
	return dict;
}

void ch_add_services(const struct ch_reading *reading, struct strbuf *sql)
{
	const struct ch_catalogue *catalogue = &reading->catalogue;
	struct tables_view view = tables_view_of(&catalogue->tables);
	uint8_t *seen = mem_new_array(uint8_t, view.strings_count);
	struct strbuf list = { 0 };
	uint32_t count = 0;

	for (uint32_t i = 0; i < catalogue->count; i++) {
		uint32_t service = catalogue->items[i].service;

		if (seen[service])
			continue;
		seen[service] = 1;
		strbuf_add_text(&list, count++ ? "," : "");
		ch_add_text(&list, tables_text(&view, service));
	}
	if (list.len < SERVICES_BYTES_MAX)
		strbuf_addf(sql, " AND service IN (%s)", strbuf_text(&list));
	strbuf_free(&list);
	free(seen);
}

void ch_add_series(const struct ch_reading *reading, struct strbuf *sql)
{
	const struct ch_catalogue *catalogue = &reading->catalogue;

	if (catalogue->count > CH_IDS_MAX)
		return; /* those that are not meant are left out when they have come */
	strbuf_add_text(sql, " AND series IN (");
	for (uint32_t i = 0; i < catalogue->count; i++)
		strbuf_addf(sql, "%s%llu", i ? "," : "",
			    (unsigned long long)catalogue->items[i].id);
	strbuf_add_text(sql, ")");
}

struct slice ch_take_array(struct byte_reader *in, size_t element_bytes, uint32_t *ret_count)
{
	*ret_count = ch_take_count(in, element_bytes);
	return byte_reader_bytes(in, *ret_count * element_bytes);
}
