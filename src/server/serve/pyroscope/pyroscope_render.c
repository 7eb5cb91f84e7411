/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_render - GET /pyroscope/render and render-diff: a flame graph and its time line as
 * "flamebearer" JSON, for scripts and tools that know Pyroscope.
 */
#include <stdio.h>

#include "codec/wire/json.h"
#include "config/units.h"
#include "server/query/render/render.h"
#include "server/query/render/render_export.h"
#include "server/serve/api/query_request.h"

#define MAX_NODES_DEFAULT 8192
#define MAX_NODES_MAX 1000000
#define TIMELINE_POINTS 1500
#define TIMELINE_UNIT_NS (15 * CLOCK_NS_PER_S)
#define GROUP_KEY_BYTES 1024
#define SECONDS_BELOW 100000000000ull /* larger numbers are milliseconds */

struct timeline {
	int64_t from_ns, to_ns, step_ns;
	bool mean;
};

struct rendering {
	struct tree *tree;
	struct query_series_set whole, groups;
	bool is_grouped;
};

static void put_flamebearer_json(struct json *json, const struct flamebearer *flame)
{
	json_member_object(json, "flamebearer");
	json_member_array(json, "names");
	for (size_t i = 0; i < flame->names_count; i++)
		json_put_string(json, flame->names[i]);
	json_close_array(json);
	json_member_array(json, "levels");
	for (size_t i = 0; i < flame->levels_count; i++) {
		json_open_array(json);
		for (size_t k = 0; k < flame->levels[i].count; k++)
			json_put_int(json, flame->levels[i].values[k]);
		json_close_array(json);
	}
	json_close_array(json);
	json_member_int(json, "numTicks", flame->total);
	json_member_int(json, "maxSelf", flame->max_self);
	json_close_object(json);
}

/* Units as Pyroscope's front end knows them. */
static const char *units_of(struct slice unit)
{
	if (slice_is(unit, "nanoseconds"))
		return "samples";
	return slice_is(unit, "bytes") ? "bytes" : slice_is(unit, "count") ? "objects" : "";
}

static void put_metadata_json(struct json *json, const struct tree *tree, const char *format)
{
	bool is_time = slice_is(tree->type.sample_unit, "nanoseconds");

	json_member_object(json, "metadata");
	json_member_text(json, "format", format);
	json_member_text(json, "spyName", "");
	json_member_int(json, "sampleRate", is_time ? CLOCK_NS_PER_S : 100);
	json_member_text(json, "units", units_of(tree->type.sample_unit));
	json_member_string(json, "name", tree->type.name);
	json_close_object(json);
}

static int64_t shown(const struct timeline *line, const struct query_point *point)
{
	return line->mean && point->reports ? point->sum / point->reports : point->value;
}

/* A time line of the whole range, zero where nothing is. With `mean`, of the reports of a step. */
static void put_timeline_json(struct json *json, const char *key, const struct query_series *series,
			      const struct timeline *line)
{
	int64_t at_ns = line->from_ns / line->step_ns * line->step_ns;
	size_t i = 0;

	json_member_object(json, key);
	json_member_int(json, "startTime", at_ns / CLOCK_NS_PER_S);
	json_member_array(json, "samples");
	for (; at_ns < line->to_ns; at_ns += line->step_ns) {
		const struct query_point *point =
			series && i < series->points_count && series->points[i].at_ns == at_ns
				? &series->points[i++]
				: NULL;
		json_put_int(json, point ? shown(line, point) : 0);
	}
	json_close_array(json);
	json_member_int(json, "durationDelta", line->step_ns / CLOCK_NS_PER_S);
	json_put_key(json, "watermarks");
	json_put_null(json);
	json_close_object(json);
}

/* A time line for each value of the label. */
static void put_groups_json(struct json *json, const struct query_series_set *groups,
			    const struct timeline *line)
{
	char key[GROUP_KEY_BYTES];

	json_member_object(json, "groups");
	for (size_t i = 0; i < groups->series_count; i++) {
		const struct query_series *series = &groups->series[i];
		struct slice value =
			series->labels_count ? series->labels[0].value : SLICE_LITERAL("*");

		snprintf(key, sizeof(key), "%.*s", (int)value.len, value.data);
		put_timeline_json(json, key, series, line);
	}
	json_close_object(json);
}

