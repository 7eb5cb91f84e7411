/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_lists - Pyroscope's query API: what querier.v1.QuerierService tells of types, labels
 * and series (handlers of calls.h: protobuf in and out), and GET /pyroscope/label-values. Field
 * numbers: querier/v1/querier.proto, types/v1/types.proto.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "codec/wire/json.h"
#include "codec/wire/pb.h"
#include "config/units.h"
#include "server/serve/pyroscope/pyro_request.h"
#include "server/serve/rpc/rpc_message.h"

#define KEPT_BYTES_MAX ((size_t)64 << 20)

/* Distinct texts; what they point into is the query's, or `kept`. */
struct slice_list {
	struct slice *texts;
	size_t count, capacity;
	struct arena kept;
};

static void list_free(struct slice_list *list)
{
	arena_free(&list->kept);
	free(list->texts);
}

static void list_add(struct slice_list *list, struct slice text)
{
	mem_grow(list->texts, list->count, list->capacity);
	list->texts[list->count++] = text;
}

static int by_text(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Sorted, each once. */
static void list_order(struct slice_list *list)
{
	size_t kept = 0;

	if (list->count)
		qsort(list->texts, list->count, sizeof(*list->texts), by_text);
	for (size_t i = 0; i < list->count; i++)
		if (!kept || !slice_equal(list->texts[kept - 1], list->texts[i]))
			list->texts[kept++] = list->texts[i];
	list->count = kept;
}

/* The query ends, and the list goes on. */
static int list_keep(struct slice_list *list, struct err *err)
{
	struct arena before = list->kept;

	arena_init(&list->kept, KEPT_BYTES_MAX);
	list_order(list);
	for (size_t i = 0; i < list->count; i++)
		list->texts[i] = arena_copy(&list->kept, list->texts[i]);
	arena_free(&before);
	return list->kept.over_budget ? err_set(err, ERR_LIMIT,
						"matchers: what they choose takes more than %zu MB",
						KEPT_BYTES_MAX >> 20)
				      : 0;
}

typedef int list_f(struct query_request *query, const struct net_request *request,
		   const struct pyro_request *pyro, struct slice_list *list, struct err *err);

/*
 * Of several selectors (`matchers`), each chooses for itself, as in Pyroscope and Prometheus: the
 * list has what any of them does.
 */
static int list_of_each(struct serve *serve, const struct net_request *request,
			const struct pyro_shape *shape, list_f *add, struct query_request *query,
			struct slice_list *list, struct err *err)
{
	struct pyro_request all, one;
	int rc = pyro_read(shape, request->body, &all, err);
	size_t i = 0;

	arena_init(&list->kept, KEPT_BYTES_MAX);
	if (rc)
		return rc;
	do {
		one = all;
		if (all.selectors_count) {
			one.selectors[0] = all.selectors[i];
			one.selectors_count = 1;
		}
		if (i) {
			rc = list_keep(list, err);
			query_request_end(query);
		}
		if (!rc)
			rc = pyro_begin_with(serve, request, &one, PARAMETERS_SELECTOR_OPTIONAL,
					     query, err);
		if (!rc)
			rc = add(query, request, &one, list, err);
	} while (!rc && ++i < all.selectors_count);
	return rc;
}

/* Types. */

/* types.v1.ProfileType{ ID = 1; name = 2; sample_type = 4 .. period_unit = 7 } */
static void put_type(struct strbuf *out, const struct pyro_type *type)
{
	size_t begun = pb_begin(out, 1);

	pb_put_bytes(out, 1, type->id);
	pb_put_bytes(out, 2, type->type.name);
	pb_put_bytes(out, 4, type->type.sample_type);
	pb_put_bytes(out, 5, type->type.sample_unit);
	pb_put_bytes(out, 6, type->type.period_type);
	pb_put_bytes(out, 7, type->type.period_unit);
	pb_end(out, begun);
}

void pyro_profile_types(void *context, const struct net_request *request,
			struct net_response *response)
{
	static const struct pyro_shape shape = { .name = "ProfileTypesRequest",
						 .start = 1,
						 .end = 2 };
	struct query_request query = { 0 };
	struct pyro_type *types;
	struct pyro_request pyro;
	size_t count = 0;
	struct err err;
	int rc = pyro_begin(context, request, &shape, PARAMETERS_SELECTOR_OPTIONAL, &pyro, &query,
			    &err);

	if (!rc)
		rc = pyro_types_list(&query, &pyro.types, &types, &count, &err);
	for (size_t i = 0; !rc && i < count; i++)
		put_type(&response->body, &types[i]);
	rpc_finish(request, response, rc, &query, &err);
}

/* Labels. */

/* The labels, or the values of one: of the types that the request names, or of all at once. */
static int list_labels(struct query_request *query, const struct pyro_request *pyro,
		       const struct slice *label, struct slice_list *list, struct err *err)
{
	const struct query_params *params = &query->asked.params;
	struct selector selector = query->asked.selector;
	size_t turns = pyro->types.chosen ? pyro->types.count : 1;
	int rc = 0;

	for (size_t i = 0; !rc && i < turns; i++) {
		struct slice *texts;
		size_t count;

		if (pyro->types.chosen) {
			selector.has_type = true;
			selector.type = pyro->types.list[i].type;
		}
		if (label)
			rc = query_label_values(&query->source, &selector, *label, params->from_ns,
						params->to_ns, &query->asked.arena, &texts, &count,
						err);
		else
			rc = query_labels(&query->source, &selector, params->from_ns, params->to_ns,
					  &query->asked.arena, &texts, &count, err);
		for (size_t k = 0; !rc && k < count; k++)
			list_add(list, texts[k]);
	}
	return rc;
}

/* A client that has not said that it reads any name gets those that Prometheus always had. */
static bool reads_name(const struct net_request *request, struct slice name)
{
	struct slice accept = net_request_header(request, "accept");
	static const char any[] = "allow-utf8-labelnames=true";

	if (accept.len && memmem(accept.data, accept.len, any, sizeof(any) - 1))
		return true;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		      (i && c >= '0' && c <= '9')))
			return false;
	}
	return name.len > 0;
}

