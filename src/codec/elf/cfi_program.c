/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/cfi_program.h"

#include <dwarf.h>

#include "codec/elf/cfi_expression.h"

#define CFA_MONO_ADVANCE_LOC DW_CFA_low_user
#define REFILL_BYTES 1024    /* asked for at once */
#define INSTRUCTION_BYTES 32 /* none is longer without its expression: opcode, two LEB128 */
#define EXPRESSION_BYTES_MAX 512

struct run {
	const struct cfi_program *program;
	struct cfi_state *state;
	const struct unwind_row_sink *sink;
	struct cfi_state remembered[CFI_REMEMBERED_MAX];
	unsigned remembered_count;
	const uint8_t *at, *end; /* what is in view */
	uint64_t view_end;	 /* its end, as an offset in the section */
	uint64_t row_address;	 /* where the row being made begins */
};

enum step { STEP_OK, STEP_MALFORMED, STEP_STOP };

bool cfi_read_uleb(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

bool cfi_read_sleb(const uint8_t **at, const uint8_t *end, int64_t *ret)
{
	const uint8_t *start = *at;
	uint64_t value;
	unsigned bits;

	if (!cfi_read_uleb(at, end, &value))
		return false;
	bits = (unsigned)(*at - start) * 7;
	if (bits < 64 && ((*at)[-1] & 0x40))
		value |= ~0ull << bits;
	*ret = (int64_t)value;
	return true;
}

static uint64_t sign_extend(uint64_t value, unsigned bytes)
{
	unsigned shift = 64 - 8 * bytes;

	return (uint64_t)((int64_t)(value << shift) >> shift);
}

static bool read_encoded(const uint8_t **at, const uint8_t *end, uint8_t format, uint64_t *ret)
{
	static const uint8_t sizes[16] = {
		[DW_EH_PE_absptr] = 8, [DW_EH_PE_udata2] = 2, [DW_EH_PE_udata4] = 4,
		[DW_EH_PE_udata8] = 8, [DW_EH_PE_sdata2] = 2, [DW_EH_PE_sdata4] = 4,
		[DW_EH_PE_sdata8] = 8,
	};
	unsigned bytes = sizes[format];
	uint64_t value = 0;
	int64_t number;

	if (format == DW_EH_PE_uleb128)
		return cfi_read_uleb(at, end, ret);
	if (format == DW_EH_PE_sleb128) {
		if (!cfi_read_sleb(at, end, &number))
			return false;
		*ret = (uint64_t)number;
		return true;
	}
	if (!bytes || (size_t)(end - *at) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)(*at)[i] << (8 * i);
	*at += bytes;
	*ret = format & DW_EH_PE_signed ? sign_extend(value, bytes) : value;
	return true;
}

bool cfi_read_pointer(const uint8_t **at, const uint8_t *end, uint8_t encoding, uint64_t address,
		      uint64_t data_address, uint64_t *ret)
{
	uint64_t value;

	if (encoding & DW_EH_PE_indirect || !read_encoded(at, end, encoding & 0x0f, &value))
		return false;
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		value += address;
		break;
	case DW_EH_PE_datarel:
		if (!data_address)
			return false;
		value += data_address;
		break;
	default:
		return false;
	}
	*ret = value;
	return true;
}

void cfi_state_init(struct cfi_state *state, const struct cfi_registers *registers)
{
	*state = (struct cfi_state){
		.cfa = UNWIND_CFA_UNSUPPORTED,
		/* Only arm64 has a link register that may still hold the return address. */
		.ra.how = registers->is_arm64 ? UNWIND_VALUE_SAME : UNWIND_VALUE_UNSUPPORTED,
		.fp.how = UNWIND_VALUE_SAME,
		.sp.how = UNWIND_VALUE_SAME,
		.bx.how = UNWIND_VALUE_SAME,
	};
}

/* Looks at at least `len` bytes from where we are, or all that are left. */
static int look_ahead(struct run *run, size_t len, struct err *err)
{
	uint64_t left = (uint64_t)(run->end - run->at), at = run->view_end - left;
	size_t want = len > REFILL_BYTES ? len : REFILL_BYTES, have;
	int status;

	if (left >= len || run->view_end == run->program->end)
		return 0;
	if (want > run->program->end - at)
		want = run->program->end - at;
	status = section_reader_view_some(run->program->reader, at, want, &run->at, &have, err);
	if (status)
		return status;
	run->end = run->at + have;
	/* A section that ends before it says ends the program too. */
	run->view_end = have < want ? run->program->end : at + have;
	return 0;
}

