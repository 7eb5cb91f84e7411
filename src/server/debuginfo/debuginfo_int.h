/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo_int - what the modules of this folder share. Each uses only those before it: kept.c
 * (stored files), upload.c (uploads), debuginfod.c and shared.c (fetched files), source.c,
 * debuginfo.c (opens and closes all of them).
 */
#ifndef FIRN_SERVER_DEBUGINFO_DEBUGINFO_INT_H
#define FIRN_SERVER_DEBUGINFO_DEBUGINFO_INT_H

#include <pthread.h>

#include "base/idmap.h"
#include "base/lock.h"
#include "base/metrics.h"
#include "codec/wire/sha256.h"
#include "server/debuginfo/debuginfo.h"

#define UPLOADS_MAX 1024u /* asked for and under way */
#define RECEIVING_MAX 64u /* begun */
#define FILES_MAX 131072u
#define PARTIALS_MAX 64u
#define PARTIAL_BYTES_MIN ((uint64_t)1 << 20) /* less is sent again as fast */
#define PARTIAL_NS (24 * 3600 * CLOCK_NS_PER_S)
#define PARTIAL_PART 4			/* of the limit of all files that partial ones may take */
#define ASKED_NS (10 * CLOCK_NS_PER_S)	/* from a yes to the beginning */
#define BEGUN_NS (120 * CLOCK_NS_PER_S) /* from the beginning to the first byte */

struct entry {
	char *build_id; /* owned */
	enum debuginfo_kind kind;
	struct debuginfo_record record;
	int64_t used_at_ns;
};

enum upload_state {
	UPLOAD_ASKED,	  /* somebody was told yes */
	UPLOAD_BEGUN,	  /* has an id */
	UPLOAD_RECEIVING, /* has a receiver */
};

struct upload {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	char id[DISK_UPLOAD_ID_BYTES];
	enum upload_state state;
	int64_t since_ns; /* of the state; monotonic */
	enum debuginfo_id_kind id_kind;
	enum debuginfo_content content;
	bool is_forced;
	bool is_open_ended; /* `bytes` is the most that may come */
	uint64_t bytes;	    /* declared */
	uint64_t received;  /* by an upload that was cut off, and can be gone on with */
	struct debuginfo_record record;
};

/* The remains of an interrupted upload. */
struct partial {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	char id[DISK_UPLOAD_ID_BYTES];
	char hash[DEBUGINFO_HASH_BYTES]; /* SHA-256 of the whole, as announced */
	uint64_t bytes, received;
	int64_t at_ns; /* wall clock */
};

struct debuginfo {
	struct debuginfo_options options;
	char *path;
	_Atomic(struct debuginfod *) debuginfod; /* NULL: no servers to ask */
	struct shared_files *shared;		 /* NULL: no bucket */
	struct strbuf offered;			 /* servers, blanks between them */
	struct strbuf offered_texts;		 /* the same with NULs between them, */
	const char **offered_urls;		 /* and where each begins */
	_Atomic enum debuginfo_consent consent;
	struct lock consent_lock; /* one answer at a time; taken before all others */

	struct lock lock;	    /* for all below */
	struct lock_condition wake; /* the thread: something is to be removed, or the end */
	pthread_t thread;
	bool has_thread, is_stopping;
	struct entry *entries;
	size_t count, capacity;
	struct idmap map; /* (build id, kind) -> entries */
	uint64_t bytes;
	struct upload *uploads;
	size_t uploads_count, uploads_capacity;
	struct partial partials[PARTIALS_MAX];
	size_t partials_count;
	char (*garbage)[DISK_UPLOAD_ID_BYTES]; /* files of uploads that were given up */
	size_t garbage_count, garbage_capacity;
};

/* ---- kept.c ---- */

void debuginfo_kept_register(void);

/* Under the lock. */
struct entry *debuginfo_find(struct debuginfo *debuginfo, struct slice build_id,
			     enum debuginfo_kind kind);
void debuginfo_put(struct debuginfo *debuginfo, struct slice build_id, enum debuginfo_kind kind,
		   const struct debuginfo_record *record, int64_t used_at_ns);
void debuginfo_touch(struct debuginfo *debuginfo, struct slice build_id, enum debuginfo_kind kind,
		     int64_t now_ns);
void debuginfo_note_uses(struct debuginfo *debuginfo);
void debuginfo_make_room(struct debuginfo *debuginfo, const struct entry *keep, uint64_t bytes);
void debuginfo_remove_old(struct debuginfo *debuginfo);
int64_t debuginfo_now_ns(const struct debuginfo *debuginfo);

/* Has those removed that are old, too many, or of this build id (NULL: none). */
void debuginfo_drop_partials(struct debuginfo *debuginfo, const char *build_id);
void debuginfo_add_partial(struct debuginfo *debuginfo, const struct partial *partial);
void debuginfo_add_garbage(struct debuginfo *debuginfo, const char *id);

/* Lower-case hex of at least two bytes in `ret`. False when it is no build id. */
bool debuginfo_normalise_id(struct slice build_id, char ret[ELF_BUILD_ID_TEXT_BYTES]);

/* ---- upload.c ---- */

void debuginfo_upload_register(void);

#endif
