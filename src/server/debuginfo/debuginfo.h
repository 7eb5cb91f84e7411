/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo - files with symbols that agents, CI and people have sent, by build id.
 *
 * For each build id at most four files are kept: a program (or library), a separate debug file, an
 * archive of the sources, a package of split DWARF. A better one replaces a worse one (enum
 * elf_quality), never the other way round. Of many clients that ask about a build id one is told to
 * send; the upload's id identifies it:
 *
 *     debuginfo_ask -> debuginfo_begin -> debuginfo_receive_begin, _receive..., _receive_end
 *
 * A complete file is checked (size, hash, ELF or tar, build id), synced, renamed into its place and
 * only then acknowledged. An upload that was cut off, by the sender, the network or the end of the
 * process, is kept for a day if its SHA-256 was announced: a client that offers a file with that
 * hash is told how much of it is here.
 *
 * Bounds: one file, all files (least recently used go first), age since the last use, free disk,
 * uploads at a time. Thread-safe; a thread of its own removes files over the bounds.
 */
#ifndef FIRN_SERVER_DEBUGINFO_DEBUGINFO_H
#define FIRN_SERVER_DEBUGINFO_DEBUGINFO_H

#include "base/clock.h"
#include "base/storage/bucket.h"
#include "server/debuginfo/disk.h"

struct debuginfo;
struct debuginfo_receiver;

/* `cost`: what code without names costs there, in any unit; 0 = not known. */
typedef void debuginfo_want_f(void *want_context, struct slice build_id, uint64_t cost);

struct debuginfo_options {
	const char *path;	 /* of the folder; made when missing */
	int64_t retention_ns;	 /* since the last use; 0 = for ever */
	uint64_t bytes_max;	 /* of all files; 0 = no limit */
	uint64_t file_bytes_max; /* of one; 0 = default, 4 GiB */
	clock_f *clock;		 /* wall clock; NULL = the real one; called with clock_context */
	void *clock_context;

	/* Called without a lock held: a file is new or better. May be NULL. */
	void (*added)(void *context, struct slice build_id);
	/* True if a build id was looked up since this was last asked of it. May be NULL. */
	bool (*take_used)(void *context, struct slice build_id);
	/* Visits the build ids that lack names. May be NULL. */
	void (*each_wanted)(void *context, debuginfo_want_f *want, void *want_context);
	void *context;

	/*
	 * debuginfod servers for files that nobody has sent: base addresses, asked in this order.
	 */
	const char *const *debuginfod_urls;
	size_t debuginfod_urls_count; /* 0: nobody is asked */
	/*
	 * Instead of them, servers that are asked only after consent; blanks between addresses.
	 * NULL or "": none are offered.
	 */
	const char *debuginfod_offered;
	int64_t debuginfod_timeout_ns; /* for one file; 0 = default, 5 min */
	uint64_t debuginfod_bytes_max; /* of one file; 0 = default, 2 GiB */
	/*
	 * Buckets that servers share files by (shared.h); they outlive the store, which alone calls
	 * and cancels them.
	 */
	struct bucket *const *buckets;
	size_t buckets_count;
	bool buckets_read_only, no_shared_thread;
	const char *const *source_paths; /* folders whose files may be shown: source.h */
	size_t source_paths_count;
	bool public_files_only; /* of them, what everybody on this host may read: nobody logs in */
};

int debuginfo_open(const struct debuginfo_options *options, struct debuginfo **ret,
		   struct err *err);
void debuginfo_close(struct debuginfo *debuginfo); /* accepts NULL; no receiver may be left */

/* The stop is near: what waits for other servers ends without them. Any thread; accepts NULL. */
void debuginfo_end_waits(struct debuginfo *debuginfo);

enum debuginfo_id_kind { /* BuildIDType of Parca */
			 DEBUGINFO_ID_UNKNOWN,
			 DEBUGINFO_ID_GNU,
			 DEBUGINFO_ID_HASH, /* of the program's file: cannot be told from what is
					       left of it */
			 DEBUGINFO_ID_GO,
};

enum debuginfo_content {
	DEBUGINFO_PROGRAM, /* or debug file: tells its build id */
	DEBUGINFO_ARCHIVE, /* of the sources of the program with the build id */
	DEBUGINFO_SPLIT,   /* package of the program's split units (.dwp) */
};

