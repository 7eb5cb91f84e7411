/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what JavaScriptCore keeps there: what is read of code, its names
 * and what is inlined into it stays within its bounds, and so do the frames that are found. The
 * first bytes choose frames.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/jsc/jsc_code.h"
#include "agent/runtime/jsc/jsc_text.h"
#include "base/slice.h"
#include "image_fuzz.h"
#include "jsc_layout_145.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#include "agent/bpf/script_jsc.h"

#define FRAMES 4u
#define HEAD_BYTES (2 * FRAMES)
#define TEXT_MAX (3 * JSC_TEXT_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct jsc_layout layout = { JSC_LAYOUT_145, .opcodes = BASE + 8, .opcodes_count = 4 };

static void check_text(const char *text)
{
	if (strlen(text) > TEXT_MAX || !slice_is_utf8(slice_of(text)))
		abort();
}

static void check_calls(const struct jsc_code *code)
{
	const struct jsc_call *calls[JSC_INLINED_MAX];
	size_t count;

	if (code->sites_count > JSC_SITES_MAX || code->calls_count > JSC_CALLS_MAX)
		abort();
	for (size_t site = 0; site <= code->sites_count; site++) {
		if (!jsc_code_calls(code, (uint32_t)site, calls, &count))
			continue;
		if (site == code->sites_count || count > JSC_INLINED_MAX)
			abort();
		for (size_t i = 0; i < count; i++) {
			check_text(calls[i]->function);
			check_text(calls[i]->file);
		}
	}
}

static void check_code(uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct script_code code;

	if (jsc_code_read(&memory, &layout, 0, address, &code) != SCRIPT_CODE_READ)
		return;
	check_text(code.function);
	check_text(code.file);
	if (!*code.function || !code.jsc->interpreter_end || script_code_bytes(&code) > 1u << 22)
		abort();
	check_calls(code.jsc);
	script_code_fini(&code);
}

static void check_frames(const uint8_t *head)
{
	static struct script script;
	static struct sample sample;

	memset(&script, 0, sizeof(script));
	script.process.kind = SCRIPT_JSC;
	script.process.jsc = (struct script_jsc_layout){ JSC_WALK_145 };
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint64_t fp = BASE + (head[2 * i] | (uint32_t)head[2 * i + 1] << 8);

		script_jsc_frame(&script, fp, i, &sample);
		if (script.at > 2 * (i + 1))
			abort();
	}
	for (uint32_t at = 0; at < script.at; at += 2)
		if (sample.frames[at] & SCRIPT_FLAGS)
			abort();
		else
			check_code(SCRIPT_ADDRESS(sample.frames[at]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES)
		return 0;
	image = data + HEAD_BYTES;
	image_bytes = size - HEAD_BYTES;
	check_frames(data);
	for (uint64_t address = BASE; address < BASE + image_bytes && address < BASE + 512;
	     address += 8)
		check_code(address);
	return 0;
}