static int add_names(struct query_request *query, const struct net_request *request,
		     const struct pyro_request *pyro, struct slice_list *list, struct err *err)
{
	(void)request;
	return list_labels(query, pyro, NULL, list, err);
}

void pyro_label_names(void *context, const struct net_request *request,
		      struct net_response *response)
{
	static const struct pyro_shape shape = {
		.name = "LabelNamesRequest", .selector = 1, .start = 2, .end = 3
	};
	struct query_request query = { 0 };
	struct slice_list names = { 0 };
	struct err err;
	int rc = list_of_each(context, request, &shape, add_names, &query, &names, &err);

	if (!rc) {
		if (names.count)
			list_add(&names, SLICE_LITERAL(PYRO_TYPE_LABEL));
		list_order(&names);
		for (size_t i = 0; i < names.count; i++)
			if (reads_name(request, names.texts[i]))
				pb_put_bytes(&response->body, 1, names.texts[i]);
	}
	list_free(&names);
	rpc_finish(request, response, rc, &query, &err);
}

/* One step as long as the range. */
static struct query_range_params whole_range(const struct query_request *query)
{
	const struct query_params *params = &query->asked.params;
	struct query_range_params range = { .base = *params };
	int64_t length_ns = params->to_ns / 2 - params->from_ns / 2;

	range.step_ns = length_ns > CLOCK_NS_PER_S ? length_ns : CLOCK_NS_PER_S;
	return range;
}

/* Whether the type has a report that the matchers fit. */
static int has_reports(struct query_request *query, const struct pyro_type *type, bool *ret,
		       struct err *err)
{
	struct query_range_params range = whole_range(query);
	struct selector selector = query->asked.selector;
	struct query_series_set set;
	int rc;

	*ret = true;
	if (!selector.matchers_count)
		return 0;
	selector.has_type = true;
	selector.type = type->type;
	range.base.selector = &selector;
	range.sum_all = true;
	rc = query_series(&query->source, &range, &set, err);
	if (rc)
		return rc;
	*ret = set.series_count > 0;
	query_series_free(&set);
	return 0;
}

static int list_type_ids(struct query_request *query, const struct pyro_request *pyro,
			 struct slice_list *list, struct err *err)
{
	struct pyro_type *types;
	size_t count;
	int rc = pyro_types_list(query, &pyro->types, &types, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		bool has = false;

		rc = has_reports(query, &types[i], &has, err);
		if (!rc && has)
			list_add(list, types[i].id);
	}
	return rc;
}

/* The label was asked for before. */
static bool is_repeated(const struct pyro_request *pyro, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (slice_equal(pyro->group_by[i], pyro->group_by[at]))
			return true;
	return false;
}

/* The lines of one type, by the labels that are asked for. */
static int ask_type(struct query_request *query, const struct pyro_request *pyro,
		    const struct pyro_type *type, struct query_series_set *ret, struct err *err)
{
	struct query_range_params range = whole_range(query);
	struct selector selector = query->asked.selector;

	selector.has_type = true;
	selector.type = type->type;
	range.base.selector = &selector;
	range.base.group_by_count = 0;
	for (size_t i = 0; i < pyro->group_by_count; i++)
		if (!slice_is(pyro->group_by[i], PYRO_TYPE_LABEL) && !is_repeated(pyro, i))
			range.base.group_by[range.base.group_by_count++] = pyro->group_by[i];
	range.sum_all = pyro->group_by_count && !range.base.group_by_count;
	return query_series(&query->source, &range, ret, err);
}

static int list_values(struct query_request *query, const struct pyro_request *pyro,
		       struct slice_list *list, struct err *err)
{
	int rc;

	if (!pyro->label.len)
		return err_set(err, ERR_INVALID, "LabelValuesRequest: name is missing");
	if (slice_is(pyro->label, PYRO_TYPE_LABEL))
		rc = list_type_ids(query, pyro, list, err);
	else
		rc = list_labels(query, pyro, &pyro->label, list, err);
	if (!rc)
		list_order(list);
	return rc;
}

