/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_query - parca.query.v1alpha1.QueryService, but for Query, which is rpc_report's. Field
 * numbers: parca/query/v1alpha1/query.proto.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/pb.h"
#include "config/units.h"
#include "server/query/series/flamechart.h"
#include "server/serve/api/query_request.h"
#include "server/serve/rpc/rpc_message.h"

#define STEPS_DEFAULT 1000

static void put_time(struct strbuf *out, uint32_t field, int64_t at_ns)
{
	size_t begun = pb_begin(out, field);

	pb_put_varint(out, 1, (uint64_t)(at_ns / CLOCK_NS_PER_S));
	pb_put_varint(out, 2, (uint64_t)(at_ns % CLOCK_NS_PER_S));
	pb_end(out, begun);
}

/* Where the fields of a request's texts and times are; 0 = it has none. */
struct rpc_shape {
	const char *name;
	uint32_t query, match, start, end, step, limit, sum_by, label, profile_type;
};

#define MATCHES_MAX 16

struct rpc_request {
	struct slice query, label, profile_type;
	struct slice matches[MATCHES_MAX];
	size_t matches_count;
	int64_t start_ns, end_ns, step_ns;
	uint64_t limit;
	struct slice sum_by[QUERY_GROUP_BY_MAX];
	size_t sum_by_count;
};

