/* SPDX-License-Identifier: Apache-2.0 */
/* What HotSpot's library says of itself is read of its file, before any of it runs: of this one. */
#include "agent/runtime/hotspot/hotspot_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/bpf/jvm_file.h"

/* As in share/runtime/vmStructs.hpp. */
struct struct_entry {
	const char *type, *field, *field_type;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

struct type_entry {
	const char *type, *super;
	int32_t is_oop, is_integer, is_unsigned;
	uint64_t size;
};

static uint64_t heaps, interpreter;
static uint64_t strides[9];

/* The initialisers below give the field at place i of a table the offset 8 * i. */
#define FIELDS                                                                                     \
	{                                                                                          \
		{ "CodeCache", "_heaps", "", 1, 0, &heaps }, { "CodeBlob", "_name", "", 0, 0, 0 }, \
			{ "CodeBlob", "_size", "", 0, 0, 0 },                                      \
			{ "CodeBlob", "_frame_complete_offset", "", 0, 0, 0 },                     \
			{ "CodeBlob", "_frame_size", "", 0, 0, 0 },                                \
			{ "CodeBlob", "_code_begin", "", 0, 0, 0 },                                \
			{ "CodeBlob", "_data_offset", "", 0, 0, 0 },                               \
			{ "AbstractInterpreter", "_code", "", 1, 0, &interpreter },                \
			{ "GrowableArrayBase", "_len", "", 0, 0, 0 },                              \
			{ "GrowableArray<int>", "_data", "", 0, 0, 0 },                            \
			{ "CodeHeap", "_memory", "", 0, 0, 0 },                                    \
			{ "CodeHeap", "_segmap", "", 0, 0, 0 },                                    \
			{ "CodeHeap", "_log2_segment_size", "", 0, 0, 0 },                         \
			{ "VirtualSpace", "_low_boundary", "", 0, 0, 0 },                          \
			{ "VirtualSpace", "_high_boundary", "", 0, 0, 0 },                         \
			{ "StubQueue", "_stub_buffer", "", 0, 0, 0 },                              \
			{ "StubQueue", "_buffer_limit", "", 0, 0, 0 },                             \
			{ "nmethod", "_compile_id", "", 0, 0, 0 },                                 \
			{ "nmethod", "_orig_pc_offset", "", 0, 0, 0 },                             \
			{ "nmethod", "_method", "", 0, 0, 0 },                                     \
			{ "nmethod", "_metadata_offset", "", 0, 0, 0 },                            \
			{ "nmethod", "_scopes_pcs_offset", "", 0, 0, 0 },                          \
			{ "nmethod", "_dependencies_offset", "", 0, 0, 0 },                        \
			{ "nmethod", "_scopes_data_offset", "", 0, 0, 0 },                         \
			{ "Method", "_constMethod", "", 0, 0, 0 },                                 \
			{ "ConstMethod", "_constants", "", 0, 0, 0 },                              \
			{ "ConstMethod", "_code_size", "", 0, 0, 0 },                              \
			{ "ConstMethod", "_name_index", "", 0, 0, 0 },                             \
			{ "ConstMethod", "_constMethod_size", "", 0, 0, 0 },                       \
			{ "ConstantPool", "_pool_holder", "", 0, 0, 0 },                           \
			{ "ConstantPool", "_length", "", 0, 0, 0 },                                \
			{ "Klass", "_name", "", 0, 0, 0 }, { "Symbol", "_length", "", 0, 0, 0 },   \
			{ "Symbol", "_body", "", 0, 0, 0 },                                        \
			{ "Abstract_VM_Version", "_vm_major_version", "", 1, 0, &strides }, { 0 }, \
	}

struct struct_entry whole_table[] = FIELDS, torn_table[] = FIELDS, bare_table[] = FIELDS;

static struct type_entry types[] = { { "HeapBlock", "", 0, 0, 0, 16 },
				     { "ConstMethod", "", 0, 0, 0, 48 },
				     { "ConstantPool", "", 0, 0, 0, 72 },
				     { "PcDesc", "", 0, 0, 0, 16 },
				     { 0 } };

static struct struct_entry *whole = whole_table, *torn = torn_table, *bare = bare_table;
static struct type_entry *all_types = types;

#define SET_OFFSETS(table, first)                                                                  \
	__asm__ volatile(".set i, " #first "\n"                                                    \
			 ".rept 35 - " #first "\n"                                                 \
			 "movq $8 * i, " #table " + 48 * i + 32(%%rip)\n"                          \
			 ".set i, i + 1\n"                                                         \
			 ".endr\n" ::                                                              \
				 : "memory")

static __attribute__((constructor)) void initialise(void)
{
	SET_OFFSETS(whole_table, 0);
	SET_OFFSETS(torn_table, 0);
	__asm__ volatile("movq $64, torn_table + 48 * 4 + 32(%%rip)\n" ::: "memory");
	SET_OFFSETS(bare_table, 2); /* _name of a blob is left out */
}

extern const uint8_t __executable_start[];

static uint64_t address_of(const void *variable)
{
	return (uint64_t)((const uint8_t *)variable - __executable_start);
}

static bool read_table(struct struct_entry **table, struct jvm_file *ret)
{
	struct vm_symbols symbols = { { 0 } };
	struct elf_exports exports;
	struct elf_info info;
	bool is_read;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_read_info(fd, "this program", &info, NULL), 0);
	elf_exports_open(&exports, fd, &info);
	for (size_t i = 0; i < VM_SYMBOLS; i++)
		symbols.at[i] = address_of(&strides[i % 9]);
	symbols.at[VM_STRUCTS] = address_of(table);
	symbols.at[VM_TYPES] = address_of(&all_types);
	for (size_t i = VM_STRUCTS + 1, at = 0; i < VM_SYMBOLS; i++)
		if (i != VM_TYPES)
			symbols.at[i] = address_of(&strides[at++]);
	is_read = hotspot_file_read(&exports, &symbols, ret);
	close(fd);
	return is_read;
}

