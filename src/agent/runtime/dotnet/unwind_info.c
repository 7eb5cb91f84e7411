/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/unwind_info.h"

#include <string.h>

#include "agent/bpf/table.h"

#define CODES_MAX 255
#define FLAG_CHAINED 4
#define REGISTER_FP 5
#define DEPTH_MAX (1u << 24)
#define POPS_MAX 16

enum code_operation {
	PUSH_NONVOL,
	ALLOC_LARGE,
	ALLOC_SMALL,
	SET_FPREG,
	SAVE_NONVOL,
	SAVE_NONVOL_FAR,
	SAVE_XMM128 = 8,
	SAVE_XMM128_FAR,
	SET_FPREG_LARGE = 11,
};

struct step {
	uint8_t offset; /* of the code behind the instruction */
	uint8_t operation, info;
	uint32_t value;
};

/* What lies below the return address. */
struct frame {
	uint32_t depth; /* bytes from the stack pointer up to the return address */
	uint32_t fp_slot;
	bool by_fp;
	uint32_t from_fp; /* bytes from the frame pointer up to the return address */
};

struct decoding {
	const uint8_t *code;
	size_t code_len;
	struct step steps[CODES_MAX]; /* as they are executed */
	size_t steps_count;
	uint8_t pushed[POPS_MAX]; /* registers, in order */
	size_t pushed_count, saved_count;
	struct frame body;
	struct code_row *rows;
	size_t count;
};

size_t unwind_info_bytes(const uint8_t header[UNWIND_INFO_HEADER_BYTES])
{
	return UNWIND_INFO_HEADER_BYTES + 2u * header[2];
}

static uint32_t u16(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8;
}

/* Further words that belong to a code; -1 = it is not known. */
static int extra_words(uint8_t operation, uint8_t info)
{
	switch (operation) {
	case PUSH_NONVOL:
	case ALLOC_SMALL:
	case SET_FPREG:
		return 0;
	case ALLOC_LARGE:
		return info > 1 ? -1 : 1 + info;
	case SAVE_NONVOL:
	case SAVE_XMM128:
		return 1;
	case SAVE_NONVOL_FAR:
	case SAVE_XMM128_FAR:
	case SET_FPREG_LARGE:
		return 2;
	default:
		return -1;
	}
}

/* What an instruction adds to the stack, or where it saves or sets something, in bytes. */
static uint32_t value_of(const struct step *step, const uint8_t *words, int extra, uint8_t header)
{
	uint32_t value = extra ? u16(words) : 0;

	if (extra == 2)
		value |= u16(words + 2) << 16;
	switch (step->operation) {
	case PUSH_NONVOL:
		return 8;
	case ALLOC_SMALL:
		return step->info * 8u + 8;
	case ALLOC_LARGE:
	case SAVE_NONVOL:
		return extra == 1 ? value * 8 : value;
	case SET_FPREG:
		return (header >> 4) * 16u;
	case SET_FPREG_LARGE:
		return value <= DEPTH_MAX ? value * 16 : UINT32_MAX;
	default:
		return value;
	}
}

/* The codes are listed from the last instruction to the first. */
static bool read_steps(struct decoding *decoding, const uint8_t *info, size_t count)
{
	struct step steps[CODES_MAX];
	size_t at = 0, steps_count = 0;

	while (at < count) {
		const uint8_t *code = info + UNWIND_INFO_HEADER_BYTES + 2 * at;
		struct step *step = &steps[steps_count++];
		int extra;

		*step = (struct step){ .offset = code[0],
				       .operation = code[1] & 15,
				       .info = code[1] >> 4 };
		extra = extra_words(step->operation, step->info);
		if (extra < 0 || at + 1 + (size_t)extra > count)
			return false;
		step->value = value_of(step, code + 2, extra, info[3]);
		at += 1 + (size_t)extra;
	}
	for (size_t i = 0; i < steps_count; i++)
		decoding->steps[i] = steps[steps_count - 1 - i];
	decoding->steps_count = steps_count;
	return true;
}

static uint32_t rule_of(const struct frame *frame)
{
	uint32_t cfa = (frame->by_fp ? frame->from_fp : frame->depth) + 8;

	if (cfa % 8 || cfa / 8 > 1023 || frame->fp_slot > 15)
		return 0;
	return (uint32_t)frame->by_fp | cfa / 8 << 1 | frame->fp_slot << 11;
}

