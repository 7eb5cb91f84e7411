/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines from a table: forms, errors, hints, help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/options.h"

struct values {
	const char *path;
	bool all;
	unsigned hz;
	int64_t duration_ns;
	struct option_list labels;
};

static const struct option_spec
	output = { 'o', "output", OPTION_TEXT, "FILE", "where to", "out.txt", NULL, 0, 0 },
	all = { 'a', "all", OPTION_FLAG, NULL, "all of it", NULL, NULL, 0, 0 },
	frequency = { 'F',	     "frequency", OPTION_COUNT, "HZ", "how often", "19",
		      "by the host", 1,		  1000 },
	duration = { 'd', "duration", OPTION_DURATION, "D", "how long", NULL, "for ever", 2, 300 },
	label = { 0, "label", OPTION_LIST, "K=V", "a label", NULL, NULL, 0, 0 };

static const struct option table[] = {
	{ &output, offsetof(struct values, path) },
	{ &all, offsetof(struct values, all) },
	{ &frequency, offsetof(struct values, hz) },
	{ &duration, offsetof(struct values, duration_ns) },
	{ &label, offsetof(struct values, labels) },
};

static const struct option_verb verb = { .name = "try",
					 .operands = "FILE...",
					 .summary = "a test",
					 .details = "",
					 .options = table,
					 .options_count = sizeof(table) / sizeof(table[0]) };

static int parse(const char *const *args, struct values *values, struct option_operands *operands,
		 struct err *err)
{
	static char *argv[16]; /* operands point into it */
	bool help;
	int argc = 0;

	for (; args[argc]; argc++)
		argv[argc] = (char *)args[argc];
	*values = (struct values){ 0 };
	return options_parse(&verb, argc, argv, values, operands, &help, err);
}

static void all_forms_of_options_are_read(void **state)
{
	static const char *const argv[] = { "one",  "--output=x", "-F",	 "99",	"--all",
					    "-d5m", "--label",	  "a=b", "two", "--label=c=d",
					    "--",   "-three",	  NULL };
	struct option_operands operands;
	struct values values;

	(void)state;
	assert_int_equal(parse(argv, &values, &operands, NULL), 0);
	assert_string_equal(values.path, "x");
	assert_int_equal(values.hz, 99);
	assert_true(values.all);
	assert_true(values.duration_ns == 300000000000);
	assert_int_equal(values.labels.count, 2);
	assert_string_equal(values.labels.items[1], "c=d");
	assert_int_equal(operands.count, 3);
	assert_string_equal(operands.items[0], "one");
	assert_string_equal(operands.items[1], "two");
	assert_string_equal(operands.items[2], "-three");
}

static void presets_hold_until_an_option_is_given(void **state)
{
	static const char *const none[] = { NULL };
	static const char *const one[] = { "-F5", NULL };
	struct option_operands operands;
	struct values values;

	(void)state;
	assert_int_equal(parse(none, &values, &operands, NULL), 0);
	assert_string_equal(values.path, "out.txt");
	assert_int_equal(values.hz, 19);
	assert_int_equal(parse(one, &values, &operands, NULL), 0);
	assert_string_equal(values.path, "out.txt");
	assert_int_equal(values.hz, 5);
}

static void errors_name_the_option_and_help_on(void **state)
{
	static const struct {
		const char *argv[4];
		const char *says;
	} cases[] = {
		{ { "--outptu", "x", NULL }, "did you mean --output?" },
		{ { "--output", NULL }, "--output needs a value (FILE)" },
		{ { "-F", "0", NULL }, "--frequency: expected a whole number from 1 to 1000" },
		{ { "--frequency=many", NULL }, "--frequency: expected a whole number" },
		{ { "--all=yes", NULL }, "--all takes no value" },
		{ { "-d", "soon", NULL }, "--duration: duration \"soon\"" },
		{ { "-d", "1s", NULL }, "--duration: expected a duration from 2s to 300s" },
		{ { "-d", "301s", NULL }, "--duration: expected a duration from 2s to 300s" },
		{ { "-z", NULL }, "unknown option \"-z\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct option_operands operands;
		struct values values;
		struct err err = { 0 };
		const char *const argv[4] = { cases[i].argv[0], cases[i].argv[1], cases[i].argv[2],
					      NULL };

		assert_int_equal(parse(argv, &values, &operands, &err), -ERR_INVALID);
		assert_non_null(strstr(err.message, cases[i].says));
	}
}

/* But for lists, and flags, which say the same twice. */
static void an_option_given_twice_is_refused(void **state)
{
	static const char *const twice[] = { "--output=x", "-o", "y", NULL };
	static const char *const flags[] = { "-a", "--all", NULL };
	struct option_operands operands;
	struct values values;
	struct err err;

	(void)state;
	assert_int_equal(parse(twice, &values, &operands, &err), -ERR_INVALID);
	assert_string_equal(err.message, "--output is given twice");
	assert_int_equal(parse(flags, &values, &operands, &err), 0);
	assert_true(values.all);
}

static void a_verb_without_operands_refuses_them(void **state)
{
	struct option_verb bare = verb;
	char *argv[] = { (char *)"-a", (char *)"extra" };
	struct option_operands operands;
	struct values values;
	struct err err;
	bool help;

	(void)state;
	bare.operands = "";
	assert_int_equal(options_parse(&bare, 1, argv, &values, &operands, &help, &err), 0);
	assert_int_equal(options_parse(&bare, 2, argv, &values, &operands, &help, &err),
			 -ERR_INVALID);
	assert_string_equal(err.message, "unexpected operand \"extra\"");
}

static void parsing_stops_at_the_first_operand_when_the_verb_says_so(void **state)
{
	struct option_verb stops = verb;
	char words[][3] = { "-a", "--", "ls", "-l" };
	char *argv[] = { words[0], words[1], words[2], words[3] };
	struct option_operands operands;
	struct values values = { 0 };
	bool help;

	(void)state;
	stops.stop_at_operand = true;
	assert_int_equal(options_parse(&stops, 4, argv, &values, &operands, &help, NULL), 0);
	assert_true(values.all);
	assert_int_equal(operands.count, 2);
	assert_string_equal(operands.items[1], "-l");
}

static void help_lists_every_option(void **state)
{
	struct strbuf text = { 0 };

	(void)state;
	options_help(&verb, &text);
	for (size_t i = 0; i < verb.options_count; i++)
		assert_non_null(strstr(strbuf_text(&text), table[i].spec->name));
	assert_non_null(strstr(strbuf_text(&text), "where to (default: out.txt)\n"));
	assert_non_null(strstr(strbuf_text(&text), "how often (default: by the host)\n"));
	assert_non_null(strstr(strbuf_text(&text), "all of it\n"));
	strbuf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_forms_of_options_are_read),
		cmocka_unit_test(presets_hold_until_an_option_is_given),
		cmocka_unit_test(errors_name_the_option_and_help_on),
		cmocka_unit_test(an_option_given_twice_is_refused),
		cmocka_unit_test(a_verb_without_operands_refuses_them),
		cmocka_unit_test(parsing_stops_at_the_first_operand_when_the_verb_says_so),
		cmocka_unit_test(help_lists_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
