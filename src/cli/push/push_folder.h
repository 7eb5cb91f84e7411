/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push_folder - the files of one folder, each to be sent once, when it is complete.
 *
 * A file is who it is by its inode, size and time of change: one that is renamed is the same, one
 * that is overwritten is another. It is complete when it stayed as it is between two looks and
 * nobody has it open for writing. The kernel tells that by a lease, which is for owners of a file
 * and for local file systems; elsewhere a file is complete when it did not change for a while.
 * Passed over: folders, links, what is empty, names that begin with '.' or end as those of files
 * that are being written do (.tmp, .part, ~). One thread. Memory: what the folder has, at most
 * PUSH_FOLDER_FILES_MAX.
 */
#ifndef FIRN_CLI_PUSH_PUSH_FOLDER_H
#define FIRN_CLI_PUSH_PUSH_FOLDER_H

#include "base/err.h"

#define PUSH_FOLDER_FILES_MAX 100000

struct push_folder;

MUST_USE int push_folder_open(const char *path, struct push_folder **ret, struct err *err);
void push_folder_free(struct push_folder *folder); /* accepts NULL */

/* Looks at the folder again. ERR_LIMIT: it has too many files. */
MUST_USE int push_folder_look(struct push_folder *folder, struct err *err);

/* The path of a complete file that is to be sent, the oldest first, or NULL; valid until the next
 * look. push_folder_done says that it is not to come again as it is. */
const char *push_folder_next(struct push_folder *folder);
void push_folder_done(struct push_folder *folder);

#endif
