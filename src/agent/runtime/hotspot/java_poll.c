/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions: Intel's manual, volume 2, appendix A. */
#include "agent/runtime/hotspot/java_poll.h"

#include <string.h>

#define INSTRUCTION_BYTES_MAX 15u

enum opcode_map { MAP_ONE_BYTE, MAP_0F, MAP_0F38, MAP_0F3A, MAPS };

struct instruction {
	const uint8_t *bytes;
	size_t left, length; /* from bytes */
	uint8_t map, opcode, modrm;
	bool is_wide, is_short; /* operands of 8 bytes, of 2 */
};

/* A byte that is not there is 0: the length says so in the end. */
static uint8_t next_byte(struct instruction *code)
{
	size_t at = code->length++;

	return at < code->left ? code->bytes[at] : 0;
}

static bool is_between(uint8_t byte, uint8_t first, uint8_t last)
{
	return byte >= first && byte <= last;
}

static bool is_old_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
	       is_between(byte, 0x64, 0x65) || byte == 0x2e || byte == 0x3e;
}

/* What stands before the opcode says in which map it is. */
static void read_opcode(struct instruction *code)
{
	uint8_t byte = next_byte(code);

	while (is_old_prefix(byte) && code->length < INSTRUCTION_BYTES_MAX) {
		code->is_short |= byte == 0x66;
		byte = next_byte(code);
	}
	if (is_between(byte, 0x40, 0x4f)) {
		code->is_wide = (byte & 8) != 0;
		byte = next_byte(code);
	}
	if (byte == 0x0f) {
		code->map = MAP_0F;
		byte = next_byte(code);
		if (byte == 0x38 || byte == 0x3a) {
			code->map = byte == 0x38 ? MAP_0F38 : MAP_0F3A;
			byte = next_byte(code);
		}
	} else if (byte == 0xc5) { /* VEX */
		code->map = MAP_0F;
		next_byte(code);
		byte = next_byte(code);
	} else if (byte == 0xc4 || byte == 0x62) { /* VEX, EVEX */
		code->map = next_byte(code) & (byte == 0x62 ? 7 : 31);
		next_byte(code);
		if (byte == 0x62)
			next_byte(code);
		byte = next_byte(code);
		if (code->map == MAP_ONE_BYTE)
			code->map = MAPS;
	}
	code->opcode = byte;
}

static bool is_known(const struct instruction *code)
{
	uint8_t op = code->opcode;

	if (code->map != MAP_ONE_BYTE)
		return code->map < MAPS;
	if (op < 0x40)
		return (op & 7) < 6;
	return !(is_between(op, 0x40, 0x4f) || is_between(op, 0x60, 0x62) || op == 0x82 ||
		 op == 0x9a || is_between(op, 0xa0, 0xa3) || is_between(op, 0xc4, 0xc5) ||
		 op == 0xc8 || is_between(op, 0xca, 0xcb) || is_between(op, 0xcd, 0xcf) ||
		 is_between(op, 0xd4, 0xd7) || is_between(op, 0xe4, 0xe7) || op == 0xea ||
		 is_between(op, 0xec, 0xef));
}

static bool has_modrm(const struct instruction *code)
{
	uint8_t op = code->opcode;

	switch (code->map) {
	case MAP_ONE_BYTE:
		return (op < 0x40 && (op & 7) < 4) || op == 0x63 || op == 0x69 || op == 0x6b ||
		       is_between(op, 0x80, 0x8f) || is_between(op, 0xc0, 0xc1) ||
		       is_between(op, 0xc6, 0xc7) || is_between(op, 0xd0, 0xd3) ||
		       is_between(op, 0xd8, 0xdf) || is_between(op, 0xf6, 0xf7) || op >= 0xfe;
	case MAP_0F:
		return !(is_between(op, 0x05, 0x0b) || is_between(op, 0x30, 0x37) || op == 0x77 ||
			 is_between(op, 0x80, 0x8f) || is_between(op, 0xa0, 0xa2) ||
			 is_between(op, 0xa8, 0xaa) || is_between(op, 0xc8, 0xcf));
	default:
		return true;
	}
}

static void read_modrm(struct instruction *code)
{
	uint8_t mode, base;

	code->modrm = next_byte(code);
	mode = code->modrm >> 6;
	base = code->modrm & 7;
	if (mode == 3)
		return;
	if (base == 4)
		base = next_byte(code) & 7;
	if (mode == 1)
		code->length += 1;
	else if (mode == 2 || base == 5)
		code->length += 4;
}

