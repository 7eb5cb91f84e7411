/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mini_debuginfo - the ELF file in the section .gnu_debugdata, packed with xz: function symbols
 * that some distributions leave in stripped programs (Fedora and its relatives).
 */
#ifndef FIRN_SERVER_RESOLVE_READ_MINI_DEBUGINFO_H
#define FIRN_SERVER_RESOLVE_READ_MINI_DEBUGINFO_H

#include <libelf.h>

#include "base/err.h"
#include "base/strbuf.h"

#define MINI_DEBUGINFO_BYTES_MAX ((size_t)256 << 20) /* unpacked */

/*
 * Opens it from the bytes of the section. *ret is closed with elf_end, then *image, which it reads
 * from, is freed.
 */
int mini_debuginfo_open(struct slice section, struct strbuf *image, Elf **ret, struct err *err);

#endif