/* ---- the CFA ---- */

static void set_cfa_unsupported(struct cfi_state *state)
{
	state->cfa = UNWIND_CFA_UNSUPPORTED;
	state->cfa_register = state->cfa_index = 0;
	state->cfa_extra = 0;
	state->cfa_offset = 0;
}

static void set_cfa(struct run *run, uint64_t reg, int64_t offset)
{
	struct cfi_state *state = run->state;

	set_cfa_unsupported(state);
	state->is_expression = false;
	if (reg > run->program->registers->last || offset != (int32_t)offset)
		return;
	state->cfa = UNWIND_CFA_REGISTER;
	state->cfa_register = (uint8_t)reg;
	state->cfa_offset = (int32_t)offset;
}

static void set_cfa_by_expression(struct run *run, struct slice expression)
{
	struct cfi_value value = cfi_expression_evaluate(expression, false);
	struct cfi_state *state = run->state;
	int64_t extra = value.add;
	uint8_t kind;

	set_cfa_unsupported(state);
	if (value.kind == CFI_VALUE_REGISTER)
		set_cfa(run, value.reg, value.offset);
	state->is_expression = true;
	if (value.kind == CFI_VALUE_REGISTER)
		return;
	if (value.kind == CFI_VALUE_PLT)
		kind = UNWIND_CFA_PLT;
	else if (value.kind == CFI_VALUE_MEMORY)
		kind = UNWIND_CFA_DEREF;
	else if (value.kind == CFI_VALUE_MEMORY_INDEXED)
		kind = UNWIND_CFA_DEREF_INDEXED;
	else
		return;
	if (kind != UNWIND_CFA_PLT) {
		if (extra % 8)
			return;
		extra /= 8;
	}
	if (extra != (int8_t)extra || value.offset != (int32_t)value.offset ||
	    value.reg > run->program->registers->last ||
	    value.index > run->program->registers->last)
		return;
	state->cfa = kind;
	state->cfa_register = value.reg;
	state->cfa_index = kind == UNWIND_CFA_DEREF_INDEXED ? value.index : 0;
	state->cfa_extra = (int8_t)extra;
	state->cfa_offset = (int32_t)value.offset;
}

/* ---- registers ---- */

static struct cfi_place *place_of(const struct run *run, struct cfi_state *state, uint64_t reg)
{
	const struct cfi_registers *registers = run->program->registers;

	if (reg == registers->ra)
		return &state->ra;
	if (reg == registers->fp)
		return &state->fp;
	if (reg == registers->sp)
		return &state->sp;
	if (reg == registers->bx)
		return &state->bx;
	return NULL;
}

static void set_place(const struct run *run, uint64_t reg, enum unwind_value how, uint64_t from,
		      int64_t offset)
{
	struct cfi_place *place = place_of(run, run->state, reg);

	if (!place)
		return;
	if (offset != (int32_t)offset || from > run->program->registers->last)
		*place = (struct cfi_place){ .how = UNWIND_VALUE_UNSUPPORTED };
	else
		*place = (struct cfi_place){ (uint8_t)how, (uint8_t)from, (int32_t)offset };
}

static void set_place_factored(const struct run *run, uint64_t reg, enum unwind_value how,
			       int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, run->program->data_align, &offset))
		offset = INT64_MAX;
	set_place(run, reg, how, 0, offset);
}

/* `in_memory`: the expression gives the address of the value, not the value. */
static void set_place_by_expression(const struct run *run, uint64_t reg, struct slice expression,
				    bool in_memory)
{
	struct cfi_value value;
	enum unwind_value how = UNWIND_VALUE_UNSUPPORTED;

	if (!place_of(run, run->state, reg))
		return;
	value = cfi_expression_evaluate(expression, true);
	if (value.kind == CFI_VALUE_CFA)
		how = in_memory ? UNWIND_VALUE_AT_CFA : UNWIND_VALUE_CFA;
	else if (value.kind == CFI_VALUE_REGISTER)
		how = in_memory ? UNWIND_VALUE_AT_REGISTER : UNWIND_VALUE_IN_REGISTER;
	else if (value.kind == CFI_VALUE_MEMORY && !in_memory && !value.add)
		how = UNWIND_VALUE_AT_REGISTER;
	else if (value.kind == CFI_VALUE_AT_CFA && !in_memory && !value.add)
		how = UNWIND_VALUE_AT_CFA;
	if (how == UNWIND_VALUE_UNSUPPORTED)
		value.reg = 0, value.offset = 0;
	set_place(run, reg, how, value.reg, value.offset);
}

