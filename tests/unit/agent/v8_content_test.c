/* SPDX-License-Identifier: Apache-2.0 */
/* V8 is found in files that export nothing of it, by a sentence and the head of a snapshot. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/runtime/runtime_file.h"
#include "agent/runtime/v8/v8_content.h"

#define CONSTANTS_BYTES 0x300000u
#define CODE_AT 0x400000u
#define CODE_BYTES (16u << 20)
#define DYNAMIC_AT 0x400u
#define HASH_AT 0x600u
#define SYMBOLS_AT 0x700u
#define NAMES_AT 0x800u
#define SENTENCE_AT 0x20000u
#define SNAPSHOT_AT ((1u << 20) - 60) /* where one window ends */

#define NAMES "\0pthread_getattr_np\0mremap\0madvise\0"
#define SENTENCE "Embedder-vs-V8 build configuration mismatch. On embedder side"
#define CAGE "Failed to reserve virtual memory for process-wide V8 pointer compression cage"

struct content {
	const char *names;
	size_t names_bytes;
	const char *sentence, *cage, *version;
	uint32_t contexts, magic;
	uint64_t code_bytes;
};

static const struct content whole = {
	.names = NAMES,
	.names_bytes = sizeof(NAMES),
	.sentence = SENTENCE,
	.version = "15.0.245.2-rusty",
	.contexts = 3,
	.magic = 0xc0de06b5,
	.code_bytes = CODE_BYTES,
};

static void put(int fd, uint64_t at, const void *bytes, size_t count)
{
	assert_int_equal(pwrite(fd, bytes, count, (off_t)at), count);
}

static void put_headers(int fd, const struct content *content)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
	};
	const Elf64_Dyn dynamic[] = { { DT_STRTAB, { NAMES_AT } },
				      { DT_STRSZ, { content->names_bytes } },
				      { DT_SYMTAB, { SYMBOLS_AT } },
				      { DT_GNU_HASH, { HASH_AT } },
				      { DT_NULL, { 0 } } };
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R,
		  .p_filesz = CONSTANTS_BYTES,
		  .p_memsz = CONSTANTS_BYTES },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = CODE_AT,
		  .p_vaddr = CODE_AT,
		  .p_filesz = content->code_bytes,
		  .p_memsz = content->code_bytes },
		{ .p_type = PT_DYNAMIC, .p_offset = DYNAMIC_AT, .p_filesz = sizeof(dynamic) },
	};
	const uint32_t hash[] = { 1, 1, 1, 0, 0, 0, 0 };

	put(fd, 0, &header, sizeof(header));
	put(fd, sizeof(header), segments, sizeof(segments));
	put(fd, DYNAMIC_AT, dynamic, sizeof(dynamic));
	put(fd, HASH_AT, hash, sizeof(hash));
	put(fd, NAMES_AT, content->names, content->names_bytes);
}

static size_t head_of(const struct content *content, uint8_t ret[256])
{
	size_t at = (16 + 64 + 4 * (2 + (size_t)content->contexts) + 7) & ~(size_t)7;

	memset(ret, 0, 256);
	memcpy(ret, &content->contexts, 4);
	ret[4] = 1;
	memset(ret + 8, 0xde, 8); /* checksums */
	memcpy(ret + 16, content->version, strlen(content->version));
	memset(ret + 80, 0x11, 4 * (2 + (size_t)content->contexts));
	memcpy(ret + at, &content->magic, 4);
	return at;
}

static struct runtime_file *read_content(const struct content *content)
{
	struct runtime_file *file;
	struct elf_info info;
	uint8_t head[256];
	int fd = memfd_create("content", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, CODE_AT + CODE_BYTES), 0);
	put_headers(fd, content);
	if (content->sentence)
		put(fd, SENTENCE_AT, content->sentence, strlen(content->sentence));
	if (content->cage)
		put(fd, SENTENCE_AT + 0x1000, content->cage, strlen(content->cage));
	if (content->version) {
		size_t at = head_of(content, head);

		put(fd, SNAPSHOT_AT, head, at + 8);
	}
	assert_int_equal(elf_read_info(fd, "content", &info, NULL), 0);
	file = runtime_file_read(fd, &info);
	close(fd);
	return file;
}

