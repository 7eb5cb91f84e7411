/* SPDX-License-Identifier: Apache-2.0 */
/* What token servers answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "remote/access/oauth2.h"

static void gives(const char *answer, const char *value, int64_t lasts_ns)
{
	struct strbuf got = { 0 };
	int64_t got_ns = -1;
	struct err err;

	assert_int_equal(oauth2_read_answer(slice_of(answer), &got, &got_ns, &err), 0);
	assert_string_equal(strbuf_text(&got), value);
	assert_int_equal(got_ns, lasts_ns);
	strbuf_free(&got);
}

static void tokens_are_read(void **state)
{
	(void)state;
	gives("{\"access_token\":\"a.b\",\"token_type\":\"bearer\",\"expires_in\":60}",
	      "Bearer a.b", 60 * CLOCK_NS_PER_S);
	gives("{\"access_token\":\"a\",\"token_type\":\"MAC\",\"expires_in\":\"1.5\"}", "MAC a",
	      CLOCK_NS_PER_S * 3 / 2);
	gives("{\"access_token\":\"a\"}", "Bearer a", 0);
	gives("{\"access_token\":\"a\",\"expires_in\":-1}", "Bearer a", 0);
	gives("{\"access_token\":\"a\",\"expires_in\":1e300}", "Bearer a", 3600 * CLOCK_NS_PER_S);
}

static void what_is_none_is_told(void **state)
{
	static const char *const wrong[] = { "",
					     "[]",
					     "nothing",
					     "{\"error\":\"invalid_client\"}",
					     "{\"access_token\":7}",
					     "{\"access_token\":\"\"}",
					     "{\"access_token\":\"a\\r\\nx: y\"}",
					     "{\"access_token\":\"a\",\"token_type\":\"b\\n\"}" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct strbuf got = { 0 };
		int64_t lasts_ns = 0;
		struct err err = { 0 };

		assert_int_equal(oauth2_read_answer(slice_of(wrong[i]), &got, &lasts_ns, &err),
				 -ERR_INVALID);
		assert_true(err.message[0]);
		assert_int_equal(got.len, 0);
		strbuf_free(&got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_read),
		cmocka_unit_test(what_is_none_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
