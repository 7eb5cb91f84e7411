/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_moments.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"

#define STREAM_BYTES_MIN 256u /* for a frame of its own */

void part_moments_free(struct part_moments *moments)
{
	free(moments->items);
	free(moments->links);
	idmap_free(&moments->map);
	*moments = (struct part_moments){ 0 };
}

void part_moments_clear(struct part_moments *moments)
{
	moments->count = 0;
	moments->links_count = 0;
	idmap_clear(&moments->map);
}

/* Gathering. */

static void add_link(struct part_moments *moments, const struct trace_link *link)
{
	mem_grow(moments->links, moments->links_count, moments->links_capacity);
	moments->links[moments->links_count++] = *link;
}

static bool link_equal(const void *context, uint32_t id, const void *key)
{
	const struct part_moments *moments = context;

	return !memcmp(&moments->links[id], key, sizeof(struct trace_link));
}

static uint32_t number_link(struct part_moments *moments, const struct trace_link *link)
{
	uint64_t hash = hash_bytes(link, sizeof(*link));
	uint32_t id = idmap_find(&moments->map, hash, link_equal, moments, link);

	if (id != IDMAP_NONE)
		return id;
	add_link(moments, link);
	idmap_add(&moments->map, hash, moments->links_count - 1);
	return moments->links_count - 1;
}

void part_moments_add(struct part_moments *moments, const struct part_report *report,
		      const uint32_t *rows)
{
	static const struct trace_link none;
	size_t first = moments->count;

	if (!moments->links_count)
		add_link(moments, &none);
	for (uint32_t i = 0; i < report->moment_count; i++) {
		struct moment moment = report->moments[i];

		assert(moment.row < report->row_count);
		moment.row = rows[moment.row];
		if (moment.link)
			moment.link = number_link(moments, &report->links[moment.link]);
		mem_grow(moments->items, moments->count, moments->capacity);
		moments->items[moments->count++] = moment;
	}
	if (report->moment_count)
		tables_order_moments(moments->items + first, report->moment_count);
}

/* Writing. */

static void encode_rows(const struct part_moments *moments, const uint32_t *counts,
			uint32_t reports_count, struct strbuf *out)
{
	const struct moment *at = moments->items;

	for (uint32_t i = 0; i < reports_count; i++) {
		uint32_t row = 0;

		for (uint32_t j = 0; j < counts[i]; j++, at++) {
			strbuf_add_varint(out, at->row - row);
			row = at->row;
		}
	}
	assert(at == moments->items + moments->count);
}

static void encode_links(const struct part_moments *moments, struct strbuf *out)
{
	for (size_t i = 0, run; i < moments->count; i += run) {
		uint32_t link = moments->items[i].link;

		for (run = 1; i + run < moments->count; run++)
			if (moments->items[i + run].link != link)
				break;
		strbuf_add_varint(out, link);
		strbuf_add_varint(out, run);
	}
}

void part_moments_encode(const struct part_moments *moments, const uint32_t *counts,
			 uint32_t reports_count, struct part_chunk_builder *out)
{
	assert(moments->count && moments->links_count);
	strbuf_add_varint(&out->raw, moments->links_count - 1);
	for (uint32_t i = 1; i < moments->links_count; i++)
		strbuf_add(&out->raw, (const char *)&moments->links[i], sizeof(struct trace_link));
	part_chunk_cut(out, STREAM_BYTES_MIN);
	for (uint32_t i = 0; i < reports_count; i++)
		strbuf_add_varint(&out->raw, counts[i]);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	encode_rows(moments, counts, reports_count, &out->raw);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	/* UINT32_MAX, none, becomes 0. The low bytes are as good as random. */
	for (size_t i = 0; i < moments->count; i++)
		strbuf_add_varint(&out->raw, (moments->items[i].tick + 1) >> 8);
	part_chunk_cut(out, STREAM_BYTES_MIN);
	for (size_t i = 0; i < moments->count; i++)
		strbuf_add_byte(&out->raw, (char)(moments->items[i].tick + 1));
	part_chunk_cut(out, STREAM_BYTES_MIN);
	if (moments->links_count > 1)
		encode_links(moments, &out->raw);
}

