/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/printable.h"

static int apply_common(const struct verb *verb, const struct verb_common *common, struct err *err)
{
	enum log_level level = verb->log_level;
	enum log_format format = LOG_LOGFMT;

	if (common->log_level && !log_parse_level(common->log_level, &level))
		return err_set(err, ERR_INVALID,
			       "--log-level: \"%s\" is not one of debug, info, warn, error",
			       common->log_level);
	if (common->log_format && !log_parse_format(common->log_format, &format))
		return err_set(err, ERR_INVALID, "--log-format: \"%s\" is neither logfmt nor json",
			       common->log_format);
	log_set(level, format);
	return 0;
}

int verb_parse(const struct verb *verb, int argc, char **argv, void *options,
	       struct option_operands *operands)
{
	struct err err;
	bool help;

	if (options_parse(verb->spec, argc, argv, options, operands, &help, &err))
		return verb_error(verb, &err);
	if (help) {
		struct strbuf text = { 0 };

		options_help(verb->spec, &text);
		fputs(strbuf_text(&text), stdout);
		strbuf_free(&text);
		return VERB_OK;
	}
	if (apply_common(verb, options, &err))
		return verb_error(verb, &err);
	return -1;
}

int verb_error(const struct verb *verb, const struct err *err)
{
	printable_print(stderr, "firn %s: %s\n", verb->spec->name, err->message);
	return VERB_ERROR;
}

void verb_raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGHUP);
}

void verb_block_signals(void)
{
	sigset_t set;

	signal_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool verb_is_stopping(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

int verb_wait_signal(long long timeout_ns)
{
	struct timespec timeout = { timeout_ns / CLOCK_NS_PER_S, timeout_ns % CLOCK_NS_PER_S };
	sigset_t set;
	int number;

	signal_set(&set);
	if (timeout_ns < 0)
		sigwait(&set, &number);
	else
		number = sigtimedwait(&set, NULL, &timeout);
	return number > 0 ? number : 0;
}
