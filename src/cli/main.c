/* SPDX-License-Identifier: Apache-2.0 */
/* firn - continuous profiling for everything you run. Finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "server/resolve/disassembler.h"
#include "server/resolve/symbol_worker.h"

static const struct verb *const verbs[] = {
	&verb_up,
	&verb_server,
	&verb_agent,
	&verb_record,
	&verb_doctor,
	&verb_query,
	&verb_diff,
	&verb_convert,
	&verb_push,
	&verb_symbolize,
	&verb_unwind_table,
	&verb_store_verify,
	&verb_store_stat,
	&verb_store_backup,
	&verb_store_export,
	&verb_store_compact,
	&verb_store_delete,
	&verb_debuginfo_upload,
	&verb_debuginfo_list,
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
		fprintf(to, "  %-16s %s\n", verbs[i]->spec->name, verbs[i]->spec->summary);
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

static int unknown_verb(int argc, char **argv)
{
	const char *names[VERB_COUNT_OF(verbs)], *nearest;
	char given[128];
	bool is_two;

	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++)
		names[i] = verbs[i]->spec->name;
	is_two = argc > 1 && (!strcmp(argv[0], "store") || !strcmp(argv[0], "debuginfo"));
	snprintf(given, sizeof(given), "%s%s%s", argv[0], is_two ? " " : "", is_two ? argv[1] : "");
	nearest = options_nearest(given, names, VERB_COUNT_OF(names));
	fprintf(stderr, "firn: unknown verb \"%s\"%s%s%s; firn --help lists them\n", given,
		nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
	return VERB_ERROR;
}

int main(int argc, char **argv)
{
	int worker = symbol_worker_main(argc, argv);

	if (worker < 0)
		worker = disassembler_main(argc, argv);
	if (worker >= 0)
		return worker;
	if (argc < 2) {
		print_help(stderr);
		return VERB_ERROR;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return VERB_OK;
	}
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--version")) {
			printf("firn " FIRN_VERSION "\n");
			return VERB_OK;
		}
	}
	for (size_t i = 0; i < VERB_COUNT_OF(verbs); i++) {
		int words = name_words(verbs[i], argc - 1, argv + 1);

		if (words)
			return verbs[i]->run(argc - 1 - words, argv + 1 + words);
	}
	return unknown_verb(argc - 1, argv + 1);
}
