/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_export - a tree in the formats of other tools: one table, for the server and the command
 * line.
 *
 *   pprof       profile.proto, gzip; .pgo of it is what Go's compiler takes
 *   folded      flamegraph.pl
 *   speedscope  speedscope.app
 *   chrome      Trace Event Format: chrome://tracing, Perfetto
 *   firefox     profiler.firefox.com: "processed profile format", version 62
 *   callgrind   callgrind_annotate, KCachegrind: lines with their own and their calls' values
 *   dot         Graphviz: the call graph of the functions with the largest values
 *   llvm        LLVM's sample profile as text (clang -fprofile-sample-use)
 *   bolt        llvm-bolt's profile without branches (-data=FILE)
 *
 * Output is stable: same tree, same bytes. Names are cleaned of what a format cannot hold. Values
 * below zero are left out of all but pprof and folded.
 */
#ifndef FIRN_SERVER_QUERY_RENDER_RENDER_EXPORT_H
#define FIRN_SERVER_QUERY_RENDER_RENDER_EXPORT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "server/query/tree/tree.h"

struct resolver;
struct query_limits; /* query.h */

/* Used by bolt alone, which looks addresses up: the resolver, and what may end the wait. */
struct render_export_for {
	struct resolver *resolver;	   /* may be NULL */
	const struct query_limits *limits; /* NULL: none; checked again by who asked */
};

struct render_export {
	const char *name;
	const char *content_type;
	const char *ending; /* of its files, with the dot */
	bool needs_stacks;  /* of the tree: not query_params.nodes_only */
	bool is_binary;
	/* Bytes of what is written more than once: names, files, binaries. NULL: nothing is. */
	double (*repeated_bytes)(const struct tree *tree);
	void (*write)(const struct tree *tree, const struct render_export_for *asked,
		      struct strbuf *out);
	/* Why nothing of the tree can be written; NULL: something can. No function: always. */
	const char *(*refuses)(const struct tree *tree);
};

#define RENDER_EXPORT_NAMES "pprof, folded, speedscope, chrome, firefox, callgrind, dot, llvm, bolt"

extern const struct render_export render_exports[];
extern const size_t render_exports_count;

/* ERR_NOT_FOUND with the reason when nothing of the tree is for that format. */
MUST_USE int render_export_check(const struct render_export *as, const struct tree *tree,
				 struct err *err);

/* NULL when there is none of that name. */
const struct render_export *render_export_find(struct slice name);

/* Nanoseconds that a value of 1 stands for (times, and samples with a period in time), else 0. */
double render_export_ns(const struct tree *tree);

/* A lower bound of the answer's bytes, to be checked against a budget before it is made. */
double render_export_bytes(const struct render_export *as, const struct tree *tree);
/* Texts that stand with each node. */
double render_bytes_by_node(const struct tree *tree);

void render_chrome(const struct tree *tree, const struct render_export_for *asked,
		   struct strbuf *out);
void render_firefox(const struct tree *tree, const struct render_export_for *asked,
		    struct strbuf *out);
void render_callgrind(const struct tree *tree, const struct render_export_for *asked,
		      struct strbuf *out);
void render_dot(const struct tree *tree, const struct render_export_for *asked, struct strbuf *out);
void render_llvm(const struct tree *tree, const struct render_export_for *asked,
		 struct strbuf *out);
const char *render_llvm_refuses(const struct tree *tree);
void render_bolt(const struct tree *tree, const struct render_export_for *asked,
		 struct strbuf *out);

#endif