static void the_file_says_where_things_will_be(void **state)
{
	struct jvm_file file;

	(void)state;
	assert_true(read_table(&whole, &file));
	assert_int_equal(file.roots.heaps, address_of(&heaps));
	assert_int_equal(file.roots.interpreter, address_of(&interpreter));
	assert_int_equal(file.roots.array_count, 64);
	assert_int_equal(file.roots.array_data, 72);
	assert_int_equal(file.roots.heap_low, 80 + 104);
	assert_int_equal(file.roots.heap_high, 80 + 112);
	assert_int_equal(file.roots.segments_low, 88 + 104);
	assert_int_equal(file.roots.heap_shift, 96);
	assert_int_equal(file.roots.stubs_start, 120);
	assert_int_equal(file.roots.stubs_bytes, 128);
	assert_int_equal(file.layout.blob, 16);
	assert_int_equal(file.layout.frame_complete, 24);
	assert_int_equal(file.layout.frame_size, 32);
	assert_int_equal(file.layout.code, 40);
	assert_int_equal(file.layout.const_method, 192);
	assert_int_equal(file.layout.bytecodes, 48);
}

static void what_is_set_twice_is_not_believed(void **state)
{
	struct jvm_file file;

	(void)state;
	assert_false(read_table(&torn, &file));
	assert_int_equal(file.code_bytes, 0);
}

/* It would be taken for offset 0. */
static void what_nothing_sets_is_not_known(void **state)
{
	struct jvm_file file;

	(void)state;
	assert_false(read_table(&bare, &file));
}

static void a_process_has_it_where_the_library_is(void **state)
{
	struct jvm_file file;
	struct jvm_entry entry;
	uint64_t start = (uint64_t)__executable_start;
	__u64 bias = 0;

	(void)state;
	assert_true(read_table(&whole, &file));
	assert_true(jvm_bias(&file, start + file.code_address, file.code_offset, &bias));
	assert_int_equal(bias, start);
	assert_false(jvm_bias(&file, start, file.code_offset + file.code_bytes + 8192, &bias));
	jvm_entry_of(&entry, &file, start);
	assert_int_equal(entry.roots.heaps, (uint64_t)&heaps);
	assert_int_equal(entry.roots.interpreter, (uint64_t)&interpreter);
	assert_int_equal(entry.process.bytes, 0);
	assert_memory_equal(&entry.process.layout, &file.layout, sizeof(file.layout));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_says_where_things_will_be),
		cmocka_unit_test(what_is_set_twice_is_not_believed),
		cmocka_unit_test(what_nothing_sets_is_not_known),
		cmocka_unit_test(a_process_has_it_where_the_library_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
