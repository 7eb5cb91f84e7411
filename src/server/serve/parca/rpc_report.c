/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_report - parca.query.v1alpha1.QueryService/Query: its modes, reports, filters, group-by
 * labels, inversion, sandwich. Field numbers: parca/query/v1alpha1/query.proto.
 */
#include "codec/wire/pb.h"
#include "server/debuginfo/source.h"
#include "server/query/name/name.h"
#include "server/query/tree/invert.h"
#include "server/query/tree/nodes.h"
#include "server/query/render/render.h"
#include "server/query/render/render_export.h"
#include "server/serve/api/query_request.h"
#include "server/serve/parca/report.h"
#include "server/serve/parca/report_diff.h"
#include "server/serve/rpc/rpc_filter.h"
#include "server/serve/rpc/rpc_message.h"

#define LABEL_PREFIX "labels."
#define SOURCE_PATIENCE_NS (10 * CLOCK_NS_PER_S)
#define LINES_MEMORY_BYTES ((size_t)256 << 20)

enum { MODE_SINGLE = 0, MODE_DIFF = 1, MODE_MERGE = 2 };
enum {
	REPORT_FLAMEGRAPH = 0,
	REPORT_PPROF = 1,
	REPORT_TOP = 2,
	REPORT_CALLGRAPH = 3,
	REPORT_FLAMEGRAPH_TABLE = 4,
	REPORT_FLAMEGRAPH_ARROW = 5,
	REPORT_SOURCE = 6,
	REPORT_TABLE_ARROW = 7,
	REPORT_METADATA = 8,
	REPORT_FLAMECHART = 9,
	REPORTS,
};

/* One selection; a diff has two. */
struct rpc_side {
	bool is_there, is_single;
	struct slice selector;
	int64_t start_ns, end_ns; /* of single: start is the moment */
};

struct rpc_report {
	uint64_t mode, report;
	struct rpc_side side, base; /* base: of a diff alone */
	bool is_absolute;
	struct slice group_by[QUERY_GROUP_BY_MAX];
	size_t group_by_count;
	unsigned apart; /* NAME_APART_ bits */
	bool by_timestamp;
	struct slice build_id, file; /* SourceReference */
	bool source_only;
	double trim_percent;
	bool invert;
	struct slice sandwich;
	struct filter_list filters;
};

/* MergeProfile{ query = 1; start = 2; end = 3 }, SingleProfile{ time = 1; query = 2 } */
static int read_side(const struct pb_reader *outer, bool is_single, struct slice bytes,
		     struct rpc_side *ret, struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	*ret = (struct rpc_side){ .is_there = true, .is_single = is_single, .end_ns = INT64_MAX };
	while (!rc && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES)
			continue;
		if (field.number == (is_single ? 2 : 1))
			ret->selector = field.bytes;
		else if (field.number == (is_single ? 1 : 2))
			rc = rpc_read_time(&in, field.bytes, &ret->start_ns, err);
		else if (!is_single && field.number == 3)
			rc = rpc_read_time(&in, field.bytes, &ret->end_ns, err);
	}
	if (!rc && in.problem)
		rc = pb_fail(&in, is_single ? "SingleProfile" : "MergeProfile", err);
	return rc;
}

/* ProfileDiffSelection{ mode = 1; merge = 2; single = 3 }: the mode follows from which is there. */
static int read_diff_side(const struct pb_reader *outer, struct slice bytes, struct rpc_side *ret,
			  struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field))
		if (field.wire == PB_BYTES && (field.number == 2 || field.number == 3))
			rc = read_side(&in, field.number == 3, field.bytes, ret, err);
	if (!rc && in.problem)
		rc = pb_fail(&in, "ProfileDiffSelection", err);
	return rc;
}

/* DiffProfile{ a = 1; b = 2; absolute = 3 }: b is compared to a. */
static int read_diff(const struct pb_reader *outer, struct slice bytes, struct rpc_report *ret,
		     struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 1)
			rc = read_diff_side(&in, field.bytes, &ret->base, err);
		else if (field.wire == PB_BYTES && field.number == 2)
			rc = read_diff_side(&in, field.bytes, &ret->side, err);
		else if (field.wire == PB_VARINT && field.number == 3)
			ret->is_absolute = field.value;
	}
	if (!rc && in.problem)
		rc = pb_fail(&in, "DiffProfile", err);
	return rc;
}

/* SourceReference{ build_id = 1; filename = 2; source_only = 3 } */
static int read_reference(const struct pb_reader *outer, struct slice bytes, struct rpc_report *ret,
			  struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 1)
			ret->build_id = field.bytes;
		else if (field.wire == PB_BYTES && field.number == 2)
			ret->file = field.bytes;
		else if (field.wire == PB_VARINT && field.number == 3)
			ret->source_only = field.value;
	}
	return in.problem ? pb_fail(&in, "SourceReference", err) : 0;
}

