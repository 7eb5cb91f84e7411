/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a process that runs CoreCLR 8, laid out by hand as docs/design/coreclr/botr and the
 * headers of github.com/dotnet/runtime have it: one heap with a method and its funclet, one
 * ready-to-run image with two functions, and the metadata that names them.
 */
#ifndef FIRN_TESTS_DOTNET_IMAGE_8_H
#define FIRN_TESTS_DOTNET_IMAGE_8_H

#include <stdint.h>
#include <string.h>

#define DOTNET_BASE 0x1000ull
#define DOTNET_BYTES 0xb000u

/* Addresses. */
#define DOTNET_DAC DOTNET_BASE
#define DOTNET_MODULE 0x1100ull
#define DOTNET_METHOD (DOTNET_CHUNK + 24 + 8)
#define DOTNET_CHUNK 0x1300ull
#define DOTNET_TABLE 0x1380ull
#define DOTNET_HEAP_NODE 0x1400ull
#define DOTNET_SECTIONS 0x1500ull
#define DOTNET_FRAGMENTS 0x1600ull
#define DOTNET_NIBBLES 0x1700ull
#define DOTNET_HEADER 0x1800ull
#define DOTNET_LEVELS 0x2000ull
#define DOTNET_METADATA 0x5000ull
#define DOTNET_CODE 0x7000ull /* the heap's, to 0x8000 */
#define DOTNET_START (DOTNET_CODE + 0x40)
#define DOTNET_FUNCLET (DOTNET_CODE + 0x80)
#define DOTNET_IMAGE_AT 0x9000ull /* to 0xb000 */
#define DOTNET_IMAGE_CODE 0x1000u /* relative */

struct dotnet_forged {
	uint8_t bytes[DOTNET_BYTES];
};

static inline void dotnet_put(struct dotnet_forged *forged, uint64_t at, uint64_t value,
			      size_t bytes)
{
	memcpy(forged->bytes + (at - DOTNET_BASE), &value, bytes);
}

static inline void dotnet_put_bytes(struct dotnet_forged *forged, uint64_t at, const void *bytes,
				    size_t len)
{
	memcpy(forged->bytes + (at - DOTNET_BASE), bytes, len);
}

/* push %rax; call; add $8,%rsp; ret: what small methods are like. */
#define DOTNET_SMALL_CODE "\x50\xe8\0\0\0\0\x48\x83\xc4\x08\xc3"
#define DOTNET_SMALL_UNWIND "\x19\x01\x01\x00\x01\x02\0\0"
#define DOTNET_SMALL_BYTES 11u

static const char dotnet_strings[] = "\0Module\0Shop\0Cart\0Total\0Line\0Price\0<Module>";

enum dotnet_string {
	DOTNET_S_MODULE = 1,
	DOTNET_S_SHOP = 8,
	DOTNET_S_CART = 13,
	DOTNET_S_TOTAL = 18,
	DOTNET_S_LINE = 24,
	DOTNET_S_PRICE = 29,
};

static inline uint64_t dotnet_put_type(struct dotnet_forged *forged, uint64_t at, uint64_t name,
				       uint64_t space, uint64_t first_method)
{
	dotnet_put(forged, at + 4, name, 2);
	dotnet_put(forged, at + 6, space, 2);
	dotnet_put(forged, at + 12, first_method, 2);
	return at + 14;
}

static inline uint64_t dotnet_put_method(struct dotnet_forged *forged, uint64_t at, uint64_t name)
{
	dotnet_put(forged, at + 8, name, 2);
	return at + 14;
}

/* Types Shop.Cart, with the method Total, and Line in it, with Price. */
static inline void dotnet_put_metadata(struct dotnet_forged *forged)
{
	uint64_t at = DOTNET_METADATA, tables = at + 0x60, row;

	dotnet_put_bytes(forged, at, "BSJB\1\0\1\0\0\0\0\0\4\0\0\0v4\0\0\0\0\2\0", 24);
	dotnet_put(forged, at + 24, 0x60, 4);
	dotnet_put(forged, at + 28, 0x200, 4);
	dotnet_put_bytes(forged, at + 32, "#~\0", 4);
	dotnet_put(forged, at + 36, 0x400, 4);
	dotnet_put(forged, at + 40, sizeof(dotnet_strings), 4);
	dotnet_put_bytes(forged, at + 44, "#Strings\0\0\0", 12);
	dotnet_put_bytes(forged, at + 0x400, dotnet_strings, sizeof(dotnet_strings));
	dotnet_put(forged, tables + 8, 1ull << 2 | 1ull << 6 | 1ull << 0x29, 8);
	dotnet_put(forged, tables + 24, 3, 4); /* types: <Module> is the first */
	dotnet_put(forged, tables + 28, 2, 4); /* methods */
	dotnet_put(forged, tables + 32, 1, 4); /* nested types */
	row = dotnet_put_type(forged, tables + 36, 35, 0, 1);
	row = dotnet_put_type(forged, row, DOTNET_S_CART, DOTNET_S_SHOP, 1);
	row = dotnet_put_type(forged, row, DOTNET_S_LINE, 0, 2);
	row = dotnet_put_method(forged, row, DOTNET_S_TOTAL);
	row = dotnet_put_method(forged, row, DOTNET_S_PRICE);
	dotnet_put(forged, row, 3, 2);
	dotnet_put(forged, row + 2, 2, 2);
}

