/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/render_export.h"

#include "server/query/render.h"

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

static void pprof(const struct tree *tree, struct resolver *resolver, struct strbuf *out)
{
	(void)resolver;
	render_pprof(tree, out);
}

static void folded(const struct tree *tree, struct resolver *resolver, struct strbuf *out)
{
	(void)resolver;
	render_folded(tree, out);
}

static void speedscope(const struct tree *tree, struct resolver *resolver, struct strbuf *out)
{
	(void)resolver;
	render_speedscope(tree, out);
}

const struct render_export render_exports[] = {
	{ "pprof", "application/vnd.google.protobuf+gzip", ".pb.gz", true, true, pprof },
	{ "folded", TEXT, ".folded", false, false, folded },
	{ "speedscope", JSON, ".speedscope.json", false, false, speedscope },
	{ "chrome", JSON, ".trace.json", false, false, render_chrome },
	{ "firefox", JSON, ".firefox.json", false, false, render_firefox },
	{ "callgrind", TEXT, ".callgrind", true, false, render_callgrind },
	{ "dot", TEXT, ".dot", false, false, render_dot },
	{ "llvm", TEXT, ".afdo", true, false, render_llvm },
	{ "bolt", TEXT, ".fdata", true, false, render_bolt },
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
