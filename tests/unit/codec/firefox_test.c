/* SPDX-License-Identifier: Apache-2.0 */
/* What convert_test does not reach: units, and files made to cost time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "codec/profile/firefox.h"

#define TABLES                                                                                     \
	"\"frameTable\":{\"func\":[0],\"line\":[1]},\"funcTable\":{\"name\":[0]},"                 \
	"\"stringArray\":[\"main\"]"
#define ELEMENTS_MAX ((size_t)1 << 20)
#define DEEP 60000

static int decode(struct slice text, struct stack_builder *into, struct err *err)
{
	assert_true(firefox_is(text));
	stack_builder_init(into, ELEMENTS_MAX, NULL);
	return firefox_decode(text, into, err);
}

/* Half a millisecond is not nothing. */
static void milliseconds_are_time(void **state)
{
	struct slice text =
		SLICE_LITERAL("{\"threads\":[{\"samples\":{\"stack\":[0,0],\"weight\":[0.4,2],"
			      "\"weightType\":\"tracing-ms\"},"
			      "\"stackTable\":{\"frame\":[0],\"prefix\":[null]}," TABLES "}]}");
	struct stack_builder builder;
	struct err err;

	(void)state;
	assert_int_equal(decode(text, &builder, &err), 0);
	assert_int_equal(builder.profile.samples.count, 2);
	assert_int_equal(builder.profile.values.data[0], 400000);
	assert_int_equal(builder.profile.values.data[1], 2000000);
	stack_builder_free(&builder);
}

/* Each of many samples is at the end of one deep stack: it costs what is kept of it. */
static void deep_stacks_of_many_samples_are_bounded(void **state)
{
	struct stack_builder builder;
	struct strbuf text = { 0 };
	struct err err;

	(void)state;
	strbuf_addf(&text, "{\"threads\":[{\"samples\":{\"stack\":[%d", DEEP - 1);
	for (int i = 1; i < DEEP; i++)
		strbuf_addf(&text, ",%d", DEEP - 1);
	strbuf_addf(&text, "]},\"stackTable\":{\"frame\":[0");
	for (int i = 1; i < DEEP; i++)
		strbuf_addf(&text, ",0");
	strbuf_addf(&text, "],\"prefix\":[null");
	for (int i = 1; i < DEEP; i++)
		strbuf_addf(&text, ",%d", i - 1);
	strbuf_addf(&text, "]}," TABLES "}]}");
	assert_int_equal(decode(strbuf_slice(&text), &builder, &err), -ERR_LIMIT);
	stack_builder_free(&builder);
	strbuf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(milliseconds_are_time),
		cmocka_unit_test(deep_stacks_of_many_samples_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
