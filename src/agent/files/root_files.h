/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_files - opens files of other processes by path, as they see them, for threads that may wait:
 * one second if the file system hangs, ROOT_FILES_WAIT_NS if it is slow. It uses a lender
 * (lender.h) of its own: far files come as copies in memory, so no descriptor that it returns can
 * block.
 *
 * Processes with the same root directory and mounts see the same files. After one had to wait,
 * requests for the others fail at once until the file system answers.
 *
 * Any thread; one request at a time. Counted references: a thread that was abandoned may hold one.
 */
#ifndef FIRN_AGENT_FILES_ROOT_FILES_H
#define FIRN_AGENT_FILES_ROOT_FILES_H

#include "agent/files/lender.h"

#define ROOT_FILES_WAIT_NS (5 * CLOCK_NS_PER_S)

struct root_files;

struct root_files_wish {
	uint32_t pid;
	int root_fd; /* > 0: the root directory of the process, which may have gone, open here */
	const char *path;
	bool is_last_followed; /* a symbolic link in the last place is */
	uint64_t device;       /* as in struct file_key; 0 = not known */
	struct lender_part part;
};

struct root_file {
	int fd;		     /* -1 = it cannot be had; the receiver closes it */
	struct file_key key; /* of the file itself */
	uint32_t owner;
	bool is_copy;
	uint64_t copied_from; /* of a copy: there is nothing before */
	bool is_stuck;	      /* its file system does not answer */
	int64_t cpu_ns;	      /* that another process took */
};

/* Forks; fails only when the system has no processes or descriptors left. */
int root_files_new(struct root_files **ret, struct err *err);
struct root_files *root_files_ref(struct root_files *files); /* accepts and returns NULL */
void root_files_unref(struct root_files *files);	     /* accepts NULL */

/* From now on all requests fail, also waiting ones. Accepts NULL. */
void root_files_stop(struct root_files *files);

struct root_file root_files_open(struct root_files *files, const struct root_files_wish *wish);

#endif
