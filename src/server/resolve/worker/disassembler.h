/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disassembler - machine code as text, by Capstone (x86-64, AArch64).
 *
 * The bytes are hostile, so a process of its own reads them (subprocess.h): this program again with
 * a hidden verb. Intel syntax for x86. Bytes that are no instruction become ".byte".
 */
#ifndef FIRN_SERVER_RESOLVE_WORKER_DISASSEMBLER_H
#define FIRN_SERVER_RESOLVE_WORKER_DISASSEMBLER_H

#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"

#define DISASSEMBLER_CODE_BYTES_MAX ((size_t)256 << 10)

struct instruction {
	uint64_t address;
	uint32_t bytes;	   /* length */
	struct slice text; /* "push rbp" */
};

/*
 * Called first in main: does a worker's task and returns its exit code, or returns -1 when this is
 * no worker. disassembler_run fails in programs that never called it.
 */
int disassembler_main(int argc, char **argv);

/* "x86_64", "aarch64"; NULL for other values of e_machine. */
const char *disassembler_architecture(uint16_t machine);

/* The code that stands at `address`; instructions and texts in the arena. Thread-safe. */
int disassembler_run(uint16_t machine, uint64_t address, struct slice code, struct arena *arena,
		     struct instruction **ret, size_t *ret_count, struct err *err);

/*
 * The protocol between the two processes; pure functions. The worker writes a line "LENGTH TEXT"
 * for each instruction; -1 when it cannot. The other side does not trust it: lines of another form,
 * or beyond the code, are an error.
 */
int disassembler_write(uint16_t machine, uint64_t address, struct slice code, FILE *out);
int disassembler_parse(struct slice texts, uint64_t address, size_t code_bytes, struct arena *arena,
		       struct instruction **ret, size_t *ret_count, struct err *err);

#endif
