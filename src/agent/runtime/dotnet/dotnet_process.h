/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_process - the code of a process that runs CoreCLR or Mono: names of its functions, and the
 * rows by which the BPF program unwinds them (struct code_line in bpf/shared.h).
 *
 *   CoreCLR:
 *   map of code ranges -> heaps -> nibble maps -> methods -> unwind info -> rows
 *                      -> images -> their functions -> unwind info -> rows
 *                                                   -> metadata -> names
 *   Mono:
 *   mono_methods -> names, rows
 *
 * Each look reads all methods compiled since the last look, and the wanted functions of
 * ready-to-run images, which have tens of thousands, of which few run.
 *
 * Bounds: DOTNET_FUNCTIONS_MAX functions of DOTNET_CODE_BYTES_MAX in all. One thread at a time.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_DOTNET_PROCESS_H
#define FIRN_AGENT_RUNTIME_DOTNET_DOTNET_PROCESS_H

#include "agent/bpf/shared.h"
#include "agent/runtime/dotnet/dotnet_layout.h"

#define DOTNET_FUNCTIONS_MAX 65536u
#define DOTNET_CODE_BYTES_MAX ((uint64_t)16 << 20)

struct dotnet_function {
	uint64_t start, end;
	uint64_t owner; /* tells it from another one that came to its place */
	char *name;	/* NULL = could not be read */
	struct code_row *rows;
	uint32_t rows_count;
	bool is_seen; /* by the look under way */
};

/* A line that is new, or is another one now; `is_gone`: nothing is known of it any more. */
struct dotnet_line {
	uint64_t number;
	bool is_gone;
	struct code_line line;
};

struct dotnet_process;

/* `number`: of the process's lines, for whoever takes them. */
struct dotnet_process *dotnet_process_new(const struct dotnet_symbols *symbols, uint64_t bias,
					  uint32_t number);
void dotnet_process_free(struct dotnet_process *process); /* accepts NULL */

uint32_t dotnet_process_number(const struct dotnet_process *process);

/*
 * Reads the process. `wanted`: unknown addresses of code. Afterwards the functions found, and the
 * changed lines, are available.
 */
enum dotnet_answer dotnet_process_read(struct dotnet_process *process,
				       const struct memory_reader *memory, const uint64_t *wanted,
				       size_t count);

/* The lines that the last look changed; valid until the next one. */
size_t dotnet_process_lines(const struct dotnet_process *process, const struct dotnet_line **ret);

/* Marks all lines that were handed out as gone. */
void dotnet_process_give_up_lines(struct dotnet_process *process);

/* The function around an address; NULL = none is known. */
const struct dotnet_function *dotnet_process_find(const struct dotnet_process *process,
						  uint64_t address);

/* The runtime has code around the address. */
bool dotnet_process_has(const struct dotnet_process *process, uint64_t address);

/* ... of no method's: a stub, or what an image has between its functions. */
bool dotnet_process_has_stub(const struct dotnet_process *process, uint64_t address);

/* The last one that was there and is gone, as dynamic methods go; until dotnet_process_forget. */
const struct dotnet_function *dotnet_process_find_gone(const struct dotnet_process *process,
						       uint64_t address);

/* True if a look found nothing at the address; until dotnet_process_forget. */
bool dotnet_process_is_nothing(const struct dotnet_process *process, uint64_t address);
void dotnet_process_forget(struct dotnet_process *process);

size_t dotnet_process_bytes(const struct dotnet_process *process);

#endif
