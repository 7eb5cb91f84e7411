/* SPDX-License-Identifier: Apache-2.0 */
#include "config/relabel.h"

#include <inttypes.h>

#include "config/md5.h"
#include "base/regex.h"
#include "config/letter_case.h"
#include "config/relabel_int.h"

const char *const relabel_action_names[RELABEL_ACTIONS] = {
	[RELABEL_REPLACE] = "replace",	   [RELABEL_KEEP] = "keep",
	[RELABEL_DROP] = "drop",	   [RELABEL_KEEPEQUAL] = "keepequal",
	[RELABEL_DROPEQUAL] = "dropequal", [RELABEL_HASHMOD] = "hashmod",
	[RELABEL_LABELMAP] = "labelmap",   [RELABEL_LABELDROP] = "labeldrop",
	[RELABEL_LABELKEEP] = "labelkeep", [RELABEL_LOWERCASE] = "lowercase",
	[RELABEL_UPPERCASE] = "uppercase",
};

size_t relabel_count(const struct relabel *relabel)
{
	return relabel ? relabel->count : 0;
}

size_t relabel_rule_line(const struct relabel *relabel, size_t index)
{
	return relabel->rules[index].line;
}

/*
 * Expansion, as Go's regexp.Expand: a name is the longest run of letters, digits and underscores; a
 * dollar that begins none stands for itself; a group that is not there is empty.
 */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* True if a reference stands at the front of `text`, after its dollar. */
static bool take_reference(struct slice text, struct slice *ret_name, size_t *ret_bytes)
{
	bool braced = text.len && text.data[0] == '{';
	size_t start = braced, end = start;

	while (end < text.len && is_word(text.data[end]))
		end++;
	if (end == start || (braced && (end == text.len || text.data[end] != '}')))
		return false;
	*ret_name = (struct slice){ text.data + start, end - start };
	*ret_bytes = end + braced;
	return true;
}

/* The group that a name or a number stands for; a number has no leading zeros. */
static int group_of(const struct regex *regex, struct slice name)
{
	uint64_t number;

	if (slice_parse_u64(name, &number) && number < 100000000 &&
	    (name.len == 1 || name.data[0] != '0'))
		return (int)number;
	return regex_group_named(regex, name.data, name.len);
}

static void expand(const struct regex *regex, const struct regex_group *groups, struct slice form,
		   struct strbuf *out)
{
	size_t at = 0;

	while (at < form.len && out->len < RELABEL_VALUE_BYTES_MAX) {
		struct slice name;
		size_t bytes;
		int group;

		if (form.data[at] != '$') {
			strbuf_add_byte(out, form.data[at++]);
			continue;
		}
		at++;
		if (at < form.len && form.data[at] == '$') {
			strbuf_add_byte(out, '$');
			at++;
			continue;
		}
		if (!take_reference(slice_tail(form, at), &name, &bytes)) {
			strbuf_add_byte(out, '$');
			continue;
		}
		at += bytes;
		group = group_of(regex, name);
		if (group >= 0 && group < REGEX_GROUPS_MAX && groups[group].start)
			strbuf_add(out, groups[group].start, groups[group].len);
	}
}

static struct slice bounded(const struct strbuf *text)
{
	struct slice slice = strbuf_slice(text);

	if (slice.len > RELABEL_VALUE_BYTES_MAX)
		slice.len = RELABEL_VALUE_BYTES_MAX;
	return slice;
}

static void replace(const struct relabel_rule *rule, struct slice value, struct rule_labels *set)
{
	struct regex_group groups[REGEX_GROUPS_MAX];
	struct strbuf target = { 0 }, replacement = { 0 };

	if (!regex_capture_whole(rule->regex, value.data, value.len, groups, REGEX_GROUPS_MAX))
		return;
	expand(rule->regex, groups, rule->target, &target);
	if (rule_labels_is_name(strbuf_slice(&target))) {
		expand(rule->regex, groups, rule->replacement, &replacement);
		rule_labels_put(set, strbuf_slice(&target), bounded(&replacement));
	}
	strbuf_free(&target);
	strbuf_free(&replacement);
}

static void hashmod(const struct relabel_rule *rule, struct slice value, struct rule_labels *set)
{
	uint8_t digest[MD5_BYTES];
	struct strbuf text = { 0 };
	uint64_t hash = 0;

	md5(value.data, value.len, digest);
	for (unsigned i = 8; i < MD5_BYTES; i++)
		hash = hash << 8 | digest[i];
	strbuf_addf(&text, "%" PRIu64, hash % rule->modulus);
	rule_labels_put(set, rule->target, strbuf_slice(&text));
	strbuf_free(&text);
}

static void change_case(const struct relabel_rule *rule, struct slice value,
			struct rule_labels *set)
{
	struct strbuf text = { 0 };

