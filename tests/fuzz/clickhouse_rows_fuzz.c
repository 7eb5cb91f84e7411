/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of ClickHouse, which are a stranger's: of series, frames, stacks, label sets and reports,
 * each behind its length in two bytes. The first byte chooses reports or sums. What comes out
 * is tables that hold together.
 */
#include <stdint.h>
#include <stdlib.h>

#include "server/clickhouse/ch_reading.h"
#include "server/persist/log/tables_check.h"

#define MEMORY_BYTES ((int64_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct slice take_part(struct byte_reader *in)
{
	size_t len = byte_reader_u16(in);

	if (len > byte_reader_left(in))
		len = byte_reader_left(in);
	return byte_reader_bytes(in, len);
}

static int take_dicts(struct ch_reading *reading, const struct slice parts[3])
{
	int rc = 0;

	for (int kind = CH_DICT_OF_FRAMES; !rc && kind <= CH_DICT_OF_LABEL_SETS; kind++)
		rc = ch_take_dict_rows(reading, (enum ch_dict_kind)kind, parts[kind], NULL);
	return rc;
}

static int take_all(struct ch_reading *reading, bool summed, struct byte_reader *in)
{
	struct slice series = take_part(in), dicts[3];
	bool raw;
	int rc;

	for (size_t i = 0; i < 3; i++)
		dicts[i] = take_part(in);
	strbuf_add_slice(&reading->reports, byte_reader_bytes(in, byte_reader_left(in)));
	rc = ch_catalogue_take(&reading->catalogue, &reading->wanted, series, NULL);
	if (rc)
		return rc;
	ch_sums_begin(reading);
	rc = summed ? ch_find_sums_dicts(reading, NULL) : ch_find_dicts(reading, NULL);
	if (!rc)
		rc = take_dicts(reading, dicts);
	if (rc)
		return rc;
	return summed ? ch_take_sums(reading, &raw, NULL) : ch_take_reports(reading, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct byte_reader in = byte_reader_of(slice_from((const char *)data, size));
	struct budget memory = { .max_bytes = MEMORY_BYTES };
	const struct store_query query = { .sums_only = size && data[0] & 1 };
	struct ch_reading reading;

	(void)byte_reader_fixed(&in, 1);
	ch_reading_init(&reading, &memory);
	reading.query = &query;
	ch_catalogue_init(&reading.catalogue);
	if (!take_all(&reading, query.sums_only, &in)) {
		struct tables_view view = tables_view_of(reading.tables);

		if (tables_check(&view, NULL))
			abort(); /* every id was made here */
	}
	ch_reading_free(&reading);
	return 0;
}
