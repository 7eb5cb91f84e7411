/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's function table. Of programs built here, every row is compared with the .debug_frame that
 * Go's linker writes, as readelf tells it; where we differ is in a list by hand, with reasons in
 * gopclntab_rule. Tables of all versions, damaged and hidden ones, are made by hand.
 */
#include "codec/elf/gopclntab_rule.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS_MAX 20000u
#define FUNCTIONS_MAX 4000u

static const char program[] = "package main\n"
			      "import \"os\"\n"
			      "//go:noinline\n"
			      "func deep(n int, a [40]int) int {\n"
			      "	if n == 0 { return a[3] }\n"
			      "	a[n%40] = n\n"
			      "	return deep(n-1, a) + a[7]\n"
			      "}\n"
			      "func main() { var a [40]int; os.Exit(deep(len(os.Args), a) & 1) }\n";

struct row {
	uint64_t address;
	struct unwind_rule rule;
};

struct listed {
	uint64_t start, end, cookie;
	size_t first_row, rows_count;
};

static struct {
	struct row rows[ROWS_MAX];
	struct listed functions[FUNCTIONS_MAX];
	size_t rows_count, functions_count;
} found;

static struct gopclntab table;
static char folder[64]; /* of the programs built */

static int add_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
	(void)context;
	assert_true(found.rows_count < ROWS_MAX);
	found.rows[found.rows_count++] = (struct row){ address, *rule };
	return 0;
}

static int add_function(void *context, uint64_t start, uint64_t end, uint64_t cookie)
{
	(void)context;
	assert_true(found.functions_count < FUNCTIONS_MAX);
	assert_true(start < end);
	found.functions[found.functions_count++] = (struct listed){ start, end, cookie, 0, 0 };
	return 0;
}

/* All of `table` into `found`; rows have to rise and to stay in their function. */
static void read_all(void)
{
	const struct unwind_function_sink functions = { .function = add_function };
	const struct unwind_row_sink rows = { .row = add_row };
	struct err err;

	found.rows_count = found.functions_count = 0;
	assert_int_equal(gopclntab_functions(&table, &functions, &err), 0);
	for (size_t i = 0; i < found.functions_count; i++) {
		struct listed *function = &found.functions[i];

		function->first_row = found.rows_count;
		assert_int_equal(gopclntab_rows(&table, function->cookie, &rows, &err), 0);
		function->rows_count = found.rows_count - function->first_row;
		assert_true(function->rows_count > 0);
		assert_true(found.rows[function->first_row].address == function->start);
		for (size_t row = function->first_row; row < found.rows_count; row++) {
			assert_true(found.rows[row].address < function->end);
			assert_true(row == function->first_row ||
				    found.rows[row - 1].address < found.rows[row].address);
		}
	}
}

static int compare_function(const void *key, const void *element)
{
	uint64_t address = *(const uint64_t *)key;
	const struct listed *function = element;

	return address < function->start ? -1 : address >= function->end;
}

static const struct listed *function_at(uint64_t address)
{
	return bsearch(&address, found.functions, found.functions_count, sizeof(found.functions[0]),
		       compare_function);
}

static const struct unwind_rule *rule_at(uint64_t address)
{
	const struct listed *function = function_at(address);
	const struct unwind_rule *rule = NULL;

	for (size_t i = 0; function && i < function->rows_count; i++) {
		const struct row *row = &found.rows[function->first_row + i];

		if (row->address <= address)
			rule = &row->rule;
	}
	return rule;
}

/* A Go program in a folder of its own; skips the test where Go is not there. */
static const char *go_build(const char *how)
{
	static char path[128];
	char command[1024];
	FILE *source;

	if (system("go version >/dev/null 2>&1") || system("readelf -v >/dev/null 2>&1")) {
		printf("# skip: needs go and readelf\n");
		skip();
	}
	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/gopclntab-test-XXXXXX");
		assert_non_null(mkdtemp(folder));
	}
	snprintf(path, sizeof(path), "%s/program.go", folder);
	source = fopen(path, "w");
	assert_non_null(source);
	fputs(program, source);
	fclose(source);
	snprintf(command, sizeof(command),
		 "cd %s && env CGO_ENABLED=0 GO111MODULE=off GOFLAGS=-p=2 "
		 "GOCACHE=${GOCACHE:-%s/cache} %s "
		 "-o program program.go >&2",
		 folder, folder, how);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/program", folder);
	return path;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return folder[0] && system(command) ? -1 : 0;
}

