/* SPDX-License-Identifier: Apache-2.0 */
/* answer_place - where it was spent: in which lines of source code, and who called whom. */
#include <stdlib.h>

#include "base/mem.h"
#include "server/query/tree/lines.h"
#include "server/query/render/render.h"
#include "server/serve/api/query_request.h"
#include "server/query/tree/report_functions.h"

#define LINES_MEMORY_BYTES ((size_t)256 << 20)
#define CALLGRAPH_DEFAULT 200
#define CALLGRAPH_MAX 5000

static void put_place(struct json *json, const struct tree *tree, const struct lines_place *place)
{
	json_open_object(json);
	json_member_string(json, "file", place->file);
	json_member_string(json, "mapping", place->mapping);
	json_member_string(json, "build_id", place->build_id);
	json_member_int(json, "self", place->self);
	json_member_int(json, "total", place->total);
	json_member_array(json, "functions");
	for (size_t i = 0; i < place->functions_count; i++)
		json_put_string(json, tree->functions[place->functions[i]].name);
	json_close_array(json);
	json_member_array(json, "lines");
	for (size_t i = 0; i < place->values_count; i++) {
		json_open_array(json);
		json_put_uint(json, place->values[i].at);
		json_put_int(json, place->values[i].self);
		json_put_int(json, place->values[i].total);
		json_close_array(json);
	}
	json_close_array(json);
	json_close_object(json);
}

static void put_lines(const struct tree *tree, const struct lines_wanted *wanted,
		      const struct lines *lines, struct strbuf *out)
{
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	render_header_json(&json, tree);
	json_member_string(&json, "function", wanted->function);
	json_member_array(&json, "files");
	for (size_t i = 0; i < lines->places_count; i++)
		put_place(&json, tree, &lines->places[i]);
	json_close_array(&json);
	json_close_object(&json);
}

static int lines_of(struct query_request *query, const struct net_request *request,
		    struct strbuf *out, struct err *err)
{
	const struct lines_wanted wanted = {
		.function = parameters_text(&query->asked, request, "function", ""),
		.file = parameters_text(&query->asked, request, "file", ""),
		.build_id = parameters_text(&query->asked, request, "build_id", ""),
	};
	struct tree *tree = NULL;
	struct lines lines;
	int rc;

	if (!wanted.function.len && !wanted.file.len)
		return err_set(
			err, ERR_INVALID,
			"parameter \"function\" or \"file\" is missing: whose lines to show");
	rc = query_request_tree(query, &tree, err);
	if (rc)
		return rc;
	rc = lines_make(tree, &wanted, LINES_MEMORY_BYTES, &query->asked.params.limits, &lines,
			err);
	if (!rc) {
		put_lines(tree, &wanted, &lines, out);
		lines_free(&lines);
	}
	tree_free(tree);
	return rc;
}

void answer_lines(void *context, const struct net_request *request, struct net_response *response)
{
	query_request_answer(context, request, response, lines_of);
}

/* The functions with the largest cumulative values, and where each stands in the answer. */
struct chosen {
	const struct report_functions *functions;
	uint32_t *order;
	size_t count;
	uint32_t *number; /* by function of the tree, + 1; 0 = left out */
};

static void choose(const struct tree *tree, struct report_functions *functions, size_t limit,
		   struct chosen *ret)
{
	*ret = (struct chosen){ .functions = functions, .order = functions->order };
	ret->count = functions->count < limit ? functions->count : limit;
	ret->number = mem_new_array(uint32_t, (size_t)tree->functions_count + 1);
	report_functions_by_cumulative(functions);
	for (size_t i = 0; i < ret->count; i++)
		ret->number[ret->order[i]] = (uint32_t)i + 1;
}

static void put_callgraph(const struct tree *tree, const struct chosen *chosen, struct strbuf *out)
{
	const struct report_functions *functions = chosen->functions;
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	render_header_json(&json, tree);
	json_member_uint(&json, "left_out", functions->count - chosen->count);
	json_member_array(&json, "functions");
	for (size_t i = 0; i < chosen->count; i++) {
		json_open_object(&json);
		render_function_json(&json, tree, &tree->functions[chosen->order[i]]);
		json_member_int(&json, "flat", functions->flat[chosen->order[i]]);
		json_member_int(&json, "cum", functions->cumulative[chosen->order[i]]);
		json_close_object(&json);
	}
	json_close_array(&json);
	json_member_array(&json, "edges");
	for (size_t i = 0; i < functions->edges_count; i++) {
		const struct report_edge *edge = &functions->edges[i];

		if (!chosen->number[edge->caller] || !chosen->number[edge->callee])
			continue;
		json_open_array(&json);
		json_put_uint(&json, chosen->number[edge->caller] - 1);
		json_put_uint(&json, chosen->number[edge->callee] - 1);
		json_put_int(&json, edge->value);
		json_close_array(&json);
	}
	json_close_array(&json);
	json_close_object(&json);
}

static int callgraph_of(struct query_request *query, const struct net_request *request,
			struct strbuf *out, struct err *err)
{
	struct slice limit = parameters_text(&query->asked, request, "limit", "");
	struct report_functions functions;
	uint64_t count = CALLGRAPH_DEFAULT;
	struct tree *tree = NULL;
	struct chosen chosen;
	int rc;

	if (limit.len && (!slice_parse_u64(limit, &count) || !count || count > CALLGRAPH_MAX))
		return err_set(err, ERR_INVALID, "parameter \"limit\" is not 1 to %d",
			       CALLGRAPH_MAX);
	query->asked.params.nodes_only = true;
	rc = query_request_tree(query, &tree, err);
	if (rc)
		return rc;
	report_functions_make(tree, &functions);
	choose(tree, &functions, count, &chosen);
	put_callgraph(tree, &chosen, out);
	free(chosen.number);
	report_functions_free(&functions);
	tree_free(tree);
	return 0;
}

void answer_callgraph(void *context, const struct net_request *request,
		      struct net_response *response)
{
	query_request_answer(context, request, response, callgraph_of);
}