/* In a CIE, where DWARF has no meaning for it, it takes back what the CIE said (as in libgcc). */
static void restore(struct run *run, uint64_t reg)
{
	struct cfi_place *place = place_of(run, run->state, reg);
	struct cfi_state fresh;

	if (!place)
		return;
	if (run->program->initial)
		fresh = *run->program->initial;
	else
		cfi_state_init(&fresh, run->program->registers);
	*place = *place_of(run, &fresh, reg);
}

/* ---- rows ---- */

static void place_relative_to_register(struct cfi_place *place, const struct cfi_state *state)
{
	int32_t offset;

	if (place->how != UNWIND_VALUE_AT_CFA && place->how != UNWIND_VALUE_CFA)
		return;
	if (__builtin_add_overflow(place->offset, state->cfa_offset, &offset)) {
		*place = (struct cfi_place){ .how = UNWIND_VALUE_UNSUPPORTED };
		return;
	}
	*place = (struct cfi_place){ place->how == UNWIND_VALUE_AT_CFA ? UNWIND_VALUE_AT_REGISTER
								       : UNWIND_VALUE_IN_REGISTER,
				     state->cfa_register, offset };
}

/*
 * Where the caller's stack pointer is not the CFA (longjmp, switches of stacks) it takes the CFA's
 * part in the rule, and what was relative to the CFA becomes relative to the CFA's register.
 */
static void follow_stack_pointer(struct cfi_state *state)
{
	struct cfi_place sp = state->sp;

	if (sp.how == UNWIND_VALUE_SAME || (sp.how == UNWIND_VALUE_CFA && !sp.offset) ||
	    (sp.how == UNWIND_VALUE_AT_REGISTER && state->cfa == UNWIND_CFA_DEREF &&
	     !state->cfa_extra && sp.reg == state->cfa_register && sp.offset == state->cfa_offset))
		return;
	if (state->cfa != UNWIND_CFA_REGISTER) {
		set_cfa_unsupported(state);
		return;
	}
	state->bx = (struct cfi_place){ .how = UNWIND_VALUE_UNSUPPORTED };
	place_relative_to_register(&sp, state);
	place_relative_to_register(&state->ra, state);
	place_relative_to_register(&state->fp, state);
	if (sp.how != UNWIND_VALUE_IN_REGISTER && sp.how != UNWIND_VALUE_AT_REGISTER) {
		set_cfa_unsupported(state);
		return;
	}
	state->cfa = sp.how == UNWIND_VALUE_IN_REGISTER ? UNWIND_CFA_REGISTER : UNWIND_CFA_DEREF;
	state->cfa_register = sp.reg;
	state->cfa_offset = sp.offset;
}

static void make_rule(const struct cfi_program *program, const struct cfi_state *now,
		      struct unwind_rule *ret)
{
	struct cfi_state state = *now;

	*ret = (struct unwind_rule){ .cfa = UNWIND_CFA_END };
	if (state.ra.how == UNWIND_VALUE_UNDEFINED)
		return;
	follow_stack_pointer(&state);
	ret->cfa = state.cfa;
	if (state.cfa == UNWIND_CFA_UNSUPPORTED)
		return;
	ret->cfa_register = state.cfa_register;
	ret->cfa_index = state.cfa_index;
	ret->cfa_extra = state.cfa_extra;
	ret->cfa_offset = state.cfa_offset;
	ret->ra = state.ra.how;
	ret->ra_register = state.ra.reg;
	ret->ra_offset = state.ra.offset;
	ret->fp = state.fp.how;
	ret->fp_register = state.fp.reg;
	ret->fp_offset = state.fp.offset;
	if (state.bx.how == UNWIND_VALUE_AT_CFA) {
		ret->bx = UNWIND_VALUE_AT_CFA;
		ret->bx_offset = state.bx.offset;
	} else if (state.bx.how != UNWIND_VALUE_SAME) {
		ret->bx = UNWIND_VALUE_UNSUPPORTED;
	}
	ret->flags = program->rule_flags | (state.is_signed ? UNWIND_RULE_PAC : 0);
}

static int give_row(struct run *run, const struct unwind_rule *rule)
{
	return run->sink->row(run->sink->context, run->row_address, rule);
}

