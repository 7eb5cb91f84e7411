/* SPDX-License-Identifier: Apache-2.0 */
#include "base/privilege.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
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

#define CAPABILITIES_MAX 64
#define INSTRUCTIONS_MAX 512
#define BIT(capability) (UINT64_C(1) << (capability))

/* Kinds of system calls that a role is refused. */
enum {
	NO_SYSTEM = 1,	   /* the host itself, other processes, other namespaces */
	NO_MOUNT = 2,	   /* file systems */
	NO_IDENTITY = 4,   /* another user; capset only takes away */
	NO_EXEC = 8,	   /* other programs */
	NO_PROFILING = 16, /* events, BPF, the memory of other processes */
	NO_NETWORK = 32,   /* sockets other than those that are there */
	NO_CHANGE = 64,	   /* files: made, changed, removed */
	NO_PROCESS = 128,  /* more processes and threads */
};

struct role {
	uint64_t capabilities;
	unsigned refused;
};

#define TO_SAMPLE (BIT(CAP_BPF) | BIT(CAP_PERFMON))
#define TO_READ_PROCESSES (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH))
/* The kernel shows /proc/PID/map_files, where deleted files are, to nobody else. */
#define TO_OPEN_MAPPED BIT(CAP_CHECKPOINT_RESTORE)
/* Addresses of the kernel, tracefs where it is not mounted, limits: while an agent starts. */
#define TO_START_AGENT                                                                             \
	(BIT(CAP_SYSLOG) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_RESOURCE) | BIT(CAP_SETPCAP))

/* Who may do what. */
static const struct role roles[PRIVILEGE_ROLES] = {
	[PRIVILEGE_AGENT] = { TO_SAMPLE | TO_READ_PROCESSES,
			      NO_SYSTEM | NO_MOUNT | NO_IDENTITY | NO_EXEC },
	[PRIVILEGE_AGENT_ADMIN] = { TO_SAMPLE | TO_READ_PROCESSES | BIT(CAP_SYS_ADMIN),
				    NO_SYSTEM | NO_MOUNT | NO_IDENTITY | NO_EXEC },
	[PRIVILEGE_FILE_STARTER] = { TO_READ_PROCESSES | TO_OPEN_MAPPED,
				     NO_SYSTEM | NO_MOUNT | NO_EXEC | NO_PROFILING | NO_NETWORK |
					     NO_CHANGE },
	[PRIVILEGE_FILE_WORKER] = { TO_READ_PROCESSES | TO_OPEN_MAPPED,
				    NO_SYSTEM | NO_MOUNT | NO_EXEC | NO_PROFILING | NO_NETWORK |
					    NO_CHANGE | NO_IDENTITY | NO_PROCESS },
	[PRIVILEGE_SOURCES] = { 0, NO_SYSTEM | NO_MOUNT | NO_EXEC | NO_PROFILING | NO_NETWORK |
					   NO_CHANGE | NO_IDENTITY | NO_PROCESS },
	/* KILL: the server is another user's. */
	[PRIVILEGE_UP] = { BIT(CAP_KILL) | TO_SAMPLE | TO_READ_PROCESSES | TO_OPEN_MAPPED |
				   TO_START_AGENT,
			   NO_SYSTEM },
	/* NET_BIND_SERVICE: it may be told to listen on port 443. */
	[PRIVILEGE_SERVER] = { BIT(CAP_NET_BIND_SERVICE),
			       NO_SYSTEM | NO_MOUNT | NO_IDENTITY | NO_PROFILING },
	[PRIVILEGE_SERVER_OF_ROOT] = { BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_DAC_OVERRIDE),
				       NO_SYSTEM | NO_MOUNT | NO_IDENTITY | NO_PROFILING },
};

