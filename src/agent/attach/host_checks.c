/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/host_checks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/attach/features.h"
#include "agent/attach/tracepoints.h"
#include "base/slice.h"

#define BTF_FILE "/sys/kernel/btf/vmlinux"
#define LOCKDOWN_FILE "/sys/kernel/security/lockdown"
#define TRACEFS_FOLDER "/sys/kernel/tracing/events"
#define CLOCK_SOURCE_FILE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define CPU_FOLDER "/sys/devices/system/cpu/"
#define SYSCTL_KERNEL "/proc/sys/kernel/"

#define INIT_PID_NAMESPACE 0xEFFFFFFCu /* PROC_PID_INIT_INO of the kernel */
#define PID_NAMESPACE "/proc/self/ns/pid"
#define SAMPLE_RATE_WANTED 1000
#define CGROUP_BYTES_WANTED ((uint64_t)256 << 20)
#define CGROUP_DEPTH_MAX 64

/* The file's first bytes as text, without the last newline; false when it cannot be read. */
static bool read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	while (len > 0 && text[len - 1] == '\n')
		len--;
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static bool read_number(const char *path, uint64_t *ret)
{
	char text[32];

	return read_text(path, text, sizeof(text)) && slice_parse_u64(slice_of(text), ret);
}

static bool has_capability(unsigned capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[capability / 32].effective & 1u << capability % 32;
}

static bool may_use_bpf(void)
{
	return has_capability(CAP_SYS_ADMIN) ||
	       (has_capability(CAP_BPF) && has_capability(CAP_PERFMON));
}

__attribute__((format(printf, 2, 3))) static void found(struct host_check *check,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(check->found, sizeof(check->found), format, arguments);
	va_end(arguments);
}

static void judge(struct host_check *check, enum host_check_state state, const char *meaning,
		  const char *remedy)
{
	check->state = state;
	check->meaning = meaning;
	snprintf(check->remedy, sizeof(check->remedy), "%s", remedy);
}

static void fine(struct host_check *check, const char *meaning)
{
	judge(check, HOST_CHECK_OK, meaning, "");
}

static void check_kernel(struct host_check *check)
{
	struct utsname name;

	uname(&name);
	found(check, "%s %.60s %.30s", name.sysname, name.release, name.machine);
	fine(check, "Its features count, not its version; they are listed below.");
}

static void check_capabilities(struct host_check *check)
{
	if (may_use_bpf()) {
		found(check, "%s",
		      has_capability(CAP_SYS_ADMIN) ? "CAP_SYS_ADMIN" : "CAP_BPF, CAP_PERFMON");
		fine(check, "Every process can be sampled.");
		return;
	}
	found(check, "neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON");
	judge(check, HOST_CHECK_MISSING, "Sampling needs root, or CAP_BPF and CAP_PERFMON.",
	      "run it with sudo, for example `" HOST_CHECKS_EXAMPLE "`");
}

static void check_other_users(struct host_check *check)
{
	if (has_capability(CAP_SYS_PTRACE)) {
		found(check, "CAP_SYS_PTRACE");
		fine(check, "The files of every process can be read for their unwind tables and "
			    "names.");
		return;
	}
	found(check, "no CAP_SYS_PTRACE");
	judge(check, HOST_CHECK_WARNING,
	      "Programs of other users stay without unwind tables and names.",
	      "run it as root, or add CAP_SYS_PTRACE");
}

