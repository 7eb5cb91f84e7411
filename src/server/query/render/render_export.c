/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/render/render_export.h"

#include <stdlib.h>

#include "base/mem.h"
#include "server/query/render/render.h"

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

static void pprof(const struct tree *tree, const struct render_export_for *asked,
		  struct strbuf *out)
{
	(void)asked;
	render_pprof(tree, out);
}

static void folded(const struct tree *tree, const struct render_export_for *asked,
		   struct strbuf *out)
{
	(void)asked;
	render_folded(tree, out);
}

static void speedscope(const struct tree *tree, const struct render_export_for *asked,
		       struct strbuf *out)
{
	(void)asked;
	render_speedscope(tree, out);
}

double render_bytes_by_node(const struct tree *tree)
{
	double bytes = 0;

	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_function *function = &tree->functions[tree->nodes[i].function];

		bytes += (double)(function->name.len + function->file.len + function->mapping.len);
	}
	return bytes;
}

/* Each node with a value of its own has the names on its path. */
static double bytes_by_path(const struct tree *tree)
{
	double *path = mem_new_array(double, (size_t)tree->depth_max + 1), bytes = 0;

	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		path[node->depth] = path[node->depth - 1] +
				    (double)tree->functions[node->function].name.len + 1;
		if (node->self)
			bytes += path[node->depth];
	}
	free(path);
	return bytes;
}

int render_export_check(const struct render_export *as, const struct tree *tree, struct err *err)
{
	const char *why = as->refuses ? as->refuses(tree) : NULL;

	return why ? err_set(err, ERR_NOT_FOUND, "%s: %s", as->name, why) : 0;
}

double render_export_bytes(const struct render_export *as, const struct tree *tree)
{
	return as->repeated_bytes ? as->repeated_bytes(tree) : 0;
}

const struct render_export render_exports[] = {
	{ "pprof", "application/vnd.google.protobuf+gzip", ".pb.gz", true, true, NULL, pprof,
	  NULL },
	{ "folded", TEXT, ".folded", false, false, bytes_by_path, folded, NULL },
	{ "speedscope", JSON, ".speedscope.json", false, false, NULL, speedscope, NULL },
	{ "chrome", JSON, ".trace.json", false, false, render_bytes_by_node, render_chrome, NULL },
	{ "firefox", JSON, ".firefox.json", false, false, NULL, render_firefox, NULL },
	{ "callgrind", TEXT, ".callgrind", true, false, NULL, render_callgrind, NULL },
	{ "dot", TEXT, ".dot", false, false, NULL, render_dot, NULL },
	{ "llvm", TEXT, ".afdo", true, false, NULL, render_llvm, render_llvm_refuses },
	{ "bolt", TEXT, ".fdata", true, false, NULL, render_bolt, NULL },
};
const size_t render_exports_count = sizeof(render_exports) / sizeof(render_exports[0]);

const struct render_export *render_export_find(struct slice name)
{
	for (size_t i = 0; i < render_exports_count; i++)
		if (slice_is(name, render_exports[i].name))
			return &render_exports[i];
	return NULL;
}

static double unit_ns(struct slice unit)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "nanoseconds", 1 },
		      { "microseconds", 1e3 },
		      { "milliseconds", 1e6 },
		      { "seconds", 1e9 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (slice_is(unit, units[i].name))
			return units[i].ns;
	return 0;
}

double render_export_ns(const struct tree *tree)
{
	const struct profile_type *type = &tree->type;

	if (slice_is(type->sample_unit, "count") && slice_is(type->sample_type, "samples"))
		return unit_ns(type->period_unit) * (double)tree->period;
	return unit_ns(type->sample_unit);
}
