/* SPDX-License-Identifier: Apache-2.0 */
#include "base/privilege.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/confine/privilege_filter.h"

#define CAPABILITIES_MAX 64
/* Belongs to no account, and to no range from which Debian or systemd assign numbers. */
#define WORKER_USER "firn-symbols"
#define WORKER_ID 65533u
#define BIT(capability) (UINT64_C(1) << (capability))

struct role {
	uint64_t capabilities;
	unsigned refused;     /* enum privilege_refusal */
	bool are_handed_down; /* capabilities, to programs that it runs */
};

#define TO_SAMPLE (BIT(CAP_BPF) | BIT(CAP_PERFMON))
#define TO_READ_PROCESSES (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH))
/* The kernel shows /proc/PID/map_files, where deleted files are, to nobody else. */
#define TO_OPEN_MAPPED BIT(CAP_CHECKPOINT_RESTORE)
/* Addresses of the kernel, tracefs where it is not mounted, limits: while an agent starts. */
#define TO_START_AGENT                                                                             \
	(BIT(CAP_SYSLOG) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_RESOURCE) | BIT(CAP_SETPCAP))

#define TO_SPAWN_REFUSED                                                                           \
	(PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT | PRIVILEGE_NO_IDENTITY |                        \
	 PRIVILEGE_NO_PROFILING | PRIVILEGE_NO_NETWORK)

/* The rights of each kind of process. */
static const struct role roles[PRIVILEGE_ROLES] = {
	[PRIVILEGE_AGENT] = { .capabilities = TO_SAMPLE | TO_READ_PROCESSES,
			      .refused = PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
					 PRIVILEGE_NO_IDENTITY | PRIVILEGE_NO_EXEC |
					 PRIVILEGE_ONLY_AGENT },
	[PRIVILEGE_AGENT_ADMIN] = { .capabilities =
					    TO_SAMPLE | TO_READ_PROCESSES | BIT(CAP_SYS_ADMIN),
				    .refused = PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
					       PRIVILEGE_NO_IDENTITY | PRIVILEGE_NO_EXEC |
					       PRIVILEGE_ONLY_AGENT },
	[PRIVILEGE_FILE_STARTER] = { .capabilities = TO_READ_PROCESSES | TO_OPEN_MAPPED,
				     .refused = PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
						PRIVILEGE_NO_EXEC | PRIVILEGE_NO_PROFILING |
						PRIVILEGE_NO_NETWORK | PRIVILEGE_NO_CHANGE },
	[PRIVILEGE_FILE_WORKER] = { .capabilities = TO_READ_PROCESSES | TO_OPEN_MAPPED,
				    .refused = PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
					       PRIVILEGE_NO_EXEC | PRIVILEGE_NO_PROFILING |
					       PRIVILEGE_NO_NETWORK | PRIVILEGE_NO_CHANGE |
					       PRIVILEGE_NO_IDENTITY | PRIVILEGE_NO_PROCESS },
	[PRIVILEGE_SOURCES] = { .refused = PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
					   PRIVILEGE_NO_EXEC | PRIVILEGE_NO_PROFILING |
					   PRIVILEGE_NO_NETWORK | PRIVILEGE_NO_CHANGE |
					   PRIVILEGE_NO_IDENTITY | PRIVILEGE_NO_PROCESS },
	/* KILL: the server is another user's. */
	[PRIVILEGE_UP] = { .capabilities = BIT(CAP_KILL) | TO_SAMPLE | TO_READ_PROCESSES |
					   TO_OPEN_MAPPED | TO_START_AGENT,
			   .refused = PRIVILEGE_NO_SYSTEM },
	/* NET_BIND_SERVICE: it may be told to listen on port 443. */
	[PRIVILEGE_SERVER] = { .capabilities = BIT(CAP_NET_BIND_SERVICE),
			       .refused = PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
					  PRIVILEGE_NO_IDENTITY | PRIVILEGE_NO_PROFILING },
	[PRIVILEGE_SERVER_OF_ROOT] = { .capabilities =
					       BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_DAC_OVERRIDE),
				       .refused = PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
						  PRIVILEGE_NO_IDENTITY | PRIVILEGE_NO_PROFILING },
	[PRIVILEGE_SPAWNER] = { .refused = TO_SPAWN_REFUSED },
	[PRIVILEGE_SPAWNER_OF_ROOT] = { .capabilities = BIT(CAP_DAC_READ_SEARCH),
					.refused = TO_SPAWN_REFUSED,
					.are_handed_down = true },
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

static int set_all(uint64_t permitted, uint64_t effective, uint64_t inheritable)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	data[0].permitted = (uint32_t)permitted;
	data[1].permitted = (uint32_t)(permitted >> 32);
	data[0].effective = (uint32_t)effective;
	data[1].effective = (uint32_t)(effective >> 32);
	data[0].inheritable = (uint32_t)inheritable;
	data[1].inheritable = (uint32_t)(inheritable >> 32);
	return (int)syscall(SYS_capset, &header, data);
}

static int set_capabilities(uint64_t permitted, uint64_t effective)
{
	return set_all(permitted, effective, 0);
}

/* To programs that are run from now on, which have no others. */
static int hand_down(uint64_t capabilities)
{
	if (set_all(capabilities, capabilities, capabilities))
		return -1;
	for (unsigned i = 0; i < CAPABILITIES_MAX; i++)
		if (capabilities & BIT(i) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0))
			return -1;
	return 0;
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

bool privilege_keep(uint64_t capabilities, const struct privilege_user *user)
{
	uint64_t kept = own_capabilities() & capabilities;

	bound(capabilities);
	if (user && become(user))
		return false;
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
	if (roles[role].are_handed_down && hand_down(capabilities))
		return err_set_errno(err, errno, "hand capabilities down");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_set_errno(err, errno, "give up new privileges");
	if (privilege_filter_calls(roles[role].refused))
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

/* Whether the file, a map of users or groups, has a row with the number in it. */
static bool is_mapped(const char *path, unsigned id)
{
	FILE *file = fopen(path, "re");
	unsigned first, outside, count;
	bool found = false;

	while (file && !found && fscanf(file, "%u %u %u", &first, &outside, &count) == 3)
		found = id >= first && id - first < count;
	if (file)
		fclose(file);
	return found;
}

bool privilege_find_worker(struct privilege_user *ret)
{
	const uint64_t needed = BIT(CAP_SETUID) | BIT(CAP_SETGID);

	if ((own_capabilities() & needed) != needed)
		return false;
	if (!privilege_find_user(WORKER_USER, ret) || !ret->uid)
		*ret = (struct privilege_user){ WORKER_ID, WORKER_ID };
	return is_mapped("/proc/self/uid_map", ret->uid) &&
	       is_mapped("/proc/self/gid_map", ret->gid);
}
