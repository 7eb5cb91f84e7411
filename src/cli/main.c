/* SPDX-License-Identifier: Apache-2.0 */
/* firn - continuous profiling for everything you run. Finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "cli/manual.h"
#include "cli/verb.h"
#include "server/resolve/worker/disassembler.h"
#include "server/resolve/worker/symbol_worker.h"

static const struct option common_options[] = {
	VERB_COMMON_OPTIONS,
};

struct manual_verb_options {
	struct verb_common common;
	bool markdown;
};

static const struct option manual_options[] = {
	OPTION_AT(MARKDOWN, offsetof(struct manual_verb_options, markdown)),
	VERB_COMMON_OPTIONS,
};

static int run_completion(int argc, char **argv);
static int run_manual(int argc, char **argv);

/* They print the list itself, so they stand beside it. */
static const struct option_verb completion_spec = {
	.name = "completion",
	.operands = "bash|zsh|fish",
	.summary = "print a script that completes verbs and options in your shell",
	.details = "  firn completion bash > /etc/bash_completion.d/firn\n"
		   "  firn completion zsh > \"${fpath[1]}/_firn\"\n"
		   "  firn completion fish > ~/.config/fish/completions/firn.fish\n\n"
		   "`make install` installs all three.",
	.options = common_options,
	.options_count = VERB_COUNT_OF(common_options),
};
static const struct verb verb_completion = { &completion_spec, run_completion, LOG_WARN };

static const struct option_verb manual_spec = {
	.name = "manual",
	.operands = "",
	.summary = "print the manual page, firn(1)",
	.details = "  firn manual | man -l -",
	.options = manual_options,
	.options_count = VERB_COUNT_OF(manual_options),
};
static const struct verb verb_manual = { &manual_spec, run_manual, LOG_WARN };

static const struct verb *const verbs[] = {
	&verb_up,
	&verb_server,
	&verb_agent,
	&verb_record,
	&verb_top,
	&verb_doctor,
	&verb_query,
	&verb_diff,
	&verb_convert,
	&verb_view,
	&verb_push,
	&verb_symbolize,
	&verb_unwind_table,
	&verb_store_verify,
	&verb_store_stat,
	&verb_store_backup,
	&verb_store_restore,
	&verb_store_export,
	&verb_store_compact,
	&verb_store_delete,
	&verb_clickhouse_schema,
	&verb_clickhouse_migrate,
	&verb_clickhouse_check,
	&verb_clickhouse_import,
	&verb_debuginfo_upload,
	&verb_debuginfo_list,
	&verb_debuginfo_fetch,
	&verb_check_config,
	&verb_completion,
	&verb_manual,
	&verb_version,
};

static void print_help(FILE *to)
{
	fprintf(to,
		"firn " FIRN_VERSION " - continuous profiling for everything you run\n\n"
		"Usage: firn VERB [OPTIONS] [OPERANDS]\n\n"
		"Start here:\n"
		"  sudo firn up                  profile this host, UI at http://127.0.0.1:7070\n"
		"  sudo firn record -- CMD       profile one command into profile.pb.gz\n\n"
		"Verbs:\n");
	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++)
		fprintf(to, "  %-18s %s\n", verbs[i]->spec->name, verbs[i]->spec->summary);
	fprintf(to, "\nfirn VERB --help tells more. Exit codes: 0 success, 1 a negative answer, 2 "
		    "an error.\n");
}

/* How many arguments the verb's name takes up at argv[0..], or 0 when it is another verb. */
static int name_words(const struct verb *verb, int argc, char **argv)
{
	const char *name = verb->spec->name, *space = strchr(name, ' ');

	if (!space)
		return !strcmp(argv[0], name);
	if (argc < 2 || strncmp(argv[0], name, (size_t)(space - name)) || argv[0][space - name] ||
	    strcmp(argv[1], space + 1))
		return 0;
	return 2;
}

/* "store verify" is of the family "store". */
static bool is_of_family(const struct verb *verb, const char *family)
{
	size_t len = strlen(family);

	return !strncmp(verb->spec->name, family, len) && verb->spec->name[len] == ' ';
}

