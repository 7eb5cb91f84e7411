/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol tables of programs compiled in many ways, beside what llvm-symbolizer says about every
 * address; and files that are damaged.
 */
#include "server/resolve/read/symbol_reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "made_table.h"
#include "workshop.h"

static int set_up(void **state)
{
	struct workshop *workshop = malloc(sizeof(*workshop));

	workshop_open(workshop);
	*state = workshop;
	return 0;
}

static int tear_down(void **state)
{
	workshop_close(*state);
	free(*state);
	return 0;
}

static int build_from(const struct workshop *workshop, const char *name, const char *debug_name,
		      struct made_table *ret, struct err *err)
{
	const char *names[] = { name, debug_name };
	struct symbol_input inputs[2] = { { 0 } };
	char paths[2][256];
	size_t count = debug_name ? 2 : 1;
	int status;

	for (size_t i = 0; i < count; i++) {
		inputs[i].directory = workshop->directory;
		inputs[i].name = workshop_path(workshop, names[i], paths[i]);
		inputs[i].fd = open(inputs[i].name, O_RDONLY | O_CLOEXEC);
		assert_true(inputs[i].fd >= 0);
	}
	status = made_table_read(inputs, count, &symbol_limits_default, ret, err);
	for (size_t i = 0; i < count; i++)
		close(inputs[i].fd);
	return status;
}

static struct made_table must_build(const struct workshop *workshop, const char *name,
				    const char *debug_name)
{
	struct made_table made;
	struct err err = { 0 };

	if (build_from(workshop, name, debug_name, &made, &err))
		fail_msg("%s", err.message);
	return made;
}

/* Name and line per frame, a blank line after each address: what the two sides are compared by. */
static void describe(const struct made_table *made, uint64_t address, struct strbuf *out)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	size_t count = symbol_texts_lookup(made->texts, address, lines);

	for (size_t i = 0; i < count; i++) {
		struct slice name =
			lines[i].linkage_name.len ? lines[i].linkage_name : lines[i].name;

		strbuf_addf(out, "%.*s\n%.*s:%u\n", SLICE_FMT(name), SLICE_FMT(lines[i].file),
			    lines[i].line);
	}
	strbuf_add_byte(out, '\n');
}

/* Compilers' clones: "name.cold", "name.part.0", "name.constprop.0" are "name" in DWARF. */
static void cut_clone(char *name)
{
	char *dot = strchr(name, '.');

	if (dot && dot != name)
		*dot = 0;
}

/* Reads what llvm-symbolizer says about one address in the same form; false at the end. */
static bool read_peer(FILE *peer, struct strbuf *out)
{
	char name[4096], place[4096];

	strbuf_clear(out);
	while (fgets(name, sizeof(name), peer)) {
		char *colon;

		name[strcspn(name, "\n")] = 0;
		if (!*name) {
			strbuf_add_byte(out, '\n');
			return true;
		}
		if (!fgets(place, sizeof(place), peer))
			return false;
		colon = strrchr(place, ':');
		if (colon)
			*colon = 0;
		cut_clone(name);
		strbuf_addf(out, "%s\n%s\n", name, place);
	}
	return false;
}