static void a_stripped_program_with_a_snapshot_is_known(void **state)
{
	struct runtime_file *file = read_content(&whole);

	(void)state;
	assert_non_null(file);
	assert_int_equal(file->layout.kind, RUNTIME_V8);
	assert_string_equal(file->version, "15.0.245");
	assert_string_equal(file->source, "table");
	assert_null(file->problem);
	assert_int_equal(file->script.kind, SCRIPT_V8);
	assert_int_equal(file->script.v8.shared, 32);
	assert_int_equal(file->script.v8.function, -16);
	assert_false(file->script.v8.is_compressed);
	assert_true(file->layout.v8.is_not_node);
	free(file);
}

static void pointers_are_compressed_if_it_has_a_cage_for_them(void **state)
{
	struct content content = whole;
	struct runtime_file *file;

	(void)state;
	content.cage = CAGE;
	content.version = "15.8.62.5";
	content.contexts = 1;
	file = read_content(&content);
	assert_non_null(file);
	assert_string_equal(file->version, "15.8.62");
	assert_null(file->problem);
	assert_true(file->script.v8.is_compressed);
	assert_int_equal(file->script.v8.shared, 16);
	assert_int_equal(file->layout.v8.map_type, 8);
	free(file);
}

static void of_a_version_that_is_not_known_the_version_is(void **state)
{
	struct content content = whole;
	struct runtime_file *file;

	(void)state;
	content.version = "16.1.23.4";
	file = read_content(&content);
	assert_non_null(file);
	assert_string_equal(file->version, "16.1.23");
	assert_string_equal(file->problem, "unknown layout");
	assert_null(file->source);
	free(file);
}

/* Chromium keeps it in a file of its own. */
static void without_a_snapshot_there_is_no_version(void **state)
{
	struct content content = whole;
	struct runtime_file *file;

	(void)state;
	content.version = NULL;
	file = read_content(&content);
	assert_non_null(file);
	assert_string_equal(file->version, "");
	assert_string_equal(file->problem, "unknown layout");
	free(file);
}

static void other_programs_are_none(void **state)
{
	struct content content = whole;

	(void)state;
	content.sentence = "some other sentence";
	assert_null(read_content(&content));
	content = whole;
	content.names = "\0mremap\0madvise\0";
	content.names_bytes = sizeof("\0mremap\0madvise\0");
	assert_null(read_content(&content));
	content = whole;
	content.code_bytes = 4 << 20;
	assert_null(read_content(&content));
}

static void the_head_of_a_snapshot_is_checked(void **state)
{
	static const char *const versions[] = { "15.0.245.",	   "15.0.245.2.1", "a.0.245.2",
						"15.0.245.2rusty", "1.3.6.1.4",	   "",
						"15.0.99999.2" };
	struct content content = whole;
	struct v8_content found = { 0 };
	uint8_t head[256];
	size_t at = head_of(&content, head);

	(void)state;
	assert_true(v8_content_read_head(head, sizeof(head), at, &found));
	assert_true(found.major == 15 && found.minor == 0 && found.build == 245);
	assert_false(v8_content_read_head(head, at + 3, at, &found));
	assert_false(v8_content_read_head(head, sizeof(head), at - 8, &found));
	assert_false(v8_content_read_head(head + 1, sizeof(head) - 1, at - 1, &found));
	head[4] = 2; /* neither yes nor no */
	assert_false(v8_content_read_head(head, sizeof(head), at, &found));
	head[4] = 1;
	head[0] = 2; /* one context less than its offsets are */
	assert_false(v8_content_read_head(head, sizeof(head), at, &found));
	head[0] = 3;
	head[16 + 40] = 'x'; /* behind the version */
	assert_false(v8_content_read_head(head, sizeof(head), at, &found));
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		content.version = versions[i];
		at = head_of(&content, head);
		assert_false(v8_content_read_head(head, sizeof(head), at, &found));
	}
	content.version = "15.6.75"; /* without a patch */
	at = head_of(&content, head);
	assert_true(v8_content_read_head(head, sizeof(head), at, &found));
	assert_true(found.minor == 6 && found.build == 75);
	content = whole;
	content.magic = 0xc0df06b5;
	at = head_of(&content, head);
	assert_false(v8_content_read_head(head, sizeof(head), at, &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stripped_program_with_a_snapshot_is_known),
		cmocka_unit_test(pointers_are_compressed_if_it_has_a_cage_for_them),
		cmocka_unit_test(of_a_version_that_is_not_known_the_version_is),
		cmocka_unit_test(without_a_snapshot_there_is_no_version),
		cmocka_unit_test(other_programs_are_none),
		cmocka_unit_test(the_head_of_a_snapshot_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
