/* SPDX-License-Identifier: Apache-2.0 */
#include "base/confine/privilege_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define OTHER_NUMBERS 0x40000000u /* x32: the same calls by other numbers */
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define OTHER_NUMBERS 0x40000000u
#else
#error "the architecture of system calls is not known"
#endif

#define INSTRUCTIONS_MAX 1024

static const struct {
	unsigned kind;
	int number;
} calls[] = {
	{ PRIVILEGE_NO_SYSTEM, SYS_acct },
	{ PRIVILEGE_NO_SYSTEM, SYS_add_key },
	{ PRIVILEGE_NO_SYSTEM, SYS_chroot },
	{ PRIVILEGE_NO_SYSTEM, SYS_clock_settime },
	{ PRIVILEGE_NO_SYSTEM, SYS_delete_module },
	{ PRIVILEGE_NO_SYSTEM, SYS_fanotify_init },
	{ PRIVILEGE_NO_SYSTEM, SYS_finit_module },
	{ PRIVILEGE_NO_SYSTEM, SYS_init_module },
	{ PRIVILEGE_NO_SYSTEM, SYS_io_uring_enter },
	{ PRIVILEGE_NO_SYSTEM, SYS_io_uring_register },
	{ PRIVILEGE_NO_SYSTEM, SYS_io_uring_setup },
	{ PRIVILEGE_NO_SYSTEM, SYS_kcmp },
	{ PRIVILEGE_NO_SYSTEM, SYS_kexec_file_load },
	{ PRIVILEGE_NO_SYSTEM, SYS_kexec_load },
	{ PRIVILEGE_NO_SYSTEM, SYS_keyctl },
	{ PRIVILEGE_NO_SYSTEM, SYS_mknodat },
	{ PRIVILEGE_NO_SYSTEM, SYS_open_by_handle_at },
	{ PRIVILEGE_NO_SYSTEM, SYS_personality },
	{ PRIVILEGE_NO_SYSTEM, SYS_pivot_root },
	{ PRIVILEGE_NO_SYSTEM, SYS_process_vm_writev },
	{ PRIVILEGE_NO_SYSTEM, SYS_ptrace },
	{ PRIVILEGE_NO_SYSTEM, SYS_quotactl },
	{ PRIVILEGE_NO_SYSTEM, SYS_reboot },
	{ PRIVILEGE_NO_SYSTEM, SYS_request_key },
	{ PRIVILEGE_NO_SYSTEM, SYS_setdomainname },
	{ PRIVILEGE_NO_SYSTEM, SYS_sethostname },
	{ PRIVILEGE_NO_SYSTEM, SYS_setns },
	{ PRIVILEGE_NO_SYSTEM, SYS_settimeofday },
	{ PRIVILEGE_NO_SYSTEM, SYS_swapoff },
	{ PRIVILEGE_NO_SYSTEM, SYS_swapon },
	{ PRIVILEGE_NO_SYSTEM, SYS_syslog },
	{ PRIVILEGE_NO_SYSTEM, SYS_unshare },
	{ PRIVILEGE_NO_SYSTEM, SYS_userfaultfd },
	{ PRIVILEGE_NO_SYSTEM, SYS_vhangup },
	{ PRIVILEGE_NO_MOUNT, SYS_fsconfig },
	{ PRIVILEGE_NO_MOUNT, SYS_fsmount },
	{ PRIVILEGE_NO_MOUNT, SYS_fsopen },
	{ PRIVILEGE_NO_MOUNT, SYS_fspick },
	{ PRIVILEGE_NO_MOUNT, SYS_mount },
	{ PRIVILEGE_NO_MOUNT, SYS_mount_setattr },
	{ PRIVILEGE_NO_MOUNT, SYS_move_mount },
	{ PRIVILEGE_NO_MOUNT, SYS_open_tree },
	{ PRIVILEGE_NO_MOUNT, SYS_umount2 },
	{ PRIVILEGE_NO_IDENTITY, SYS_setfsgid },
	{ PRIVILEGE_NO_IDENTITY, SYS_setfsuid },
	{ PRIVILEGE_NO_IDENTITY, SYS_setgid },
	{ PRIVILEGE_NO_IDENTITY, SYS_setgroups },
	{ PRIVILEGE_NO_IDENTITY, SYS_setregid },
	{ PRIVILEGE_NO_IDENTITY, SYS_setresgid },
	{ PRIVILEGE_NO_IDENTITY, SYS_setresuid },
	{ PRIVILEGE_NO_IDENTITY, SYS_setreuid },
	{ PRIVILEGE_NO_IDENTITY, SYS_setuid },
	{ PRIVILEGE_NO_EXEC, SYS_execve },
	{ PRIVILEGE_NO_EXEC, SYS_execveat },
	{ PRIVILEGE_NO_PROFILING, SYS_bpf },
	{ PRIVILEGE_NO_PROFILING, SYS_perf_event_open },
	{ PRIVILEGE_NO_PROFILING, SYS_process_vm_readv },
	{ PRIVILEGE_NO_NETWORK, SYS_accept },
	{ PRIVILEGE_NO_NETWORK, SYS_accept4 },
	{ PRIVILEGE_NO_NETWORK, SYS_bind },
	{ PRIVILEGE_NO_NETWORK, SYS_connect },
	{ PRIVILEGE_NO_NETWORK, SYS_listen },
	{ PRIVILEGE_NO_NETWORK, SYS_socket },
	{ PRIVILEGE_NO_CHANGE, SYS_fchmod },
	{ PRIVILEGE_NO_CHANGE, SYS_fchmodat },
	{ PRIVILEGE_NO_CHANGE, SYS_fchown },
	{ PRIVILEGE_NO_CHANGE, SYS_fchownat },
	{ PRIVILEGE_NO_CHANGE, SYS_fsetxattr },
	{ PRIVILEGE_NO_CHANGE, SYS_linkat },
	{ PRIVILEGE_NO_CHANGE, SYS_lsetxattr },
	{ PRIVILEGE_NO_CHANGE, SYS_mkdirat },
	{ PRIVILEGE_NO_CHANGE, SYS_renameat2 },
	{ PRIVILEGE_NO_CHANGE, SYS_setxattr },
	{ PRIVILEGE_NO_CHANGE, SYS_symlinkat },
	{ PRIVILEGE_NO_CHANGE, SYS_truncate },
	{ PRIVILEGE_NO_CHANGE, SYS_unlinkat },
	{ PRIVILEGE_NO_CHANGE, SYS_utimensat },
	{ PRIVILEGE_NO_PROCESS, SYS_clone },
	{ PRIVILEGE_NO_PROCESS, SYS_clone3 },
#ifdef __x86_64__
	{ PRIVILEGE_NO_SYSTEM, SYS_ioperm },
	{ PRIVILEGE_NO_SYSTEM, SYS_iopl },
	{ PRIVILEGE_NO_SYSTEM, SYS_mknod },
	{ PRIVILEGE_NO_SYSTEM, SYS_modify_ldt },
	{ PRIVILEGE_NO_CHANGE, SYS_chmod },
	{ PRIVILEGE_NO_CHANGE, SYS_chown },
	{ PRIVILEGE_NO_CHANGE, SYS_creat },
	{ PRIVILEGE_NO_CHANGE, SYS_lchown },
	{ PRIVILEGE_NO_CHANGE, SYS_link },
	{ PRIVILEGE_NO_CHANGE, SYS_mkdir },
	{ PRIVILEGE_NO_CHANGE, SYS_rename },
	{ PRIVILEGE_NO_CHANGE, SYS_renameat },
	{ PRIVILEGE_NO_CHANGE, SYS_rmdir },
	{ PRIVILEGE_NO_CHANGE, SYS_symlink },
	{ PRIVILEGE_NO_CHANGE, SYS_unlink },
	{ PRIVILEGE_NO_PROCESS, SYS_fork },
	{ PRIVILEGE_NO_PROCESS, SYS_vfork },
#endif
};

