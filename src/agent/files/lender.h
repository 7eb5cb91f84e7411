/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lender - opens files of other processes without ever waiting for their file systems.
 *
 * A file system may block its caller for ever (a dead NFS server, a hanging FUSE daemon), even a
 * killed one, and even in close. So helper processes open files and lend them: the descriptor comes
 * back over a socket, with the content of the ELF headers.
 *
 *   lender (this process) -> starter (forked once, touches no file) -> workers, forked by it
 *
 * There are two workers: one for files of this host's disks and memory, which are lent as they are,
 * and one for far files (network, FUSE), which are copied into memory and sealed, so that the
 * receiver never touches the far file system. A worker that hangs is abandoned: it is killed, which
 * may have no effect, counted as stuck, and replaced; its device is not used until the stuck worker
 * has ended, and for LENDER_PENALTY_NS at least, because a killable wait would otherwise repeat.
 * With LENDER_STUCK_FAR_MAX workers stuck, only files on this host's disks and memory are opened,
 * so that dead file systems cost only their own programs' names.
 *
 * One thread at a time. Only lender_wait waits, for a bounded time. Bounds: LENDER_WAITING_MAX
 * requests, LENDER_STUCK_MAX stuck workers, copies of LENDER_COPY_BYTES_MAX.
 */
#ifndef FIRN_AGENT_FILES_LENDER_H
#define FIRN_AGENT_FILES_LENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/bpf/table.h"
#include "agent/procs/opener.h"
#include "base/clock.h"
#include "base/err.h"
#include "codec/elf/elf.h"

#define LENDER_WAITING_MAX 4096
#define LENDER_STUCK_MAX 16
#define LENDER_STUCK_FAR_MAX 12
#define LENDER_COPY_BYTES_MAX ((uint64_t)256 << 20)
#define LENDER_PENALTY_NS (10 * CLOCK_NS_PER_S) /* a device that kept one waiting is left alone */
/* Set in a `device` that is no device, but all that has one directory for its root. */
#define LENDER_VIEW (UINT64_C(1) << 63)

struct lender;

enum lender_wish {
	LENDER_MAPPED,	/* the file with this key that is mapped at this place */
	LENDER_KEY,	/* the key alone: when the file mapped there was changed */
	LENDER_PROGRAM, /* the regular file at a path of this process's own root */
	LENDER_IN_ROOT, /* the regular file at a path in the root of place.pids[0], or in `root` */
};

/* Of LENDER_IN_ROOT: what is copied of a far file; the copy has it where the file has it. */
struct lender_part {
	uint64_t from;	    /* beyond the end: all is copied */
	uint64_t bytes_max; /* 0 = the whole file, up to LENDER_COPY_BYTES_MAX */
	bool is_end;	    /* of more than that the last, else the first */
};

/* An open root directory, which outlives its process. */
struct lender_root {
	uint32_t holder; /* the process that has it open; 0 = there is none */
	int fd;		 /* there */
};

struct lender_request {
	enum lender_wish wish;
	struct opener_place place;
	struct file_key key; /* of LENDER_KEY: inode and device */
	const char *path;    /* of all but LENDER_MAPPED; for LENDER_KEY as the process sees it */
	struct lender_root root; /* of LENDER_IN_ROOT */
	struct lender_part part;
	bool is_last_followed; /* of LENDER_IN_ROOT: a symbolic link in the last place is */
	uint64_t mark;	       /* comes back with the answer */
};

struct lender_answer {
	struct lender_request request; /* without its path */
	bool is_done;
	bool is_stuck;	      /* not done because the file system does not answer */
	struct file_key key;  /* found; that of the request when it failed */
	int fd;		      /* open for reading; -1 for a key, and when it failed */
	struct elf_info *elf; /* NULL: it is no ELF file */
	char *path;	      /* as the process sees it; may be "" */
	/* Of LENDER_IN_ROOT: */
	uint32_t owner;
	bool is_copy;
	uint64_t copied_from; /* of a copy: there is nothing before */
	int64_t cpu_ns;	      /* that it took */
};

/* Forks; fails only when the system has no processes or descriptors left. */
int lender_new(struct lender **ret, struct err *err);

/* Leaves stuck workers to themselves. Accepts NULL. */
void lender_free(struct lender *lender);

/* False when it is refused: too many wait, or the file's device does not answer. */
bool lender_ask(struct lender *lender, const struct lender_request *request);

/* The next answer, if one is there: every request that was taken has one. The receiver owns it. */
bool lender_take(struct lender *lender, struct lender_answer *ret);
void lender_answer_free(struct lender_answer *answer); /* closes and frees what is still there */

/* Waits for all answers except copies; false on timeout. */
bool lender_wait(struct lender *lender, int64_t timeout_ns);

/* Readable when there is something to take; changes with lender_look_after. May be -1. */
int lender_fd(const struct lender *lender);

/* Abandons hanging workers and starts others. Call it periodically. */
void lender_look_after(struct lender *lender);

void lender_metrics_register(void); /* once per process */

#endif