/* Compares all addresses of the code that came from our source; returns how many there were. */
static size_t compare_with_peer(const struct workshop *workshop, const char *program,
				const struct made_table *made)
{
	const struct symbol_table *table = made->table;
	struct strbuf ours = { 0 }, theirs = { 0 };
	uint64_t low = 0, high = 0;
	size_t compared = 0;
	char path[256];
	FILE *file;

	for (size_t i = 0; i < table->info.segments_count; i++) {
		if (!table->info.segments[i].executable)
			continue;
		low = table->info.segments[i].address;
		high = low + table->info.segments[i].file_bytes;
	}
	assert_true(low < high && high - low < 1 << 20);
	file = fopen(workshop_path(workshop, "addresses", path), "w");
	assert_non_null(file);
	for (uint64_t at = low; at < high; at++)
		fprintf(file, "0x%" PRIx64 "\n", at);
	fclose(file);
	assert_true(workshop_run(
		workshop, "llvm-symbolizer-14 --no-demangle --inlines -e %s <addresses >peer",
		program));
	file = fopen(workshop_path(workshop, "peer", path), "r");
	assert_non_null(file);
	for (uint64_t at = low; at < high && read_peer(file, &theirs); at++) {
		if (!strstr(strbuf_text(&theirs), "shapes.cc:") ||
		    !strncmp(strbuf_text(&theirs), "??", 2))
			continue; /* start-up code, padding */
		strbuf_clear(&ours);
		describe(made, at, &ours);
		if (strcmp(strbuf_text(&ours), strbuf_text(&theirs)))
			fail_msg("%s at 0x%" PRIx64 ": ours\n%stheirs\n%s", program, at,
				 strbuf_text(&ours), strbuf_text(&theirs));
		compared++;
	}
	fclose(file);
	strbuf_free(&ours);
	strbuf_free(&theirs);
	return compared;
}

/* Every `step`th address from the start of the code on. */
static struct symbol_asked ask_some(const struct symbol_table *table, uint64_t step)
{
	struct symbol_asked asked = { 0 };
	uint64_t *items = NULL;

	for (size_t i = 0; i < table->info.segments_count; i++) {
		const struct elf_segment *segment = &table->info.segments[i];

		if (!segment->executable)
			continue;
		items = mem_new_array(uint64_t, segment->file_bytes / step + 1);
		for (uint64_t at = 0; at < segment->file_bytes; at += step)
			items[asked.count++] = segment->address + at;
	}
	asked.items = items;
	return asked;
}

/* A table of some addresses says of them what the one of all does. */
static void compare_with_part(const struct workshop *workshop, const struct made_table *whole,
			      uint64_t step)
{
	const struct symbol_asked asked = ask_some(whole->table, step);
	struct symbol_limits limits = symbol_limits_default;
	struct symbol_input input = { .directory = workshop->directory };
	struct strbuf expected = { 0 }, found = { 0 };
	struct made_table part;
	struct err err = { 0 };
	char path[256];

	limits.asked = &asked;
	input.name = workshop_path(workshop, "program", path);
	input.fd = open(input.name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(made_table_read(&input, 1, &limits, &part, &err), 0);
	close(input.fd);
	assert_true(asked.count > 0);
	for (size_t i = 0; i < asked.count; i++) {
		strbuf_clear(&expected);
		strbuf_clear(&found);
		describe(whole, asked.items[i], &expected);
		describe(&part, asked.items[i], &found);
		if (strcmp(strbuf_text(&expected), strbuf_text(&found)))
			fail_msg("one in %" PRIu64 ", 0x%" PRIx64 ": of all\n%sof some\n%s", step,
				 asked.items[i], strbuf_text(&expected), strbuf_text(&found));
	}
	if (asked.count == 1)
		assert_true(symbol_table_stats(part.table).functions <= 1);
	made_table_free(&part);
	free((uint64_t *)asked.items);
	strbuf_free(&expected);
	strbuf_free(&found);
}

static void names_and_lines_are_llvm_symbolizers(void **state)
{
	static const char *const compilers[] = { "g++", "clang++-14" };
	static const char *const flags[] = {
		"-O2 -g",
		"-O0 -g",
		"-O3 -gdwarf-5",
		"-O2 -gdwarf-4",
		"-O2 -gdwarf-3 -gstrict-dwarf",
		"-O2 -g -gz=zlib",
		"-O2 -g -gz=zlib-gnu",
		"-O2 -g -no-pie -fno-pie",
		"-O2 -g -Wl,--build-id=none",
		"-O2 -g -ffunction-sections -Wl,--gc-sections",
		"-O2 -g -fdebug-types-section",
		"-O2 -g -flto",
		"-O2 -g -gdwarf-5 -gsplit-dwarf",
		"-O2 -g -gdwarf-4 -gsplit-dwarf",
		"-O2 -g -gsplit-dwarf -gz=zlib",
	};
	size_t compared = 0;

	if (system("llvm-symbolizer-14 --version >/dev/null 2>&1")) {
		printf("# skip: no llvm-symbolizer-14\n");
		skip();
	}
	for (size_t c = 0; c < sizeof(compilers) / sizeof(*compilers); c++) {
		for (size_t f = 0; f < sizeof(flags) / sizeof(*flags); f++) {
			struct made_table made;
			size_t addresses;

			if (!workshop_run(*state, "%s %s -o program shapes.cc", compilers[c],
					  flags[f]))
				continue; /* the compiler is missing, or does not know the flag */
			made = must_build(*state, "program", NULL);
			assert_int_equal(made.table->origin, SYMBOL_ORIGIN_DWARF);
			addresses = compare_with_peer(*state, "program", &made);
			if (addresses < 100)
				fail_msg("%s %s: only %zu addresses", compilers[c], flags[f],
					 addresses);
			compared += addresses;
			compare_with_part(*state, &made, 13);
			compare_with_part(*state, &made, 1 << 20); /* the first alone */
			made_table_free(&made);
		}
	}
	if (!compared) {
		printf("# skip: no C++ compiler\n");
		skip();
	}
}

static bool is_named(const struct symbol_line *line, const char *name)
{
	return slice_is(line->name, name) || slice_is(line->linkage_name, name);
}

/* The first address of a function by its name, from the table itself. */
static uint64_t find_symbol(const struct made_table *made, const char *name)
{
	const struct elf_info *info = &made->table->info;
	struct symbol_line lines[SYMBOL_CHAIN_MAX];

	for (size_t i = 0; i < info->segments_count; i++) {
		uint64_t low = info->segments[i].address;

		for (uint64_t at = low;
		     info->segments[i].executable && at < low + info->segments[i].memory_bytes;
		     at++) {
			size_t count = symbol_texts_lookup(made->texts, at, lines);

			if (count && is_named(&lines[count - 1], name))
				return at;
		}
	}
	fail_msg("no symbol \"%s\"", name);
	return 0;
}

static void expect_name(const struct made_table *made, uint64_t address, const char *name)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	size_t count = symbol_texts_lookup(made->texts, address, lines);

	assert_true(count > 0);
	if (!is_named(&lines[count - 1], name))
		fail_msg("0x%" PRIx64 " is \"%.*s\", not \"%s\"", address,
			 SLICE_FMT(lines[count - 1].name), name);
}

