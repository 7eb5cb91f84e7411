/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout: V8's src/snapshot/snapshot.cc (SnapshotImpl), src/snapshot/snapshot-data.h.
 */
#include "agent/runtime/v8/v8_content.h"

#include <stdlib.h>
#include <string.h>

#include "agent/runtime/text_search.h"
#include "base/mem.h"

#define CODE_BYTES_MIN ((uint64_t)16 << 20)
#define NAMES_BYTES_MAX ((uint64_t)2 << 20)

#define HEAD_VERSION_AT 16u
#define HEAD_VERSION_BYTES 64u
#define HEAD_OFFSETS_AT (HEAD_VERSION_AT + HEAD_VERSION_BYTES)
#define HEAD_OFFSETS 2u /* besides one for each context */
#define CONTEXTS_MAX 16u
#define MAGIC_HIGH "\xde\xc0"

/* In all versions, and only where pointers are compressed. */
#define SENTENCE "Embedder-vs-V8 build configuration mismatch"
#define SENTENCE_OF_COMPRESSED "V8 pointer compression cage"

static bool reads_number(const char **text, uint32_t max, uint32_t *ret)
{
	uint32_t number = 0;

	if (**text < '0' || **text > '9')
		return false;
	for (; **text >= '0' && **text <= '9' && number <= max; (*text)++)
		number = number * 10 + (uint32_t)(**text - '0');
	*ret = number;
	return number <= max;
}

/* "15.0.245.2-rusty", "15.6.75" */
static bool read_version(const char *text, struct v8_content *ret)
{
	uint32_t patch;

	if (!reads_number(&text, 99, &ret->major) || *text++ != '.' ||
	    !reads_number(&text, 99, &ret->minor) || *text++ != '.' ||
	    !reads_number(&text, 9999, &ret->build))
		return false;
	if (*text == '.' && (text++, !reads_number(&text, 9999, &patch)))
		return false;
	return *text == '\0' || *text == '-';
}

static uint32_t number_at(const uint8_t *bytes)
{
	uint32_t number;

	memcpy(&number, bytes, sizeof(number));
	return number;
}

static size_t head_bytes(uint32_t contexts)
{
	return (HEAD_OFFSETS_AT + 4 * (HEAD_OFFSETS + (size_t)contexts) + 7) & ~(size_t)7;
}

static bool read_head_of(const uint8_t *head, uint32_t contexts, struct v8_content *ret)
{
	char text[HEAD_VERSION_BYTES + 1] = "";
	size_t len;

	if (number_at(head) != contexts || number_at(head + 4) > 1)
		return false;
	memcpy(text, head + HEAD_VERSION_AT, HEAD_VERSION_BYTES);
	len = strlen(text);
	for (size_t i = len; i < HEAD_VERSION_BYTES; i++)
		if (text[i])
			return false;
	return read_version(text, ret);
}

bool v8_content_read_head(const uint8_t *bytes, size_t len, size_t at, struct v8_content *ret)
{
	struct v8_content found = { .is_compressed = ret->is_compressed };

	if (at + 4 > len || number_at(bytes + at) >> 16 != 0xc0de)
		return false;
	for (uint32_t contexts = 1; contexts <= CONTEXTS_MAX && head_bytes(contexts) <= at;
	     contexts++)
		if (read_head_of(bytes + at - head_bytes(contexts), contexts, &found)) {
			*ret = found;
			return true;
		}
	return false;
}

static bool find_sentence(void *context, const char *piece, size_t len, size_t own)
{
	(void)context;
	(void)own;
	return memmem(piece, len, SENTENCE, sizeof(SENTENCE) - 1);
}

static void find_snapshot(const char *piece, size_t len, struct v8_content *ret)
{
	const char *at = piece, *end = piece + len;

	while (!ret->major && (at = memmem(at, (size_t)(end - at), MAGIC_HIGH, 2)) != NULL) {
		if (at - piece >= 2)
			v8_content_read_head((const uint8_t *)piece, len, (size_t)(at - piece) - 2,
					     ret);
		at++;
	}
}

static bool find_rest(void *context, const char *piece, size_t len, size_t own)
{
	struct v8_content *ret = context;

	(void)own;
	if (memmem(piece, len, SENTENCE_OF_COMPRESSED, sizeof(SENTENCE_OF_COMPRESSED)))
		ret->is_compressed = true;
	find_snapshot(piece, len, ret);
	return ret->is_compressed && ret->major;
}

/* In all that is no code. */
static bool search(const struct elf_exports *symbols, text_search_f *look, struct v8_content *ret)
{
	const struct elf_info *info = symbols->info;
	uint64_t left = V8_CONTENT_BYTES_MAX;
	bool found = false;

	for (size_t i = 0; i < info->segments_count && !found; i++) {
		const struct elf_segment *segment = &info->segments[i];
		uint64_t bytes = segment->file_bytes < left ? segment->file_bytes : left;

		if (segment->executable)
			continue;
		left -= bytes;
		found = text_search(symbols->fd, segment->offset, bytes, look, ret);
	}
	return found;
}

static bool has_much_code(const struct elf_info *info)
{
	for (size_t i = 0; i < info->segments_count; i++)
		if (info->segments[i].executable && info->segments[i].file_bytes >= CODE_BYTES_MIN)
			return true;
	return false;
}

/* Of functions that V8 imports, or exports if it is linked with an allocator. */
static bool has_names(const struct elf_exports *symbols)
{
	static const char *const wanted[] = { "pthread_getattr_np", "mremap", "madvise" };
	size_t found = 0;
	char *names;

	if (symbols->names_bytes > NAMES_BYTES_MAX)
		return false;
	names = mem_new_array(char, symbols->names_bytes + 1);
	if (elf_exports_read(symbols, symbols->names, names, symbols->names_bytes))
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			found += memmem(names, symbols->names_bytes, wanted[i],
					strlen(wanted[i]) + 1) != NULL;
	free(names);
	return found == sizeof(wanted) / sizeof(wanted[0]);
}

bool v8_content_find(const struct elf_exports *symbols, struct v8_content *ret)
{
	*ret = (struct v8_content){ 0 };
	if (!has_much_code(symbols->info) || !has_names(symbols) ||
	    !search(symbols, find_sentence, ret))
		return false;
	search(symbols, find_rest, ret);
	return true;
}
