/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a configuration of the agent that can be used, or an error that names the file. */
#include <stdlib.h>
#include <string.h>

#include "agent/identify/agent_config.h"

#define FILE_NAME "dir/agent.yml"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fill(struct rule_labels *labels)
{
	rule_labels_init(labels);
	rule_labels_put(labels, SLICE_LITERAL("comm"), SLICE_LITERAL("nginx"));
	rule_labels_put(labels, SLICE_LITERAL("__meta_process_pid"), SLICE_LITERAL("7"));
}

/* What is explained is what is done; nothing of the rules' own is left. */
static void check(const struct agent_config *config)
{
	struct rule_labels labels, explained;
	struct strbuf steps = { 0 };
	bool is_kept;

	fill(&labels);
	fill(&explained);
	is_kept = agent_config_apply(config, &labels);
	if (agent_config_explain(config, &explained, "", &steps) != is_kept)
		abort();
	if (is_kept && !labels.is_cut && !explained.is_cut &&
	    !rule_labels_equal(&labels, &explained))
		abort();
	for (size_t i = 0; is_kept && i < labels.count; i++)
		if (slice_starts_with(labels.labels[i].name, SLICE_LITERAL("__")))
			abort();
	strbuf_free(&steps);
	rule_labels_free(&explained);
	rule_labels_free(&labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_config *config;
	struct err err = { 0 };

	if (!agent_config_parse(slice_from(data, size), FILE_NAME, &config, &err)) {
		check(config);
		agent_config_free(config);
	} else if (strncmp(err.message, FILE_NAME ":", strlen(FILE_NAME ":")) != 0) {
		abort();
	}
	return 0;
}
