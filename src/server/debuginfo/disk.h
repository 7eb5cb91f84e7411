/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - the folder of uploaded files: names, and how they become durable.
 *
 *     <xx>/<rest>.bin       a program or library, stripped or not; its last use is its mtime
 *     <xx>/<rest>.debug     a separate debug file
 *     <xx>/<rest>.sources   an archive of the program's sources
 *     <xx>/<rest>.dwp       the split units of its DWARF
 *     <xx>/<rest>.<kind>.record   record.h
 *     uploads/<id>          being received, or half of what was
 *     uploads/<id>.record   what it is to become; without it the half is of no use
 *
 * <xx><rest> is the build id in hex. A file is there as a whole or not at all: it is synced under
 * uploads/ and then renamed. Blocks; callers ensure that a file has one writer.
 */
#ifndef FIRN_SERVER_DEBUGINFO_DISK_H
#define FIRN_SERVER_DEBUGINFO_DISK_H

#include "server/debuginfo/record.h"

enum debuginfo_kind {
	DEBUGINFO_BINARY,
	DEBUGINFO_DEBUG,
	DEBUGINFO_SOURCES,
	DEBUGINFO_PACKAGE,
	DEBUGINFO_KINDS
};

#define DISK_PATH_BYTES 4096
#define DISK_UPLOAD_ID_BYTES 33 /* hex, with NUL */

struct disk_path {
	char text[DISK_PATH_BYTES];
};

/* Makes the folder if it is missing. */
int disk_open(const char *path, struct err *err);

typedef void disk_visit_f(void *context, struct slice build_id, enum debuginfo_kind kind,
			  const struct debuginfo_record *record, int64_t used_at_ns);

/*
 * Visits all files; a file without a valid record is inspected. Foreign and broken files are
 * skipped.
 */
int disk_each(const char *path, disk_visit_f *visit, void *context, struct err *err);

/* Visits interrupted uploads that can be continued; removes the others. */
typedef void disk_upload_visit_f(void *context, const char *id,
				 const struct debuginfo_record *record, uint64_t received,
				 int64_t at_ns);
int disk_each_upload(const char *path, disk_upload_visit_f *visit, void *context, struct err *err);

struct disk_path disk_upload_path(const char *path, const char *id);
struct disk_path disk_file_path(const char *path, struct slice build_id, enum debuginfo_kind kind);

/*
 * Opens a file under uploads/ for writing and reading, cut to `keep` bytes, and describes it. A
 * descriptor, at its end, or a negative code.
 */
int disk_begin(const char *path, const char *id, const struct debuginfo_record *record,
	       uint64_t keep, struct err *err);

/* Puts a received file, written and synced, in its place, durably, over an older one. */
int disk_install(const char *path, const char *id, struct slice build_id, enum debuginfo_kind kind,
		 const struct debuginfo_record *record, struct err *err);

void disk_remove_upload(const char *path, const char *id);
int disk_remove(const char *path, struct slice build_id, enum debuginfo_kind kind, struct err *err);

/* Keeps the time of the last use over restarts. */
void disk_touch(const char *path, struct slice build_id, enum debuginfo_kind kind, int64_t at_ns);

/* ERR_NO_SPACE unless `bytes` more leave enough of the file system free. */
int disk_check_room(const char *path, uint64_t bytes, struct err *err);

#endif
