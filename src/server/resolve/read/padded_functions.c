/* SPDX-License-Identifier: Apache-2.0 */
/* Padding: lld/ELF/Arch/X86_64.cpp, trapInstr. */
#include "server/resolve/read/padded_functions.h"

#include <assert.h>
#include <string.h>

#define STEP 16u
#define INT3 0xcc
#define BYTES_EACH_MAX 4096u /* of code to each function that was filled up to, on average */

static uint8_t byte_at(struct slice code, size_t at)
{
	return (uint8_t)code.data[at];
}

static bool is_jump_register(uint8_t form)
{
	return form >= 0xe0 && form <= 0xe7;
}

/* The bytes before may be the last instruction of a function. */
static bool ends_before(struct slice code, size_t at)
{
	if (at >= 5 && (byte_at(code, at - 5) & 0xfe) == 0xe8) /* call, jmp rel32 */
		return true;
	if (at >= 3 && byte_at(code, at - 3) == 0xc2) /* ret imm16 */
		return true;
	if (at >= 2 && (byte_at(code, at - 2) == 0xeb || /* jmp rel8 */
			(byte_at(code, at - 2) == 0x0f && byte_at(code, at - 1) == 0x0b) ||
			(byte_at(code, at - 2) == 0xff && is_jump_register(byte_at(code, at - 1)))))
		return true;
	return at >= 1 && byte_at(code, at - 1) == 0xc3;
}

static bool is_behind_padding(struct slice code, size_t at)
{
	if (!at || byte_at(code, at - 1) != INT3 || byte_at(code, at) == INT3)
		return false;
	return (at >= 2 && byte_at(code, at - 2) == INT3) || ends_before(code, at - 1);
}

/* endbr64, if any; push %rbp; mov %rsp, %rbp */
static bool is_prologue(struct slice code, size_t at)
{
	static const uint8_t pad[] = { 0xf3, 0x0f, 0x1e, 0xfa },
			     frame[] = { 0x55, 0x48, 0x89, 0xe5 };

	if (code.len - at >= sizeof(pad) + sizeof(frame) &&
	    !memcmp(code.data + at, pad, sizeof(pad)))
		at += sizeof(pad);
	return code.len - at >= sizeof(frame) && !memcmp(code.data + at, frame, sizeof(frame));
}

static size_t first_step(uint64_t address)
{
	return (size_t)(-address & (STEP - 1));
}

size_t padded_functions_count(struct slice code, uint64_t address)
{
	size_t count = 0;

	for (size_t at = first_step(address); at < code.len; at += STEP)
		count += is_behind_padding(code, at);
	return count;
}

bool padded_functions_are(uint64_t bytes, uint64_t count)
{
	return bytes / BYTES_EACH_MAX < count;
}

static void hand_over(struct slice code, uint64_t address, size_t start, size_t end,
		      struct symbol_builder *builder)
{
	assert(start <= end && end <= code.len);
	while (start < end && byte_at(code, start) == INT3)
		start++;
	while (end > start && byte_at(code, end - 1) == INT3)
		end--;
	if (start < end)
		symbol_builder_extent(builder, &(struct symbol_extent){
						       address + start,
						       address + end,
						       address + start,
					       });
}

void padded_functions_read(struct slice code, uint64_t address, struct symbol_builder *builder)
{
	size_t start = 0;

	for (size_t at = first_step(address); at < code.len; at += STEP) {
		if (at == start || (!is_behind_padding(code, at) && !is_prologue(code, at)))
			continue;
		hand_over(code, address, start, at, builder);
		start = at;
	}
	hand_over(code, address, start, code.len, builder);
}
