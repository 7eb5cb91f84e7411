/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_series - querier.v1.QuerierService/SelectSeries: time series, the largest of them, what
 * a call site called, and reports that stand for the points.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"
#include "codec/wire/pb.h"
#include "model/service.h"
#include "server/query/series/exemplars.h"
#include "server/query/tree/nodes.h"
#include "server/serve/pyroscope/pyro_request.h"
#include "server/serve/rpc/rpc_message.h"

#define CALL_STEPS_MAX 1000 /* each is a tree */

enum { SUM, AVERAGE };				   /* TimeSeriesAggregationType */
enum { EXEMPLARS_INDIVIDUAL = 2, EXEMPLARS_SPAN }; /* ExemplarType */

/* The report that represents each point of a series. */
struct example {
	const struct query_series *series; /* NULL: none */
	const struct exemplar *exemplar;
};

struct selecting {
	struct pyro_request pyro;
	struct query_series_set set;
	struct exemplars exemplars;
	struct example **examples; /* by series, by point; NULL: not asked for */
};

static int step_of(double seconds, int64_t *ret_ns, struct err *err)
{
	if (!(seconds >= 0.001) || seconds > 1e9)
		return err_set(err, ERR_INVALID,
			       "step: %g s is not between a millisecond and 30 years", seconds);
	*ret_ns = (int64_t)(seconds * (double)CLOCK_NS_PER_S);
	return 0;
}

static double shown(const struct pyro_request *pyro, const struct query_point *point)
{
	if (pyro->aggregation == AVERAGE && point->reports)
		return (double)point->sum / point->reports;
	return (double)point->value;
}

/* Exemplars. */

static struct slice label_of(const struct query_series *series, struct slice name)
{
	for (size_t i = 0; i < series->labels_count; i++)
		if (slice_equal(series->labels[i].name, name))
			return series->labels[i].value;
	return (struct slice){ 0 };
}

/* As an answer shows it: each series has a service_name. */
static struct slice shown_label_of(const struct query_series *series, struct slice name)
{
	struct service service = service_begin();

	if (!slice_is(name, SERVICE_LABEL))
		return label_of(series, name);
	for (size_t i = 0; i < series->labels_count; i++)
		service_consider(&service, series->labels[i].name, series->labels[i].value);
	return service.name;
}

/* True if a stored series went into a line of the answer. */
static bool is_in_line(const struct pyro_request *pyro, const struct query_series *series,
		       const struct query_series *line)
{
	for (size_t i = 0; i < pyro->group_by_count; i++)
		if (!slice_equal(shown_label_of(series, pyro->group_by[i]),
				 label_of(line, pyro->group_by[i])))
			return false;
	return true;
}

static const struct query_series *line_of(const struct selecting *selecting,
					  const struct query_series *series)
{
	for (size_t i = 0; i < selecting->set.series_count; i++)
		if (is_in_line(&selecting->pyro, series, &selecting->set.series[i]))
			return &selecting->set.series[i];
	return NULL;
}

/* The point of the step that a report starts in, or NULL. */
static const struct query_point *point_of(const struct query_series *line, int64_t step_ns,
					  int64_t start_ns)
{
	size_t low = bisect(0, line->points_count, i, line->points[i].at_ns <= start_ns);

	return low && start_ns - line->points[low - 1].at_ns < step_ns ? &line->points[low - 1]
								       : NULL;
}

static void take_example(struct selecting *selecting, const struct query_series *line,
			 const struct exemplar *exemplar)
{
	const struct query_point *point =
		point_of(line, selecting->set.step_ns, exemplar->start_ns);
	struct example *example;

	if (!point)
		return;
	example = &selecting->examples[line - selecting->set.series][point - line->points];
	if (!example->exemplar || example->exemplar->value < exemplar->value)
		*example = (struct example){ &selecting->exemplars.series[exemplar->series],
					     exemplar };
}