static bool is_family(const char *word)
{
	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++)
		if (is_of_family(verbs[i], word))
			return true;
	return false;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

static void print_family(FILE *to, const char *family)
{
	fprintf(to, "Usage: firn %s VERB [OPTIONS] [OPERANDS]\n\nVerbs:\n", family);
	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++)
		if (is_of_family(verbs[i], family))
			fprintf(to, "  firn %-18s %s\n", verbs[i]->spec->name,
				verbs[i]->spec->summary);
	fprintf(to, "\nfirn %s VERB --help tells more.\n", family);
}

static int unknown_verb(int argc, char **argv)
{
	const char *names[VERB_COUNT_OF(verbs)], *nearest;
	char given[128];
	bool is_two;

	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++)
		names[i] = verbs[i]->spec->name;
	is_two = argc > 1 && is_family(argv[0]);
	snprintf(given, sizeof(given), "%s%s%s", argv[0], is_two ? " " : "", is_two ? argv[1] : "");
	nearest = options_nearest(given, names, VERB_COUNT_OF(names));
	printable_print(stderr, "firn: unknown verb \"%s\"%s%s%s; firn --help lists them\n", given,
			nearest ? " (did you mean " : "", nearest ? nearest : "",
			nearest ? "?)" : "");
	return VERB_ERROR;
}

/* "help VERB" is "VERB --help". */
static int print_help_of(int argc, char **argv)
{
	char help[] = "--help", *help_only[] = { help };

	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++)
		if (name_words(verbs[i], argc, argv))
			return verbs[i]->run(1, help_only);
	if (!is_family(argv[0]) || argc > 1)
		return unknown_verb(argc, argv);
	print_family(stdout, argv[0]);
	return VERB_OK;
}

static int run_completion(int argc, char **argv)
{
	struct verb_common values = { 0 };
	struct option_operands operands;
	struct strbuf out = { 0 };
	struct err err;
	int code = verb_parse(&verb_completion, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (operands.count != 1 ||
	    !manual_completion(operands.items[0], verbs, VERB_COUNT_OF(verbs), &out)) {
		err_set(&err, ERR_INVALID, "expected the name of a shell: bash, zsh or fish");
		return verb_error(&verb_completion, &err);
	}
	fputs(strbuf_text(&out), stdout);
	strbuf_free(&out);
	return VERB_OK;
}

static int run_manual(int argc, char **argv)
{
	struct manual_verb_options values = { 0 };
	struct option_operands operands;
	struct strbuf out = { 0 };
	int code = verb_parse(&verb_manual, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	(values.markdown ? manual_markdown : manual_page)(verbs, VERB_COUNT_OF(verbs), &out);
	fputs(strbuf_text(&out), stdout);
	strbuf_free(&out);
	return VERB_OK;
}

static bool has_argument(int argc, char **argv, const char *wanted)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], wanted))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	char verbose[] = "--verbose", *verbose_only[] = { verbose };
	int worker = symbol_worker_main(argc, argv);

	if (worker < 0)
		worker = disassembler_main(argc, argv);
	if (worker >= 0)
		return worker;
	if (argc < 2) {
		print_help(stderr);
		return VERB_ERROR;
	}
	if (is_help(argv[1])) {
		if (argc > 2)
			return print_help_of(argc - 2, argv + 2);
		print_help(stdout);
		return VERB_OK;
	}
	if (has_argument(argc, argv, "--version"))
		return verb_version.run(has_argument(argc, argv, verbose), verbose_only);
	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++) {
		int words = name_words(verbs[i], argc - 1, argv + 1);

		if (words)
			return verbs[i]->run(argc - 1 - words, argv + 1 + words);
	}
	if (is_family(argv[1]) && (argc == 2 || is_help(argv[2]))) {
		print_family(argc == 2 ? stderr : stdout, argv[1]);
		return argc == 2 ? VERB_ERROR : VERB_OK;
	}
	return unknown_verb(argc - 1, argv + 1);
}
