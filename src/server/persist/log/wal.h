/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wal - the write-ahead log: a batch is synced here before it is acknowledged.
 *
 * A log is a chain of records through segment files `wal-<generation>-<n>.wal`; the segments of
 * one generation hold what one memtable holds, and go when the part made of it is durable.
 * Little-endian (docs/formats/wal.md):
 *
 *   segment header, 48 bytes           record, 40 bytes + payload + zeros to a multiple of 8
 *   0   8  magic "FIRNWAL\0"           0   4  magic "FRNR"
 *   8   4  version, 1                  4   4  payload bytes
 *   12  4  0                           8   8  sequence, counts up by one through all segments
 *   16  8  generation                  16  8  durable: every sequence up to this one was synced
 *   24  8  number n                    24  4  CRC of the record before (the chain)
 *   32  8  sequence of the first       28  4  type
 *          record to come              32  4  CRC32C of bytes 0..31
 *   40  4  CRC of the record before    36  4  CRC32C of the payload, begun with the field before
 *   44  4  CRC32C of bytes 0..43
 *
 * Validity. A segment is good when its header continues the chain. A broken header with records
 * of the chain behind it is damage (it was synced before them), and these are read; with nothing
 * behind it, it was never finished. Reading stops at the first record that is not good. Then
 *   - if a later record or segment says that the missing sequence was durable, acknowledged bytes
 *     were lost: damage, reported with what is missing, and reading goes on behind it;
 *   - if no sector that it lies in was left as it was, zeros, it was written as a whole: damage;
 *   - otherwise it is a torn tail: a group that was being written and never acknowledged.
 *
 * The name of a segment that was begun is never used again, and nothing but zeros is overwritten.
 * One thread at a time.
 */
#ifndef FIRN_SERVER_PERSIST_LOG_WAL_H
#define FIRN_SERVER_PERSIST_LOG_WAL_H

#include "server/persist/disk/layout.h"

#define WAL_VERSION 1
#define WAL_SEGMENT_HEADER_BYTES 48u
#define WAL_RECORD_HEADER_BYTES 40u
#define WAL_SEGMENT_BYTES_DEFAULT ((uint64_t)16 << 20)
#define WAL_SEGMENT_BYTES_MAX ((uint64_t)2 << 30)
#define WAL_PAYLOAD_BYTES_MAX ((size_t)512 << 20)

enum wal_record_type { WAL_RECORD_BATCH = 1 };

/* A place in the chain: the last record that counts. */
struct wal_position {
	uint64_t sequence; /* 0 = none yet */
	uint32_t crc;
};

/* Writer. */
struct wal {
	const struct vfs *vfs;
	const char *dir;
	uint64_t segment_bytes;
	uint64_t generation, segment_next;
	struct wal_position last;
	struct vfs_file *file; /* NULL: the next append makes one */
	uint64_t offset, file_bytes;
	uint64_t generation_bytes; /* logged in this generation, for sealing */
	bool poisoned;		   /* a write or sync failed: no append ever again */
	/* The segment ahead: */
	struct vfs_file *ahead; /* NULL: there is none */
	struct layout_name ahead_name;
	bool ahead_claimed, ahead_failed; /* somebody is making it; could not, in this generation */
};

/* `dir` is borrowed. Appends continue after `last` in segment `segment_next` of the generation. */
void wal_init(struct wal *wal, const struct vfs *vfs, const char *dir, uint64_t segment_bytes,
	      uint64_t generation, uint64_t segment_next, struct wal_position last);
void wal_fini(struct wal *wal);
void wal_check(const struct wal *wal); /* aborts when it contradicts itself */

/* Later appends go to the new generation. */
void wal_begin_generation(struct wal *wal, uint64_t generation);

/*
 * The segment ahead. Making a file durable is slow, and so is each sync of blocks that are written
 * for the first time: it waits for the file system's journal, and so for all writes of others. So
 * another thread makes the next segment beforehand, full of zeros: it claims it with the log turn,
 * makes it without, and hands it over with the log turn again.
 */

/* False if there is a segment ahead, one is being made, or it could not be made. */
MUST_USE bool wal_claim_ahead(struct wal *wal, struct layout_name *ret);
MUST_USE int wal_make_ahead(const struct wal *wal, struct layout_name name, struct vfs_file **ret,
			    struct err *err);
/* Takes the file; NULL: it could not be made. One that comes too late is removed. */
void wal_give_ahead(struct wal *wal, struct layout_name name, struct vfs_file *file);

/*
 * Writes the payloads as records with one write and one sync. When it returns 0 they are durable.
 * When it fails without setting `poisoned`, nothing was written (no space, no file) and a later
 * call may succeed.
 */
MUST_USE int wal_append(struct wal *wal, const struct slice *payloads, size_t count,
			struct err *err);

/* Reader. */
struct wal_record {
	uint64_t sequence;
	uint32_t type;
	struct slice payload;
};

/* What a reader found; starts as { .last = the beginning of the chain }. */
struct wal_chain {
	struct wal_position last;
	uint64_t records;      /* good ones */
	uint64_t lost;	       /* sequences known to be missing */
	uint64_t damages;      /* places where something is wrong with durable bytes */
	uint64_t torn;	       /* tails that were never acknowledged */
	struct strbuf *report; /* one line per damage (and "note: " per torn tail), or NULL */
};

/*
 * True if the next segment may hold records. A segment that was not begun holds no acknowledged
 * record: it was made ahead, or a crash came before its header was durable.
 */
bool wal_is_begun(const struct wal_chain *chain, struct slice bytes);

/* Called for each good record, in order. A negative result (payload unusable) is a damage. */
typedef int wal_record_f(void *context, const struct wal_record *record, struct err *err);

/* Reads one segment, given whole; segments must come in order. Returns whether it is undamaged. */
bool wal_read_segment(struct wal_chain *chain, const struct layout_name *name, struct slice bytes,
		      wal_record_f *record, void *context);

#endif
