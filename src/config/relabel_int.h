/* SPDX-License-Identifier: Apache-2.0 */
/* relabel_int - the rules as relabel_read.c makes them and relabel.c applies them. */
#ifndef FIRN_CONFIG_RELABEL_INT_H
#define FIRN_CONFIG_RELABEL_INT_H

#include "base/arena.h"
#include "config/relabel.h"

struct regex;

#define RELABEL_DEFAULT_REGEX "(.*)"
#define RELABEL_DEFAULT_SEPARATOR ";"
#define RELABEL_DEFAULT_REPLACEMENT "$1"

struct relabel_rule {
	enum relabel_action action;
	struct slice *sources;
	size_t sources_count;
	struct slice separator, target, replacement, pattern;
	bool has_sources;
	struct regex *regex;
	uint64_t modulus;
	size_t line;
};

struct relabel {
	struct arena arena;
	struct relabel_rule *rules;
	size_t count, capacity;
};

extern const char *const relabel_action_names[RELABEL_ACTIONS];

#endif
