/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render - a tree as text and bytes. Each format is documented in docs/api.md. The output is
 * appended to `out` and is stable: same tree, same bytes.
 */
#ifndef FIRN_SERVER_QUERY_RENDER_RENDER_H
#define FIRN_SERVER_QUERY_RENDER_RENDER_H

#include "base/strbuf.h"
#include "codec/wire/json.h"
#include "server/query/diff/compare.h"
#include "server/query/query.h"
#include "server/query/diff/rules.h"

/* Like `go tool pprof -top`: a header, then "flat flat% sum% cum cum% name", recursion once;
 * of a diff as with its -diff_base: what changed, in shares of the base. With intervals, those of
 * flat and cum stand before the name. limit 0 = all. */
void render_top(const struct tree *tree, size_t limit, struct strbuf *out);

/* A table as render_top's for each group-by value, below a line "value: total share"; shares are of
 * everything. No diff, no intervals. */
void render_top_groups(const struct tree *tree, size_t limit, struct strbuf *out);

/* "root;child;leaf VALUE" per line, root first; with group-by the value comes first. */
void render_folded(const struct tree *tree, struct strbuf *out);

/* A text tree, indented, with total and share; nodes below min_share (0..1) are summed up. */
void render_flamegraph_text(const struct tree *tree, double min_share, struct strbuf *out);

/* The JSON of docs/api.md: query, totals, functions, nodes. */
void render_json(const struct tree *tree, struct strbuf *out);
/* About how many bytes that takes. */
size_t render_json_bytes(const struct tree *tree);

/*
 * Parts of it, as members of the open object: the header of short answers about a tree; a type; a
 * function (without a tree: without the reason for a missing name).
 */
void render_header_json(struct json *json, const struct tree *tree);
void render_type_json(struct json *json, const struct profile_type *type, int64_t period);
void render_function_json(struct json *json, const struct tree *tree,
			  const struct tree_function *function);

/* A diff without the tree: a row per function, largest change first. */
void render_table_json(const struct tree *tree, struct strbuf *out);

/* Significance of changes: the object for the whole diff, and for one function. */
void render_significance_json(const struct comparison *comparison, struct json *json);
void render_change_json(const struct comparison *comparison, uint32_t row, struct json *json);
const char *render_method_name(enum significance_method method); /* "blocks" */
/* Intervals of values: the object of all, and a function's. */
void render_intervals_json(const struct tree *tree, struct json *json);
void render_interval_json(const struct comparison *intervals, uint32_t row, struct json *json);
/* The same for the terminal. */
void render_significance_text(const struct comparison *comparison, struct strbuf *out);
/* "breach" or "no breach" where there are rules, what breaches them, and the text above. */
int render_verdict_text(const struct tree *tree, const struct rules *rules,
			const struct query_limits *limits, struct strbuf *out, struct err *err);

/* Frames without names and the reasons: the object that JSON and the UI's format share. */
void render_unresolved_json(const struct tree *tree, struct json *json);
/* The same for the terminal: a line with the share of all, one per binary; nothing when all have
 * names. */
void render_unresolved_text(const struct tree *tree, struct strbuf *out);

/* speedscope.app's JSON. */
void render_speedscope(const struct tree *tree, struct strbuf *out);

/* profile.proto, gzip-compressed. */
void render_pprof(const struct tree *tree, struct strbuf *out);

/*
 * The UI's format (docs/formats/flamegraph.md): magic, version, sections; pre-order depth byte,
 * function varint, self varint. Nodes narrower than total / width_px / 2 are summed into their
 * parent's "trimmed" value; width_px 0 = everything.
 */
void render_binary(const struct tree *tree, uint32_t width_px, struct strbuf *out);

/*
 * Pyroscope's flamebearer, for its API: four numbers per node, level by level from the root: offset
 * from the end of the node before it, total, self, name. At most about max_nodes (0 = all); nodes
 * left out become an "other" below their parent. Names are borrowed from the tree.
 */
#define FLAMEBEARER_VALUES 4
#define FLAMEBEARER_DIFF_VALUES 7 /* the first three of the base, of the other side; name */
struct flamebearer_level {
	int64_t *values;
	size_t count;
};
struct flamebearer {
	struct slice *names;
	size_t names_count;
	struct flamebearer_level *levels;
	size_t levels_count;
	int64_t total, max_self;
	int64_t left, right; /* of a diff: the base's total, the other side's */
};
void render_flamebearer(const struct tree *tree, size_t max_nodes, struct flamebearer *ret);
void flamebearer_free(struct flamebearer *flamebearer);

/* The cost of the answer, and its sources. */
void render_explain_text(const struct query_stats *stats, struct strbuf *out);
void render_explain_json(const struct query_stats *stats, struct strbuf *out);

/* With intervals, points have two numbers more: series_noise.h. */
void render_series_json(const struct query_series_set *set, bool intervals, struct strbuf *out);
/*
 * For the terminal: one line per series: labels, then "time value per-second" columns; with
 * intervals, the ends of the value's follow.
 */
void render_series_text(const struct query_series_set *set, bool intervals, struct strbuf *out);

#endif
