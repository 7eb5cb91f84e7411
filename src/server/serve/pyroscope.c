/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope - Pyroscope's query API: querier.v1.QuerierService (handlers of calls.h: protobuf in
 * and out). Times are milliseconds. A profile type is
 * "name:sample_type:sample_unit:period_type:period_unit"; CPU time of our own agent is also there
 * under Pyroscope's name for it. Field numbers: querier/v1/querier.proto, types/v1/types.proto.
 */
#include "codec/pb.h"
#include "config/units.h"
#include "codec/compress.h"
#include "server/query/render.h"
#include "server/serve/rpc_message.h"

#define MAX_NODES_DEFAULT 8192
#define MAX_NODES_MAX 1000000
#define MS CLOCK_NS_PER_MS
#define PPROF_BYTES_MAX ((size_t)1 << 30)
#define OWN_CPU "on_cpu"
#define THEIR_CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define TYPE_LABEL "__profile_type__"

enum { FORMAT_TREE = 2, FORMAT_DOT = 3 };

/* Numbers of a request's fields; 0 = it has none. */
struct shape {
	const char *name;
	uint32_t type, selector, start, end, group_by, step, max_nodes, format, label, unsupported;
};

struct pyro_request {
	struct slice type, selector, label;
	int64_t start_ms, end_ms, max_nodes, format;
	double step_s;
	struct slice group_by[QUERY_GROUP_BY_MAX];
	size_t group_by_count;
};

static int read_text(const struct shape *shape, const struct pb_field *field,
		     struct pyro_request *ret, struct err *err)
{
	if (field->number == shape->type)
		ret->type = field->bytes;
	else if (field->number == shape->selector)
		ret->selector = field->bytes;
	else if (field->number == shape->label)
		ret->label = field->bytes;
	else if (field->number == shape->unsupported && field->bytes.len)
		return err_set(err, ERR_UNSUPPORTED, "%s: field %u is not supported yet",
			       shape->name, field->number);
	else if (field->number == shape->group_by) {
		if (ret->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group_by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		ret->group_by[ret->group_by_count++] = field->bytes;
	}
	return 0;
}

static void read_number(const struct shape *shape, const struct pb_field *field,
			struct pyro_request *ret)
{
	if (field->number == shape->start)
		ret->start_ms = (int64_t)field->value;
	else if (field->number == shape->end)
		ret->end_ms = (int64_t)field->value;
	else if (field->number == shape->max_nodes)
		ret->max_nodes = (int64_t)field->value;
	else if (field->number == shape->format)
		ret->format = (int64_t)field->value;
}

static int read_request(const struct shape *shape, struct slice bytes, struct pyro_request *ret,
			struct err *err)
{
	struct pb_reader in = pb_reader_of(bytes);
	struct pb_field field;

	*ret = (struct pyro_request){ 0 };
	while (pb_next(&in, &field)) {
		int rc = 0;

		if (field.wire == PB_BYTES)
			rc = read_text(shape, &field, ret, err);
		else if (field.wire == PB_VARINT)
			read_number(shape, &field, ret);
		else if (field.wire == PB_FIXED64 && field.number == shape->step)
			memcpy(&ret->step_s, &field.value, sizeof(ret->step_s));
		if (rc)
			return rc;
	}
	return in.problem ? pb_fail(&in, shape->name, err) : 0;
}

static int64_t ns_of_ms(int64_t ms)
{
	if (ms > UNITS_TIME_MAX_NS / MS)
		return UNITS_TIME_MAX_NS;
	return ms < UNITS_TIME_MIN_NS / MS ? UNITS_TIME_MIN_NS : ms * MS;
}

/* Pyroscope's ranges take in the end. No times at all mean all time. */
static int begin_with(struct serve *serve, const struct net_request *request,
		      const struct pyro_request *pyro, enum question_need need,
		      struct question *ret, struct err *err)
{
	bool always = !pyro->start_ms && !pyro->end_ms;
	struct strbuf selector = { 0 };
	int rc;

