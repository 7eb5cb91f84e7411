/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what V8 keeps there: what the frames of its functions say, and
 * what is read of functions, strings and sources, stays within its bounds.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/splice.h"
#include "agent/runtime/v8_code.h"
#include "agent/runtime/v8_text.h"
#include "base/slice.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define BASE 0x1000ull /* so low that pointers of few bytes lead into it */
#define PLACES 8

static const uint8_t *image;
static size_t image_bytes;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address < BASE || address - BASE > image_bytes || len > image_bytes - (address - BASE))
		return false;
	memcpy(to, image + (address - BASE), len);
	return true;
}

/* As in Node.js 20, but for kinds, which are small. */
static const struct v8_layout layout = {
	.map_type = 12,
	.type_shared = 130,
	.type_scope = 131,
	.type_script = 132,
	.text_types = 128,
	.form_mask = 7,
	.narrow_mask = 8,
	.form_cons = 1,
	.form_external = 2,
	.form_sliced = 3,
	.form_thin = 5,
	.text_length = 12,
	.text_characters = 16,
	.cons_first = 16,
	.cons_second = 24,
	.sliced_parent = 16,
	.sliced_start = 24,
	.thin_actual = 16,
	.external_resource = 16,
	.shared_name = 16,
	.shared_script = 32,
	.scope_flags = 8,
	.scope_variables = 32,
	.scope_position = V8_NO_FIELD,
	.script_name = 16,
	.script_source = 8,
	.script_line = 24,
};

static void check_code(const struct v8_layout *of, uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	struct script_code code;

	for (uint64_t process = 0; process < 2; process++) {
		if (v8_code_read(&memory, of, &lines, process, address, &code) != SCRIPT_CODE_READ)
			continue;
		if (strlen(code.name) > (size_t)V8_TEXT_MAX * 4 ||
		    strlen(code.file) > (size_t)V8_TEXT_MAX * 4 || !*code.name ||
		    !slice_is_utf8(slice_of(code.name)) || !slice_is_utf8(slice_of(code.file)) ||
		    code.first_line > INT32_MAX)
			abort();
		script_code_fini(&code);
	}
	v8_lines_fini(&lines);
}

static void check_places(const uint8_t *data)
{
	struct splice_step steps[SPLICE_STEPS_MAX];
	uint64_t words[2 * PLACES];
	uint8_t natives[PLACES];

	for (size_t i = 0; i < PLACES; i++) {
		natives[i] = data[i] % (SPLICE_GENERATED + 1);
		words[2 * i] = (uint64_t)(data[i] >> 2) << SCRIPT_PLACE_SHIFT;
	}
	if (splice_places(natives, PLACES, words, PLACES, steps) > 2 * PLACES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct v8_layout newer = layout;

	if (size < PLACES)
		return 0;
	image = data + PLACES;
	image_bytes = size - PLACES;
	newer.scope_variables = 48;
	newer.scope_position = 32;
	check_places(data);
	check_code(&layout, BASE);
	check_code(&newer, BASE);
	return 0;
}
