/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables of golden ELF files against what readelf says of them, and the table file itself.
 */
#include "agent/unwind/table_build.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/unwind/row_rule.h"
#include "agent/unwind/rule_text.h"
#include "agent/unwind/segment_writer.h"
#include "base/mem.h"
#include "codec/elf/elf.h"

struct built {
	int fd;
	struct table_stats stats;
	struct table_file file;
	struct table_image images[TABLE_SEGMENTS_MAX];
};

static void open_built(struct built *built)
{
	assert_int_equal(table_file_open(built->fd, "table", &built->file, NULL), 0);
	for (uint32_t i = 0; i < built->file.header.segments_count; i++)
		assert_int_equal(table_image_load(&built->file, i, &built->images[i], NULL), 0);
}

static void build(struct slice image, struct built *built)
{
	struct table_input input = { .fd = -1, .image = image, .name = "image" };
	struct err err = { 0 };
	int status;

	*built = (struct built){ .fd = memfd_create("table", MFD_CLOEXEC) };
	assert_true(built->fd >= 0);
	status = table_build(&input, built->fd, NULL, &built->stats, &err);
	if (status)
		fail_msg("%s", err.message);
	open_built(built);
}

static void free_built(struct built *built)
{
	for (size_t i = 0; i < TABLE_SEGMENTS_MAX; i++)
		table_image_free(&built->images[i]);
	close(built->fd);
}

static struct unwind_rule rule_at(const struct built *built, uint64_t offset)
{
	for (uint32_t i = 0; i < built->file.header.segments_count; i++) {
		struct unwind_rule rule;

		if (table_image_find(&built->images[i], offset, &rule))
			return rule;
	}
	return (struct unwind_rule){ .cfa = UNWIND_CFA_NONE };
}

static struct strbuf read_golden(const char *name)
{
	struct strbuf path = { 0 }, bytes = { 0 };
	size_t got;
	FILE *file;

	strbuf_addf(&path, "%s/golden/cfi/%s", getenv("FIRN_TESTS"), name);
	file = fopen(strbuf_text(&path), "rb");
	if (!file)
		fail_msg("cannot open %s", strbuf_text(&path));
	while ((got = fread(strbuf_reserve(&bytes, 65536), 1, 65536, file)) > 0)
		bytes.len += got;
	strbuf_reserve(&bytes, 1)[0] = 0;
	fclose(file);
	strbuf_free(&path);
	return bytes;
}

/* The rule's words, but for flags, which readelf does not print; and it has one word for two. */
static void words_at(const struct built *built, uint64_t offset, struct strbuf *out)
{
	struct unwind_rule rule = rule_at(built, offset);

	rule.flags = 0;
	if (rule.fp == UNWIND_VALUE_UNDEFINED)
		rule.fp = UNWIND_VALUE_SAME;
	strbuf_clear(out);
	rule_text_add(out, &rule, (uint16_t)built->file.header.machine);
}

/* Each row of readelf holds from its address up to the next one. Returns how many there are. */
static size_t check_against_readelf(const struct built *built, const struct elf_info *info,
				    const char *rows)
{
	struct strbuf words = { 0 };
	size_t count = 0;

	while (*rows) {
		const char *line = rows + 17, *end = strchr(rows, '\n');
		uint64_t next = strtoull(end + 1, NULL, 16), address = strtoull(rows, NULL, 16);
		uint64_t offset;

		for (uint64_t at = address; at < (end[1] ? next : address + 1); at++) {
			if (!elf_address_to_offset(info, at, &offset))
				break;
			words_at(built, offset, &words);
			if (words.len != (size_t)(end - line) ||
			    memcmp(words.data, line, words.len) != 0)
				fail_msg("%lx: readelf %.*s, firn %s", (long)at, (int)(end - line),
					 line, strbuf_text(&words));
		}
		rows = end + 1;
		count++;
	}
	strbuf_free(&words);
	return count;
}

