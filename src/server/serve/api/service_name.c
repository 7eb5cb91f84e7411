/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/service_name.h"

#include <stdlib.h>

static const char *const stand_ins[] = { SERVICE_NAME, "service",      "job", "app",
					 "container",  "systemd_unit", "comm" };

int service_name_find(struct query_request *query, struct service_name *ret, struct err *err)
{
	const struct query_params *params = &query->params;
	struct slice *names;
	size_t count;
	int rc = query_labels(&query->source, NULL, params->from_ns, params->to_ns, &query->arena,
			      &names, &count, err);

	*ret = (struct service_name){ 0 };
	for (size_t i = 0; !rc && i < sizeof(stand_ins) / sizeof(stand_ins[0]); i++)
		for (size_t k = 0; k < count; k++)
			if (slice_is(names[k], stand_ins[i]))
				ret->labels[ret->count++] = slice_of(stand_ins[i]);
	return rc;
}

/* The label that has the value; service_name itself when none has. */
static int label_of(struct query_request *query, const struct service_name *service,
		    struct slice value, struct slice *ret, struct err *err)
{
	const struct query_params *params = &query->params;

	*ret = SLICE_LITERAL(SERVICE_NAME);
	for (size_t i = 0; i < service->count; i++) {
		struct slice *values;
		size_t count;
		int rc = query_label_values(&query->source, NULL, service->labels[i],
					    params->from_ns, params->to_ns, &query->arena, &values,
					    &count, err);

		for (size_t k = 0; !rc && k < count; k++)
			if (slice_equal(values[k], value)) {
				*ret = service->labels[i];
				return 0;
			}
		if (rc)
			return rc;
	}
	return 0;
}

int service_name_match(struct query_request *query, const struct service_name *service,
		       struct err *err)
{
	for (size_t i = 0; service->count && i < query->selector.matchers_count; i++) {
		struct matcher *matcher = &query->selector.matchers[i];
		struct slice name = service->labels[0];
		int rc = 0;

		if (!slice_is(matcher->name, SERVICE_NAME))
			continue;
		if (matcher->op == MATCH_EQUAL && matcher->value.len)
			rc = label_of(query, service, matcher->value, &name, err);
		if (rc)
			return rc;
		matcher->name = name;
	}
	return 0;
}

int service_name_expand(const struct service_name *service, struct slice *group_by, size_t *count,
			struct err *err)
{
	size_t at = 0;

	while (at < *count && !slice_is(group_by[at], SERVICE_NAME))
		at++;
	if (at == *count || !service->count)
		return 0;
	if (*count - 1 + service->count > QUERY_GROUP_BY_MAX)
		return err_set(err, ERR_LIMIT, "group_by: service_name and more than %zu others",
			       QUERY_GROUP_BY_MAX - service->count);
	memmove(&group_by[at + service->count], &group_by[at + 1],
		(*count - at - 1) * sizeof(*group_by));
	memcpy(&group_by[at], service->labels, service->count * sizeof(*group_by));
	*count += service->count - 1;
	return 0;
}

/* The first label of a line that stands for the name becomes it, the others go. */
static void fold_labels(const struct service_name *service, struct query_series *series)
{
	struct slice value = { 0 };
	size_t cache = 0;

	for (size_t s = 0; !value.len && s < service->count; s++)
		for (size_t i = 0; i < series->labels_count; i++)
			if (slice_equal(series->labels[i].name, service->labels[s]))
				value = series->labels[i].value;
	for (size_t i = 0; i < series->labels_count; i++) {
		bool stands = false;

		for (size_t s = 0; s < service->count; s++)
			stands |= slice_equal(series->labels[i].name, service->labels[s]);
		if (!stands)
			series->labels[cache++] = series->labels[i];
	}
	if (value.len) /* one that stood for it has gone */
		series->labels[cache++] =
			(struct query_label){ SLICE_LITERAL(SERVICE_NAME), value };
	series->labels_count = cache;
}

static int by_labels(const void *a, const void *b)
{
	const struct query_series *left = a, *right = b;

	for (size_t i = 0; i < left->labels_count && i < right->labels_count; i++) {
		int order = slice_compare(left->labels[i].name, right->labels[i].name);

		if (!order)
			order = slice_compare(left->labels[i].value, right->labels[i].value);
		if (order)
			return order;
	}
	return (left->labels_count > right->labels_count) -
	       (left->labels_count < right->labels_count);
}

static int by_time(const void *a, const void *b)
{
	const struct query_point *left = a, *right = b;

	return (left->at_ns > right->at_ns) - (left->at_ns < right->at_ns);
}

/* Points of both, in the set's arena; those of one time are summed. False when over budget. */
static bool add_points(struct query_series_set *set, struct query_series *to,
		       const struct query_series *from)
{
	size_t count = to->points_count + from->points_count, cache = 0;
	struct query_point *points = arena_new_array(&set->arena, struct query_point, count);

	if (!points)
		return false;
	memcpy(points, to->points, to->points_count * sizeof(*points));
	memcpy(points + to->points_count, from->points, from->points_count * sizeof(*points));
	qsort(points, count, sizeof(*points), by_time);
	for (size_t i = 0; i < count; i++) {
		if (!cache || points[cache - 1].at_ns != points[i].at_ns) {
			points[cache++] = points[i];
			continue;
		}
		points[cache - 1].value += points[i].value;
		points[cache - 1].sum += points[i].sum;
		points[cache - 1].per_second += points[i].per_second;
		points[cache - 1].reports += points[i].reports;
	}
	to->points = points;
	to->points_count = cache;
	return true;
}

void service_name_fold(const struct service_name *service, struct query_series_set *set)
{
	size_t cache = 0;

	if (!service->count || !set->series_count)
		return;
	for (size_t i = 0; i < set->series_count; i++)
		fold_labels(service, &set->series[i]);
	qsort(set->series, set->series_count, sizeof(*set->series), by_labels);
	for (size_t i = 0; i < set->series_count; i++) {
		if (cache && !by_labels(&set->series[cache - 1], &set->series[i]) &&
		    add_points(set, &set->series[cache - 1], &set->series[i]))
			continue;
		set->series[cache++] = set->series[i];
	}
	set->series_count = cache;
}
