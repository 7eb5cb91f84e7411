/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/confine/filter_program.h"

/* What an open for reading may have besides O_RDONLY. */
#define READ_FLAGS (O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_LARGEFILE)

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

static void allow_without(struct filter_program *program, int number, unsigned argument,
			  uint32_t bits)
{
	filter_program_bits(program, number, argument, bits, true, SECCOMP_RET_ALLOW);
}

static void allow_exactly(struct filter_program *program, int number, unsigned argument,
			  uint32_t value)
{
	filter_program_value(program, number, argument, value, SECCOMP_RET_ALLOW);
}

static void write_filter(struct filter_program *program, enum syscall_filter_files files)
{
	filter_program_begin(program);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		filter_program_call(program, allowed[i], SECCOMP_RET_ALLOW);
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
		filter_program_call(program, refused[i], SECCOMP_RET_ERRNO | EACCES);
	filter_program_end(program, SECCOMP_RET_KILL_PROCESS);
}

bool syscall_filter_apply(enum syscall_filter_files files)
{
	struct filter_program program;

	write_filter(&program, files);
	return !filter_program_set(&program, false);
}
