/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_heatmap - querier.v1.QuerierService/SelectHeatmap: how many profiles of each step have
 * how large a value.
 *
 * A profile is a report of a series; of spans, it is what one span has of a report. Where the range
 * has more moments than a time series can have points, neighbouring ones count as so many of their
 * mean. Values are put into equal buckets from the smallest to the largest of the whole answer.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/pb.h"
#include "model/service.h"
#include "server/serve/pyroscope/pyro_request.h"
#include "server/serve/rpc/rpc_message.h"

#define BUCKETS 20
#define MOMENTS_MAX 10000
#define SLOTS_MAX 11000
#define COUNTS_MAX ((size_t)1 << 24) /* of one answer */

enum { OF_SPANS = 2, EXEMPLARS_OF_SPANS = 3 }; /* HeatmapQueryType, ExemplarType */

/* The largest one of a slot. */
struct heat_exemplar {
	const struct query_series *series;
	const struct query_point *point;
};

/* One line of the answer: the series with equal group-by labels. */
struct heat_line {
	const struct query_series *series; /* one of them */
	uint32_t *counts;		   /* [slot * BUCKETS + bucket] */
	struct heat_exemplar *exemplars;   /* [slot]; NULL: not asked for */
};

struct heat {
	const struct pyro_request *pyro;
	int64_t from_ns, step_ns;
	size_t slots;
	double smallest, largest;
	struct heat_line *lines;
	size_t lines_count, lines_capacity;
};

/* For a group, its group-by labels; for a series, its own labels and its service by the rule. */
static struct slice label_of(const struct pyro_request *pyro, const struct query_series *series,
			     struct slice name)
{
	bool is_service = pyro->format != OF_SPANS && slice_is(name, SERVICE_LABEL);
	struct service service = service_begin();

	for (size_t i = 0; i < series->labels_count; i++) {
		if (is_service)
			service_consider(&service, series->labels[i].name, series->labels[i].value);
		else if (slice_equal(series->labels[i].name, name))
			return series->labels[i].value;
	}
	return is_service ? service.name : (struct slice){ 0 };
}

static bool is_alike(const struct pyro_request *pyro, const struct query_series *a,
		     const struct query_series *b)
{
	for (size_t i = 0; i < pyro->group_by_count; i++)
		if (!slice_equal(label_of(pyro, a, pyro->group_by[i]),
				 label_of(pyro, b, pyro->group_by[i])))
			return false;
	return true;
}

/* NULL when one more would be too many. */
static struct heat_line *line_of(struct heat *heat, const struct query_series *series)
{
	for (size_t i = 0; i < heat->lines_count; i++)
		if (is_alike(heat->pyro, heat->lines[i].series, series))
			return &heat->lines[i];
	if ((heat->lines_count + 1) * heat->slots * BUCKETS > COUNTS_MAX)
		return NULL;
	mem_grow(heat->lines, heat->lines_count, heat->lines_capacity);
	heat->lines[heat->lines_count] =
		(struct heat_line){ .series = series,
				    .counts = mem_new_array(uint32_t, heat->slots * BUCKETS) };
	if (heat->pyro->format == OF_SPANS && heat->pyro->exemplars == EXEMPLARS_OF_SPANS)
		heat->lines[heat->lines_count].exemplars =
			mem_new_array(struct heat_exemplar, heat->slots);
	return &heat->lines[heat->lines_count++];
}

static double value_of(const struct query_point *point)
{
	return (double)point->sum / (point->reports ? point->reports : 1);
}

/* A span without an id does not count. */
static bool counts(const struct heat *heat, const struct query_series *series)
{
	return heat->pyro->format != OF_SPANS ||
	       label_of(heat->pyro, series, SLICE_LITERAL(PYRO_SPAN_LABEL)).len;
}

static void find_bounds(struct heat *heat, const struct query_series_set *set)
{
	bool any = false;

	for (size_t i = 0; i < set->series_count; i++)
		for (size_t k = 0; counts(heat, &set->series[i]) && k < set->series[i].points_count;
		     k++) {
			double value = value_of(&set->series[i].points[k]);

			if (!any || value < heat->smallest)
				heat->smallest = value;
			if (!any || value > heat->largest)
				heat->largest = value;
			any = true;
		}
}

