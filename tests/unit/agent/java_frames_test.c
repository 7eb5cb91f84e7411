/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which methods run at an instruction of compiled code, by what the compiler recorded of others:
 * code of Java 11, in which a recursion and a loop at its end are inlined into themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/hotspot/hotspot_process.h"
#include "agent/runtime/hotspot/java_frames.h"
#include "agent/runtime/hotspot/java_poll.h"
#include "fuzz/hotspot_layout_17.h"

/* Where things lie in the memory; of the blob, in it. */
#define BLOB 0u
#define METADATA 672u
#define SCOPES 704u
#define PCS 728u
#define BLOB_END 1024u
#define METHODS 1024u
#define METHOD_BYTES 512u

#define CODE 432u
#define BASE 0x10000ull

static uint8_t image[4096];

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address < BASE || address - BASE > sizeof(image) ||
	    len > sizeof(image) - (address - BASE))
		return false;
	memcpy(to, image + (address - BASE), len);
	return true;
}

static const struct memory_reader image_memory = { read_image, NULL };

/* long dive(int depth) { return depth == 0 ? hotLeaf() : dive(depth - 1) + 1; } */
static const uint8_t dive[] = {
	0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 0: mov %eax, -0x14000(%rsp) */
	0x55,					  /* push %rbp */
	0x48, 0x83, 0xec, 0x10,			  /* sub $16, %rsp */
	0x33, 0xc0,				  /* xor %eax, %eax */
	0x41, 0xba, 0x01, 0x00, 0x00, 0x00,	  /* mov $1, %r10d */
	0x49, 0xbb, 0x98, 0x2a, 0xd5, 0x9e, 0x06, 0x00, 0x00, 0x00, /* movabs to %r11 */
	0x85, 0xf6,						    /* 30: test %esi, %esi */
	0x74, 0x3f,						    /* je 97 */
	0x83, 0xfe, 0x01,					    /* cmp $1, %esi */
	0x0f, 0x84, 0x66, 0x00, 0x00, 0x00,			    /* je 145 */
	0x83, 0xc6, 0xfe,					    /* add $-2, %esi */
	0x90,							    /* nop */
	0xe8, 0xcc, 0xff, 0xff, 0xff,				    /* 47: call 0 */
	0x48, 0x83, 0xc0, 0x01,					    /* 52: add $1, %rax */
	0x48, 0x83, 0xc0, 0x01,					    /* 56: add $1, %rax */
	0x48, 0x83, 0xc4, 0x10,					    /* add $16, %rsp */
	0x5d,							    /* pop %rbp */
	0x4d, 0x8b, 0x97, 0x08, 0x01, 0x00, 0x00,		    /* mov 0x108(%r15), %r10 */
	0x41, 0x85, 0x02,					    /* test %eax, (%r10) */
	0xc3,							    /* ret */
	0x0f, 0x1f, 0x40, 0x00,					    /* nop */
	0x4d, 0x8b, 0xc2,					    /* 80: mov %r10, %r8 */
	0x4c, 0x0f, 0xaf, 0xc0,					    /* imul %rax, %r8 */
	0x4d, 0x33, 0xc2,					    /* xor %r10, %r8 */
	0x49, 0x03, 0xc0,					    /* add %r8, %rax */
	0x49, 0x83, 0xc2, 0x01,					    /* add $1, %r10 */
	0x4d, 0x8b, 0x87, 0x08, 0x01, 0x00, 0x00,		    /* 97: mov 0x108(%r15), %r8 */
	0x41, 0x85, 0x00,					    /* 104: test %eax, (%r8) */
	0x49, 0x81, 0xfa, 0x20, 0x4e, 0x00, 0x00,		    /* 107: cmp $20000, %r10 */
	0x7c, 0xdc,						    /* 114: jl 80 */
	0x49, 0x89, 0x43, 0x78,					    /* 116: mov %rax, 0x78(%r11) */
	0xf0, 0x83, 0x44, 0x24, 0xc0, 0x00,			    /* lock addl $0, -64(%rsp) */
	0xeb, 0xbc,						    /* jmp 60 */
	0x4d, 0x8b, 0xc2,					    /* 128: mov %r10, %r8 */
	0x4c, 0x0f, 0xaf, 0xc0,					    /* imul %rax, %r8 */
	0x4d, 0x33, 0xc2,					    /* xor %r10, %r8 */
	0x49, 0x03, 0xc0,					    /* add %r8, %rax */
	0x49, 0x83, 0xc2, 0x01,					    /* add $1, %r10 */
	0x4d, 0x8b, 0x87, 0x08, 0x01, 0x00, 0x00,		    /* 145: mov 0x108(%r15), %r8 */
	0x41, 0x85, 0x00,					    /* 152: test %eax, (%r8) */
	0x49, 0x81, 0xfa, 0x20, 0x4e, 0x00, 0x00,		    /* cmp $20000, %r10 */
	0x7c, 0xdc,						    /* 162: jl 128 */
	0x49, 0x89, 0x43, 0x78,					    /* 164: mov %rax, 0x78(%r11) */
	0xf0, 0x83, 0x44, 0x24, 0xc0, 0x00,			    /* lock addl $0, -64(%rsp) */
	0xeb, 0x88,						    /* jmp 56 */
};

