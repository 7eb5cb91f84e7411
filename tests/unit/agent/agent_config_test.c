/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's rules: what becomes of a process's labels, and what is said of a wrong file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "agent/identify/agent_config.h"

#define PROCESS "comm=nginx,node=a,__meta_process_pid=7,__meta_kubernetes_pod_label_tier=front"

static void fill(struct rule_labels *labels, const char *text)
{
	struct slice rest = slice_of(text), pair, name, value;

	rule_labels_init(labels);
	while (rest.len) {
		pair = slice_cut(rest, ',', &rest);
		name = slice_cut(pair, '=', &value);
		rule_labels_put(labels, name, value);
	}
	rule_labels_sort(labels);
}

static struct agent_config *config_of(const char *yaml)
{
	struct agent_config *config;
	struct err err;

	if (agent_config_parse(slice_of(yaml), "t.yml", &config, &err))
		fail_msg("%s", err.message);
	return config;
}

/* `after` is NULL when the process is left out. */
static void check(const char *yaml, const char *before, const char *after)
{
	struct agent_config *config = config_of(yaml);
	struct rule_labels labels, explained, wanted;
	struct strbuf steps = { 0 };

	fill(&labels, before);
	fill(&explained, before);
	assert_int_equal(agent_config_apply(config, &labels), after != NULL);
	assert_int_equal(agent_config_explain(config, &explained, "", &steps), after != NULL);
	if (after) {
		fill(&wanted, after);
		assert_true(rule_labels_equal(&labels, &wanted));
		assert_true(rule_labels_equal(&explained, &wanted));
		rule_labels_free(&wanted);
	}
	strbuf_free(&steps);
	rule_labels_free(&explained);
	rule_labels_free(&labels);
	agent_config_free(config);
}

static void meta_labels_end_with_the_rules(void **state)
{
	(void)state;
	check("", PROCESS, "comm=nginx,node=a");
	check("relabel_configs:\n"
	      "- {source_labels: [__meta_kubernetes_pod_label_tier], target_label: tier}\n"
	      "- {target_label: __mine, replacement: x}\n",
	      PROCESS, "comm=nginx,node=a,tier=front");
	check("relabel_configs: [{action: labelmap, regex: __meta_kubernetes_pod_label_(.*)}]",
	      PROCESS, "comm=nginx,node=a,tier=front");
}

static void processes_are_left_out(void **state)
{
	(void)state;
	check("relabel_configs: [{source_labels: [comm], regex: ngi.*, action: drop}]", PROCESS,
	      NULL);
	check("relabel_configs: [{source_labels: [comm], regex: ngi, action: drop}]", PROCESS,
	      "comm=nginx,node=a");
	check("relabel_configs: [{source_labels: [comm], regex: redis, action: keep}]", PROCESS,
	      NULL);
}

static void external_labels_yield_to_rules_and_to_what_is_known(void **state)
{
	(void)state;
	check("external_labels: {region: north, node: b, comm: c}", PROCESS,
	      "comm=nginx,node=a,region=north");
	check("external_labels: {region: north}\n"
	      "relabel_configs: [{target_label: region, replacement: south}]",
	      PROCESS, "comm=nginx,node=a,region=south");
	check("external_labels: {comm: other}\n"
	      "relabel_configs: [{action: labeldrop, regex: comm}]",
	      PROCESS, "comm=other,node=a");
}

static void each_step_is_explained(void **state)
{
	struct agent_config *config =
		config_of("relabel_configs:\n"
			  "- {source_labels: [comm], regex: redis, target_label: app}\n"
			  "- {source_labels: [comm], target_label: app, replacement: \"a\\nb\"}\n"
			  "- {regex: node, action: labeldrop}\n"
			  "- {source_labels: [app], regex: \"(?s)a.b\", action: drop}\n"
			  "- {target_label: late, replacement: x}\n");
	struct rule_labels labels;
	struct strbuf steps = { 0 };

	(void)state;
	fill(&labels, PROCESS);
	assert_false(agent_config_explain(config, &labels, "> ", &steps));
	assert_string_equal(strbuf_text(&steps),
			    "> line 3: replace source_labels [comm] target_label app replacement "
			    "\"a\nb\" => app: none -> \"a\\u000ab\"\n"
			    "> line 4: labeldrop regex \"node\" => node: \"a\" -> none\n"
			    "> line 5: drop source_labels [app] regex \"(?s)a.b\" => leaves the "
			    "process out\n");
	strbuf_free(&steps);
	rule_labels_free(&labels);
	agent_config_free(config);
}

static void wrong_files_are_told_with_their_line(void **state)
{
	static const struct {
		const char *yaml, *message;
	} cases[] = {
		{ "external_labels: {__x: 1}", "t.yml:1: " },
		{ "external_labels: {a-b: 1}", "t.yml:1: " },
		{ "external_labels: [a]", "t.yml:1: " },
		{ "\nrelabel_config: []", "t.yml:2: " },
		{ "relabel_configs:\n- {action: jump}", "t.yml:2: " },
		{ "relabel_configs:\n- {regex: '('}", "t.yml:2: " },
		{ "a: [", "t.yml:" },
	};
	struct agent_config *config;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			agent_config_parse(slice_of(cases[i].yaml), "t.yml", &config, &err),
			-ERR_INVALID);
		assert_memory_equal(err.message, cases[i].message, strlen(cases[i].message));
	}
}

static void other_settings_are_read(void **state)
{
	struct agent_config *config = config_of("profiling_cpu_sampling_frequency: 49\n"
						"debuginfo_upload: {exclude: ['/opt/.*', /x]}\n"
						"include_env_vars: [TEAM, TIER]\n");
	struct err err;
	size_t count;

	(void)state;
	assert_int_equal(agent_config_frequency(config), 49);
	assert_true(agent_config_keeps_symbols(config, "/opt/app/server"));
	assert_false(agent_config_keeps_symbols(config, "/usr/opt/server"));
	assert_false(agent_config_keeps_symbols(config, "/xy"));
	assert_true(slice_is(agent_config_variables(config, &count)[1], "TIER"));
	assert_int_equal(count, 2);
	agent_config_free(config);
	assert_int_equal(
		agent_config_parse(SLICE_LITERAL("\nprofiling_cpu_sampling_frequency: 5000"),
				   "t.yml", &config, &err),
		-ERR_INVALID);
	assert_int_equal(agent_config_parse(SLICE_LITERAL("debuginfo_upload: {exclude: ['(']}"),
					    "t.yml", &config, &err),
			 -ERR_INVALID);
	assert_int_equal(agent_config_parse(SLICE_LITERAL("include_env_vars: ['A=B']"), "t.yml",
					    &config, &err),
			 -ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_settings_are_read),
		cmocka_unit_test(meta_labels_end_with_the_rules),
		cmocka_unit_test(processes_are_left_out),
		cmocka_unit_test(external_labels_yield_to_rules_and_to_what_is_known),
		cmocka_unit_test(each_step_is_explained),
		cmocka_unit_test(wrong_files_are_told_with_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