	strbuf_add_slice(&selector, pyro->type);
	strbuf_add_slice(&selector, pyro->selector);
	rc = question_begin_with(serve, request, strbuf_slice(&selector), need,
				 always ? 0 : ns_of_ms(pyro->start_ms),
				 always ? INT64_MAX : ns_of_ms(pyro->end_ms) + 1, ret, err);
	strbuf_free(&selector);
	return rc;
}

static int begin(struct serve *serve, const struct net_request *request, const struct shape *shape,
		 enum question_need need, struct pyro_request *pyro, struct question *ret,
		 struct err *err)
{
	int rc = read_request(shape, request->body, pyro, err);

	return rc ? rc : begin_with(serve, request, pyro, need, ret, err);
}

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

static int list_types(struct question *question, struct profile_type **ret, size_t *ret_count,
		      struct err *err)
{
	struct query_type *types;
	size_t count;
	int rc = query_types(&question->source, question->params.from_ns, question->params.to_ns,
			     &question->arena, &types, &count, err);

	if (rc)
		return rc;
	*ret = arena_new_array(&question->arena, struct profile_type, count + 1);
	if (!*ret)
		return err_set(err, ERR_LIMIT, "too many profile types");
	*ret_count = known_types(types, count, *ret);
	return 0;
}

void pyro_profile_types(void *context, const struct net_request *request,
			struct net_response *response)
{
	static const struct shape shape = { .name = "ProfileTypesRequest", .start = 1, .end = 2 };
	struct question question = { 0 };
	struct profile_type *types;
	struct pyro_request pyro;
	size_t count = 0;
	struct err err;
	int rc =
		begin(context, request, &shape, QUESTION_SELECTOR_OPTIONAL, &pyro, &question, &err);

	if (!rc)
		rc = list_types(&question, &types, &count, &err);
	for (size_t i = 0; !rc && i < count; i++)
		put_type(&response->body, &types[i]);
	rpc_finish(request, response, rc, &question, &err);
}

/* Labels. */

void pyro_label_names(void *context, const struct net_request *request,
		      struct net_response *response)
{
	static const struct shape shape = {
		.name = "LabelNamesRequest", .selector = 1, .start = 2, .end = 3
	};
	struct question question = { 0 };
	struct pyro_request pyro;
	struct slice *names;
	size_t count = 0;
	struct err err;
	int rc =
		begin(context, request, &shape, QUESTION_SELECTOR_OPTIONAL, &pyro, &question, &err);

	if (!rc)
		rc = query_labels(&question.source, question.params.selector,
				  question.params.from_ns, question.params.to_ns, &question.arena,
				  &names, &count, &err);
	if (!rc) {
		rpc_put_texts(&response->body, names, count);
		pb_put_bytes(&response->body, 1, SLICE_LITERAL(TYPE_LABEL));
	}
	rpc_finish(request, response, rc, &question, &err);
}

static int put_type_values(struct question *question, struct strbuf *out, struct err *err)
{
	struct profile_type *types;
	size_t count;
	int rc = list_types(question, &types, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		struct strbuf id = { 0 };

		types[i].delta = false;
		profile_type_format(&id, &types[i]);
		pb_put_bytes(out, 1, strbuf_slice(&id));
		strbuf_free(&id);
	}
	return rc;
}

void pyro_label_values(void *context, const struct net_request *request,
		       struct net_response *response)
{
	static const struct shape shape = {
		.name = "LabelValuesRequest", .label = 1, .selector = 2, .start = 3, .end = 4
	};
	struct question question = { 0 };
	struct pyro_request pyro;
	struct slice *values;
	size_t count = 0;
	struct err err;
	int rc =
		begin(context, request, &shape, QUESTION_SELECTOR_OPTIONAL, &pyro, &question, &err);