/* What functions can be told apart by; function_name is what they always are. */
static const struct {
	const char *name;
	unsigned apart;
} group_by_fields[] = { { "function_name", 0 },
			{ "function_file_name", NAME_APART_FILE },
			{ "mapping_file", NAME_APART_MAPPING },
			{ "location_address", NAME_APART_ADDRESS } };

static int read_field(struct slice field, struct rpc_report *ret, struct err *err)
{
	for (size_t i = 0; i < sizeof(group_by_fields) / sizeof(group_by_fields[0]); i++) {
		if (!slice_is(field, group_by_fields[i].name))
			continue;
		ret->apart |= group_by_fields[i].apart;
		return 0;
	}
	if (slice_is(field, "timestamp")) {
		ret->by_timestamp = true;
		return 0;
	}
	if (!slice_starts_with(field, SLICE_LITERAL(LABEL_PREFIX)) ||
	    field.len == strlen(LABEL_PREFIX))
		return err_set(err, ERR_INVALID,
			       "group_by: there is no field \"%.*s\": labels.NAME, function_name, "
			       "function_file_name, mapping_file, location_address, timestamp",
			       SLICE_FMT(field));
	if (ret->group_by_count == QUERY_GROUP_BY_MAX)
		return err_set(err, ERR_LIMIT, "group_by: more than %d labels", QUERY_GROUP_BY_MAX);
	ret->group_by[ret->group_by_count++] = slice_tail(field, strlen(LABEL_PREFIX));
	return 0;
}

/* GroupBy{ fields = 1 } */
static int read_group_by(const struct pb_reader *outer, struct slice bytes, struct rpc_report *ret,
			 struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	while (!rc && pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			rc = read_field(field.bytes, ret, err);
	return !rc && in.problem ? pb_fail(&in, "GroupBy", err) : rc;
}

static int read_message(const struct pb_reader *in, const struct pb_field *field,
			struct rpc_report *ret, struct err *err)
{
	switch (field->number) {
	case 2:
		return read_diff(in, field->bytes, ret, err);
	case 3:
	case 4:
		return read_side(in, field->number == 4, field->bytes, &ret->side, err);
	case 8:
		return read_group_by(in, field->bytes, ret, err);
	case 9:
		return read_reference(in, field->bytes, ret, err);
	case 12:
		return rpc_filter_read(in, field->bytes, &ret->filters, err);
	case 13:
		ret->sandwich = field->bytes;
		return 0;
	default: /* filter_query, runtime_filter: Parca itself ignores them */
		return 0;
	}
}

static void read_number(const struct pb_field *field, struct rpc_report *ret)
{
	float percent;

	switch (field->number) {
	case 1:
		ret->mode = field->value;
		break;
	case 5:
		ret->report = field->value;
		break;
	case 7: {
		uint32_t bits = (uint32_t)field->value;

		memcpy(&percent, &bits, sizeof(percent));
		ret->trim_percent = percent > 0 && percent < 100 ? (double)percent : 0;
		break;
	}
	case 11:
		ret->invert = field->value;
		break;
	default:
		break;
	}
}

/* A flame graph by timestamp is Parca's other name of it. */
static bool is_chart(const struct rpc_report *rpc)
{
	return rpc->report == REPORT_FLAMECHART ||
	       (rpc->report == REPORT_FLAMEGRAPH_ARROW && rpc->by_timestamp);
}

/* What the fields say together. */
static int check_request(const struct rpc_report *rpc, struct err *err)
{
	if (rpc->mode > MODE_MERGE)
		return err_set(err, ERR_INVALID, "Query: there is no mode %llu",
			       (unsigned long long)rpc->mode);
	if (rpc->report >= REPORTS)
		return err_set(err, ERR_INVALID, "Query: invalid report type %llu",
			       (unsigned long long)rpc->report);
	if (!rpc->side.is_there || (rpc->mode == MODE_DIFF) != rpc->base.is_there ||
	    (rpc->mode != MODE_DIFF && rpc->side.is_single != (rpc->mode == MODE_SINGLE)))
		return err_set(err, ERR_INVALID, "Query: the options are not those of the mode");
	if (rpc->report == REPORT_SOURCE && !rpc->file.len)
		return err_set(err, ERR_INVALID, "Query: a source report needs source_reference");
	if (is_chart(rpc) && (rpc->mode != MODE_MERGE || rpc->invert))
		return err_set(err, ERR_UNSUPPORTED,
			       "Query: a flame chart is of a merge, and not turned around");
	if (rpc->mode == MODE_DIFF && rpc->group_by_count)
		return err_set(err, ERR_UNSUPPORTED, "Query: a diff cannot be grouped");
	return 0;
}

static int read_request(struct slice body, struct rpc_report *ret, struct err *err)
{
	struct pb_reader in = pb_reader_of(body);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		int rc = 0;

		if (field.wire == PB_BYTES)
			rc = read_message(&in, &field, ret, err);
		else
			read_number(&field, ret);
		if (rc)
			return rc;
	}
	if (in.problem)
		return pb_fail(&in, "QueryRequest", err);
	return check_request(ret, err);
}

