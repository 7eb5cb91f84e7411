/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's memory that is not what HotSpot keeps there: frames are left within the bounds of the
 * walk, and what is read of methods, compiled code and the runtime's tables stays within theirs.
 * The first bytes choose layout, registers and the object that is read.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "agent/runtime/hotspot/hotspot_process.h"
#include "agent/runtime/hotspot/java_frames.h"
#include "base/slice.h"
#include "hotspot_layout_17.h"
#include "image_walk.h"

#include "agent/bpf/jvm_find.h"

#define HEAD_BYTES 16u
#define FRAMES_MAX 600u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void become_25(struct hotspot_layout *layout)
{
	layout->bytecodes = 56;
	layout->code_size = 34;
	layout->name_index = 36;
	layout->blob_name = 8;
	layout->code = 36;
	layout->code_bytes = 4;
	layout->orig_pc = 208;
	layout->method = 80;
	layout->pcs = 196;
	layout->scopes = 200;
	layout->debug = 96;
	layout->debug_bytes = 160;
	layout->mutable_data = 16;
	layout->relocation_bytes = 28;
	layout->debug_form = HOTSPOT_DEBUG_APART;
}

/* Of 17, and, where it differs, of 25. */
static struct hotspot_process layouts(uint8_t flags)
{
	bool is_new = flags & 1;
	struct hotspot_process process = {
		.walk = {
			.heaps_count = 1,
			.low = BASE,
			.bytes = 4096,
			.interpreter = BASE,
			.interpreter_bytes = flags & 4 ? 256 : 0,
			.heaps = { { BASE, 4096, BASE + 64 } },
			.layout = { .blob = is_new ? 8 : 16,
				    .frame_complete = is_new ? 54 : 20,
				    .frame_size = is_new ? 44 : 28,
				    .data = is_new ? 40 : 24,
				    .code = is_new ? 36 : 32,
				    .frame_complete_bytes = is_new ? 2 : 4,
				    .code_bytes = is_new ? 4 : 8,
				    .orig_pc = is_new ? 208 : 300,
				    .deopt = is_new ? 176 : 128,
				    .deopt_bytes = is_new ? 4 : 8,
				    .const_method = 8,
				    .bytecodes = is_new ? 56 : 48,
				    .proof = 32,
				    .bci_slot = 8,
				    .segment_shift = 7 },
		},
		.layout = { HOTSPOT_LAYOUT_17, .has_numbers_from_one = (flags & 2) != 0 },
	};

	if (is_new)
		become_25(&process.layout);
	return process;
}

static void check_code(const struct hotspot_process *process, uint64_t address)
{
	struct memory_reader memory = { read_image, NULL };
	struct java_code *code = java_code_read(&memory, process, address);
	struct java_frame frames[JAVA_INLINED_MAX];

	if (!code)
		return;
	if (code->methods_count > JAVA_METHODS_MAX || (!code->stub && !code->methods_count))
		abort();
	for (uint32_t at = 0; at < 512; at++) {
		size_t count = java_frames_at(code, at, frames);

		if (count > JAVA_INLINED_MAX || (!code->stub && !count))
			abort();
		for (size_t i = 0; i < count; i++)
			if (frames[i].method &&
			    strlen(frames[i].method->function) > 2 * JAVA_NAME_MAX + 1)
				abort();
	}
	java_code_bytes(code);
	java_code_free(code);
}

static uint64_t address_at(const uint8_t *data)
{
	return BASE + (data[0] | (uint32_t)data[1] << 8);
}

static void check_walk(const struct hotspot_process *process, const uint8_t *data)
{
	static struct walk walk;
	static struct sample sample;
	uint32_t count = 0;

	memset(&walk, 0, offsetof(struct walk, memories));
	memset(walk.memories, 0, sizeof(walk.memories));
	walk.jvm.process = process->walk;
	jvm_start(&walk.jvm);
	walk_start(&walk);
	walk.at = 0;
	walk.has_jvm = true;
	walk.full = true;
	walk.pc = address_at(data);
	walk.sp = address_at(data + 2);
	walk.fp = address_at(data + 4);
	while (walk_frame(&walk, &sample))
		if (count++ > FRAMES_MAX)
			abort();
	if (walk.jvm.count > SAMPLE_USER_FRAMES_MAX)
		abort();
	for (uint32_t i = 0; i < walk.jvm.count && i < 8; i++)
		check_code(process, SCRIPT_ADDRESS(walk.jvm.words[2 * i]));
}

/* Where the code is, of variables that say anything. */
static void check_find(const struct hotspot_process *process, const uint8_t *data)
{
	static struct walk walk;
	struct jvm_roots roots = { .heaps = address_at(data),
				   .interpreter = address_at(data + 2),
				   .array_data = 8,
				   .heap_low = 8,
				   .heap_high = 16,
				   .segments_low = 120,
				   .heap_shift = 256,
				   .stubs_start = 8,
				   .stubs_bytes = 20 };

	walk.jvm.process = process->walk;
	jvm_find_code(&walk, &roots);
	if (walk.jvm.process.bytes > JVM_CODE_BYTES_MAX ||
	    walk.jvm.process.interpreter_bytes > walk.jvm.process.bytes)
		abort();
}

static void check_tables(void)
{
	struct memory_reader memory = { read_image, NULL };
	struct hotspot_process process;
	struct vm_symbols symbols;

	for (size_t i = 0; i < VM_SYMBOLS; i++)
		symbols.at[i] = 8 * i;
	hotspot_process_read(&memory, BASE, &symbols, &process);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hotspot_process process;

	if (size < HEAD_BYTES)
		return 0;
	image = data + HEAD_BYTES;
	image_bytes = size - HEAD_BYTES;
	process = layouts(data[0]);
	check_walk(&process, data + 2);
	check_find(&process, data + 10);
	process.walk.low = data[0] & 8 ? 0 : BASE; /* whether the object is one of code */
	process.walk.bytes = data[0] & 8 ? 0 : 65536;
	check_code(&process, address_at(data + 8));
	check_tables();
	return 0;
}