/* The first method of the module, and a funclet of it. */
static inline void dotnet_put_heap(struct dotnet_forged *forged)
{
	dotnet_put(forged, DOTNET_MODULE + 0x108, DOTNET_METADATA + 0x400 + DOTNET_S_MODULE, 8);
	dotnet_put(forged, DOTNET_TABLE + 24, DOTNET_MODULE, 8);
	dotnet_put(forged, DOTNET_CHUNK, DOTNET_TABLE, 8);
	dotnet_put(forged, DOTNET_METHOD, 1, 2);
	dotnet_put(forged, DOTNET_METHOD + 2, 1, 1);
	dotnet_put(forged, DOTNET_HEAP_NODE + 16, DOTNET_CODE, 8);
	dotnet_put(forged, DOTNET_HEAP_NODE + 24, DOTNET_CODE + 0x200, 8);
	dotnet_put(forged, DOTNET_HEAP_NODE + 32, DOTNET_CODE, 8);
	dotnet_put(forged, DOTNET_HEAP_NODE + 40, DOTNET_NIBBLES, 8);
	dotnet_put(forged, DOTNET_NIBBLES, 1u << 20, 4); /* the third bucket, at its start */
	dotnet_put(forged, DOTNET_START - 8, DOTNET_HEADER, 8);
	dotnet_put(forged, DOTNET_HEADER + 24, DOTNET_METHOD, 8);
	dotnet_put(forged, DOTNET_HEADER + 32, 2, 4);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t part = DOTNET_HEADER + 36 + 12 * i, start = 0x40 + 0x40 * i;

		dotnet_put(forged, part, start, 4);
		dotnet_put(forged, part + 4, start + DOTNET_SMALL_BYTES, 4);
		dotnet_put(forged, part + 8, 0x100, 4);
		dotnet_put_bytes(forged, DOTNET_CODE + start, DOTNET_SMALL_CODE,
				 DOTNET_SMALL_BYTES);
	}
	dotnet_put_bytes(forged, DOTNET_CODE + 0x100, DOTNET_SMALL_UNWIND, 8);
}

/* Functions of the methods 2 and 1, in this order. */
static inline void dotnet_put_image(struct dotnet_forged *forged)
{
	uint64_t at = DOTNET_IMAGE_AT, native = at + 0x300;

	dotnet_put(forged, at, 0x5a4d, 2);
	dotnet_put(forged, at + 60, 0x80, 4);
	dotnet_put(forged, at + 0x80, 0x4550, 4);
	dotnet_put(forged, at + 0x98, 0x20b, 2);
	dotnet_put(forged, at + 0x98 + 108, 16, 4);
	dotnet_put(forged, at + 0x98 + 112 + 8 * 14, 0x200, 4);
	dotnet_put(forged, at + 0x200 + 64, 0x300, 4);
	dotnet_put(forged, native, 0x00525452, 4);
	dotnet_put(forged, native + 12, 2, 4);
	dotnet_put_bytes(forged, native + 16, "\x66\0\0\0\0\4\0\0\x18\0\0\0", 12);
	dotnet_put_bytes(forged, native + 28, "\x67\0\0\0\0\5\0\0\x10\0\0\0", 12);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t part = at + 0x400 + 12 * i, start = DOTNET_IMAGE_CODE + 0x20 * i;

		dotnet_put(forged, part, start, 4);
		dotnet_put(forged, part + 4, start + DOTNET_SMALL_BYTES, 4);
		dotnet_put(forged, part + 8, 0x600, 4);
		dotnet_put_bytes(forged, at + start, DOTNET_SMALL_CODE, DOTNET_SMALL_BYTES);
	}
	dotnet_put_bytes(forged, at + 0x600, DOTNET_SMALL_UNWIND, 8);
	/* Two elements; a block at 1; three nodes with one child, one with two; their values. */
	dotnet_put_bytes(forged, at + 0x500, "\x10\x01\x02\x02\x02\x16\x04\x00", 8);
}

static inline void dotnet_forge(struct dotnet_forged *forged)
{
	memset(forged, 0, sizeof(*forged));
	dotnet_put(forged, DOTNET_DAC, DOTNET_LEVELS, 8);
	for (uint64_t i = 0; i < 4; i++)
		dotnet_put(forged, DOTNET_LEVELS + 0x800 * i + 8 * i,
			   DOTNET_LEVELS + 0x800 * (i + 1), 8);
	dotnet_put(forged, DOTNET_LEVELS + 0x800 * 4, DOTNET_FRAGMENTS | 1, 8);
	dotnet_put(forged, DOTNET_FRAGMENTS, DOTNET_FRAGMENTS + 0x40, 8);
	dotnet_put(forged, DOTNET_FRAGMENTS + 24, DOTNET_SECTIONS, 8);
	dotnet_put(forged, DOTNET_FRAGMENTS + 0x40 + 24, DOTNET_SECTIONS + 0x40, 8);
	dotnet_put(forged, DOTNET_SECTIONS, DOTNET_CODE, 8);
	dotnet_put(forged, DOTNET_SECTIONS + 8, DOTNET_CODE + 0x1000, 8);
	dotnet_put(forged, DOTNET_SECTIONS + 16, 2, 8);
	dotnet_put(forged, DOTNET_SECTIONS + 40, DOTNET_HEAP_NODE, 8);
	dotnet_put(forged, DOTNET_SECTIONS + 0x40, DOTNET_IMAGE_AT, 8);
	dotnet_put(forged, DOTNET_SECTIONS + 0x48, DOTNET_IMAGE_AT + 0x2000, 8);
	dotnet_put(forged, DOTNET_SECTIONS + 0x40 + 32, DOTNET_MODULE, 8);
	dotnet_put_metadata(forged);
	dotnet_put_heap(forged);
	dotnet_put_image(forged);
}

#endif
