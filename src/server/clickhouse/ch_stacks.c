/* SPDX-License-Identifier: Apache-2.0 */
/* What dictionaries say: frames, then the stacks that are made of them, then labels of rows. */
#include <string.h>

#include "server/clickhouse/ch_reading.h"

/* " FROM table WHERE ...": rows of the dictionaries that are needed. */
static void add_dict_where(struct ch_reading *reading, const char *table, struct strbuf *sql)
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
	if (reading->dicts_count > CH_IDS_MAX)
		return;
	strbuf_add_text(sql, " AND dict IN (");
	for (uint32_t i = 0; i < reading->dicts_count; i++)
		strbuf_addf(sql, "%s%llu", i ? "," : "", (unsigned long long)reading->dicts[i].id);
	strbuf_add_text(sql, ")");
}

static int take_frame(struct ch_reading *reading, struct byte_reader *in, struct ch_read_dict *dict,
		      struct err *err)
{
	uint32_t number = byte_reader_u32(in), *id;
	struct slice texts[5];
	struct frame frame = { .kind = (uint32_t)byte_reader_fixed(in, 1) };

	frame.flags = (uint32_t)byte_reader_fixed(in, 1);
	frame.address = byte_reader_u64(in);
	for (size_t i = 0; i < 5; i++)
		texts[i] = ch_take_text(in);
	frame.line = byte_reader_u32(in);
	frame.column = byte_reader_u32(in);
	frame.start_line = byte_reader_u32(in);
	if (in->failed || !dict)
		return 0;
	id = ch_number(&dict->frames, number);
	if (!id || frame.kind >= FRAME_KINDS)
		return ch_malformed("firn_frame", err);
	if (*id)
		return 0;
	frame.mapping_file = tables_string(reading->tables, texts[0]);
	frame.build_id = tables_string(reading->tables, texts[1]);
	frame.function = tables_string(reading->tables, texts[2]);
	frame.system_name = tables_string(reading->tables, texts[3]);
	frame.file = tables_string(reading->tables, texts[4]);
	*id = tables_frame(reading->tables, &frame) + 1;
	return *id ? 0 : ch_too_large(reading, err); /* TABLES_FULL + 1 */
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

/* A node that is there already stays; one whose frame or parent is missing is missing too. */
static int take_node(struct ch_reading *reading, struct ch_read_dict *dict, uint32_t number,
		     uint32_t parent, uint32_t frame, struct err *err)
{
	uint32_t *id = ch_number(&dict->nodes, number);
	uint32_t parent_id = parent ? ch_known(&dict->nodes, parent) : 1;
	uint32_t frame_id = ch_known(&dict->frames, frame);

	if (!id || !number || parent >= number)
		return ch_malformed("firn_stack", err);
	if (*id || !frame_id || !parent_id)
		return 0;
	*id = tables_node(reading->tables, parent_id - 1, frame_id - 1) + 1;
	return *id ? 0 : ch_too_large(reading, err); /* TABLES_FULL + 1 */
}

static int take_listed_nodes(struct ch_reading *reading, struct ch_read_dict *dict,
			     const struct stacks_row *row, struct err *err)
{
	int rc = 0;

	if (row->parents_count != row->numbers_count || row->frames_count != row->numbers_count)
		return ch_malformed("firn_stack", err);
	for (uint32_t i = 0; !rc && i < row->numbers_count; i++)
		rc = take_node(reading, dict, ch_u32_at(row->numbers, i),
			       ch_u32_at(row->parents, i), ch_u32_at(row->frames, i), err);
	return rc;
}

static int take_dense_nodes(struct ch_reading *reading, struct ch_read_dict *dict,
			    const struct stacks_row *row, struct err *err)
{
	int rc = 0;

	if (row->numbers_count || row->parents_count || row->frames_count != row->ups_count ||
	    row->first_node > UINT32_MAX - row->ups_count)
		return ch_malformed("firn_stack", err);
	for (uint32_t i = 0; !rc && i < row->ups_count; i++) {
		uint32_t number = row->first_node + i, up = ch_u32_at(row->ups, i);

		if (!up || up > number)
			return ch_malformed("firn_stack", err);
		rc = take_node(reading, dict, number, number - up, ch_u32_at(row->frames, i), err);
	}
	return rc;
}

static int take_ends(struct ch_read_dict *dict, const struct stacks_row *row, struct err *err)
{
	if (row->first_stack > UINT32_MAX - row->ends_count)
		return ch_malformed("firn_stack", err);
	for (uint32_t i = 0; i < row->ends_count; i++) {
		uint32_t *id = ch_number(&dict->stacks, row->first_stack + i);

		if (!id)
			return ch_malformed("firn_stack", err);
		*id = ch_known(&dict->nodes, ch_u32_at(row->ends, i));
	}
	return 0;
}

static int take_stacks(struct ch_reading *reading, struct byte_reader *in,
		       struct ch_read_dict *dict, struct err *err)
{
	struct stacks_row row;
	int rc;

