/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perl_code - reads what a frame of Perl runs out of a process, as bpf/script_perl.h noted it.
 *
 * `function` is the sub with its package ("Shop::Cart::add", "main::__ANON__"); "<main>" is the
 * program, "<require Cart.pm>" a file that is loaded, "BEGIN" a block of it, "(eval)" evaluated
 * text, without its number, in the file's name, too. Bounds: PERL_TEXT_MAX bytes of a text; longer
 * ones are cut. Text is made valid UTF-8.
 */
#ifndef FIRN_AGENT_RUNTIME_PERL_PERL_CODE_H
#define FIRN_AGENT_RUNTIME_PERL_PERL_CODE_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/perl/perl_layout.h"
#include "agent/runtime/script_code.h"

#define PERL_TEXT_MAX 1024u

/*
 * `key`: the bits of the frame's first word from SCRIPT_PLACE_SHIFT on. `bias` is added to virtual
 * addresses of the binary. Nothing is to be freed unless SCRIPT_CODE_READ.
 */
enum script_code_result perl_code_read(const struct memory_reader *memory,
				       const struct perl_layout *layout, uint64_t bias,
				       uint64_t key, uint64_t address, struct script_code *ret);

#endif
