/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the architecture of system calls is not known"
#endif

/* What an open for reading may have besides O_RDONLY. */
#define READ_FLAGS (O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_LARGEFILE)

#define INSTRUCTIONS_MAX 256

/* What glibc and musl need for reading, memory and their end, in any version so far. */
static const int allowed[] = {
	SYS_brk,	  SYS_clock_gettime,   SYS_close,
	SYS_exit,	  SYS_exit_group,      SYS_fcntl,
	SYS_fstat,	  SYS_ftruncate,       SYS_futex,
	SYS_getpid,	  SYS_getrandom,       SYS_gettid,
	SYS_gettimeofday, SYS_getrusage,       SYS_lseek,
	SYS_madvise,	  SYS_memfd_create,    SYS_mremap,
	SYS_munmap,	  SYS_pread64,	       SYS_preadv,
	SYS_pwrite64,	  SYS_pwritev,	       SYS_read,
	SYS_readv,	  SYS_rt_sigaction,    SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_restart_syscall, SYS_sched_yield,
	SYS_sigaltstack,  SYS_sysinfo,	       SYS_uname,
	SYS_write,	  SYS_writev,
};

/* Libraries ask these for paths and settings, and go on without an answer. */
static const int refused[] = {
	SYS_faccessat,	     SYS_faccessat2, SYS_ioctl,
	SYS_newfstatat,	     SYS_openat,     SYS_prlimit64,
	SYS_readlinkat,	     SYS_statx,	     SYS_getcwd,
	SYS_prctl,	     SYS_membarrier, SYS_rseq,
	SYS_set_robust_list, SYS_openat2,    SYS_sched_getaffinity,
	SYS_statfs,	     SYS_fstatfs,    SYS_getrlimit,
#ifdef __x86_64__
	SYS_access,	     SYS_lstat,	     SYS_open,
	SYS_readlink,	     SYS_stat,
#endif
};

struct program {
	struct sock_filter code[INSTRUCTIONS_MAX];
	unsigned short len;
};

static void add(struct program *program, uint16_t code, uint32_t operand, uint8_t if_true,
		uint8_t if_false)
{
	program->code[program->len++] = (struct sock_filter){ code, if_true, if_false, operand };
}

static void load(struct program *program, size_t offset)
{
	add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void give(struct program *program, uint32_t verdict)
{
	add(program, BPF_RET | BPF_K, verdict, 0, 0);
}

static void give_if_equal(struct program *program, uint32_t value, uint32_t verdict)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	give(program, verdict);
}

/* The low half of an argument: what is asked about has no more (both are little-endian). */
static size_t argument(unsigned number)
{
	return offsetof(struct seccomp_data, args) + sizeof(uint64_t) * number;
}

/* Allows a call whose argument has none of the bits; what follows decides on others. */
static void allow_without(struct program *program, int number, unsigned which, uint32_t bits)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
	load(program, argument(which));
	add(program, BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0);
	give(program, SECCOMP_RET_ALLOW);
	load(program, offsetof(struct seccomp_data, nr));
}

/* Allows a call whose argument is this one. */
static void allow_exactly(struct program *program, int number, unsigned which, uint32_t value)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
	load(program, argument(which));
	give_if_equal(program, value, SECCOMP_RET_ALLOW);
	load(program, offsetof(struct seccomp_data, nr));
}

static void write_program(struct program *program, enum syscall_filter_files files)
{
	load(program, offsetof(struct seccomp_data, arch));
	add(program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	give(program, SECCOMP_RET_KILL_PROCESS);
	load(program, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		give_if_equal(program, (uint32_t)allowed[i], SECCOMP_RET_ALLOW);
	allow_without(program, SYS_mmap, 2, PROT_EXEC);
	allow_without(program, SYS_mprotect, 2, PROT_EXEC);
	allow_exactly(program, SYS_tgkill, 0, (uint32_t)getpid()); /* abort; of one thread */
	allow_exactly(program, SYS_tkill, 0, (uint32_t)getpid());
	allow_exactly(program, SYS_newfstatat, 3, AT_EMPTY_PATH); /* how libc says fstat */
	if (files == SYSCALL_FILTER_READ_FILES) {
		allow_without(program, SYS_openat, 2, ~(uint32_t)READ_FLAGS);
#ifdef __x86_64__
		allow_without(program, SYS_open, 1, ~(uint32_t)READ_FLAGS); /* musl's */
#endif
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		give_if_equal(program, (uint32_t)refused[i], SECCOMP_RET_ERRNO | EACCES);
	give(program, SECCOMP_RET_KILL_PROCESS);
}

bool syscall_filter_apply(enum syscall_filter_files files)
{
	struct program program = { .len = 0 };
	struct sock_fprog filter = { .filter = program.code };

	write_program(&program, files);
	filter.len = program.len;
	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
