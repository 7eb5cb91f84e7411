/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's function table in a program built here: as built, without section headers, and with a table
 * that does not tell the address of the text, as Go 1.26 writes it.
 */
#include "agent/unwind/go_table.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define IMAGE_BYTES_MAX ((size_t)8 << 20)
#define TABLE_BYTES_MAX ((uint64_t)64 << 20)

struct program {
	uint8_t *bytes;
	size_t size;
};

static void build(const char *how, struct program *ret)
{
	char folder[] = "/tmp/go-table-test-XXXXXX", path[64], command[512];
	FILE *file;

	if (system("go version >/dev/null 2>&1")) {
		printf("# skip: needs go\n");
		skip();
	}
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/program.go", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("package main\nfunc main() { println(\"here\") }\n", file);
	fclose(file);
	snprintf(command, sizeof(command),
		 "cd %s && env CGO_ENABLED=0 GO111MODULE=off GOFLAGS=-p=2 "
		 "GOCACHE=${GOCACHE:-%s/cache} "
		 "go build %s -o program program.go >&2",
		 folder, folder, how);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/program", folder);
	file = fopen(path, "r");
	assert_non_null(file);
	ret->bytes = malloc(IMAGE_BYTES_MAX);
	assert_non_null(ret->bytes);
	ret->size = fread(ret->bytes, 1, IMAGE_BYTES_MAX, file);
	assert_true(ret->size < IMAGE_BYTES_MAX);
	fclose(file);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
}

static struct gopclntab *open_table(const struct program *program, struct elf_layout *layout)
{
	const struct table_input input = {
		.fd = -1,
		.image = slice_from(program->bytes, program->size),
		.name = "program",
	};
	struct gopclntab *table = NULL;
	struct err err = { 0 };

	if (elf_layout_read(-1, input.image, "program", layout, &err) ||
	    go_table_open(&input, layout, TABLE_BYTES_MAX, &table, &err))
		fail_msg("%s", err.message);
	return table;
}

static void assert_same(const struct program *program, const struct gopclntab *expected)
{
	struct elf_layout layout;
	struct gopclntab *table = open_table(program, &layout);

	assert_non_null(table);
	assert_true(table->functions.address == expected->functions.address);
	assert_true(table->layout.text == expected->layout.text);
	assert_true(table->layout.functions_count == expected->layout.functions_count);
	free(table);
}

static void check(const char *how)
{
	struct elf_layout layout;
	struct program program;
	struct gopclntab *table;
	Elf64_Ehdr *header;

	build(how, &program);
	table = open_table(&program, &layout);
	assert_non_null(table);
	assert_true(table->layout.functions_count > 1000);
	assert_true(table->layout.text != 0);
	memset(program.bytes + layout.sections[ELF_SECTION_GOPCLNTAB].offset + 24, 0, 8);
	assert_same(&program, table);
	header = (Elf64_Ehdr *)(void *)program.bytes;
	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
	assert_same(&program, table);
	free(table);
	free(program.bytes);
}

static void a_stripped_program_is_read_whatever_it_names(void **state)
{
	(void)state;
	check("-ldflags='-s -w'");
}

static void a_position_independent_program_too(void **state)
{
	(void)state;
	check("-buildmode=pie");
}

static void a_program_that_is_not_of_go_has_no_table(void **state)
{
	struct elf_layout layout;
	struct program program = { .bytes = malloc(IMAGE_BYTES_MAX) };
	FILE *file = fopen("/proc/self/exe", "r");

	(void)state;
	assert_non_null(file);
	assert_non_null(program.bytes);
	program.size = fread(program.bytes, 1, IMAGE_BYTES_MAX, file);
	fclose(file);
	assert_null(open_table(&program, &layout));
	free(program.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stripped_program_is_read_whatever_it_names),
		cmocka_unit_test(a_position_independent_program_too),
		cmocka_unit_test(a_program_that_is_not_of_go_has_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
