/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privilege - what each kind of firn's processes may do, in one table (privilege.c), and how a
 * process gives up the rest for good: capabilities, its user, new privileges by running programs,
 * and system calls that its kind has no use for.
 */
#ifndef FIRN_BASE_PRIVILEGE_H
#define FIRN_BASE_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"

enum privilege_role {
	PRIVILEGE_AGENT,
	PRIVILEGE_AGENT_ADMIN,	/* the same, on kernels that refuse it without CAP_SYS_ADMIN */
	PRIVILEGE_FILE_STARTER, /* forks file workers */
	PRIVILEGE_FILE_WORKER,	/* opens files of other processes */
	PRIVILEGE_SOURCES,	/* opens files as the user that it is */
	PRIVILEGE_UP,		/* watches server and agent, starts the agent again */
	PRIVILEGE_SERVER,
	PRIVILEGE_SERVER_OF_ROOT,  /* stays root, with root's rights over files */
	PRIVILEGE_SPAWNER,	   /* starts what reads hostile bytes for a server */
	PRIVILEGE_SPAWNER_OF_ROOT, /* the same; what it starts may read any file */
	PRIVILEGE_ROLES
};

struct privilege_user {
	uid_t uid;
	gid_t gid;
};

/*
 * Reduces this process to the privileges of the role, and becomes `user` (NULL: stays who it is).
 * Capabilities belong to the calling thread, so call it before any other thread starts. On an error
 * the process must end: it may have given up a part.
 */
MUST_USE int privilege_enter(enum privilege_role role, const struct privilege_user *user,
			     struct err *err);

/*
 * Keeps no other capabilities than these, for good, and becomes `user` (NULL: stays who it is);
 * false when it cannot.
 */
MUST_USE bool privilege_keep(uint64_t capabilities, const struct privilege_user *user);

/*
 * Drops a capability of the calling thread for a while, to test what works without it; false if the
 * thread does not have it. privilege_take_up restores it.
 */
MUST_USE bool privilege_put_aside(unsigned capability);
void privilege_take_up(unsigned capability);

/* The capabilities of a role on this kernel, as a mask; the names of a mask: "CAP_BPF CAP_KILL". */
uint64_t privilege_capabilities(enum privilege_role role);
void privilege_names(uint64_t capabilities, struct strbuf *out);

/*
 * Finds the user that reads hostile bytes when root starts firn: firn-symbols if it exists, else a
 * uid that nobody else has. False if this process cannot become another user: it is not root, or
 * its user namespace lacks that uid.
 */
MUST_USE bool privilege_find_worker(struct privilege_user *ret);

/* A user of this host by its entry in /etc/passwd; false when there is none. */
MUST_USE bool privilege_find_user(const char *name, struct privilege_user *ret);
MUST_USE bool privilege_find_uid(uid_t uid, struct privilege_user *ret);

#endif
