/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include "base/mem.h"
#include "base/regex.h"
#include "config/document.h"
#include "config/relabel_int.h"

#define SOURCES_MAX 256u
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct reading {
	struct relabel *relabel;
	struct document *document;
	struct relabel_rule *rule;
	const struct yaml_node_s *item;	      /* the rule */
	const struct yaml_node_s *pattern_at; /* its regex; NULL: not given */
};

static int take_text(struct reading *reading, const struct yaml_node_s *value, struct slice *ret,
		     struct err *err)
{
	int rc = document_text(reading->document, value, ret, err);

	if (!rc)
		*ret = arena_copy(&reading->relabel->arena, *ret);
	return rc;
}

static int take_source(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct reading *reading = context;
	struct relabel_rule *rule = reading->rule;
	struct slice name;
	int rc = take_text(reading, item, &name, err);

	if (rc)
		return rc;
	if (!rule_labels_is_name(name))
		return document_error(reading->document, item, err,
				      "\"%.*s\" is not a valid label name", SLICE_FMT(name));
	if (rule->sources_count == SOURCES_MAX)
		return document_error(reading->document, item, err, "more than %u source labels",
				      SOURCES_MAX);
	if (!rule->sources)
		rule->sources =
			arena_new_array(&reading->relabel->arena, struct slice, SOURCES_MAX);
	rule->sources[rule->sources_count++] = name;
	return 0;
}

static int take_sources(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	reading->rule->has_sources = true;
	return document_each_item(reading->document, value, take_source, context, err);
}

static int take_separator(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_text(reading, value, &reading->rule->separator, err);
}

static int take_target(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_text(reading, value, &reading->rule->target, err);
}

static int take_replacement(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	return take_text(reading, value, &reading->rule->replacement, err);
}

static int take_pattern(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;

	reading->pattern_at = value;
	return take_text(reading, value, &reading->rule->pattern, err);
}

static int take_modulus(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;
	struct slice text;
	int rc = document_text(reading->document, value, &text, err);

	if (!rc && !slice_parse_u64(text, &reading->rule->modulus))
		rc = document_error(reading->document, value, err, "\"%.*s\" is not a whole number",
				    SLICE_FMT(text));
	return rc;
}

static int take_action(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct reading *reading = context;
	struct slice text;
	int rc = document_text(reading->document, value, &text, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < RELABEL_ACTIONS; i++) {
		if (text.len != strlen(relabel_action_names[i]) ||
		    strncasecmp(text.data, relabel_action_names[i], text.len) != 0)
			continue;
		reading->rule->action = (enum relabel_action)i;
		return 0;
	}
	return document_error(reading->document, value, err, "unknown relabel action \"%.*s\"",
			      SLICE_FMT(text));
}

/* What Prometheus demands of a rule, with its words. */

/* A label's name in which $1 and ${name} may stand. */
static bool is_name_template(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		size_t start;
		bool braced;

		if (text.data[i] != '$') {
			bool digit = text.data[i] >= '0' && text.data[i] <= '9';

			if (!rule_labels_is_name(slice_from(text.data + i, 1)) && !(digit && i))
				return false;
			continue;
		}
		braced = i + 1 < text.len && text.data[i + 1] == '{';
		start = i += 1 + braced;
		while (i < text.len && (rule_labels_is_name(slice_from(text.data + i, 1)) ||
					(text.data[i] >= '0' && text.data[i] <= '9')))
			i++;
		if (i == start || (braced && (i == text.len || text.data[i] != '}')))
			return false;
		i -= !braced;
	}
	return text.len > 0;
}

static bool has_variable(struct slice text)
{
	return slice_find_byte(text, '$') != SIZE_MAX;
}

static const char *why_bad_target(const struct relabel_rule *rule)
{
	switch (rule->action) {
	case RELABEL_REPLACE:
	case RELABEL_HASHMOD:
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
	case RELABEL_KEEPEQUAL:
	case RELABEL_DROPEQUAL:
		break;
	default:
		return NULL;
	}
	if (!rule->target.len)
		return "requires a \"target_label\"";
	if (rule->action == RELABEL_REPLACE && has_variable(rule->target))
		return is_name_template(rule->target) ? NULL : "has an invalid \"target_label\"";
	return rule_labels_is_name(rule->target) ? NULL : "has an invalid \"target_label\"";
}

