/* SPDX-License-Identifier: Apache-2.0 */
/* firn store compact - does at once, offline, what a running server does by and by. */
#include <stdio.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/verb.h"
#include "server/persist/store_admin.h"

struct compact_verb_options {
	struct verb_common common;
};

static const struct option compact_options[] = { VERB_COMMON_OPTIONS };

static const struct option_verb compact_spec = {
	.name = "store compact",
	.operands = "DIR",
	.summary = "merge the parts of a storage directory into a few large ones, offline",
	.details =
		"Merges parts into one per day, with sums per hour and day, and removes what\n"
		"was deleted. The server must not be running (it compacts by itself, slowly).\n"
		"Interrupting it is safe: the next run continues where it stopped. Exits 1 when\n"
		"damaged parts had to be set aside.",
	.options = compact_options,
	.options_count = VERB_COUNT_OF(compact_options),
};

static void show_progress(void *context, uint64_t rows_done, uint64_t rows_total)
{
	const struct store_compacted *done = context;

	fprintf(stderr, "\rfirn store compact: job %llu, %llu of %llu million rows ",
		(unsigned long long)done->jobs + 1, (unsigned long long)rows_done / 1000000,
		(unsigned long long)rows_total / 1000000);
}

static int compact(const char *path, uint64_t *ret_damaged, struct err *err)
{
	struct store_options open = { .path = path, .no_background = true };
	struct store_compacted done = { 0 };
	bool on_terminal = isatty(STDERR_FILENO);
	struct store_compact_options options = {
		.all = true,
		.progress = on_terminal ? show_progress : NULL,
		.context = &done,
	};
	struct store *store;
	int rc = store_open(&open, &store, err);

	if (rc)
		return rc;
	rc = store_seal(store, err);
	if (!rc)
		rc = store_compact(store, &options, &done, err);
	if (on_terminal && done.jobs)
		fprintf(stderr, "\n");
	if (!rc)
		printable_print(
			stdout,
			"%s: %llu parts became %llu, %llu bytes became %llu; %llu reports "
			"deleted\n",
			path, (unsigned long long)done.parts_in, (unsigned long long)done.parts_out,
			(unsigned long long)done.bytes_in, (unsigned long long)done.bytes_out,
			(unsigned long long)done.reports_deleted);
	*ret_damaged = done.parts_damaged;
	store_close(store);
	return rc;
}

static int run_compact(int argc, char **argv)
{
	struct compact_verb_options values = { 0 };
	struct option_operands operands;
	uint64_t damaged = 0;
	struct err err;
	int code = verb_parse(&verb_store_compact, argc, argv, &values, &operands);

	if (code < 0 && operands.count != 1) {
		err_set(&err, ERR_INVALID,
			"expected one storage directory, for example /var/lib/firn");
		code = verb_error(&verb_store_compact, &err);
	}
	if (code >= 0)
		return code;
	/* A typing error must not leave a store behind. */
	if (access(operands.items[0], F_OK)) {
		err_set(&err, ERR_NOT_FOUND, "no firn store in \"%s\"", operands.items[0]);
		return verb_error(&verb_store_compact, &err);
	}
	if (compact(operands.items[0], &damaged, &err))
		return verb_error(&verb_store_compact, &err);
	if (damaged)
		printable_print(stderr,
				"firn store compact: %llu parts are damaged and were set aside in "
				"%s/quarantine; "
				"answers lack them\n",
				(unsigned long long)damaged, operands.items[0]);
	return damaged ? VERB_NEGATIVE : VERB_OK;
}

const struct verb verb_store_compact = { &compact_spec, run_compact, LOG_WARN };
