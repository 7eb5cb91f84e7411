/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php_code - reads a function of PHP out of a process, as bpf/script_php.h noted it.
 *
 * `function` is the function with its class and namespace ("App\Shop::sell", "array_map",
 * "App\Shop::{closure}"); a file's own code is "{main}", "{eval}" what was evaluated. A function
 * in C has no file. Bounds: PHP_TEXT_MAX bytes of a text (longer ones are cut), and
 * PHP_INSTRUCTIONS_MAX instructions, of which longer functions have no lines. Text is made valid
 * UTF-8.
 */
#ifndef FIRN_AGENT_RUNTIME_PHP_PHP_CODE_H
#define FIRN_AGENT_RUNTIME_PHP_PHP_CODE_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/php/php_layout.h"
#include "agent/runtime/script_code.h"
#include "base/slice.h"
#include "base/strbuf.h"

#define PHP_TEXT_MAX 1024u
#define PHP_INSTRUCTIONS_MAX 65536u

/* `key`: the rest of the proof. Nothing is to be freed unless SCRIPT_CODE_READ. */
enum script_code_result php_code_read(const struct memory_reader *memory,
				      const struct php_layout *layout, uint64_t key,
				      uint64_t address, struct script_code *ret);

enum php_lines_form {
	PHP_LINES_TABLE,
	PHP_LINES_NONE, /* the position is the line */
};

/*
 * The line. `position`: of an instruction, in bytes from the first on. 0 = not in this function, or
 * not known.
 */
uint32_t php_line(struct slice lines, uint8_t form, uint32_t position);

/* The name of the frame; marks the code of an included file. */
void php_label(const struct script_code *code, bool is_outermost, struct strbuf *out);

#endif