/* About 1,500 points, as Pyroscope: whole steps of 15 s. */
static int64_t timeline_step_ns(int64_t from_ns, int64_t to_ns)
{
	int64_t wanted_ns = (to_ns - from_ns) / TIMELINE_POINTS;

	return (wanted_ns / TIMELINE_UNIT_NS + 1) * TIMELINE_UNIT_NS;
}

/* What both kinds of answer begin with; further members may follow in the open object. */
static void begin_json(struct json *json, struct strbuf *out, const struct tree *tree,
		       const char *format, size_t max_nodes, struct flamebearer *flame)
{
	render_flamebearer(tree, max_nodes, flame);
	json_begin(json, out);
	json_open_object(json);
	json_member_int(json, "version", 1);
	put_flamebearer_json(json, flame);
	put_metadata_json(json, tree, format);
}

static void put_render_json(struct strbuf *out, const struct rendering *rendering,
			    const struct timeline *line, size_t max_nodes)
{
	const struct query_series_set *whole = &rendering->whole;
	struct flamebearer flame;
	struct json json;

	begin_json(&json, out, rendering->tree, "single", max_nodes, &flame);
	put_timeline_json(&json, "timeline", whole->series_count ? whole->series : NULL, line);
	if (rendering->is_grouped) {
		put_groups_json(&json, &rendering->groups, line);
	} else {
		json_put_key(&json, "groups");
		json_put_null(&json);
	}
	json_put_key(&json, "heatmap");
	json_put_null(&json);
	json_close_object(&json);
	flamebearer_free(&flame);
}

/* from and until: as everywhere, and seconds or milliseconds since the epoch. */
static int render_time(struct parameters *reading, const struct net_request *request,
		       const char *name, const char *fallback, int64_t *ret, struct err *err)
{
	struct slice text = parameters_text(reading, request, name, fallback);
	uint64_t number;

	if (slice_parse_u64(text, &number) && number < SECONDS_BELOW) {
		*ret = (int64_t)number * CLOCK_NS_PER_S;
		return 0;
	}
	return units_parse_time(text, clock_real_ns(), ret, err);
}

/* A selector may have its type as the matcher __name__, too: with the type in front. */
static int read_selector(struct slice text, struct strbuf *out, struct err *err)
{
	struct selector selector;
	size_t kept = 0;
	int rc = selector_parse(text, &selector, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < selector.matchers_count; i++) {
		const struct matcher *matcher = &selector.matchers[i];

		if (selector.has_type || !slice_is(matcher->name, "__name__") ||
		    matcher->op != MATCH_EQUAL) {
			selector.matchers[kept++] = *matcher;
			continue;
		}
		rc = profile_type_parse(matcher->value, &selector.type, err);
		selector.has_type = true;
	}
	selector.matchers_count = kept;
	if (!rc)
		selector_format(out, &selector);
	selector_free(&selector);
	return rc;
}

/* The names of one side's parameters. */
struct side_names {
	const char *query, *from, *until;
};

static int begin_render(struct serve *serve, const struct net_request *request,
			const struct side_names *names, struct query_request *ret,
			struct slice *ret_nodes, struct err *err)
{
	struct parameters reading;
	struct strbuf selector = { 0 };
	int64_t from_ns, to_ns;
	int rc;

	parameters_init(&reading);
	rc = render_time(&reading, request, names->from, "now-1h", &from_ns, err);
	if (!rc)
		rc = render_time(&reading, request, names->until, "now", &to_ns, err);
	if (!rc)
		rc = read_selector(parameters_text(&reading, request, names->query, ""), &selector,
				   err);
	if (!rc)
		rc = query_request_begin_with(serve, request, strbuf_slice(&selector),
					      PARAMETERS_TYPE_NEEDED, from_ns, to_ns, ret, err);
	ret->asked.params.deltas_first = true;
	if (!rc) {
		*ret_nodes = parameters_text(&ret->asked, request, "max-nodes", "");
		if (!ret_nodes->len)
			*ret_nodes = parameters_text(&ret->asked, request, "maxNodes", "");
	}
	strbuf_free(&selector);
	parameters_free(&reading);
	return rc;
}

static size_t nodes_of(struct slice text)
{
	uint64_t nodes = 0;

	if (!slice_parse_u64(text, &nodes) || !nodes || nodes >= MAX_NODES_MAX)
		return MAX_NODES_DEFAULT;
	return nodes;
}

