/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts that the tables do not say: src/hotspot/cpu/x86/frame_x86.hpp (slots of the interpreter's
 * frames), share/memory/heap.hpp (the segment map), share/code/nmethod.hpp; of 17 and 25.
 */
#include "agent/runtime/hotspot/hotspot_process.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HEAP_BYTES_MAX ((uint64_t)4 << 30)
#define OFFSET_MAX 4096u
#define BCI_SLOT 8u /* from 9 on, when the mirror got a slot before it */
#define BCI_SLOT_8 7u
#define RELEASE_BYTES 64

enum field {
	HEAPS,
	HEAP_ONLY, /* 8 */
	INTERPRETER,
	RELEASE,
	MAJOR,
	ARRAY_COUNT,
	ARRAY_COUNT_OLD,
	ARRAY_DATA,
	HEAP_MEMORY,
	HEAP_SEGMENTS,
	HEAP_SHIFT,
	SPACE_LOW,
	SPACE_HIGH,
	QUEUE_BUFFER,
	QUEUE_LIMIT,
	BLOCK_BYTES,
	BLOB_NAME,
	BLOB_SIZE,
	BLOB_COMPLETE,
	BLOB_FRAME,
	BLOB_CODE,
	BLOB_CODE_OFFSET,
	BLOB_DATA,
	BLOB_MUTABLE,
	BLOB_RELOCATION,
	NMETHOD_ID,
	NMETHOD_ORIG_PC,
	NMETHOD_DEOPT,
	NMETHOD_DEOPT_OLD,
	NMETHOD_DEOPT_OFFSET,
	NMETHOD_METHOD,
	NMETHOD_METHOD_OLD,
	NMETHOD_METADATA,
	NMETHOD_PCS,
	NMETHOD_PCS_END,
	NMETHOD_SCOPES,
	NMETHOD_SCOPES_OFFSET,
	NMETHOD_DEBUG,
	NMETHOD_DEBUG_BYTES,
	METHOD_CONST,
	CONST_CONSTANTS,
	CONST_FLAGS,
	CONST_FLAGS_OLD,
	CONST_CODE_SIZE,
	CONST_NAME,
	CONST_BYTES,
	CONST_WORDS,
	POOL_HOLDER,
	POOL_SOURCE,
	POOL_LENGTH,
	POOL_BYTES,
	KLASS_NAME,
	SYMBOL_LENGTH,
	SYMBOL_TEXT,
	PC_BYTES,
	FIELDS
};

