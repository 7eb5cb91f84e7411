/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_flame - the flame graphs and profiles of querier.v1.QuerierService (handlers of
 * calls.h: protobuf in and out).
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/archive/compress.h"
#include "codec/wire/pb.h"
#include "server/query/tree/nodes.h"
#include "server/query/render/render.h"
#include "server/query/render/render_export.h"
#include "server/serve/pyroscope/pyro_request.h"
#include "server/serve/rpc/rpc_message.h"

#define MAX_NODES_DEFAULT 8192
#define MAX_NODES_MAX 1000000
#define PPROF_BYTES_MAX ((size_t)1 << 30)

enum { FORMAT_TREE = 2, FORMAT_DOT = 3, FORMAT_PPROF = 4 };

static size_t nodes_of(int64_t asked)
{
	if (asked <= 0)
		return MAX_NODES_DEFAULT;
	return asked > MAX_NODES_MAX ? MAX_NODES_MAX : (size_t)asked;
}

/* FlameGraph{ names = 1; levels = 2{ values = 1 }; total = 3; max_self = 4 }, and of FlameGraphDiff
 * left = 5; right = 6. */
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
	pb_put_varint(out, 5, (uint64_t)flame->left);
	pb_put_varint(out, 6, (uint64_t)flame->right);
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

/* google.v1.Profile, not packed. */
static int put_profile(struct strbuf *out, struct tree *tree, const struct pyro_request *pyro,
		       struct err *err)
{
	struct strbuf packed = { 0 };
	int rc = 0;

	if (pyro->call_site_count) {
		tree_keep_calls(tree, pyro->call_site, pyro->call_site_count);
		rc = tree_stacks_of_nodes(tree, err);
	}
	if (!rc) {
		render_pprof(tree, &packed);
		rc = compress_gunzip(strbuf_slice(&packed), PPROF_BYTES_MAX, out, err);
	}
	strbuf_free(&packed);
	return rc;
}

/* PprofProfile{ profile = 1 } as field 5 */
static int put_profile_field(struct strbuf *out, struct tree *tree, const struct pyro_request *pyro,
			     struct err *err)
{
	struct strbuf profile = { 0 };
	int rc = put_profile(&profile, tree, pyro, err);
	size_t begun;

	if (!rc) {
		begun = pb_begin(out, 5);
		pb_put_bytes(out, 1, strbuf_slice(&profile));
		pb_end(out, begun);
	}
	strbuf_free(&profile);
	return rc;
}

static void put_dot(struct strbuf *out, const struct tree *tree)
{
	struct strbuf dot = { 0 };

	render_dot(tree, NULL, &dot);
	pb_put_bytes(out, 3, strbuf_slice(&dot));
	strbuf_free(&dot);
}

static int put_stacktraces(struct strbuf *out, struct tree *tree, const struct pyro_request *pyro,
			   struct err *err)
{
	struct flamebearer flame;

	if (pyro->format > FORMAT_PPROF)
		return err_set(err, ERR_UNSUPPORTED, "format %lld is not supported",
			       (long long)pyro->format);
	if (!tree->reports || (pyro->ids_count[PYRO_SPAN] && !tree->total))
		return 0; /* no flame graph: what Pyroscope's clients take for "no data" */
	if (pyro->format == FORMAT_PPROF)
		return put_profile_field(out, tree, pyro, err);
	if (pyro->call_site_count)
		tree_keep_calls(tree, pyro->call_site, pyro->call_site_count);
	if (pyro->format == FORMAT_TREE) {
		put_tree(out, tree);
		return 0;
	}
	if (pyro->format == FORMAT_DOT) {
		put_dot(out, tree);
		return 0;
	}
	render_flamebearer(tree, nodes_of(pyro->max_nodes), &flame);
	put_flame_graph(out, &flame);
	flamebearer_free(&flame);
	return 0;
}

static void answer_stacktraces(struct serve *serve, const struct net_request *request,
			       struct net_response *response, const struct pyro_shape *shape)
{
	struct query_request query = { 0 };
	struct tree *tree = NULL;
	struct pyro_request pyro;
	struct err err;
	int rc = pyro_begin(serve, request, shape, PARAMETERS_TYPE_NEEDED, &pyro, &query, &err);

