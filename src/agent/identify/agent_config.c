/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/agent_config.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/printable.h"
#include "base/regex.h"
#include "base/whole_file.h"
#include "config/fields.h"
#include "config/relabel.h"

#define ARENA_BYTES_MAX ((size_t)4 << 20)
#define VARIABLES_MAX 64
#define EXCLUDED_MAX 64
#define FREQUENCY_MAX_HZ 1000u
#define VARIABLE_BYTES_MAX 128
#define META_PREFIX SLICE_LITERAL("__")

struct agent_config {
	struct arena arena;
	struct relabel *relabel; /* NULL = no rules */
	struct field_pairs external;
	struct field_texts variables;
	uint64_t frequency_hz;
	struct field_texts excluded; /* patterns, and what they became */
	struct regex *excluded_paths[EXCLUDED_MAX];
};

static int take_rules(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
		      struct err *err)
{
	return relabel_read(reader->document, value, into, err);
}

static const struct field upload_fields[] = {
	FIELD_AT("exclude", FIELD_TEXTS, struct agent_config, excluded),
	{ 0 },
};

static const struct field file_fields[] = {
	{ "relabel_configs", FIELD_OTHER, offsetof(struct agent_config, relabel), NULL,
	  take_rules },
	FIELD_AT("external_labels", FIELD_PAIRS, struct agent_config, external),
	FIELD_AT("include_env_vars", FIELD_TEXTS, struct agent_config, variables),
	FIELD_AT("profiling_cpu_sampling_frequency", FIELD_COUNT, struct agent_config,
		 frequency_hz),
	{ "debuginfo_upload", FIELD_MAP, 0, upload_fields, NULL },
	{ 0 },
};

static int check_external(const struct agent_config *config, const struct document *document,
			  const struct yaml_node_s *root, struct err *err)
{
	for (size_t i = 0; i < config->external.count; i++) {
		struct slice name = config->external.items[i].name;

		if (!rule_labels_is_name(name) || slice_starts_with(name, META_PREFIX))
			return document_error(document, root, err,
					      "external_labels: \"%.*s\" is not a label name",
					      SLICE_FMT(name));
		if (!slice_is_utf8(config->external.items[i].value))
			return document_error(document, root, err,
					      "external_labels: \"%.*s\" is no UTF-8",
					      SLICE_FMT(name));
	}
	return 0;
}

static int check_variables(const struct agent_config *config, const struct document *document,
			   const struct yaml_node_s *root, struct err *err)
{
	if (config->variables.count > VARIABLES_MAX)
		return document_error(document, root, err, "include_env_vars: more than %d names",
				      VARIABLES_MAX);
	for (size_t i = 0; i < config->variables.count; i++) {
		struct slice name = config->variables.items[i];

		if (!name.len || name.len > VARIABLE_BYTES_MAX ||
		    memchr(name.data, '=', name.len) || memchr(name.data, '\0', name.len))
			return document_error(document, root, err,
					      "include_env_vars: \"%.*s\" is no name of a variable",
					      SLICE_FMT(name));
	}
	return 0;
}

static int compile_excluded(struct agent_config *config, const struct document *document,
			    const struct yaml_node_s *root, struct err *err)
{
	char message[256];

	if (config->excluded.count > EXCLUDED_MAX)
		return document_error(document, root, err,
				      "debuginfo_upload: more than %d patterns in exclude",
				      EXCLUDED_MAX);
	for (size_t i = 0; i < config->excluded.count; i++) {
		struct slice pattern = config->excluded.items[i];

		config->excluded_paths[i] =
			regex_new(pattern.data, pattern.len, false, message, sizeof(message));
		if (!config->excluded_paths[i])
			return document_error(document, root, err,
					      "debuginfo_upload: exclude: \"%.*s\": %s",
					      SLICE_FMT(pattern), message);
	}
	return 0;
}

static int check(struct agent_config *config, const struct document *document,
		 const struct yaml_node_s *root, struct err *err)
{
	int code = check_external(config, document, root, err);

	if (!code)
		code = check_variables(config, document, root, err);
	if (!code)
		code = compile_excluded(config, document, root, err);
	if (!code && config->frequency_hz > FREQUENCY_MAX_HZ)
		code = document_error(document, root, err,
				      "profiling_cpu_sampling_frequency: over the limit of %u Hz",
				      FREQUENCY_MAX_HZ);
	return code;
}

int agent_config_parse(struct slice text, const char *where, struct agent_config **ret,
		       struct err *err)
{
	struct agent_config *config;
	struct fields_reader reader = { 0 };
	const struct yaml_node_s *root;
	int code = document_parse(text, where, &reader.document, err);

	if (code)
		return code;
	config = mem_new(struct agent_config);
	arena_init(&config->arena, ARENA_BYTES_MAX);
	reader.arena = &config->arena;
	root = document_root(reader.document);
	if (root)
		code = fields_read(&reader, root, file_fields, config, err);
	if (!code && root)
		code = check(config, reader.document, root, err);
	if (!code && config->arena.over_budget)
		code = err_set(err, ERR_LIMIT, "%s: the labels take more than %zu bytes", where,
			       ARENA_BYTES_MAX);
	document_free(reader.document);
	if (code)
		agent_config_free(config);
	else
		*ret = config;
	return code;
}