static const struct vm_wanted fields[FIELDS] = {
	[HEAPS] = { .type = "CodeCache", .field = "_heaps" },
	[HEAP_ONLY] = { .type = "CodeCache", .field = "_heap" },
	[INTERPRETER] = { .type = "AbstractInterpreter", .field = "_code" },
	[RELEASE] = { .type = "Abstract_VM_Version", .field = "_s_vm_release" },
	[MAJOR] = { .type = "Abstract_VM_Version", .field = "_vm_major_version" },
	[ARRAY_COUNT] = { .type = "GrowableArrayBase", .field = "_len" },
	[ARRAY_COUNT_OLD] = { .type = "GenericGrowableArray", .field = "_len" },
	[ARRAY_DATA] = { .type = "GrowableArray<int>", .field = "_data" },
	[HEAP_MEMORY] = { .type = "CodeHeap", .field = "_memory" },
	[HEAP_SEGMENTS] = { .type = "CodeHeap", .field = "_segmap" },
	[HEAP_SHIFT] = { .type = "CodeHeap", .field = "_log2_segment_size" },
	[SPACE_LOW] = { .type = "VirtualSpace", .field = "_low_boundary" },
	[SPACE_HIGH] = { .type = "VirtualSpace", .field = "_high_boundary" },
	[QUEUE_BUFFER] = { .type = "StubQueue", .field = "_stub_buffer" },
	[QUEUE_LIMIT] = { .type = "StubQueue", .field = "_buffer_limit" },
	[BLOCK_BYTES] = { .type = "HeapBlock" },
	[BLOB_NAME] = { .type = "CodeBlob", .field = "_name" },
	[BLOB_SIZE] = { .type = "CodeBlob", .field = "_size" },
	[BLOB_COMPLETE] = { .type = "CodeBlob", .field = "_frame_complete_offset" },
	[BLOB_FRAME] = { .type = "CodeBlob", .field = "_frame_size" },
	[BLOB_CODE] = { .type = "CodeBlob", .field = "_code_begin" },
	[BLOB_CODE_OFFSET] = { .type = "CodeBlob", .field = "_code_offset" },
	[BLOB_DATA] = { .type = "CodeBlob", .field = "_data_offset" },
	[BLOB_MUTABLE] = { .type = "CodeBlob", .field = "_mutable_data" },
	[BLOB_RELOCATION] = { .type = "CodeBlob", .field = "_relocation_size" },
	[NMETHOD_ID] = { .type = "nmethod", .field = "_compile_id" },
	[NMETHOD_ORIG_PC] = { .type = "nmethod", .field = "_orig_pc_offset" },
	[NMETHOD_DEOPT] = { .type = "CompiledMethod", .field = "_deopt_handler_begin" },
	[NMETHOD_DEOPT_OLD] = { .type = "nmethod", .field = "_deoptimize_offset" },
	[NMETHOD_DEOPT_OFFSET] = { .type = "nmethod", .field = "_deopt_handler_offset" },
	[NMETHOD_METHOD] = { .type = "nmethod", .field = "_method" },
	[NMETHOD_METHOD_OLD] = { .type = "CompiledMethod", .field = "_method" },
	[NMETHOD_METADATA] = { .type = "nmethod", .field = "_metadata_offset" },
	[NMETHOD_PCS] = { .type = "nmethod", .field = "_scopes_pcs_offset" },
	[NMETHOD_PCS_END] = { .type = "nmethod", .field = "_dependencies_offset" },
	[NMETHOD_SCOPES] = { .type = "CompiledMethod", .field = "_scopes_data_begin" },
	[NMETHOD_SCOPES_OFFSET] = { .type = "nmethod", .field = "_scopes_data_offset" },
	[NMETHOD_DEBUG] = { .type = "nmethod", .field = "_immutable_data" },
	[NMETHOD_DEBUG_BYTES] = { .type = "nmethod", .field = "_immutable_data_size" },
	[METHOD_CONST] = { .type = "Method", .field = "_constMethod" },
	[CONST_CONSTANTS] = { .type = "ConstMethod", .field = "_constants" },
	[CONST_FLAGS] = { .type = "ConstMethod", .field = "_flags._flags" },
	[CONST_FLAGS_OLD] = { .type = "ConstMethod", .field = "_flags" },
	[CONST_CODE_SIZE] = { .type = "ConstMethod", .field = "_code_size" },
	[CONST_NAME] = { .type = "ConstMethod", .field = "_name_index" },
	[CONST_BYTES] = { .type = "ConstMethod" },
	[CONST_WORDS] = { .type = "ConstMethod", .field = "_constMethod_size" },
	[POOL_HOLDER] = { .type = "ConstantPool", .field = "_pool_holder" },
	[POOL_SOURCE] = { .type = "ConstantPool", .field = "_source_file_name_index" },
	[POOL_LENGTH] = { .type = "ConstantPool", .field = "_length" },
	[POOL_BYTES] = { .type = "ConstantPool" },
	[KLASS_NAME] = { .type = "Klass", .field = "_name" },
	[SYMBOL_LENGTH] = { .type = "Symbol", .field = "_length" },
	[SYMBOL_TEXT] = { .type = "Symbol", .field = "_body" },
	[PC_BYTES] = { .type = "PcDesc" },
};

/* Without one of these nothing is certain. */
static const enum field needed[] = {
	INTERPRETER,   ARRAY_DATA,	HEAP_MEMORY, HEAP_SEGMENTS,   HEAP_SHIFT,      SPACE_LOW,
	SPACE_HIGH,    QUEUE_BUFFER,	QUEUE_LIMIT, BLOCK_BYTES,     BLOB_NAME,       BLOB_SIZE,
	BLOB_COMPLETE, BLOB_FRAME,	BLOB_DATA,   NMETHOD_ID,      NMETHOD_ORIG_PC, METHOD_CONST,
	CONST_BYTES,   CONST_CONSTANTS, CONST_NAME,  POOL_HOLDER,     POOL_BYTES,      POOL_LENGTH,
	KLASS_NAME,    SYMBOL_LENGTH,	SYMBOL_TEXT, CONST_CODE_SIZE, MAJOR,	       CONST_WORDS,
};

struct reading {
	const struct memory_reader *memory;
	struct vm_wanted fields[FIELDS];
	struct hotspot_process *ret;
};

static bool has(const struct reading *reading, enum field field)
{
	return reading->fields[field].found;
}

static uint64_t value(const struct reading *reading, enum field field)
{
	return reading->fields[field].value;
}

/* 0 where there is none. */
static uint16_t offset(const struct reading *reading, enum field field)
{
	return (uint16_t)value(reading, field);
}

