/* SPDX-License-Identifier: Apache-2.0 */
/* What dictionaries say: frames, the stacks that are made of them, labels of rows. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/clickhouse/ch_reading.h"

static struct slice rest_of(const struct byte_reader *in)
{
	return slice_from((const char *)in->at, byte_reader_left(in));
}

/* What was read from `begin` on. */
static struct slice read_since(const struct byte_reader *in, struct slice begin)
{
	return slice_from(begin.data, begin.len - byte_reader_left(in));
}

/* A frame, whose texts are behind each other as fields of a frame are. */
static struct frame read_frame(struct byte_reader *in, struct slice ret_texts[5])
{
	struct frame frame = { .kind = (uint32_t)byte_reader_fixed(in, 1) };

	frame.flags = (uint32_t)byte_reader_fixed(in, 1);
	frame.address = byte_reader_u64(in);
	for (size_t i = 0; i < 5; i++)
		ret_texts[i] = ch_take_text(in);
	frame.line = byte_reader_u32(in);
	frame.column = byte_reader_u32(in);
	frame.start_line = byte_reader_u32(in);
	return frame;
}

static int take_frame(struct byte_reader *in, struct ch_lexicon *lexicon, struct err *err)
{
	uint32_t number = byte_reader_u32(in);
	struct slice row = rest_of(in), texts[5];
	struct frame frame = read_frame(in, texts);

	if (in->failed || !lexicon)
		return 0;
	if (frame.kind >= FRAME_KINDS ||
	    !ch_lexicon_add_row(&lexicon->frames, number, read_since(in, row)))
		return ch_malformed("firn_frame", err);
	return 0;
}

/* Arrays of a row of firn_stack. Version 1 has numbers and parents; version 2 the rest. */
struct stacks_row {
	struct slice numbers, parents, frames, ups, ends;
	uint32_t numbers_count, parents_count, frames_count, ups_count, ends_count;
	uint32_t first_node, first_stack;
};

static void take_stacks_row(struct byte_reader *in, struct stacks_row *ret)
{
	ret->numbers = ch_take_array(in, 4, &ret->numbers_count);
	ret->parents = ch_take_array(in, 4, &ret->parents_count);
	ret->frames = ch_take_array(in, 4, &ret->frames_count);
	ret->first_node = byte_reader_u32(in);
	ret->ups = ch_take_array(in, 4, &ret->ups_count);
	ret->first_stack = byte_reader_u32(in);
	ret->ends = ch_take_array(in, 4, &ret->ends_count);
}

static int take_node(struct ch_lexicon *lexicon, uint32_t number, uint32_t parent, uint32_t frame,
		     struct err *err)
{
	const struct ch_lexicon_node node = { parent, frame + 1 };

	if (parent >= number || !ch_lexicon_add_node(lexicon, number, node))
		return ch_malformed("firn_stack", err);
	return 0;
}

static int take_listed_nodes(struct ch_lexicon *lexicon, const struct stacks_row *row,
			     struct err *err)
{
	int rc = 0;

	if (row->parents_count != row->numbers_count || row->frames_count != row->numbers_count)
		return ch_malformed("firn_stack", err);
	for (uint32_t i = 0; !rc && i < row->numbers_count; i++)
		rc = take_node(lexicon, ch_u32_at(row->numbers, i), ch_u32_at(row->parents, i),
			       ch_u32_at(row->frames, i), err);
	return rc;
}

static int take_dense_nodes(struct ch_lexicon *lexicon, const struct stacks_row *row,
			    struct err *err)
{
	int rc = 0;

	if (row->numbers_count || row->parents_count || row->frames_count != row->ups_count ||
	    row->first_node > UINT32_MAX - row->ups_count)
		return ch_malformed("firn_stack", err);
	for (uint32_t i = 0; !rc && i < row->ups_count; i++) {
		uint32_t number = row->first_node + i, up = ch_u32_at(row->ups, i);

		if (!up || up > number)
			return ch_malformed("firn_stack", err);
		rc = take_node(lexicon, number, number - up, ch_u32_at(row->frames, i), err);
	}
	return rc;
}

