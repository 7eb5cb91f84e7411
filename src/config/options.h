/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - command lines from a table.
 *
 * A verb lists the options that it takes: each row names a spec, which several verbs may share, and
 * says where the value goes. Parsing, --help, defaults and nearest-name hints come from the specs.
 * `--name VALUE`, `--name=VALUE`, `-x VALUE`; flags take no value; `--` ends options; operands are
 * collected in order. What takes one value is given once. Parsing stops at the first operand when
 * the verb says so (for `record -- CMD ARGS`).
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
	const char *unset;   /* says what holds without the option; NULL: the preset, if any */
	unsigned min, max;   /* of OPTION_COUNT; of OPTION_DURATION in seconds, if max is set */
};

struct option {
	const struct option_spec *spec;
	size_t offset; /* of the value in the verb's options struct */
};

struct option_verb {
	const char *name;     /* "query", "store verify" */
	const char *operands; /* "SELECTOR", "FILE..."; "": none are taken */
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
 * Fills `values`, which the caller has zeroed: first with the presets, then with what argv says.
 * *ret_help is set when --help was asked for. argv is permuted: operands are gathered at its front.
 */
int options_parse(const struct option_verb *verb, int argc, char **argv, void *values,
		  struct option_operands *ret, bool *ret_help, struct err *err);

void options_help(const struct option_verb *verb, struct strbuf *out);

/* Appends " (default: X)" where there is one. */
void options_add_default(const struct option_spec *spec, struct strbuf *out);

/* The candidate nearest to `text` by edit distance when it is near enough, else NULL. */
const char *options_nearest(const char *text, const char *const *candidates, size_t count);

#endif