static uint8_t *read_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint8_t *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

/* The section's bytes in the file; false when it has none of that name. */
static bool find_section(uint8_t *image, const char *name, struct section_reader *ret)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(void *)image;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(void *)(image + header->e_shoff);

	for (unsigned i = 0; i < header->e_shnum; i++) {
		const char *text = (const char *)image + sections[header->e_shstrndx].sh_offset;

		if (strcmp(text + sections[i].sh_name, name) != 0)
			continue;
		section_reader_open_memory(
			ret, slice_from(image + sections[i].sh_offset, sections[i].sh_size),
			sections[i].sh_addr, name);
		return true;
	}
	return false;
}

static uint8_t *open_program(const char *path, uint16_t machine)
{
	static struct section_reader section;
	size_t size;
	uint8_t *image = read_file(path, &size);
	struct err err = { 0 };

	assert_true(find_section(image, ".gopclntab", &section) ||
		    find_section(image, ".data.rel.ro.gopclntab", &section));
	if (gopclntab_open(&table, &section, machine, &err))
		fail_msg("%s", err.message);
	return image;
}

static uint64_t address_of(const char *name)
{
	char text[GOPCLNTAB_NAME_BYTES_MAX];
	struct err err;
	uint64_t start;

	for (size_t i = 0; i < found.functions_count; i++) {
		uint64_t last = found.functions[i].end - 1;

		assert_int_equal(gopclntab_name(&table, last, text, &start, &err), 0);
		if (!strcmp(text, name))
			return start;
	}
	return 0;
}

/* Where what we say of the stack is not what .debug_frame says. */
static bool differs(uint64_t address, unsigned cfa, const char *ra, uint16_t machine)
{
	const struct unwind_rule *rule = rule_at(address);
	int ra_offset = ra[0] == 'c' && ra[1] ? atoi(ra + 1) : 0;

	assert_non_null(rule);
	if (rule->cfa != UNWIND_CFA_REGISTER || rule->cfa_offset != (int)cfa ||
	    rule->cfa_register != (machine == EM_X86_64 ? UNWIND_X86_SP : UNWIND_ARM64_SP))
		return true;
	if (ra_offset)
		return rule->ra != UNWIND_VALUE_AT_CFA || rule->ra_offset != ra_offset;
	return rule->ra != UNWIND_VALUE_SAME || ra[0] == 'u';
}

static bool is_in(const char *name, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(name, *list))
			return true;
	}
	return false;
}

/* Reads readelf's rows; each function that differs has to be in the list, and the other way. */
static void compare_with_debug_frame(const char *path, uint16_t machine,
				     const char *const *expected)
{
	char command[256], line[256], name[GOPCLNTAB_NAME_BYTES_MAX], ra[16], last_ra[16] = "";
	unsigned rows = 0, differing = 0, expected_count = 0, cfa, last_cfa = 0, checked = 0;
	uint64_t address, last_address = 0, last_differing = 0, start;
	struct err err;
	FILE *tool;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames-interp %s", path);
	tool = popen(command, "r");
	assert_non_null(tool);
	while (fgets(line, sizeof(line), tool)) {
		bool is_differing;

		if (strstr(line, "FDE"))
			last_cfa = 0; /* no row before */
		if (sscanf(line, "%" SCNx64 " %*[rsp]+%u %15s", &address, &cfa, ra) != 3 ||
		    !address)
			continue;
		rows++;
		/* Our rows between two of theirs have to agree with the earlier. */
		is_differing = differs(address, cfa, ra, machine);
		for (uint64_t at = last_address; last_cfa && at < address && !is_differing; at++) {
			is_differing = differs(at, last_cfa, last_ra, machine);
			checked++;
		}
		last_address = address;
		last_cfa = cfa;
		memcpy(last_ra, ra, sizeof(ra));
		assert_int_equal(gopclntab_name(&table, address, name, &start, &err), 0);
		if (!is_differing || start == last_differing)
			continue;
		last_differing = start;
		differing++;
		if (!is_in(name, expected))
			fail_msg("%s differs at %#" PRIx64, name, address);
	}
	assert_int_equal(pclose(tool), 0);
	assert_true(rows > 4000 && checked > 100000);
	while (expected[expected_count])
		expected_count++;
	assert_int_equal(differing, expected_count);
}