static int take_ends(struct ch_lexicon *lexicon, const struct stacks_row *row, struct err *err)
{
	if (row->first_stack > UINT32_MAX - row->ends_count)
		return ch_malformed("firn_stack", err);
	for (uint32_t i = 0; i < row->ends_count; i++)
		if (!ch_lexicon_add_stack(lexicon, row->first_stack + i, ch_u32_at(row->ends, i)))
			return ch_malformed("firn_stack", err);
	return 0;
}

static int take_stacks(struct byte_reader *in, struct ch_lexicon *lexicon, struct err *err)
{
	struct stacks_row row;
	int rc;

	take_stacks_row(in, &row);
	if (in->failed || !lexicon)
		return 0;
	if (!row.ends_count)
		return take_listed_nodes(lexicon, &row, err);
	lexicon->numbers_stacks = true;
	rc = take_dense_nodes(lexicon, &row, err);
	return rc ? rc : take_ends(lexicon, &row, err);
}

struct labels {
	struct slice names[TABLES_LABELS_PER_SET_MAX], texts[TABLES_LABELS_PER_SET_MAX],
		units[TABLES_LABELS_PER_SET_MAX];
	int64_t numbers[TABLES_LABELS_PER_SET_MAX];
	bool numeric[TABLES_LABELS_PER_SET_MAX];
	uint32_t count;
};

/* False: there is another number of elements, which are not read. */
static bool read_count(struct byte_reader *in, uint32_t expected, size_t element_bytes)
{
	return ch_take_count(in, element_bytes) == expected && !in->failed;
}

static bool read_texts(struct byte_reader *in, uint32_t count, struct slice *ret)
{
	if (!read_count(in, count, 1))
		return false;
	for (uint32_t i = 0; i < count; i++)
		ret[i] = ch_take_text(in);
	return !in->failed;
}

static bool read_labels(struct byte_reader *in, struct labels *ret)
{
	struct byte_reader ahead = *in;

	ret->count = ch_take_count(&ahead, 1);
	if (ret->count > TABLES_LABELS_PER_SET_MAX || !read_texts(in, ret->count, ret->names) ||
	    !read_texts(in, ret->count, ret->texts) || !read_texts(in, ret->count, ret->units) ||
	    !read_count(in, ret->count, 8))
		return false;
	for (uint32_t i = 0; i < ret->count; i++)
		ret->numbers[i] = (int64_t)byte_reader_u64(in);
	if (!read_count(in, ret->count, 1))
		return false;
	for (uint32_t i = 0; i < ret->count; i++)
		ret->numeric[i] = byte_reader_fixed(in, 1) != 0;
	return !in->failed;
}

static int take_label_set(struct byte_reader *in, struct ch_lexicon *lexicon, struct err *err)
{
	uint32_t number = byte_reader_u32(in);
	struct slice row = rest_of(in);
	struct labels labels;

	if (!read_labels(in, &labels))
		return ch_malformed("firn_label_set", err);
	if (lexicon && !ch_lexicon_add_row(&lexicon->label_sets, number, read_since(in, row)))
		return ch_malformed("firn_label_set", err);
	return 0;
}

typedef int take_row_f(struct byte_reader *in, struct ch_lexicon *lexicon, struct err *err);

static const struct kind {
	const char *table, *columns, *number, *order;
	take_row_f *take;
} kinds[] = {
	[CH_DICT_OF_FRAMES] = { "firn_frame",
				"frame, kind, flags, address, mapping, build_id, function, "
				"system_name, file, line, col, start_line",
				"frame", " ORDER BY dict, frame", take_frame },
	[CH_DICT_OF_STACKS] = { "firn_stack",
				"nodes, parents, frames, first_node, ups, first_stack, ends",
				"first_stack", " ORDER BY dict, flush", take_stacks },
	[CH_DICT_OF_LABEL_SETS] = { "firn_label_set", "lset, names, texts, units, numbers, numeric",
				    "lset", " ORDER BY dict, lset", take_label_set },
};