static void put_row(struct decoding *decoding, size_t offset, uint32_t rule)
{
	struct code_row *last = decoding->rows + decoding->count - 1;

	if (decoding->count && last->offset == offset) {
		last->rule = rule;
	} else if (decoding->count < UNWIND_INFO_ROWS_MAX - 1) {
		decoding->rows[decoding->count++] = (struct code_row){ (uint32_t)offset, rule };
	} else if (decoding->count == UNWIND_INFO_ROWS_MAX - 1) {
		decoding->rows[decoding->count++] = (struct code_row){ (uint32_t)offset, 0 };
	}
}

static bool take_step(struct decoding *decoding, const struct step *step, struct frame *frame)
{
	switch (step->operation) {
	case PUSH_NONVOL:
		if (decoding->pushed_count == POPS_MAX)
			return false;
		decoding->pushed[decoding->pushed_count++] = step->info;
		frame->depth += 8;
		if (step->info == REGISTER_FP)
			frame->fp_slot = frame->depth / 8;
		break;
	case ALLOC_LARGE:
	case ALLOC_SMALL:
		if (step->value > DEPTH_MAX || frame->depth > DEPTH_MAX)
			return false;
		frame->depth += step->value;
		break;
	case SET_FPREG:
	case SET_FPREG_LARGE:
		if (step->value > frame->depth)
			return false;
		frame->by_fp = true;
		frame->from_fp = frame->depth - step->value;
		break;
	case SAVE_NONVOL:
	case SAVE_NONVOL_FAR:
		decoding->saved_count++;
		if (step->info == REGISTER_FP) {
			if (step->value >= frame->depth || step->value % 8)
				return false;
			frame->fp_slot = (frame->depth - step->value) / 8;
		}
		break;
	default:
		break;
	}
	return true;
}

/* ---- epilogues ---- */

/* The length of a pop at `at`, and what it pops; 0 = it is none. */
static size_t pop_at(const struct decoding *decoding, size_t at, uint8_t *reg)
{
	const uint8_t *code = decoding->code + at;
	size_t left = decoding->code_len - at;

	if (left && code[0] >= 0x58 && code[0] <= 0x5f) {
		*reg = code[0] - 0x58;
		return 1;
	}
	if (left > 1 && code[0] == 0x41 && code[1] >= 0x58 && code[1] <= 0x5f) {
		*reg = (uint8_t)(code[1] - 0x58 + 8);
		return 2;
	}
	return 0;
}

/* The length of an instruction that leaves the function for good; 0 = there is none. */
static size_t leave_at(const struct decoding *decoding, size_t at)
{
	const uint8_t *code = decoding->code + at;
	size_t left = decoding->code_len - at;
	int32_t distance;

	if (left && code[0] == 0xc3)
		return 1;
	if (left > 5 && code[0] == 0xff && code[1] == 0x25)
		return 6;
	if (left > 2 && code[0] == 0x48 && code[1] == 0xff && (code[2] & 0xf8) == 0xe0)
		return 3;
	if (left > 4 && code[0] == 0xe9) {
		memcpy(&distance, code + 1, sizeof(distance));
		if ((int64_t)at + 5 + distance < 0 ||
		    (int64_t)at + 5 + distance >= (int64_t)decoding->code_len)
			return 5;
	}
	return 0;
}

/* `add $n,%rsp` that ends at `at`: n, or 0. */
static uint32_t added_before(const struct decoding *decoding, size_t at)
{
	const uint8_t *code = decoding->code + at;
	uint32_t bytes = 0;

	if (at >= 4 && code[-4] == 0x48 && code[-3] == 0x83 && code[-2] == 0xc4)
		return code[-1] < 0x80 ? code[-1] : 0;
	if (at >= 7 && code[-7] == 0x48 && code[-6] == 0x81 && code[-5] == 0xc4)
		memcpy(&bytes, code - 4, sizeof(bytes));
	return bytes;
}

