/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_stats - what querier.v1.QuerierService tells of how much there is: GetProfileStats and
 * AnalyzeQuery (handlers of calls.h: protobuf in and out).
 */
#include <stdlib.h>

#include "base/mem.h"
#include "config/units.h"
#include "server/serve/pyroscope/pyro_request.h"
#include "server/serve/rpc/rpc_message.h"

struct span {
	bool any;
	int64_t oldest_ns, newest_ns;
};

static void widen(struct span *span, int64_t oldest_ns, int64_t newest_ns)
{
	if (!span->any || oldest_ns < span->oldest_ns)
		span->oldest_ns = oldest_ns;
	if (!span->any || newest_ns > span->newest_ns)
		span->newest_ns = newest_ns;
	span->any = true;
}

/* Zones tell, where there are some and no report is left out. */
static int widen_by_segment(struct span *span, const struct segment *segment, struct err *err)
{
	struct segment_buffer buffer = { 0 };
	int rc = 0;

	for (uint32_t i = 0; !rc && i < segment->blocks_count; i++) {
		struct segment_block block;

		if (segment->zones && !segment->deletions_count) {
			widen(span, segment->zones[i].start_min_ns, segment->zones[i].start_max_ns);
			continue;
		}
		rc = segment_read(segment, i, SEGMENT_HEADERS, &buffer, &block, err);
		for (uint32_t at = 0; !rc && at < block.reports_count; at++)
			widen(span, block.reports[at].start_ns, block.reports[at].start_ns);
	}
	segment_buffer_free(&buffer);
	return rc;
}

/* GetProfileStatsResponse{ data_ingested = 1; oldest_profile_time = 2; newest_profile_time = 3 } */
void pyro_stats(void *context, const struct net_request *request, struct net_response *response)
{
	struct pyro_request always = { 0 };
	struct query_request query = { 0 };
	struct span span = { 0 };
	struct err err;
	int rc = pyro_begin_with(context, request, &always, PARAMETERS_SELECTOR_OPTIONAL, &query,
				 &err);

	for (size_t i = 0; !rc && i < query.snapshot.count; i++)
		rc = widen_by_segment(&span, &query.snapshot.segments[i], &err);
	if (!rc) {
		pb_put_varint(&response->body, 1, span.any);
		pb_put_varint(&response->body, 2, (uint64_t)(span.oldest_ns / CLOCK_NS_PER_MS));
		pb_put_varint(&response->body, 3, (uint64_t)(span.newest_ns / CLOCK_NS_PER_MS));
	}
	rpc_finish(request, response, rc, &query, &err);
}

/*
 * AnalyzeQueryResponse{ scopes = 1 { component_type = 1; component_count = 2; block_count = 3;
 * series_count = 4; profile_count = 5; profile_bytes = 8 }; impact = 2 { total_bytes = 2;
 * total_queried_series = 3 } }
 */
static void put_analysis(struct strbuf *out, const struct query_series_set *set)
{
	uint64_t reports = 0;
	size_t begun;

	for (size_t i = 0; i < set->series_count; i++)
		for (size_t k = 0; k < set->series[i].points_count; k++)
			reports += set->series[i].points[k].reports;
	begun = pb_begin(out, 1);
	pb_put_bytes(out, 1, SLICE_LITERAL("store"));
	pb_put_varint(out, 2, 1);
	pb_put_varint(out, 3, set->stats.blocks);
	pb_put_varint(out, 4, set->series_count);
	pb_put_varint(out, 5, reports);
	pb_put_varint(out, 8, set->stats.blocks_bytes);
	pb_end(out, begun);
	begun = pb_begin(out, 2);
	pb_put_varint(out, 2, set->stats.blocks_bytes);
	pb_put_varint(out, 3, set->series_count);
	pb_end(out, begun);
}

void pyro_analyze(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct pyro_shape shape = {
		.name = "AnalyzeQueryRequest", .start = 2, .end = 3, .selector = 4
	};
	struct query_request query = { 0 };
	struct query_range_params range;
	struct query_series_set set;
	struct pyro_request pyro;
	struct err err;
	int rc = pyro_begin(context, request, &shape, PARAMETERS_TYPE_NEEDED, &pyro, &query, &err);

	range = (struct query_range_params){ .base = query.asked.params };
	range.step_ns = query.asked.params.to_ns / 2 - query.asked.params.from_ns / 2;
	if (range.step_ns < CLOCK_NS_PER_S)
		range.step_ns = CLOCK_NS_PER_S;
	if (!rc)
		rc = query_request_series(&query, &range, &set, &err);
	if (!rc) {
		put_analysis(&response->body, &set);
		query_series_free(&set);
	}
	rpc_finish(request, response, rc, &query, &err);
}
