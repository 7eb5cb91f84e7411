/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/cfi_expression.h"

#include <dwarf.h>

#define STACK_MAX 16
#define X86_PC 16 /* DWARF number of rip; no expression of arm64 uses the pc */
#define REGISTERS_MAX 256

struct evaluation {
	const uint8_t *at, *end;
	struct cfi_value stack[STACK_MAX];
	unsigned depth;
	bool failed;
};

static uint64_t take_fixed(struct evaluation *e, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(e->end - e->at) < bytes) {
		e->failed = true;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)e->at[i] << (8 * i);
	e->at += bytes;
	return value;
}

static uint64_t take_leb(struct evaluation *e, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		if (e->at == e->end || shift > 63) {
			e->failed = true;
			return 0;
		}
		byte = *e->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		value |= ~0ull << shift;
	return value;
}

static void push(struct evaluation *e, struct cfi_value value)
{
	if (e->depth == STACK_MAX || value.kind == CFI_VALUE_UNKNOWN)
		e->failed = true;
	else
		e->stack[e->depth++] = value;
}

static struct cfi_value pop(struct evaluation *e)
{
	if (!e->depth) {
		e->failed = true;
		return (struct cfi_value){ 0 };
	}
	return e->stack[--e->depth];
}

static void push_constant(struct evaluation *e, int64_t value)
{
	push(e, (struct cfi_value){ .kind = CFI_VALUE_CONSTANT, .offset = value });
}

static void push_register(struct evaluation *e, uint64_t number, int64_t offset)
{
	if (number >= REGISTERS_MAX)
		e->failed = true;
	else
		push(e, (struct cfi_value){ .kind = CFI_VALUE_REGISTER,
					    .reg = (uint8_t)number,
					    .offset = offset });
}

static struct cfi_value add_constant(struct cfi_value value, int64_t constant)
{
	bool in_memory = value.kind == CFI_VALUE_MEMORY || value.kind == CFI_VALUE_AT_CFA ||
			 value.kind == CFI_VALUE_MEMORY_INDEXED;
	int64_t *to = in_memory ? &value.add : &value.offset;

	if (__builtin_add_overflow(*to, constant, to) || value.kind == CFI_VALUE_PC_LOW ||
	    value.kind == CFI_VALUE_PC_REACHED || value.kind == CFI_VALUE_PC_STEP)
		value.kind = CFI_VALUE_UNKNOWN;
	return value;
}

static struct cfi_value add(struct cfi_value a, struct cfi_value b)
{
	if (b.kind == CFI_VALUE_CONSTANT)
		return add_constant(a, b.offset);
	if (a.kind == CFI_VALUE_CONSTANT)
		return add_constant(b, a.offset);
	if (a.kind != CFI_VALUE_REGISTER) { /* sums commute */
		struct cfi_value swap = a;

		a = b;
		b = swap;
	}
	if (a.kind == CFI_VALUE_REGISTER && b.kind == CFI_VALUE_SCALED) {
		a.kind = CFI_VALUE_INDEXED;
		a.index = b.index;
		return add_constant(a, b.offset);
	}
	if (a.kind == CFI_VALUE_REGISTER && b.kind == CFI_VALUE_PC_STEP) {
		a.kind = CFI_VALUE_PLT;
		a.add = b.add;
		return a;
	}
	return (struct cfi_value){ 0 };
}

/* 8 * value, the only factor that occurs: indexes of words. */
static struct cfi_value times_eight(struct cfi_value value)
{
	if (value.kind == CFI_VALUE_PC_REACHED) {
		value.kind = CFI_VALUE_PC_STEP;
	} else if (value.kind == CFI_VALUE_REGISTER) {
		value.kind = CFI_VALUE_SCALED;
		value.index = value.reg;
		if (__builtin_mul_overflow(value.offset, 8, &value.offset))
			value.kind = CFI_VALUE_UNKNOWN;
	} else {
		value.kind = CFI_VALUE_UNKNOWN;
	}
	return value;
}

static struct cfi_value dereference(struct cfi_value value)
{
	value.add = 0;
	if (value.kind == CFI_VALUE_REGISTER)
		value.kind = CFI_VALUE_MEMORY;
	else if (value.kind == CFI_VALUE_INDEXED)
		value.kind = CFI_VALUE_MEMORY_INDEXED;
	else if (value.kind == CFI_VALUE_CFA)
		value.kind = CFI_VALUE_AT_CFA;
	else
		value.kind = CFI_VALUE_UNKNOWN;
	return value;
}

