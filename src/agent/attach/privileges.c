/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BTF_FILE "/sys/kernel/btf/vmlinux"
#define LOCKDOWN_FILE "/sys/kernel/security/lockdown"
#define PARANOID_FILE "/proc/sys/kernel/perf_event_paranoid"
#define KPTR_FILE "/proc/sys/kernel/kptr_restrict"

/* The file's first bytes as text; false when it cannot be read. */
static bool read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
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

static void check_capabilities(struct strbuf *out)
{
	if (!may_use_bpf())
		strbuf_add_text(out,
				"Sampling needs root (or CAP_BPF and CAP_PERFMON): run it with "
				"sudo, for example `sudo firn up`.\n");
}

static void check_other_users(struct strbuf *out)
{
	if (may_use_bpf() && !has_capability(CAP_SYS_PTRACE))
		strbuf_add_text(out,
				"Without CAP_SYS_PTRACE the programs of other users stay without "
				"names: run as root, or add the capability.\n");
}

static void check_perf_events(struct strbuf *out)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int error_number = errno;
	char paranoid[32];

	if (fd >= 0) {
		close(fd);
		return;
	}
	if (error_number == ENOSYS) {
		strbuf_add_text(out,
				"This kernel is built without perf events (CONFIG_PERF_EVENTS): "
				"another kernel is needed.\n");
	} else if (may_use_bpf()) {
		strbuf_addf(out,
			    "The kernel refuses perf events (%s): allow the system call "
			    "perf_event_open, which containers often forbid (seccomp).\n",
			    strerrordesc_np(error_number));
	} else if (read_text(PARANOID_FILE, paranoid, sizeof(paranoid))) {
		strbuf_addf(out,
			    "kernel.perf_event_paranoid is %.*s: only privileged programs may "
			    "sample CPUs.\n",
			    (int)strcspn(paranoid, "\n"), paranoid);
	}
}

static void check_bpf(struct strbuf *out)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = 4096 };
	int fd;

	if (!may_use_bpf())
		return; /* said already */
	fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd >= 0)
		close(fd);
	else if (errno == ENOSYS)
		strbuf_add_text(out,
				"This kernel is built without BPF (CONFIG_BPF_SYSCALL): another "
				"kernel is needed.\n");
	else if (errno == EINVAL)
		strbuf_add_text(out, "This kernel has no BPF ring buffers: Linux 5.15 or newer is "
				     "needed.\n");
	else
		strbuf_addf(out,
			    "The kernel refuses BPF (%s): allow the system call bpf, which "
			    "containers often forbid (seccomp).\n",
			    strerrordesc_np(errno));
}

static void check_btf(struct strbuf *out)
{
	if (access(BTF_FILE, R_OK))
		strbuf_add_text(out,
				"The kernel does not describe its types (" BTF_FILE "): a kernel "
				"built with CONFIG_DEBUG_INFO_BTF is needed.\n");
}

static void check_lockdown(struct strbuf *out)
{
	char text[128];

	if (read_text(LOCKDOWN_FILE, text, sizeof(text)) && strstr(text, "[confidentiality]"))
		strbuf_add_text(out,
				"Kernel lockdown is in confidentiality mode, which forbids reading "
				"stacks: boot with lockdown=integrity.\n");
}

static void check_kernel_addresses(struct strbuf *out)
{
	char text[32];

	if (!read_text(KPTR_FILE, text, sizeof(text)))
		return;
	if (text[0] == '2' || (text[0] == '1' && !has_capability(CAP_SYSLOG)))
		strbuf_addf(out,
			    "kernel.kptr_restrict is %c: kernel functions stay without names "
			    "(`sudo sysctl kernel.kptr_restrict=1` shows them to root).\n",
			    text[0]);
}

/* Without these no sample is taken at all. */
static void check_what_sampling_needs(struct strbuf *out)
{
	check_capabilities(out);
	check_perf_events(out);
	check_bpf(out);
	check_btf(out);
	check_lockdown(out);
}

void privileges_missing(struct strbuf *out)
{
	check_what_sampling_needs(out);
	check_other_users(out);
	check_kernel_addresses(out);
}

int privileges_explain(struct err *err)
{
	struct strbuf missing = { 0 };
	struct slice first, rest;

	if (!err)
		return -ERR_DENIED;
	check_what_sampling_needs(&missing);
	first = slice_cut(strbuf_slice(&missing), '\n', &rest);
	if (first.len) {
		struct err cause = *err;

		err_set(err, ERR_DENIED, "%.*s (%s)", SLICE_FMT(first), cause.message);
	}
	strbuf_free(&missing);
	return -(int)err->code;
}