static const char *why_bad(const struct relabel_rule *rule, bool has_pattern)
{
	bool plain_separator = slice_is(rule->separator, RELABEL_DEFAULT_SEPARATOR);
	bool plain_replacement = slice_is(rule->replacement, RELABEL_DEFAULT_REPLACEMENT);

	if (rule->action == RELABEL_HASHMOD && !rule->modulus)
		return "requires a \"modulus\" that is not 0";
	switch (rule->action) {
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		if (!plain_replacement)
			return "takes no \"replacement\"";
		break;
	case RELABEL_KEEPEQUAL:
	case RELABEL_DROPEQUAL:
		if (has_pattern || rule->modulus || !plain_separator || !plain_replacement)
			return "takes \"source_labels\" and \"target_label\" only";
		break;
	case RELABEL_LABELMAP:
		if (!is_name_template(rule->replacement))
			return "has an invalid \"replacement\"";
		break;
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		if (rule->has_sources || rule->target.len || rule->modulus || !plain_separator ||
		    !plain_replacement)
			return "takes \"regex\" only";
		break;
	default:
		break;
	}
	return why_bad_target(rule);
}

static int finish_rule(struct reading *reading, struct err *err)
{
	struct relabel_rule *rule = reading->rule;
	bool has_pattern = !slice_is(rule->pattern, RELABEL_DEFAULT_REGEX);
	const char *why = why_bad(rule, has_pattern);
	char message[128];

	if (why)
		return document_error(reading->document, reading->item, err, "relabel action %s %s",
				      relabel_action_names[rule->action], why);
	rule->regex =
		regex_new(rule->pattern.data, rule->pattern.len, false, message, sizeof(message));
	if (!rule->regex)
		return document_error(reading->document,
				      reading->pattern_at ? reading->pattern_at : reading->item,
				      err, "regex \"%.*s\": %s", SLICE_FMT(rule->pattern), message);
	return 0;
}

static int take_rule(void *context, const struct yaml_node_s *item, struct err *err)
{
	static const struct document_key keys[] = {
		{ "source_labels", take_sources }, { "separator", take_separator },
		{ "regex", take_pattern },	   { "modulus", take_modulus },
		{ "target_label", take_target },   { "replacement", take_replacement },
		{ "action", take_action },
	};
	struct reading *reading = context;
	struct relabel *relabel = reading->relabel;
	int rc;

	if (relabel->count == RELABEL_RULES_MAX)
		return document_error(reading->document, item, err, "more than %u rules",
				      RELABEL_RULES_MAX);
	mem_grow(relabel->rules, relabel->count, relabel->capacity);
	reading->rule = &relabel->rules[relabel->count++];
	*reading->rule = (struct relabel_rule){
		.separator = SLICE_LITERAL(RELABEL_DEFAULT_SEPARATOR),
		.replacement = SLICE_LITERAL(RELABEL_DEFAULT_REPLACEMENT),
		.pattern = SLICE_LITERAL(RELABEL_DEFAULT_REGEX),
		.line = document_line(item),
	};
	reading->item = item;
	reading->pattern_at = NULL;
	rc = document_take_map(reading->document, item, keys, COUNT_OF(keys), reading, err);
	return rc ? rc : finish_rule(reading, err);
}

int relabel_read(struct document *document, const struct yaml_node_s *list, struct relabel **ret,
		 struct err *err)
{
	struct relabel *relabel = mem_new(struct relabel);
	struct reading reading = { .relabel = relabel, .document = document };
	int rc;

	arena_init(&relabel->arena, 0);
	rc = list ? document_each_item(document, list, take_rule, &reading, err) : 0;
	if (rc)
		relabel_free(relabel);
	else
		*ret = relabel;
	return rc;
}

void relabel_free(struct relabel *relabel)
{
	if (!relabel)
		return;
	for (size_t i = 0; i < relabel->count; i++)
		regex_free(relabel->rules[i].regex);
	free(relabel->rules);
	arena_free(&relabel->arena);
	free(relabel);
}
