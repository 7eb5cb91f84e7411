/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relabel - Prometheus' relabelling (prometheus/model/relabel): rules that keep or drop a target
 * and change its labels, applied in order.
 *
 *   source_labels [..], separator ";", regex "(.*)", replacement "$1", target_label, modulus, and
 *   action: replace keep drop keepequal dropequal hashmod labelmap labeldrop labelkeep lowercase
 *   uppercase
 *
 * A rule's expression must match the whole of the source labels' values, joined by the separator.
 * $1, ${1}, $name and ${name} stand for groups, $$ for a dollar. Rules are immutable after reading:
 * any thread may apply them, each to a set of its own.
 */
#ifndef FIRN_CONFIG_RELABEL_H
#define FIRN_CONFIG_RELABEL_H

#include "base/err.h"
#include "base/strbuf.h"
#include "config/rule_labels.h"

#define RELABEL_RULES_MAX 1000u
#define RELABEL_VALUE_BYTES_MAX ((size_t)64 << 10) /* of a value that a rule makes; truncated */

struct document;
struct yaml_node_s;
struct relabel;

enum relabel_action {
	RELABEL_REPLACE,
	RELABEL_KEEP,
	RELABEL_DROP,
	RELABEL_KEEPEQUAL,
	RELABEL_DROPEQUAL,
	RELABEL_HASHMOD,
	RELABEL_LABELMAP,
	RELABEL_LABELDROP,
	RELABEL_LABELKEEP,
	RELABEL_LOWERCASE,
	RELABEL_UPPERCASE,
	RELABEL_ACTIONS,
};

/*
 * Reads a list of rules (the value of relabel_configs). `list` may be NULL: no rules. Errors are
 * ERR_INVALID "FILE:LINE: ...", as document.h makes them.
 */
int relabel_read(struct document *document, const struct yaml_node_s *list, struct relabel **ret,
		 struct err *err);
void relabel_free(struct relabel *relabel); /* accepts NULL */

size_t relabel_count(const struct relabel *relabel); /* NULL has none */

/* Applies one rule; false: it drops the target. */
bool relabel_apply_rule(const struct relabel *relabel, size_t index, struct rule_labels *set);

/* Applies all rules; false: *ret_rule (may be NULL) drops the target, and ends the application. */
bool relabel_apply(const struct relabel *relabel, struct rule_labels *set, size_t *ret_rule);

size_t relabel_rule_line(const struct relabel *relabel, size_t index); /* of the file; from 1 */

/* Appends the rule as text: keep source_labels [a, b] regex "x" */
void relabel_describe_rule(const struct relabel *relabel, size_t index, struct strbuf *out);

#endif
