/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generates - code at run time that keeps no frame pointer, and a jitdump in the working directory.
 * It says how near() is unwound as V8 and CPython do (behind the code), of told() as LLVM does (at
 * an address), and nothing of plain(). Each of them calls itself DEPTH times, and then spins.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 10
#define FUNCTION_BYTES 256
#define FRAMES_AT 2048 /* of told() */

/*
 * push %rbp; push %rbx; sub $72,%rsp; mov %edi,%ebp; test %edi,%edi; je 1f;
 * lea -1(%rdi),%edi; call itself; jmp 3f; 1: mov $200000,%ecx; 2: dec %ecx; jne 2b;
 * 3: add $1,%ebp; add $72,%rsp; pop %rbx; pop %rbp; ret
 */
static const uint8_t code[] = { 0x55, 0x53, 0x48, 0x83, 0xec, 0x48, 0x89, 0xfd, 0x85, 0xff, 0x74,
				0x0a, 0x8d, 0x7f, 0xff, 0xe8, 0xec, 0xff, 0xff, 0xff, 0xeb, 0x09,
				0xb9, 0x40, 0x0d, 0x03, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0x83, 0xc5,
				0x01, 0x48, 0x83, 0xc4, 0x48, 0x5b, 0x5d, 0xc3 };

/* CFA = rsp + 8; after each push 8 more, rbp and rbx there; then 72 more; back at the end. */
static const uint8_t frames[] = {
	0x14, 0,    0,	  0,	0,    0,    0,	  0,	1,    'z', 'R',	 0,    1,    0x78, 0x10,
	1,    0x1b, 0x0c, 7,	8,    0x90, 1,	  0,	0, /* CIE */
	0x24, 0,    0,	  0,	0x1c, 0,    0,	  0,	0,    0,   0,	 0,    41,   0,	   0,
	0,    0, /* FDE, from byte 32 on where the code is */
	0x41, 0x0e, 0x10, 0x86, 2,    0x41, 0x0e, 0x18, 0x83, 3,   0x44, 0x0e, 0x60, 0x60, 0x0e,
	0x18, 0x41, 0x0e, 0x10, 0x41, 0x0e, 8,	  0,	0,    0,   0,	 0,    0,    0
};
#define CODE_FIELD 32

static FILE *dump;

static void put(const void *bytes, size_t len)
{
	fwrite(bytes, len, 1, dump);
}

static void put_record(uint32_t id, size_t body_bytes)
{
	uint32_t head[4] = { id, (uint32_t)(sizeof(head) + body_bytes) };

	put(head, sizeof(head));
}

static void put_load(const uint8_t *at, const char *name)
{
	uint64_t ids = (uint32_t)getpid() | (uint64_t)getpid() << 32, start = (uintptr_t)at;
	uint64_t body[5] = { ids, start, start, sizeof(code), 0 };

	put_record(0, sizeof(body) + strlen(name) + 1 + sizeof(code));
	put(body, sizeof(body));
	put(name, strlen(name) + 1);
	put(code, sizeof(code));
}

/* `header` comes first, or last; where .eh_frame is, or seems to be, is for its pointer. */
static void put_unwinding(const uint8_t *at, const uint8_t *frames_at, const void *header,
			  size_t header_bytes, int is_first)
{
	uint64_t body[3] = { sizeof(frames) + header_bytes, header_bytes, is_first ? 0 : 256 };
	int32_t distance = (int32_t)(at - (frames_at + CODE_FIELD));
	uint8_t copy[sizeof(frames)];

	memcpy(copy, frames, sizeof(frames));
	memcpy(copy + CODE_FIELD, &distance, sizeof(distance));
	put_record(4, sizeof(body) + body[0]);
	put(body, sizeof(body));
	if (is_first)
		put(header, header_bytes);
	put(copy, sizeof(copy));
	if (!is_first)
		put(header, header_bytes);
}

static void put_near(const uint8_t *at)
{
	static const uint8_t header[20] = { 1, 0x1b, 0x03, 0x3b };

	put_unwinding(at, at + (sizeof(code) + 7) / 8 * 8, header, sizeof(header), 0);
	put_load(at, "near");
}

static void put_told(const uint8_t *at, const uint8_t *frames_at)
{
	uint8_t header[12] = { 1, 0x0c, 0xff, 0xff };

	memcpy(header + 4, &frames_at, sizeof(frames_at));
	put_unwinding(at, frames_at, header, sizeof(header), 1);
	put_load(at, "told");
}

static void start_dump(void)
{
	uint32_t head[10] = { 0x4a695444, 1, sizeof(head), 62, 0, (uint32_t)getpid() };
	char path[64];

	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	dump = fopen(path, "w+");
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
	put(head, sizeof(head));
}

int main(void)
{
	uint8_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct timespec pause = { .tv_nsec = 10000000 };

	start_dump();
	for (int i = 0; i < 3; i++)
		memcpy(memory + FUNCTION_BYTES * i, code, sizeof(code));
	put_near(memory);
	put_told(memory + FUNCTION_BYTES, memory + FRAMES_AT);
	put_load(memory + 2 * FUNCTION_BYTES, "plain");
	fflush(dump);
	for (;;) {
		for (int i = 0; i < 60; i++)
			((void (*)(int))(uintptr_t)(memory + FUNCTION_BYTES * (i % 3)))(DEPTH);
		nanosleep(&pause, NULL);
	}
}
