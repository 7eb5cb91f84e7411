/* SPDX-License-Identifier: Apache-2.0 */
/* ELF headers in both classes and byte orders, identities, segments, and files that lie. */
#include "codec/elf/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "codec/wire/sha256.h"

/* An executable of two segments and a note segment; fields are set by the tests. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	struct {
		Elf64_Nhdr header;
		char name[4];
		uint8_t desc[20];
	} note;
	uint8_t rest[64];
};

static struct image make_image(void)
{
	struct image image = {
		.header = { .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_phnum = 3,
			    .e_phoff = offsetof(struct image, segments),
			    .e_phentsize = sizeof(Elf64_Phdr), .e_shentsize = sizeof(Elf64_Shdr) },
		.segments = {
			{ .p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0, .p_vaddr = 0x400000,
			  .p_filesz = 0x1000, .p_memsz = 0x1000 },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x800,
			  .p_vaddr = 0x401800, .p_filesz = 0x500, .p_memsz = 0x600 },
			{ .p_type = PT_NOTE, .p_offset = offsetof(struct image, note),
			  .p_filesz = sizeof(((struct image *)0)->note), .p_align = 4 },
		},
		.note = { .header = { 4, 20, NT_GNU_BUILD_ID }, .name = "GNU",
			  .desc = { 0xab, 0xcd, 0x01 } },
	};

	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	return image;
}

static int parse(const struct image *image, struct elf_info *ret, struct err *err)
{
	return elf_parse_info(slice_from(image, sizeof(*image)), "image", ret, err);
}

static void gnu_build_id_and_segments_are_read(void **state)
{
	struct image image = make_image();
	struct elf_info info;
	uint64_t value;

	(void)state;
	assert_int_equal(parse(&image, &info, NULL), 0);
	assert_int_equal(info.id_kind, ELF_ID_GNU);
	assert_string_equal(info.build_id, "abcd010000000000000000000000000000000000");
	assert_int_equal(info.machine, EM_X86_64);
	assert_int_equal(info.segments_count, 2);
	assert_true(info.segments[1].executable && !info.segments[0].executable);
	/* Both segments hold offset 0x900; code goes first. */
	assert_true(elf_offset_to_address(&info, 0x900, &value) && value == 0x401900);
	assert_true(elf_offset_to_address(&info, 0x10, &value) && value == 0x400010);
	assert_false(elf_offset_to_address(&info, 0x1000, &value));
	assert_true(elf_address_to_offset(&info, 0x401900, &value) && value == 0x900);
	assert_false(elf_address_to_offset(&info, 0x401d00, &value)); /* memory only */
}

static void other_class_and_byte_order_are_read(void **state)
{
	uint8_t bytes[sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr)] = {
		[0] = 0x7f,
		'E',
		'L',
		'F',
		ELFCLASS32,
		ELFDATA2MSB,
		[offsetof(Elf32_Ehdr, e_type) + 1] = ET_DYN,
		[offsetof(Elf32_Ehdr, e_machine) + 1] = EM_PPC,
		[offsetof(Elf32_Ehdr, e_phoff) + 3] = sizeof(Elf32_Ehdr),
		[offsetof(Elf32_Ehdr, e_phentsize) + 1] = sizeof(Elf32_Phdr),
		[offsetof(Elf32_Ehdr, e_phnum) + 1] = 1,
		[sizeof(Elf32_Ehdr) + offsetof(Elf32_Phdr, p_type) + 3] = PT_LOAD,
		[sizeof(Elf32_Ehdr) + offsetof(Elf32_Phdr, p_vaddr) + 2] = 0x10,
		[sizeof(Elf32_Ehdr) + offsetof(Elf32_Phdr, p_filesz) + 3] = 0x40,
		[sizeof(Elf32_Ehdr) + offsetof(Elf32_Phdr, p_flags) + 3] = PF_X,
	};
	struct elf_info info;
	uint64_t value;

	(void)state;
	assert_int_equal(elf_parse_info(slice_from(bytes, sizeof(bytes)), "bytes", &info, NULL), 0);
	assert_int_equal(info.machine, EM_PPC);
	assert_int_equal(info.type, ET_DYN);
	assert_int_equal(info.id_kind, ELF_ID_HASH);
	assert_true(elf_offset_to_address(&info, 0x20, &value) && value == 0x1020);
}