static const struct {
	unsigned kind;
	int number;
} calls[] = {
	{ NO_SYSTEM, SYS_acct },
	{ NO_SYSTEM, SYS_add_key },
	{ NO_SYSTEM, SYS_chroot },
	{ NO_SYSTEM, SYS_clock_settime },
	{ NO_SYSTEM, SYS_delete_module },
	{ NO_SYSTEM, SYS_fanotify_init },
	{ NO_SYSTEM, SYS_finit_module },
	{ NO_SYSTEM, SYS_init_module },
	{ NO_SYSTEM, SYS_io_uring_enter },
	{ NO_SYSTEM, SYS_io_uring_register },
	{ NO_SYSTEM, SYS_io_uring_setup },
	{ NO_SYSTEM, SYS_kcmp },
	{ NO_SYSTEM, SYS_kexec_file_load },
	{ NO_SYSTEM, SYS_kexec_load },
	{ NO_SYSTEM, SYS_keyctl },
	{ NO_SYSTEM, SYS_mknodat },
	{ NO_SYSTEM, SYS_open_by_handle_at },
	{ NO_SYSTEM, SYS_personality },
	{ NO_SYSTEM, SYS_pivot_root },
	{ NO_SYSTEM, SYS_process_vm_writev },
	{ NO_SYSTEM, SYS_ptrace },
	{ NO_SYSTEM, SYS_quotactl },
	{ NO_SYSTEM, SYS_reboot },
	{ NO_SYSTEM, SYS_request_key },
	{ NO_SYSTEM, SYS_setdomainname },
	{ NO_SYSTEM, SYS_sethostname },
	{ NO_SYSTEM, SYS_setns },
	{ NO_SYSTEM, SYS_settimeofday },
	{ NO_SYSTEM, SYS_swapoff },
	{ NO_SYSTEM, SYS_swapon },
	{ NO_SYSTEM, SYS_syslog },
	{ NO_SYSTEM, SYS_unshare },
	{ NO_SYSTEM, SYS_userfaultfd },
	{ NO_SYSTEM, SYS_vhangup },
	{ NO_MOUNT, SYS_fsconfig },
	{ NO_MOUNT, SYS_fsmount },
	{ NO_MOUNT, SYS_fsopen },
	{ NO_MOUNT, SYS_fspick },
	{ NO_MOUNT, SYS_mount },
	{ NO_MOUNT, SYS_mount_setattr },
	{ NO_MOUNT, SYS_move_mount },
	{ NO_MOUNT, SYS_open_tree },
	{ NO_MOUNT, SYS_umount2 },
	{ NO_IDENTITY, SYS_setfsgid },
	{ NO_IDENTITY, SYS_setfsuid },
	{ NO_IDENTITY, SYS_setgid },
	{ NO_IDENTITY, SYS_setgroups },
	{ NO_IDENTITY, SYS_setregid },
	{ NO_IDENTITY, SYS_setresgid },
	{ NO_IDENTITY, SYS_setresuid },
	{ NO_IDENTITY, SYS_setreuid },
	{ NO_IDENTITY, SYS_setuid },
	{ NO_EXEC, SYS_execve },
	{ NO_EXEC, SYS_execveat },
	{ NO_PROFILING, SYS_bpf },
	{ NO_PROFILING, SYS_perf_event_open },
	{ NO_PROFILING, SYS_process_vm_readv },
	{ NO_NETWORK, SYS_accept },
	{ NO_NETWORK, SYS_accept4 },
	{ NO_NETWORK, SYS_bind },
	{ NO_NETWORK, SYS_connect },
	{ NO_NETWORK, SYS_listen },
	{ NO_NETWORK, SYS_socket },
	{ NO_CHANGE, SYS_fchmod },
	{ NO_CHANGE, SYS_fchmodat },
	{ NO_CHANGE, SYS_fchown },
	{ NO_CHANGE, SYS_fchownat },
	{ NO_CHANGE, SYS_fsetxattr },
	{ NO_CHANGE, SYS_linkat },
	{ NO_CHANGE, SYS_lsetxattr },
	{ NO_CHANGE, SYS_mkdirat },
	{ NO_CHANGE, SYS_renameat2 },
	{ NO_CHANGE, SYS_setxattr },
	{ NO_CHANGE, SYS_symlinkat },
	{ NO_CHANGE, SYS_truncate },
	{ NO_CHANGE, SYS_unlinkat },
	{ NO_CHANGE, SYS_utimensat },
	{ NO_PROCESS, SYS_clone },
	{ NO_PROCESS, SYS_clone3 },
#ifdef __x86_64__
	{ NO_SYSTEM, SYS_ioperm },
	{ NO_SYSTEM, SYS_iopl },
	{ NO_SYSTEM, SYS_mknod },
	{ NO_SYSTEM, SYS_modify_ldt },
	{ NO_CHANGE, SYS_chmod },
	{ NO_CHANGE, SYS_chown },
	{ NO_CHANGE, SYS_creat },
	{ NO_CHANGE, SYS_lchown },
	{ NO_CHANGE, SYS_link },
	{ NO_CHANGE, SYS_mkdir },
	{ NO_CHANGE, SYS_rename },
	{ NO_CHANGE, SYS_renameat },
	{ NO_CHANGE, SYS_rmdir },
	{ NO_CHANGE, SYS_symlink },
	{ NO_CHANGE, SYS_unlink },
	{ NO_PROCESS, SYS_fork },
	{ NO_PROCESS, SYS_vfork },
#endif
};