static bool compile(void **state, const char *arguments)
{
	if (workshop_run(*state, "g++ %s", arguments) ||
	    workshop_run(*state, "clang++-14 %s", arguments))
		return true;
	printf("# skip: no C++ compiler\n");
	return false;
}

static void symbols_alone_give_names(void **state)
{
	struct made_table made;
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	uint64_t at;

	if (!compile(state, "-O1 -o program shapes.cc"))
		skip();
	made = must_build(*state, "program", NULL);
	assert_int_equal(made.table->origin, SYMBOL_ORIGIN_SYMBOLS);
	at = find_symbol(&made, "main");
	expect_name(&made, at, "main");
	expect_name(&made, at + 1, "main");
	assert_int_equal(symbol_texts_lookup(made.texts, at, lines), 1);
	assert_int_equal(lines[0].line, 0);
	assert_int_equal(symbol_texts_lookup(made.texts, 0, lines), 0);
	assert_int_equal(symbol_texts_lookup(made.texts, UINT64_MAX, lines), 0);
	made_table_free(&made);
}

static void dynamic_symbols_are_enough(void **state)
{
	struct made_table made;

	if (!compile(state, "-O1 -shared -fPIC -o library.so shapes.cc && strip library.so"))
		skip();
	made = must_build(*state, "library.so", NULL);
	expect_name(&made, find_symbol(&made, "_ZN6shapes3box6volumeEi") + 2,
		    "_ZN6shapes3box6volumeEi");
	made_table_free(&made);
}

