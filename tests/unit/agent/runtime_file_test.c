/* SPDX-License-Identifier: Apache-2.0 */
/* Files of runtimes are known by their symbols, and read: those that the fuzzer begins with. */
#include "agent/runtime/runtime_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct runtime_file *read_file(const char *name)
{
	struct runtime_file *file;
	struct elf_info info;
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/fuzz/corpus/runtime_file/%s", getenv("FIRN_TESTS"), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_read_info(fd, name, &info, NULL), 0);
	file = runtime_file_read(fd, &info);
	assert_non_null(file);
	close(fd);
	return file;
}

static void files_of_all_runtimes_are_read(void **state)
{
	static const struct {
		const char *name;
		enum runtime_kind kind;
		const char *version, *source;
	} cases[] = {
		{ "python_313", RUNTIME_PYTHON, "3.13.1", "debug_offsets" },
		{ "python_313t", RUNTIME_PYTHON, "3.13.1", "debug_offsets" },
		{ "python_314", RUNTIME_PYTHON, "3.14.10", "debug_offsets" },
		{ "python_315", RUNTIME_PYTHON, "3.15.2", "debug_offsets" },
		{ "python_36", RUNTIME_PYTHON, "3.6", "table" },
		{ "v8_11", RUNTIME_V8, "11.3.244", "v8dbg" },
		{ "ruby_31", RUNTIME_RUBY, "3.1.2", "table" },
		{ "dotnet_8", RUNTIME_DOTNET, "8.0.30", "table" },
		{ "mono_6", RUNTIME_DOTNET, "mono-6.8.0", "code" },
		{ "php_82", RUNTIME_PHP, "8.2.36", "code" },
		{ "beam_25", RUNTIME_BEAM, "25", "table" },
		{ "luajit_21", RUNTIME_LUA, "2.1.0-beta3", "code" },
		{ "lua_54", RUNTIME_PUC, "5.4.4", "table" },
		{ "bun_14", RUNTIME_JSC, "1.4.5", "table" },
		{ "perl_536", RUNTIME_PERL, "5.36.0", "code" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct runtime_file *file = read_file(cases[i].name);

		assert_int_equal(file->layout.kind, cases[i].kind);
		assert_string_equal(file->version, cases[i].version);
		assert_null(file->problem);
		assert_string_equal(file->source, cases[i].source);
		free(file);
	}
}

/* A thread that has given up the interpreter's lock has its state elsewhere. */
static void where_pythons_threads_keep_a_detached_state_is_found(void **state)
{
	static const struct {
		const char *name;
		enum script_state_form form, detached_form;
		uint64_t at, detached_at; /* as readelf says them */
	} cases[] = {
		{ "python_313t", SCRIPT_STATE_SLOT, SCRIPT_STATE_KEY, 0x1550, 0x1770 },
		{ "python_314", SCRIPT_STATE_STATIC, SCRIPT_STATE_KEY, (uint64_t)-8, 0x401810 },
		{ "python_315", SCRIPT_STATE_SLOT, SCRIPT_STATE_SLOT, 0x1568, 0x1570 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct runtime_file *file = read_file(cases[i].name);

		assert_int_equal(file->script.state_form, cases[i].form);
		assert_int_equal(file->script.state_at, cases[i].at);
		assert_int_equal(file->script.key_form, cases[i].detached_form);
		assert_int_equal(file->script.key_at, cases[i].detached_at);
		free(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_pythons_threads_keep_a_detached_state_is_found),
		cmocka_unit_test(files_of_all_runtimes_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