static void assert_rule(const char *name, uint64_t offset, struct unwind_rule expected)
{
	uint64_t start = address_of(name);
	const struct unwind_rule *rule;

	if (!start)
		fail_msg("no function %s", name);
	rule = rule_at(start + offset);
	assert_non_null(rule);
	if (memcmp(rule, &expected, sizeof(expected)) != 0)
		fail_msg("%s+%" PRIu64 ": cfa %d of r%d%+d, ra %d %+d, fp %d %+d, flags %u", name,
			 offset, rule->cfa, rule->cfa_register, rule->cfa_offset, rule->ra,
			 rule->ra_offset, rule->fp, rule->fp_offset, rule->flags);
}

static const struct unwind_rule outermost = { .cfa = UNWIND_CFA_END };
static const struct unwind_rule x86_entry = { .cfa = UNWIND_CFA_REGISTER,
					      .cfa_register = UNWIND_X86_SP,
					      .cfa_offset = 8,
					      .ra = UNWIND_VALUE_AT_CFA,
					      .ra_offset = -8 };
static const struct unwind_rule x86_by_frame_pointer = { .cfa = UNWIND_CFA_REGISTER,
							 .cfa_register = UNWIND_X86_FP,
							 .cfa_offset = 16,
							 .ra = UNWIND_VALUE_AT_CFA,
							 .ra_offset = -8,
							 .fp = UNWIND_VALUE_AT_CFA,
							 .fp_offset = -16 };
static const struct unwind_rule x86_to_goroutine = { .cfa = UNWIND_CFA_GOROUTINE,
						     .cfa_register = UNWIND_X86_FP,
						     .cfa_offset = 16,
						     .ra = UNWIND_VALUE_AT_CFA,
						     .ra_offset = -8,
						     .fp = UNWIND_VALUE_AT_CFA,
						     .fp_offset = -16 };
static const struct unwind_rule x86_signal = { .cfa = UNWIND_CFA_DEREF,
					       .cfa_register = UNWIND_X86_SP,
					       .cfa_offset = 160,
					       .ra = UNWIND_VALUE_AT_REGISTER,
					       .ra_register = UNWIND_X86_SP,
					       .ra_offset = 168,
					       .fp = UNWIND_VALUE_AT_REGISTER,
					       .fp_register = UNWIND_X86_SP,
					       .fp_offset = 120,
					       .flags = UNWIND_RULE_SIGNAL };
static const struct unwind_rule arm64_by_frame_pointer = { .cfa = UNWIND_CFA_DEREF,
							   .cfa_register = UNWIND_ARM64_FP,
							   .cfa_extra = 1,
							   .ra = UNWIND_VALUE_AT_REGISTER,
							   .ra_register = UNWIND_ARM64_FP,
							   .ra_offset = 8,
							   .fp = UNWIND_VALUE_AT_REGISTER,
							   .fp_register = UNWIND_ARM64_FP };

static struct unwind_rule framed(int cfa, bool is_saved, uint32_t flags)
{
	struct unwind_rule rule = x86_entry;

	rule.cfa_offset = cfa;
	rule.flags = flags;
	if (is_saved) {
		rule.fp = UNWIND_VALUE_AT_CFA;
		rule.fp_offset = -16;
	}
	return rule;
}

static void rows_of_a_program_agree_with_its_debug_frame(void **state)
{
	static const char *const expected[] = {
		"_rt0_amd64",
		"_rt0_amd64_linux",
		"gogo",
		"runtime.rt0_go",
		"runtime.mstart",
		"runtime.mcall",
		"runtime.goexit",
		"runtime.systemstack",
		"runtime.morestack",
		"runtime.asmcgocall",
		"runtime.nanotime1",
		"runtime.callCgoSigaction",
		"runtime.sigfwd",
		"runtime.sigreturn",
		"runtime.callCgoMmap",
		"runtime.callCgoMunmap",
		"runtime.clone",
		"time.now",
		NULL,
	};
	const char *path = go_build("go build");
	uint8_t *image = open_program(path, EM_X86_64);

	(void)state;
	read_all();
	assert_int_equal(table.damaged_count, 0);
	compare_with_debug_frame(path, EM_X86_64, expected);
	free(image);
}

