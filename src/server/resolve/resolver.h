/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver - turns addresses of native code into functions, files, lines and inlined callers.
 *
 * Symbol tables are built from ELF files found by build id, in this order: binaries offered by an
 * agent on this host (resolver_offer), `<uploads_path>/<xx>/<rest>.bin` and `.debug`,
 * `<debuginfo_path>/<xx>/<rest>.debug` and `/usr/lib/debug/.build-id/<xx>/<rest>.debug`, and, when
 * local_files is set, the path that the frame names - each only when its build id is the wanted one
 * (uploads were checked on arrival). Tables are immutable, shared, kept below tables_path, mapped
 * under a byte budget; failures are remembered too. When a new file comes, the table is rebuilt;
 * until then the old one answers. Thread-safe.
 *
 * One thread builds tables in the background, so that the largest binary of a host does not delay
 * the first query.
 */
#ifndef FIRN_SERVER_RESOLVE_RESOLVER_H
#define FIRN_SERVER_RESOLVE_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "server/resolve/table/symbol_texts.h"

struct resolver;

struct resolver_options {
	const char *debuginfo_path; /* may be NULL */
	const char *uploads_path;   /* files that others have sent, checked; may be NULL */
	const char *tables_path;    /* where symbol tables are kept; NULL: nowhere */
	bool local_files;	    /* this host's files may be opened by the path in a frame */
	bool public_files_only; /* code is shown of those alone that all on this host may read */
	bool build_ahead;	/* build tables of offered binaries at once, in the background */
	uint64_t cache_bytes;	/* 0 = default */
};

int resolver_new(const struct resolver_options *options, struct resolver **ret, struct err *err);
void resolver_free(struct resolver *resolver); /* accepts NULL */

/* Why a frame stays an address. */
enum resolve_reason {
	RESOLVE_OK,
	RESOLVE_NO_FILE, /* no file with this build id is known here */
	/* The file has no symbol that covers the address: it is stripped. Which function it is in
	 * may be known all the same. */
	RESOLVE_NO_SYMBOLS,
	RESOLVE_OUTSIDE,  /* the address is in none of the file's segments */
	RESOLVE_BAD_FILE, /* parsing failed */
	RESOLVE_NO_BUILD_ID,
	RESOLVE_PENDING, /* the file is being read: ask again */
	RESOLVE_REASONS
};
const char *resolve_reason_code(enum resolve_reason reason); /* "no_file": for programs */
const char *resolve_reason_text(enum resolve_reason reason);

/*
 * The symbols of one binary, for the look-ups of one query: opened once, so that a look-up takes
 * no lock and what it gives stays valid, and the same, until resolver_close.
 *
 * May read and parse files the first time a build id is seen: at most until wait_until_ns
 * (monotonic clock), and in the calling thread with RESOLVE_WAIT_ALWAYS. `needs_segments`: the
 * look-ups are of file offsets.
 */
#define RESOLVE_WAIT_ALWAYS INT64_MAX
struct resolver_symbols {
	struct shared_table *shared; /* NULL: there are none, for `reason` */
	struct symbol_texts *texts;  /* of its names */
	enum resolve_reason reason;
	/* What was wrong with the file, or why its debug information was left out; owned, may be
	 * NULL. */
	char *detail;
	bool is_provisional; /* a better file is being read */
};
void resolver_open(struct resolver *resolver, struct slice build_id, struct slice path,
		   bool needs_segments, int64_t wait_until_ns, struct resolver_symbols *ret);
/* The same, but waits while a better file is read, too; is_provisional if that takes longer. */
void resolver_open_best(struct resolver *resolver, struct slice build_id, struct slice path,
			bool needs_segments, int64_t wait_until_ns, struct resolver_symbols *ret);
void resolver_close(struct resolver *resolver, struct resolver_symbols *symbols);

/*
 * The inline chain at an address, innermost first, the physical function last. RESOLVE_NO_SYMBOLS
 * gives one line that is_unnamed if the function's boundaries are known; all other failures give
 * *ret_count 0. `address` is an ELF virtual address, or a file offset when `is_offset`.
 * resolver_find_lines leaves the texts to symbol_texts_fill: their numbers are the same for each
 * look-up of one function, which most often is known already.
 */
enum resolve_reason resolver_find_lines(const struct resolver_symbols *symbols, uint64_t address,
					bool is_offset,
					struct symbol_line ret_lines[SYMBOL_CHAIN_MAX],
					size_t *ret_count);
enum resolve_reason resolver_find(const struct resolver_symbols *symbols, uint64_t address,
				  bool is_offset, struct symbol_line ret_lines[SYMBOL_CHAIN_MAX],
				  size_t *ret_count);

/*
 * Whether resolver_find would find a name, or why not; reads no texts. *ret_is_address: it would
 * not even find a function.
 */
enum resolve_reason resolver_check(const struct resolver_symbols *symbols, uint64_t address,
				   bool is_offset, bool *ret_is_address);

/*
 * The contiguous code of the same function around an ELF virtual address, at most bytes_max to
 * either side. False when nothing is known of the address.
 */
bool resolver_find_extent(const struct resolver_symbols *symbols, uint64_t address,
			  uint64_t bytes_max, uint64_t *ret_low, uint64_t *ret_high);

/*
 * Opens the program or library itself, to show its code: a descriptor, ERR_NOT_FOUND when it is not
 * here, ERR_DENIED when it is a file of this host that is not for everyone (public_files_only).
 */
int resolver_open_binary(struct resolver *resolver, struct slice build_id, struct slice path,
			 struct err *err);

/* True if local_files is set and the path is a file of this host with this build id. */
bool resolver_is_local(const struct resolver *resolver, struct slice build_id, struct slice path);

/* Lends an open file (dup'd inside) as a source for its build id; `path` is only for messages. */
void resolver_offer(struct resolver *resolver, struct slice build_id, struct slice path, int fd);

/* A file below uploads_path is new or better than it was: tables of its build id are built anew. */
void resolver_file_added(struct resolver *resolver, struct slice build_id);

/* True if the build id was looked up since this was last asked of it. */
bool resolver_take_used(struct resolver *resolver, struct slice build_id);

/*
 * Visits the build ids with frames that stay addresses, under the lock: the visitor must not call
 * back.
 */
struct resolver_missing {
	struct slice build_id, path;
	enum resolve_reason reason;
	struct slice detail;	 /* what was wrong with the file; may be empty */
	uint64_t cost_ns, of_ns; /* the most that was told by resolver_note_cost, and of what */
};
typedef void resolver_missing_f(void *context, const struct resolver_missing *missing);
void resolver_each_missing(struct resolver *resolver, resolver_missing_f *visit, void *context);

/*
 * Visits the build ids that were looked up and have symbols but no DWARF (except those that
 * resolver_take_used has reported), under the lock: the visitor must not call back.
 */
typedef void resolver_poor_f(void *context, struct slice build_id, uint64_t cost_ns);
void resolver_each_poor(struct resolver *resolver, resolver_poor_f *visit, void *context);

/* Notes that an answer spent cost_ns of its of_ns CPU time in unnamed code of the build id. */
void resolver_note_cost(struct resolver *resolver, struct slice build_id, uint64_t cost_ns,
			uint64_t of_ns);

/* Grows whenever an answer could change (a new source): versions caches of resolved names. */
uint64_t resolver_version(const struct resolver *resolver);

/*
 * Releases the resident pages of mapped tables; the system may keep them in the page cache, and
 * look-ups fault them in again.
 */
void resolver_rest(struct resolver *resolver);

#endif
