/* SPDX-License-Identifier: Apache-2.0 */
/* A word comes out of a real shell as it went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "codec/wire/shell_word.h"

static void a_shell_gives_the_text_back(void **state)
{
	static const char *const texts[] = { "/usr/bin/firn",
					     "a b",
					     "it's",
					     "'",
					     "''$(touch x)`id`",
					     "-rf",
					     "",
					     "\\",
					     "a\nb",
					     "\"$HOME\" ; exit 1",
					     "*",
					     "~root",
					     "\xc3\xa4 \x1b[31m" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct strbuf command = { 0 }, got = { 0 };
		char buffer[256];
		FILE *shell;

		strbuf_add_text(&command, "printf %s. ");
		shell_word_add(slice_of(texts[i]), &command);
		shell = popen(strbuf_text(&command), "r");
		assert_non_null(shell);
		strbuf_add(&got, buffer, fread(buffer, 1, sizeof(buffer), shell));
		assert_int_equal(pclose(shell), 0);
		assert_int_equal(got.len, strlen(texts[i]) + 1);
		assert_memory_equal(got.data, texts[i], strlen(texts[i]));
		strbuf_free(&command);
		strbuf_free(&got);
	}
}

static void plain_paths_stay_as_they_are(void **state)
{
	struct strbuf got = { 0 };

	(void)state;
	shell_word_add(SLICE_LITERAL("/opt/a-b_c/x.so.1:2=@+"), &got);
	assert_string_equal(strbuf_text(&got), "/opt/a-b_c/x.so.1:2=@+");
	strbuf_clear(&got);
	shell_word_add(SLICE_LITERAL("it's"), &got);
	assert_string_equal(strbuf_text(&got), "'it'\\''s'");
	strbuf_free(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shell_gives_the_text_back),
		cmocka_unit_test(plain_paths_stay_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