/* Prologues of Go 1.19: `sub $n, %rsp`, then the store at its top, then the new frame pointer. */
static void special_functions_have_rules_of_their_own(void **state)
{
	uint8_t *image = open_program(go_build("go build -ldflags='-s -w'"), EM_X86_64);

	(void)state;
	read_all();
	assert_rule("runtime.goexit", 1, outermost);
	assert_rule("runtime.mstart", 5, outermost);
	assert_rule("_rt0_amd64_linux", 0, outermost);
	assert_rule("runtime.mcall", 0, x86_entry);
	assert_rule("runtime.mcall", 0x42, outermost); /* the call on the other stack */
	assert_rule("runtime.systemstack", 0x40, x86_by_frame_pointer);
	assert_rule("runtime.asmcgocall", 0x40, x86_by_frame_pointer);
	assert_rule("runtime.morestack", 0x40, x86_to_goroutine);
	assert_rule("runtime.nanotime1", 0, x86_entry);
	assert_rule("runtime.nanotime1", 4, framed(32, false, 0));
	assert_rule("runtime.nanotime1", 9, x86_by_frame_pointer);
	assert_rule("runtime.sigreturn", 0, x86_signal);
	assert_rule("runtime.sigreturn", (uint64_t)-1, x86_signal);
	assert_rule("runtime.sigtramp", 0, x86_entry);
	assert_rule("runtime.sigtramp", 4, framed(56, false, 0));
	assert_rule("runtime.sigtramp", 9, framed(56, true, 0));
	assert_rule("runtime.asyncPreempt", 0, framed(8, false, UNWIND_RULE_SIGNAL));
	assert_rule("runtime.asyncPreempt", 5, framed(24, true, UNWIND_RULE_SIGNAL));
	free(image);
}

static void rows_of_an_arm64_program_agree_with_its_debug_frame(void **state)
{
	static const char *const expected[] = { "_rt0_arm64_linux",
						"gogo",
						"runtime.rt0_go",
						"runtime.mstart",
						"runtime.mcall",
						"runtime.goexit",
						"runtime.systemstack",
						"runtime.morestack",
						"runtime.morestack_noctxt",
						"runtime.asmcgocall",
						"runtime.nanotime1",
						"runtime.walltime",
						"runtime.sigtramp",
						"runtime.sigpanic",
						"runtime.asyncPreempt",
						"runtime.debugCallV2",
						NULL };
	const char *path = go_build("GOARCH=arm64 go build");
	uint8_t *image = open_program(path, EM_AARCH64);
	struct unwind_rule preempted = { .cfa = UNWIND_CFA_REGISTER,
					 .cfa_register = UNWIND_ARM64_SP,
					 .cfa_offset = 496 + 16,
					 .ra = UNWIND_VALUE_AT_CFA,
					 .ra_offset = -496 - 16,
					 .fp = UNWIND_VALUE_AT_CFA,
					 .fp_offset = -496 - 16 - 8,
					 .flags = UNWIND_RULE_SIGNAL };

	(void)state;
	read_all();
	assert_int_equal(table.damaged_count, 0);
	compare_with_debug_frame(path, EM_AARCH64, expected);
	assert_rule("runtime.systemstack", 0x40, arm64_by_frame_pointer);
	assert_rule("runtime.goexit", 4, outermost);
	assert_rule("runtime.asyncPreempt", 0x40, preempted);
	free(image);
}

static void a_position_independent_program_is_read_without_section_names(void **state)
{
	static struct section_reader whole, data, found_at;
	const char *path = go_build("go build -buildmode=pie");
	size_t size;
	uint8_t *image = read_file(path, &size);
	uint64_t offset, text, start;
	char name[GOPCLNTAB_NAME_BYTES_MAX];
	struct err err;

	(void)state;
	section_reader_open_memory(&whole, slice_from(image, size), 0, "program");
	assert_int_equal(gopclntab_find(&whole, EM_X86_64, &offset, &err), 0);
	assert_true(find_section(image, ".data.rel.ro.gopclntab", &data));
	assert_ptr_equal(image + offset, data.memory);
	section_reader_open_part(&found_at, &whole, offset, UINT64_MAX);
	found_at.address = data.address;
	assert_int_equal(gopclntab_open(&table, &found_at, EM_X86_64, &err), 0);
	text = table.layout.text;
	assert_true(text != 0);
	assert_true(find_section(image, ".noptrdata", &data));
	assert_int_equal(gopclntab_find_text(&table, &data, NULL, &start, &err), 0);
	assert_true(start == text);
	read_all();
	start = address_of("main.deep");
	assert_true(start != 0);
	assert_int_equal(gopclntab_name(&table, start + 5, name, &start, &err), 0);
	assert_string_equal(name, "main.deep");
	free(image);
}

