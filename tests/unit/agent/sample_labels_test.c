/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of single samples: which are wanted, and what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/describe/sample_labels.h"
#include "agent/procs/process.h"

static void lists_are_read(void **state)
{
	unsigned labels = 99;
	struct err err;

	(void)state;
	assert_int_equal(sample_labels_parse(SLICE_LITERAL("thread_name"), &labels, &err), 0);
	assert_int_equal(labels, SAMPLE_LABEL_THREAD_NAME);
	assert_int_equal(sample_labels_parse(SLICE_LITERAL("cpu, pid,thread_id"), &labels, &err),
			 0);
	assert_int_equal(labels, SAMPLE_LABEL_CPU | SAMPLE_LABEL_PID | SAMPLE_LABEL_THREAD_ID);
	assert_int_equal(sample_labels_parse(SLICE_LITERAL("none"), &labels, &err), 0);
	assert_int_equal(labels, 0);
	assert_int_equal(sample_labels_parse(SLICE_LITERAL("thread_name,colour"), &labels, &err),
			 -ERR_INVALID);
	assert_non_null(strstr(err.message, "\"colour\""));
}

static void keep_sample(struct counts *counts, unsigned labels, const char *thread_name,
			uint32_t thread, uint32_t cpu)
{
	static struct counts_key key;
	struct sample sample = { .head = { .tid = thread, .cpu = cpu }, .user_count = 1 };

	strcpy(sample.thread_name, thread_name);
	assert_true(counts_key_of(counts, &sample, 0, sample_labels_keep(labels), &key));
	counts_add(counts, &key, 0, COUNTS_NO_TIME);
}

static const struct label *find(const struct tables_view *view, uint32_t set, const char *name)
{
	const struct label_set *labels = &view->label_sets[set];

	for (uint32_t i = 0; i < labels->label_count; i++) {
		const struct label *label = &view->labels[labels->label_first + i];

		if (slice_is(tables_text(view, label->name), name))
			return label;
	}
	return NULL;
}

static void samples_say_what_was_asked_for(void **state)
{
	unsigned all = SAMPLE_LABEL_THREAD_NAME | SAMPLE_LABEL_THREAD_ID | SAMPLE_LABEL_PID |
		       SAMPLE_LABEL_CPU;
	struct process process = { .identity = { .pid = 40 }, .name = "server" };
	struct tables_view view;
	struct tables tables;
	struct counts counts;
	uint32_t set;

	(void)state;
	tables_init(&tables);
	counts_init(&counts);
	keep_sample(&counts, all, "worker-1", 41, 3);
	keep_sample(&counts, SAMPLE_LABEL_THREAD_NAME, "server", 40, 0);
	set = sample_labels_of(&tables, all, &counts, counts_stack(&counts, 0), &process);
	view = tables_view_of(&tables);
	assert_true(
		slice_is(tables_text(&view, find(&view, set, "thread_name")->value), "worker-1"));
	assert_int_equal(find(&view, set, "thread_id")->number, 41);
	assert_int_equal(find(&view, set, "pid")->number, 40);
	assert_int_equal(find(&view, set, "cpu")->number, 3);
	/* A thread that has the name of its process says nothing new. */
	assert_int_equal(sample_labels_of(&tables, SAMPLE_LABEL_THREAD_NAME, &counts,
					  counts_stack(&counts, 1), &process),
			 0);
	assert_int_equal(sample_labels_of(&tables, 0, &counts, counts_stack(&counts, 0), &process),
			 0);
	counts_free(&counts);
	tables_free(&tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read),
		cmocka_unit_test(samples_say_what_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
