/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect - what an ELF file is good for: whose it is and which symbols it can give.
 */
#ifndef FIRN_SERVER_DEBUGINFO_INSPECT_H
#define FIRN_SERVER_DEBUGINFO_INSPECT_H

#include "base/err.h"
#include "codec/elf.h"

/* The best source of names in a file, worst first. Stored in records: values never change. */
enum debuginfo_quality {
	DEBUGINFO_NOTHING,
	DEBUGINFO_DYNSYM,
	DEBUGINFO_MINI,	     /* .gnu_debugdata */
	DEBUGINFO_GOPCLNTAB, /* with lines and inlined calls */
	DEBUGINFO_SYMTAB,
	DEBUGINFO_DEBUG_INFO,
	DEBUGINFO_QUALITIES
};

const char *debuginfo_quality_name(enum debuginfo_quality quality);
/* False when it is none. */
bool debuginfo_quality_parse(struct slice name, enum debuginfo_quality *ret);

struct debuginfo_inspection {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	enum elf_id_kind id_kind;
	enum debuginfo_quality quality;
	bool has_offsets; /* it says where the program's code is in the program's file */
};

/* ERR_INVALID when it is no ELF file, or not a whole one. `name` is for messages. */
int debuginfo_inspect(int fd, const char *name, struct debuginfo_inspection *ret, struct err *err);

#endif