/* `lea n(%rbp),%rsp` or `mov %rbp,%rsp` ends at `at`. */
static bool is_set_before(const struct decoding *decoding, size_t at)
{
	const uint8_t *code = decoding->code + at;

	return (at >= 4 && code[-4] == 0x48 && code[-3] == 0x8d && code[-2] == 0x65) ||
	       (at >= 7 && code[-7] == 0x48 && code[-6] == 0x8d && code[-5] == 0xa5) ||
	       (at >= 3 && code[-3] == 0x48 && code[-2] == 0x8b && code[-1] == 0xe5);
}

static bool is_reverse_of_pushes(const struct decoding *decoding, const uint8_t *popped,
				 size_t count)
{
	if (count != decoding->pushed_count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (popped[i] != decoding->pushed[count - 1 - i])
			return false;
	return true;
}

/* True if the pops at `at` take down what is left of the frame. */
static bool is_end(const struct decoding *decoding, size_t at, const uint8_t *popped, size_t count)
{
	const struct frame *body = &decoding->body;

	if (body->depth == 8 * count + added_before(decoding, at) &&
	    (added_before(decoding, at) || is_reverse_of_pushes(decoding, popped, count)))
		return true;
	return count && is_set_before(decoding, at) &&
	       (is_reverse_of_pushes(decoding, popped, count) ||
		count <= decoding->pushed_count + decoding->saved_count);
}

static void put_end(struct decoding *decoding, size_t at, const uint8_t *popped,
		    const uint8_t *lengths, size_t count)
{
	for (size_t i = 0; i <= count; i++) {
		struct frame frame = { .depth = (uint32_t)(8 * (count - i)) };

		for (size_t k = i; k < count; k++)
			if (popped[k] == REGISTER_FP)
				frame.fp_slot = (uint32_t)(count - k);
		put_row(decoding, at, rule_of(&frame));
		at += i < count ? lengths[i] : 0;
	}
}

/* Rows of an epilogue whose pops begin at `at`; where it ends, or `at` when there is none. */
static size_t find_end(struct decoding *decoding, size_t at)
{
	uint8_t popped[POPS_MAX], lengths[POPS_MAX];
	size_t count = 0, next = at, len;

	while (count < POPS_MAX && (len = pop_at(decoding, next, &popped[count]))) {
		lengths[count++] = (uint8_t)len;
		next += len;
	}
	len = leave_at(decoding, next);
	if (!len || !is_end(decoding, at, popped, count))
		return at;
	put_end(decoding, at, popped, lengths, count);
	return next + len;
}

static void find_ends(struct decoding *decoding, size_t from)
{
	uint32_t rule = rule_of(&decoding->body);

	if (!decoding->body.depth)
		return; /* nothing is to be taken down */
	for (size_t at = from; at < decoding->code_len;) {
		size_t end = find_end(decoding, at);

		if (end == at) {
			at++;
			continue;
		}
		if (end < decoding->code_len)
			put_row(decoding, end, rule);
		at = end;
	}
}

/* The last offset in the prologue's code. */
static size_t last_offset(const struct decoding *decoding)
{
	return decoding->steps_count ? decoding->steps[decoding->steps_count - 1].offset : 0;
}

size_t unwind_info_rows(const uint8_t *info, size_t info_len, const uint8_t *code, size_t code_len,
			struct code_row ret[UNWIND_INFO_ROWS_MAX])
{
	struct decoding decoding = { .code = code, .code_len = code_len, .rows = ret };
	struct frame *frame = &decoding.body;

	if (info_len < UNWIND_INFO_HEADER_BYTES || info_len < unwind_info_bytes(info) ||
	    (info[0] & 7) != 1 || info[0] >> 3 & FLAG_CHAINED ||
	    !read_steps(&decoding, info, info[2]))
		return 0;
	put_row(&decoding, 0, rule_of(frame));
	for (size_t i = 0; i < decoding.steps_count; i++) {
		const struct step *step = &decoding.steps[i];

		if (i && step->offset < decoding.steps[i - 1].offset)
			return 0;
		if (!take_step(&decoding, step, frame))
			return 0;
		put_row(&decoding, step->offset, rule_of(frame));
	}
	find_ends(&decoding, info[1] > last_offset(&decoding) ? info[1] : last_offset(&decoding));
	return decoding.count;
}