static int open_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = type, .size = sizeof(attr), .config = config, .disabled = 1
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void check_perf_events(struct host_check *check)
{
	int failed = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	char paranoid[32] = "?";

	read_text(SYSCTL_KERNEL "perf_event_paranoid", paranoid, sizeof(paranoid));
	found(check, "cpu-clock: %s; kernel.perf_event_paranoid is %s",
	      failed ? strerrordesc_np(-failed) : "opens", paranoid);
	if (!failed)
		fine(check, "Each CPU has a clock to take samples by.");
	else if (failed == -ENOSYS)
		judge(check, HOST_CHECK_MISSING, "No clock to sample by.",
		      "boot a kernel built with CONFIG_PERF_EVENTS");
	else if (may_use_bpf())
		judge(check, HOST_CHECK_MISSING, "The kernel refuses to open the sampling clock.",
		      "allow the system call perf_event_open: in a container, run it with "
		      "`--privileged` or a seccomp profile that has it");
	else
		judge(check, HOST_CHECK_MISSING, "Only privileged programs may sample CPUs.",
		      "run it with sudo, for example `" HOST_CHECKS_EXAMPLE "`");
}

static void check_sample_rate(struct host_check *check)
{
	uint64_t rate;

	if (!read_number(SYSCTL_KERNEL "perf_event_max_sample_rate", &rate)) {
		found(check, "kernel.perf_event_max_sample_rate cannot be read");
		fine(check, "The usual limits of the sampling frequency hold.");
		return;
	}
	found(check, "kernel.perf_event_max_sample_rate is %llu", (unsigned long long)rate);
	if (rate >= SAMPLE_RATE_WANTED)
		fine(check, "Every sampling frequency that firn offers is allowed.");
	else
		judge(check, HOST_CHECK_WARNING,
		      "Higher sampling frequencies than this are refused; the kernel lowers it by "
		      "itself when its interrupts took long.",
		      "sudo sysctl kernel.perf_event_max_sample_rate=100000");
}

static void check_hardware_events(struct host_check *check)
{
	int failed = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);

	found(check, "hardware cycles: %s", failed ? strerrordesc_np(-failed) : "there");
	fine(check, "Samples are taken by the CPU clock, which needs no hardware counters.");
}

static void check_bpf(struct host_check *check)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_RINGBUF,
				.max_entries = (unsigned)sysconf(_SC_PAGESIZE) };
	int fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));

	if (fd >= 0) {
		close(fd);
		found(check, "ring buffers can be made");
		fine(check, "Samples have a way out of the kernel.");
		return;
	}
	found(check, "bpf(BPF_MAP_CREATE): %s", strerrordesc_np(errno));
	if (errno == ENOSYS)
		judge(check, HOST_CHECK_MISSING, "The kernel cannot run BPF programs.",
		      "boot a kernel built with CONFIG_BPF_SYSCALL");
	else if (errno == EINVAL)
		judge(check, HOST_CHECK_MISSING, "The kernel has no BPF ring buffers.",
		      "boot Linux 5.15 or newer");
	else if (may_use_bpf())
		judge(check, HOST_CHECK_MISSING, "The kernel refuses BPF.",
		      "allow the system call bpf: in a container, run it with `--privileged` or a "
		      "seccomp profile that has it");
	else
		judge(check, HOST_CHECK_MISSING, "Only privileged programs may use BPF.",
		      "run it with sudo, for example `" HOST_CHECKS_EXAMPLE "`");
}

static void check_btf(struct host_check *check)
{
	if (!access(BTF_FILE, R_OK)) {
		found(check, BTF_FILE);
		fine(check, "The BPF program is fitted to this kernel's types.");
		return;
	}
	found(check, BTF_FILE ": %s", strerrordesc_np(errno));
	judge(check, HOST_CHECK_MISSING,
	      "The kernel does not describe its types, so the BPF program cannot be fitted to it.",
	      "boot a kernel built with CONFIG_DEBUG_INFO_BTF");
}

static void cannot_ask(struct host_check *check)
{
	found(check, "cannot be asked without privilege");
	judge(check, HOST_CHECK_WARNING, "It is not known whether this kernel has it.",
	      "sudo firn doctor");
}