static uint16_t either(const struct reading *reading, enum field first, enum field second)
{
	return offset(reading, has(reading, first) ? first : second);
}

static bool word(const struct reading *reading, uint64_t address, __u64 *ret)
{
	return address && memory_read(reading->memory, address, ret, sizeof(*ret));
}

static bool is_complete(const struct reading *reading)
{
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!has(reading, needed[i]))
			return false;
	for (size_t i = 0; i < FIELDS; i++)
		if (has(reading, (enum field)i) && !reading->fields[i].is_static &&
		    value(reading, (enum field)i) > OFFSET_MAX)
			return false;
	return (has(reading, HEAPS) || has(reading, HEAP_ONLY)) &&
	       (has(reading, BLOB_CODE) || has(reading, BLOB_CODE_OFFSET)) &&
	       (has(reading, NMETHOD_METHOD) || has(reading, NMETHOD_METHOD_OLD));
}

/* What the kernel's program reads at once has to be where it reads. */
static bool is_in_reach(const struct jvm_layout *layout)
{
	return layout->frame_complete + layout->frame_complete_bytes <= (int)JVM_HEAD_BYTES &&
	       layout->frame_size + 4 <= (int)JVM_HEAD_BYTES &&
	       layout->data + 4 <= (int)JVM_HEAD_BYTES &&
	       layout->code + layout->code_bytes <= (int)JVM_HEAD_BYTES;
}

static void lay_out_walk(const struct reading *reading, bool is_8)
{
	bool by_offset = !has(reading, BLOB_CODE);

	reading->ret->walk.layout = (struct jvm_layout){
		.blob = offset(reading, BLOCK_BYTES),
		.frame_complete = offset(reading, BLOB_COMPLETE),
		.frame_size = offset(reading, BLOB_FRAME),
		.data = offset(reading, BLOB_DATA),
		.code = either(reading, BLOB_CODE, BLOB_CODE_OFFSET),
		/* where the kind of blob became a byte, these became shorts */
		.frame_complete_bytes = by_offset ? 2 : 4,
		.code_bytes = by_offset ? 4 : 8,
		.orig_pc = offset(reading, NMETHOD_ORIG_PC),
		.deopt = has(reading, NMETHOD_DEOPT)
				 ? offset(reading, NMETHOD_DEOPT)
				 : either(reading, NMETHOD_DEOPT_OFFSET, NMETHOD_DEOPT_OLD),
		.deopt_bytes = has(reading, NMETHOD_DEOPT) ? 8 : 4,
		.const_method = offset(reading, METHOD_CONST),
		.bytecodes = offset(reading, CONST_BYTES),
		.proof = offset(reading, CONST_CODE_SIZE) & ~7u,
		.bci_slot = is_8 ? BCI_SLOT_8 : BCI_SLOT,
		.saves_below = is_8,
	};
}

static void lay_out_debug(const struct reading *reading, struct hotspot_layout *layout)
{
	layout->pcs = offset(reading, NMETHOD_PCS);
	if (!has(reading, NMETHOD_PCS) || value(reading, PC_BYTES) != 16)
		return;
	if (has(reading, NMETHOD_DEBUG) && has(reading, NMETHOD_SCOPES_OFFSET) &&
	    has(reading, NMETHOD_DEBUG_BYTES) && has(reading, BLOB_MUTABLE) &&
	    has(reading, BLOB_RELOCATION)) {
		layout->debug_form = HOTSPOT_DEBUG_APART;
		layout->scopes = offset(reading, NMETHOD_SCOPES_OFFSET);
		layout->debug = offset(reading, NMETHOD_DEBUG);
		layout->debug_bytes = offset(reading, NMETHOD_DEBUG_BYTES);
		layout->mutable_data = offset(reading, BLOB_MUTABLE);
		layout->relocation_bytes = offset(reading, BLOB_RELOCATION);
	} else if (!has(reading, NMETHOD_DEBUG) && has(reading, NMETHOD_METADATA) &&
		   has(reading, NMETHOD_PCS_END) &&
		   (has(reading, NMETHOD_SCOPES) || has(reading, NMETHOD_SCOPES_OFFSET))) {
		layout->debug_form = HOTSPOT_DEBUG_INSIDE;
		layout->scopes = either(reading, NMETHOD_SCOPES, NMETHOD_SCOPES_OFFSET);
		layout->scopes_bytes = has(reading, NMETHOD_SCOPES) ? 8 : 4;
		layout->metadata = offset(reading, NMETHOD_METADATA);
		layout->pcs_end = offset(reading, NMETHOD_PCS_END);
	}
}

