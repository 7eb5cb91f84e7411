/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - the facts about one uploaded file, in a text file beside it: docs/formats/debuginfo.md.
 * If it is lost or damaged, it is made again from the file itself.
 */
#ifndef FIRN_SERVER_DEBUGINFO_RECORD_H
#define FIRN_SERVER_DEBUGINFO_RECORD_H

#include "base/strbuf.h"
#include "codec/elf/elf_inspect.h"

#define DEBUGINFO_HASH_BYTES 129 /* hex, with NUL */
#define DEBUGINFO_NAME_BYTES 256 /* with NUL */
#define DEBUGINFO_RECORD_BYTES_MAX 4096
#define DEBUGINFO_OWNERS_BYTES 1024 /* with NUL */

enum debuginfo_origin {
	DEBUGINFO_FROM_UPLOAD, /* by people and CI, or unknown */
	DEBUGINFO_FROM_AGENT,
	DEBUGINFO_FROM_DEBUGINFOD,
	DEBUGINFO_ORIGINS
};
const char *debuginfo_origin_name(enum debuginfo_origin origin);

struct debuginfo_record {
	uint64_t bytes; /* of what is being received: announced */
	enum elf_quality quality;
	unsigned sections; /* enum elf_symbol_section */
	enum debuginfo_origin origin;
	bool has_offsets;
	char alternate[ELF_BUILD_ID_TEXT_BYTES]; /* build id of the file dwz moved DWARF to; or ""
						  */
	char build_id[ELF_BUILD_ID_TEXT_BYTES];	 /* of what is being received; else "" */
	char upload_id[33];			 /* under which it came, hex; "" = unknown */
	char sha256[65];			 /* of the content; "" = unknown */
	char hash[DEBUGINFO_HASH_BYTES];	 /* as the sender declared it; "" = none */
	char name[DEBUGINFO_NAME_BYTES]; /* of the sender's file, UTF-8, no control codes; may be ""
					  */
	char owners[DEBUGINFO_OWNERS_BYTES]; /* tenants that sent this very file: "/a/b" */
	int64_t uploaded_at_ns;
};

void debuginfo_record_write(const struct debuginfo_record *record, struct strbuf *out);
int debuginfo_record_parse(struct slice text, struct debuginfo_record *ret, struct err *err);

/*
 * True if the tenant sent the file. A file that came without tenants belongs to the tenant ""; a
 * file from a debuginfod server belongs to everybody. An owner beyond the space for owners is left
 * out: he may send it again.
 */
bool debuginfo_record_has_owner(const struct debuginfo_record *record, struct slice tenant);
void debuginfo_record_add_owner(struct debuginfo_record *record, struct slice tenant);

/* Keeps a hash that is hex, and no other. */
void debuginfo_record_set_hash(struct debuginfo_record *record, struct slice hash);

/* Copies a sender's text, cut and cleaned, so that records and listings can hold it. */
void debuginfo_record_set_name(struct debuginfo_record *record, struct slice name);

#endif
