/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/hotspot/hotspot_file.h"

#include <string.h>

#include "agent/runtime/hotspot/hotspot_process.h"
#include "base/mem.h"

#define INSTRUCTION_BYTES 11u		 /* movq $imm32, disp32(%rip) */
#define INITIALISER_BYTES_MAX (1u << 18) /* of the last one, whose end nothing says */

enum set { NOT_SET, SET_ONCE, SET_DIFFERENTLY };

/* The library's variables as its initialisers leave them, without the pages of a process. */
struct image {
	const struct elf_exports *exports;
	uint64_t start, words_count;
	uint64_t *words;
	uint8_t *set; /* of each word: enum set */
};

static const struct elf_segment *find_data(const struct elf_exports *exports, uint64_t address)
{
	for (size_t i = 0; i < exports->info->segments_count; i++) {
		const struct elf_segment *segment = &exports->info->segments[i];

		if (address - segment->address < segment->memory_bytes)
			return segment;
	}
	return NULL;
}

/* Of the segment with the tables. */
static bool load(struct image *image, const struct vm_symbols *symbols)
{
	const struct elf_segment *data = find_data(image->exports, symbols->at[VM_STRUCTS]);
	uint64_t skipped;

	if (!data || data->executable || data->memory_bytes > HOTSPOT_FILE_DATA_MAX ||
	    data->file_bytes > data->memory_bytes)
		return false;
	image->start = (data->address + 7) & ~7ull;
	skipped = image->start - data->address;
	if (data->file_bytes < skipped)
		return false;
	image->words_count = (data->memory_bytes - skipped) / 8;
	image->words = mem_calloc(image->words_count + 1, 8);
	image->set = mem_calloc(image->words_count + 1, 1);
	elf_exports_pointers(image->exports, image->start, image->words,
			     (data->file_bytes - skipped) / 8);
	return true;
}

static void set_word(struct image *image, uint64_t address, uint64_t value)
{
	uint64_t into = address - image->start, at = into / 8;

	if (into % 8 || at >= image->words_count)
		return;
	if (image->set[at] != NOT_SET && image->words[at] != value)
		image->set[at] = SET_DIFFERENTLY;
	else if (image->set[at] == NOT_SET)
		image->set[at] = SET_ONCE;
	image->words[at] = value;
}

/*
 * VMStructEntry and VMTypeEntry (share/runtime/vmStructs.hpp), which debuggers read. The library
 * sets these by way of its table of addresses, in more than one instruction. Were they other ones,
 * none of the names would be found.
 */
static const uint64_t entries[VM_SYMBOLS] = {
	[VM_STRUCTS_STRIDE] = 48,    [VM_STRUCTS_TYPE] = 0,    [VM_STRUCTS_FIELD] = 8,
	[VM_STRUCTS_IS_STATIC] = 24, [VM_STRUCTS_OFFSET] = 32, [VM_STRUCTS_ADDRESS] = 40,
	[VM_TYPES_STRIDE] = 40,	     [VM_TYPES_NAME] = 0,      [VM_TYPES_SIZE] = 32,
};

static void set_entries(struct image *image, const struct vm_symbols *symbols)
{
	for (size_t i = 0; i < VM_SYMBOLS; i++)
		if (i != VM_STRUCTS && i != VM_TYPES)
			set_word(image, symbols->at[i], entries[i]);
}

static int32_t signed_at(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Wherever the bytes of the instruction are: what is none sets a word that is wanted hardly ever.
 */
static void run(struct image *image, const uint8_t *code, uint64_t bytes, uint64_t address)
{
	const uint8_t *at = code, *end = code + bytes;

	while ((at = memchr(at, 0x48, (size_t)(end - at))) && end - at >= (int)INSTRUCTION_BYTES) {
		uint64_t next = address + (uint64_t)(at - code) + INSTRUCTION_BYTES;

		if (at[1] == 0xc7 && at[2] == 0x05)
			set_word(image, next + (uint64_t)(int64_t)signed_at(at + 3),
				 (uint64_t)(int64_t)signed_at(at + 7));
		at++;
	}
}

/* The initialisers lie side by side: sets where. */
static bool find_initialisers(const struct elf_exports *exports, uint64_t *start, uint64_t *bytes)
{
	uint64_t count = exports->initialisers_bytes / 8, last = 0, *functions;

	if (!exports->initialisers || !count || count > HOTSPOT_FILE_INITIALISERS_MAX)
		return false;
	functions = mem_calloc(count, sizeof(*functions));
	elf_exports_pointers(exports, exports->initialisers, functions, count);
	*start = UINT64_MAX;
	for (uint64_t i = 0; i < count; i++) {
		if (functions[i] && functions[i] < *start)
			*start = functions[i];
		if (functions[i] > last)
			last = functions[i];
	}
	free(functions);
	*bytes = last - *start + INITIALISER_BYTES_MAX;
	return last >= *start && last - *start < HOTSPOT_FILE_CODE_MAX;
}

static bool run_initialisers(struct image *image)
{
	const struct elf_segment *segment;
	uint64_t start, bytes, left;
	uint8_t *code;
	bool is_read;

	if (!find_initialisers(image->exports, &start, &bytes))
		return false;
	segment = find_data(image->exports, start);
	if (!segment || !segment->executable || start - segment->address >= segment->file_bytes)
		return false;
	left = segment->file_bytes - (start - segment->address);
	if (bytes > left)
		bytes = left;
	code = mem_calloc(1, bytes);
	is_read = elf_exports_read(image->exports, start, code, bytes);
	if (is_read)
		run(image, code, bytes, start);
	free(code);
	return is_read;
}

/* Of a page, also where only a part of it is there; 0 elsewhere. */
static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	const struct image *image = context;
	uint64_t bytes = 8 * image->words_count, into = address - image->start, before = 0;
	const struct elf_segment *segment;

	memset(to, 0, len);
	if (address < image->start && image->start - address < len) {
		before = image->start - address;
		into = 0;
	}
	if (into < bytes) {
		uint64_t some = len - before < bytes - into ? len - before : bytes - into;

		memcpy((char *)to + before, (const char *)image->words + into, some);
		return true;
	}
	segment = find_data(image->exports, address);
	if (!segment || address - segment->address >= segment->file_bytes)
		return false;
	if (len > segment->file_bytes - (address - segment->address))
		len = segment->file_bytes - (address - segment->address);
	return elf_exports_read(image->exports, address, to, len);
}

static bool is_set(void *context, uint64_t address)
{
	const struct image *image = context;
	uint64_t at = (address - image->start) / 8;

	return at < image->words_count && image->set[at] == SET_ONCE;
}

static bool find_code(const struct elf_info *info, struct jvm_file *file)
{
	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];

		if (!segment->executable)
			continue;
		file->code_offset = segment->offset;
		file->code_bytes = segment->file_bytes;
		file->code_address = segment->address;
		return true;
	}
	return false;
}

bool hotspot_file_read(const struct elf_exports *exports, const struct vm_symbols *symbols,
		       struct jvm_file *ret)
{
	struct image image = { .exports = exports };
	struct hotspot_source source = { .memory = { read_image, &image }, .is_set = is_set };
	bool is_read = false;

	*ret = (struct jvm_file){ 0 };
	if (load(&image, symbols) && run_initialisers(&image)) {
		set_entries(&image, symbols);
		is_read = hotspot_process_read_file(&source, symbols, ret) &&
			  find_code(exports->info, ret);
	}
	free(image.words);
	free(image.set);
	return is_read;
}