/* Reading. */

static int corrupt(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "times of samples: %s", what);
}

static bool read_links(struct byte_reader *in, struct part_moments *into)
{
	static const struct trace_link none;
	uint64_t count = byte_reader_varint(in);

	add_link(into, &none);
	for (uint64_t i = 0; i < count; i++) {
		struct slice link = byte_reader_bytes(in, sizeof(struct trace_link));

		if (in->failed)
			return false;
		add_link(into, (const struct trace_link *)link.data);
	}
	return true;
}

/* How many each report has; each takes several bytes of what is left. */
static bool read_counts(struct byte_reader *in, struct segment_report *reports,
			uint32_t reports_count, struct part_moments *into)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < reports_count; i++) {
		reports[i].moment_first = count;
		reports[i].moment_count = byte_reader_varint32(in);
		count += reports[i].moment_count;
	}
	if (in->failed || count > byte_reader_left(in))
		return false;
	if (into->capacity < count) {
		into->items = mem_realloc(into->items, count, sizeof(*into->items));
		into->capacity = count;
	}
	into->count = count;
	return true;
}

static int read_rows(struct byte_reader *in, const struct segment_report *reports,
		     uint32_t reports_count, struct moment *at, struct err *err)
{
	for (uint32_t i = 0; i < reports_count; i++) {
		uint64_t row = 0;

		for (uint32_t j = 0; j < reports[i].moment_count; j++, at++) {
			row += byte_reader_varint32(in);
			if (row >= reports[i].row_count)
				return corrupt("one has no row", err);
			at->row = (uint32_t)row;
		}
	}
	return 0;
}

static int read_ticks(struct byte_reader *in, struct part_moments *into, struct err *err)
{
	struct byte_reader high = *in;

	for (size_t i = 0; i < into->count; i++)
		byte_reader_varint(in);
	for (size_t i = 0; i < into->count; i++) {
		uint64_t tick = byte_reader_varint(&high);

		if (tick > UINT32_MAX >> 8)
			return corrupt("one is too late", err);
		tick = tick << 8 | byte_reader_fixed(in, 1);
		into->items[i].tick = (uint32_t)tick - 1;
	}
	return in->failed ? corrupt("end early", err) : 0;
}

static int read_link_runs(struct byte_reader *in, struct part_moments *into, struct err *err)
{
	for (size_t i = 0; i < into->count;) {
		uint32_t link = into->links_count > 1 ? byte_reader_varint32(in) : 0;
		uint64_t run = into->links_count > 1 ? byte_reader_varint(in) : into->count;

		if (in->failed || link >= into->links_count || !run || run > into->count - i)
			return corrupt("runs of links", err);
		for (; run; run--)
			into->items[i++].link = link;
	}
	return 0;
}

static int check_order(const struct segment_report *reports, uint32_t reports_count,
		       const struct moment *items, struct err *err)
{
	for (uint32_t i = 0; i < reports_count; i++) {
		const struct segment_report *report = &reports[i];

		/* Without moments there are no items. */
		for (uint32_t j = 1; j < report->moment_count; j++) {
			const struct moment *at = &items[report->moment_first + j];

			if (at->row == at[-1].row && at->tick < at[-1].tick)
				return corrupt("are not in order", err);
		}
	}
	return 0;
}

int part_moments_decode(struct slice raw, struct segment_report *reports, uint32_t reports_count,
			struct part_moments *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(raw);
	int rc;

	part_moments_clear(ret);
	if (!read_links(&in, ret) || !read_counts(&in, reports, reports_count, ret))
		return corrupt("are more than bytes", err);
	rc = read_rows(&in, reports, reports_count, ret->items, err);
	if (!rc)
		rc = read_ticks(&in, ret, err);
	if (!rc)
		rc = read_link_runs(&in, ret, err);
	if (!rc)
		rc = check_order(reports, reports_count, ret->items, err);
	if (!rc && byte_reader_left(&in))
		rc = corrupt("bytes behind them", err);
	return rc;
}
