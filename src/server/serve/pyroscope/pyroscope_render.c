/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_render - GET /pyroscope/render and render-diff: a flame graph and its time line as
 * "flamebearer" JSON, for scripts and tools that know Pyroscope.
 */
#include "codec/wire/json.h"
#include "config/units.h"
#include "server/query/render/render.h"
#include "server/serve/api/query_request.h"

#define MAX_NODES_DEFAULT 8192
#define MAX_NODES_MAX 1000000
#define ARENA_BYTES ((size_t)1 << 20)
#define TIMELINE_POINTS 1500
#define TIMELINE_UNIT_NS (15 * CLOCK_NS_PER_S)
#define SECONDS_BELOW 100000000000ull /* larger numbers are milliseconds */

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

static void put_timeline_json(struct json *json, const struct query_series_set *set,
			      int64_t from_ns)
{
	const struct query_series *series = set->series_count ? &set->series[0] : NULL;
	int64_t first = series && series->points_count ? series->points[0].at_ns : from_ns;
	int64_t at_ns = first;

	json_member_object(json, "timeline");
	json_member_int(json, "startTime", first / CLOCK_NS_PER_S);
	json_member_array(json, "samples");
	for (size_t i = 0; series && i < series->points_count; at_ns += set->step_ns) {
		bool is_there = series->points[i].at_ns == at_ns;

		json_put_int(json, is_there ? series->points[i].value : 0);
		i += is_there;
	}
	json_close_array(json);
	json_member_int(json, "durationDelta", set->step_ns / CLOCK_NS_PER_S);
	json_put_key(json, "watermarks");
	json_put_null(json);
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

static void put_render_json(struct strbuf *out, const struct tree *tree,
			    const struct query_series_set *set, size_t max_nodes)
{
	struct flamebearer flame;
	struct json json;

	begin_json(&json, out, tree, "single", max_nodes, &flame);
	put_timeline_json(&json, set, tree->from_ns);
	json_put_key(&json, "groups");
	json_put_null(&json);
	json_put_key(&json, "heatmap");
	json_put_null(&json);
	json_close_object(&json);
	flamebearer_free(&flame);
}

/* from and until: as everywhere, and seconds or milliseconds since the epoch. */
static int render_time(struct query_request *query, const struct net_request *request,
		       const char *name, const char *fallback, int64_t *ret, struct err *err)
{
	struct slice text = query_request_text(query, request, name, fallback);
	uint64_t number;

	if (slice_parse_u64(text, &number) && number < SECONDS_BELOW) {
		*ret = (int64_t)number * CLOCK_NS_PER_S;
		return 0;
	}
	return units_parse_time(text, clock_real_ns(), ret, err);
}

/* The names of one side's parameters. */
struct side_names {
	const char *query, *from, *until;
};

static int begin_render(struct serve *serve, const struct net_request *request,
			const struct side_names *names, struct query_request *ret,
			struct slice *ret_nodes, struct err *err)
{
	struct query_request reading = { 0 };
	int64_t from_ns, to_ns;
	int rc;

	arena_init(&reading.arena, ARENA_BYTES);
	rc = render_time(&reading, request, names->from, "now-1h", &from_ns, err);
	if (!rc)
		rc = render_time(&reading, request, names->until, "now", &to_ns, err);
	if (!rc)
		rc = query_request_begin_with(
			serve, request, query_request_text(&reading, request, names->query, ""),
			QUERY_REQUEST_TYPE_NEEDED, from_ns, to_ns, ret, err);
	if (!rc) {
		*ret_nodes = query_request_text(ret, request, "max-nodes", "");
		if (!ret_nodes->len)
			*ret_nodes = query_request_text(ret, request, "maxNodes", "");
	}
	arena_free(&reading.arena);
	return rc;
}

static size_t nodes_of(struct slice text)
{
	uint64_t nodes = 0;

	slice_parse_u64(text, &nodes);
	return nodes && nodes < MAX_NODES_MAX ? nodes : MAX_NODES_DEFAULT;
}

void pyro_render(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct side_names names = { "query", "from", "until" };
	struct query_request query = { 0 };
	struct query_series_set set = { 0 };
	struct query_range_params range;
	struct tree *tree = NULL;
	struct slice nodes = { 0 };
	struct err err;
	int rc = begin_render(context, request, &names, &query, &nodes, &err);

	range = (struct query_range_params){ .base = query.params, .sum_all = true };
	range.step_ns = timeline_step_ns(query.params.from_ns, query.params.to_ns);
	query.params.nodes_only = true;
	if (!rc)
		rc = query_request_tree(&query, &tree, &err);
	if (!rc)
		rc = query_request_series(&query, &range, &set, &err);
	if (!rc) {
		response->content_type = "application/json";
		put_render_json(&response->body, tree, &set, nodes_of(nodes));
		query_series_free(&set);
	}
	tree_free(tree);
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
	right.params.nodes_only = true;
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