enum { DIVE, LEAF };

/* Each: the outer scope, the method (from 1 on), the bytecode + 1. Offset 0 is none. */
static const uint8_t scopes[] = {
	0,  0,	      1 + DIVE, 1 + 13, /* 1 */
	1,  1 + DIVE, 1 + 13,		/* 4: the recursion, in itself */
	0,  1 + DIVE, 1 + 4,		/* 7 */
	7,  1 + LEAF, 1 + 24,		/* 10: the loop */
	1,  1 + DIVE, 1 + 4,		/* 13 */
	13, 1 + LEAF, 1 + 24,		/* 16: the loop in what is inlined */
};

struct pc {
	int32_t at, scope, objects, flags;
};

static const struct pc pcs[] = {
	{ -1, 0, 0, 0 }, { 52, 4, 0, 0 }, { 104, 10, 0, 1 }, { 152, 16, 0, 1 }, { 233, 0, 0, 0 },
};

static const struct hotspot_process process = {
	.walk = { .low = BASE, .bytes = BLOB_END },
	.layout = { HOTSPOT_LAYOUT_17 },
};

static void write_at(uint32_t at, const void *bytes, size_t len)
{
	assert_true(at + len <= sizeof(image));
	memcpy(image + at, bytes, len);
}

static void write_number(uint32_t at, uint64_t value, size_t bytes)
{
	write_at(at, &value, bytes);
}

static void write_symbol(uint32_t at, const char *text)
{
	write_number(at + 4, strlen(text), 2);
	write_at(at + 6, text, strlen(text));
}

/* Method, ConstMethod, pool, class and two symbols, one behind another. */
static uint64_t write_method(uint32_t index, const char *name)
{
	uint32_t at = METHODS + index * METHOD_BYTES;

	write_number(at + 8, BASE + at + 64, 8);
	write_number(at + 64 + 8, BASE + at + 160, 8);
	write_number(at + 64 + 34, 1, 2);
	write_number(at + 160 + 24, BASE + at + 304, 8);
	write_number(at + 160 + 60, 2, 4);
	write_number(at + 160 + 72 + 8, BASE + at + 400, 8);
	write_number(at + 304 + 24, BASE + at + 448, 8);
	write_symbol(at + 400, name);
	write_symbol(at + 448, "Chains");
	return BASE + at;
}

static struct java_code *read_dive(void)
{
	struct java_code *code;
	uint64_t methods[] = { 0, 0 };