static void lay_out_names(const struct reading *reading)
{
	reading->ret->layout = (struct hotspot_layout){
		.constants = offset(reading, CONST_CONSTANTS),
		.method_flags = either(reading, CONST_FLAGS, CONST_FLAGS_OLD),
		.code_size = offset(reading, CONST_CODE_SIZE),
		.name_index = offset(reading, CONST_NAME),
		.method_words = offset(reading, CONST_WORDS),
		.const_method = offset(reading, METHOD_CONST),
		.bytecodes = offset(reading, CONST_BYTES),
		.code = either(reading, BLOB_CODE, BLOB_CODE_OFFSET),
		.code_bytes = has(reading, BLOB_CODE) ? 8 : 4,
		.orig_pc = offset(reading, NMETHOD_ORIG_PC),
		.proof = offset(reading, CONST_CODE_SIZE) & ~7u,
		.pool_holder = offset(reading, POOL_HOLDER),
		.pool_source = offset(reading, POOL_SOURCE),
		.pool_bytes = offset(reading, POOL_BYTES),
		.pool_length = offset(reading, POOL_LENGTH),
		.klass_name = offset(reading, KLASS_NAME),
		.symbol_length = offset(reading, SYMBOL_LENGTH),
		.symbol_text = offset(reading, SYMBOL_TEXT),
		.blob_name = offset(reading, BLOB_NAME),
		.method = either(reading, NMETHOD_METHOD, NMETHOD_METHOD_OLD),
	};
	lay_out_debug(reading, &reading->ret->layout);
}

/* "17.0.15+6" of "17.0.15+6-Debian-1deb12u1" */
static void read_version(const struct reading *reading)
{
	char text[RELEASE_BYTES] = "";
	__u64 address;
	size_t len;

	if (!has(reading, RELEASE) || !word(reading, value(reading, RELEASE), &address) ||
	    !memory_read(reading->memory, address, text, sizeof(text) - 1))
		return;
	len = strspn(text, "0123456789.+_ubB");
	if (len >= HOTSPOT_VERSION_BYTES)
		len = HOTSPOT_VERSION_BYTES - 1;
	memcpy(reading->ret->version, text, len);
}

static bool read_span(const struct reading *reading, uint64_t space, __u64 *low, __u64 *bytes)
{
	__u64 high;

	if (!word(reading, space + value(reading, SPACE_LOW), low) || !*low ||
	    !word(reading, space + value(reading, SPACE_HIGH), &high) || high <= *low)
		return false;
	*bytes = high - *low;
	return *bytes <= HEAP_BYTES_MAX;
}

static bool read_heap(const struct reading *reading, uint64_t heap)
{
	struct jvm_process *walk = &reading->ret->walk;
	struct jvm_heap *to = &walk->heaps[walk->heaps_count];
	__u64 map_bytes;
	uint32_t shift;

	if (!heap ||
	    !read_span(reading, heap + value(reading, HEAP_MEMORY), &to->low, &to->bytes) ||
	    !read_span(reading, heap + value(reading, HEAP_SEGMENTS), &to->segments, &map_bytes) ||
	    !memory_read(reading->memory, heap + value(reading, HEAP_SHIFT), &shift,
			 sizeof(shift)) ||
	    shift < 3 || shift > 16)
		return false;
	walk->layout.segment_shift = (uint16_t)shift;
	walk->heaps_count++;
	return true;
}

static bool read_heaps(const struct reading *reading)
{
	__u64 array, data, heap;
	uint32_t count;

	if (!has(reading, HEAPS))
		return word(reading, value(reading, HEAP_ONLY), &heap) && read_heap(reading, heap);
	if (!word(reading, value(reading, HEAPS), &array) || !array ||
	    !memory_read(reading->memory,
			 array + value(reading,
				       has(reading, ARRAY_COUNT) ? ARRAY_COUNT : ARRAY_COUNT_OLD),
			 &count, sizeof(count)) ||
	    !count || count > JVM_HEAPS_MAX ||
	    !word(reading, array + value(reading, ARRAY_DATA), &data))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!word(reading, data + 8ull * i, &heap) || !read_heap(reading, heap))
			return false;
	return true;
}

/* The range that all heaps lie in. */
static bool read_range(const struct reading *reading)
{
	struct jvm_process *walk = &reading->ret->walk;
	uint64_t low = walk->heaps[0].low, high = low + walk->heaps[0].bytes;

	for (uint32_t i = 1; i < walk->heaps_count; i++) {
		const struct jvm_heap *heap = &walk->heaps[i];

		if (heap->low < low)
			low = heap->low;
		if (heap->low + heap->bytes > high)
			high = heap->low + heap->bytes;
	}
	walk->low = low;
	walk->bytes = high - low;
	return walk->bytes <= HEAP_BYTES_MAX;
}

