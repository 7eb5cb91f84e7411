/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what V8 keeps there: what the frames of its functions say, and
 * what is read of functions, strings, sources, code and snapshots, stays within its bounds.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/splice.h"
#include "agent/runtime/v8/v8_code.h"
#include "agent/runtime/v8/v8_content.h"
#include "agent/runtime/v8/v8_exits.h"
#include "agent/runtime/v8/v8_optimized.h"
#include "agent/runtime/v8/v8_safepoints.h"
#include "agent/runtime/v8/v8_text.h"
#include "agent/runtime/v8/v8_translation.h"
#include "agent/runtime/v8/v8_versions.h"
#include "base/slice.h"
#include "image_fuzz.h"
#include "v8_layout_20.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define PLACES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in Node.js 20, but for kinds, which are small. */
static const struct v8_layout layout = {
	.type_shared = 130,
	.type_scope = 131,
	.type_script = 132,
	.type_code = 133,
	.type_head = 134,
	V8_LAYOUT_20,
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

static void check_optimized(const struct v8_layout *of, uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	struct v8_place *place = v8_optimized_read(&memory, of, &lines, 1, address);

	if (place->count > V8_INLINED_MAX)
		abort();
	for (size_t i = 0; i < place->count; i++)
		if (place->functions[i].shared < BASE)
			abort();
	free(place);
	v8_lines_fini(&lines);
}

/* Data of exits at an address, and code that is the whole image. */
static void check_exits(const struct v8_layout *of, uint64_t data)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_exits_source source = { &memory, of, data | 1, BASE, image_bytes };
	uint32_t translations[V8_CHECKS_NEAR];
	struct v8_exits exits;

	if (!v8_exits_read(&source, &exits))
		return;
	if (exits.count > V8_EXITS_MAX || exits.checked_count > exits.count)
		abort();
	for (uint32_t i = 0; i < exits.calls_count; i++)
		if (exits.calls[i].exit >= exits.count)
			abort();
	for (size_t at = 0; at < 8; at++) {
		v8_exits_find_call(&exits, at, translations);
		if (v8_exits_find_checks(&exits, image, image_bytes, at * image_bytes / 7,
					 translations) > V8_CHECKS_NEAR)
			abort();
	}
	v8_exits_free(&exits);
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

/* By version: kinds are not known, and pointers may be compressed. */
static void check_versions(size_t size)
{
	struct script_v8_layout slots;
	struct v8_layout of;

	for (int is_compressed = 0; is_compressed < 2; is_compressed++) {
		if (!v8_versions_find(15, is_compressed ? 8 : 0, is_compressed, &of, &slots))
			abort();
		of.is_not_node = 1;
		check_code(&of, BASE);
		check_optimized(&of, BASE + size / 2);
	}
}

static void check_bytes(const uint8_t *data, size_t size)
{
	uint32_t literals[V8_INLINED_MAX];
	struct v8_content content = { 0 };
	struct v8_safepoints points;
	struct v8_safepoint point;

	for (uint32_t codes = V8_TRANSLATION_CODES; codes < V8_TRANSLATION_CODES + 3; codes += 2) {
		size_t count =
			v8_translation_read(data, size, data[0], codes, literals, V8_INLINED_MAX);

		if (count > V8_INLINED_MAX)
			abort();
		for (size_t i = 0; i < count; i++)
			if (literals[i] > INT32_MAX)
				abort();
	}
	for (uint32_t form = 0; size >= V8_SAFEPOINTS_HEAD_BYTES && form < 3; form++)
		if (v8_safepoints_open(data, form, &points) && data[1] < points.count &&
		    v8_safepoints_bytes(&points) <= size - V8_SAFEPOINTS_HEAD_BYTES &&
		    v8_safepoints_get(&points, data + V8_SAFEPOINTS_HEAD_BYTES, data[1], &point) &&
		    (point.exit > INT32_MAX || point.exit_at > INT32_MAX))
			abort();
	for (size_t at = 0; at < size; at++)
		if (v8_content_read_head(data, size, at, &content) &&
		    (content.major > 99 || content.minor > 99 || content.build > 9999))
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
	newer.head_code = V8_NO_FIELD;
	newer.type_head = newer.type_code;
	newer.is_function_wrapped = 1;
	check_places(data);
	check_code(&layout, BASE);
	check_code(&newer, BASE);
	check_optimized(&layout, BASE + size / 2);
	check_optimized(&newer, BASE + size / 2);
	check_versions(size);
	newer.data_inlinings = data[0] & 3;
	for (newer.is_compressed = 0; newer.is_compressed < 2; newer.is_compressed++)
		check_exits(&newer, BASE + (data[1] & ~7u));
	check_bytes(data, size);
	return 0;
}
