/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: both formats, levels, and text from outside that tries to break them. */
#include "base/log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char logged[1 << 20];

/* Runs `act` with stderr in a file, whose content is then in `logged`. */
static void capture(void (*act)(void))
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t len;

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	act();
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	len = fread(logged, 1, sizeof(logged) - 1, file);
	logged[len] = '\0';
	fclose(file);
}

/* The line after its time stamp, which is checked for its shape. */
static const char *after_time(const char *line, const char *before)
{
	int end = -1;

	assert_int_equal(strncmp(line, before, strlen(before)), 0);
	line += strlen(before);
	sscanf(line, "%*4d-%*2d-%*2dT%*2d:%*2d:%*2d.%*3dZ%n", &end);
	assert_int_equal(end, 24);
	return line + end;
}

static void warn(void)
{
	log_warn("wal", "segment is short", "file=%s missing_bytes=%d", "0012.wal", 7);
}

static void warn_with_operands(void)
{
	log_warn("up", "no /metrics", "error=\"%s\" port=%d",
		 "listen on \"[::1]:80\": \"firn\" has it", 80);
}

static void quotes_inside_of_values_are_escaped(void **state)
{
	(void)state;
	log_set(LOG_INFO, LOG_LOGFMT);
	capture(warn_with_operands);
	assert_string_equal(after_time(logged, "ts="),
			    " level=warn module=up msg=\"no /metrics\" error=\"listen on "
			    "\\\"[::1]:80\\\": \\\"firn\\\" has it\" port=80\n");
}

static void logfmt_is_one_line_of_pairs(void **state)
{
	(void)state;
	log_set(LOG_INFO, LOG_LOGFMT);
	capture(warn);
	assert_string_equal(after_time(logged, "ts="),
			    " level=warn module=wal msg=\"segment is short\" "
			    "file=0012.wal missing_bytes=7\n");
}

static void json_is_one_object_per_line(void **state)
{
	(void)state;
	log_set(LOG_INFO, LOG_JSON);
	capture(warn);
	assert_string_equal(after_time(logged, "{\"ts\":\""),
			    "\",\"level\":\"warn\",\"module\":\"wal\",\"msg\":\"segment is short\","
			    "\"detail\":\"file=0012.wal missing_bytes=7\"}\n");
}

static void log_at_all_levels(void)
{
	log_debug("m", "d", NULL);
	log_info("m", "i", NULL);
	log_warn("m", "w", NULL);
	log_error("m", "e", NULL);
}

static void lower_levels_are_silent(void **state)
{
	(void)state;
	log_set(LOG_WARN, LOG_LOGFMT);
	capture(log_at_all_levels);
	assert_null(strstr(logged, "level=debug"));
	assert_null(strstr(logged, "level=info"));
	assert_non_null(strstr(logged, "level=warn module=m msg=\"w\"\n"));
	assert_non_null(strstr(logged, "level=error module=m msg=\"e\"\n"));
}

static void log_hostile_text(void)
{
	log_info("m", "a \"b\" \\ \n", "name=\"x\ny\" bad=\xff\xfe tab=\t");
}

static void log_utf8(void)
{
	log_info("m", "gr\xc3\xbc\xc3\x9f", "name=\"\xe2\x82\xac\"");
}

static void text_from_outside_cannot_end_the_line(void **state)
{
	static const enum log_format formats[] = { LOG_LOGFMT, LOG_JSON };

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		log_set(LOG_INFO, formats[i]);
		capture(log_hostile_text);
		assert_ptr_equal(strchr(logged, '\n'), logged + strlen(logged) - 1);
		assert_non_null(strstr(logged, "a \\\"b\\\" \\\\ \\u000a\""));
		assert_non_null(strstr(logged, "bad=\\u00ff\\u00fe tab=\\u0009"));
	}
}

static void utf8_is_left_alone(void **state)
{
	(void)state;
	log_set(LOG_INFO, LOG_JSON);
	capture(log_utf8);
	assert_non_null(strstr(logged, "\"gr\xc3\xbc\xc3\x9f\""));
	assert_non_null(strstr(logged, "\xe2\x82\xac"));
}

static void log_a_long_detail(void)
{
	static char text[10000];

	memset(text, 'x', sizeof(text) - 1);
	log_info("m", "long", "text=%s", text);
}

static void long_details_are_cut(void **state)
{
	(void)state;
	log_set(LOG_INFO, LOG_LOGFMT);
	capture(log_a_long_detail);
	assert_true(strlen(logged) < 3000);
	assert_int_equal(logged[strlen(logged) - 1], '\n');
}

static void names_of_levels_and_formats_are_known(void **state)
{
	enum log_level level = LOG_INFO;
	enum log_format format = LOG_LOGFMT;

	(void)state;
	assert_true(log_parse_level("error", &level));
	assert_int_equal(level, LOG_ERROR);
	assert_false(log_parse_level("loud", &level));
	assert_int_equal(level, LOG_ERROR);
	assert_true(log_parse_format("json", &format));
	assert_int_equal(format, LOG_JSON);
	assert_false(log_parse_format("xml", &format));
	assert_int_equal(format, LOG_JSON);
}

#define THREADS 4
#define LINES 200

static void *log_lines(void *unused)
{
	(void)unused;
	for (int i = 0; i < LINES; i++) {
		log_set(LOG_INFO, LOG_LOGFMT);
		log_info("thread", "line", "number=%d", i);
	}
	return NULL;
}

static void log_from_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_lines, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void lines_of_threads_do_not_mix(void **state)
{
	int lines = 0;

	(void)state;
	log_set(LOG_INFO, LOG_LOGFMT);
	capture(log_from_threads);
	for (const char *line = logged; *line; line = strchr(line, '\n') + 1) {
		int number = -1, end = -1;

		sscanf(after_time(line, "ts="),
		       " level=info module=thread msg=\"line\" number=%d%n", &number, &end);
		assert_in_range(number, 0, LINES - 1);
		assert_int_equal(after_time(line, "ts=")[end], '\n');
		lines++;
	}
	assert_int_equal(lines, THREADS * LINES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logfmt_is_one_line_of_pairs),
		cmocka_unit_test(quotes_inside_of_values_are_escaped),
		cmocka_unit_test(json_is_one_object_per_line),
		cmocka_unit_test(lower_levels_are_silent),
		cmocka_unit_test(text_from_outside_cannot_end_the_line),
		cmocka_unit_test(utf8_is_left_alone),
		cmocka_unit_test(long_details_are_cut),
		cmocka_unit_test(names_of_levels_and_formats_are_known),
		cmocka_unit_test(lines_of_threads_do_not_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