/* Each row begins with its dictionary. Others than those that are needed are read over. */
static int take_row(struct ch_reading *reading, enum ch_dict_kind kind, struct byte_reader *in,
		    struct err *err)
{
	const struct ch_read_dict *dict = ch_find_dict(reading, byte_reader_u64(in));
	struct ch_lexicon *lexicon = dict ? dict->lexicon : NULL;
	size_t before;
	int rc;

	if (!lexicon)
		return kinds[kind].take(in, NULL, err);
	lock_take(&lexicon->lock);
	before = ch_lexicon_bytes(lexicon);
	rc = kinds[kind].take(in, lexicon, err);
	reading->dicts_bytes += ch_lexicon_bytes(lexicon) - before;
	lock_give(&lexicon->lock);
	return rc;
}

int ch_take_dict_rows(struct ch_reading *reading, enum ch_dict_kind kind, struct slice rows,
		      struct err *err)
{
	struct byte_reader in = byte_reader_of(rows);
	uint32_t count = 0;
	int rc = 0;

	while (!rc && byte_reader_left(&in)) {
		rc = take_row(reading, kind, &in, err);
		if (!rc && in.failed)
			rc = ch_malformed(kinds[kind].table, err);
		if (!rc && !(count++ % CH_ROWS_BETWEEN_CHECKS))
			rc = ch_pay(reading, reading->reports.len + rows.len, err);
	}
	return rc;
}

/* Whether the query needs rows that the lexicon lacks; *ret_from: they lie beyond this number. */
static bool lacks(const struct ch_reading *reading, enum ch_dict_kind kind,
		  const struct ch_read_dict *dict, uint32_t *ret_from)
{
	const struct ch_lexicon *lexicon = dict->lexicon;

	if (kind == CH_DICT_OF_LABEL_SETS) {
		*ret_from = lexicon->label_sets.whole;
		return dict->label_sets_max > lexicon->label_sets.whole;
	}
	*ret_from = 0;
	if (lexicon->numbers_stacks)
		*ret_from =
			kind == CH_DICT_OF_FRAMES ? lexicon->frames.whole : lexicon->stacks_whole;
	return reading->query->reads != STORE_LISTS && /* which name no stacks */
	       !ch_lexicon_has_stacks(lexicon, dict->stacks_max);
}

/* " AND (dict IN (...) OR dict = .. AND .. OR ..)". False: no dictionary lacks anything. */
static bool add_lacking(const struct ch_reading *reading, enum ch_dict_kind kind,
			struct strbuf *sql)
{
	struct strbuf whole = { 0 }, beyond = { 0 };
	uint32_t count = 0, from;

	for (uint32_t i = 0; i < reading->dicts_count; i++) {
		const struct ch_read_dict *dict = &reading->dicts[i];
		unsigned long long id = dict->id;
		bool is_lacking;

		lock_take(&dict->lexicon->lock);
		is_lacking = lacks(reading, kind, dict, &from);
		lock_give(&dict->lexicon->lock);
		count += is_lacking;
		if (is_lacking && from)
			strbuf_addf(&beyond, " OR dict = %llu AND %s > %u", id, kinds[kind].number,
				    from);
		else if (is_lacking)
			strbuf_addf(&whole, ",%llu", id);
	}
	if (count && count <= CH_IDS_MAX) {
		if (whole.len)
			strbuf_addf(sql, " AND (dict IN (%s)%s)", strbuf_text(&whole) + 1,
				    beyond.len ? strbuf_text(&beyond) : "");
		else
			strbuf_addf(sql, " AND (%s)", strbuf_text(&beyond) + strlen(" OR "));
	}
	strbuf_free(&whole);
	strbuf_free(&beyond);
	return count > 0;
}

