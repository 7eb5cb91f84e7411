/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/sample_labels.h"

#include "agent/describe/text.h"
#include "agent/procs/process.h"

#define LABELS 4

static const struct {
	const char *name;
	enum sample_label label;
} known[LABELS] = {
	{ "thread_name", SAMPLE_LABEL_THREAD_NAME },
	{ "thread_id", SAMPLE_LABEL_THREAD_ID },
	{ "pid", SAMPLE_LABEL_PID },
	{ "cpu", SAMPLE_LABEL_CPU },
};

static unsigned find(struct slice name)
{
	for (size_t i = 0; i < LABELS; i++)
		if (slice_is(name, known[i].name))
			return known[i].label;
	return 0;
}

int sample_labels_parse(struct slice text, unsigned *ret, struct err *err)
{
	struct slice rest = text;
	unsigned labels = 0;

	while (rest.len && !slice_is(text, "none")) {
		struct slice name = slice_trim(slice_cut(rest, ',', &rest));
		unsigned label = find(name);

		if (!label)
			return err_set(err, ERR_INVALID,
				       "\"%.*s\" is no label of samples: thread_name, thread_id, "
				       "pid, cpu, or none",
				       SLICE_FMT(name));
		labels |= label;
	}
	*ret = labels;
	return 0;
}

unsigned sample_labels_keep(unsigned labels)
{
	return (labels & SAMPLE_LABEL_THREAD_NAME ? COUNTS_THREAD_NAME : 0u) |
	       (labels & SAMPLE_LABEL_THREAD_ID ? COUNTS_THREAD : 0u) |
	       (labels & SAMPLE_LABEL_CPU ? COUNTS_CPU : 0u);
}

static struct label number_label(struct tables *tables, const char *name, uint32_t number)
{
	return (struct label){ .name = tables_string(tables, slice_of(name)),
			       .numeric = 1,
			       .number = number };
}

uint32_t sample_labels_of(struct tables *tables, unsigned labels, const struct counts *counts,
			  const struct counted *stack, const struct process *process)
{
	struct label items[LABELS];
	uint32_t count = 0;

	if (labels & SAMPLE_LABEL_THREAD_NAME) {
		struct slice name = counts_name(counts, stack->thread_name);

		if (name.len && !slice_is(name, process->name))
			items[count++] = (struct label){
				.name = tables_string(tables, SLICE_LITERAL("thread_name")),
				.value = text_intern(tables, name),
			};
	}
	if (labels & SAMPLE_LABEL_THREAD_ID)
		items[count++] = number_label(tables, "thread_id", stack->thread);
	if (labels & SAMPLE_LABEL_PID)
		items[count++] = number_label(tables, "pid", process->identity.pid);
	if (labels & SAMPLE_LABEL_CPU)
		items[count++] = number_label(tables, "cpu", stack->cpu);
	return count ? tables_label_set(tables, items, count) : 0;
}