static int add_values(struct query_request *query, const struct net_request *request,
		      const struct pyro_request *pyro, struct slice_list *list, struct err *err)
{
	(void)request;
	return list_values(query, pyro, list, err);
}

void pyro_label_values(void *context, const struct net_request *request,
		       struct net_response *response)
{
	static const struct pyro_shape shape = {
		.name = "LabelValuesRequest", .label = 1, .selector = 2, .start = 3, .end = 4
	};
	struct query_request query = { 0 };
	struct slice_list values = { 0 };
	struct err err;
	int rc = list_of_each(context, request, &shape, add_values, &query, &values, &err);

	if (!rc)
		rpc_put_texts(&response->body, values.texts, values.count);
	list_free(&values);
	rpc_finish(request, response, rc, &query, &err);
}

/* GET /pyroscope/label-values?label=NAME of all time; of __name__, the types. */
void pyro_render_values(void *context, const struct net_request *request,
			struct net_response *response)
{
	struct query_request query = { 0 };
	struct slice_list values = { 0 };
	struct pyro_request pyro = { 0 };
	struct strbuf label = { 0 };
	struct json json;
	struct err err;
	int rc = 0;

	if (!net_request_parameter(request, "label", 0, &label) || !label.len)
		rc = err_set(&err, ERR_INVALID, "parameter \"label\" is missing");
	pyro.label = strbuf_slice(&label);
	if (slice_is(pyro.label, "__name__"))
		pyro.label = SLICE_LITERAL(PYRO_TYPE_LABEL);
	if (!rc)
		rc = pyro_begin_with(context, request, &pyro, PARAMETERS_SELECTOR_OPTIONAL, &query,
				     &err);
	if (!rc)
		rc = list_values(&query, &pyro, &values, &err);
	if (!rc) {
		response->content_type = "application/json";
		json_begin(&json, &response->body);
		json_open_array(&json);
		for (size_t i = 0; i < values.count; i++)
			json_put_string(&json, values.texts[i]);
		json_close_array(&json);
	}
	free(values.texts);
	strbuf_free(&label);
	query_request_end(&query);
	if (rc)
		net_response_error(request, response, &err);
}

/* Series. */

static int by_name(const void *a, const void *b)
{
	return slice_compare(((const struct query_label *)a)->name,
			     ((const struct query_label *)b)->name);
}

/* A label set as its message { labels = 1 { name = 1; value = 2 } }: equal ones are equal. */
static void add_label_set(struct slice_list *list, struct query_label *labels, size_t count,
			  struct arena *arena)
{
	struct strbuf message = { 0 };

	if (count)
		qsort(labels, count, sizeof(*labels), by_name);
	for (size_t i = 0; i < count; i++)
		rpc_put_label(&message, labels[i].name, labels[i].value);
	if (message.len)
		list_add(list, arena_copy(arena, strbuf_slice(&message)));
	strbuf_free(&message);
}

static bool wants_type(const struct pyro_request *pyro)
{
	for (size_t i = 0; i < pyro->group_by_count; i++)
		if (slice_is(pyro->group_by[i], PYRO_TYPE_LABEL))
			return true;
	return !pyro->group_by_count;
}

static int list_type_series(struct query_request *query, const struct net_request *request,
			    const struct pyro_request *pyro, const struct pyro_type *type,
			    struct slice_list *list, struct err *err)
{
	struct query_label labels[TABLES_LABELS_PER_SET_MAX + 1];
	struct query_series_set set;
	int rc = ask_type(query, pyro, type, &set, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < set.series_count; i++) {
		const struct query_series *series = &set.series[i];
		size_t count = 0;

		for (size_t k = 0; k < series->labels_count && count < TABLES_LABELS_PER_SET_MAX;
		     k++)
			if (series->labels[k].value.len &&
			    (pyro->group_by_count || reads_name(request, series->labels[k].name)))
				labels[count++] = series->labels[k];
		if (wants_type(pyro))
			labels[count++] =
				(struct query_label){ SLICE_LITERAL(PYRO_TYPE_LABEL), type->id };
		add_label_set(list, labels, count, &query->asked.arena);
	}
	query_series_free(&set);
	return 0;
}

/* Asks for each type in turn: a selector without one is not a time series. */
static int add_series(struct query_request *query, const struct net_request *request,
		      const struct pyro_request *pyro, struct slice_list *list, struct err *err)
{
	struct pyro_type *types;
	size_t count = 0;
	int rc = pyro_types_list(query, &pyro->types, &types, &count, err);

	for (size_t i = 0; !rc && i < count; i++)
		rc = list_type_series(query, request, pyro, &types[i], list, err);
	return rc;
}

void pyro_series(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct pyro_shape shape = {
		.name = "SeriesRequest", .selector = 1, .group_by = 2, .start = 3, .end = 4
	};
	struct query_request query = { 0 };
	struct slice_list sets = { 0 };
	struct err err;
	int rc = list_of_each(context, request, &shape, add_series, &query, &sets, &err);

	list_order(&sets);
	for (size_t i = 0; !rc && i < sets.count; i++)
		pb_put_bytes_always(&response->body, 2, sets.texts[i]);
	list_free(&sets);
	rpc_finish(request, response, rc, &query, &err);
}