/* A sandwich's lower half is what the function calls: stacks begin at it. */
static int add_sandwich(struct rpc_report *rpc, struct err *err)
{
	const struct filter_condition condition = { .field = FILTER_FUNCTION,
						    .op = FILTER_IS,
						    .text = rpc->sandwich };
	struct filter *filter;

	if (!rpc->sandwich.len || rpc->invert)
		return 0;
	filter = filter_list_add(&rpc->filters, FILTER_SHOW_FROM);
	if (!filter)
		return err_set(err, ERR_LIMIT, "Query: more than %d filters", FILTERS_MAX);
	return filter_add_condition(&rpc->filters, filter, &condition, err);
}

static int begin_side(struct serve *serve, const struct net_request *request,
		      const struct rpc_side *side, struct query_request *ret, struct err *err)
{
	int64_t window_ns = side->is_single ? PARAMETERS_MOMENT_WINDOW_NS : 0;
	int rc = query_request_begin_with(
		serve, request, side->selector, PARAMETERS_TYPE_NEEDED, side->start_ns - window_ns,
		side->is_single ? side->start_ns + window_ns : side->end_ns, ret, err);

	ret->asked.params.at_moment = side->is_single;
	ret->asked.params.moment_ns = side->start_ns;
	ret->asked.params.moment_window_ns = window_ns;
	return rc;
}

static int begin(struct serve *serve, const struct net_request *request, struct rpc_report *rpc,
		 struct query_request *ret, struct err *err)
{
	int rc = begin_side(serve, request, &rpc->side, ret, err);

	for (size_t i = 0; !rc && i < rpc->group_by_count; i++)
		rc = parameters_group_by(&ret->asked, rpc->group_by[i], err);
	if (rc)
		return rc;
	ret->asked.params.filters = &rpc->filters;
	ret->asked.params.nodes_only = rpc->report != REPORT_PPROF && rpc->report != REPORT_SOURCE;
	ret->asked.params.places = rpc->report == REPORT_TABLE_ARROW ||
				   (rpc->report == REPORT_FLAMEGRAPH_ARROW && !is_chart(rpc));
	if (rpc->report == REPORT_FLAMEGRAPH_ARROW || rpc->report == REPORT_FLAMECHART)
		ret->asked.params.apart = rpc->apart;
	if (rpc->report == REPORT_SOURCE)
		ret->asked.params.apart = NAME_APART_FILE;
	return 0;
}

static int put_metadata(struct query_request *query, const struct tree *tree, struct strbuf *out,
			struct err *err)
{
	struct slice *names;
	size_t count;
	int rc = query_request_list(query, err); /* roll-ups may lack series */

	if (!rc)
		rc = query_labels(&query->source, query->asked.params.selector,
				  query->asked.params.from_ns, query->asked.params.to_ns,
				  &query->asked.arena, &names, &count, err);
	if (!rc)
		report_metadata(tree, names, count, out);
	return rc;
}

static int put_pprof(struct tree *tree, struct strbuf *out, struct err *err)
{
	struct strbuf profile = { 0 };
	int rc = tree->base ? tree_stacks_of_nodes(tree, err) : 0;

	if (rc)
		return rc;
	render_pprof(tree, &profile);
	pb_put_bytes_always(out, 6, strbuf_slice(&profile));
	strbuf_free(&profile);
	return 0;
}

/* Values by line, and the text when there is one: Parca's UI shows either alone. */
static int put_source(struct query_request *query, const struct rpc_report *rpc,
		      const struct tree *tree, struct strbuf *out, struct err *err)
{
	const struct lines_wanted wanted = { .file = rpc->file, .build_id = rpc->build_id };
	const struct source_wanted sought = { .build_id = rpc->build_id,
					      .path = rpc->file,
					      .tenant =
						      query->serve->tenants ? &query->tenant : NULL,
					      .until_ns =
						      clock_monotonic_ns() + SOURCE_PATIENCE_NS };
	struct strbuf text = { 0 };
	struct lines lines;
	const char *from;
	int rc = source_find(query->serve->debuginfo, &sought, &text, &from, err);

	if (rc && (rpc->source_only || rc != -ERR_NOT_FOUND)) {
		strbuf_free(&text);
		return rc;
	}
	rc = lines_make(tree, &wanted, LINES_MEMORY_BYTES, &query->asked.params.limits, &lines,
			err);
	if (!rc) {
		report_source(tree, &lines, strbuf_slice(&text), out);
		lines_free(&lines);
	}
	strbuf_free(&text);
	return rc;
}

