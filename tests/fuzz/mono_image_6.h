/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a process that runs Mono 6.8, laid out by hand as mono/metadata/domain-internals.h and
 * mono/mini/unwind.c of github.com/mono/mono have it: a table of four entries, three methods and a
 * trampoline, with the unwind information that Debian's build makes for such.
 */
#ifndef FIRN_TESTS_MONO_IMAGE_6_H
#define FIRN_TESTS_MONO_IMAGE_6_H

#include <stdint.h>
#include <string.h>

#include "agent/runtime/dotnet/mono_layout.h"

#define MONO_BASE 0x1000ull
#define MONO_BYTES 0x7000u

/* Addresses. */
#define MONO_DATA MONO_BASE /* variables: the root domain first */
#define MONO_DATA_BYTES 0x40u
#define MONO_DOMAIN 0x2000ull
#define MONO_TABLE 0x2500ull
#define MONO_CHUNK 0x2600ull
#define MONO_INFO(number) (0x3000ull + 0x100 * (number))
#define MONO_METHOD(number) (0x3800ull + 0x40 * (number))
#define MONO_CART 0x3a00ull
#define MONO_LINE 0x3a80ull
#define MONO_NAMES 0x4000ull
#define MONO_UNWINDS 0x4400ull
#define MONO_UNWIND(number) (0x4500ull + 0x80 * (number))
#define MONO_CODE(number) (0x6000ull + 0x200 * (number))
#define MONO_CODE_BYTES 0x100u

/* As mono_file finds it. */
#define MONO_SYMBOLS                                                                               \
	{                                                                                          \
		.domains = MONO_DATA + 8, .domains_count = MONO_DATA + 24,                         \
		.root_domain = MONO_DATA, .data = MONO_DATA, .data_bytes = MONO_DATA_BYTES,        \
		.info_start = 16, .info_size = 28, .info_bits = 32, .is_loading = 25,              \
		.method_class = 8, .method_name = 24, .class_outer = 48, .class_name = 64,         \
		.class_namespace = 72                                                              \
	}

enum mono_bit {
	MONO_CLAUSES,
	MONO_GENERICS = 16,
	MONO_HOLES,
	MONO_EPILOGUE,
	MONO_FROM_FILE = 21,
	MONO_LOADING = 25,
	MONO_TRAMPOLINE = 28,
};

enum mono_entry { MONO_TOTAL, MONO_PRICE, MONO_FAR, MONO_STUB, MONO_ENTRIES };

/* Where in the code of each method the epilogue begins. */
#define MONO_END 0xe0u

struct mono_forged {
	uint8_t bytes[MONO_BYTES];
};

static inline void mono_put(struct mono_forged *forged, uint64_t at, uint64_t value, size_t bytes)
{
	memcpy(forged->bytes + (at - MONO_BASE), &value, bytes);
}

static inline void mono_put_bytes(struct mono_forged *forged, uint64_t at, const void *bytes,
				  size_t len)
{
	memcpy(forged->bytes + (at - MONO_BASE), bytes, len);
}

/* sub $24,%rsp; ... add $24,%rsp; ret */
#define MONO_UNWIND_TOTAL "\x0c\x07\x08\x90\x01\x44\x0e\x20\x1c\x0a\x44\x0c\x07\x08\x41\x0b"
/* push %rbp; mov %rsp,%rbp; ... leave; ret */
#define MONO_UNWIND_PRICE                                                                          \
	"\x0c\x07\x08\x90\x01\x41\x0e\x10\x86\x02\x43\x0d\x06\x1c\x0a\x41\x08\x06\x0c\x07\x08\x41" \
	"\x0b"
/* sub $0xd8,%rsp; mov %rbp,0x30(%rsp); ... add $0xd8,%rsp; ret */
#define MONO_UNWIND_FAR                                                                            \
	"\x0c\x07\x08\x90\x01\x47\x0e\xe0\x01\x4a\x86\x16\x1c\x0a\x08\x06\x47\x0c\x07\x08\x41\x0b"
/* pop %r11; push %rbp; mov %rsp,%rbp; copies of rsp, rbp and the return address; ... leave */
#define MONO_UNWIND_STUB                                                                           \
	"\x0c\x07\x10\x90\x01\x47\x0e\x08\x41\x0e\x10\x86\x02\x43\x0d\x06\x4b\x87\x35\x4b\x86\x34" \
	"\x4b\x90\x29\x02\x60\x0c\x07\x08"

