/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what wasmtime keeps there: reading its images ends, within their
 * bounds, and what is found is consistent. The first bytes say where code is executable.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/jit/code_images.h"
#include "image_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_image(const struct wasm_image *found, const struct code_memory_range *range)
{
	if (found->text != range->start || found->text_bytes > range->end - range->start ||
	    found->text_bytes > image_bytes || found->ends_count > image_bytes ||
	    found->blocks > (found->text_bytes >> CODE_BLOCK_SHIFT) + 1)
		abort();
	for (size_t i = 1; i < found->ends_count; i++)
		if (found->ends[i] <= found->ends[i - 1])
			abort();
	for (uint64_t at = found->text - 1; at <= found->text + found->text_bytes; at++) {
		struct code_place place;
		uint64_t start;

		if (code_map_find(found->names, at, &place) &&
		    (!code_map_find_start(found->names, at, &start) || start > at ||
		     start < found->text || at >= found->text + found->text_bytes ||
		     wasm_image_function(place.name).len > place.name.len))
			abort();
		if (wasm_image_is_framed(found, at, true) &&
		    !wasm_image_is_framed(found, at, false))
			abort();
	}
}

static void drop_line(void *context, uint64_t number, const struct code_line *line)
{
	(void)context;
	if (number < CODE_LINE_OF_BLOCK(0) || !line)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_reader memory = { read_image, NULL };
	struct code_images images = { 0 };
	struct code_rows rows = { 0 };
	struct code_memory_range range;
	struct wasm_image *found;

	if (size < 2)
		return 0;
	range.start = BASE + 4096ull * data[0];
	range.end = range.start + 4096ull * data[1];
	image = data + 2;
	image_bytes = size - 2;
	found = wasm_image_read(&memory, range.start, range.end);
	if (found)
		check_image(found, &range);
	wasm_image_unref(found);
	code_rows_begin(&rows, 64);
	code_images_update(&images, &memory, &range, 1, SIZE_MAX, &rows);
	code_rows_take_changes(&rows, SIZE_MAX, drop_line, NULL);
	code_images_fini(&images);
	code_rows_fini(&rows);
	return 0;
}