static const char *const names[] = {
	[CAP_CHOWN] = "CAP_CHOWN",
	[CAP_DAC_OVERRIDE] = "CAP_DAC_OVERRIDE",
	[CAP_DAC_READ_SEARCH] = "CAP_DAC_READ_SEARCH",
	[CAP_FOWNER] = "CAP_FOWNER",
	[CAP_KILL] = "CAP_KILL",
	[CAP_SETGID] = "CAP_SETGID",
	[CAP_SETUID] = "CAP_SETUID",
	[CAP_SETPCAP] = "CAP_SETPCAP",
	[CAP_NET_BIND_SERVICE] = "CAP_NET_BIND_SERVICE",
	[CAP_NET_ADMIN] = "CAP_NET_ADMIN",
	[CAP_NET_RAW] = "CAP_NET_RAW",
	[CAP_SYS_MODULE] = "CAP_SYS_MODULE",
	[CAP_SYS_RAWIO] = "CAP_SYS_RAWIO",
	[CAP_SYS_CHROOT] = "CAP_SYS_CHROOT",
	[CAP_SYS_PTRACE] = "CAP_SYS_PTRACE",
	[CAP_SYS_ADMIN] = "CAP_SYS_ADMIN",
	[CAP_SYS_BOOT] = "CAP_SYS_BOOT",
	[CAP_SYS_NICE] = "CAP_SYS_NICE",
	[CAP_SYS_RESOURCE] = "CAP_SYS_RESOURCE",
	[CAP_SYS_TIME] = "CAP_SYS_TIME",
	[CAP_MKNOD] = "CAP_MKNOD",
	[CAP_SYSLOG] = "CAP_SYSLOG",
	[CAP_PERFMON] = "CAP_PERFMON",
	[CAP_BPF] = "CAP_BPF",
	[CAP_CHECKPOINT_RESTORE] = "CAP_CHECKPOINT_RESTORE",
};

static bool kernel_has(unsigned capability)
{
	return prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
}

uint64_t privilege_capabilities(enum privilege_role role)
{
	static const unsigned newer[] = { CAP_BPF, CAP_PERFMON, CAP_CHECKPOINT_RESTORE };
	uint64_t capabilities = roles[role].capabilities;

	/* What older kernels have no name for yet is CAP_SYS_ADMIN's there. */
	for (size_t i = 0; i < sizeof(newer) / sizeof(*newer); i++)
		if (capabilities & BIT(newer[i]) && !kernel_has(newer[i]))
			capabilities = (capabilities & ~BIT(newer[i])) | BIT(CAP_SYS_ADMIN);
	return capabilities;
}

void privilege_names(uint64_t capabilities, struct strbuf *out)
{
	const char *between = "";

	for (unsigned i = 0; i < CAPABILITIES_MAX; i++) {
		if (!(capabilities & BIT(i)))
			continue;
		if (i < sizeof(names) / sizeof(*names) && names[i])
			strbuf_addf(out, "%s%s", between, names[i]);
		else
			strbuf_addf(out, "%s%u", between, i);
		between = " ";
	}
}