/* A file that a client offers. Slices are borrowed during the call. */
struct debuginfo_offer {
	struct slice build_id; /* hex */
	struct slice hash;     /* of the content; one of 64 hex digits is a SHA-256; may be empty */
	struct slice name;     /* of the sender's file; may be empty */
	struct slice tenant;   /* whose it is then, where tenants are told apart */
	bool has_tenant;
	uint64_t bytes; /* needed by debuginfo_begin */
	enum debuginfo_id_kind id_kind;
	enum debuginfo_origin origin;
	enum debuginfo_content content;
	bool is_open_ended; /* fewer than `bytes` may come */
	bool is_executable; /* its segments are wanted even if a debug file is here */
	bool is_forced;	    /* replaces a file of the same quality */
	/* What its sender says that it holds; ELF_QUALITY_NOTHING = does not say. */
	enum elf_quality quality;
	/* Of a file that other servers share (shared.h): the record's owners. Else NULL. */
	const char *shared_owners;
};

enum debuginfo_verdict {
	DEBUGINFO_WANTED, /* nothing is known of the build id */
	/*
	 * The stored file is poorer than this one is said to be; or it is poor, and this one has
	 * another hash.
	 */
	DEBUGINFO_WANTED_MORE,
	DEBUGINFO_WANTED_FORCED,
	DEBUGINFO_IN_PROGRESS,
	DEBUGINFO_PRESENT, /* as good, or the same file */
};

/*
 * Decides if the client should send. A client that is told yes has a few seconds to begin, in which
 * others are told DEBUGINFO_IN_PROGRESS. ERR_INVALID for what is no build id.
 */
int debuginfo_ask(struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
		  enum debuginfo_verdict *ret, struct err *err);

/*
 * Begins an upload. ERR_BUSY when another is under way, ERR_EXISTS when it is not needed,
 * ERR_LIMIT over a limit, ERR_NO_SPACE, ERR_NO_MEMORY when too many are under way. *ret_received:
 * bytes of this very file that are here already; its sender may begin behind them.
 */
int debuginfo_begin(struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
		    char ret_id[DISK_UPLOAD_ID_BYTES], uint64_t *ret_received, struct err *err);

/*
 * The bytes from `offset` on will come: 0, or at most *ret_received of debuginfo_begin. Reads the
 * bytes that are here. ERR_NOT_FOUND when no such upload is under way, ERR_BUSY when it is being
 * received already.
 */
int debuginfo_receive_begin(struct debuginfo *debuginfo, struct slice build_id, struct slice id,
			    uint64_t offset, struct debuginfo_receiver **ret, struct err *err);

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

/* An upload that is in progress or was interrupted. */
struct debuginfo_coming {
	struct slice build_id;
	const char *state; /* "asked", "receiving", "cut off" */
	uint64_t bytes, received;
};
typedef void debuginfo_coming_f(void *context, const struct debuginfo_coming *coming);
void debuginfo_each_coming(struct debuginfo *debuginfo, debuginfo_coming_f *visit, void *context);

/* A request to debuginfod servers. Slices live during the call. */
struct debuginfo_asked {
	struct slice build_id;
	const char *state; /* "waiting", "fetching", "here", "not there", "failed" */
	struct slice why;
	int64_t at_ns;		  /* of the state; wall clock */
	uint64_t received, bytes; /* of what is fetched; bytes 0: not known */
};
typedef void debuginfo_asked_f(void *context, const struct debuginfo_asked *asked);
/* Visits them, or the one of `build_id` alone when it is not empty; under a lock. */
void debuginfo_each_asked(struct debuginfo *debuginfo, struct slice build_id,
			  debuginfo_asked_f *visit, void *context);

/*
 * True if the tenant may read the content of a file of that kind: he sent it, or everybody may. If
 * nobody sent one, this host may have it, and its files belong to the tenant "".
 */
bool debuginfo_may_see(struct debuginfo *debuginfo, struct slice build_id, enum debuginfo_kind kind,
		       struct slice tenant);

/*
 * Whether debuginfod servers are asked: none are offered; they were configured; they are offered,
 * and the answer is open, yes or no. The answer is kept on disk, and holds for the servers that it
 * was about.
 */
enum debuginfo_consent {
	DEBUGINFO_NOT_OFFERED,
	DEBUGINFO_CONFIGURED,
	DEBUGINFO_UNANSWERED,
	DEBUGINFO_CONSENTED,
	DEBUGINFO_REFUSED,
};
const char *debuginfo_consent_name(enum debuginfo_consent consent);

/* *ret_servers: their addresses, blanks between them; lives as long as the store. Any thread. */
enum debuginfo_consent debuginfo_get_consent(struct debuginfo *debuginfo,
					     struct slice *ret_servers);

/* Takes the answer, and acts on it at once. ERR_NOT_FOUND: nothing is offered. */
int debuginfo_answer(struct debuginfo *debuginfo, bool consents, struct err *err);

/* Visits every file by build id, under the lock: the visitor must not call back. */
void debuginfo_each(struct debuginfo *debuginfo, debuginfo_file_f *visit, void *context);

/* Removes files over age or size, as the thread does periodically. For tests. */
void debuginfo_collect(struct debuginfo *debuginfo);

#endif