/* " FROM table WHERE ...": rows of the dictionaries that are needed. */
static void add_from(const struct ch_reading *reading, const char *table, struct strbuf *sql)
{
	const struct ch_wanted *wanted = &reading->wanted;

	strbuf_addf(sql, " FROM %s WHERE 1", table);
	if (wanted->one_tenant) {
		strbuf_add_text(sql, " AND tenant = ");
		ch_add_text(sql, wanted->tenant);
	}
	if (wanted->from_ns > 0)
		strbuf_addf(sql, " AND day >= toDate(%lld)",
			    (long long)(wanted->from_ns / CH_DAY_NS));
	if (wanted->to_ns < INT64_MAX)
		strbuf_addf(sql, " AND day <= toDate(%lld)",
			    (long long)(wanted->to_ns / CH_DAY_NS));
	ch_add_services(reading, sql);
}

bool ch_dict_statement(const struct ch_reading *reading, enum ch_dict_kind kind, struct strbuf *sql)
{
	strbuf_addf(sql, "SELECT dict, %s", kinds[kind].columns);
	add_from(reading, kinds[kind].table, sql);
	if (!add_lacking(reading, kind, sql))
		return false;
	strbuf_add_text(sql, kinds[kind].order);
	return true;
}

static int read_kind(struct ch_reading *reading, enum ch_dict_kind kind, struct err *err)
{
	struct strbuf sql = { 0 }, rows = { 0 };
	int rc = 0;

	if (ch_dict_statement(reading, kind, &sql)) {
		rc = ch_store_ask(reading->store, reading->query, &sql, &rows, err);
		if (!rc)
			rc = ch_take_dict_rows(reading, kind, strbuf_slice(&rows), err);
	}
	strbuf_free(&sql);
	strbuf_free(&rows);
	return rc;
}

static void count_hits(const struct ch_reading *reading)
{
	for (uint32_t i = 0; i < reading->dicts_count; i++) {
		const struct ch_read_dict *dict = &reading->dicts[i];
		uint32_t from;
		bool is_miss;

		if (!dict->stacks_max && !dict->label_sets_max)
			continue;
		lock_take(&dict->lexicon->lock);
		is_miss = lacks(reading, CH_DICT_OF_STACKS, dict, &from) ||
			  lacks(reading, CH_DICT_OF_LABEL_SETS, dict, &from);
		lock_give(&dict->lexicon->lock);
		metric_add(is_miss ? &ch_lexicon_misses : &ch_lexicon_hits, 1);
	}
}

/* Frames first, since stacks that are written meanwhile name more of them. */
int ch_read_dicts(struct ch_reading *reading, struct err *err)
{
	int rc;

	count_hits(reading);
	rc = read_kind(reading, CH_DICT_OF_FRAMES, err);
	if (!rc)
		rc = read_kind(reading, CH_DICT_OF_STACKS, err);
	return rc ? rc : read_kind(reading, CH_DICT_OF_LABEL_SETS, err);
}

static int translate_frame(struct ch_reading *reading, const struct ch_lexicon *lexicon,
			   uint32_t number, uint32_t *ret, struct err *err)
{
	struct slice row = ch_lexicon_row(&lexicon->frames, number), texts[5];
	struct byte_reader in = byte_reader_of(row);
	struct frame frame;

	if (!row.len)
		return 0;
	frame = read_frame(&in, texts);
	assert(!in.failed && frame.kind < FRAME_KINDS);
	frame.mapping_file = tables_string(reading->tables, texts[0]);
	frame.build_id = tables_string(reading->tables, texts[1]);
	frame.function = tables_string(reading->tables, texts[2]);
	frame.system_name = tables_string(reading->tables, texts[3]);
	frame.file = tables_string(reading->tables, texts[4]);
	*ret = tables_frame(reading->tables, &frame) + 1;
	return *ret ? 0 : ch_too_large(reading, err); /* TABLES_FULL + 1 */
}