/* ---- capabilities ---- */

static uint64_t own_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static int set_capabilities(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	data[0].permitted = (uint32_t)permitted;
	data[1].permitted = (uint32_t)(permitted >> 32);
	data[0].effective = (uint32_t)effective;
	data[1].effective = (uint32_t)(effective >> 32);
	return (int)syscall(SYS_capset, &header, data);
}

bool privilege_put_aside(unsigned capability)
{
	uint64_t own = own_capabilities();

	return own & BIT(capability) && !set_capabilities(own, own & ~BIT(capability));
}

void privilege_take_up(unsigned capability)
{
	uint64_t own = own_capabilities();
	int failed = set_capabilities(own, own);

	assert(own & BIT(capability) && !failed);
	(void)failed;
}

/* What no program that it runs can have either; without CAP_SETPCAP no_new_privs has to do. */
static void bound(uint64_t capabilities)
{
	for (unsigned i = 0; i < CAPABILITIES_MAX && kernel_has(i); i++)
		if (!(capabilities & BIT(i)))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static int become(const struct privilege_user *user)
{
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0); /* of which set_capabilities leaves the role's */
	if (setgroups(0, NULL) || setresgid(user->gid, user->gid, user->gid))
		return -1;
	return setresuid(user->uid, user->uid, user->uid);
}

/* ---- system calls ---- */

struct program {
	struct sock_filter code[INSTRUCTIONS_MAX];
	unsigned short len;
};

static void add(struct program *program, uint16_t code, uint32_t operand, uint8_t if_true,
		uint8_t if_false)
{
	program->code[program->len++] = (struct sock_filter){ code, if_true, if_false, operand };
}

static void refuse_call(struct program *program, int number)
{
	add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
	add(program, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
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

static void write_filter(struct program *program, unsigned refused)
{
	add(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	add(program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	add(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	add(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	add(program, BPF_JMP | BPF_JGE | BPF_K, OTHER_NUMBERS, 0, 1);
	add(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].kind & refused)
			refuse_call(program, calls[i].number);
	if (refused & NO_CHANGE) {
		const uint32_t bits = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

		refuse_flags(program, SYS_openat, 2, bits);
#ifdef __x86_64__
		refuse_flags(program, SYS_open, 1, bits);
#endif
	}
	add(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static int filter_calls(unsigned refused)
{
	struct program program = { .len = 0 };
	struct sock_fprog filter = { .filter = program.code };

	write_filter(&program, refused);
	filter.len = program.len;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

bool privilege_keep(uint64_t capabilities)
{
	uint64_t kept = own_capabilities() & capabilities;

	bound(capabilities);
	return !set_capabilities(kept, kept);
}

int privilege_enter(enum privilege_role role, const struct privilege_user *user, struct err *err)
{
	uint64_t capabilities = privilege_capabilities(role) & own_capabilities();

	bound(privilege_capabilities(role));
	if (user && become(user))
		return err_set_errno(err, errno, "run as user %u", (unsigned)user->uid);
	if (set_capabilities(capabilities, capabilities))
		return err_set_errno(err, errno, "give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_set_errno(err, errno, "give up new privileges");
	if (filter_calls(roles[role].refused))
		return err_set_errno(err, errno, "give up system calls");
	return 0;
}

/* By its name, or by its number where `name` is NULL. */
static bool find_entry(const char *name, uid_t uid, struct privilege_user *ret)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd entry = { 0 }, *found = NULL;
	char text[4096];
	bool known = false;

	while (file && !known && !fgetpwent_r(file, &entry, text, sizeof(text), &found))
		known = name ? !strcmp(entry.pw_name, name) : entry.pw_uid == uid;
	if (file)
		fclose(file);
	if (known)
		*ret = (struct privilege_user){ entry.pw_uid, entry.pw_gid };
	return known;
}

bool privilege_find_user(const char *name, struct privilege_user *ret)
{
	return find_entry(name, 0, ret);
}

bool privilege_find_uid(uid_t uid, struct privilege_user *ret)
{
	return find_entry(NULL, uid, ret);
}