/* QueryResponse{ one report; total = 9; filtered = 10 } */
static int put_report(struct query_request *query, const struct rpc_report *rpc, struct tree *tree,
		      struct strbuf *out, struct err *err)
{
	int rc = 0;

	switch (rpc->report) {
	case REPORT_FLAMEGRAPH:
		rc = query_request_check_size(query, render_bytes_by_node(tree), err);
		if (!rc)
			report_flamegraph(tree, rpc->trim_percent, false, out);
		break;
	case REPORT_FLAMEGRAPH_TABLE:
		report_flamegraph(tree, rpc->trim_percent, true, out);
		break;
	case REPORT_SOURCE:
		rc = put_source(query, rpc, tree, out, err);
		break;
	case REPORT_TOP:
		report_top(tree, out);
		break;
	case REPORT_CALLGRAPH:
		report_callgraph(tree, out);
		break;
	case REPORT_FLAMEGRAPH_ARROW:
		report_flamegraph_arrow(tree, rpc->trim_percent, NULL, out);
		break;
	case REPORT_TABLE_ARROW:
		report_table_arrow(tree, out);
		break;
	case REPORT_METADATA:
		rc = put_metadata(query, tree, out, err);
		break;
	default:
		rc = put_pprof(tree, out, err);
		break;
	}
	pb_put_varint(out, 9, (uint64_t)tree->total);
	pb_put_varint(out, 10, (uint64_t)tree->filtered);
	return rc;
}

/* Both selections in one tree, the base's values made such that differences are right. */
static int ask_diff(struct query_request *query, const struct rpc_report *rpc, struct tree **ret,
		    struct err *err)
{
	struct query_request base = { 0 };
	int rc = begin_side(query->serve, query->request, &rpc->base, &base, err);

	base.is_part = true;
	if (!rc)
		rc = query_request_diff(&base, query, ret, err);
	query_request_end(&base);
	return rc;
}

/* A source report has no differences: Parca's of a diff is of what is compared, alone. */
static int answer_tree(struct query_request *query, const struct rpc_report *rpc,
		       struct strbuf *out, struct err *err)
{
	struct tree *tree = NULL;
	bool diff = rpc->mode == MODE_DIFF && rpc->report != REPORT_SOURCE;
	int rc = diff ? ask_diff(query, rpc, &tree, err) : query_request_tree(query, &tree, err);

	if (!rc && !tree->reports)
		rc = err_set(err, ERR_NOT_FOUND, "no profile matches; try a wider time range");
	if (!rc && rpc->invert)
		rc = tree_invert(tree, rpc->sandwich, 0, err);
	if (!rc && tree->base && !rpc->is_absolute)
		report_scale(tree);
	if (!rc)
		rc = put_report(query, rpc, tree, out, err);
	tree_free(tree);
	return rc;
}

static int answer_chart(struct query_request *query, struct strbuf *out, struct err *err)
{
	const struct query_params *params = &query->asked.params;
	struct flamechart chart;
	int64_t step_ns;
	int rc;

	if (params->to_ns == INT64_MAX || params->from_ns <= 0)
		return err_set(err, ERR_INVALID, "Query: a flame chart needs start and end");
	step_ns = flamechart_round_step(params->to_ns - params->from_ns, FLAMECHART_STEPS_DEFAULT);
	rc = query_request_chart(query, step_ns, &chart, err);
	if (rc)
		return rc;
	if (chart.reports)
		report_flamechart(&chart, out);
	else
		rc = err_set(err, ERR_NOT_FOUND, "no profile matches; try a wider time range");
	pb_put_varint(out, 9, (uint64_t)chart.total);
	pb_put_varint(out, 10, (uint64_t)chart.filtered);
	flamechart_free(&chart);
	return rc;
}

void rpc_query(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_request query = { 0 };
	struct rpc_report rpc = { 0 };
	struct err err;
	int rc = read_request(request->body, &rpc, &err);

	if (!rc)
		rc = add_sandwich(&rpc, &err);
	if (!rc)
		rc = begin(context, request, &rpc, &query, &err);
	if (!rc && is_chart(&rpc))
		rc = answer_chart(&query, &response->body, &err);
	else if (!rc)
		rc = answer_tree(&query, &rpc, &response->body, &err);
	query_request_end(&query);
	filter_list_free(&rpc.filters);
	if (rc)
		net_response_error(request, response, &err);
}
