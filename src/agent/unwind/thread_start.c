/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/thread_start.h"

#include <elf.h>

#define SEARCH_BYTES_MAX (16ull << 20)
#define SEARCH_STEP_BYTES 8192u

/* endbr64 */
static const uint8_t x86_landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
/* xor %ebp,%ebp; the psABI asks entry points to mark the outermost frame */
static const uint8_t x86_entry[] = { 0x31, 0xed };
/* xor %rbp,%rbp; mov %rsp,%rdi; lea _DYNAMIC(%rip),%rsi: musl, arch/x86_64/crt_arch.h */
static const uint8_t x86_musl_entry[] = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35 };
/* mov %rsp,%rdi; call _dl_start: glibc's dynamic linker, sysdeps/x86_64/dl-machine.h */
static const uint8_t x86_glibc_entry[] = { 0x48, 0x89, 0xe7, 0xe8 };
/* xor %ebp,%ebp; pop %rdi; call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall; hlt:
 * musl, src/thread/x86_64/clone.s */
static const uint8_t x86_musl_clone[] = { 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7,
					  0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4 };
/* mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je; call setcontext: glibc,
 * sysdeps/unix/sysv/linux/x86_64/__start_context.S, without shadow stacks */
static const uint8_t x86_context[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24,
				       0x48, 0x85, 0xff, 0x74, 0x08, 0xe8 };
/* syscall; test %rax,%rax; jl; je over the ret; ret: glibc,
 * sysdeps/unix/sysv/linux/x86_64/clone.S and clone3.S */
static const uint8_t x86_clone[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c };
static const uint8_t x86_clone_far[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x0f, 0x8c };
static const uint8_t x86_clone_end[] = { 0x74, 0x01, 0xc3 };
/* bti c; nop */
static const uint8_t arm64_landing[] = { 0x5f, 0x24, 0x03, 0xd5 };
static const uint8_t arm64_nop[] = { 0x1f, 0x20, 0x03, 0xd5 };
/* mov x29, #0 */
static const uint8_t arm64_entry[] = { 0x1d, 0x00, 0x80, 0xd2 };

static bool starts_with(const uint8_t *code, size_t len, const uint8_t *pattern, size_t pattern_len)
{
	return len >= pattern_len && !memcmp(code, pattern, pattern_len);
}

#define STARTS_WITH(code, len, pattern) starts_with((code), (len), (pattern), sizeof(pattern))

static bool marks_outermost_frame(uint16_t machine, const uint8_t *code, size_t len)
{
	if (machine == EM_X86_64) {
		if (STARTS_WITH(code, len, x86_landing)) {
			code += sizeof(x86_landing);
			len -= sizeof(x86_landing);
		}
		return STARTS_WITH(code, len, x86_entry) ||
		       STARTS_WITH(code, len, x86_musl_entry) ||
		       STARTS_WITH(code, len, x86_glibc_entry);
	}
	if (STARTS_WITH(code, len, arm64_landing) || STARTS_WITH(code, len, arm64_nop)) {
		code += sizeof(arm64_landing);
		len -= sizeof(arm64_landing);
	}
	return STARTS_WITH(code, len, arm64_entry);
}

bool thread_start_is_entry(const struct elf_layout *layout, const uint8_t *code, size_t len)
{
	return layout->is_program || marks_outermost_frame(layout->info.machine, code, len);
}

bool thread_start_is_musl(uint16_t machine, const uint8_t *code, size_t len)
{
	return machine == EM_X86_64 && STARTS_WITH(code, len, x86_musl_entry);
}

bool thread_start_is_context(uint16_t machine, const uint8_t *code, size_t len)
{
	return machine == EM_X86_64 && STARTS_WITH(code, len, x86_context);
}

bool thread_start_is_clone(uint16_t machine, const uint8_t *code, size_t len)
{
	bool begins =
		(len == THREAD_START_CLONE_BYTES && STARTS_WITH(code, len, x86_clone)) ||
		(len == THREAD_START_CLONE_FAR_BYTES && STARTS_WITH(code, len, x86_clone_far));

	return machine == EM_X86_64 && begins &&
	       !memcmp(code + len - sizeof(x86_clone_end), x86_clone_end, sizeof(x86_clone_end));
}

int thread_start_find_clone(struct section_reader *code, uint64_t *ret_offset, uint64_t *ret_bytes,
			    struct err *err)
{
	const size_t overlap = sizeof(x86_musl_clone) - 1;

	for (uint64_t at = 0; at < code->size && at < SEARCH_BYTES_MAX; at += SEARCH_STEP_BYTES) {
		const uint8_t *bytes, *found;
		size_t have;
		int status = section_reader_view_some(code, at, SEARCH_STEP_BYTES + overlap, &bytes,
						      &have, err);

		if (status)
			return status;
		found = have ? memmem(bytes, have, x86_musl_clone, sizeof(x86_musl_clone)) : NULL;
		if (!found)
			continue;
		*ret_offset = at + (uint64_t)(found - bytes);
		*ret_bytes = sizeof(x86_musl_clone);
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "no start of threads in \"%s\"", code->name);
}