static bool read_interpreter(const struct reading *reading)
{
	struct jvm_process *walk = &reading->ret->walk;
	__u64 queue;
	uint32_t limit;

	if (!word(reading, value(reading, INTERPRETER), &queue) || !queue ||
	    !word(reading, queue + value(reading, QUEUE_BUFFER), &walk->interpreter) ||
	    !memory_read(reading->memory, queue + value(reading, QUEUE_LIMIT), &limit,
			 sizeof(limit)) ||
	    !limit || walk->interpreter - walk->low >= walk->bytes ||
	    limit > walk->bytes - (walk->interpreter - walk->low))
		return false;
	walk->interpreter_bytes = limit;
	return true;
}

enum hotspot_state hotspot_process_read(const struct memory_reader *memory, uint64_t bias,
					const struct vm_symbols *symbols,
					struct hotspot_process *ret)
{
	struct reading reading = { .memory = memory, .ret = ret };
	uint32_t major = 0;
	bool is_8;

	*ret = (struct hotspot_process){ 0 };
	memcpy(reading.fields, fields, sizeof(fields));
	if (!vm_structs_read(memory, bias, symbols, reading.fields, FIELDS))
		return HOTSPOT_NOT_YET;
	is_8 = !has(&reading, HEAPS);
	lay_out_walk(&reading, is_8);
	lay_out_names(&reading);
	read_version(&reading);
	/* Without debug information what is inlined would be missing, and nothing would say so. */
	if (!is_complete(&reading) || !is_in_reach(&ret->walk.layout) ||
	    ret->layout.debug_form == HOTSPOT_DEBUG_NONE) {
		ret->problem = "unknown layout";
		return HOTSPOT_READY;
	}
	if (!memory_read(memory, value(&reading, MAJOR), &major, sizeof(major)) ||
	    !read_heaps(&reading) || !read_range(&reading) || !read_interpreter(&reading))
		return HOTSPOT_NOT_YET;
	ret->layout.has_numbers_from_one = !is_8 && major >= 20;
	return HOTSPOT_READY;
}

static bool is_known(const struct reading *reading, const struct hotspot_source *source)
{
	for (size_t i = 0; i < FIELDS; i++) {
		const struct vm_wanted *field = &reading->fields[i];

		/* Addresses are relocated, and sizes are constants. */
		if (field->found && field->field && !field->is_static &&
		    !source->is_set(source->memory.context, field->at))
			return false;
	}
	return true;
}

static void lay_out_roots(const struct reading *reading, struct jvm_roots *ret)
{
	*ret = (struct jvm_roots){
		.heaps = value(reading, HEAPS),
		.interpreter = value(reading, INTERPRETER),
		.array_count = either(reading, ARRAY_COUNT, ARRAY_COUNT_OLD),
		.array_data = offset(reading, ARRAY_DATA),
		.heap_low = offset(reading, HEAP_MEMORY) + offset(reading, SPACE_LOW),
		.heap_high = offset(reading, HEAP_MEMORY) + offset(reading, SPACE_HIGH),
		.segments_low = offset(reading, HEAP_SEGMENTS) + offset(reading, SPACE_LOW),
		.heap_shift = offset(reading, HEAP_SHIFT),
		.stubs_start = offset(reading, QUEUE_BUFFER),
		.stubs_bytes = offset(reading, QUEUE_LIMIT),
	};
}

bool hotspot_process_read_file(const struct hotspot_source *source,
			       const struct vm_symbols *symbols, struct jvm_file *ret)
{
	struct hotspot_process process = { 0 };
	struct reading reading = { .memory = &source->memory, .ret = &process };

	memcpy(reading.fields, fields, sizeof(fields));
	if (!vm_structs_read(&source->memory, 0, symbols, reading.fields, FIELDS))
		return false;
	lay_out_walk(&reading, false);
	lay_out_names(&reading);
	if (!is_complete(&reading) || !has(&reading, HEAPS) || !value(&reading, HEAPS) ||
	    !value(&reading, INTERPRETER) || !value(&reading, BLOCK_BYTES) ||
	    !is_in_reach(&process.walk.layout) || process.layout.debug_form == HOTSPOT_DEBUG_NONE ||
	    !is_known(&reading, source))
		return false;
	lay_out_roots(&reading, &ret->roots);
	ret->layout = process.walk.layout;
	return true;
}