static const struct {
	const char *program;
	size_t len;
	uint32_t epilogue_at; /* behind the MonoJitInfo's beginning */
	uint32_t bits, ret;   /* ret: how far in the epilogue it is */
} mono_entries[MONO_ENTRIES] = {
	[MONO_TOTAL] = { MONO_UNWIND_TOTAL, sizeof(MONO_UNWIND_TOTAL) - 1, 0x38,
			 1u << MONO_EPILOGUE, 4 },
	/* Two clauses, generics, and three holes. */
	[MONO_PRICE] = { MONO_UNWIND_PRICE, sizeof(MONO_UNWIND_PRICE) - 1,
			 0x38 + 2 * 0x40 + 0x20 + 4 + 3 * 8,
			 2u | 1u << MONO_GENERICS | 1u << MONO_HOLES | 1u << MONO_EPILOGUE, 1 },
	[MONO_FAR] = { MONO_UNWIND_FAR, sizeof(MONO_UNWIND_FAR) - 1, 0x38, 1u << MONO_EPILOGUE, 7 },
	[MONO_STUB] = { MONO_UNWIND_STUB, sizeof(MONO_UNWIND_STUB) - 1, 0, 1u << MONO_TRAMPOLINE,
			0 },
};

static inline uint64_t mono_put_name(struct mono_forged *forged, uint64_t at, const char *name,
				     uint64_t *next)
{
	mono_put(forged, at, *next, 8);
	mono_put_bytes(forged, *next, name, strlen(name) + 1);
	return *next += strlen(name) + 1;
}

static inline void mono_put_names(struct mono_forged *forged)
{
	static const char *const methods[] = { "Total", "Price", "Far" };
	uint64_t next = MONO_NAMES;

	for (unsigned int i = 0; i < 3; i++) {
		mono_put(forged, MONO_METHOD(i) + 8, i == MONO_PRICE ? MONO_LINE : MONO_CART, 8);
		mono_put_name(forged, MONO_METHOD(i) + 24, methods[i], &next);
	}
	mono_put_name(forged, MONO_CART + 64, "Cart", &next);
	mono_put_name(forged, MONO_CART + 72, "Shop", &next);
	mono_put(forged, MONO_LINE + 48, MONO_CART, 8);
	mono_put_name(forged, MONO_LINE + 64, "Line", &next);
	mono_put_name(forged, MONO_LINE + 72, "", &next);
}

static inline void mono_put_entry(struct mono_forged *forged, unsigned int number)
{
	uint64_t info = MONO_INFO(number), epilogue = info + mono_entries[number].epilogue_at;

	mono_put(forged, MONO_CHUNK + 24 + 8ull * number, info, 8);
	mono_put(forged, info, MONO_METHOD(number), 8);
	mono_put(forged, info + 16, MONO_CODE(number), 8);
	mono_put(forged, info + 24, number, 4);
	mono_put(forged, info + 28, MONO_CODE_BYTES, 4);
	mono_put(forged, info + 32, mono_entries[number].bits, 4);
	if (number == MONO_PRICE)
		mono_put(forged, epilogue - 4 - 3 * 8ull, 3, 2); /* holes */
	if (mono_entries[number].epilogue_at)
		mono_put(forged, epilogue + 4, MONO_CODE_BYTES - MONO_END, 4);
	mono_put(forged, MONO_UNWINDS + 8ull * number, MONO_UNWIND(number), 8);
	mono_put(forged, MONO_UNWIND(number), mono_entries[number].len, 4);
	mono_put_bytes(forged, MONO_UNWIND(number) + 4, mono_entries[number].program,
		       mono_entries[number].len);
	mono_put(forged, MONO_CODE(number) + MONO_END + mono_entries[number].ret, 0xc3, 1);
}

static inline void mono_forge(struct mono_forged *forged)
{
	memset(forged, 0, sizeof(*forged));
	mono_put(forged, MONO_DATA, MONO_DOMAIN, 8);
	mono_put(forged, MONO_DATA + 16, MONO_NAMES, 8); /* of another kind */
	mono_put(forged, MONO_DATA + 32, MONO_UNWINDS, 8);
	mono_put(forged, MONO_DOMAIN + 0x148, MONO_TABLE, 8);
	mono_put(forged, MONO_TABLE, MONO_DOMAIN, 8);
	mono_put(forged, MONO_TABLE + 8, 1, 4);
	mono_put(forged, MONO_TABLE + 16, MONO_CHUNK, 8);
	mono_put(forged, MONO_CHUNK, 1, 4);
	mono_put(forged, MONO_CHUNK + 4, MONO_ENTRIES, 4);
	mono_put_names(forged);
	for (unsigned int i = 0; i < MONO_ENTRIES; i++)
		mono_put_entry(forged, i);
}

#endif
