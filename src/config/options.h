/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - command lines from a table.
 *
 * A verb lists the options that it takes: each row names a spec, which several verbs may share, and
 * the member that receives the value. Parsing, --help, defaults and nearest-name hints come from
 * the specs. `--name VALUE`, `--name=VALUE`, `-x VALUE`; flags take no value; `--` ends options;
 * operands are collected in order. Only lists may be given several times. If the verb asks for it,
 * parsing stops at the first operand (for `record -- CMD ARGS`).
 */
#ifndef FIRN_CONFIG_OPTIONS_H
#define FIRN_CONFIG_OPTIONS_H

#include "base/err.h"
#include "base/strbuf.h"

enum option_kind {
	OPTION_FLAG,	 /* bool */
	OPTION_TEXT,	 /* const char * (points into argv) */
	OPTION_LIST,	 /* struct option_list: may be given several times */
	OPTION_COUNT,	 /* unsigned, min..max */
	OPTION_DURATION, /* int64_t ns, min..max seconds */
	OPTION_SIZE,	 /* struct option_size */
};

#define OPTION_LIST_MAX 64
struct option_list {
	const char *items[OPTION_LIST_MAX];
	size_t count;
};
struct option_size {
	uint64_t bytes;
	double percent; /* 0 = bytes count */
};

struct option_spec {
	char letter;	  /* 'o' for -o, or 0 */
	const char *name; /* "storage-path" */
	enum option_kind kind;
	const char *metavar; /* "DIR"; NULL for flags */
	const char *help;    /* one line, without the default */
	const char *preset;  /* the default as a user would write it; NULL: none */
	const char *unset;   /* describes the behaviour without the option; NULL: the preset */
	unsigned min, max;   /* of OPTION_COUNT; of OPTION_DURATION in seconds, if max is set */
};

struct option {
	const struct option_spec *spec;
	size_t offset; /* of the value in the verb's options struct */
};

struct option_verb {
	const char *name;     /* "query", "store verify" */
	const char *operands; /* "SELECTOR", "FILE..."; "": none */
	const char *summary;  /* one line */
	const char *details;  /* paragraphs and examples for --help */
	const struct option *options;
	size_t options_count;
	bool stop_at_operand;
};

#define OPTION_OPERANDS_MAX 4096
struct option_operands {
	char **items; /* into argv */
	size_t count;
	bool after_dashes; /* a "--" came before the first operand */
};

/*
 * Fills `values`, which the caller has zeroed: first with the presets, then with the options in
 * argv. Sets *ret_help if argv has --help. Permutes argv: operands move to its front.
 */
int options_parse(const struct option_verb *verb, int argc, char **argv, void *values,
		  struct option_operands *ret, bool *ret_help, struct err *err);

void options_help(const struct option_verb *verb, struct strbuf *out);

/* Appends " (default: X)" if there is a default. */
void options_add_default(const struct option_spec *spec, struct strbuf *out);

/* The candidate nearest to `text` by edit distance, or NULL if none is near enough. */
const char *options_nearest(const char *text, const char *const *candidates, size_t count);

#endif
