/* SPDX-License-Identifier: Apache-2.0 */
/*
 * musl's pthread_getspecific, as compilers emit it with and without frame pointers, the registers
 * being any:
 *
 *   mov %fs:0, %rax
 *   mov 0x80(%rax), %rax     the offset is what is sought
 *   mov %edi, %edi           the key, as 64 bits
 *   mov (%rax,%rdi,8), %rax
 */
#include "agent/runtime/c_library.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "agent/procs/space.h"
#include "agent/runtime/elf_exports.h"
#include "agent/unwind/thread_start.h"

#define MUSL_KEYS_AT 0x80u /* in musl 1.2 */
#define MUSL_KEYS_AT_MAX 1024u
#define KEYS_CODE_BYTES 48u
#define ENTRY_BYTES 9u /* enough to tell; in the library little code follows */

#define REGISTER_DI 7u

/* Low bits of an instruction's second byte: another byte follows that names base and index. */
#define OPERAND_HAS_INDEX 4u

struct keys_code {
	const uint8_t *at;
	size_t left;
	unsigned thread, values, key; /* registers; NO_REGISTER = not loaded yet */
	uint32_t keys_at;
};

#define NO_REGISTER 8u

static bool skip(struct keys_code *code, const uint8_t *bytes, size_t len)
{
	if (code->left < len || memcmp(code->at, bytes, len) != 0)
		return false;
	code->at += len;
	code->left -= len;
	return true;
}

/* What neither loads nor leaves. */
static bool skip_other(struct keys_code *code)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */
	static const uint8_t push_fp[] = { 0x55 };
	static const uint8_t set_fp[] = { 0x48, 0x89, 0xe5 };
	static const uint8_t pop_fp[] = { 0x5d };

	return skip(code, landing, sizeof(landing)) || skip(code, push_fp, sizeof(push_fp)) ||
	       skip(code, set_fp, sizeof(set_fp)) || skip(code, pop_fp, sizeof(pop_fp));
}

/* mov %fs:0, %REG */
static bool take_thread(struct keys_code *code)
{
	static const uint8_t load[] = { 0x64, 0x48, 0x8b };
	static const uint8_t zero[] = { 0x25, 0, 0, 0, 0 };
	const size_t len = sizeof(load) + 1 + sizeof(zero);
	const uint8_t *operand;

	if (code->left < len)
		return false;
	operand = code->at + sizeof(load);
	if (memcmp(code->at, load, sizeof(load)) != 0 || (*operand & 0xc7) != OPERAND_HAS_INDEX ||
	    memcmp(operand + 1, zero, sizeof(zero)) != 0)
		return false;
	code->thread = *operand >> 3 & 7;
	code->at += len;
	code->left -= len;
	return true;
}

/* mov %edi, %REG */
static bool take_key(struct keys_code *code)
{
	uint8_t operand = code->left >= 2 ? code->at[1] : 0;
	bool is_store = code->left >= 2 && code->at[0] == 0x89;

	if (!(is_store || (code->left >= 2 && code->at[0] == 0x8b)) || operand < 0xc0 ||
	    (is_store ? operand >> 3 & 7 : operand & 7) != REGISTER_DI)
		return false;
	code->key = is_store ? operand & 7 : operand >> 3 & 7;
	code->at += 2;
	code->left -= 2;
	return true;
}

/* mov OFFSET(%THREAD), %REG, the offset in one byte or in four */
static bool take_values(struct keys_code *code)
{
	static const uint8_t load[] = { 0x48, 0x8b };
	uint8_t operand = code->left >= 7 ? code->at[2] : 0;
	bool is_short = operand >> 6 == 1;

	if ((!is_short && operand >> 6 != 2) || memcmp(code->at, load, sizeof(load)) != 0 ||
	    (operand & 7) == OPERAND_HAS_INDEX || (operand & 7) != code->thread)
		return false;
	code->keys_at = code->at[3];
	if (!is_short)
		memcpy(&code->keys_at, code->at + 3, sizeof(code->keys_at));
	code->values = operand >> 3 & 7;
	code->at += is_short ? 4 : 7;
	code->left -= is_short ? 4 : 7;
	return true;
}

/* mov (%VALUES,%KEY,8), %rax */
static bool loads_value(const struct keys_code *code)
{
	const uint8_t load[] = { 0x48, 0x8b, OPERAND_HAS_INDEX,
				 (uint8_t)(0xc0 | code->key << 3 | code->values) };

	return code->values < NO_REGISTER && code->left >= sizeof(load) &&
	       !memcmp(code->at, load, sizeof(load));
}

static bool is_place(uint32_t keys_at)
{
	return keys_at && !(keys_at & 7) && keys_at <= MUSL_KEYS_AT_MAX;
}

uint16_t c_library_parse_keys(const uint8_t *bytes, size_t len)
{
	struct keys_code code = { .at = bytes,
				  .left = len,
				  .thread = NO_REGISTER,
				  .values = NO_REGISTER,
				  .key = REGISTER_DI };

	while (!loads_value(&code))
		if (!skip_other(&code) && !take_thread(&code) && !take_key(&code) &&
		    !take_values(&code))
			return 0;
	return is_place(code.keys_at) ? (uint16_t)code.keys_at : 0;
}

static bool has_musl_entry(const struct elf_exports *file)
{
	uint8_t code[ENTRY_BYTES];
	Elf64_Ehdr header;

	return file->info->machine == EM_X86_64 &&
	       pread(file->fd, &header, sizeof(header), 0) == sizeof(header) && header.e_entry &&
	       elf_exports_read(file, header.e_entry, code, sizeof(code)) &&
	       thread_start_is_musl(file->info->machine, code, sizeof(code));
}

uint16_t c_library_read(int fd, const struct elf_info *info)
{
	struct elf_exports file = { .fd = fd, .info = info };
	uint8_t code[KEYS_CODE_BYTES];
	struct elf_export getter;
	uint16_t keys_at;

	/* Programs have the same entry as the library. */
	if (!has_musl_entry(&file) || !elf_exports_open(&file, fd, info) ||
	    !elf_exports_find(&file, "pthread_getspecific", &getter) ||
	    !elf_exports_read(&file, getter.address, code, sizeof(code)))
		return 0;
	keys_at = c_library_parse_keys(code, sizeof(code));
	return keys_at ? keys_at : MUSL_KEYS_AT;
}

bool c_library_of(const struct space *space, uint16_t *ret_keys_at)
{
	bool is_known = true;

	*ret_keys_at = 0;
	for (uint32_t i = 0; i < space->count; i++) {
		const struct binary *binary = space->mappings[i].binary;

		if (binary && binary->musl_keys_at) {
			*ret_keys_at = binary->musl_keys_at;
			return true;
		}
		is_known = is_known && (!binary || binary->opened);
	}
	return is_known;
}
