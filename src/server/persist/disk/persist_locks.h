/* SPDX-License-Identifier: Apache-2.0 */
/* persist_locks - the ranks of the locks of `persist`, in the order in which a thread takes them.
 */
#ifndef FIRN_SERVER_PERSIST_DISK_PERSIST_LOCKS_H
#define FIRN_SERVER_PERSIST_DISK_PERSIST_LOCKS_H

#include "base/lock.h"

enum persist_rank {
	STORE_COMPACT_RANK = LOCK_STORE,
	STORE_SEAL_RANK,
	STORE_COMMIT_RANK,
	STORE_RANK,
	PART_CACHE_RANK,
	PART_PARTITION_RANK,
	PART_READER_RANK,
	OBJECT_FILES_RANK,
	STORE_REPLAY_RANK,
	STORE_WAKE_RANK,
	STORE_BUCKET_RANK,
	STORE_FOLLOW_RANK,
	STORE_RESTORE_RANK,
	THROTTLE_RANK,
};

#endif