static void debug_file_completes_a_stripped_binary(void **state)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct made_table whole, parts;

	if (!compile(state,
		     "-O2 -g -o program shapes.cc && objcopy --only-keep-debug program p.debug && "
		     "cp program whole && strip program"))
		skip();
	whole = must_build(*state, "whole", NULL);
	parts = must_build(*state, "program", "p.debug");
	assert_int_equal(parts.table->origin, SYMBOL_ORIGIN_DWARF);
	assert_string_equal(parts.table->info.build_id, whole.table->info.build_id);
	for (uint64_t at = find_symbol(&whole, "main"), end = at + 16; at < end; at++) {
		struct strbuf a = { 0 }, b = { 0 };

		assert_true(symbol_texts_lookup(parts.texts, at, lines) > 0);
		describe(&whole, at, &a);
		describe(&parts, at, &b);
		assert_string_equal(strbuf_text(&a), strbuf_text(&b));
		strbuf_free(&a);
		strbuf_free(&b);
	}
	made_table_free(&whole);
	made_table_free(&parts);
}

/* A copy whose own DWARF is of an assembly file alone comes first, and hides nothing. */
static void more_debug_information_wins(void **state)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct made_table made;

	if (!compile(state, "-O2 -c -o bare.o shapes.cc") ||
	    !compile(state, "-O2 -g -c -o whole.o shapes.cc"))
		skip();
	assert_true(workshop_run(*state, "printf '.globl extra\\nextra: nop\\n ret\\n' >extra.s && "
					 "as -g -o extra.o extra.s"));
	if (!compile(state, "-o bare bare.o extra.o") ||
	    !compile(state, "-o whole whole.o extra.o"))
		skip();
	made = must_build(*state, "bare", "whole");
	assert_true(symbol_texts_lookup(made.texts, find_symbol(&made, "main"), lines) > 0);
	assert_true(lines[0].line > 0);
	made_table_free(&made);
}

static void mini_debug_information_gives_names(void **state)
{
	struct made_table made;

	if (!workshop_run(*state, "xz --version"))
		skip();
	if (!compile(state, "-O1 -o program shapes.cc && "
			    "objcopy -S --keep-symbol=_ZL13unlikely_pathi program mini && "
			    "xz mini && strip program && "
			    "objcopy --add-section .gnu_debugdata=mini.xz program && "
			    "cp program cut && objcopy --remove-section .gnu_debugdata cut && "
			    "head -c 100 mini.xz >short.xz && "
			    "objcopy --add-section .gnu_debugdata=short.xz cut"))
		skip();
	made = must_build(*state, "program", NULL);
	expect_name(&made, find_symbol(&made, "_ZL13unlikely_pathi") + 1, "_ZL13unlikely_pathi");
	made_table_free(&made);
	made = must_build(*state, "cut", NULL);
	made_table_free(&made);
}

static void refuses_what_is_no_linked_elf_file(void **state)
{
	struct made_table made;
	struct err err = { 0 };

	assert_int_equal(build_from(*state, "shapes.cc", NULL, &made, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "not an ELF file"));
	if (!compile(state, "-c -o object.o shapes.cc"))
		skip();
	assert_int_equal(build_from(*state, "object.o", NULL, &made, &err), -ERR_UNSUPPORTED);
}