/* A table by hand: three functions, the second with a frame, the third `runtime.goexit`. */

#define TEXT 0x401000u
#define HAND_BYTES 1024u
#define NAMES_AT 128u
#define VALUES_AT 192u
#define FUNCTIONS_AT 256u
#define FIRST_RECORD 96u /* from FUNCTIONS_AT */
#define RECORD_STEP 64u

static void put(uint8_t *p, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> (8 * i));
}

static void put_header(uint8_t *p, enum gopclntab_version version)
{
	static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };
	uint8_t *words = p + (version >= GOPCLNTAB_GO_1_18 ? 32 : 24);

	put(p, magics[version], 4);
	p[6] = 1;
	p[7] = 8;
	put(p + 8, 3, 8);
	if (version == GOPCLNTAB_GO_1_2)
		return;
	if (version >= GOPCLNTAB_GO_1_18)
		put(p + 24, TEXT, 8);
	put(words, NAMES_AT, 8);
	put(words + 24, VALUES_AT, 8);
	put(words + 32, FUNCTIONS_AT, 8);
}

/* Offsets count from the table's start in Go 1.2, and from parts of it later. */
static void put_functions(uint8_t *p, enum gopclntab_version version)
{
	static const unsigned names_at[] = { 0, 10, 20 }, values_at[] = { 1, 1, 16 };
	static const uint64_t addresses[] = { 0, 0x40, 0x80, 0xc0 };
	bool is_relative = version >= GOPCLNTAB_GO_1_18, is_first = version == GOPCLNTAB_GO_1_2;
	unsigned bytes = is_relative ? 4 : 8;
	uint8_t *entry = p + (is_first ? 16 : FUNCTIONS_AT);

	for (unsigned i = 0; i <= 3; i++, entry += 2 * (size_t)bytes) {
		uint64_t address = addresses[i] + (is_relative ? 0 : TEXT);
		unsigned record = FIRST_RECORD + i * RECORD_STEP;
		uint8_t *at = p + FUNCTIONS_AT + record;

		put(entry, address, bytes);
		if (i == 3)
			break;
		put(entry + bytes, record + (is_first ? FUNCTIONS_AT : 0), bytes);
		put(at, address, bytes);
		put(at + bytes, names_at[i] + (is_first ? NAMES_AT : 0), 4);
		put(at + bytes + 12, values_at[i] + (is_first ? VALUES_AT : 0), 4);
	}
}

static uint8_t *table_by_hand(enum gopclntab_version version)
{
	/* -1 -> 0 for 4 bytes, +32 for 40, -32 for 20, end; then 0 for 64, end. */
	static const uint8_t values[] = { 2, 4, 64, 40, 63, 20, 0 };
	uint8_t *p = calloc(1, HAND_BYTES);

	assert_non_null(p);
	put_header(p, version);
	put_functions(p, version);
	memcpy(p + NAMES_AT, "main.one\0\0main.two\0\0runtime.goexit", 35);
	memcpy(p + VALUES_AT + 1, values, sizeof(values));
	memcpy(p + VALUES_AT + 16, "\x02\x40\x00", 3);
	return p;
}

static void open_by_hand(const uint8_t *bytes)
{
	static struct section_reader section;
	struct err err = { 0 };

	section_reader_open_memory(&section, slice_from(bytes, HAND_BYTES), 0x500000, "by hand");
	if (gopclntab_open(&table, &section, EM_X86_64, &err))
		fail_msg("%s", err.message);
}

