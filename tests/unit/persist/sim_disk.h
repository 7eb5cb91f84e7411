/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk - a disk in memory that fails and crashes on demand, behind vfs.h.
 *
 * Keeps apart what a program sees (its writes) and what survives a crash: bytes after fdatasync,
 * names after sync_dir. Every operation is counted; at the k-th one it can
 *   - stop the machine: a write is cut off half-way, between sectors, every later operation
 *     fails, and sim_disk_restart decides what of the unsynced rest is there afterwards;
 *   - fail that operation (or all from then on) with an error. A failed fdatasync leaves the bytes
 *     visible but never on disk, as Linux does, however often it is repeated.
 * Thread-safe.
 */
#ifndef FIRN_TESTS_PERSIST_SIM_DISK_H
#define FIRN_TESTS_PERSIST_SIM_DISK_H

#include "server/persist/disk/vfs.h"

enum sim_loss {
	SIM_LOSE_ALL,  /* nothing unsynced survives */
	SIM_LOSE_NONE, /* the process was killed: all is visible still, but no more durable than it
			  was */
	SIM_LOSE_RANDOM, /* per sector and per name; some unsynced sectors hold garbage */
};

enum sim_fault {
	SIM_NO_FAULT,
	SIM_STOP,      /* the machine stops */
	SIM_FAIL_ONCE, /* with `error` */
	SIM_FAIL_FOR_EVER,
	SIM_SHORT, /* a read or write does half of it; other operations are not touched */
	/* The next write from the operation `at` on says that it is done, but */
	SIM_LOSE_WRITE,	    /* nothing was written */
	SIM_MISPLACE_WRITE, /* it went some sectors further on, over what was there */
};

#define SIM_DISK_BYTES ((uint64_t)100 << 30)

struct sim_disk;

struct sim_disk *sim_disk_new(uint64_t seed);
void sim_disk_free(struct sim_disk *disk);
const struct vfs *sim_disk_vfs(struct sim_disk *disk);

/* From now on, the operation number `at` (1 is the next) has this fault. */
void sim_disk_plan(struct sim_disk *disk, enum sim_fault fault, uint64_t at, int error);
uint64_t sim_disk_operations(const struct sim_disk *disk); /* since the plan was made */
bool sim_disk_hit(const struct sim_disk *disk);		   /* whether the planned fault came */

/* What the file system says is free; all of it at first. Writes do not change it. */
void sim_disk_set_free(struct sim_disk *disk, uint64_t bytes);

/* After a stop, or at any time: unsynced things are lost as said, open files are gone. */
void sim_disk_restart(struct sim_disk *disk, enum sim_loss loss);

/* Changes a byte for good, as a failing disk does. Returns false when the file is shorter. */
bool sim_disk_flip(struct sim_disk *disk, const char *path, uint64_t offset, uint8_t mask);
bool sim_disk_has(struct sim_disk *disk, const char *path, uint64_t *ret_bytes);

#endif