	memset(image, 0, sizeof(image));
	methods[DIVE] = write_method(DIVE, "dive");
	methods[LEAF] = write_method(LEAF, "hotLeaf");
	write_at(640 + BLOB, "nmethod", 8);
	write_number(BLOB + 96, BASE + 640 + BLOB, 8);
	write_number(BLOB + 32, BASE + CODE, 8);
	write_number(BLOB + 112, methods[DIVE], 8);
	write_number(BLOB + 120, BASE + SCOPES, 8);
	write_number(BLOB + 260, METADATA, 4);
	write_number(BLOB + 268, PCS, 4);
	write_number(BLOB + 272, PCS + sizeof(pcs), 4);
	write_at(CODE, dive, sizeof(dive));
	write_at(METADATA, methods, sizeof(methods));
	write_at(SCOPES, scopes, sizeof(scopes));
	write_at(PCS, pcs, sizeof(pcs));
	code = java_code_read(&image_memory, &process, BASE + BLOB);
	assert_non_null(code);
	assert_int_equal(code->places_count, 3);
	return code;
}

/* Outermost first: "dive hotLeaf". */
static void assert_frames(const struct java_code *code, uint32_t position, const char *wanted)
{
	struct java_frame frames[JAVA_INLINED_MAX];
	char found[256] = "";

	for (size_t i = java_frames_at(code, position, frames); i-- > 0;) {
		const char *name = frames[i].method->function;
		const char *dot = strrchr(name, '.');

		strcat(found, found[0] ? " " : "");
		strcat(found, dot ? dot + 1 : name);
	}
	assert_string_equal(found, wanted);
}

static void test_loop_at_the_end_of_recursion(void **state)
{
	struct java_code *code = read_dive();

	(void)state;
	for (uint32_t at = 80; at <= 114; at++)
		assert_frames(code, CODE + at, "dive hotLeaf");
	for (uint32_t at = 128; at <= 162; at++)
		assert_frames(code, CODE + at, "dive dive hotLeaf");
	java_code_free(code);
}

static void test_calls_are_exact(void **state)
{
	struct java_code *code = read_dive();

	(void)state;
	assert_frames(code, CODE + 51, "dive dive"); /* by the return address */
	assert_frames(code, CODE + 52, "dive dive"); /* just returned */
	java_code_free(code);
}

/* What is inlined once is there or not, as the next record says: nearly all code is such. */
static void test_inlined_without_recursion(void **state)
{
	char outer[] = "A.outer", inner[] = "A.inner";
	struct java_method methods[] = { { .function = outer }, { .function = inner } };
	struct java_scope chains[] = { { JAVA_NO_SCOPE, 0, 1 }, { 0, 1, 2 } };
	struct java_place places[] = { { 100, 120, 1 }, { 140, 160, 0 } };
	struct java_code code = { .methods = methods,
				  .methods_count = 2,
				  .scopes = chains,
				  .scopes_count = 2,
				  .places = places,
				  .places_count = 2 };

	(void)state;
	assert_frames(&code, 10, "outer inner");
	assert_frames(&code, 110, "outer inner");
	assert_frames(&code, 130, "outer");
	assert_frames(&code, 170, "outer");
	code.places_count = 0;
	assert_frames(&code, 10, "outer");
}

#define DEPTH 200u

/* C2 inlines method handles, and with its option any methods, a hundred deep. */
static void test_inlined_deeply(void **state)
{
	char names[2][8] = { "A.outer", "A.inner" };
	struct java_method methods[] = { { .function = names[0] }, { .function = names[1] } };
	struct java_scope chain[DEPTH];
	struct java_place places[] = { { 100, 120, 115 }, { 140, 160, DEPTH - 1 } };
	struct java_code code = { .methods = methods,
				  .methods_count = 2,
				  .scopes = chain,
				  .scopes_count = DEPTH,
				  .places = places,
				  .places_count = 2 };
	struct java_frame frames[JAVA_INLINED_MAX];

	(void)state;
	for (uint32_t i = 0; i < DEPTH; i++)
		chain[i] = (struct java_scope){ i ? i - 1 : JAVA_NO_SCOPE, i > 0, 1 };
	assert_int_equal(java_frames_at(&code, 110, frames), 116);
	assert_ptr_equal(frames[0].method, &methods[1]);
	assert_ptr_equal(frames[114].method, &methods[1]);
	assert_ptr_equal(frames[115].method, &methods[0]);
	/* Of too many, the compiled one and the innermost. */
	assert_int_equal(java_frames_at(&code, 150, frames), JAVA_INLINED_MAX);
	assert_ptr_equal(frames[JAVA_INLINED_MAX - 1].method, &methods[0]);
	assert_null(frames[JAVA_INLINED_MAX - 2].method);
	assert_ptr_equal(frames[JAVA_INLINED_MAX - 3].method, &methods[1]);
}