/* Marks the nodes of stacks that are named. */
static void mark_nodes(const struct ch_read_dict *dict, uint32_t *nodes)
{
	for (uint32_t i = 1; i < dict->stacks.count; i++) {
		const struct ch_lexicon_node *node;
		uint32_t number = dict->stacks.ids[i] ? ch_lexicon_stack(dict->lexicon, i) : 0;

		for (; number; number = node->parent) {
			node = ch_lexicon_node(dict->lexicon, number);
			if (!node || nodes[number])
				break;
			nodes[number] = CH_NAMED;
		}
	}
}

/*
 * Marks become ids plus one, in the order of numbers, so that callers come first; 0: something is
 * missing.
 */
static int translate_nodes(struct ch_reading *reading, const struct ch_lexicon *lexicon,
			   uint32_t *nodes, uint32_t *frames, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 1; !rc && i < lexicon->nodes_count; i++) {
		const struct ch_lexicon_node *node = &lexicon->nodes[i];
		uint32_t parent = node->parent ? nodes[node->parent] : 1, frame = node->frame - 1;

		if (!nodes[i])
			continue;
		nodes[i] = 0;
		if (!parent || frame >= lexicon->frames.count)
			continue;
		if (!frames[frame])
			rc = translate_frame(reading, lexicon, frame, &frames[frame], err);
		if (rc || !frames[frame])
			continue;
		nodes[i] = tables_node(reading->tables, parent - 1, frames[frame] - 1) + 1;
		if (!nodes[i])
			rc = ch_too_large(reading, err); /* TABLES_FULL + 1 */
	}
	return rc;
}

static int translate_stacks(struct ch_reading *reading, struct ch_read_dict *dict, struct err *err)
{
	const struct ch_lexicon *lexicon = dict->lexicon;
	uint32_t *nodes = mem_new_array(uint32_t, lexicon->nodes_count);
	uint32_t *frames = mem_new_array(uint32_t, lexicon->frames.count);
	int rc;

	mark_nodes(dict, nodes);
	rc = translate_nodes(reading, lexicon, nodes, frames, err);
	for (uint32_t i = 1; i < dict->stacks.count; i++) {
		uint32_t end = dict->stacks.ids[i] ? ch_lexicon_stack(lexicon, i) : 0;

		dict->stacks.ids[i] = end < lexicon->nodes_count ? nodes[end] : 0;
	}
	free(nodes);
	free(frames);
	return rc;
}

static int translate_label_set(struct ch_reading *reading, struct slice row, uint32_t *ret,
			       struct err *err)
{
	struct label set[TABLES_LABELS_PER_SET_MAX] = { 0 };
	struct byte_reader in = byte_reader_of(row);
	struct tables *tables = reading->tables;
	struct labels labels;
	bool is_whole;

	*ret = 0;
	if (!row.len)
		return 0;
	is_whole = read_labels(&in, &labels);
	assert(is_whole); /* take_label_set has read it */
	for (uint32_t i = 0; i < labels.count; i++)
		set[i] = (struct label){ .name = tables_string(tables, labels.names[i]),
					 .value = tables_string(tables, labels.texts[i]),
					 .unit = tables_string(tables, labels.units[i]),
					 .number = labels.numbers[i],
					 .numeric = labels.numeric[i] };
	*ret = tables_label_set(tables, set, labels.count) + 1;
	return *ret ? 0 : ch_too_large(reading, err); /* TABLES_FULL + 1 */
}

int ch_translate_dicts(struct ch_reading *reading, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < reading->dicts_count; i++) {
		struct ch_read_dict *dict = &reading->dicts[i];
		struct ch_numbers *sets = &dict->label_sets;
		struct ch_lexicon *lexicon = dict->lexicon;

		lock_take(&lexicon->lock);
		if (dict->stacks_max)
			rc = translate_stacks(reading, dict, err);
		for (uint32_t j = 1; !rc && j < sets->count; j++)
			if (sets->ids[j])
				rc = translate_label_set(reading,
							 ch_lexicon_row(&lexicon->label_sets, j),
							 &sets->ids[j], err);
		lock_give(&lexicon->lock);
		if (!rc)
			rc = ch_pay(reading, reading->reports.len, err);
	}
	return rc;
}
