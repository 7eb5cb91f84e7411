/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beam_file - reads from a binary with Erlang's runtime: its version, where the tables of modules
 * and of atoms are, and how a thread finds its scheduler.
 *
 * Offsets in structures come from a table by version; variables that are not exported, from the
 * code of small exported functions. Works for stripped files.
 */
#ifndef FIRN_AGENT_RUNTIME_BEAM_BEAM_FILE_H
#define FIRN_AGENT_RUNTIME_BEAM_BEAM_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* `release` is the symbol etp_otp_release. Sets all but the kind; ret->problem where it fails. */
void beam_file_read(const struct elf_exports *symbols, const struct elf_export *release,
		    struct runtime_file *ret);

#endif