#define AT_POLL(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define NOPS 0x90, 0x90, 0x90, 0x90

static void assert_loop(const uint8_t *code, size_t len, uint32_t poll, uint32_t begin,
			uint32_t end)
{
	struct java_loop loop;

	assert_true(java_poll_loop(code, len, poll, &loop));
	assert_int_equal(loop.begin, begin);
	assert_int_equal(loop.end, end);
	/* Not without its last byte. */
	assert_false(java_poll_loop(code, len - 1, poll, &loop));
}

static void test_loops(void **state)
{
	(void)state;
	/* of 8: the page of polls is at an offset; a branch of four bytes */
	assert_loop(AT_POLL(NOPS, 0x85, 0x05, 1, 2, 3, 4, 0x0f, 0x8c, 0xf2, 0xff, 0xff, 0xff), 4, 2,
		    10);
	/* A branch onwards, one back to behind the poll; jmp. */
	assert_loop(AT_POLL(NOPS, 0x41, 0x85, 0x02, 0x74, 0x05, 0x7c, 0xfc, 0xeb, 0xf3), 4, 0, 11);
	/* vmovdqu (%r10), %ymm0 in both forms, vpaddd, AVX-512, movabs, add imm8(mem), test imm */
	assert_loop(AT_POLL(0x85, 0x00, 0xc4, 0xc1, 0x7e, 0x6f, 0x02, 0xc5, 0xfe, 0x6f, 0x44, 0x24,
			    0x10, 0xc5, 0xfd, 0xfe, 0xc1, 0x62, 0xf1, 0x7d, 0x48, 0xfe, 0xc1, 0x48,
			    0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0x83, 0x44, 0x24, 0x08, 0x70, 0xf7, 0x04,
			    0x24, 0x7c, 0xb0, 0, 0, 0x66, 0x81, 0xf9, 0x7c, 0x80, 0x7c, 0xcc),
		    0, 0, 50);
}

static void test_no_loops(void **state)
{
	struct java_loop loop;

	(void)state;
	/* no poll: what is compared is a register; read by 8 bytes */
	assert_false(java_poll_loop(AT_POLL(0x85, 0xc0, 0x7c, 0xfc), 0, &loop));
	assert_false(java_poll_loop(AT_POLL(0x48, 0x85, 0x00, 0x7c, 0xfb), 0, &loop));
	/* it returns, or jumps onwards */
	assert_false(java_poll_loop(AT_POLL(0x85, 0x00, 0xc3, 0x7c, 0xfb), 0, &loop));
	assert_false(java_poll_loop(AT_POLL(0x85, 0x00, 0xeb, 0x02, 0x7c, 0xfa), 0, &loop));
	/* back to before the method; no instruction; beyond the end */
	assert_false(java_poll_loop(AT_POLL(0x85, 0x00, 0x7c, 0xfb), 0, &loop));
	assert_false(java_poll_loop(AT_POLL(0x85, 0x00, 0x06, 0x7c, 0xfb), 0, &loop));
	assert_false(java_poll_loop(AT_POLL(0x85, 0x00), 7, &loop));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop_at_the_end_of_recursion),
		cmocka_unit_test(test_calls_are_exact),
		cmocka_unit_test(test_inlined_without_recursion),
		cmocka_unit_test(test_inlined_deeply),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_no_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
