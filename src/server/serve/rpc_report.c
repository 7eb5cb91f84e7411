/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_report - parca.query.v1alpha1.QueryService/Query: modes merge and single, all filters,
 * group-by labels, inversion, sandwich. Field numbers: parca/query/v1alpha1/query.proto.
 */
#include "codec/pb.h"
#include "server/query/invert.h"
#include "server/query/render.h"
#include "server/serve/question.h"
#include "server/serve/report.h"
#include "server/serve/rpc_filter.h"
#include "server/serve/rpc_time.h"

#define LABEL_PREFIX "labels."

enum { MODE_SINGLE = 0, MODE_DIFF = 1, MODE_MERGE = 2 };
enum {
	REPORT_PPROF = 1,
	REPORT_TOP = 2,
	REPORT_CALLGRAPH = 3,
	REPORT_FLAMEGRAPH_ARROW = 5,
	REPORT_TABLE_ARROW = 7,
	REPORT_METADATA = 8,
};

struct rpc_report {
	uint64_t mode, report;
	struct slice selector;
	int64_t start_ns, end_ns; /* of single: start is the moment */
	struct slice group_by[QUERY_GROUP_BY_MAX];
	size_t group_by_count;
	double trim_percent;
	bool invert;
	struct slice sandwich;
	struct filter_list filters;
};

/* MergeProfile{ query = 1; start = 2; end = 3 }, SingleProfile{ time = 1; query = 2 } */
static int read_options(const struct pb_reader *outer, uint32_t mode_field, struct slice bytes,
			struct rpc_report *ret, struct err *err)
{
	bool is_merge = mode_field == 3;
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int rc = 0;

	ret->end_ns = INT64_MAX;
	while (!rc && pb_next(&in, &field)) {
		if (field.wire != PB_BYTES)
			continue;
		if (field.number == (is_merge ? 1 : 2))
			ret->selector = field.bytes;
		else if (field.number == (is_merge ? 2 : 1))
			rc = rpc_read_time(&in, field.bytes, &ret->start_ns, err);
		else if (is_merge && field.number == 3)
			rc = rpc_read_time(&in, field.bytes, &ret->end_ns, err);
	}
	if (!rc && in.problem)
		rc = pb_fail(&in, is_merge ? "MergeProfile" : "SingleProfile", err);
	return rc;
}

/* GroupBy{ fields = 1 }: only labels.NAME fields. */
static int read_group_by(const struct pb_reader *outer, struct slice bytes, struct rpc_report *ret,
			 struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;

	while (pb_next(&in, &field)) {
		if (field.wire != PB_BYTES || field.number != 1)
			continue;
		if (!slice_starts_with(field.bytes, SLICE_LITERAL(LABEL_PREFIX)))
			return err_set(err, ERR_UNSUPPORTED,
				       "group_by: \"%.*s\" is not labels.NAME",
				       SLICE_FMT(field.bytes));
		if (ret->group_by_count == QUERY_GROUP_BY_MAX)
			return err_set(err, ERR_LIMIT, "group_by: more than %d labels",
				       QUERY_GROUP_BY_MAX);
		ret->group_by[ret->group_by_count++] =
			slice_tail(field.bytes, strlen(LABEL_PREFIX));
	}
	return in.problem ? pb_fail(&in, "GroupBy", err) : 0;
}

