/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code from any bytes: the first byte says for which machine, or that the rest is what a
 * worker wrote; 8 bytes of address follow. Instructions cover the code, one after the other.
 */
#include "server/resolve/worker/disassembler.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 9
#define CODE_BYTES_MAX ((size_t)16 << 10)
#define TEXT_CODE_BYTES 64 /* of which a worker's text speaks */
#define ARENA_BYTES ((size_t)64 << 20)

enum { X86_64, AARCH64, TEXT, KINDS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct instruction *list, size_t count, uint64_t address, size_t bytes,
		  bool is_whole)
{
	uint64_t at = address;

	for (size_t i = 0; i < count; i++) {
		if (list[i].address != at || !list[i].bytes)
			abort();
		at += list[i].bytes;
	}
	if (is_whole ? at - address != bytes : at - address > bytes)
		abort();
}

static void parse(struct slice texts, uint64_t address, size_t bytes, bool is_own)
{
	struct instruction *list;
	struct arena arena;
	struct err err;
	size_t count;

	arena_init(&arena, ARENA_BYTES);
	if (!disassembler_parse(texts, address, bytes, &arena, &list, &count, &err))
		check(list, count, address, bytes, is_own);
	else if (is_own)
		abort();
	arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest =
		slice_from(data + HEAD_BYTES, size < HEAD_BYTES ? 0 : size - HEAD_BYTES);
	char *text = NULL;
	uint64_t address;
	size_t len = 0;
	FILE *out;

	if (size < HEAD_BYTES || rest.len > CODE_BYTES_MAX)
		return 0;
	memcpy(&address, data + 1, sizeof(address));
	if (address + rest.len + TEXT_CODE_BYTES < address)
		return 0;
	if (data[0] % KINDS == TEXT) {
		parse(rest, address, TEXT_CODE_BYTES, false);
		return 0;
	}
	out = open_memstream(&text, &len);
	if (!out || disassembler_write(data[0] % KINDS == X86_64 ? EM_X86_64 : EM_AARCH64, address,
				       rest, out))
		abort();
	fclose(out);
	parse(slice_from(text, len), address, rest.len, true);
	free(text);
	return 0;
}
