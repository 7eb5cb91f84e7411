/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what LuaJIT keeps there: its C frames are left, and its frames
 * walked, within their bounds, and what is read of prototypes and traces stays within theirs. The
 * first bytes choose registers and the object that is read.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "agent/runtime/lua/lua_code.h"
#include "agent/runtime/splice.h"
#include "base/slice.h"
#include "image_walk.h"

/* Needs what image_walk.h defines. */
#include "agent/bpf/script_lua.h"

#define HEAD_BYTES 8u
#define STEPS_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct lua_layout layout = { .code = 88 };
static const struct script_lua_layout places_of = { .code_start = BASE,
						    .code_bytes = 64,
						    .trace_base = 0x20,
						    .state = 0x18,
						    .traces = 0x28,
						    .shared = 0x10,
						    .base = 0x20,
						    .frame = 0x50,
						    .code = 88 };

static void check_code(uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	const struct lua_place *places;
	struct script_code code;
	bool is_unsure;

	if (lua_code_read(&memory, &layout, address, &code) != SCRIPT_CODE_READ)
		return;
	if (!slice_is_utf8(slice_of(code.function)) || !slice_is_utf8(slice_of(code.file)))
		abort();
	for (uint32_t i = 0; i < 512; i++) {
		const char *name = lua_prototype_callee(code.lua->prototypes, i);

		if ((name && !slice_is_utf8(slice_of(name))) ||
		    lua_prototype_line(code.lua->prototypes, i) > INT32_MAX)
			abort();
		for (size_t count = lua_code_places(code.lua, i, &places, &is_unsure); count-- > 0;)
			if (places[count].prototype >= code.lua->prototypes_count)
				abort();
	}
	script_code_fini(&code);
}

static void check_walk(const uint8_t *head)
{
	static struct walk walk;
	static struct sample sample;
	static struct splice_step steps[SPLICE_STEPS_MAX];
	bool loops[8] = { true, false, true };
	struct splice_natives natives = { loops, 8, 5, head[4] & 1 };
	struct script script = { .room = SCRIPT_FRAMES_MAX,
				 .process = { .kind = SCRIPT_LUA, .lua = places_of } };
	size_t count = 0;

	memset(&walk, 0, sizeof(walk));
	walk.pc = BASE + head[0];
	walk.sp = BASE + 8ull * head[1];
	walk.fp = BASE + 8ull * head[2];
	walk.bx = BASE + 4ull * head[3];
	walk.full = walk.fp_known = walk.bx_known = true;
	lua_prepare(&walk, &places_of);
	while (count++ < SAMPLE_USER_FRAMES_MAX && walk_out_of_lua(&walk) == STACK_ENDS)
		;
	count = 0;
	while (count++ < STEPS_MAX && script_lua_frame(&script, &walk.lua, &sample))
		;
	if (count >= STEPS_MAX || script.at / 2 > SCRIPT_FRAMES_MAX + 1 ||
	    splice_frames(&natives, (const uint64_t *)sample.frames, script.at / 2, steps) >
		    SPLICE_STEPS_MAX)
		abort();
	for (size_t i = 0; i < script.at / 2 && i < 4; i++)
		check_code(SCRIPT_ADDRESS(sample.frames[2 * i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES)
		return 0;
	image = data + HEAD_BYTES;
	image_bytes = size - HEAD_BYTES;
	check_walk(data);
	check_code(BASE + 8ull * data[5]);
	return 0;
}