static int find_examples(struct selecting *selecting, struct query_request *query,
			 const struct query_range_params *range, struct err *err)
{
	struct exemplars *exemplars = &selecting->exemplars;
	const struct query_series **lines;
	int rc = query_request_open(query, err);

	if (!rc)
		rc = exemplars_find(&query->source, range, exemplars, err);
	if (rc)
		return rc;
	lines = mem_new_array(const struct query_series *, exemplars->series_count + 1);
	selecting->examples = mem_new_array(struct example *, selecting->set.series_count + 1);
	for (size_t i = 0; i < selecting->set.series_count; i++)
		selecting->examples[i] =
			mem_new_array(struct example, selecting->set.series[i].points_count + 1);
	for (size_t i = 0; i < exemplars->series_count; i++)
		lines[i] = line_of(selecting, &exemplars->series[i]);
	for (size_t i = 0; i < exemplars->count; i++)
		if (lines[exemplars->list[i].series])
			take_example(selecting, lines[exemplars->list[i].series],
				     &exemplars->list[i]);
	free(lines);
	return 0;
}

/* Exemplar{ timestamp = 1; profile_id = 2; value = 4; labels = 5 } */
static void put_example(struct strbuf *out, const struct pyro_request *pyro,
			const struct example *example)
{
	const struct query_series *series = example->series;
	char id[PYRO_REPORT_ID_BYTES];
	size_t begun = pb_begin(out, 4);

	pyro_report_id(series, example->exemplar->start_ns, id);
	pb_put_varint(out, 1, (uint64_t)(example->exemplar->start_ns / CLOCK_NS_PER_MS));
	pb_put_bytes(out, 2, slice_of(id));
	pb_put_varint(out, 4, (uint64_t)example->exemplar->value);
	for (size_t i = 0; i < series->labels_count; i++) {
		bool is_grouped = false;
		size_t label;

		for (size_t k = 0; k < pyro->group_by_count; k++)
			is_grouped |= slice_equal(pyro->group_by[k], series->labels[i].name);
		if (is_grouped)
			continue;
		label = pb_begin(out, 5);
		pb_put_bytes(out, 1, series->labels[i].name);
		pb_put_bytes(out, 2, series->labels[i].value);
		pb_end(out, label);
	}
	pb_end(out, begun);
}

/* What is answered. */

/* types.v1.Point{ value = 1 double; timestamp = 2; exemplars = 4 } */
static void put_point(struct strbuf *out, const struct pyro_request *pyro,
		      const struct query_point *point, const struct example *example)
{
	size_t begun = pb_begin(out, 2);

	pb_put_double(out, 1, shown(pyro, point));
	pb_put_varint(out, 2, (uint64_t)(point->at_ns / CLOCK_NS_PER_MS));
	if (example && example->exemplar)
		put_example(out, pyro, example);
	pb_end(out, begun);
}

static void put_line(struct strbuf *out, const struct selecting *selecting, size_t at)
{
	const struct query_series *series = &selecting->set.series[at];
	size_t begun = pb_begin(out, 1);

	for (size_t k = 0; k < series->labels_count; k++)
		rpc_put_label(out, series->labels[k].name, series->labels[k].value);
	for (size_t k = 0; k < series->points_count; k++)
		put_point(out, &selecting->pyro, &series->points[k],
			  selecting->examples ? &selecting->examples[at][k] : NULL);
	pb_end(out, begun);
}

struct ranked {
	double sum;
	size_t at;
};

/* Largest first, then in the order of the set, which is that of labels. */
static int by_sum(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->sum != right->sum)
		return left->sum < right->sum ? 1 : -1;
	return (left->at > right->at) - (left->at < right->at);
}

/* With a limit, the largest alone. */
static void put_lines(struct strbuf *out, const struct selecting *selecting)
{
	const struct query_series_set *set = &selecting->set;
	struct ranked *ranked = mem_new_array(struct ranked, set->series_count + 1);
	size_t count = set->series_count;
	int64_t limit = selecting->pyro.limit;

	for (size_t i = 0; i < count; i++) {
		ranked[i].at = i;
		for (size_t k = 0; k < set->series[i].points_count; k++)
			ranked[i].sum += shown(&selecting->pyro, &set->series[i].points[k]);
	}
	qsort(ranked, count, sizeof(*ranked), by_sum);
	if (limit > 0 && (uint64_t)limit < count)
		count = (size_t)limit;
	for (size_t i = 0; i < count; i++)
		put_line(out, selecting, ranked[i].at);
	free(ranked);
}

/* Call sites. */

