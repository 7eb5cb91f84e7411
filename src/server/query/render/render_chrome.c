/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_chrome - Trace Event Format
 * (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): the flame
 * graph lying side by side, a thread per group-by value. Of times, a microsecond is one; of what is
 * no time, a microsecond is 1.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/json.h"
#include "server/query/render/render_export.h"
#include "server/query/work.h"

#define PID 1

struct chrome {
	const struct tree *tree;
	struct json json;
	double us; /* that a value of 1 stands for */
	uint64_t thread;
	int64_t *next; /* where the next child of the node at that depth begins */
};

static void begin_event(struct chrome *chrome, const char *phase, struct slice name)
{
	struct json *json = &chrome->json;

	json_open_object(json);
	json_member_string(json, "name", name);
	json_member_text(json, "ph", phase);
	json_member_text(json, "cat", "stack");
	json_member_int(json, "pid", PID);
	json_member_uint(json, "tid", chrome->thread);
}

static void put_name(struct chrome *chrome, const char *what, struct slice name)
{
	begin_event(chrome, "M", slice_of(what));
	json_member_object(&chrome->json, "args");
	json_member_string(&chrome->json, "name", name);
	json_close_object(&chrome->json);
	json_close_object(&chrome->json);
}

static void put_us(struct chrome *chrome, const char *key, int64_t value)
{
	json_put_key(&chrome->json, key);
	json_put_double(&chrome->json, (double)value * chrome->us);
}

static void put_node(struct chrome *chrome, const struct tree_node *node, int64_t start)
{
	const struct tree_function *function = &chrome->tree->functions[node->function];
	struct json *json = &chrome->json;

	begin_event(chrome, "X", function->name);
	put_us(chrome, "ts", start);
	put_us(chrome, "dur", node->total);
	json_member_object(json, "args");
	if (function->file.len)
		json_member_string(json, "file", function->file);
	if (function->start_line)
		json_member_uint(json, "line", function->start_line);
	if (function->mapping.len)
		json_member_string(json, "binary", function->mapping);
	json_close_object(json);
	json_close_object(json);
}

/* Pre-order: a node begins where the siblings before it end. */
static void put_nodes(struct chrome *chrome)
{
	const struct tree *tree = chrome->tree;

	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		int64_t start = chrome->next[node->depth - 1];

		if (tree->functions[node->function].is_label) {
			chrome->thread++;
			put_name(chrome, "thread_name", tree->functions[node->function].name);
			start = 0;
		}
		chrome->next[node->depth] = start;
		if (node->total <= 0)
			continue;
		if (!tree->functions[node->function].is_label) {
			put_node(chrome, node, start);
			chrome->next[node->depth - 1] = work_add(start, node->total);
		}
	}
}

void render_chrome(const struct tree *tree, const struct render_export_for *asked,
		   struct strbuf *out)
{
	double ns = render_export_ns(tree);
	struct chrome chrome = { .tree = tree, .us = ns > 0 ? ns / 1000 : 1 };

	(void)asked;
	chrome.next = mem_new_array(int64_t, (size_t)tree->depth_max + 2);
	json_begin(&chrome.json, out);
	json_open_object(&chrome.json);
	json_member_text(&chrome.json, "displayTimeUnit", "ns");
	json_member_array(&chrome.json, "traceEvents");
	put_name(&chrome, "process_name", tree->query);
	put_nodes(&chrome);
	json_close_array(&chrome.json);
	json_close_object(&chrome.json);
	strbuf_add_byte(out, '\n');
	free(chrome.next);
}
