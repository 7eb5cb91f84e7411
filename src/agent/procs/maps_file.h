/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maps_file - the executable ranges of a /proc/PID/maps, sorted, without overlaps: for processes
 * whose mappings the kernel side does not send.
 *
 * Reads whole lines from a file descriptor, so tests can give any file. Bounds: SPACE_MAPPINGS_MAX
 * ranges, MAPS_FILE_BYTES_MAX.
 */
#ifndef FIRN_AGENT_PROCS_MAPS_FILE_H
#define FIRN_AGENT_PROCS_MAPS_FILE_H

#include "agent/procs/space.h"
#include "base/err.h"

#define MAPS_FILE_BYTES_MAX ((size_t)32 << 20)

struct maps_range {
	uint64_t start, end;
	uint64_t offset;	/* of start in the file */
	uint64_t inode, device; /* as in struct file_key */
	enum mapping_kind kind;
	char *path; /* of MAPPING_FILE, as the process sees it */
};

struct maps_file {
	struct maps_range *ranges;
	size_t count, capacity;
};

/* Into empty ranges. 1 when the file had lines at all, else 0 (the process has ended). */
int maps_file_read(struct maps_file *maps, int fd, struct err *err);
void maps_file_free(struct maps_file *maps);

#endif