static int read_message(const struct pb_reader *in, const struct pb_field *field,
			struct rpc_report *ret, struct err *err)
{
	switch (field->number) {
	case 2:
	case 3:
	case 4:
		return read_options(in, field->number, field->bytes, ret, err);
	case 8:
		return read_group_by(in, field->bytes, ret, err);
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

static bool is_known_report(uint64_t report)
{
	return report == REPORT_PPROF || report == REPORT_TOP || report == REPORT_CALLGRAPH ||
	       report == REPORT_FLAMEGRAPH_ARROW || report == REPORT_TABLE_ARROW ||
	       report == REPORT_METADATA;
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
	if (ret->mode != MODE_MERGE && ret->mode != MODE_SINGLE)
		return err_set(err, ERR_UNSUPPORTED, "Query: mode %llu is not supported yet",
			       (unsigned long long)ret->mode);
	if (!is_known_report(ret->report))
		return err_set(err, ERR_UNSUPPORTED, "Query: report type %llu is not supported yet",
			       (unsigned long long)ret->report);
	return 0;
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

static int begin(struct serve *serve, const struct net_request *request, struct rpc_report *rpc,
		 struct question *ret, struct err *err)
{
	bool is_single = rpc->mode == MODE_SINGLE;
	int64_t window_ns = is_single ? QUESTION_MOMENT_WINDOW_NS : 0;
	int rc = question_begin_with(serve, request, rpc->selector, QUESTION_TYPE_NEEDED,
				     rpc->start_ns - window_ns,
				     is_single ? rpc->start_ns + window_ns : rpc->end_ns, ret, err);

	for (size_t i = 0; !rc && i < rpc->group_by_count; i++)
		rc = question_group_by(ret, rpc->group_by[i], err);
	if (rc)
		return rc;
	ret->params.at_moment = is_single;
	ret->params.moment_ns = rpc->start_ns;
	ret->params.moment_window_ns = window_ns;
	ret->params.filters = &rpc->filters;
	ret->params.nodes_only = rpc->report != REPORT_PPROF;
	return 0;
}

static int put_metadata(struct question *question, const struct tree *tree, struct strbuf *out,
			struct err *err)
{
	struct slice *names;
	size_t count;
	int rc = question_open(question, err); /* roll-ups may lack series */

	if (!rc)
		rc = query_labels(&question->source, question->params.selector,
				  question->params.from_ns, question->params.to_ns,
				  &question->arena, &names, &count, err);
	if (!rc)
		report_metadata(tree, names, count, out);
	return rc;
}

static void put_pprof(const struct tree *tree, struct strbuf *out)
{
	struct strbuf profile = { 0 };

	render_pprof(tree, &profile);
	pb_put_bytes_always(out, 6, strbuf_slice(&profile));
	strbuf_free(&profile);
}

/* QueryResponse{ one report; total = 9; filtered = 10 } */
static int put_report(struct question *question, const struct rpc_report *rpc,
		      const struct tree *tree, struct strbuf *out, struct err *err)
{
	int rc = 0;

	switch (rpc->report) {
	case REPORT_TOP:
		report_top(tree, out);
		break;
	case REPORT_CALLGRAPH:
		report_callgraph(tree, out);
		break;
	case REPORT_FLAMEGRAPH_ARROW:
		report_flamegraph_arrow(tree, rpc->trim_percent, out);
		break;
	case REPORT_TABLE_ARROW:
		report_table_arrow(tree, out);
		break;
	case REPORT_METADATA:
		rc = put_metadata(question, tree, out, err);
		break;
	default:
		put_pprof(tree, out);
		break;
	}
	pb_put_varint(out, 9, (uint64_t)tree->total);
	pb_put_varint(out, 10, (uint64_t)tree->filtered);
	return rc;
}

static int answer(struct question *question, const struct rpc_report *rpc, struct strbuf *out,
		  struct err *err)
{
	struct tree *tree = NULL;
	int rc = question_tree(question, &tree, err);

	if (!rc && !tree->reports)
		rc = err_set(err, ERR_NOT_FOUND, "no profile matches; try a wider time range");
	if (!rc && rpc->invert)
		rc = tree_invert(tree, rpc->sandwich, err);
	if (!rc) {
		rc = put_report(question, rpc, tree, out, err);
	}
	tree_free(tree);
	return rc;
}

void rpc_query(void *context, const struct net_request *request, struct net_response *response)
{
	struct question question = { 0 };
	struct rpc_report rpc = { 0 };
	struct err err;
	int rc = read_request(request->body, &rpc, &err);

	if (!rc)
		rc = add_sandwich(&rpc, &err);
	if (!rc)
		rc = begin(context, request, &rpc, &question, &err);
	if (!rc)
		rc = answer(&question, &rpc, &response->body, &err);
	question_end(&question);
	filter_list_free(&rpc.filters);
	if (rc)
		net_response_error(request, response, &err);
}