static void check_golden(const char *name, const char *rows_name, size_t rows_min)
{
	struct strbuf image = read_golden(name), rows = read_golden(rows_name);
	struct elf_info info;
	struct built built;

	build(strbuf_slice(&image), &built);
	assert_int_equal(elf_parse_info(strbuf_slice(&image), name, &info, NULL), 0);
	assert_true(check_against_readelf(&built, &info, strbuf_text(&rows)) >= rows_min);
	assert_int_equal(built.stats.malformed, 0);
	free_built(&built);
	strbuf_free(&image);
	strbuf_free(&rows);
}

static void x86_64_rows_are_those_of_readelf(void **state)
{
	(void)state;
	check_golden("x86_64.elf", "x86_64.rows", 50);
}

static void arm64_rows_are_those_of_readelf(void **state)
{
	(void)state;
	check_golden("arm64.elf", "arm64.rows", 20);
}

static void debug_frame_rows_are_those_of_readelf(void **state)
{
	(void)state;
	check_golden("debug_frame.elf", "debug_frame.rows", 60);
}

static void signed_return_addresses_are_marked(void **state)
{
	struct strbuf image = read_golden("arm64.elf");
	struct built built;

	/* `pushes`: paciasp, which signs, at its start; autiasp before its return, at 0x3fc. */
	(void)state;
	build(strbuf_slice(&image), &built);
	assert_int_equal(rule_at(&built, 0x3a0).flags, 0);
	assert_int_equal(rule_at(&built, 0x3a8).flags, UNWIND_RULE_PAC);
	assert_int_equal(rule_at(&built, 0x3f8).flags, UNWIND_RULE_PAC);
	assert_int_equal(rule_at(&built, 0x3fc).flags, 0);
	free_built(&built);
	strbuf_free(&image);
}

static void arm64_plt_without_unwind_information_has_rows(void **state)
{
	struct strbuf image = read_golden("arm64.elf");
	struct unwind_rule rule;
	struct built built;

	(void)state;
	build(strbuf_slice(&image), &built);
	assert_int_equal(built.stats.functions[TABLE_SOURCE_PLT], 1);
	rule = rule_at(&built, 0x364); /* behind stp x16, x30, [sp, #-16]! */
	assert_true(rule.cfa == UNWIND_CFA_REGISTER && rule.cfa_offset == 16);
	assert_true(rule.ra == UNWIND_VALUE_AT_CFA && rule.ra_offset == -8);
	rule = rule_at(&built, 0x384);
	assert_true(rule.cfa_offset == 0 && rule.ra == UNWIND_VALUE_SAME);
	free_built(&built);
	strbuf_free(&image);
}

static void without_section_headers_the_header_of_eh_frame_leads_to_all(void **state)
{
	struct strbuf image = read_golden("x86_64.elf"), rows = read_golden("x86_64.rows");
	Elf64_Ehdr header;
	struct elf_info info;
	struct built built;

	(void)state;
	memcpy(&header, image.data, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(image.data, &header, sizeof(header));
	build(strbuf_slice(&image), &built);
	assert_int_equal(elf_parse_info(strbuf_slice(&image), "stripped", &info, NULL), 0);
	check_against_readelf(&built, &info, strbuf_text(&rows));
	assert_string_equal(built.stats.sources, ".eh_frame");
	free_built(&built);
	strbuf_free(&image);
	strbuf_free(&rows);
}

static void the_vdso_has_a_table(void **state)
{
	const char *vdso = (const char *)getauxval(AT_SYSINFO_EHDR);
	struct elf_info info;
	struct built built;
	uint64_t end = 0;

	(void)state;
	if (!vdso) {
		print_message("# skip: no vdso here\n");
		skip();
	}
	assert_int_equal(elf_parse_info(slice_from(vdso, 4096), "vdso", &info, NULL), 0);
	for (size_t i = 0; i < info.segments_count; i++)
		if (info.segments[i].offset + info.segments[i].file_bytes > end)
			end = info.segments[i].offset + info.segments[i].file_bytes;
	build(slice_from(vdso, end), &built);
	assert_true(built.stats.functions[TABLE_SOURCE_EH_FRAME] > 2);
	assert_true(built.stats.rows > 4);
	free_built(&built);
}

/* An executable whose code is `code`, at file offset 0x1000, and nothing else. */
static struct slice make_program(uint8_t file[0x1100], const void *code, size_t len)
{
	Elf64_Ehdr header = { .e_type = ET_EXEC,
			      .e_machine = EM_X86_64,
			      .e_phoff = sizeof(header),
			      .e_phnum = 1,
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_entry = 0x401010 };
	Elf64_Phdr segment = { .p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_offset = 0x1000,
			       .p_vaddr = 0x401000,
			       .p_filesz = 0x100,
			       .p_memsz = 0x100 };

	memset(file, 0, 0x1100);
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), &segment, sizeof(segment));
	memcpy(file + 0x1010, code, len);
	return slice_from(file, 0x1100);
}