/*
 * All that an agent's threads call, and what libc, libbpf and TLS call in their place on kernels
 * from 5.4 on. Roles with such a list are refused everything else (docs/decisions/0012).
 */
static const int agent_calls[] = {
	/* The most frequent ones first. */
	SYS_read,
	SYS_write,
	SYS_futex,
	SYS_bpf,
	SYS_process_vm_readv,
	SYS_pread64,
	SYS_clock_gettime,
	SYS_openat,
	SYS_close,
	SYS_fstat,
	SYS_newfstatat,
	SYS_readlinkat,
	SYS_getdents64,
	SYS_sendto,
	SYS_recvfrom,
#ifdef __x86_64__
	SYS_epoll_wait,
	SYS_poll,
#endif
	/* The others. */
	SYS_readv,
	SYS_writev,
	SYS_pwrite64,
	SYS_preadv,
	SYS_pwritev,
	SYS_lseek,
	SYS_openat2,
	SYS_close_range,
	SYS_statx,
	SYS_fstatfs,
	SYS_statfs,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_fcntl,
	SYS_ioctl,
	SYS_dup,
	SYS_dup3,
	SYS_pipe2,
	SYS_fsync,
	SYS_fdatasync,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_flock,
	SYS_renameat,
	SYS_renameat2,
	SYS_unlinkat,
	SYS_mkdirat,
	SYS_linkat,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_umask,
	SYS_sendfile,
	SYS_copy_file_range,
	SYS_fadvise64,
	SYS_memfd_create,
	SYS_getcwd,
	SYS_brk,
	SYS_mmap,
	SYS_munmap,
	SYS_mprotect,
	SYS_mremap,
	SYS_madvise,
	SYS_mincore,
	SYS_msync,
	SYS_mlock,
	SYS_munlock,
	SYS_membarrier,
	SYS_clone,
	SYS_clone3,
	SYS_set_robust_list,
	SYS_get_robust_list,
	SYS_rseq,
	SYS_set_tid_address,
	SYS_exit,
	SYS_exit_group,
	SYS_wait4,
	SYS_waitid,
	SYS_getpid,
	SYS_getppid,
	SYS_gettid,
	SYS_getpgid,
	SYS_getsid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_getresuid,
	SYS_getresgid,
	SYS_getgroups,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_sched_setaffinity,
	SYS_sched_getparam,
	SYS_sched_getscheduler,
	SYS_getpriority,
	SYS_setpriority,
	SYS_prctl,
	SYS_prlimit64,
	SYS_getrusage,
	SYS_times,
	SYS_sysinfo,
	SYS_uname,
	SYS_getrandom,
	SYS_getcpu,
	SYS_capget,
	SYS_capset,
	SYS_clock_getres,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_gettimeofday,
	SYS_timerfd_create,
	SYS_timerfd_settime,
	SYS_timerfd_gettime,
	SYS_restart_syscall,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_rt_sigtimedwait,
	SYS_rt_sigpending,
	SYS_rt_sigsuspend,
	SYS_sigaltstack,
	SYS_signalfd4,
	SYS_kill,
	SYS_tgkill,
	SYS_tkill,
	SYS_pidfd_open,
	SYS_pidfd_send_signal,
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_accept,
	SYS_accept4,
	SYS_getsockname,
	SYS_getpeername,
	SYS_setsockopt,
	SYS_getsockopt,
	SYS_sendmsg,
	SYS_recvmsg,
	SYS_sendmmsg,
	SYS_recvmmsg,
	SYS_shutdown,
	SYS_ppoll,
	SYS_pselect6,
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_eventfd2,
	SYS_inotify_init1,
	SYS_inotify_add_watch,
	SYS_inotify_rm_watch,
	SYS_perf_event_open,
	SYS_utimensat,
	SYS_mlock2,
	SYS_timer_create,
	SYS_timer_settime,
	SYS_timer_delete,
	SYS_timer_gettime,
	SYS_timer_getoverrun,
	SYS_setitimer,
	SYS_getitimer,
	SYS_sched_get_priority_max,
	SYS_sched_get_priority_min,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_readahead,
#ifdef __x86_64__
	SYS_open,
	SYS_stat,
	SYS_lstat,
	SYS_access,
	SYS_readlink,
	SYS_getdents,
	SYS_dup2,
	SYS_pipe,
	SYS_rename,
	SYS_unlink,
	SYS_mkdir,
	SYS_rmdir,
	SYS_chmod,
	SYS_link,
	SYS_getrlimit,
	SYS_setrlimit,
	SYS_time,
	SYS_select,
	SYS_epoll_create,
	SYS_eventfd,
	SYS_inotify_init,
	SYS_arch_prctl,
	SYS_alarm,
	SYS_pause,
	SYS_getpgrp,
#endif
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
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

static void answer_call(struct program *program, int number, uint32_t verdict)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
	add(program, BPF_RET | BPF_K, verdict, 0, 0);
}