	if (rule->action == RELABEL_LOWERCASE)
		letter_case_lower(&text, value);
	else
		letter_case_upper(&text, value);
	rule_labels_put(set, rule->target, strbuf_slice(&text));
	strbuf_free(&text);
}

/* All matches in the name replaced, as Go's ReplaceAllString: the expression is anchored. */
static void map_one(const struct relabel_rule *rule, struct slice name, struct slice value,
		    struct rule_labels *set)
{
	struct regex_group groups[REGEX_GROUPS_MAX];
	struct strbuf mapped = { 0 };

	if (!regex_capture_whole(rule->regex, name.data, name.len, groups, REGEX_GROUPS_MAX))
		return;
	expand(rule->regex, groups, rule->replacement, &mapped);
	if (mapped.len)
		rule_labels_put(set, bounded(&mapped), value);
	strbuf_free(&mapped);
}

static void labelmap(const struct relabel_rule *rule, struct rule_labels *set)
{
	struct rule_labels before;

	rule_labels_init(&before);
	rule_labels_copy(&before, set);
	for (size_t i = 0; i < before.count; i++)
		map_one(rule, before.labels[i].name, before.labels[i].value, set);
	rule_labels_free(&before);
}

static void keep_names(const struct relabel_rule *rule, struct rule_labels *set, bool matching)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct slice name = set->labels[i].name;

		if (regex_matches_whole(rule->regex, name.data, name.len) == matching)
			set->labels[kept++] = set->labels[i];
	}
	set->count = kept;
}

/* The values of the source labels, joined. */
static struct slice join(const struct relabel_rule *rule, const struct rule_labels *set,
			 struct strbuf *buffer)
{
	if (rule->sources_count == 1)
		return rule_labels_get(set, rule->sources[0]);
	for (size_t i = 0; i < rule->sources_count; i++) {
		if (i)
			strbuf_add_slice(buffer, rule->separator);
		strbuf_add_slice(buffer, rule_labels_get(set, rule->sources[i]));
	}
	return (struct slice){ strbuf_text(buffer), buffer->len };
}

bool relabel_apply_rule(const struct relabel *relabel, size_t index, struct rule_labels *set)
{
	const struct relabel_rule *rule = &relabel->rules[index];
	struct strbuf joined = { 0 };
	struct slice value = join(rule, set, &joined);
	bool keeps = true;

	switch (rule->action) {
	case RELABEL_REPLACE:
		replace(rule, value, set);
		break;
	case RELABEL_KEEP:
	case RELABEL_DROP:
		keeps = regex_matches_whole(rule->regex, value.data, value.len) ==
			(rule->action == RELABEL_KEEP);
		break;
	case RELABEL_KEEPEQUAL:
	case RELABEL_DROPEQUAL:
		keeps = slice_equal(value, rule_labels_get(set, rule->target)) ==
			(rule->action == RELABEL_KEEPEQUAL);
		break;
	case RELABEL_HASHMOD:
		hashmod(rule, value, set);
		break;
	case RELABEL_LABELMAP:
		labelmap(rule, set);
		break;
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		keep_names(rule, set, rule->action == RELABEL_LABELKEEP);
		break;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		change_case(rule, value, set);
		break;
	case RELABEL_ACTIONS:
		break;
	}
	strbuf_free(&joined);
	return keeps;
}

bool relabel_apply(const struct relabel *relabel, struct rule_labels *set, size_t *ret_rule)
{
	for (size_t i = 0; i < relabel_count(relabel); i++) {
		if (relabel_apply_rule(relabel, i, set))
			continue;
		if (ret_rule)
			*ret_rule = i;
		return false;
	}
	return true;
}

void relabel_describe_rule(const struct relabel *relabel, size_t index, struct strbuf *out)
{
	const struct relabel_rule *rule = &relabel->rules[index];

	strbuf_add_text(out, relabel_action_names[rule->action]);
	if (rule->sources_count)
		strbuf_add_text(out, " source_labels [");
	for (size_t i = 0; i < rule->sources_count; i++)
		strbuf_addf(out, "%s%.*s", i ? ", " : "", SLICE_FMT(rule->sources[i]));
	if (rule->sources_count)
		strbuf_add_text(out, "]");
	if (!slice_is(rule->pattern, RELABEL_DEFAULT_REGEX))
		strbuf_addf(out, " regex \"%.*s\"", SLICE_FMT(rule->pattern));
	if (rule->target.len)
		strbuf_addf(out, " target_label %.*s", SLICE_FMT(rule->target));
	if (!slice_is(rule->replacement, RELABEL_DEFAULT_REPLACEMENT))
		strbuf_addf(out, " replacement \"%.*s\"", SLICE_FMT(rule->replacement));
	if (rule->modulus)
		strbuf_addf(out, " modulus %" PRIu64, rule->modulus);
}