	query.asked.params.nodes_only = rc || pyro.format != FORMAT_PPROF;
	if (!rc)
		rc = pyro_tree(&pyro, &query, &tree, &err);
	if (!rc)
		rc = put_stacktraces(&response->body, tree, &pyro, &err);
	tree_free(tree);
	rpc_finish(request, response, rc, &query, &err);
}

#define STACKTRACES_SHAPE                                                                          \
	.type = 1, .selector = 2, .start = 3, .end = 4, .max_nodes = 5, .format = 6,               \
	.stack_selector = 7, .ids = { [PYRO_PROFILE] = 8, [PYRO_TRACE] = 10, [PYRO_SPAN] = 11 }

void pyro_stacktraces(void *context, const struct net_request *request,
		      struct net_response *response)
{
	static const struct pyro_shape shape = { .name = "SelectMergeStacktracesRequest",
						 STACKTRACES_SHAPE };

	answer_stacktraces(context, request, response, &shape);
}

void pyro_span_profile(void *context, const struct net_request *request,
		       struct net_response *response)
{
	static const struct pyro_shape shape = { .name = "SelectMergeSpanProfileRequest",
						 .type = 1,
						 .selector = 2,
						 .ids = { [PYRO_SPAN] = 3 },
						 .start = 4,
						 .end = 5,
						 .max_nodes = 6,
						 .format = 7 };

	answer_stacktraces(context, request, response, &shape);
}

/* DiffRequest{ left = 1; right = 2 }: each a SelectMergeStacktracesRequest. */
static int read_diff(struct slice body, struct pyro_request *left, struct pyro_request *right,
		     struct err *err)
{
	static const struct pyro_shape shape = { .name = "DiffRequest", STACKTRACES_SHAPE };
	struct pb_reader in = pb_reader_of(body);
	struct pb_field field;
	int rc = 0;

	*left = *right = (struct pyro_request){ 0 };
	while (!rc && pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 1)
			rc = pyro_read(&shape, field.bytes, left, err);
		else if (field.wire == PB_BYTES && field.number == 2)
			rc = pyro_read(&shape, field.bytes, right, err);
	}
	if (!rc && in.problem)
		rc = pb_fail(&in, "DiffRequest", err);
	if (!rc && (left->call_site_count || right->call_site_count))
		rc = err_set(err, ERR_UNSUPPORTED, "Diff: a call site is for single flame graphs");
	return rc;
}

void pyro_diff(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_request left = { 0 }, right = { 0 };
	struct pyro_request *sides = mem_new_array(struct pyro_request, 2);
	struct tree *tree = NULL;
	struct flamebearer flame;
	struct err err;
	int rc = read_diff(request->body, &sides[0], &sides[1], &err);

	if (!rc)
		rc = pyro_begin_with(context, request, &sides[0], PARAMETERS_TYPE_NEEDED, &left,
				     &err);
	left.is_part = true;
	if (!rc)
		rc = pyro_begin_with(context, request, &sides[1], PARAMETERS_TYPE_NEEDED, &right,
				     &err);
	right.asked.params.nodes_only = true;
	if (!rc)
		rc = query_request_diff(&left, &right, &tree, &err);
	if (!rc) {
		render_flamebearer(tree, nodes_of(sides[0].max_nodes), &flame);
		put_flame_graph(&response->body, &flame);
		flamebearer_free(&flame);
	}
	tree_free(tree);
	query_request_end(&left);
	free(sides);
	rpc_finish(request, response, rc, &right, &err);
}

void pyro_profile(void *context, const struct net_request *request, struct net_response *response)
{
	static const struct pyro_shape shape = { .name = "SelectMergeProfileRequest",
						 .type = 1,
						 .selector = 2,
						 .start = 3,
						 .end = 4,
						 .max_nodes = 5,
						 .stack_selector = 6,
						 .ids = { [PYRO_PROFILE] = 7, [PYRO_TRACE] = 8 } };
	struct query_request query = { 0 };
	struct tree *tree = NULL;
	struct pyro_request pyro;
	struct err err;
	int rc = pyro_begin(context, request, &shape, PARAMETERS_TYPE_NEEDED, &pyro, &query, &err);

	if (!rc)
		rc = pyro_tree(&pyro, &query, &tree, &err);
	if (!rc)
		rc = put_profile(&response->body, tree, &pyro, &err);
	tree_free(tree);
	rpc_finish(request, response, rc, &query, &err);
}
