/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby_code - reads a method entry, or instructions, of Ruby out of a process, as
 * bpf/script_ruby.h noted it.
 *
 * Of a method entry `function` is the method with its class ("Foo#bar", "Foo.bar"; "bar" where the
 * class has no name); a method in C has no file. For instructions it is Ruby's own label ("block in
 * bar", "<class:Foo>"). `name` is the method's name alone.
 */
#ifndef FIRN_AGENT_RUNTIME_RUBY_RUBY_CODE_H
#define FIRN_AGENT_RUNTIME_RUBY_RUBY_CODE_H

#include "agent/runtime/ruby/ruby_text.h"
#include "agent/runtime/script_code.h"
#include "base/strbuf.h"

/*
 * `bias` is what the binary's virtual addresses are moved by in the process. Nothing is to be freed
 * unless SCRIPT_CODE_READ.
 */
enum script_code_result ruby_code_read(const struct memory_reader *memory,
				       const struct ruby_layout *layout, uint64_t bias,
				       uint64_t address, struct script_code *ret);

/* The label with the class of its method: "block in Foo#bar". `method` may be NULL. */
void ruby_full_label(const struct script_code *code, const struct script_code *method,
		     struct strbuf *out);

#endif