/* What the call site called in one step. */
static int add_calls(const struct pyro_request *pyro, struct query_request *query,
		     struct query_series_set *set, int64_t at_ns, struct err *err)
{
	struct query_series *line = set->series;
	struct tree *tree = NULL;
	int rc = query_request_open(query, err);

	if (!rc)
		rc = query_request_tree(query, &tree, err);
	if (rc)
		return rc;
	tree_keep_calls(tree, pyro->call_site, pyro->call_site_count);
	if (tree->total)
		line->points[line->points_count++] = (struct query_point){
			.at_ns = at_ns,
			.value = tree->total,
			.sum = tree->total,
			.reports = tree->reports < UINT32_MAX ? (uint32_t)tree->reports : UINT32_MAX
		};
	tree_free(tree);
	return 0;
}

/* A line of what a call site called: a tree for each step. */
static int series_of_calls(const struct pyro_request *pyro, struct query_request *query,
			   int64_t step_ns, struct query_series_set *ret, struct err *err)
{
	const int64_t from_ns = query->asked.params.from_ns, to_ns = query->asked.params.to_ns;
	int64_t at_ns = from_ns / step_ns * step_ns;
	uint64_t steps = ((uint64_t)to_ns - (uint64_t)at_ns) / (uint64_t)step_ns + 1;
	struct query_series_set set = { .step_ns = step_ns, .series_count = 1 };
	int rc = 0;

	if (pyro->group_by_count)
		return err_set(err, ERR_UNSUPPORTED,
			       "SelectSeries: a call site goes without group_by");
	if (steps > CALL_STEPS_MAX)
		return err_set(
			err, ERR_LIMIT,
			"SelectSeries: a call site for more than %d steps; take a larger step",
			CALL_STEPS_MAX);
	arena_init(&set.arena, 0); /* a thousand points at most */
	set.series = arena_new_array(&set.arena, struct query_series, 1);
	set.series->points = arena_new_array(&set.arena, struct query_point, steps);
	query->asked.params.nodes_only = true;
	for (; !rc && at_ns < to_ns; at_ns += step_ns) {
		query->asked.params.from_ns = at_ns > from_ns ? at_ns : from_ns;
		query->asked.params.to_ns = at_ns + step_ns < to_ns ? at_ns + step_ns : to_ns;
		rc = add_calls(pyro, query, &set, at_ns, err);
	}
	if (rc)
		query_series_free(&set);
	else
		*ret = set;
	return rc;
}

static int select_series(struct selecting *selecting, struct query_request *query, struct err *err)
{
	const struct pyro_request *pyro = &selecting->pyro;
	struct query_range_params range = { .base = query->asked.params,
					    .sum_all = !pyro->group_by_count,
					    .spread = pyro->aggregation != AVERAGE };
	int rc = step_of(pyro->step_s, &range.step_ns, err);

	if (!rc && pyro->exemplars == EXEMPLARS_SPAN)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "SelectSeries: exemplars of spans are for heatmaps");
	if (rc)
		return rc;
	if (pyro->call_site_count)
		return series_of_calls(pyro, query, range.step_ns, &selecting->set, err);
	memcpy(range.base.group_by, pyro->group_by, sizeof(pyro->group_by));
	range.base.group_by_count = pyro->group_by_count;
	rc = query_request_series(query, &range, &selecting->set, err);
	if (rc)
		return rc;
	if (pyro->exemplars == EXEMPLARS_INDIVIDUAL)
		rc = find_examples(selecting, query, &range, err);
	return rc;
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
						 .aggregation = 7,
						 .stack_selector = 8,
						 .limit = 9,
						 .exemplars = 10 };
	struct selecting *selecting = mem_new(struct selecting);
	struct query_request query = { 0 };
	struct err err;
	int rc = pyro_begin(context, request, &shape, PARAMETERS_TYPE_NEEDED, &selecting->pyro,
			    &query, &err);

	if (!rc)
		rc = select_series(selecting, &query, &err);
	if (!rc)
		put_lines(&response->body, selecting);
	for (size_t i = 0; selecting->examples && i < selecting->set.series_count; i++)
		free(selecting->examples[i]);
	free(selecting->examples);
	exemplars_free(&selecting->exemplars);
	query_series_free(&selecting->set);
	free(selecting);
	rpc_finish(request, response, rc, &query, &err);
}