static void go_id_is_hashed_and_gnu_id_wins(void **state)
{
	struct image image = make_image();
	uint8_t digest[SHA256_DIGEST_BYTES];
	char expected[8];
	struct elf_info info;
	struct sha256 sha;

	(void)state;
	image.note.header.n_type = 4;
	memcpy(image.note.name, "Go\0", 4);
	sha256_init(&sha);
	sha256_add(&sha, image.note.desc, sizeof(image.note.desc));
	sha256_finish(&sha, digest);
	snprintf(expected, sizeof(expected), "%02x%02x%02x", digest[0], digest[1], digest[2]);
	assert_int_equal(parse(&image, &info, NULL), 0);
	assert_int_equal(info.id_kind, ELF_ID_GO);
	assert_int_equal(strlen(info.build_id), 32);
	assert_memory_equal(info.build_id, expected, 6);
}

/* sha256sum over first 4096 bytes, last 4096 bytes and the length: the OpenTelemetry file id. */
static void file_without_notes_is_identified_by_its_hash(void **state)
{
	struct image image = make_image();
	struct elf_info info, again;

	(void)state;
	image.segments[2].p_type = PT_NULL;
	assert_int_equal(parse(&image, &info, NULL), 0);
	assert_int_equal(info.id_kind, ELF_ID_HASH);
	assert_int_equal(strlen(info.build_id), 32);
	image.rest[0] ^= 1;
	assert_int_equal(parse(&image, &again, NULL), 0);
	assert_string_not_equal(info.build_id, again.build_id);
}

static void hostile_headers_are_refused_or_survived(void **state)
{
	struct image image = make_image();
	struct elf_info info;
	struct err err;

	(void)state;
	image.header.e_phoff = UINT64_MAX - 8;
	assert_int_equal(parse(&image, &info, &err), -ERR_INVALID);
	image = make_image();
	image.header.e_phentsize = 1;
	assert_int_equal(parse(&image, &info, &err), -ERR_INVALID);
	image = make_image();
	image.header.e_phnum = 60000;
	assert_int_equal(parse(&image, &info, &err), -ERR_LIMIT);
	image = make_image();
	image.note.header.n_descsz = UINT32_MAX;
	assert_int_equal(parse(&image, &info, &err), 0);
	assert_int_equal(info.id_kind, ELF_ID_HASH);
	image = make_image();
	image.header.e_ident[EI_CLASS] = 9;
	assert_int_equal(parse(&image, &info, &err), -ERR_INVALID);
	for (size_t len = 0; len < sizeof(image); len++)
		elf_parse_info(slice_from(&image, len), "cut", &info, &err);
}

static void only_regular_files_are_read(void **state)
{
	struct image image = make_image();
	struct elf_info info;
	struct err err;
	int ends[2], fd;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(elf_read_info(ends[0], "pipe", &info, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "\"pipe\": not a regular file"));
	close(ends[0]);
	close(ends[1]);
	fd = memfd_create("image", MFD_CLOEXEC);
	assert_int_equal(write(fd, &image, sizeof(image)), sizeof(image));
	assert_int_equal(elf_read_info(fd, "image", &info, &err), 0);
	assert_int_equal(info.id_kind, ELF_ID_GNU);
	assert_int_equal(info.file_bytes, sizeof(image));
	close(fd);
}

/* FIPS 180-4 examples. */
static void sha256_gives_the_published_digests(void **state)
{
	static const struct {
		const char *text;
		int repeats;
		uint8_t first[4], last[4];
	} cases[] = {
		{ "", 1, { 0xe3, 0xb0, 0xc4, 0x42 }, { 0x78, 0x52, 0xb8, 0x55 } },
		{ "abc", 1, { 0xba, 0x78, 0x16, 0xbf }, { 0xf2, 0x00, 0x15, 0xad } },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  1,
		  { 0x24, 0x8d, 0x6a, 0x61 },
		  { 0x19, 0xdb, 0x06, 0xc1 } },
		{ "aaaaaaaaaa", 100000, { 0xcd, 0xc7, 0x6e, 0x5c }, { 0xc7, 0x11, 0x2c, 0xd0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t digest[SHA256_DIGEST_BYTES];
		struct sha256 sha;

		sha256_init(&sha);
		for (int k = 0; k < cases[i].repeats; k++)
			sha256_add(&sha, cases[i].text, strlen(cases[i].text));
		sha256_finish(&sha, digest);
		assert_memory_equal(digest, cases[i].first, 4);
		assert_memory_equal(digest + 28, cases[i].last, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gnu_build_id_and_segments_are_read),
		cmocka_unit_test(other_class_and_byte_order_are_read),
		cmocka_unit_test(go_id_is_hashed_and_gnu_id_wins),
		cmocka_unit_test(file_without_notes_is_identified_by_its_hash),
		cmocka_unit_test(hostile_headers_are_refused_or_survived),
		cmocka_unit_test(only_regular_files_are_read),
		cmocka_unit_test(sha256_gives_the_published_digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