	if (!rc && slice_is(pyro.label, TYPE_LABEL))
		rc = put_type_values(&question, &response->body, &err);
	else if (!rc)
		rc = query_label_values(&question.source, question.params.selector, pyro.label,
					question.params.from_ns, question.params.to_ns,
					&question.arena, &values, &count, &err);
	if (!rc)
		rpc_put_texts(&response->body, values, count);
	rpc_finish(request, response, rc, &question, &err);
}

/* Series. */

/* Label sets of one type, each once: those of the series that it has in the range. */
static int put_type_series(struct question *question, const struct pyro_request *pyro,
			   struct slice type, struct strbuf *out, struct err *err)
{
	struct query_range_params range = { .base = question->params };
	struct query_series_set set;
	int64_t length_ns = question->params.to_ns / 2 - question->params.from_ns / 2;
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
	rc = query_series(&question->source, &range, &set, err);
	if (rc)
		return rc;
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
static int put_series(struct question *question, const struct pyro_request *pyro,
		      struct strbuf *out, struct err *err)
{
	struct selector selector = question->selector;
	struct profile_type *types;
	size_t count = 0;
	int rc = list_types(question, &types, &count, err);

	question->params.selector = &selector;
	for (size_t i = 0; !rc && i < count; i++) {
		struct strbuf id = { 0 };

		selector.has_type = true;
		selector.type = types[i];
		types[i].delta = false;
		profile_type_format(&id, &types[i]);
		rc = put_type_series(question, pyro, strbuf_slice(&id), out, err);
		strbuf_free(&id);
	}
	return rc;
}

void pyro_series(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct shape shape = {
		.name = "SeriesRequest", .selector = 1, .group_by = 2, .start = 3, .end = 4
	};
	struct question question = { 0 };
	struct pyro_request pyro;
	struct err err;
	int rc =
		begin(context, request, &shape, QUESTION_SELECTOR_OPTIONAL, &pyro, &question, &err);

	if (!rc)
		rc = put_series(&question, &pyro, &response->body, &err);
	rpc_finish(request, response, rc, &question, &err);
}

/* types.v1.Point{ value = 1 double; timestamp = 2 } */
static void put_point(struct strbuf *out, const struct query_point *point)
{
	size_t begun = pb_begin(out, 2);

	pb_put_double(out, 1, (double)point->value);
	pb_put_varint(out, 2, (uint64_t)(point->at_ns / MS));
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
	static const struct shape shape = { .name = "SelectSeriesRequest",
					    .type = 1,
					    .selector = 2,
					    .start = 3,
					    .end = 4,
					    .group_by = 5,
					    .step = 6,
					    .unsupported = 8 };
	struct question question = { 0 };
	struct query_range_params range;
	struct query_series_set set;
	struct pyro_request pyro;
	struct err err;
	int rc = begin(context, request, &shape, QUESTION_TYPE_NEEDED, &pyro, &question, &err);

	range = (struct query_range_params){ .base = question.params,
					     .sum_all = !pyro.group_by_count };
	memcpy(range.base.group_by, pyro.group_by, sizeof(pyro.group_by));
	range.base.group_by_count = pyro.group_by_count;
	if (!rc)
		rc = step_of(pyro.step_s, &range.step_ns, &err);
	if (!rc)
		rc = question_series(&question, &range, &set, &err);
	if (!rc) {
		put_time_series(&response->body, &set);
		query_series_free(&set);
	}
	rpc_finish(request, response, rc, &question, &err);
}

/* Flame graphs. */

static size_t nodes_of(int64_t asked)
{
	if (asked <= 0)
		return MAX_NODES_DEFAULT;
	return asked > MAX_NODES_MAX ? MAX_NODES_MAX : (size_t)asked;
}

/* FlameGraph{ names = 1; levels = 2{ values = 1 }; total = 3; max_self = 4 } */
static void put_flame_graph(struct strbuf *out, const struct flamebearer *flame)
{
	size_t begun = pb_begin(out, 1);

	for (size_t i = 0; i < flame->names_count; i++)
		pb_put_bytes_always(out, 1, flame->names[i]);
	for (size_t i = 0; i < flame->levels_count; i++) {
		size_t level = pb_begin(out, 2);

		pb_put_packed(out, 1, (const uint64_t *)flame->levels[i].values,
			      flame->levels[i].count);
		pb_end(out, level);
	}
	pb_put_varint(out, 3, (uint64_t)flame->total);
	pb_put_varint(out, 4, (uint64_t)flame->max_self);
	pb_end(out, begun);
}

/* Pre-order: length of the name, name, self, number of children; the root's name is empty. */
static void put_tree(struct strbuf *out, const struct tree *tree)
{
	uint32_t *children = arena_new_array((struct arena *)(uintptr_t)&tree->arena, uint32_t,
					     tree->nodes_count);
	struct strbuf bytes = { 0 };

	for (uint32_t i = 1; children && i < tree->nodes_count; i++)
		children[tree->nodes[i].parent]++;
	for (uint32_t i = 0; children && i < tree->nodes_count; i++) {
		struct slice name =
			i ? tree->functions[tree->nodes[i].function].name : (struct slice){ 0 };

		strbuf_add_varint(&bytes, name.len);
		strbuf_add_slice(&bytes, name);
		strbuf_add_varint(&bytes, (uint64_t)tree->nodes[i].self);
		strbuf_add_varint(&bytes, children[i]);
	}
	pb_put_bytes(out, 2, strbuf_slice(&bytes));
	strbuf_free(&bytes);
}

static int put_stacktraces(struct strbuf *out, const struct tree *tree,
			   const struct pyro_request *pyro, struct err *err)
{
	struct flamebearer flame;

	if (pyro->format >= FORMAT_DOT)
		return err_set(err, ERR_UNSUPPORTED, "format %lld is not supported yet",
			       (long long)pyro->format);
	if (!tree->reports)
		return 0; /* no flame graph: what Pyroscope's clients take for "no data" */
	if (pyro->format == FORMAT_TREE) {
		put_tree(out, tree);
		return 0;
	}
	render_flamebearer(tree, nodes_of(pyro->max_nodes), &flame);
	put_flame_graph(out, &flame);
	flamebearer_free(&flame);
	return 0;
}

void pyro_stacktraces(void *context, const struct net_request *request,
		      struct net_response *response)
{
	static const struct shape shape = { .name = "SelectMergeStacktracesRequest",
					    .type = 1,
					    .selector = 2,
					    .start = 3,
					    .end = 4,
					    .max_nodes = 5,
					    .format = 6,
					    .unsupported = 7 };
	struct question question = { 0 };
	struct tree *tree = NULL;
	struct pyro_request pyro;
	struct err err;
	int rc = begin(context, request, &shape, QUESTION_TYPE_NEEDED, &pyro, &question, &err);