static void programs_end_at_their_entry_point(void **state)
{
	static const uint8_t code[] = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7 };
	static uint8_t file[0x1100];
	struct built built;

	(void)state;
	build(make_program(file, code, sizeof(code)), &built);
	assert_int_equal(rule_at(&built, 0x100f).cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule_at(&built, 0x1010).cfa, UNWIND_CFA_END);
	assert_int_equal(rule_at(&built, 0x104f).cfa, UNWIND_CFA_END);
	assert_int_equal(rule_at(&built, 0x1050).cfa, UNWIND_CFA_NONE);
	free_built(&built);
}

static void threads_of_musl_end_in_clone(void **state)
{
	static const uint8_t code[] = { /* _start */
					0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48,
					0x8d, 0x35, 0,	  0,	0,    0,    [0x60] = 0x31,
					0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7,
					0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4
	};
	static uint8_t file[0x1100];
	struct built built;

	(void)state;
	build(make_program(file, code, sizeof(code)), &built);
	assert_int_equal(rule_at(&built, 0x1010).cfa, UNWIND_CFA_END);
	assert_int_equal(rule_at(&built, 0x106f).cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule_at(&built, 0x1070 + 6).cfa, UNWIND_CFA_END); /* behind the call */
	assert_int_equal(rule_at(&built, 0x107f).cfa, UNWIND_CFA_NONE);
	free_built(&built);
}

/* Where code without unwind information begins: behind a mark (golden/cfi/clone.S). */
static uint64_t behind_mark(const struct strbuf *image, uint8_t number)
{
	const uint8_t mark[] = { 0xb8, number, 0, 1, 0 }; /* mov $0x10000 + number, %eax */
	const char *found = memmem(image->data, image->len, mark, sizeof(mark));

	assert_non_null(found);
	return (uint64_t)(found - image->data) + sizeof(mark);
}

static void threads_of_glibc_begin_behind_the_system_call(void **state)
{
	static const struct {
		uint8_t mark, bytes;
		enum unwind_cfa gap, behind;
	} cases[] = {
		{ 1, 10, UNWIND_CFA_CLONE, UNWIND_CFA_END },
		{ 2, 14, UNWIND_CFA_CLONE, UNWIND_CFA_END },
		{ 3, 10, UNWIND_CFA_REGISTER, UNWIND_CFA_REGISTER }, /* a child has callers */
		{ 4, 10, UNWIND_CFA_REGISTER, UNWIND_CFA_END },	     /* padding */
	};
	struct strbuf image = read_golden("clone.elf");
	struct built built;

	(void)state;
	build(strbuf_slice(&image), &built);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t start = behind_mark(&image, cases[i].mark);

		assert_int_equal(rule_at(&built, start - 1).cfa, UNWIND_CFA_REGISTER);
		assert_int_equal(rule_at(&built, start + cases[i].bytes).cfa, cases[i].behind);
		for (uint64_t into = 0; into < cases[i].bytes; into++) {
			struct unwind_rule rule = rule_at(&built, start + into);

			assert_int_equal(rule.cfa, cases[i].gap);
			assert_true(rule.cfa_register == UNWIND_X86_SP && rule.cfa_offset == 8);
			assert_true(rule.ra == UNWIND_VALUE_AT_CFA && rule.ra_offset == -8);
		}
	}
	free_built(&built);
	strbuf_free(&image);
}