/* Ends the row being made at `address`; STEP_STOP behind the function's end. */
static int advance_to(struct run *run, uint64_t address, int *ret_status)
{
	struct unwind_rule rule;

	if (!run->sink)
		return STEP_MALFORMED; /* a CIE has no locations */
	if (address < run->row_address)
		return STEP_MALFORMED;
	if (address == run->row_address)
		return STEP_OK;
	make_rule(run->program, run->state, &rule);
	*ret_status = give_row(run, &rule);
	if (*ret_status || address >= run->program->address_end) {
		run->row_address = run->program->address_end;
		return STEP_STOP;
	}
	run->row_address = address;
	return STEP_OK;
}

static int advance_by(struct run *run, uint64_t count, int *ret_status)
{
	uint64_t bytes, address;

	if (__builtin_mul_overflow(count, run->program->code_align, &bytes) ||
	    __builtin_add_overflow(run->row_address, bytes, &address))
		return STEP_MALFORMED;
	return advance_to(run, address, ret_status);
}

/* ---- instructions ---- */

static int step_location(struct run *run, uint8_t op, int *ret_status)
{
	unsigned bytes = op == DW_CFA_advance_loc1 ? 1 : op == DW_CFA_advance_loc2 ? 2 : 4;
	uint64_t target, count = 0;

	if (op == DW_CFA_set_loc) {
		uint64_t at = run->view_end - (uint64_t)(run->end - run->at);

		if (!cfi_read_pointer(&run->at, run->end, run->program->pointer_encoding,
				      run->program->reader->address + at, 0, &target))
			return STEP_MALFORMED;
		return advance_to(run, target, ret_status);
	}
	if ((size_t)(run->end - run->at) < bytes)
		return STEP_MALFORMED;
	for (unsigned i = 0; i < bytes; i++)
		count |= (uint64_t)run->at[i] << (8 * i);
	run->at += bytes;
	return advance_by(run, count, ret_status);
}

static int step_cfa(struct run *run, uint8_t op)
{
	struct cfi_state *state = run->state;
	uint64_t reg = state->named_register, unsigned_offset;
	int64_t offset = state->named_offset;
	bool takes_register =
		op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_register;

	if (takes_register && !cfi_read_uleb(&run->at, run->end, &reg))
		return STEP_MALFORMED;
	if (op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_offset_sf) {
		if (!cfi_read_sleb(&run->at, run->end, &offset) ||
		    __builtin_mul_overflow(offset, run->program->data_align, &offset))
			return STEP_MALFORMED;
	} else if (op != DW_CFA_def_cfa_register) {
		if (!cfi_read_uleb(&run->at, run->end, &unsigned_offset) ||
		    unsigned_offset > INT64_MAX)
			return STEP_MALFORMED;
		offset = (int64_t)unsigned_offset;
	}
	state->named_register = reg;
	state->named_offset = offset;
	/* A register takes an expression's place; an offset alone does not (as in libgcc). */
	if (takes_register || !state->is_expression)
		set_cfa(run, reg, offset);
	return STEP_OK;
}

static int step_expression(struct run *run, uint8_t op, int *ret_status, struct err *err)
{
	uint64_t reg = 0, len;
	struct slice expression;

	if (op != DW_CFA_def_cfa_expression && !cfi_read_uleb(&run->at, run->end, &reg))
		return STEP_MALFORMED;
	if (!cfi_read_uleb(&run->at, run->end, &len) || len > EXPRESSION_BYTES_MAX)
		return STEP_MALFORMED;
	*ret_status = look_ahead(run, len, err);
	if (*ret_status)
		return STEP_STOP;
	if ((size_t)(run->end - run->at) < len)
		return STEP_MALFORMED;
	expression = slice_from(run->at, len);
	run->at += len;
	if (op == DW_CFA_def_cfa_expression)
		set_cfa_by_expression(run, expression);
	else
		set_place_by_expression(run, reg, expression, op == DW_CFA_expression);
	return STEP_OK;
}

