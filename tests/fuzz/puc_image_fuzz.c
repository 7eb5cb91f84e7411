/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what Lua keeps there: threads are sought and their calls walked
 * within the bounds, and what is read of prototypes stays within theirs. The first bytes choose
 * registers and the version.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/line_table.h"
#include "agent/runtime/puc/puc_code.h"
#include "agent/runtime/puc/puc_text.h"
#include "agent/runtime/splice.h"
#include "image_fuzz.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define HEAD_BYTES 8u
#define STEPS_MAX 4096
#define TEXT_MAX (3 * PUC_TEXT_MAX + 32)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#include "agent/bpf/script_puc.h"

static const struct script_puc_layout walks[] = {
	{ .code_start = 1,
	  .code_bytes = 64,
	  .stack = 56,
	  .status = 12,
	  .base_call = 96,
	  .position = 40,
	  .flags = 66,
	  .lua_flag = 2,
	  .entry_flag = 8,
	  .proof = 48,
	  .code = 56,
	  .code_count = 24 },
	{ .code_start = 1,
	  .code_bytes = 64,
	  .stack = 48,
	  .status = 10,
	  .base_call = 96,
	  .position = 32,
	  .flags = 62,
	  .lua_flag = 2,
	  .entry_flag = 4,
	  .forms = SCRIPT_PUC_C_FLAGGED | SCRIPT_PUC_IN_REGISTER,
	  .proof = 56,
	  .code = 64,
	  .code_count = 24 },
};

static const struct puc_layout layouts[] = {
	{ .code = 56,
	  .code_count = 24,
	  .lines = 72,
	  .lines_count = 28,
	  .first_line = 40,
	  .source = 104,
	  .constants = 48,
	  .constants_count = 20,
	  .locals = 80,
	  .locals_count = 36,
	  .captured = 88,
	  .captured_count = 16,
	  .instructions = PUC_INSTRUCTIONS_5_3,
	  .proof = 48 },
	{ .code = 64,
	  .code_count = 24,
	  .lines = 88,
	  .lines_count = 28,
	  .bases = 96,
	  .bases_count = 40,
	  .first_line = 44,
	  .source = 112,
	  .constants = 56,
	  .constants_count = 20,
	  .locals = 104,
	  .locals_count = 36,
	  .captured = 80,
	  .captured_count = 16,
	  .instructions = PUC_INSTRUCTIONS_5_4,
	  .proof = 56 },
};

static void check_code(const struct puc_layout *layout, uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct script_code code;

	if (puc_code_read(&memory, layout, address, &code) != SCRIPT_CODE_READ)
		return;
	check_script_code(&code, TEXT_MAX, puc_line);
	script_code_fini(&code);
}

static void check_walk(const uint8_t *head, size_t version)
{
	static struct sample sample;
	static struct splice_step steps[SPLICE_STEPS_MAX];
	struct script script = { .room = SCRIPT_FRAMES_MAX,
				 .process = { .kind = SCRIPT_PUC, .puc = walks[version] } };
	__u64 registers[21] = { 0 };
	bool loops[8] = { true, false, true };
	struct splice_natives natives = { loops, 8, 5, head[3] & 1 };
	size_t count = 0;

	registers[REGISTERS_SP] = BASE + 8ull * head[0];
	registers[5] = BASE + 8ull * head[1]; /* rbx */
	registers[9] = BASE + 4ull * head[2];
	script_puc_start(&script, &sample, registers);
	while (count++ < STEPS_MAX && script_puc_frame(&script, &sample, registers))
		;
	/* Calls in C may be a circle, which the kernel's program leaves after as many steps. */
	if (script.at / 2 > SCRIPT_FRAMES_MAX + 1 ||
	    splice_frames(&natives, (const uint64_t *)sample.frames, script.at / 2, steps) >
		    SPLICE_STEPS_MAX)
		abort();
	for (size_t i = 0; i < script.at / 2 && i < 8; i++)
		check_code(&layouts[version], SCRIPT_ADDRESS(sample.frames[2 * i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES)
		return 0;
	image = data + HEAD_BYTES;
	image_bytes = size - HEAD_BYTES;
	check_walk(data, data[4] & 1);
	check_code(&layouts[data[4] & 1], BASE + 8ull * data[5]);
	return 0;
}
