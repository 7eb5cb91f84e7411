/* SPDX-License-Identifier: Apache-2.0 */
/* storage_owner - gives a storage folder to the user that the server of `firn up` runs as. */
#ifndef FIRN_CLI_STORAGE_OWNER_H
#define FIRN_CLI_STORAGE_OWNER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/privilege.h"

/*
 * Called as root: makes the folder when it is not there, or hands over what an earlier version left
 * to root, with a line in the log. Refuses folders that are neither empty nor a storage folder,
 * that belong to somebody else, or that others may write to. *ret_fd is the folder, the caller's.
 */
int storage_owner_hand_over(const char *path, const struct privilege_user *user, int *ret_fd,
			    struct err *err);

/* True if the user gets to the folder by its path. */
bool storage_owner_reaches(const char *path, const struct privilege_user *user);

#endif