int agent_config_load(const char *path, struct agent_config **ret, struct err *err)
{
	struct strbuf text = { 0 };
	int code = whole_file_read(path, DOCUMENT_BYTES_MAX, &text, err);

	if (!code)
		code = agent_config_parse(strbuf_slice(&text), path, ret, err);
	strbuf_free(&text);
	return code;
}

void agent_config_free(struct agent_config *config)
{
	if (!config)
		return;
	relabel_free(config->relabel);
	for (size_t i = 0; i < EXCLUDED_MAX; i++)
		if (config->excluded_paths[i])
			regex_free(config->excluded_paths[i]);
	arena_free(&config->arena);
	free(config);
}

bool agent_config_is_meant(const char *path)
{
	static const char *const keys[] = { "relabel_configs",	"external_labels",
					    "include_env_vars", "profiling_cpu_sampling_frequency",
					    "debuginfo_upload", NULL };

	return document_file_has_key(path, keys);
}

size_t agent_config_rules(const struct agent_config *config)
{
	return relabel_count(config->relabel);
}

size_t agent_config_external_labels(const struct agent_config *config)
{
	return config->external.count;
}

const struct slice *agent_config_variables(const struct agent_config *config, size_t *ret_count)
{
	*ret_count = config->variables.count;
	return config->variables.items;
}

unsigned agent_config_frequency(const struct agent_config *config)
{
	return (unsigned)config->frequency_hz;
}

bool agent_config_keeps_symbols(const struct agent_config *config, const char *path)
{
	for (size_t i = 0; i < config->excluded.count; i++)
		if (regex_matches_whole(config->excluded_paths[i], path, strlen(path)))
			return true;
	return false;
}

/* What is left of the labels when all rules have had their say. */
static void finish(const struct agent_config *config, struct rule_labels *labels)
{
	for (size_t i = labels->count; i-- > 0;)
		if (slice_starts_with(labels->labels[i].name, META_PREFIX))
			rule_labels_remove(labels, labels->labels[i].name);
	for (size_t i = 0; i < config->external.count; i++) {
		const struct field_pair *external = &config->external.items[i];

		if (!rule_labels_get(labels, external->name).len)
			rule_labels_put(labels, external->name, external->value);
	}
	rule_labels_sort(labels);
}

bool agent_config_apply(const struct agent_config *config, struct rule_labels *labels)
{
	rule_labels_sort(labels);
	if (!relabel_apply(config->relabel, labels, NULL))
		return false;
	finish(config, labels);
	return true;
}

static void add_value(struct strbuf *out, struct slice value)
{
	if (value.len) {
		strbuf_add_byte(out, '"');
		printable_add(out, value);
		strbuf_add_byte(out, '"');
	} else {
		strbuf_add_text(out, "none");
	}
}

static void add_change(struct strbuf *out, struct slice name, struct slice from, struct slice to)
{
	if (slice_equal(from, to))
		return;
	strbuf_add_byte(out, ' ');
	printable_add(out, name);
	strbuf_add_text(out, ": ");
	add_value(out, from);
	strbuf_add_text(out, " -> ");
	add_value(out, to);
}

static void add_changes(struct strbuf *out, const struct rule_labels *before,
			const struct rule_labels *after)
{
	for (size_t i = 0; i < before->count; i++)
		add_change(out, before->labels[i].name, before->labels[i].value,
			   rule_labels_get(after, before->labels[i].name));
	for (size_t i = 0; i < after->count; i++)
		if (!rule_labels_get(before, after->labels[i].name).len)
			add_change(out, after->labels[i].name, (struct slice){ 0 },
				   after->labels[i].value);
}

/* False when the rule leaves the process out. */
static bool explain_rule(const struct relabel *relabel, size_t index, struct rule_labels *labels,
			 const char *prefix, struct strbuf *out)
{
	struct strbuf changes = { 0 };
	struct rule_labels before;
	bool is_kept;

	rule_labels_init(&before);
	rule_labels_copy(&before, labels);
	is_kept = relabel_apply_rule(relabel, index, labels);
	if (is_kept)
		add_changes(&changes, &before, labels);
	else
		strbuf_add_text(&changes, " leaves the process out");
	if (changes.len) {
		strbuf_addf(out, "%sline %zu: ", prefix, relabel_rule_line(relabel, index));
		relabel_describe_rule(relabel, index, out);
		strbuf_addf(out, " =>%.*s\n", SLICE_FMT(strbuf_slice(&changes)));
	}
	strbuf_free(&changes);
	rule_labels_free(&before);
	return is_kept;
}

bool agent_config_explain(const struct agent_config *config, struct rule_labels *labels,
			  const char *prefix, struct strbuf *out)
{
	rule_labels_sort(labels);
	for (size_t i = 0; i < agent_config_rules(config); i++)
		if (!explain_rule(config->relabel, i, labels, prefix, out))
			return false;
	finish(config, labels);
	return true;
}