static size_t immediate_of_one_byte(const struct instruction *code)
{
	size_t word = code->is_short ? 2 : 4;
	uint8_t op = code->opcode;
	bool is_test = (code->modrm >> 3 & 7) < 2;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? word : 0;
	if (is_between(op, 0xb8, 0xbf))
		return code->is_wide ? 8 : word;
	if (op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || op == 0xc7 ||
	    (op == 0xf7 && is_test))
		return word;
	if (is_between(op, 0xe8, 0xe9))
		return 4;
	if (op == 0xc2)
		return 2;
	return op == 0x6a || op == 0x6b || is_between(op, 0x70, 0x7f) || op == 0x80 || op == 0x83 ||
	       op == 0xa8 || is_between(op, 0xb0, 0xb7) || is_between(op, 0xc0, 0xc1) ||
	       op == 0xc6 || is_between(op, 0xe0, 0xe3) || op == 0xeb || (op == 0xf6 && is_test);
}

static size_t immediate_of(const struct instruction *code)
{
	uint8_t op = code->opcode;

	if (code->map == MAP_ONE_BYTE)
		return immediate_of_one_byte(code);
	if (code->map == MAP_0F && is_between(op, 0x80, 0x8f))
		return 4;
	if (code->map == MAP_0F)
		return is_between(op, 0x70, 0x73) || op == 0xa4 || op == 0xac || op == 0xba ||
		       op == 0xc2 || is_between(op, 0xc4, 0xc6);
	return code->map == MAP_0F3A;
}

static bool read_instruction(const uint8_t *bytes, size_t left, struct instruction *ret)
{
	*ret = (struct instruction){ .bytes = bytes, .left = left };
	read_opcode(ret);
	if (!is_known(ret))
		return false;
	if (has_modrm(ret))
		read_modrm(ret);
	ret->length += immediate_of(ret);
	return ret->length <= INSTRUCTION_BYTES_MAX && ret->length <= left;
}

/* test %eax, of memory at a register or an offset: no other instruction reads for nothing. */
static bool is_poll(const struct instruction *code)
{
	return code->map == MAP_ONE_BYTE && code->opcode == 0x85 && !code->is_wide &&
	       !(code->modrm >> 3) /* mode 0, eax */;
}

static bool is_short_branch(const struct instruction *code)
{
	return code->map == MAP_ONE_BYTE &&
	       (is_between(code->opcode, 0x70, 0x7f) || code->opcode == 0xeb);
}

static bool is_branch(const struct instruction *code)
{
	return is_short_branch(code) || (code->map == MAP_ONE_BYTE && code->opcode == 0xe9) ||
	       (code->map == MAP_0F && is_between(code->opcode, 0x80, 0x8f));
}

static int64_t branch_by(const struct instruction *code)
{
	int32_t by;

	if (is_short_branch(code))
		return (int8_t)code->bytes[code->length - 1];
	memcpy(&by, code->bytes + code->length - sizeof(by), sizeof(by));
	return by;
}

/* What follows is run by a jump from elsewhere. */
static bool is_end(const struct instruction *code)
{
	uint8_t op = code->opcode;

	if (code->map != MAP_ONE_BYTE)
		return code->map == MAP_0F && op == 0x0b;
	return op == 0xeb || op == 0xe9 || is_between(op, 0xc2, 0xc3) || op == 0xcc || op == 0xf4 ||
	       (op == 0xff && is_between(code->modrm >> 3 & 7, 4, 5));
}

bool java_poll_loop(const uint8_t *code, size_t len, uint32_t poll, struct java_loop *ret)
{
	uint32_t at = poll;
	struct instruction next;

	while (at < len && at - poll < JAVA_POLL_LOOP_MAX &&
	       read_instruction(code + at, len - at, &next) && (at != poll || is_poll(&next))) {
		int64_t target =
			is_branch(&next) ? at + (int64_t)next.length + branch_by(&next) : INT64_MAX;

		if (target >= 0 && target <= poll) {
			*ret = (struct java_loop){ (uint32_t)target, at };
			return true;
		}
		if (is_end(&next))
			break;
		at += (uint32_t)next.length;
	}
	return false;
}