/* Refuses an open whose flags have one of the bits. */
static void refuse_flags(struct program *program, int number, unsigned argument, uint32_t bits)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
	add(program, BPF_LD | BPF_W | BPF_ABS,
	    (uint32_t)(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t)), 0, 0);
	add(program, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
	add(program, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	add(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

/* A call that no list knows is not there: libraries have another way for older kernels. */
static void write_filter(struct program *program, unsigned refused)
{
	bool is_agent = refused & PRIVILEGE_ONLY_AGENT;

	add(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	add(program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	add(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	add(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	add(program, BPF_JMP | BPF_JGE | BPF_K, OTHER_NUMBERS, 0, 1);
	add(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	for (size_t i = 0; is_agent && i < sizeof(agent_calls) / sizeof(*agent_calls); i++)
		answer_call(program, agent_calls[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].kind & refused)
			answer_call(program, calls[i].number, SECCOMP_RET_ERRNO | EPERM);
	if (refused & PRIVILEGE_NO_CHANGE) {
		const uint32_t bits = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

		refuse_flags(program, SYS_openat, 2, bits);
#ifdef __x86_64__
		refuse_flags(program, SYS_open, 1, bits);
#endif
	}
	add(program, BPF_RET | BPF_K, is_agent ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_ALLOW, 0,
	    0);
}

/* The kernel logs what is refused, but those before 4.14. */
int privilege_filter_calls(unsigned refused)
{
	struct program program = { .len = 0 };
	struct sock_fprog filter = { .filter = program.code };

	write_filter(&program, refused);
	filter.len = program.len;
	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, &filter))
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