/* Instructions of a register and perhaps a second number. */
static int step_register(struct run *run, uint8_t op)
{
	uint64_t reg, number = 0;
	int64_t factored = 0;
	bool is_signed = op == DW_CFA_offset_extended_sf || op == DW_CFA_val_offset_sf;
	bool is_alone =
		op == DW_CFA_restore_extended || op == DW_CFA_undefined || op == DW_CFA_same_value;

	if (!cfi_read_uleb(&run->at, run->end, &reg))
		return STEP_MALFORMED;
	if (is_signed && !cfi_read_sleb(&run->at, run->end, &factored))
		return STEP_MALFORMED;
	if (!is_signed && !is_alone && !cfi_read_uleb(&run->at, run->end, &number))
		return STEP_MALFORMED;
	if (!is_signed)
		factored = number > INT64_MAX ? INT64_MAX : (int64_t)number;
	switch (op) {
	case DW_CFA_restore_extended:
		restore(run, reg);
		break;
	case DW_CFA_undefined:
		set_place(run, reg, UNWIND_VALUE_UNDEFINED, 0, 0);
		break;
	case DW_CFA_same_value:
		set_place(run, reg, UNWIND_VALUE_SAME, 0, 0);
		break;
	case DW_CFA_register:
		set_place(run, reg, UNWIND_VALUE_IN_REGISTER, number, 0);
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set_place_factored(run, reg, UNWIND_VALUE_AT_CFA, -factored);
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		set_place_factored(run, reg, UNWIND_VALUE_CFA, factored);
		break;
	default:
		set_place_factored(run, reg, UNWIND_VALUE_AT_CFA, factored);
	}
	return STEP_OK;
}

static int remember(struct run *run)
{
	if (run->remembered_count == CFI_REMEMBERED_MAX)
		return STEP_MALFORMED;
	run->remembered[run->remembered_count++] = *run->state;
	return STEP_OK;
}

static int recall(struct run *run)
{
	if (!run->remembered_count)
		return STEP_MALFORMED;
	*run->state = run->remembered[--run->remembered_count];
	return STEP_OK;
}

static int step_extended(struct run *run, uint8_t op, int *ret_status, struct err *err)
{
	uint64_t ignored;

	switch (op) {
	case DW_CFA_nop:
		return STEP_OK;
	case DW_CFA_set_loc:
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
		return step_location(run, op, ret_status);
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
		return step_cfa(run, op);
	case DW_CFA_def_cfa_expression:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return step_expression(run, op, ret_status, err);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_GNU_negative_offset_extended:
		return step_register(run, op);
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return recall(run);
	case DW_CFA_GNU_args_size: /* of no use for unwinding by CFA */
		return cfi_read_uleb(&run->at, run->end, &ignored) ? STEP_OK : STEP_MALFORMED;
	case CFA_MONO_ADVANCE_LOC:
		return run->program->mark ? advance_to(run, run->program->mark, ret_status)
					  : STEP_MALFORMED;
	case DW_CFA_AARCH64_negate_ra_state: /* elsewhere GNU_window_save, of SPARC alone */
		if (!run->program->registers->is_arm64)
			return STEP_MALFORMED;
		run->state->is_signed = !run->state->is_signed;
		return STEP_OK;
	default:
		return STEP_MALFORMED;
	}
}

static int step(struct run *run, int *ret_status, struct err *err)
{
	uint8_t op = *run->at++, operand = op & 0x3f;
	uint64_t factored;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance_by(run, operand, ret_status);
	case DW_CFA_offset:
		if (!cfi_read_uleb(&run->at, run->end, &factored) || factored > INT64_MAX)
			return STEP_MALFORMED;
		set_place_factored(run, operand, UNWIND_VALUE_AT_CFA, (int64_t)factored);
		return STEP_OK;
	case DW_CFA_restore:
		restore(run, operand);
		return STEP_OK;
	default:
		return step_extended(run, op, ret_status, err);
	}
}

/* The row that is left when the instructions have ended. */
static int finish(struct run *run, int outcome)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_UNSUPPORTED };

	if (!run->sink || run->row_address >= run->program->address_end)
		return 0;
	if (outcome != STEP_MALFORMED)
		make_rule(run->program, run->state, &rule);
	return give_row(run, &rule);
}

int cfi_program_run(const struct cfi_program *program, struct cfi_state *state,
		    const struct unwind_row_sink *sink, enum cfi_program_end *ret_end,
		    struct err *err)
{
	struct run run;
	int outcome = STEP_OK, status = 0;

	run.program = program; /* the remembered states need no clearing */
	run.state = state;
	run.sink = sink;
	run.remembered_count = 0;
	run.at = run.end = NULL;
	run.view_end = program->at;
	run.row_address = program->address;
	while (outcome == STEP_OK) {
		status = look_ahead(&run, INSTRUCTION_BYTES, err);
		if (status)
			return status;
		if (run.at == run.end)
			break;
		outcome = step(&run, &status, err);
	}
	if (status)
		return status;
	*ret_end = outcome == STEP_MALFORMED ? CFI_PROGRAM_MALFORMED : CFI_PROGRAM_DONE;
	return finish(&run, outcome);
}
