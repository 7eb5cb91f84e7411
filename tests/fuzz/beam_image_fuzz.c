/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what Erlang keeps there: looks at it end, within their bounds, and
 * what they find is consistent. The first bytes say what is wanted.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/beam/beam_process.h"
#include "beam_layout_25.h"
#include "image_fuzz.h"

#define WANTED 8u
#define TEXT_MAX (2 * 1020 + 64) /* two atoms, and what is put between */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_place(const struct beam_process *process, uint64_t address)
{
	const struct beam_place *place = beam_process_find(process, address);

	if (!place)
		return;
	if (place->address != address || !place->file || strlen(place->file) > TEXT_MAX ||
	    place->line >= 1u << 24 || (place->function && strlen(place->function) > TEXT_MAX) ||
	    (place->start && (address < place->start || address >= place->end)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct beam_layout layout = { BEAM_LAYOUT_25(BASE) };
	struct memory_reader memory = { read_image, NULL };
	struct beam_process *process;
	uint64_t wanted[WANTED];

	if (size < 2 * WANTED)
		return 0;
	for (size_t i = 0; i < WANTED; i++)
		wanted[i] = BASE + data[2 * i] + 256u * data[1 + 2 * i];
	image = data + 2 * WANTED;
	image_bytes = size - 2 * WANTED;
	process = beam_process_new(&layout, 0);
	for (int i = 0; i < 2; i++) {
		beam_process_read(process, &memory, wanted, WANTED);
		image_bytes -= image_bytes / 4; /* it changes */
	}
	for (size_t i = 0; i < WANTED; i++)
		check_place(process, wanted[i]);
	beam_process_free(process);
	return 0;
}
