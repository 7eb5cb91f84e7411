/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perl_file - reads from a binary with Perl (perl, libperl, programs that embed it): its version,
 * how a thread finds its interpreter and the innermost context, and the loop that runs code.
 *
 * Places in the interpreter come from the code of small exported functions, those in contexts from
 * a table by version. Works in stripped files.
 */
#ifndef FIRN_AGENT_RUNTIME_PERL_PERL_FILE_H
#define FIRN_AGENT_RUNTIME_PERL_PERL_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* `loop` is the symbol Perl_runops_standard. Sets all but the kind; ret->problem where it fails. */
void perl_file_read(const struct elf_exports *symbols, const struct elf_export *loop,
		    struct runtime_file *ret);

#endif
