/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver - turns addresses of native code into functions, files, lines and inlined callers.
 *
 * Symbol tables are built from ELF files found by build id, in this order: binaries offered by an
 * agent on this host (resolver_offer), `<uploads_path>/<xx>/<rest>.bin` and `.debug`,
 * `<debuginfo_path>/<xx>/<rest>.debug` and
 * `/usr/lib/debug/.build-id/<xx>/<rest>.debug`, and, when local_files is set, the path that the
 * frame names - each only when its build id is the wanted one (uploads were checked on arrival).
 * Tables are immutable, shared, cached under a byte budget; failures are remembered too.
 * Thread-safe.
 *
 * One thread builds tables that a look-up would not wait for, so that the first question about a
 * host is not held up by its largest binary.
 */
#ifndef FIRN_SERVER_RESOLVE_RESOLVER_H
#define FIRN_SERVER_RESOLVE_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

struct resolver;

struct resolver_options {
	const char *debuginfo_path; /* may be NULL */
	const char *uploads_path;   /* files that others have sent, checked; may be NULL */
	bool local_files;	    /* this host's files may be opened by the path in a frame */
	bool build_ahead;     /* build tables of offered binaries at once, in the background */
	uint64_t cache_bytes; /* 0 = default */
};

int resolver_new(const struct resolver_options *options, struct resolver **ret, struct err *err);
void resolver_free(struct resolver *resolver); /* accepts NULL */

/* Why a frame stays an address. */
enum resolve_reason {
	RESOLVE_OK,
	RESOLVE_NO_FILE,    /* no file with this build id is known here */
	RESOLVE_NO_SYMBOLS, /* the file has no symbol table that covers the address */
	RESOLVE_BAD_FILE,   /* parsing failed */
	RESOLVE_NO_BUILD_ID,
	RESOLVE_PENDING, /* the file is being read: ask again */
	RESOLVE_REASONS
};
const char *resolve_reason_text(enum resolve_reason reason);

struct resolved_line {
	struct slice function;	  /* demangled */
	struct slice system_name; /* as in the binary */
	struct slice file;
	uint32_t line, column, start_line; /* 0 = unknown */
};

/*
 * Looks one address up. `*ret_lines` (in `arena`) is the inline chain, innermost first, and the
 * last line is the physical function; *ret_count is 0 with a reason when nothing is known.
 * `address` is an ELF virtual address, or a file offset when `is_offset`. May read and parse a
 * file the first time a build id is seen: at most until wait_until_ns (monotonic clock), and in the
 * calling thread with RESOLVE_WAIT_ALWAYS.
 */
#define RESOLVE_WAIT_ALWAYS INT64_MAX
enum resolve_reason resolver_lookup(struct resolver *resolver, struct slice build_id,
				    struct slice path, uint64_t address, bool is_offset,
				    int64_t wait_until_ns, struct arena *arena,
				    struct resolved_line **ret_lines, size_t *ret_count);

/* Lends an open file (dup'd inside) as a source for its build id; `path` is only for messages. */
void resolver_offer(struct resolver *resolver, struct slice build_id, struct slice path, int fd);

/* A file below uploads_path is new or better than it was: tables of its build id are built anew. */
void resolver_file_added(struct resolver *resolver, struct slice build_id);

/* Whether the build id was looked up since this was last asked of it. */
bool resolver_take_used(struct resolver *resolver, struct slice build_id);

/* Visits the build ids whose frames stay addresses, under the lock: no calling back. */
typedef void resolver_missing_f(void *context, struct slice build_id, struct slice path,
				enum resolve_reason reason);
void resolver_each_missing(struct resolver *resolver, resolver_missing_f *visit, void *context);

/* Grows whenever an answer could change (a new source): versions caches of resolved names. */
uint64_t resolver_version(const struct resolver *resolver);

#endif
