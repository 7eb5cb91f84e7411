/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_scrub - reads a part's file from the disk and compares it with the hash that the manifest
 * has of it: slowly, and in little memory. Blocking.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_SCRUB_H
#define FIRN_SERVER_PERSIST_PART_PART_SCRUB_H

#include "server/persist/part/part.h"
#include "server/persist/disk/throttle.h"

/* ERR_CORRUPT: other bytes than were written. ERR_NOT_FOUND, ERR_IO, ERR_CANCELLED. */
MUST_USE int part_scrub(const struct vfs *vfs, const char *dir, const struct part_info *info,
			struct throttle *throttle, struct err *err);

#endif
