/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push_folder - finds the complete files of one folder, each once.
 *
 * Inode, size and time of change identify a file: a renamed file is the same, an overwritten one is
 * another. A file is complete when it did not change between two looks and nobody has it open for
 * writing. A lease tells the latter, which works for the file's owner and on local file systems;
 * elsewhere a file is complete when it did not change for a while. Skipped: folders, links, empty
 * files, names that begin with '.' or end in .tmp, .part or ~. One thread. Memory: one entry per
 * file, at most PUSH_FOLDER_FILES_MAX.
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