/* Takes away .eh_frame and its header; the rest stays as it is. */
static void remove_eh_frame(char *image)
{
	Elf64_Ehdr header;

	memcpy(&header, image, sizeof(header));
	for (unsigned i = 0; i < header.e_shnum; i++) {
		char *place = image + header.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr section;

		memcpy(&section, place, sizeof(section));
		if (section.sh_flags == SHF_ALLOC)
			section.sh_type = SHT_NOBITS;
		memcpy(place, &section, sizeof(section));
	}
	for (unsigned i = 0; i < header.e_phnum; i++) {
		char *place = image + header.e_phoff + i * sizeof(Elf64_Phdr);
		uint32_t type;

		memcpy(&type, place, sizeof(type));
		if (type == PT_GNU_EH_FRAME)
			memset(place, 0, sizeof(type)); /* PT_NULL */
	}
}

static void plts_of_other_linkers_are_known_by_their_code(void **state)
{
	/* pushq GOT+8(%rip), with which the PLT begins: two entries of 16 bytes. */
	static const char first[] = "\xff\x35";
	struct strbuf image = read_golden("x86_64.elf");
	const char *plt = memmem(image.data, image.len, first, 2);
	uint64_t offset = (uint64_t)(plt - image.data);
	struct built by_linker, by_code;

	/* GNU ld describes its PLT. Without that, its code has to give the same. */
	(void)state;
	assert_non_null(plt);
	build(strbuf_slice(&image), &by_linker);
	remove_eh_frame(image.data);
	build(strbuf_slice(&image), &by_code);
	assert_int_equal(by_linker.stats.functions[TABLE_SOURCE_PLT], 1);
	assert_int_equal(by_code.stats.functions[TABLE_SOURCE_EH_FRAME], 0);
	for (uint64_t into = 0; into < 32; into++) {
		struct unwind_rule want = rule_at(&by_linker, offset + into);
		struct unwind_rule got = rule_at(&by_code, offset + into);

		assert_int_not_equal(want.cfa, UNWIND_CFA_NONE);
		assert_memory_equal(&want, &got, sizeof(got));
	}
	free_built(&by_linker);
	free_built(&by_code);
	strbuf_free(&image);
}

static void limits_and_cancelling_end_a_build(void **state)
{
	struct strbuf image = read_golden("x86_64.elf");
	struct table_input input = { .fd = -1, .image = strbuf_slice(&image), .name = "image" };
	int fd = memfd_create("table", MFD_CLOEXEC);
	struct table_limits functions = { .functions = 3 }, rows = { .rows = 10 };
	atomic_bool cancel = true;
	struct table_limits section = { .section_bytes = 100 }, stop = { .cancel = &cancel };
	struct table_stats stats;
	struct err err;

	(void)state;
	assert_int_equal(table_build(&input, fd, &functions, &stats, &err), -ERR_LIMIT);
	assert_int_equal(table_build(&input, fd, &rows, &stats, &err), -ERR_LIMIT);
	assert_int_equal(table_build(&input, fd, &section, &stats, &err), -ERR_LIMIT);
	assert_int_equal(table_build(&input, fd, &stop, &stats, &err), -ERR_CANCELLED);
	atomic_store(&cancel, false);
	assert_int_equal(table_build(&input, fd, &stop, &stats, &err), 0);
	close(fd);
	strbuf_free(&image);
}

static void other_files_are_refused(void **state)
{
	uint8_t header[sizeof(Elf64_Ehdr)] = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB };
	struct table_input input = { .fd = -1, .name = "image" };
	int fd = memfd_create("table", MFD_CLOEXEC);
	struct err err;

	(void)state;
	input.image = slice_from("no ELF", 6);
	assert_int_equal(table_build(&input, fd, NULL, NULL, &err), -ERR_INVALID);
	header[offsetof(Elf32_Ehdr, e_machine)] = EM_386;
	input.image = slice_from(header, sizeof(header));
	assert_int_equal(table_build(&input, fd, NULL, NULL, &err), -ERR_UNSUPPORTED);
	close(fd);
}

/* ---- segments ---- */

static struct unwind_rule rule_number(uint32_t number)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_REGISTER,
				     .cfa_register = UNWIND_X86_SP,
				     .cfa_offset = (int32_t)number,
				     .ra = UNWIND_VALUE_AT_CFA,
				     .ra_offset = -8 };
}