	take_stacks_row(in, &row);
	if (in->failed || !dict)
		return 0;
	if (!row.ends_count)
		return take_listed_nodes(reading, dict, &row, err);
	dict->numbers_stacks = true;
	rc = take_dense_nodes(reading, dict, &row, err);
	return rc ? rc : take_ends(dict, &row, err);
}

static int take_label_set(struct ch_reading *reading, struct byte_reader *in,
			  struct ch_read_dict *dict, struct err *err)
{
	struct label labels[TABLES_LABELS_PER_SET_MAX] = { 0 };
	struct tables *tables = reading->tables;
	uint32_t number = byte_reader_u32(in), counts[5], *id;

	counts[0] = ch_take_count(in, 1);
	if (counts[0] > TABLES_LABELS_PER_SET_MAX)
		return ch_malformed("firn_label_set", err);
	for (uint32_t i = 0; i < counts[0]; i++)
		labels[i].name = tables_string(tables, ch_take_text(in));
	counts[1] = ch_take_count(in, 1);
	for (uint32_t i = 0; i < counts[1] && counts[1] == counts[0]; i++)
		labels[i].value = tables_string(tables, ch_take_text(in));
	counts[2] = ch_take_count(in, 1);
	for (uint32_t i = 0; i < counts[2] && counts[2] == counts[0]; i++)
		labels[i].unit = tables_string(tables, ch_take_text(in));
	counts[3] = ch_take_count(in, 8);
	for (uint32_t i = 0; i < counts[3] && counts[3] == counts[0]; i++)
		labels[i].number = (int64_t)byte_reader_u64(in);
	counts[4] = ch_take_count(in, 1);
	for (uint32_t i = 0; i < counts[4] && counts[4] == counts[0]; i++)
		labels[i].numeric = byte_reader_fixed(in, 1) != 0;
	if (in->failed)
		return 0;
	for (size_t i = 1; i < 5; i++)
		if (counts[i] != counts[0])
			return ch_malformed("firn_label_set", err);
	if (!dict)
		return 0;
	id = ch_number(&dict->label_sets, number);
	if (!id)
		return ch_malformed("firn_label_set", err);
	if (!*id)
		*id = tables_label_set(tables, labels, counts[0]) + 1;
	return *id ? 0 : ch_too_large(reading, err);
}

typedef int take_row_f(struct ch_reading *reading, struct byte_reader *in,
		       struct ch_read_dict *dict, struct err *err);

static const struct kind {
	const char *table, *columns, *order;
	take_row_f *take;
} kinds[] = {
	[CH_DICT_OF_FRAMES] = { "firn_frame",
				"frame, kind, flags, address, mapping, build_id, function, "
				"system_name, file, line, col, start_line",
				" ORDER BY dict, frame", take_frame },
	/* In the order in which they were written: no stack comes before what it hangs on. */
	[CH_DICT_OF_STACKS] = { "firn_stack",
				"nodes, parents, frames, first_node, ups, first_stack, ends",
				" ORDER BY dict, flush", take_stacks },
	[CH_DICT_OF_LABEL_SETS] = { "firn_label_set", "lset, names, texts, units, numbers, numeric",
				    " ORDER BY dict, lset", take_label_set },
};

/* Each row begins with its dictionary. Others than those that are needed are read over. */
int ch_take_dict_rows(struct ch_reading *reading, enum ch_dict_kind kind, struct slice rows,
		      struct err *err)
{
	struct byte_reader in = byte_reader_of(rows);
	uint32_t count = 0;
	int rc = 0;

	while (!rc && byte_reader_left(&in)) {
		struct ch_read_dict *dict = ch_find_dict(reading, byte_reader_u64(&in));

		rc = kinds[kind].take(reading, &in, dict, err);
		if (!rc && in.failed)
			rc = ch_malformed(kinds[kind].table, err);
		if (!rc && !(count++ % CH_ROWS_BETWEEN_CHECKS))
			rc = ch_pay(reading, reading->reports.len + rows.len, err);
	}
	return rc;
}

static int read_kind(struct ch_reading *reading, enum ch_dict_kind kind, struct err *err)
{
	struct strbuf sql = { 0 }, rows = { 0 };
	int rc;

	strbuf_addf(&sql, "SELECT dict, %s", kinds[kind].columns);
	add_dict_where(reading, kinds[kind].table, &sql);
	strbuf_add_text(&sql, kinds[kind].order);
	rc = ch_store_ask(reading->store, reading->query, &sql, &rows, err);
	if (!rc)
		rc = ch_take_dict_rows(reading, kind, strbuf_slice(&rows), err);
	strbuf_free(&sql);
	strbuf_free(&rows);
	return rc;
}

/* Lists name no stacks. */
int ch_read_dicts(struct ch_reading *reading, struct err *err)
{
	int rc = 0;

	if (!reading->dicts_count)
		return 0;
	if (reading->query->reads != STORE_LISTS) {
		rc = read_kind(reading, CH_DICT_OF_FRAMES, err);
		if (!rc)
			rc = read_kind(reading, CH_DICT_OF_STACKS, err);
	}
	return rc ? rc : read_kind(reading, CH_DICT_OF_LABEL_SETS, err);
}
