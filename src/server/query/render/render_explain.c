/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer cost and where it came from, as text and JSON. */
#include <inttypes.h>

#include "base/clock.h"
#include "codec/wire/json.h"
#include "server/query/render/measure.h"
#include "server/query/render/render.h"

static const char *const levels[SEGMENT_LEVELS] = {
	[SEGMENT_RAW] = "raw",
	[SEGMENT_HOUR_SERIES] = "hour of a series",
	[SEGMENT_HOUR_ALL] = "hour of all series",
	[SEGMENT_DAY_SERIES] = "day of a series",
	[SEGMENT_DAY_ALL] = "day of all series",
	[SEGMENT_TEN_SERIES] = "ten minutes of a series",
	[SEGMENT_TEN_ALL] = "ten minutes of all series",
};

static const char *const level_keys[SEGMENT_LEVELS] = {
	[SEGMENT_RAW] = "raw",
	[SEGMENT_HOUR_SERIES] = "hour_series",
	[SEGMENT_HOUR_ALL] = "hour_all",
	[SEGMENT_DAY_SERIES] = "day_series",
	[SEGMENT_DAY_ALL] = "day_all",
	[SEGMENT_TEN_SERIES] = "ten_minutes_series",
	[SEGMENT_TEN_ALL] = "ten_minutes_all",
};

static const char *const steps[QUERY_STEPS] = {
	[QUERY_STEP_SELECT] = "select",
	[QUERY_STEP_SUM] = "sum",
	[QUERY_STEP_NAME] = "name",
	[QUERY_STEP_STACKS] = "stacks",
};

static void add_bytes(struct strbuf *out, uint64_t bytes)
{
	measure_value_auto(out, bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX,
			   SLICE_LITERAL("bytes"));
}

static int64_t total_ns(const struct query_stats *stats)
{
	int64_t sum = 0;

	for (int i = 0; i < QUERY_STEPS; i++)
		sum += stats->took_ns[i];
	return sum;
}

static uint64_t skipped(uint64_t all, uint64_t read)
{
	return all > read ? all - read : 0;
}

static void add_levels(const struct query_stats *stats, struct strbuf *out)
{
	strbuf_addf(out, "partitions  %" PRIu64 " with data\n", stats->partitions_used);
	for (int i = 0; i < SEGMENT_LEVELS; i++)
		if (stats->segments[i])
			strbuf_addf(out, "segments    %" PRIu64 " of %" PRIu64 ", %s\n",
				    stats->segments_used[i], stats->segments[i], levels[i]);
}

void render_explain_text(const struct query_stats *stats, struct strbuf *out)
{
	add_levels(stats, out);
	strbuf_addf(out,
		    "blocks      %" PRIu64 ": %" PRIu64 " read, %" PRIu64 " headers read, %" PRIu64
		    " skipped\nbytes       ",
		    stats->blocks, stats->blocks_read, stats->headers_read,
		    skipped(stats->blocks, stats->blocks_touched));
	add_bytes(out, stats->bytes_read);
	strbuf_add_text(out, " of samples read, ");
	add_bytes(out, skipped(stats->blocks_bytes, stats->bytes_read));
	strbuf_addf(out,
		    " skipped\nreports     %" PRIu64 " looked at\nrows        %" PRIu64
		    " summed\nstacks      %" PRIu64 " nodes of segments\nindexes     of %" PRIu64
		    " segments, %" PRIu64 " made\nthreads     %" PRIu32 "\n",
		    stats->reports_read, stats->rows_read, stats->nodes_merged, stats->indexes_used,
		    stats->indexes_made, stats->threads);
	for (int i = 0; i < QUERY_STEPS; i++)
		strbuf_addf(out, "%-11s %.3f ms\n", steps[i],
			    (double)stats->took_ns[i] / CLOCK_NS_PER_MS);
	strbuf_addf(out, "all         %.3f ms\nkept        %s\n",
		    (double)total_ns(stats) / CLOCK_NS_PER_MS,
		    stats->kept ? "yes: asked again, it is not computed until something changes"
				: "no: it is computed each time");
}

static void put(struct json *json, const char *key, uint64_t value)
{
	json_put_key(json, key);
	json_put_uint(json, value);
}

void render_explain_json(const struct query_stats *stats, struct strbuf *out)
{
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	put(&json, "partitions", stats->partitions_used);
	json_member_object(&json, "segments");
	for (int i = 0; i < SEGMENT_LEVELS; i++) {
		json_put_key(&json, level_keys[i]);
		json_open_object(&json);
		put(&json, "asked", stats->segments[i]);
		put(&json, "used", stats->segments_used[i]);
		json_close_object(&json);
	}
	json_close_object(&json);
	put(&json, "blocks", stats->blocks);
	put(&json, "blocks_read", stats->blocks_read);
	put(&json, "headers_read", stats->headers_read);
	put(&json, "blocks_skipped", skipped(stats->blocks, stats->blocks_touched));
	put(&json, "bytes_read", stats->bytes_read);
	put(&json, "bytes_skipped", skipped(stats->blocks_bytes, stats->bytes_read));
	put(&json, "reports", stats->reports_read);
	put(&json, "rows", stats->rows_read);
	put(&json, "nodes", stats->nodes_merged);
	put(&json, "indexes_used", stats->indexes_used);
	put(&json, "indexes_made", stats->indexes_made);
	put(&json, "threads", stats->threads);
	json_member_bool(&json, "kept", stats->kept);
	json_member_object(&json, "ms");
	for (int i = 0; i < QUERY_STEPS; i++) {
		json_put_key(&json, steps[i]);
		json_put_double(&json, (double)stats->took_ns[i] / CLOCK_NS_PER_MS);
	}
	json_close_object(&json);
	json_close_object(&json);
}