static void every_version_is_read(void **state)
{
	(void)state;
	for (int version = GOPCLNTAB_GO_1_2; version <= GOPCLNTAB_GO_1_20; version++) {
		uint8_t *bytes = table_by_hand((enum gopclntab_version)version);
		char name[GOPCLNTAB_NAME_BYTES_MAX];
		struct unwind_rule rule;
		uint64_t start;
		struct err err;

		open_by_hand(bytes);
		read_all();
		assert_int_equal(table.damaged_count, 0);
		assert_int_equal(found.functions_count, 3);
		assert_memory_equal(rule_at(TEXT), &x86_entry, sizeof(rule));
		rule = framed(40, false, 0);
		assert_memory_equal(rule_at(TEXT + 0x44), &rule, sizeof(rule));
		rule = framed(40, true, 0);
		assert_memory_equal(rule_at(TEXT + 0x45), &rule, sizeof(rule));
		assert_memory_equal(rule_at(TEXT + 0x40 + 43), &rule, sizeof(rule));
		assert_memory_equal(rule_at(TEXT + 0x40 + 44), &x86_entry, sizeof(rule));
		assert_memory_equal(rule_at(TEXT + 0x80), &outermost, sizeof(rule));
		assert_int_equal(gopclntab_name(&table, TEXT + 0x7f, name, &start, &err), 0);
		assert_string_equal(name, "main.two");
		assert_true(start == TEXT + 0x40);
		assert_int_equal(gopclntab_name(&table, TEXT + 0xc0, name, &start, &err),
				 -ERR_NOT_FOUND);
		assert_int_equal(gopclntab_name(&table, TEXT - 1, name, &start, &err),
				 -ERR_NOT_FOUND);
		free(bytes);
	}
}

static void flags_tell_what_names_do_not(void **state)
{
	struct gopclntab_layout layout = { .version = GOPCLNTAB_GO_1_20, .machine = EM_X86_64 };

	(void)state;
	assert_int_equal(gopclntab_kind_of(&layout, "main.mine", 0), GOPCLNTAB_ORDINARY);
	assert_int_equal(gopclntab_kind_of(&layout, "main.mine", 1), GOPCLNTAB_OUTERMOST);
	assert_int_equal(gopclntab_kind_of(&layout, "main.mine", 2), GOPCLNTAB_SWITCHES);
	assert_int_equal(gopclntab_kind_of(&layout, "main.mine", 4), GOPCLNTAB_ORDINARY);
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.sigtramp", 1), GOPCLNTAB_ORDINARY);
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.goexit.abi0", 0), GOPCLNTAB_OUTERMOST);
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.goexit0", 0), GOPCLNTAB_ORDINARY);
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.goexit1", 0), GOPCLNTAB_ORDINARY);
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.sigreturn__sigaction", 0),
			 GOPCLNTAB_SIGNAL_RETURN);
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.morestack.abi0", 2), GOPCLNTAB_GROWS);
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.morestack_noctxt", 0),
			 GOPCLNTAB_ORDINARY);
	assert_int_equal(gopclntab_rule(&layout, GOPCLNTAB_GROWS, 0, false, false).cfa,
			 UNWIND_CFA_GOROUTINE);
	layout.version = GOPCLNTAB_GO_1_16;
	assert_int_equal(gopclntab_kind_of(&layout, "runtime.systemstack", 0), GOPCLNTAB_SWITCHES);
}

static void a_damaged_function_is_left_out_and_counted(void **state)
{
	uint8_t *bytes = table_by_hand(GOPCLNTAB_GO_1_18);
	const struct unwind_row_sink rows = { .row = add_row };
	struct err err;

	(void)state;
	put(bytes + FUNCTIONS_AT + 12, HAND_BYTES, 4); /* the second one's record */
	open_by_hand(bytes);
	read_all();
	assert_int_equal(table.damaged_count, 1);
	assert_int_equal(found.functions_count, 2);
	assert_int_equal(gopclntab_rows(&table, 1, &rows, &err), -ERR_INVALID);
	assert_int_equal(gopclntab_rows(&table, 3, &rows, &err), -ERR_INVALID);
	memset(bytes + VALUES_AT + 16, 0xff, HAND_BYTES - VALUES_AT - 16);
	put_functions(bytes, GOPCLNTAB_GO_1_18);
	assert_int_equal(gopclntab_rows(&table, 2, &rows, &err), -ERR_INVALID);
	free(bytes);
}