/* The time lines come first: their snapshot does for the sum, too, but not the other way round. */
static int render(struct query_request *query, struct slice group_by, const struct timeline *line,
		  struct rendering *ret, struct err *err)
{
	struct query_range_params range = { .base = query->asked.params,
					    .step_ns = line->step_ns,
					    .sum_all = true,
					    .spread = !line->mean };
	int rc = query_request_series(query, &range, &ret->whole, err);

	if (!rc && group_by.len) {
		range.sum_all = false;
		range.base.group_by[0] = group_by;
		range.base.group_by_count = 1;
		rc = query_request_open(query, err);
		if (!rc)
			rc = query_request_series(query, &range, &ret->groups, err);
		ret->is_grouped = !rc;
	}
	query->asked.params.nodes_only = true;
	return rc ? rc : query_request_tree(query, &ret->tree, err);
}

static int render_as_dot(struct query_request *query, struct net_response *response,
			 struct err *err)
{
	struct tree *tree = NULL;
	int rc;

	query->asked.params.nodes_only = true;
	rc = query_request_tree(query, &tree, err);
	response->content_type = "text/plain; charset=utf-8";
	if (!rc && tree->total)
		render_dot(tree, NULL, &response->body);
	tree_free(tree);
	return rc;
}

static int render_as_json(struct query_request *query, const struct net_request *request,
			  struct net_response *response, size_t max_nodes, struct err *err)
{
	struct timeline line = { .from_ns = query->asked.params.from_ns,
				 .to_ns = query->asked.params.to_ns };
	struct rendering rendering = { 0 };
	int rc;

	line.step_ns = timeline_step_ns(line.from_ns, line.to_ns);
	line.mean = slice_is(parameters_text(&query->asked, request, "aggregation", ""), "avg");
	rc = render(query, parameters_text(&query->asked, request, "groupBy", ""), &line,
		    &rendering, err);
	if (!rc) {
		response->content_type = "application/json";
		put_render_json(&response->body, &rendering, &line, max_nodes);
	}
	query_series_free(&rendering.whole);
	query_series_free(&rendering.groups);
	tree_free(rendering.tree);
	return rc;
}

void pyro_render(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct side_names names = { "query", "from", "until" };
	struct query_request query = { 0 };
	struct slice nodes = { 0 };
	struct err err;
	int rc = begin_render(context, request, &names, &query, &nodes, &err);

	if (!rc && slice_is(parameters_text(&query.asked, request, "format", ""), "dot"))
		rc = render_as_dot(&query, response, &err);
	else if (!rc)
		rc = render_as_json(&query, request, response, nodes_of(nodes), &err);
	query_request_end(&query);
	if (rc)
		net_response_error(request, response, &err);
}

static void put_diff_json(struct strbuf *out, const struct tree *tree, size_t max_nodes)
{
	struct flamebearer flame;
	struct json json;

	begin_json(&json, out, tree, "double", max_nodes, &flame);
	json_member_int(&json, "leftTicks", flame.left);
	json_member_int(&json, "rightTicks", flame.right);
	json_close_object(&json);
	flamebearer_free(&flame);
}

/* GET /pyroscope/render-diff: the right side compared to the left. */
void pyro_render_diff(void *context, const struct net_request *request,
		      struct net_response *response)
{
	static const struct side_names sides[] = { { "leftQuery", "leftFrom", "leftUntil" },
						   { "rightQuery", "rightFrom", "rightUntil" } };
	struct query_request left = { 0 }, right = { 0 };
	struct tree *tree = NULL;
	struct slice nodes = { 0 };
	struct err err;
	int rc = begin_render(context, request, &sides[0], &left, &nodes, &err);

	left.is_part = true;
	if (!rc)
		rc = begin_render(context, request, &sides[1], &right, &nodes, &err);
	right.asked.params.nodes_only = true;
	if (!rc)
		rc = query_request_diff(&left, &right, &tree, &err);
	if (!rc) {
		response->content_type = "application/json";
		put_diff_json(&response->body, tree, nodes_of(nodes));
	}
	tree_free(tree);
	query_request_end(&left);
	query_request_end(&right);
	if (rc)
		net_response_error(request, response, &err);
}