struct made_row {
	uint64_t offset;
	uint32_t number; /* 0 = none */
};

static void write_rows(const struct made_row *rows, size_t count, uint64_t end, struct built *built)
{
	struct segment_writer *writer;
	struct table_file_header header;

	*built = (struct built){ .fd = memfd_create("table", MFD_CLOEXEC) };
	writer = segment_writer_new(built->fd, "made");
	for (size_t i = 0; i < count; i++) {
		struct unwind_rule rule =
			rows[i].number ? rule_number(rows[i].number) : (struct unwind_rule){ 0 };

		assert_int_equal(segment_writer_row(writer, rows[i].offset, &rule, NULL), 0);
	}
	assert_int_equal(segment_writer_finish(writer, end, EM_X86_64, 0, &header, NULL), 0);
	segment_writer_free(writer);
	open_built(built);
}

static void check_rows(const struct built *built, const struct made_row *rows, size_t count,
		       uint64_t end)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t last = (i + 1 < count ? rows[i + 1].offset : end) - 1;

		if (last + 1 == rows[i].offset)
			continue; /* the next one took its place */
		for (int which = 0; which < 3; which++) {
			uint64_t at = which == 0   ? rows[i].offset
				      : which == 1 ? last
						   : rows[i].offset + (last - rows[i].offset) / 2;
			struct unwind_rule rule = rule_at(built, at);

			if ((uint32_t)rule.cfa_offset != rows[i].number)
				fail_msg("%lx: rule %d, not %u of row %zu", (long)at,
					 rule.cfa_offset, rows[i].number, i);
		}
	}
}

static void rows_at_the_edges_of_buckets_are_found(void **state)
{
	static const struct made_row rows[] = {
		{ 0x400, 1 },  { 0x401, 2 },  { 0x7ff, 3 },  { 0x800, 4 },  { 0x801, 5 },
		{ 0xc00, 6 },  { 0x1400, 7 }, { 0x1400, 8 }, { 0x27ff, 9 }, { 0x2800, 10 },
		{ 0x2c00, 0 }, { 0x2c10, 9 }, { 0x5000, 1 },
	};
	struct built built;

	(void)state;
	write_rows(rows, 13, 0x5400, &built);
	assert_int_equal(built.file.header.segments_count, 1);
	assert_int_equal(rule_at(&built, 0x3ff).cfa, UNWIND_CFA_NONE);
	assert_int_equal(rule_at(&built, 0x5400).cfa, UNWIND_CFA_NONE);
	check_rows(&built, rows, 13, 0x5400);
	free_built(&built);
}

static void large_tables_are_cut_into_segments(void **state)
{
	const size_t count = 1500000;
	struct made_row *rows = mem_new_array(struct made_row, count);
	struct built built;
	uint64_t at = 0x1003;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		rows[i].offset = at;
		rows[i].number = i % 7 == 3 ? 0 : (uint32_t)(1 + i % 1000);
		at += 1 + (i * 2654435761u) % 23 + (i % 4096 == 5 ? 5000 : 0);
	}
	write_rows(rows, count, at, &built);
	assert_true(built.file.header.segments_count >= 3);
	for (uint32_t i = 1; i < built.file.header.segments_count; i++)
		assert_int_equal(built.file.header.segments[i].first_block,
				 built.file.header.segments[i - 1].first_block +
					 built.file.header.segments[i - 1].blocks);
	check_rows(&built, rows, count, at);
	free_built(&built);
	free(rows);
}

static void check_rows_at_block_starts(uint32_t rows_per_block, size_t count, uint32_t numbers)
{
	struct made_row *rows = mem_new_array(struct made_row, count);
	uint32_t step = TABLE_BLOCK_BYTES / rows_per_block;
	struct built built;
	uint64_t at = 0;

	for (size_t i = 0; i < count; i++) {
		rows[i].offset = at;
		rows[i].number = (uint32_t)(1 + i % numbers);
		at += step;
	}
	write_rows(rows, count, at, &built);
	assert_int_equal(built.file.damaged_count, 0);
	assert_true(built.file.header.segments_count >= 2);
	assert_int_equal(built.file.header.rows_count, count);
	check_rows(&built, rows, count, at);
	free_built(&built);
	free(rows);
}