static struct cfi_value binary(uint8_t op, struct cfi_value a, struct cfi_value b)
{
	bool is_constant = b.kind == CFI_VALUE_CONSTANT;
	struct cfi_value unknown = { 0 };

	switch (op) {
	case DW_OP_plus:
		return add(a, b);
	case DW_OP_minus:
		if (!is_constant || b.offset == INT64_MIN)
			return unknown;
		return add_constant(a, -b.offset);
	case DW_OP_mul:
		return is_constant && b.offset == 8 ? times_eight(a) : unknown;
	case DW_OP_shl:
		return is_constant && b.offset == 3 ? times_eight(a) : unknown;
	case DW_OP_and:
		if (!is_constant || b.offset != 15 || a.kind != CFI_VALUE_REGISTER ||
		    a.reg != X86_PC || a.offset)
			return unknown;
		return (struct cfi_value){ .kind = CFI_VALUE_PC_LOW };
	case DW_OP_ge:
		if (!is_constant || a.kind != CFI_VALUE_PC_LOW || b.offset < 0 || b.offset > 15)
			return unknown;
		return (struct cfi_value){ .kind = CFI_VALUE_PC_REACHED, .add = b.offset };
	default:
		return unknown;
	}
}

static void push_number(struct evaluation *e, uint8_t op)
{
	switch (op) {
	case DW_OP_const1u:
		return push_constant(e, (uint8_t)take_fixed(e, 1));
	case DW_OP_const1s:
		return push_constant(e, (int8_t)take_fixed(e, 1));
	case DW_OP_const2u:
		return push_constant(e, (uint16_t)take_fixed(e, 2));
	case DW_OP_const2s:
		return push_constant(e, (int16_t)take_fixed(e, 2));
	case DW_OP_const4u:
		return push_constant(e, (uint32_t)take_fixed(e, 4));
	case DW_OP_const4s:
		return push_constant(e, (int32_t)take_fixed(e, 4));
	case DW_OP_const8u:
	case DW_OP_const8s:
		return push_constant(e, (int64_t)take_fixed(e, 8));
	case DW_OP_constu:
		return push_constant(e, (int64_t)take_leb(e, false));
	case DW_OP_consts:
		return push_constant(e, (int64_t)take_leb(e, true));
	default:
		e->failed = true;
	}
}

static void duplicate(struct evaluation *e)
{
	struct cfi_value top = pop(e);

	push(e, top);
	push(e, top);
}

static void exchange(struct evaluation *e)
{
	struct cfi_value top = pop(e), below = pop(e);

	push(e, top);
	push(e, below);
}

static void step(struct evaluation *e)
{
	uint8_t op = *e->at++;
	struct cfi_value b;

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		push_register(e, op - DW_OP_breg0, (int64_t)take_leb(e, true));
		return;
	}
	/* Names a place, but is its value for libgcc, and so for wasmtime's fibers. */
	if (op >= DW_OP_reg0 && op <= DW_OP_reg31) {
		push_register(e, op - DW_OP_reg0, 0);
		return;
	}
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		push_constant(e, op - DW_OP_lit0);
		return;
	}
	switch (op) {
	case DW_OP_nop:
		break;
	case DW_OP_bregx: {
		uint64_t number = take_leb(e, false);

		push_register(e, number, (int64_t)take_leb(e, true));
		break;
	}
	case DW_OP_call_frame_cfa:
		push(e, (struct cfi_value){ .kind = CFI_VALUE_CFA });
		break;
	case DW_OP_drop:
		pop(e);
		break;
	case DW_OP_dup:
		duplicate(e);
		break;
	case DW_OP_swap:
		exchange(e);
		break;
	case DW_OP_deref:
		push(e, dereference(pop(e)));
		break;
	case DW_OP_plus_uconst:
		push(e, add_constant(pop(e), (int64_t)take_leb(e, false)));
		break;
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_shl:
	case DW_OP_and:
	case DW_OP_ge:
		b = pop(e);
		push(e, binary(op, pop(e), b));
		break;
	default:
		push_number(e, op);
	}
}

struct cfi_value cfi_expression_evaluate(struct slice expression, bool starts_with_cfa)
{
	const uint8_t *bytes = (const uint8_t *)expression.data;
	struct evaluation e = { .at = bytes,
				.end = expression.len ? bytes + expression.len : bytes };
	struct cfi_value result;

	if (starts_with_cfa)
		push(&e, (struct cfi_value){ .kind = CFI_VALUE_CFA });
	while (e.at < e.end && !e.failed)
		step(&e);
	result = pop(&e);
	if (e.failed)
		result.kind = CFI_VALUE_UNKNOWN;
	return result;
}
