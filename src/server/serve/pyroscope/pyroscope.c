/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope - Pyroscope's query API: what querier.v1.QuerierService tells of types, labels and time
 * series (handlers of calls.h: protobuf in and out). A profile type is
 * "name:sample_type:sample_unit:period_type:period_unit"; CPU time of our own agent is also there
 * under Pyroscope's name for it. Field numbers: querier/v1/querier.proto, types/v1/types.proto.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "config/units.h"
#include "server/serve/pyroscope/pyro_request.h"
#include "server/serve/rpc/rpc_message.h"

#define OWN_CPU "on_cpu"
#define THEIR_CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define TYPE_LABEL "__profile_type__"

/* Types. */

/* types.v1.ProfileType{ ID = 1; name = 2; sample_type = 4 .. period_unit = 7 } */
static void put_type(struct strbuf *out, const struct profile_type *type)
{
	struct profile_type without_delta = *type;
	size_t begun = pb_begin(out, 1);
	struct strbuf id = { 0 };

	without_delta.delta = false;
	profile_type_format(&id, &without_delta);
	pb_put_bytes(out, 1, strbuf_slice(&id));
	pb_put_bytes(out, 2, type->name);
	pb_put_bytes(out, 4, type->sample_type);
	pb_put_bytes(out, 5, type->sample_unit);
	pb_put_bytes(out, 6, type->period_type);
	pb_put_bytes(out, 7, type->period_unit);
	pb_end(out, begun);
	strbuf_free(&id);
}

/* What is there, with CPU time under the name by which Pyroscope's users know it. */
static size_t known_types(const struct query_type *types, size_t count, struct profile_type *ret)
{
	bool has_own = false, has_theirs = false;
	struct profile_type theirs;

	profile_type_parse(SLICE_LITERAL(THEIR_CPU), &theirs, NULL);
	for (size_t i = 0; i < count; i++) {
		struct profile_type type = types[i].type;

		ret[i] = type;
		has_own |= slice_is(type.name, OWN_CPU);
		type.delta = false;
		has_theirs |= profile_type_equal(&type, &theirs);
	}
	if (has_own && !has_theirs)
		ret[count++] = theirs;
	return count;
}

static int list_types(struct query_request *query, struct profile_type **ret, size_t *ret_count,
		      struct err *err)
{
	struct query_type *types;
	size_t count;
	int rc = query_types(&query->source, query->params.from_ns, query->params.to_ns,
			     &query->arena, &types, &count, err);

	if (rc)
		return rc;
	*ret = arena_new_array(&query->arena, struct profile_type, count + 1);
	if (!*ret)
		return err_set(err, ERR_LIMIT, "too many profile types");
	*ret_count = known_types(types, count, *ret);
	return 0;
}

void pyro_profile_types(void *context, const struct net_request *request,
			struct net_response *response)
{
	static const struct pyro_shape shape = { .name = "ProfileTypesRequest",
						 .start = 1,
						 .end = 2 };
	struct query_request query = { 0 };
	struct profile_type *types;
	struct pyro_request pyro;
	size_t count = 0;
	struct err err;
	int rc = pyro_begin(context, request, &shape, QUERY_REQUEST_SELECTOR_OPTIONAL, &pyro,
			    &query, &err);

	if (!rc)
		rc = list_types(&query, &types, &count, &err);
	for (size_t i = 0; !rc && i < count; i++)
		put_type(&response->body, &types[i]);
	rpc_finish(request, response, rc, &query, &err);
}

/* Labels. */

struct slice_list {
	struct slice *texts;
	size_t count, capacity;
};

void pyro_label_names(void *context, const struct net_request *request,
		      struct net_response *response)
{
	static const struct pyro_shape shape = {
		.name = "LabelNamesRequest", .selector = 1, .start = 2, .end = 3
	};
	struct query_request query = { 0 };
	struct pyro_request pyro;
	struct service_name service;
	struct slice *names;
	size_t count = 0;
	struct err err;
	int rc = pyro_begin(context, request, &shape, QUERY_REQUEST_SELECTOR_OPTIONAL, &pyro,
			    &query, &err);

	if (!rc)
		rc = query_labels(&query.source, query.params.selector, query.params.from_ns,
				  query.params.to_ns, &query.arena, &names, &count, &err);
	if (!rc)
		rc = service_name_find(&query, &service, &err);
	if (!rc) {
		rpc_put_texts(&response->body, names, count);
		pb_put_bytes(&response->body, 1, SLICE_LITERAL(TYPE_LABEL));
		if (service.count && !slice_is(service.labels[0], SERVICE_NAME))
			pb_put_bytes(&response->body, 1, SLICE_LITERAL(SERVICE_NAME));
	}
	rpc_finish(request, response, rc, &query, &err);
}