static void check_loop(struct host_check *check)
{
	if (!may_use_bpf()) {
		cannot_ask(check);
	} else if (features_have_loop()) {
		found(check, "there");
		fine(check, "Stacks are walked by unwind tables.");
	} else {
		found(check, "not there");
		judge(check, HOST_CHECK_MISSING,
		      "Stacks are the kernel's own frame-pointer walk: those of programs built "
		      "without frame pointers are cut or wrong.",
		      "boot Linux 5.17 or newer");
	}
}

static void check_vma_iterator(struct host_check *check)
{
	if (!may_use_bpf()) {
		cannot_ask(check);
	} else if (features_have_vma_iterator()) {
		found(check, "there");
		fine(check, "The mappings of a program are known from its exec on.");
	} else {
		found(check, "not there");
		judge(check, HOST_CHECK_WARNING,
		      "Mappings are read from /proc: a process's first stacks may be cut, and "
		      "those of very short processes stay so.",
		      "boot Linux 6.7 or newer");
	}
}

static void check_jit(struct host_check *check)
{
	uint64_t enabled;

	if (!read_number("/proc/sys/net/core/bpf_jit_enable", &enabled)) {
		found(check, "net.core.bpf_jit_enable cannot be read");
		fine(check, "It is nearly always on.");
		return;
	}
	found(check, "net.core.bpf_jit_enable is %llu", (unsigned long long)enabled);
	if (enabled)
		fine(check, "BPF programs run as machine code.");
	else
		judge(check, HOST_CHECK_WARNING,
		      "BPF programs are interpreted: each sample takes several times as long.",
		      "sudo sysctl net.core.bpf_jit_enable=1");
}

static void check_unprivileged_bpf(struct host_check *check)
{
	char text[32] = "?";

	read_text(SYSCTL_KERNEL "unprivileged_bpf_disabled", text, sizeof(text));
	found(check, "kernel.unprivileged_bpf_disabled is %s", text);
	fine(check, "firn uses BPF with privilege only, so either setting does.");
}

static void check_lockdown(struct host_check *check)
{
	char text[128];

	if (!read_text(LOCKDOWN_FILE, text, sizeof(text)))
		snprintf(text, sizeof(text), "off or not shown");
	found(check, "%s", text);
	if (strstr(text, "[confidentiality]"))
		judge(check, HOST_CHECK_MISSING, "This mode forbids BPF programs to read stacks.",
		      "boot with lockdown=integrity on the kernel's command line");
	else
		fine(check, "BPF programs may read stacks.");
}

/* The value of a field of /proc/self/status, or an empty slice. */
static struct slice status_field(const char *text, const char *name)
{
	struct slice rest = slice_of(text), field = slice_of(name);

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);

		if (slice_starts_with(line, field))
			return slice_tail(line, field.len);
	}
	return (struct slice){ 0 };
}

static void check_seccomp(struct host_check *check)
{
	char text[4096];
	struct slice mode = { 0 };

	if (read_text("/proc/self/status", text, sizeof(text)))
		mode = status_field(text, "Seccomp:\t");
	if (!mode.len || slice_is(mode, "0")) {
		found(check, "no filter");
		fine(check, "No system call is withheld.");
		return;
	}
	found(check, "a filter is active (mode %.*s)", SLICE_FMT(mode));
	fine(check, "If perf_events or bpf are refused above, this filter may be the reason.");
}

static void check_kernel_names(struct host_check *check)
{
	char text[32];
	bool hidden;

	if (!read_text(SYSCTL_KERNEL "kptr_restrict", text, sizeof(text))) {
		found(check, "kernel.kptr_restrict cannot be read");
		fine(check, "Kernel functions may stay without names.");
		return;
	}
	hidden = text[0] == '2' || !has_capability(CAP_SYSLOG);
	found(check, "kernel.kptr_restrict is %s%s", text,
	      has_capability(CAP_SYSLOG) ? "" : ", no CAP_SYSLOG");
	if (!hidden)
		fine(check, "Kernel functions have names.");
	else if (text[0] == '2')
		judge(check, HOST_CHECK_WARNING, "Kernel functions stay without names.",
		      "sudo sysctl kernel.kptr_restrict=1");
	else
		judge(check, HOST_CHECK_WARNING, "Kernel functions stay without names.",
		      "run it as root, or add CAP_SYSLOG");
}

