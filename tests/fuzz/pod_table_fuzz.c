/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is a list of pods or an event, or an error; what is known of it is found, within bounds,
 * and owners are asked for by paths that are no more than that. The last line of the input is what
 * is looked for: POD CONTAINER.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/identify/pod_names.h"
#include "agent/identify/pod_table.h"
#include "remote/kubernetes/kubernetes_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *context, json_t *object, bool is_there, struct err *err)
{
	(void)err;
	pod_table_take(context, object, is_there, SLICE_LITERAL("n1"), 5);
	return 0;
}

static void look(const struct pod_table *table, struct slice wanted)
{
	struct slice id, uid = slice_cut(wanted, ' ', &id);
	struct meta_labels found = { 0 };
	struct cgroup cgroup = { .container = id };

	if (uid.len < sizeof(cgroup.pod_uid))
		memcpy(cgroup.pod_uid, uid.data, uid.len);
	pod_table_find(table, &cgroup, &found);
	pod_table_knows_all(table, uid, id);
	if (found.count > META_LABELS_MAX || found.text.len > META_LABELS_BYTES_MAX)
		abort();
	meta_labels_free(&found);
}

static void ask_owners(struct pod_table *table)
{
	struct strbuf path = { 0 };

	for (int i = 0; pod_table_next_owner(table, 10, &path); i++) {
		for (size_t j = 0; j < path.len; j++)
			if (path.data[j] <= ' ' || strchr("?#%\"", path.data[j]))
				abort();
		if (i % 2)
			pod_table_answer_owner(table, strbuf_slice(&path), NULL);
		else
			pod_table_postpone_owner(table, strbuf_slice(&path), 11);
		strbuf_clear(&path);
	}
	strbuf_free(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size), wanted = { "", 0 };
	const char *newline = size ? memrchr(text.data, '\n', size) : NULL;
	struct pod_table table = { 0 };
	const struct kubernetes_sink sink = { take, &table, NULL };
	struct strbuf version = { 0 }, next = { 0 };
	struct kubernetes_list list;
	bool is_whole;

	if (newline) {
		wanted = slice_tail(text, (size_t)(newline - text.data) + 1);
		text.len = (size_t)(newline - text.data);
	}
	kubernetes_list_begin(&list, &sink);
	pod_table_begin_list(&table);
	is_whole = !kubernetes_list_add(&list, text, NULL) &&
		   !kubernetes_list_end(&list, &version, &next, NULL);
	kubernetes_list_free(&list);
	pod_table_end_list(&table, is_whole, 5);
	look(&table, wanted);
	(void)!kubernetes_event_read(text, &sink, &version, NULL);
	ask_owners(&table);
	look(&table, wanted);
	pod_table_sweep(&table, 6);
	if (table.count > POD_NAMES_MAX || table.bytes > POD_NAMES_BYTES_MAX)
		abort();
	pod_table_free(&table);
	strbuf_free(&version);
	strbuf_free(&next);
	return 0;
}
