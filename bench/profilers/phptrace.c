// SPDX-License-Identifier: Apache-2.0
/*
 * A profiler inside of PHP, for bench/profilers_bench: at each SIGPROF of the process's CPU time it
 * reads the stack of the functions that run, at once, where other profilers wait until the
 * interpreter comes to a safe place. It writes folded stacks at the end of the request. Functions
 * in C are part of the function that calls them.
 *
 *     PHPTRACE=OUT,MICROSECONDS php -d extension=./phptrace.so ...
 */
#include <php.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define DEPTH 512
#define TEXT_BYTES ((size_t)256 << 20)

static char path[4096];
static char *text; /* a line for each sample: of names, innermost first, with a tab behind each */
static size_t text_bytes;

static void put(const char *part, size_t bytes)
{
	if (TEXT_BYTES - text_bytes < bytes)
		return;
	memcpy(text + text_bytes, part, bytes);
	text_bytes += bytes;
}

static void take_sample(int number)
{
	const zend_execute_data *at = EG(current_execute_data);

	(void)number;
	for (int depth = 0; at && depth < DEPTH; depth++, at = at->prev_execute_data) {
		const zend_function *function = at->func;

		if (!function || function->type != ZEND_USER_FUNCTION ||
		    !function->common.function_name)
			continue;
		if (function->common.scope) {
			put(ZSTR_VAL(function->common.scope->name),
			    ZSTR_LEN(function->common.scope->name));
			put("::", 2);
		}
		put(ZSTR_VAL(function->common.function_name),
		    ZSTR_LEN(function->common.function_name));
		put("\t", 1);
	}
	put("\n", 1);
}

static void print_line(FILE *out, char *line, char *end)
{
	const char *separator = "";

	while (end > line) {
		char *name = end - 1; /* the tab behind it */

		*name = 0;
		while (name > line && name[-1] != '\t')
			name--;
		fprintf(out, "%s%s", separator, name);
		separator = ";";
		end = name;
	}
	if (*separator)
		fputs(" 1\n", out);
}

static PHP_RINIT_FUNCTION(phptrace)
{
	const char *told = getenv("PHPTRACE"), *comma = told ? strrchr(told, ',') : NULL;
	struct sigaction action = { .sa_handler = take_sample, .sa_flags = SA_RESTART };
	struct itimerval timer = { 0 };

	(void)type;
	(void)module_number;
	if (!comma || (size_t)(comma - told) >= sizeof(path))
		return FAILURE;
	memcpy(path, told, (size_t)(comma - told));
	text = malloc(TEXT_BYTES);
	if (!text)
		return FAILURE;
	timer.it_interval.tv_usec = timer.it_value.tv_usec = atol(comma + 1);
	sigaction(SIGPROF, &action, NULL);
	return setitimer(ITIMER_PROF, &timer, NULL) ? FAILURE : SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(phptrace)
{
	static const struct itimerval never;
	FILE *out;

	(void)type;
	(void)module_number;
	setitimer(ITIMER_PROF, &never, NULL);
	out = fopen(path, "w");
	if (!out)
		return FAILURE;
	for (size_t at = 0, end; at < text_bytes; at = end + 1) {
		for (end = at; end < text_bytes && text[end] != '\n'; end++)
			;
		print_line(out, text + at, text + end);
	}
	free(text);
	return fclose(out) ? FAILURE : SUCCESS;
}

static zend_module_entry phptrace_module_entry = {
	STANDARD_MODULE_HEADER,
	"phptrace",
	NULL,
	NULL,
	NULL,
	PHP_RINIT(phptrace),
	PHP_RSHUTDOWN(phptrace),
	NULL,
	"1",
	STANDARD_MODULE_PROPERTIES,
};

ZEND_GET_MODULE(phptrace)
