/* SPDX-License-Identifier: Apache-2.0 */
/* firn store backup - a second directory that opens as the store is now. */
#include <stdio.h>

#include "base/printable.h"
#include "cli/verb.h"
#include "server/persist/store_backup.h"

struct backup_options {
	struct verb_common common;
};

static const struct option backup_options[] = { VERB_COMMON_OPTIONS };

static const struct option_verb backup_spec = {
	.name = "store backup",
	.operands = "DIR TO",
	.summary = "copy a storage directory consistently, by hard links",
	.details =
		"Makes TO a new directory with the present content of DIR. The server may be\n"
		"running. Parts never change, so they are linked, which takes seconds and\n"
		"little space; on another file system they are copied. To restore, start the\n"
		"server with TO as --storage-path. Uploaded debug files (DIR/debuginfo) are not\n"
		"included: copy that directory separately.",
	.options = backup_options,
	.options_count = VERB_COUNT_OF(backup_options),
};

static int run_backup(int argc, char **argv)
{
	struct backup_options values = { 0 };
	struct option_operands operands;
	struct store_backup done;
	struct err err;
	int code = verb_parse(&verb_store_backup, argc, argv, &values, &operands);

	if (code < 0 && operands.count != 2) {
		err_set(&err, ERR_INVALID,
			"expected a storage directory and one to make, for example /var/lib/firn "
			"./backup");
		code = verb_error(&verb_store_backup, &err);
	}
	if (code >= 0)
		return code;
	if (store_backup(operands.items[0], operands.items[1], NULL, &done, &err))
		return verb_error(&verb_store_backup, &err);
	printable_print(
		stdout, "%s: %llu parts, %llu of them linked (%llu bytes), %llu bytes copied\n",
		operands.items[1], (unsigned long long)done.parts, (unsigned long long)done.linked,
		(unsigned long long)done.bytes_linked, (unsigned long long)done.bytes_copied);
	return VERB_OK;
}

const struct verb verb_store_backup = { &backup_spec, run_backup, LOG_WARN };
