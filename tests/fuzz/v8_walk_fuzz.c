/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what V8 keeps there: the walk leaves its frames within its bounds,
 * also where the innermost function begins or ends, and the functions that are found of them belong
 * to frames of the walk. The first bytes choose registers and layout.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "image_walk.h"

/* Needs what image_walk.h defines. */
#include "agent/bpf/script_v8.h"

#define HEAD_BYTES 16u
#define STEPS_MAX 600u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t address_at(const uint8_t *data)
{
	return BASE + (data[0] | (uint32_t)data[1] << 8);
}

static void walk_out(struct walk *walk, struct sample *sample,
		     const struct script_v8_layout *layout, const uint8_t *data)
{
	uint32_t count = 0;

	memset(walk, 0, sizeof(*walk));
	walk_start(walk);
	walk->has_v8 = walk->notes_places = walk->full = true;
	walk->v8.layout = *layout;
	walk->at = sample->kernel_count = data[8] & 3;
	walk->pc = address_at(data);
	walk->sp = address_at(data + 2);
	walk->fp = address_at(data + 4);
	while (walk_frame(walk, sample))
		if (count++ > STEPS_MAX)
			abort();
	if (walk->at > SAMPLE_FRAMES_MAX || walk->places_count > WALK_PLACES_MAX)
		abort();
	sample->user_count = walk->at - sample->kernel_count;
	for (uint32_t i = 0; i < walk->places_count; i++)
		if (walk->places[i].at < sample->kernel_count || walk->places[i].at >= walk->at)
			abort();
}

static void take_functions(struct walk *walk, struct sample *sample,
			   const struct script_v8_layout *layout)
{
	static struct script script;
	uint32_t first = sample->kernel_count + sample->user_count;

	memset(&script, 0, sizeof(script));
	script.at = first;
	script.process.v8 = *layout;
	for (uint32_t i = 0; script_v8_frames(&script, walk, i, sample); i += SCRIPT_V8_STEPS)
		continue;
	if (script.at > SAMPLE_WORDS_MAX || script.at - first > 2 * walk->places_count)
		abort();
	for (uint32_t at = first; at < script.at; at += 2)
		if (sample->frames[at] >> SCRIPT_PLACE_SHIFT >= sample->user_count)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct walk walk;
	static struct sample sample;
	struct script_v8_layout layout;

	if (size < HEAD_BYTES)
		return 0;
	image = data + HEAD_BYTES;
	image_bytes = size - HEAD_BYTES;
	layout = (struct script_v8_layout){ .function = -16,
					    .bytecode_array = -24,
					    .bytecode_offset = data[9] & 1 ? -40 : -32,
					    .shared = 8u * (data[10] & 7),
					    .proof = 8u * (data[11] & 7),
					    .is_compressed = data[9] >> 1 & 1 };
	walk_out(&walk, &sample, &layout, data);
	take_functions(&walk, &sample, &layout);
	return 0;
}