	question.params.nodes_only = true;
	if (!rc)
		rc = question_tree(&question, &tree, &err);
	if (!rc)
		rc = put_stacktraces(&response->body, tree, &pyro, &err);
	tree_free(tree);
	rpc_finish(request, response, rc, &question, &err);
}

void pyro_profile(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct shape shape = { .name = "SelectMergeProfileRequest",
					    .type = 1,
					    .selector = 2,
					    .start = 3,
					    .end = 4,
					    .max_nodes = 5,
					    .unsupported = 6 };
	struct question question = { 0 };
	struct strbuf packed = { 0 };
	struct tree *tree = NULL;
	struct pyro_request pyro;
	struct err err;
	int rc = begin(context, request, &shape, QUESTION_TYPE_NEEDED, &pyro, &question, &err);

	if (!rc)
		rc = question_tree(&question, &tree, &err);
	if (!rc) {
		render_pprof(tree, &packed);
		rc = compress_gunzip(strbuf_slice(&packed), PPROF_BYTES_MAX, &response->body, &err);
	}
	strbuf_free(&packed);
	tree_free(tree);
	rpc_finish(request, response, rc, &question, &err);
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
	const struct pyro_request always = { 0 };
	struct question question = { 0 };
	struct span span = { 0 };
	struct err err;
	int rc = begin_with(context, request, &always, QUESTION_SELECTOR_OPTIONAL, &question, &err);

	for (size_t i = 0; !rc && i < question.snapshot.count; i++)
		rc = widen_by_segment(&span, &question.snapshot.segments[i], &err);
	if (!rc) {
		pb_put_varint(&response->body, 1, span.any);
		pb_put_varint(&response->body, 2, (uint64_t)(span.oldest_ns / MS));
		pb_put_varint(&response->body, 3, (uint64_t)(span.newest_ns / MS));
	}
	rpc_finish(request, response, rc, &question, &err);
}
