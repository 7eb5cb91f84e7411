/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what CPython keeps there: the walk of its frames ends, within its
 * bounds, and what is read of code objects stays within theirs. The first bytes choose layouts.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/python/python_code.h"
#include "agent/runtime/python/python_lines.h"
#include "agent/runtime/splice.h"
#include "image_fuzz.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#include "agent/bpf/script_python.h"

static void check_code(const struct python_layout *layout, uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct script_code code;

	if (python_code_read(&memory, layout, 0, 4, address, &code) != SCRIPT_CODE_READ)
		return;
	if (strlen(code.name) > (size_t)PYTHON_TEXT_MAX * 4 ||
	    strlen(code.file) > (size_t)PYTHON_TEXT_MAX * 4 || code.lines_len > PYTHON_LINES_MAX ||
	    !slice_is_utf8(slice_of(code.function)))
		abort();
	for (int32_t at = -1; at < 64; at++)
		if (python_line(slice_from(code.lines, code.lines_len),
				(enum python_lines_form)code.lines_form, code.first_line,
				at) > INT32_MAX)
			abort();
	script_code_fini(&code);
}

static void check_walk(const struct script_process *process, const struct python_layout *layout,
		       uint8_t stack_at)
{
	static struct sample sample;
	static struct splice_step steps[SPLICE_STEPS_MAX];
	struct script script = { .process = *process, .room = SCRIPT_FRAMES_MAX };
	bool loops[8] = { true, false, true };
	struct splice_natives natives = { loops, 8, 5, image_bytes & 1 };
	__u64 registers[21] = { 0 };
	size_t frames, count = 0;

	registers[REGISTERS_SP] = BASE + stack_at;
	script_python_start(&script, BASE, registers, BASE + 8ull * stack_at);
	while (script_python_seek(&script))
		if (count++ > SCRIPT_PYTHON_SCAN_STEPS)
			abort();
	if (!script_python_settle(&script, &sample))
		return;
	count = 0;
	while (script_frame(&script, &sample))
		if (count++ > SCRIPT_FRAMES_MAX)
			abort();
	if (script.at > SAMPLE_WORDS_MAX - SAMPLE_FRAMES_MAX || script.at % 2)
		abort();
	frames = script.at / 2;
	if (splice_frames(&natives, (const uint64_t *)sample.frames, frames, steps) >
	    SPLICE_STEPS_MAX)
		abort();
	for (size_t i = 0; i < frames && i < 8; i++)
		check_code(layout, sample.frames[2 * i] & ~(uint64_t)SCRIPT_FLAGS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script_process process = { .kind = SCRIPT_PYTHON };
	struct python_layout layout = {
		.type = 8,
		.bytes_count = 16,
		.bytes_data = 32,
		.text_count = 16,
		.text_state = 32,
		.file_name = 112,
		.name = 120,
		.qualified_name = 128,
		.first_line = 72,
		.lines = 136,
		.text_ascii = 48,
		.text_wide = 72,
	};

	if (size < 8)
		return 0;
	image = data + 8;
	image_bytes = size - 8;
	process.state_form = data[0] & 7;
	process.state_at = BASE + data[1];
	layout.lines_form = data[2] % 3;
	layout.code_type = data[3];
	process.layout = (struct script_layout){
		.first_frame = 8,
		.first_frame_hop = data[4] & 1 ? 8 : SCRIPT_NO_HOP,
		.frame_bytes = (uint16_t)(data[5] & 0xf8),
		.previous = 8,
		.position = 56,
		.boundary = 70,
		.boundary_kind = data[6] & 3,
		.boundary_value = 3,
		.object_start = 184,
		.proof = 112,
		.proof_words = 3 + (data[7] & 1),
		.position_is_index = data[7] >> 1 & 1,
		.on_stack = data[7] >> 2 & 1 ? 24 : 0,
	};
	if (data[7] >> 3 & 1)
		process.current_at = process.interpreters_at = BASE + data[4];
	check_walk(&process, &layout, data[2]);
	check_code(&layout, BASE + data[1]);
	python_line(slice_from(image, image_bytes), (enum python_lines_form)layout.lines_form,
		    data[3], data[7]);
	return 0;
}
