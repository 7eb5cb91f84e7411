/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_images - the images of compiled WebAssembly (wasm_image) that one process has in its memory.
 *
 * An image is looked for where code runs that nobody knows. Each update first looks whether those
 * that are known are still there: another module may have come to an image's place.
 *
 * Names are handed over as a set that never changes once it is made, like a code_map: one thread
 * may look things up in it while another makes its successor. Sets are counted references.
 *
 * Bounds: CODE_IMAGES_MAX, and those of wasm_image and code_rows. One thread at a time.
 */
#ifndef FIRN_AGENT_JIT_CODE_IMAGES_H
#define FIRN_AGENT_JIT_CODE_IMAGES_H

#include "agent/jit/code_rows.h"
#include "agent/jit/wasm_image.h"

#define CODE_IMAGES_MAX 1024u

/* Executable memory. */
struct code_memory_range {
	uint64_t start, end;
};

struct code_image_set;

struct code_image_set *
code_image_set_ref(struct code_image_set *set);	       /* accepts and returns NULL */
void code_image_set_unref(struct code_image_set *set); /* accepts NULL */

/* The symbol at an address. Slices of the result live as long as the set, which may be NULL. */
bool code_image_set_find(const struct code_image_set *set, uint64_t address,
			 struct code_place *ret);

/* As wasm_image_is_framed; false where there is no image. */
bool code_image_set_is_framed(const struct code_image_set *set, uint64_t address,
			      bool is_innermost);

/* Zero-initialised is empty and valid. */
struct code_images {
	struct wasm_image **items; /* by address */
	size_t count, capacity;
	size_t bytes;
	uint64_t found;		    /* so far */
	struct code_image_set *set; /* of the items; NULL = there are none */
};

/*
 * Forgets images that have gone, and looks for new ones whose code one of the ranges is, as long as
 * all take less than `bytes_max`. How their code is left goes to the rows (NULL = nobody wants it).
 */
void code_images_update(struct code_images *images, const struct memory_reader *memory,
			const struct code_memory_range *ranges, size_t count, size_t bytes_max,
			struct code_rows *rows);

void code_images_fini(struct code_images *images);

#endif
