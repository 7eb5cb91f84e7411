/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wasm_image - reads the image of one WebAssembly module that wasmtime has compiled, out of the
 * memory of the process that runs it.
 *
 * wasmtime (since 9) keeps what it compiled as an ELF file in memory, in the order of the file, of
 * which it makes the section .text executable:
 *
 *     header (OS ABI 200) | .wasmtime.engine ... | .text, at a page | ... | .symtab | .strtab |
 * sections
 *
 * Symbols are called "wasm[0]::function[3]::parse", without the last part where the module does not
 * name the function, and "wasm[0]::array_to_wasm_trampoline[3]", "signatures[1]::...".
 *
 * All is the process's: lengths are bounded before memory is taken, and what is read is checked.
 * Bounds: WASM_IMAGE_... below, and those of code_map.
 */
#ifndef FIRN_AGENT_JIT_WASM_IMAGE_H
#define FIRN_AGENT_JIT_WASM_IMAGE_H

#include "agent/jit/code_map.h"
#include "agent/runtime/memory_reader.h"

#define WASM_IMAGE_PAGES_MAX 64u /* of 4 KB, before .text */
#define WASM_IMAGE_SECTIONS_MAX 64u
#define WASM_IMAGE_TEXT_BYTES_MAX ((uint64_t)128 << 20)
#define WASM_IMAGE_SYMBOLS_MAX ((uint64_t)CODE_MAP_RANGES_MAX)
#define WASM_IMAGE_NAMES_BYTES_MAX ((uint64_t)16 << 20)
#define WASM_IMAGE_ENDS_MAX ((size_t)1 << 20) /* of functions; with more no block counts */

/* Never changes once it is read. A counted reference, which any thread may take and drop. */
struct wasm_image {
	atomic_uint references;
	uint64_t start;		   /* of the ELF header */
	uint64_t text, text_bytes; /* the code */
	uint64_t proof;		   /* hash of the headers of the file and its sections */
	struct code_map *names;	   /* symbols */
	/*
	 * A byte for each block of code (bpf/shared.h) from that of `text` on: 1 if all its
	 * functions begin with `push %rbp; mov %rsp,%rbp`, and return or jump elsewhere right
	 * behind `pop %rbp`.
	 */
	uint8_t *framed;
	size_t blocks;
	uint32_t *ends; /* what is right behind `pop %rbp`, from `text` on, sorted */
	size_t ends_count, ends_capacity;
};

/*
 * Reads the image whose code is executable memory from `start` to `end`. NULL when there is none,
 * or not what is expected.
 */
struct wasm_image *wasm_image_read(const struct memory_reader *memory, uint64_t start,
				   uint64_t end);

/* True if the same image is still there. */
bool wasm_image_is_there(const struct memory_reader *memory, const struct wasm_image *image);

/*
 * True if the frame pointer leads from this address of the image to the caller for certain.
 * `is_innermost`: it was interrupted there, and not left by a call.
 */
bool wasm_image_is_framed(const struct wasm_image *image, uint64_t address, bool is_innermost);

struct wasm_image *wasm_image_ref(struct wasm_image *image);
void wasm_image_unref(struct wasm_image *image); /* accepts NULL */

size_t wasm_image_bytes(const struct wasm_image *image); /* memory */

/* "parse" of "wasm[0]::function[3]::parse"; other names are as they are. */
struct slice wasm_image_function(struct slice symbol);

#endif
