/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby_text - text out of a process that runs Ruby: strings, names of ids and of classes.
 *
 * Bounds: RUBY_TEXT_MAX bytes of a string (longer ones are cut), RUBY_VARIABLES_MAX variables of a
 * class, and no chain that is followed more than two steps. Text is made valid UTF-8.
 */
#ifndef FIRN_AGENT_RUNTIME_RUBY_RUBY_TEXT_H
#define FIRN_AGENT_RUNTIME_RUBY_RUBY_TEXT_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/ruby/ruby_layout.h"

#define RUBY_TEXT_MAX 1024u
#define RUBY_VARIABLES_MAX 64u

struct ruby_memory {
	const struct memory_reader *memory;
	const struct ruby_layout *layout;
	uint64_t symbols; /* address of the table of ids; 0 = not known */
};

/* The caller frees the text. NULL = something else is there, or nothing any more. */
char *ruby_string(const struct ruby_memory *ruby, uint64_t address);
char *ruby_path(const struct ruby_memory *ruby, uint64_t address); /* of a file: the absolute one */
char *ruby_id_name(const struct ruby_memory *ruby, uint64_t id);

/* The name of the class and how its method is joined to it: "Foo#", "Foo."; NULL = no name. */
char *ruby_class_prefix(const struct ruby_memory *ruby, uint64_t class_address);

#endif