static int read_field(const struct rpc_shape *shape, const struct pb_reader *in,
		      const struct pb_field *field, struct rpc_request *ret, struct err *err)
{
	if (field->wire == PB_VARINT && field->number == shape->limit)
		ret->limit = field->value;
	if (field->wire != PB_BYTES)
		return 0;
	if (field->number == shape->query)
		ret->query = field->bytes;
	else if (field->number == shape->label)
		ret->label = field->bytes;
	else if (field->number == shape->profile_type)
		ret->profile_type = field->bytes;
	else if (field->number == shape->start)
		return rpc_read_time(in, field->bytes, &ret->start_ns, err);
	else if (field->number == shape->end)
		return rpc_read_time(in, field->bytes, &ret->end_ns, err);
	else if (field->number == shape->step)
		return rpc_read_time(in, field->bytes, &ret->step_ns, err);
	else if (field->number == shape->match) {
		if (ret->matches_count == MATCHES_MAX)
			return err_set(err, ERR_LIMIT, "match: more than %d", MATCHES_MAX);
		ret->matches[ret->matches_count++] = field->bytes;
	} else if (field->number == shape->sum_by) {
		if (ret->sum_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "sum_by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		ret->sum_by[ret->sum_by_count++] = field->bytes;
	}
	return 0;
}

/* A range of all time when the request leaves it open. */
static int read_request(const struct rpc_shape *shape, struct slice bytes, struct rpc_request *ret,
			struct err *err)
{
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;

	*ret = (struct rpc_request){ .end_ns = INT64_MAX };
	while (pb_next(&in, &field)) {
		int rc = read_field(shape, &in, &field, ret, err);

		if (rc)
			return err_wrap(err, "%s", shape->name);
	}
	return in.problem ? pb_fail(&in, shape->name, err) : 0;
}

/* A selector without a type is one of the type that stands in a field of its own. */
static int begin_with(struct serve *serve, const struct net_request *request,
		      const struct rpc_request *rpc, struct slice selector,
		      enum parameters_need need, struct query_request *query, struct err *err)
{
	struct strbuf text = { 0 };
	int rc;

	if (!selector.len || selector.data[0] == '{')
		strbuf_add_slice(&text, rpc->profile_type);
	strbuf_add_slice(&text, selector);
	rc = query_request_begin_with(serve, request, strbuf_slice(&text), need, rpc->start_ns,
				      rpc->end_ns, query, err);
	strbuf_free(&text);
	return rc;
}

static int begin(struct serve *serve, const struct net_request *request,
		 const struct rpc_shape *shape, enum parameters_need need, struct rpc_request *rpc,
		 struct query_request *query, struct err *err)
{
	int rc = read_request(shape, request->body, rpc, err);

	return rc ? rc : begin_with(serve, request, rpc, rpc->query, need, query, err);
}

/* `types` and `count` are set on success; `query` is to be finished in any case. */
static int ask_types(struct serve *serve, const struct net_request *request,
		     const struct rpc_shape *shape, struct query_request *query,
		     struct query_type **types, size_t *count, struct err *err)
{
	struct rpc_request rpc;
	int rc = begin(serve, request, shape, PARAMETERS_SELECTOR_OPTIONAL, &rpc, query, err);

	return rc ? rc
		  : query_types(&query->source, rpc.start_ns, rpc.end_ns, &query->asked.arena,
				types, count, err);
}

void rpc_profile_types(void *context, const struct net_request *request,
		       struct net_response *response)
{
	static const struct rpc_shape shape = { .name = "ProfileTypesRequest",
						.start = 1,
						.end = 2 };
	struct query_request query = { 0 };
	struct query_type *types;
	struct err err;
	size_t count = 0;
	int rc = ask_types(context, request, &shape, &query, &types, &count, &err);

	for (size_t i = 0; !rc && i < count; i++) {
		size_t begun = pb_begin(&response->body, 1);

		pb_put_bytes(&response->body, 1, types[i].type.name);
		pb_put_bytes(&response->body, 2, types[i].type.sample_type);
		pb_put_bytes(&response->body, 3, types[i].type.sample_unit);
		pb_put_bytes(&response->body, 4, types[i].type.period_type);
		pb_put_bytes(&response->body, 5, types[i].type.period_unit);
		pb_put_varint(&response->body, 6, types[i].type.delta);
		pb_end(&response->body, begun);
	}
	rpc_finish(request, response, rc, &query, &err);
}

/* Names, or the values of a label. */
static int list_texts(struct query_request *query, struct slice label, struct slice **ret,
		      size_t *ret_count, struct err *err)
{
	const struct query_params *params = &query->asked.params;

	if (!label.data)
		return query_labels(&query->source, params->selector, params->from_ns,
				    params->to_ns, &query->asked.arena, ret, ret_count, err);
	return query_label_values(&query->source, params->selector, label, params->from_ns,
				  params->to_ns, &query->asked.arena, ret, ret_count, err);
}

static int by_text(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* What any of the matches has: sorted, each once. */
static void answer_texts(struct serve *serve, const struct net_request *request,
			 struct net_response *response, const struct rpc_shape *shape,
			 bool is_values)
{
	struct query_request query = { 0 };
	struct rpc_request rpc;
	struct arena arena;
	struct slice *all = NULL;
	size_t count = 0, capacity = 0, cache = 0;
	struct err err;
	int rc = read_request(shape, request->body, &rpc, &err);

	arena_init(&arena, 0); /* queries bound what they list */
	if (!rpc.matches_count)
		rpc.matches_count = 1; /* which is empty */
	if (is_values && !rpc.label.len && !rc)
		rc = err_set(&err, ERR_INVALID, "ValuesRequest: label_name is missing");
	for (size_t i = 0; !rc && i < rpc.matches_count; i++) {
		struct slice *texts;
		size_t more = 0;

		rc = begin_with(serve, request, &rpc, rpc.matches[i], PARAMETERS_SELECTOR_OPTIONAL,
				&query, &err);
		if (!rc)
			rc = list_texts(&query, is_values ? rpc.label : (struct slice){ 0 }, &texts,
					&more, &err);
		for (size_t k = 0; !rc && k < more; k++) {
			mem_grow(all, count, capacity);
			all[count++] = arena_copy(&arena, texts[k]);
		}
		query_request_end(&query);
	}
	if (count)
		qsort(all, count, sizeof(*all), by_text);
	for (size_t i = 0; i < count; i++)
		if (!cache || !slice_equal(all[cache - 1], all[i]))
			all[cache++] = all[i];
	if (!rc)
		rpc_put_texts(&response->body, all, cache);
	else
		net_response_error(request, response, &err);
	free(all);
	arena_free(&arena);
}

void rpc_labels(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct rpc_shape shape = {
		.name = "LabelsRequest", .match = 1, .start = 2, .end = 3, .profile_type = 4
	};

	answer_texts(context, request, response, &shape, false);
}

void rpc_values(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct rpc_shape shape = { .name = "ValuesRequest",
						.label = 1,
						.match = 2,
						.start = 3,
						.end = 4,
						.profile_type = 5 };

	answer_texts(context, request, response, &shape, true);
}

/* HasProfileDataResponse{ has_data = 1 } */
void rpc_has_data(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct rpc_shape shape = { .name = "HasProfileDataRequest" };
	struct query_request query = { 0 };
	struct query_type *types;
	struct err err;
	size_t count = 0;
	int rc = ask_types(context, request, &shape, &query, &types, &count, &err);

	if (!rc)
		pb_put_varint(&response->body, 1, count > 0);
	rpc_finish(request, response, rc, &query, &err);
}

/* Parca has never answered this one either: SeriesResponse has no fields. */
void rpc_series(void *context, const struct net_request *request, struct net_response *response)
{
	struct err err;

	(void)context;
	err_set(&err, ERR_UNSUPPORTED, "Series: its answer has no fields; use Labels and Values");
	net_response_error(request, response, &err);
}

void rpc_share(void *context, const struct net_request *request, struct net_response *response)
{
	struct err err;

	(void)context;
	err_set(&err, ERR_UNSUPPORTED,
		"ShareProfile: profiles are sent to no other server; ask for a PPROF report");
	net_response_error(request, response, &err);
}

static void put_value_type(struct strbuf *out, uint32_t field, struct slice type, struct slice unit)
{
	size_t begun = pb_begin(out, field);

	pb_put_bytes(out, 1, type);
	pb_put_bytes(out, 2, unit);
	pb_end(out, begun);
}

/* What values of a time series are told in. */
struct shown_as {
	struct slice type, unit;
	int64_t factor; /* of values: of samples the period, which makes time of them */
	int64_t step_ns;
	int64_t duration_ns; /* that a point is of; 0 for gauges */
	double per_second;   /* of the rate: nanoseconds per second are cores */
};

/* As Parca has it: samples become time, time per time has no unit, others are per second. */
static struct shown_as shown_as_of(const struct query_series_set *set, int64_t step_ns)
{
	struct shown_as as = { .type = set->type.sample_type,
			       .unit = set->type.sample_unit,
			       .factor = 1,
			       .step_ns = step_ns,
			       .per_second = 1 };

	if (!set->type.delta)
		return as;
	as.duration_ns = step_ns > set->report_ns ? step_ns : set->report_ns;
	if (slice_is(as.type, "samples") && slice_is(as.unit, "count") && set->period > 0) {
		as.factor = set->period;
		as.type = set->type.period_type;
		as.unit = set->type.period_unit;
	}
	if (slice_is(as.unit, "nanoseconds"))
		as.per_second = 1.0 / (double)CLOCK_NS_PER_S;
	return as;
}

/* MetricsSample{ timestamp = 1; value = 2; value_per_second = 3 double; duration = 4; count = 5 }
 */
static void put_point(struct strbuf *out, const struct query_point *point,
		      const struct shown_as *as)
{
	size_t begun = pb_begin(out, 2);
	int64_t value;

	if (__builtin_mul_overflow(point->value, as->factor, &value))
		value = INT64_MAX;
	put_time(out, 1, point->at_ns);
	pb_put_varint(out, 2, (uint64_t)value);
	pb_put_double(out, 3, point->per_second * (double)as->factor * as->per_second);
	pb_put_varint(out, 4, (uint64_t)as->duration_ns);
	pb_put_varint(out, 5, point->reports);
	pb_end(out, begun);
}

/* MetricsSeries{ labelset = 1; samples = 2; period_type = 3; sample_type = 4 } */
static void put_series(struct strbuf *out, const struct query_series_set *set,
		       const struct query_series *series, const struct shown_as *as)
{
	size_t begun = pb_begin(out, 1), labels = pb_begin(out, 1);

	for (size_t i = 0; i < series->labels_count; i++)
		rpc_put_label(out, series->labels[i].name, series->labels[i].value);
	pb_end(out, labels);
	for (size_t i = 0; i < series->points_count; i++)
		put_point(out, &series->points[i], as);
	put_value_type(out, 3, set->type.period_type, set->type.period_unit);
	put_value_type(out, 4, as->type, as->unit);
	pb_end(out, begun);
}

/*
 * Of requests that name none, as Grafana's do, which say how many points they can show instead: a
 * round one, no finer than a second.
 */
static int64_t step_for(const struct query_params *params, uint64_t points)
{
	int64_t range_ns, step_ns;

	if (__builtin_sub_overflow(params->to_ns, params->from_ns, &range_ns))
		range_ns = INT64_MAX;
	if (!points || points > QUERY_STEPS_MAX)
		points = STEPS_DEFAULT;
	step_ns = flamechart_round_step(range_ns, (int64_t)points);
	return step_ns > CLOCK_NS_PER_S ? step_ns : CLOCK_NS_PER_S;
}

/* Without labels to sum by, a delta is one line, and of a gauge each label set is. */
static int ask_range(struct query_request *query, const struct rpc_request *rpc,
		     struct query_series_set *ret, struct err *err)
{
	struct query_range_params range = { .base = query->asked.params,
					    .step_ns = rpc->step_ns,
					    .sum_all = !rpc->sum_by_count,
					    .spread = true };
	int rc = query_request_series(query, &range, ret, err);

	if (!rc && range.sum_all && !ret->type.delta) {
		query_series_free(ret);
		range.sum_all = false;
		rc = query_request_open(query, err);
		if (!rc)
			rc = query_request_series(query, &range, ret, err);
	}
	if (!rc && !ret->series_count) {
		query_series_free(ret);
		rc = err_set(err, ERR_NOT_FOUND,
			     "QueryRange: there is nothing of this query in this range");
	}
	return rc;
}

void rpc_query_range(void *context, const struct net_request *request,
		     struct net_response *response)
{
	static const struct rpc_shape shape = { .name = "QueryRangeRequest",
						.query = 1,
						.start = 2,
						.end = 3,
						.limit = 4,
						.step = 5,
						.sum_by = 6 };
	struct query_request query = { 0 };
	struct query_series_set set;
	struct rpc_request rpc;
	struct err err;
	int rc = begin(context, request, &shape, PARAMETERS_TYPE_NEEDED, &rpc, &query, &err);

	for (size_t i = 0; !rc && i < rpc.sum_by_count; i++)
		rc = parameters_group_by(&query.asked, rpc.sum_by[i], &err);
	if (!rc && !rpc.step_ns)
		rpc.step_ns = step_for(&query.asked.params, rpc.limit);
	if (!rc)
		rc = ask_range(&query, &rpc, &set, &err);
	if (!rc) {
		struct shown_as as = shown_as_of(&set, rpc.step_ns);

		for (size_t i = 0; i < set.series_count; i++)
			put_series(&response->body, &set, &set.series[i], &as);
		query_series_free(&set);
	}
	rpc_finish(request, response, rc, &query, &err);
}