/* Every kind of damage gives a table or an error; a truncated file is one kind. */
static void survives_truncated_and_damaged_files(void **state)
{
	char path[256];
	unsigned seed = 1;
	struct stat st;

	if (!compile(state, "-O2 -g -o program shapes.cc"))
		skip();
	assert_int_equal(stat(workshop_path(*state, "program", path), &st), 0);
	for (int round = 0; round < 200; round++) {
		struct made_table made;
		struct err err;
		int fd;

		assert_true(workshop_run(*state, "cp program damaged"));
		fd = open(workshop_path(*state, "damaged", path), O_WRONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		if (round % 2)
			assert_int_equal(ftruncate(fd, rand_r(&seed) % st.st_size), 0);
		for (int i = 0; i < 50; i++) {
			uint8_t byte = (uint8_t)rand_r(&seed);

			assert_int_equal(
				pwrite(fd, &byte, 1, 64 + rand_r(&seed) % (st.st_size - 64)), 1);
		}
		close(fd);
		if (!build_from(*state, "damaged", NULL, &made, &err))
			made_table_free(&made);
	}
}

struct debug_info_place {
	uint64_t offset;
};

static void find_debug_info(void *context, const struct elf_section_info *section)
{
	struct debug_info_place *place = context;

	if (!strcmp(section->name, ".debug_info"))
		place->offset = section->offset;
}

/* A compressed section that says that 2^63 bytes are in it, or more than there are, or fewer. */
static void compressed_sections_that_lie_are_left_out(void **state)
{
	static const uint64_t lies[] = { 1ull << 63, 1ull << 32, 100000, 100, 0 };
	struct debug_info_place place = { 0 };
	struct made_table made;
	struct err err;
	char path[256];
	int fd;

	if (!compile(state, "-O2 -g -gz=zlib -o program shapes.cc"))
		skip();
	fd = open(workshop_path(*state, "program", path), O_RDWR | O_CLOEXEC);
	assert_int_equal(elf_each_section(fd, path, find_debug_info, &place, &err), 0);
	assert_true(place.offset > 0);
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		assert_int_equal(pwrite(fd, &lies[i], 8, (off_t)place.offset + 8), 8);
		made = must_build(*state, "program", NULL);
		assert_int_equal(made.table->origin, SYMBOL_ORIGIN_SYMBOLS);
		assert_non_null(strstr(made.table->note, "debug"));
		expect_name(&made, find_symbol(&made, "main"), "main");
		made_table_free(&made);
	}
	close(fd);
}

static void compressed_sections_are_unpacked(void **state)
{
	static const char *const ways[] = { "zlib", "zlib-gnu", "zstd" };
	size_t tried = 0;

	if (!compile(state, "-O2 -g -o program shapes.cc"))
		skip();
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct made_table made;

		if (!workshop_run(*state,
				  "objcopy --compress-debug-sections=%s program packed "
				  "2>/dev/null || llvm-objcopy --compress-debug-sections=%s "
				  "program packed 2>/dev/null",
				  ways[i], ways[i]))
			continue;
		tried++;
		made = must_build(*state, "packed", NULL);
		assert_string_equal(made.table->note, "");
		assert_int_equal(made.table->origin, SYMBOL_ORIGIN_DWARF);
		made_table_free(&made);
	}
	assert_true(tried >= 2);
}

static void limits_leave_the_symbols(void **state)
{
	struct symbol_limits limits = symbol_limits_default;
	struct made_table made;
	struct symbol_input input = { 0 };
	struct err err = { 0 };
	char path[256];

	if (!compile(state, "-O2 -g -o program shapes.cc"))
		skip();
	input.name = workshop_path(*state, "program", path);
	input.fd = open(input.name, O_RDONLY | O_CLOEXEC);
	limits.entries = 10;
	assert_int_equal(made_table_read(&input, 1, &limits, &made, &err), 0);
	assert_int_equal(made.table->origin, SYMBOL_ORIGIN_SYMBOLS);
	expect_name(&made, find_symbol(&made, "main"), "main");
	made_table_free(&made);
	limits.table_bytes = 1000;
	assert_int_equal(made_table_read(&input, 1, &limits, &made, &err), -ERR_LIMIT);
	limits.file_bytes = 1000;
	assert_int_equal(made_table_read(&input, 1, &limits, &made, &err), -ERR_LIMIT);
	close(input.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_and_lines_are_llvm_symbolizers, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(symbols_alone_give_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dynamic_symbols_are_enough, set_up, tear_down),
		cmocka_unit_test_setup_teardown(debug_file_completes_a_stripped_binary, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(more_debug_information_wins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(mini_debug_information_gives_names, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(refuses_what_is_no_linked_elf_file, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(survives_truncated_and_damaged_files, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(limits_leave_the_symbols, set_up, tear_down),
		cmocka_unit_test_setup_teardown(compressed_sections_that_lie_are_left_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(compressed_sections_are_unpacked, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
