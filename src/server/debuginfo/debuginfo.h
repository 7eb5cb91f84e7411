/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo - files with symbols that agents, CI and people have sent, by build id.
 *
 * For each build id at most two files are kept: a program (or library) and a separate debug file.
 * A better one replaces a worse one (enum debuginfo_quality), never the other way round. Of many
 * that ask about the same build id one is told to send; it names itself by the upload's id:
 *
 *     debuginfo_ask -> debuginfo_begin -> debuginfo_receive_begin, _receive..., _receive_end
 *
 * A file that has come as a whole is checked (size, hash, ELF, build id), synced, renamed into its
 * place and only then acknowledged. What was under way when the process died is forgotten: the
 * sender begins anew.
 *
 * Bounds: one file, all files (those not used for longest go first), age since the last use,
 * free disk, uploads at a time. Thread-safe; a thread of its own removes what is over.
 */
#ifndef FIRN_SERVER_DEBUGINFO_DEBUGINFO_H
#define FIRN_SERVER_DEBUGINFO_DEBUGINFO_H

#include "base/clock.h"
#include "server/debuginfo/disk.h"

struct debuginfo;
struct debuginfo_receiver;

struct debuginfo_options {
	const char *path;	 /* of the folder; made when missing */
	int64_t retention_ns;	 /* since the last use; 0 = for ever */
	uint64_t bytes_max;	 /* of all files; 0 = no limit */
	uint64_t file_bytes_max; /* of one; 0 = default, 4 GiB */
	clock_f *clock;		 /* wall clock; NULL = the real one; called with clock_context */
	void *clock_context;

	/* Called without a lock held: a file is new or better. May be NULL. */
	void (*added)(void *context, struct slice build_id);
	/* Whether a build id was looked up since this was last asked of it. May be NULL. */
	bool (*take_used)(void *context, struct slice build_id);
	void *context;
};

int debuginfo_open(const struct debuginfo_options *options, struct debuginfo **ret,
		   struct err *err);
void debuginfo_close(struct debuginfo *debuginfo); /* accepts NULL; no receiver may be left */

enum debuginfo_id_kind { /* BuildIDType of Parca */
			 DEBUGINFO_ID_UNKNOWN,
			 DEBUGINFO_ID_GNU,
			 DEBUGINFO_ID_HASH, /* of the program's file: cannot be told from what is
					       left of it */
			 DEBUGINFO_ID_GO,
};

/* What somebody would send. Slices are borrowed during the call. */
struct debuginfo_offer {
	struct slice build_id; /* hex */
	struct slice hash;     /* of the content; one of 64 hex digits is a SHA-256; may be empty */
	struct slice name;     /* of the sender's file; may be empty */
	uint64_t bytes;	       /* needed by debuginfo_begin */
	enum debuginfo_id_kind id_kind;
	bool is_executable; /* its segments are wanted even if a debug file is here */
	bool is_forced;	    /* replaces a file of the same quality */
};

enum debuginfo_verdict {
	DEBUGINFO_WANTED,      /* nothing is known of the build id */
	DEBUGINFO_WANTED_MORE, /* what is here is poor, and the hash says that this is another */
	DEBUGINFO_WANTED_FORCED,
	DEBUGINFO_IN_PROGRESS,
	DEBUGINFO_PRESENT, /* as good, or the same file */
};

/*
 * Whether to send. Who is told yes has a few seconds to begin, in which others are told
 * DEBUGINFO_IN_PROGRESS. ERR_INVALID for what is no build id.
 */
int debuginfo_ask(struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
		  enum debuginfo_verdict *ret, struct err *err);

/*
 * Begins an upload. ERR_BUSY when another is under way, ERR_EXISTS when it is not needed,
 * ERR_LIMIT over a limit, ERR_NO_SPACE, ERR_NO_MEMORY when too many are under way.
 */
int debuginfo_begin(struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
		    char ret_id[DISK_UPLOAD_ID_BYTES], struct err *err);

/* ERR_NOT_FOUND when no such upload is under way, ERR_BUSY when it is being received already. */
int debuginfo_receive_begin(struct debuginfo *debuginfo, struct slice build_id, struct slice id,
			    struct debuginfo_receiver **ret, struct err *err);

/* One thread at a time. After an error only _abandon is left. */
int debuginfo_receive(struct debuginfo_receiver *receiver, struct slice bytes, struct err *err);

/* All has come. Frees the receiver, whatever it returns. */
int debuginfo_receive_end(struct debuginfo_receiver *receiver, uint64_t *ret_bytes,
			  struct err *err);

/* Gives up and frees; does not wait for the disk. */
void debuginfo_receive_abandon(struct debuginfo_receiver *receiver);

/* Whether the upload was received as a whole. ERR_NOT_FOUND, ERR_INVALID when not. */
int debuginfo_confirm(struct debuginfo *debuginfo, struct slice build_id, struct slice id,
		      struct err *err);

struct debuginfo_file {
	struct slice build_id;
	enum debuginfo_kind kind;
	const struct debuginfo_record *record;
	int64_t used_at_ns;
};
typedef void debuginfo_file_f(void *context, const struct debuginfo_file *file);

/* Visits every file by build id, under the lock: the visitor must not call back. */
void debuginfo_each(struct debuginfo *debuginfo, debuginfo_file_f *visit, void *context);

/* Removes what is over age or size, as the thread does now and then. For tests. */
void debuginfo_collect(struct debuginfo *debuginfo);

#endif