static void check_tracepoints(struct host_check *check)
{
	struct err err;
	int fd;

	if (!may_use_bpf()) {
		cannot_ask(check);
	} else if (!tracepoints_open("syscalls", "sys_exit_mmap", &fd, &err)) {
		close(fd);
		found(check, "syscalls:sys_exit_mmap opens; " TRACEFS_FOLDER ": %s",
		      access(TRACEFS_FOLDER, X_OK) ? strerrordesc_np(errno) : "there");
		fine(check, "Libraries that come and go are followed.");
	} else {
		found(check, "%.200s", err.message);
		judge(check, HOST_CHECK_WARNING,
		      "Mappings that change are read from /proc: stacks may be cut just after a "
		      "library was loaded.",
		      "sudo mount -t tracefs tracefs /sys/kernel/tracing");
	}
}

static void check_memlock(struct host_check *check)
{
	char text[4096];
	struct slice locked = { 0 };

	if (read_text("/proc/self/limits", text, sizeof(text)))
		locked = status_field(text, "Max locked memory");
	while (locked.len && locked.data[0] == ' ')
		locked = slice_tail(locked, 1);
	locked.len = slice_find_byte(locked, ' ') < locked.len ? slice_find_byte(locked, ' ')
							       : locked.len;
	found(check, "RLIMIT_MEMLOCK is %.*s", SLICE_FMT(locked));
	fine(check, "Since Linux 5.11 BPF memory counts in the cgroup instead; before, firn raises "
		    "the limit itself.");
}

/* The lowest memory limit of our cgroup and those above it (cgroup v2); UINT64_MAX = none. */
static uint64_t cgroup_limit(char *folder, size_t folder_bytes)
{
	uint64_t lowest = UINT64_MAX, limit;
	char path[4096 + 64], text[4096], own[4096];
	struct slice at;

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return lowest;
	at = status_field(text, "0::");
	if (at.len >= sizeof(own))
		return lowest;
	for (int depth = 0; at.len > 1 && depth < CGROUP_DEPTH_MAX; depth++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/memory.max", SLICE_FMT(at));
		if (read_number(path, &limit) && limit < lowest) {
			lowest = limit;
			snprintf(folder, folder_bytes, "%.*s", SLICE_FMT(at));
		}
		while (at.len && at.data[at.len - 1] != '/')
			at.len--;
		if (at.len)
			at.len--;
	}
	return lowest;
}

uint64_t host_checks_memory_bytes(void)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	char folder[160];
	uint64_t limit = cgroup_limit(folder, sizeof(folder));

	return limit < machine ? limit : machine;
}

static void check_memory(struct host_check *check)
{
	char folder[160] = "";
	uint64_t limit = cgroup_limit(folder, sizeof(folder));

	if (limit == UINT64_MAX) {
		found(check, "no limit of the cgroup");
		fine(check, "Unwind tables and maps find room.");
		return;
	}
	found(check, "limited to %llu MiB by the cgroup %s", (unsigned long long)(limit >> 20),
	      folder);
	if (limit >= CGROUP_BYTES_WANTED)
		fine(check, "Unwind tables and maps find room.");
	else
		judge(check, HOST_CHECK_WARNING,
		      "BPF maps count towards this limit; the agent may be killed.",
		      "allow at least 256 MiB (systemd: MemoryMax=, Kubernetes: limits.memory)");
}

bool host_checks_share_process_ids(void)
{
	struct stat info;

	return !stat(PID_NAMESPACE, &info) && info.st_ino == INIT_PID_NAMESPACE;
}

