/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_file - tells whether reading a file can block on a network or FUSE, and makes local copies
 * of such files.
 */
#ifndef FIRN_AGENT_FILES_NEAR_FILE_H
#define FIRN_AGENT_FILES_NEAR_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* `device` as in struct file_key: of the file that has the pages, below any overlay. */
bool near_file_is(int fd, uint64_t device);

/* Whether a device is known to be of this host, without asking it. */
bool near_file_is_device(uint64_t device);

/*
 * The same for a file that was written to, as process `pid` sees it: on an overlay its upper layer.
 */
bool near_file_is_written(int fd, uint32_t pid);

/*
 * True if opening the root directory of a process can block: some file systems ask their server
 * even for /proc/PID/root with O_PATH. The process's mounts tell; false if it has ended.
 */
bool near_file_root_may_wait(uint32_t pid);

/*
 * A sealed copy in memory; -1 with EFBIG when the file is over `bytes_max`. Calls `progress` with
 * each piece.
 */
int near_file_copy(int fd, uint64_t bytes_max, void (*progress)(void *context), void *context);

/* The same of `bytes` bytes from `from` on, or fewer; before them the copy has a hole. */
int near_file_copy_part(int fd, uint64_t from, uint64_t bytes, void (*progress)(void *context),
			void *context);

#endif