/* Whichever row makes a segment full, and wherever the next one begins. */
static void a_row_at_each_start_of_a_block_may_be_cut_there(void **state)
{
	(void)state;
	check_rows_at_block_starts(1, 60000, 1000);
	check_rows_at_block_starts(8, 600000, 1000);
	check_rows_at_block_starts(4096, 221 * 4096, 1000);
	check_rows_at_block_starts(2, 200000, 65521); /* more rules than fit */
}

static void rules_in_rows_come_back_as_they_were(void **state)
{
	static const int32_t offsets[] = {
		INT32_MIN, -136, -128, -24, -20, -16, -8, 0, 8, INT32_MAX
	};
	static const int32_t cfas[] = { INT32_MIN, -8, 0, 8, 12, 8184, 8192, INT32_MAX };
	size_t packed_count = 0;

	(void)state;
	for (size_t i = 0; i < 7 * 8 * 10 * 10 * 2; i++) {
		struct unwind_rule back, rule = {
			.cfa = (uint8_t)(i % 7),
			.cfa_register = i % 2 ? UNWIND_X86_SP : UNWIND_X86_FP,
			.cfa_offset = cfas[i / 7 % 8],
			.ra = UNWIND_VALUE_AT_CFA,
			.ra_offset = -8,
			.fp = i % 3 ? UNWIND_VALUE_AT_CFA : UNWIND_VALUE_SAME,
			.fp_offset = i % 3 ? offsets[i / 56 % 10] : 0,
			.bx = i % 5 ? UNWIND_VALUE_AT_CFA : UNWIND_VALUE_SAME,
			.bx_offset = i % 5 ? offsets[i / 560 % 10] : 0,
		};
		uint32_t packed;

		if (!row_rule_pack(&rule, &packed))
			continue;
		assert_false(packed & ~TABLE_RULE_MASK || packed & TABLE_RULE_LISTED);
		back = row_rule_unpack(packed);
		assert_memory_equal(&back, &rule, sizeof(back));
		packed_count++;
	}
	assert_true(packed_count > 50);
}

static void wide_gaps_between_code_take_no_room(void **state)
{
	static const struct made_row rows[] = {
		{ 0x1000, 1 }, { 0x1100, 0 }, { 0xf0001010, 2 }, { 0xf0001020, 3 }
	};
	struct built built;

	(void)state;
	write_rows(rows, 4, 0xf0001040, &built);
	assert_int_equal(built.file.header.segments_count, 2);
	check_rows(&built, rows, 4, 0xf0001040);
	assert_true(built.file.header.file_bytes < 65536);
	free_built(&built);
}

static void a_full_table_says_so(void **state)
{
	struct segment_writer *writer;
	struct table_file_header header;
	int fd = memfd_create("table", MFD_CLOEXEC);

	(void)state;
	writer = segment_writer_new(fd, "made");
	for (uint32_t i = 0; i < TABLE_SEGMENTS_MAX + 4; i++) {
		struct unwind_rule rule = rule_number(i + 1), none = { 0 };
		uint64_t at = (uint64_t)i << 27;

		assert_int_equal(segment_writer_row(writer, at, &rule, NULL), 0);
		assert_int_equal(segment_writer_row(writer, at + 8, &none, NULL), 0);
	}
	assert_int_equal(segment_writer_finish(writer, 40ull << 27, EM_X86_64, 0, &header, NULL),
			 0);
	assert_true(segment_writer_is_full(writer));
	assert_int_equal(header.segments_count, TABLE_SEGMENTS_MAX);
	segment_writer_free(writer);
	close(fd);
}