static void check_pid_namespace(struct host_check *check)
{
	struct stat info;

	if (stat(PID_NAMESPACE, &info)) {
		found(check, PID_NAMESPACE ": %s", strerrordesc_np(errno));
		judge(check, HOST_CHECK_MISSING, "Processes are described by /proc.",
		      "mount -t proc proc /proc");
	} else if (host_checks_share_process_ids()) {
		found(check, "the host's");
		fine(check, "Process ids in samples are those of /proc here.");
	} else {
		found(check, "one of its own");
		judge(check, HOST_CHECK_MISSING,
		      "Samples name processes by ids of the host, which /proc here does not know.",
		      "share the host's: " HOST_CHECKS_SHARE_IDS);
	}
}

static void check_cpus(struct host_check *check)
{
	char online[64] = "?", present[64] = "?";

	read_text(CPU_FOLDER "online", online, sizeof(online));
	read_text(CPU_FOLDER "present", present, sizeof(present));
	found(check, "online: %s; present: %s", online, present);
	if (!strcmp(online, present))
		fine(check, "Each has its sampling clock.");
	else
		judge(check, HOST_CHECK_WARNING,
		      "CPUs that come online while the agent runs are not sampled.",
		      "restart the agent after bringing CPUs online");
}

static void check_time(struct host_check *check)
{
	char source[64] = "?";
	struct timex state = { 0 };
	bool synchronised = adjtimex(&state) >= 0 && !(state.status & STA_UNSYNC);

	read_text(CLOCK_SOURCE_FILE, source, sizeof(source));
	found(check, "clock source %s; %s", source,
	      synchronised ? "synchronised" : "not synchronised");
	if (!strcmp(source, "hpet") || !strcmp(source, "acpi_pm"))
		judge(check, HOST_CHECK_WARNING,
		      "Reading this clock takes a microsecond, and each sample reads it.",
		      "boot with a working TSC (see `dmesg | grep -i tsc`)");
	else if (!synchronised)
		judge(check, HOST_CHECK_WARNING,
		      "Profiles carry this host's time: they may stand beside those of other "
		      "hosts.",
		      "sudo timedatectl set-ntp true");
	else
		fine(check, "Profiles stand where they belong in time.");
}

void host_checks_run(struct host_checks *ret)
{
	static const struct {
		const char *name;
		void (*check)(struct host_check *check);
		bool needed;
	} table[] = {
		{ "kernel", check_kernel, false },
		{ "capabilities", check_capabilities, true },
		{ "other_users", check_other_users, false },
		{ "perf_events", check_perf_events, true },
		{ "sample_rate", check_sample_rate, false },
		{ "hardware_events", check_hardware_events, false },
		{ "bpf", check_bpf, true },
		{ "btf", check_btf, true },
		{ "bpf_loop", check_loop, false },
		{ "bpf_iter_task_vma", check_vma_iterator, false },
		{ "bpf_jit", check_jit, false },
		{ "unprivileged_bpf", check_unprivileged_bpf, false },
		{ "lockdown", check_lockdown, true },
		{ "seccomp", check_seccomp, false },
		{ "kernel_names", check_kernel_names, false },
		{ "tracepoints", check_tracepoints, false },
		{ "memlock", check_memlock, false },
		{ "memory", check_memory, false },
		{ "pid_namespace", check_pid_namespace, false },
		{ "cpus", check_cpus, false },
		{ "time", check_time, false },
	};

	_Static_assert(sizeof(table) / sizeof(table[0]) <= HOST_CHECKS_MAX, "checks");
	ret->count = sizeof(table) / sizeof(table[0]);
	for (size_t i = 0; i < ret->count; i++) {
		ret->items[i] =
			(struct host_check){ .name = table[i].name, .needed = table[i].needed };
		table[i].check(&ret->items[i]);
	}
}

const char *host_check_state_name(enum host_check_state state)
{
	static const char *const names[] = {
		[HOST_CHECK_OK] = "ok",
		[HOST_CHECK_WARNING] = "warning",
		[HOST_CHECK_MISSING] = "missing",
	};

	return names[state];
}
