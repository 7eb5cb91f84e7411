/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beam_file - what is found out of a binary that has Erlang's runtime in it: its version, where the
 * tables of modules and of atoms are, and how a thread finds its scheduler.
 *
 * The offsets in structures come from a table by version; what the binary does not export, from the
 * code of small functions that it does. Works in stripped files.
 */
#ifndef FIRN_AGENT_RUNTIME_BEAM_BEAM_FILE_H
#define FIRN_AGENT_RUNTIME_BEAM_BEAM_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* `release` is the symbol etp_otp_release. Sets all but the kind; ret->problem where it fails. */
void beam_file_read(const struct elf_exports *symbols, const struct elf_export *release,
		    struct runtime_file *ret);

#endif