static size_t bucket_of(const struct heat *heat, double value)
{
	double width = (heat->largest - heat->smallest) / BUCKETS;
	size_t bucket = width > 0 ? (size_t)((value - heat->smallest) / width) : 0;

	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static void add_point(struct heat *heat, struct heat_line *line, const struct query_series *series,
		      const struct query_point *point)
{
	size_t slot = (size_t)((point->at_ns - heat->from_ns) / heat->step_ns);
	struct heat_exemplar *exemplar;

	if (slot >= heat->slots)
		return;
	line->counts[slot * BUCKETS + bucket_of(heat, value_of(point))] += point->reports;
	exemplar = line->exemplars ? &line->exemplars[slot] : NULL;
	if (exemplar && (!exemplar->point || value_of(exemplar->point) < value_of(point)))
		*exemplar = (struct heat_exemplar){ series, point };
}

static int count_all(struct heat *heat, const struct query_series_set *set, struct err *err)
{
	for (size_t i = 0; i < set->series_count; i++) {
		const struct query_series *series = &set->series[i];
		struct heat_line *line;

		if (!counts(heat, series))
			continue;
		line = line_of(heat, series);
		if (!line)
			return err_set(err, ERR_LIMIT,
				       "more than %zu series of %zu steps; take a larger step, or "
				       "group by fewer labels",
				       heat->lines_count, heat->slots);
		for (size_t k = 0; k < series->points_count; k++)
			add_point(heat, line, series, &series->points[k]);
	}
	return 0;
}

/* Exemplar{ timestamp = 1; span_id = 3; value = 4; labels = 5 } */
static void put_exemplar(struct strbuf *out, const struct heat *heat,
			 const struct heat_exemplar *exemplar)
{
	size_t begun = pb_begin(out, 4);

	pb_put_varint(out, 1, (uint64_t)(exemplar->point->at_ns / CLOCK_NS_PER_MS));
	pb_put_bytes(out, 3,
		     label_of(heat->pyro, exemplar->series, SLICE_LITERAL(PYRO_SPAN_LABEL)));
	pb_put_varint(out, 4, (uint64_t)(int64_t)value_of(exemplar->point));
	for (size_t k = 0; k < heat->pyro->group_by_count; k++) {
		struct slice name = heat->pyro->group_by[k];
		size_t label = pb_begin(out, 5);

		pb_put_bytes(out, 1, name);
		pb_put_bytes(out, 2, label_of(heat->pyro, exemplar->series, name));
		pb_end(out, label);
	}
	pb_end(out, begun);
}

/*
 * HeatmapSlot{ timestamp = 1; y_min = 2 double; counts = 3 int32; exemplars = 4 }; empty ones are
 * left out.
 */
static void put_slot(struct strbuf *out, const struct heat *heat, const struct heat_line *line,
		     size_t slot)
{
	const uint32_t *counts = &line->counts[slot * BUCKETS];
	int64_t at_ns = heat->from_ns + (int64_t)slot * heat->step_ns;
	uint64_t numbers[BUCKETS];
	size_t begun, bounds;
	bool any = false;

	for (size_t i = 0; i < BUCKETS; i++) {
		numbers[i] = counts[i];
		any |= counts[i] != 0;
	}
	if (!any)
		return;
	begun = pb_begin(out, 2);
	pb_put_varint(out, 1, (uint64_t)(at_ns / CLOCK_NS_PER_MS));
	bounds = pb_begin(out, 2);
	for (size_t i = 0; i < BUCKETS; i++) {
		double bound =
			heat->smallest + (heat->largest - heat->smallest) / BUCKETS * (double)i;
		uint64_t bits;

		memcpy(&bits, &bound, sizeof(bits));
		strbuf_add_u64(out, bits);
	}
	pb_end(out, bounds);
	pb_put_packed(out, 3, numbers, BUCKETS);
	if (line->exemplars)
		put_exemplar(out, heat, &line->exemplars[slot]);
	pb_end(out, begun);
}

/* HeatmapSeries{ labels = 1; slots = 2 } */
static void put_heat(struct strbuf *out, const struct heat *heat)
{
	for (size_t i = 0; i < heat->lines_count; i++) {
		const struct heat_line *line = &heat->lines[i];
		size_t begun = pb_begin(out, 1);

		for (size_t k = 0; k < heat->pyro->group_by_count; k++)
			rpc_put_label(out, heat->pyro->group_by[k],
				      label_of(heat->pyro, line->series, heat->pyro->group_by[k]));
		for (size_t slot = 0; slot < heat->slots; slot++)
			put_slot(out, heat, line, slot);
		pb_end(out, begun);
	}
}

/* Steps so fine that reports stand alone, and the slots are whole ones. */
static int read_steps(struct heat *heat, const struct query_request *query,
		      struct query_range_params *range, struct err *err)
{
	int64_t from_ns = query->asked.params.from_ns, to_ns = query->asked.params.to_ns, parts;

	if (!(heat->pyro->step_s >= 0.001) || heat->pyro->step_s > 1e9)
		return err_set(err, ERR_INVALID, "step: %g s is out of range", heat->pyro->step_s);
	heat->step_ns = (int64_t)(heat->pyro->step_s * 1000) * CLOCK_NS_PER_MS;
	heat->from_ns = from_ns - from_ns % heat->step_ns;
	if (from_ns <= 0 || (to_ns - heat->from_ns) / heat->step_ns >= SLOTS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d steps; take a larger step", SLOTS_MAX);
	heat->slots = (size_t)((to_ns - heat->from_ns) / heat->step_ns) + 1;
	parts = MOMENTS_MAX / (int64_t)heat->slots;
	while (parts > 1 && heat->step_ns % (parts * CLOCK_NS_PER_MS))
		parts--;
	*range = (struct query_range_params){ .base = query->asked.params };
	range->base.group_by_count = 0;
	if (heat->pyro->format == OF_SPANS) {
		if (heat->pyro->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group_by: more than %d labels of spans",
				       QUERY_GROUP_BY_MAX - 1);
		memcpy(range->base.group_by, heat->pyro->group_by,
		       heat->pyro->group_by_count * sizeof(struct slice));
		range->base.group_by_count = heat->pyro->group_by_count;
		range->base.group_by[range->base.group_by_count++] = SLICE_LITERAL(PYRO_SPAN_LABEL);
		range->base.series_apart = true;
	}
	range->step_ns = heat->step_ns / (parts > 1 ? parts : 1);
	return 0;
}

void pyro_heatmap(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct pyro_shape shape = { .name = "SelectHeatmapRequest",
						 .type = 1,
						 .selector = 2,
						 .start = 3,
						 .end = 4,
						 .step = 5,
						 .group_by = 6,
						 .format = 7,
						 .exemplars = 8 };
	struct query_request query = { 0 };
	struct query_range_params range;
	struct query_series_set set;
	struct pyro_request pyro;
	struct heat heat = { .pyro = &pyro };
	struct err err;
	int rc = pyro_begin(context, request, &shape, PARAMETERS_TYPE_NEEDED, &pyro, &query, &err);

	if (!rc && pyro.format > OF_SPANS)
		rc = err_set(&err, ERR_INVALID, "SelectHeatmap: there is no query type %lld",
			     (long long)pyro.format);
	if (!rc)
		rc = read_steps(&heat, &query, &range, &err);
	if (!rc)
		rc = query_request_series(&query, &range, &set, &err);
	if (!rc) {
		find_bounds(&heat, &set);
		rc = count_all(&heat, &set, &err);
		if (!rc)
			put_heat(&response->body, &heat);
		for (size_t i = 0; i < heat.lines_count; i++) {
			free(heat.lines[i].counts);
			free(heat.lines[i].exemplars);
		}
		free(heat.lines);
		query_series_free(&set);
	}
	rpc_finish(request, response, rc, &query, &err);
}