static void each_damaged_byte_of_a_table_file_is_noticed(void **state)
{
	static const struct made_row rows[] = { { 0x1000, 1 }, { 0x1010, 2 }, { 0x1800, 0 } };
	struct table_file file;
	struct built built;
	struct strbuf copy = { 0 };
	uint64_t used;

	(void)state;
	write_rows(rows, 3, 0x1c00, &built);
	used = built.file.header.segments[0].image_at + built.file.header.segments[0].image_bytes;
	strbuf_reserve(&copy, built.file.header.file_bytes);
	copy.len = built.file.header.file_bytes;
	assert_int_equal(pread(built.fd, copy.data, copy.len, 0), copy.len);
	assert_int_equal(table_file_parse(strbuf_slice(&copy), "copy", &file, NULL), 0);
	for (size_t i = 0; i < used; i++) {
		if (i >= sizeof(struct table_file_header) && i < TABLE_FILE_ALIGN)
			continue; /* padding */
		copy.data[i] ^= 0x10;
		assert_int_not_equal(table_file_parse(strbuf_slice(&copy), "copy", &file, NULL), 0);
		copy.data[i] ^= 0x10;
	}
	assert_int_not_equal(
		table_file_parse(slice_from(copy.data, copy.len - 1), "copy", &file, NULL), 0);
	free_built(&built);
	strbuf_free(&copy);
}

/* Damages the image of a segment of the table, in its file. */
static void damage_segment(const struct built *built, uint32_t segment)
{
	uint64_t at = built->file.header.segments[segment].image_at + 40;
	uint8_t byte;

	assert_int_equal(pread(built->fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(built->fd, &byte, 1, (off_t)at), 1);
}

static void a_damaged_segment_costs_what_it_covers(void **state)
{
	const size_t count = 600000;
	struct made_row *rows = mem_new_array(struct made_row, count);
	struct table_file_segment lost;
	struct table_file file;
	struct table_image image;
	struct unwind_rule rule;
	struct built built;
	struct err err;
	uint32_t segments;

	(void)state;
	for (size_t i = 0; i < count; i++)
		rows[i] = (struct made_row){ i * 16, (uint32_t)(1 + i % 1000) };
	write_rows(rows, count, count * 16, &built);
	segments = built.file.header.segments_count;
	assert_true(segments >= 3);
	lost = built.file.header.segments[1];
	damage_segment(&built, 1);
	assert_int_equal(table_file_open(built.fd, "table", &file, &err), 0);
	assert_int_equal(file.damaged_count, 1);
	assert_int_equal(file.damage.code, ERR_CORRUPT);
	assert_int_equal(file.header.segments_count, segments - 1);
	assert_int_equal(file.header.rows_count, built.file.header.rows_count - lost.rows_count);
	assert_int_equal(table_image_load(&file, 1, &image, &err), 0);
	assert_true(table_image_find(
		&image, (uint64_t)(lost.first_block + lost.blocks) << TABLE_BLOCK_SHIFT, &rule));
	table_image_free(&image);
	for (uint32_t i = 0; i < segments; i++)
		if (i != 1)
			damage_segment(&built, i);
	assert_int_equal(table_file_open(built.fd, "table", &file, &err), -ERR_CORRUPT);
	free_built(&built);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64_rows_are_those_of_readelf),
		cmocka_unit_test(arm64_rows_are_those_of_readelf),
		cmocka_unit_test(debug_frame_rows_are_those_of_readelf),
		cmocka_unit_test(signed_return_addresses_are_marked),
		cmocka_unit_test(arm64_plt_without_unwind_information_has_rows),
		cmocka_unit_test(without_section_headers_the_header_of_eh_frame_leads_to_all),
		cmocka_unit_test(the_vdso_has_a_table),
		cmocka_unit_test(programs_end_at_their_entry_point),
		cmocka_unit_test(threads_of_musl_end_in_clone),
		cmocka_unit_test(threads_of_glibc_begin_behind_the_system_call),
		cmocka_unit_test(plts_of_other_linkers_are_known_by_their_code),
		cmocka_unit_test(limits_and_cancelling_end_a_build),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(rows_at_the_edges_of_buckets_are_found),
		cmocka_unit_test(large_tables_are_cut_into_segments),
		cmocka_unit_test(a_row_at_each_start_of_a_block_may_be_cut_there),
		cmocka_unit_test(rules_in_rows_come_back_as_they_were),
		cmocka_unit_test(wide_gaps_between_code_take_no_room),
		cmocka_unit_test(a_full_table_says_so),
		cmocka_unit_test(each_damaged_byte_of_a_table_file_is_noticed),
		cmocka_unit_test(a_damaged_segment_costs_what_it_covers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