static void what_is_no_table_is_refused(void **state)
{
	static struct section_reader section;
	uint8_t *bytes = table_by_hand(GOPCLNTAB_GO_1_18);
	struct err err;

	(void)state;
	for (size_t len = 0; len < FUNCTIONS_AT + FIRST_RECORD; len++) {
		section_reader_open_memory(&section, slice_from(bytes, len), 0, "cut");
		assert_int_equal(gopclntab_open(&table, &section, EM_X86_64, &err), -ERR_INVALID);
	}
	section_reader_open_memory(&section, slice_from(bytes, HAND_BYTES), 0, "whole");
	assert_int_equal(gopclntab_open(&table, &section, EM_AARCH64, &err), -ERR_UNSUPPORTED);
	put(bytes + 8, UINT64_MAX, 8);
	assert_int_equal(gopclntab_open(&table, &section, EM_X86_64, &err), -ERR_INVALID);
	free(bytes);
}

static void a_table_is_found_behind_bytes_that_look_alike(void **state)
{
	static struct section_reader range;
	uint8_t *bytes = table_by_hand(GOPCLNTAB_GO_1_20);
	uint8_t *around = calloc(1, 40000 + HAND_BYTES);
	uint64_t offset;
	struct err err;

	(void)state;
	assert_non_null(around);
	memcpy(around + 16, bytes, 64); /* a header with nothing behind it */
	memcpy(around + 40000 - 32, bytes, 8);
	section_reader_open_memory(&range, slice_from(around, 40000 + HAND_BYTES), 0x1000, "r");
	assert_int_equal(gopclntab_find(&range, EM_X86_64, &offset, &err), -ERR_NOT_FOUND);
	memcpy(around + 40000, bytes, HAND_BYTES);
	assert_int_equal(gopclntab_find(&range, EM_X86_64, &offset, &err), 0);
	assert_int_equal(offset, 40000);
	free(around);
	free(bytes);
}

/* The module's description: only what the search looks at. */
static void the_text_is_found_where_the_linker_left_it_to_relocation(void **state)
{
	static struct section_reader data, relocations;
	uint8_t *bytes = table_by_hand(GOPCLNTAB_GO_1_20), *module = calloc(1, 4096);
	Elf64_Rela entries[] = {
		{ .r_offset = 0x700108, .r_info = R_X86_64_RELATIVE, .r_addend = 1 },
		{ .r_offset = 0x700100 + 22 * 8, .r_info = R_X86_64_RELATIVE, .r_addend = TEXT },
	};
	uint64_t text = 0;
	struct err err;

	(void)state;
	assert_non_null(module);
	put(bytes + 24, 0, 8);
	open_by_hand(bytes);
	assert_true(table.layout.text == 0);
	section_reader_open_memory(&data, slice_from(module, 4096), 0x700000, "data");
	section_reader_open_memory(&relocations, slice_from(entries, sizeof(entries)), 0, "rela");
	for (unsigned word = 2; word < 17; word += 3) {
		put(module + 0x100 + 8 * (size_t)word, 50 + word, 8);
		put(module + 0x108 + 8 * (size_t)word, 50 + word, 8);
	}
	put(module + 0x100 + 8 * 17, 4, 8);
	assert_int_equal(gopclntab_find_text(&table, &data, &relocations, &text, &err),
			 -ERR_NOT_FOUND);
	put(module + 0x100 + 8 * 18, 4, 8);
	assert_int_equal(gopclntab_find_text(&table, &data, &relocations, &text, &err), 0);
	assert_true(text == TEXT);
	put(module + 0x100 + 8 * 22, TEXT + 64, 8);
	assert_int_equal(gopclntab_find_text(&table, &data, NULL, &text, &err), 0);
	assert_true(text == TEXT + 64);
	free(module);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_a_program_agree_with_its_debug_frame),
		cmocka_unit_test(special_functions_have_rules_of_their_own),
		cmocka_unit_test(rows_of_an_arm64_program_agree_with_its_debug_frame),
		cmocka_unit_test(a_position_independent_program_is_read_without_section_names),
		cmocka_unit_test(every_version_is_read),
		cmocka_unit_test(flags_tell_what_names_do_not),
		cmocka_unit_test(a_damaged_function_is_left_out_and_counted),
		cmocka_unit_test(what_is_no_table_is_refused),
		cmocka_unit_test(a_table_is_found_behind_bytes_that_look_alike),
		cmocka_unit_test(the_text_is_found_where_the_linker_left_it_to_relocation),
	};

	return cmocka_run_group_tests(tests, NULL, remove_folder);
}
