/* SPDX-License-Identifier: Apache-2.0 */
/* Error values: codes, messages, and what happens when a message does not fit. */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void set_returns_the_negative_code(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, ERR_LIMIT, "read %d bytes", 7), -ERR_LIMIT);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_string_equal(err.message, "read 7 bytes");
}

static void nobody_need_listen(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_BUSY, "x"), -ERR_BUSY);
	assert_int_equal(err_set_errno(NULL, ENOSPC, "x"), -ERR_NO_SPACE);
	assert_int_equal(err_wrap(NULL, "x"), -ERR_INVALID);
}

static void errno_chooses_the_code(void **state)
{
	static const struct {
		int number;
		enum err_code code;
	} cases[] = {
		{ ENOSPC, ERR_NO_SPACE }, { EDQUOT, ERR_NO_SPACE },  { EACCES, ERR_DENIED },
		{ EPERM, ERR_DENIED },	  { EROFS, ERR_READ_ONLY },  { ENOENT, ERR_NOT_FOUND },
		{ EEXIST, ERR_EXISTS },	  { ENOMEM, ERR_NO_MEMORY }, { EIO, ERR_IO },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err;

		assert_int_equal(err_set_errno(&err, cases[i].number, "open"), -(int)cases[i].code);
		assert_int_equal(err.code, cases[i].code);
	}
}

static void errno_adds_its_text(void **state)
{
	struct err err;

	(void)state;
	err_set_errno(&err, ENOENT, "open \"%s\"", "a.wal");
	assert_string_equal(err.message, "open \"a.wal\": No such file or directory");
	err_set_errno(&err, 99999, "open");
	assert_string_equal(err.message, "open: unknown error");
}

static void wrap_puts_context_before_the_cause(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ERR_CORRUPT, "checksum mismatch at offset %d", 4096);
	assert_int_equal(err_wrap(&err, "open segment \"%s\"", "0012.wal"), -ERR_CORRUPT);
	assert_string_equal(err.message,
			    "open segment \"0012.wal\": checksum mismatch at offset 4096");
}

static void wrap_may_quote_the_message_it_wraps(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ERR_IO, "inner");
	err_wrap(&err, "after %s", err.message);
	assert_string_equal(err.message, "after inner: inner");
}

static void long_messages_are_cut_at_the_end(void **state)
{
	char text[2 * ERR_MESSAGE_BYTES];
	struct err err;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set_errno(&err, EIO, "%s", text);
	assert_int_equal(strlen(err.message), ERR_MESSAGE_BYTES - 1);
	err_wrap(&err, "%s", text);
	assert_int_equal(strlen(err.message), ERR_MESSAGE_BYTES - 1);
	err_wrap(&err, "context");
	assert_int_equal(strncmp(err.message, "context: aaa", 12), 0);
	assert_int_equal(strlen(err.message), ERR_MESSAGE_BYTES - 1);
}

static void every_code_has_a_name(void **state)
{
	(void)state;
	for (int code = 0; code < ERR_CODES; code++)
		assert_string_not_equal(err_code_name((enum err_code)code), "unknown");
	assert_string_equal(err_code_name(ERR_CODES), "unknown");
	assert_string_equal(err_code_name(ERR_READ_ONLY), "read_only");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_returns_the_negative_code),
		cmocka_unit_test(nobody_need_listen),
		cmocka_unit_test(errno_chooses_the_code),
		cmocka_unit_test(errno_adds_its_text),
		cmocka_unit_test(wrap_puts_context_before_the_cause),
		cmocka_unit_test(wrap_may_quote_the_message_it_wraps),
		cmocka_unit_test(long_messages_are_cut_at_the_end),
		cmocka_unit_test(every_code_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