static int put_type_values(struct query_request *query, struct strbuf *out, struct err *err)
{
	struct profile_type *types;
	size_t count;
	int rc = list_types(query, &types, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		struct strbuf id = { 0 };

		types[i].delta = false;
		profile_type_format(&id, &types[i]);
		pb_put_bytes(out, 1, strbuf_slice(&id));
		strbuf_free(&id);
	}
	return rc;
}

static int by_text(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* The services of one type, added to a list in the query's arena. */
static int add_services(struct query_request *query, const struct pyro_request *pyro,
			struct slice_list *list, struct err *err)
{
	struct query_range_params range = { .base = query->params };
	struct query_series_set set;
	int64_t length_ns = query->params.to_ns / 2 - query->params.from_ns / 2;
	int rc;

	range.step_ns = length_ns > CLOCK_NS_PER_S ? length_ns : CLOCK_NS_PER_S;
	memcpy(range.base.group_by, pyro->service.labels, sizeof(pyro->service.labels));
	range.base.group_by_count = pyro->service.count;
	rc = query_series(&query->source, &range, &set, err);
	if (rc)
		return rc;
	service_name_fold(&pyro->service, &set);
	for (size_t i = 0; i < set.series_count; i++) {
		if (!set.series[i].labels_count)
			continue;
		mem_grow(list->texts, list->count, list->capacity);
		list->texts[list->count++] =
			arena_copy(&query->arena, set.series[i].labels[0].value);
	}
	query_series_free(&set);
	return 0;
}

static int put_services(struct query_request *query, const struct pyro_request *pyro,
			struct strbuf *out, struct err *err)
{
	struct selector selector = query->selector;
	struct slice_list list = { 0 };
	struct profile_type *types;
	size_t count = 0, cache = 0;
	int rc = list_types(query, &types, &count, err);

	query->params.selector = &selector;
	selector.has_type = true;
	for (size_t i = 0; !rc && i < count; i++) {
		selector.type = types[i];
		rc = add_services(query, pyro, &list, err);
	}
	if (list.count)
		qsort(list.texts, list.count, sizeof(*list.texts), by_text);
	for (size_t i = 0; i < list.count; i++)
		if (!cache || !slice_equal(list.texts[cache - 1], list.texts[i]))
			list.texts[cache++] = list.texts[i];
	if (!rc)
		rpc_put_texts(out, list.texts, cache);
	free(list.texts);
	return rc;
}

void pyro_label_values(void *context, const struct net_request *request,
		       struct net_response *response)
{
	static const struct pyro_shape shape = {
		.name = "LabelValuesRequest", .label = 1, .selector = 2, .start = 3, .end = 4
	};
	struct query_request query = { 0 };
	struct pyro_request pyro;
	struct slice *values;
	size_t count = 0;
	struct err err;
	int rc = pyro_begin(context, request, &shape, QUERY_REQUEST_SELECTOR_OPTIONAL, &pyro,
			    &query, &err);

	if (!rc && slice_is(pyro.label, TYPE_LABEL))
		rc = put_type_values(&query, &response->body, &err);
	else if (!rc && pyro.service.count && slice_is(pyro.label, SERVICE_NAME))
		rc = put_services(&query, &pyro, &response->body, &err);
	else if (!rc)
		rc = query_label_values(&query.source, query.params.selector, pyro.label,
					query.params.from_ns, query.params.to_ns, &query.arena,
					&values, &count, &err);
	if (!rc)
		rpc_put_texts(&response->body, values, count);
	rpc_finish(request, response, rc, &query, &err);
}

/* Series. */

/* Label sets of one type, each once: those of the series that it has in the range. */
static int put_type_series(struct query_request *query, const struct pyro_request *pyro,
			   struct slice type, struct strbuf *out, struct err *err)
{
	struct query_range_params range = { .base = query->params };
	struct query_series_set set;
	int64_t length_ns = query->params.to_ns / 2 - query->params.from_ns / 2;
	bool wants_type = false;
	int rc;

	range.step_ns = length_ns > CLOCK_NS_PER_S ? length_ns : CLOCK_NS_PER_S;
	range.base.group_by_count = 0;
	for (size_t i = 0; i < pyro->group_by_count; i++) {
		if (slice_is(pyro->group_by[i], TYPE_LABEL))
			wants_type = true;
		else
			range.base.group_by[range.base.group_by_count++] = pyro->group_by[i];
	}
	range.sum_all = pyro->group_by_count && !range.base.group_by_count;
	rc = query_series(&query->source, &range, &set, err);
	if (rc)
		return rc;
	service_name_fold(&pyro->service, &set);
	for (size_t i = 0; i < set.series_count; i++) {
		size_t begun = pb_begin(out, 2);

		for (size_t k = 0; k < set.series[i].labels_count; k++)
			if (set.series[i].labels[k].value.len)
				rpc_put_label(out, set.series[i].labels[k].name,
					      set.series[i].labels[k].value);
		if (wants_type || !pyro->group_by_count)
			rpc_put_label(out, SLICE_LITERAL(TYPE_LABEL), type);
		pb_end(out, begun);
	}
	query_series_free(&set);
	return 0;
}

/* Asks for each type in turn: a selector without one is not a time series. */
static int put_series(struct query_request *query, const struct pyro_request *pyro,
		      struct strbuf *out, struct err *err)
{
	struct selector selector = query->selector;
	struct profile_type *types;
	size_t count = 0;
	int rc = list_types(query, &types, &count, err);

	query->params.selector = &selector;
	for (size_t i = 0; !rc && i < count; i++) {
		struct strbuf id = { 0 };

		selector.has_type = true;
		selector.type = types[i];
		types[i].delta = false;
		profile_type_format(&id, &types[i]);
		rc = put_type_series(query, pyro, strbuf_slice(&id), out, err);
		strbuf_free(&id);
	}
	return rc;
}

void pyro_series(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct pyro_shape shape = {
		.name = "SeriesRequest", .selector = 1, .group_by = 2, .start = 3, .end = 4
	};
	struct query_request query = { 0 };
	struct pyro_request pyro;
	struct err err;
	int rc = pyro_begin(context, request, &shape, QUERY_REQUEST_SELECTOR_OPTIONAL, &pyro,
			    &query, &err);

	if (!rc)
		rc = put_series(&query, &pyro, &response->body, &err);
	rpc_finish(request, response, rc, &query, &err);
}

/* types.v1.Point{ value = 1 double; timestamp = 2 } */
static void put_point(struct strbuf *out, const struct query_point *point)
{
	size_t begun = pb_begin(out, 2);

	pb_put_double(out, 1, (double)point->value);
	pb_put_varint(out, 2, (uint64_t)(point->at_ns / CLOCK_NS_PER_MS));
	pb_end(out, begun);
}

static void put_time_series(struct strbuf *out, const struct query_series_set *set)
{
	for (size_t i = 0; i < set->series_count; i++) {
		const struct query_series *series = &set->series[i];
		size_t begun = pb_begin(out, 1);

		for (size_t k = 0; k < series->labels_count; k++)
			rpc_put_label(out, series->labels[k].name, series->labels[k].value);
		for (size_t k = 0; k < series->points_count; k++)
			put_point(out, &series->points[k]);
		pb_end(out, begun);
	}
}

static int step_of(double seconds, int64_t *ret_ns, struct err *err)
{
	if (!(seconds >= 0.001) || seconds > 1e9)
		return err_set(err, ERR_INVALID,
			       "step: %g s is not between a millisecond and 30 years", seconds);
	*ret_ns = (int64_t)(seconds * (double)CLOCK_NS_PER_S);
	return 0;
}

void pyro_select_series(void *context, const struct net_request *request,
			struct net_response *response)
{
	static const struct pyro_shape shape = { .name = "SelectSeriesRequest",
						 .type = 1,
						 .selector = 2,
						 .start = 3,
						 .end = 4,
						 .group_by = 5,
						 .step = 6,
						 .stack_selector = 8 };
	struct query_request query = { 0 };
	struct query_range_params range;
	struct query_series_set set;
	struct pyro_request pyro;
	struct err err;
	int rc = pyro_begin(context, request, &shape, QUERY_REQUEST_TYPE_NEEDED, &pyro, &query,
			    &err);

	range = (struct query_range_params){ .base = query.params,
					     .sum_all = !pyro.group_by_count };
	if (!rc && pyro.call_site_count)
		rc = err_set(&err, ERR_UNSUPPORTED,
			     "SelectSeries: a call site is for flame graphs");
	memcpy(range.base.group_by, pyro.group_by, sizeof(pyro.group_by));
	range.base.group_by_count = pyro.group_by_count;
	if (!rc)
		rc = step_of(pyro.step_s, &range.step_ns, &err);
	if (!rc)
		rc = query_request_series(&query, &range, &set, &err);
	if (!rc) {
		service_name_fold(&pyro.service, &set);
		put_time_series(&response->body, &set);
		query_series_free(&set);
	}
	rpc_finish(request, response, rc, &query, &err);
}

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
	int rc = pyro_begin_with(context, request, &always, QUERY_REQUEST_SELECTOR_OPTIONAL, &query,
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
	int rc = pyro_begin(context, request, &shape, QUERY_REQUEST_TYPE_NEEDED, &pyro, &query,
			    &err);

	range = (struct query_range_params){ .base = query.params };
	range.step_ns = query.params.to_ns / 2 - query.params.from_ns / 2;
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
