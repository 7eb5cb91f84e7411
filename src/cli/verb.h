/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb - what all verbs of the command line share.
 *
 * A verb is a file verb_NAME.c with a `const struct verb`; main.c lists them. `run` gets the
 * arguments after the verb's name and returns the exit code: 0 success, 1 a negative answer, 2 an
 * error (told on stderr through verb_error).
 */
#ifndef FIRN_CLI_VERB_H
#define FIRN_CLI_VERB_H

#include <stddef.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/log.h"
#include "cli/flags/option_table.h"

enum verb_exit { VERB_OK = 0, VERB_NEGATIVE = 1, VERB_ERROR = 2 };

struct verb {
	const struct option_verb *spec;
	int (*run)(int argc, char **argv);
	enum log_level log_level; /* when --log-level is not given */
};

extern const struct verb verb_up, verb_server, verb_agent, verb_record, verb_doctor, verb_query,
	verb_push, verb_store_verify, verb_store_stat, verb_store_backup, verb_store_restore,
	verb_clickhouse_schema, verb_clickhouse_migrate, verb_clickhouse_check,
	verb_clickhouse_import, verb_store_compact, verb_store_delete, verb_store_export,
	verb_symbolize, verb_unwind_table, verb_debuginfo_upload, verb_debuginfo_list,
	verb_debuginfo_fetch, verb_convert, verb_view, verb_top, verb_check_config, verb_diff,
	verb_version;

/* First member of every verb's options struct. */
struct verb_common {
	const char *log_level;
	const char *log_format;
};

#define VERB_COMMON_OPTIONS                                                                        \
	OPTION_AT(LOG_LEVEL, offsetof(struct verb_common, log_level)),                             \
		OPTION_AT(LOG_FORMAT, offsetof(struct verb_common, log_format))

#define VERB_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Parses into `options` (its first member a struct verb_common) and applies the common ones.
 * Returns -1 to go on, else the exit code to return (help was printed, or an error).
 */
int verb_parse(const struct verb *verb, int argc, char **argv, void *options,
	       struct option_operands *operands);

/* Prints "firn VERB: message" and returns VERB_ERROR. */
int verb_error(const struct verb *verb, const struct err *err);

/* Lets this process open as many files as the system allows: sockets and parts need them. */
void verb_raise_file_limit(void);

/* Blocks the signals that end or wake a daemon in this and all later threads. */
void verb_block_signals(void);
/* True if SIGINT or SIGTERM waits to be taken. Any thread, after verb_block_signals. */
bool verb_is_stopping(void);

/* Waits for one of them: SIGINT, SIGTERM, SIGCHLD or SIGHUP. timeout_ns < 0 = for ever; 0 on
 * time-out. */
int verb_wait_signal(long long timeout_ns);

#endif
