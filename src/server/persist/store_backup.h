/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_backup - a second directory that opens as the store was at one moment.
 *
 * Parts never change, so they get a second name there (a hard link); they are copied when `to` is
 * on another file system. The state file and the log are copied, the manifest is written anew,
 * CURRENT last: a backup that was cut off does not open. To restore is to open the copy.
 *
 * Takes no lock and changes nothing in `from`: the server may be running. Profiles acknowledged
 * before the call are in the copy; profiles that arrive meanwhile may be. Quarantined files and
 * uploaded debuginfo are not copied.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_BACKUP_H
#define FIRN_SERVER_PERSIST_STORE_BACKUP_H

#include <stdint.h>

#include "base/err.h"

struct vfs;

struct store_backup {
	uint64_t parts, linked; /* of the parts, those that needed no copy */
	uint64_t bytes_linked, bytes_copied;
};

/* `to` is made; it may exist when it is empty. ERR_EXISTS, ERR_NOT_FOUND, ERR_IO, ERR_NO_SPACE. */
MUST_USE int store_backup(const char *from, const char *to, const struct vfs *vfs,
			  struct store_backup *ret, struct err *err);

#endif
