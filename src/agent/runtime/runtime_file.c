/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/runtime_file.h"

#include <elf.h>
#include <stdlib.h>

#include "agent/runtime/beam/beam_file.h"
#include "agent/runtime/dotnet/dotnet_file.h"
#include "agent/runtime/dotnet/mono_file.h"
#include "agent/runtime/function_parts.h"
#include "agent/runtime/hotspot/hotspot_file.h"
#include "agent/runtime/jsc/jsc_file.h"
#include "agent/runtime/lua/lua_file.h"
#include "agent/runtime/perl/perl_file.h"
#include "agent/runtime/php/php_file.h"
#include "agent/runtime/puc/puc_file.h"
#include "agent/runtime/python/python_file.h"
#include "agent/runtime/ruby/ruby_file.h"
#include "agent/runtime/v8/v8_file.h"
#include "base/mem.h"

const char *runtime_kind_name(enum runtime_kind kind)
{
	static const char *const names[RUNTIME_KINDS] = { "python",  "hotspot", "v8",	"ruby",
							  "dotnet",  "php",	"beam", "lua",
							  "puc-lua", "jsc",	"perl" };

	return names[kind];
}

static bool add_range(struct runtime_file *file, const struct elf_exports *symbols,
		      const struct elf_export *code)
{
	uint64_t offset;

	if (file->loops_count == RUNTIME_LOOPS_MAX || !code->bytes || code->bytes > UINT32_MAX ||
	    !elf_address_to_offset(symbols->info, code->address, &offset) ||
	    code->bytes > UINT64_MAX - offset)
		return false;
	file->loops[file->loops_count++] = (struct runtime_range){ offset, offset + code->bytes };
	return true;
}

bool runtime_file_add_loop(struct runtime_file *file, const struct elf_exports *symbols,
			   const struct elf_export *loop)
{
	struct elf_export parts[RUNTIME_LOOPS_MAX];
	size_t count;

	if (!add_range(file, symbols, loop))
		return false;
	count = function_parts_find(symbols, loop, parts, RUNTIME_LOOPS_MAX);
	for (size_t i = 0; i < count; i++)
		add_range(file, symbols, &parts[i]);
	return true;
}

static void read_hotspot(const struct elf_exports *symbols, const struct elf_export *mark,
			 struct runtime_file *ret)
{
	(void)mark;
	ret->source = "vm_structs";
	if (!vm_symbols_find(symbols, &ret->layout.hotspot))
		ret->problem = "unknown layout";
	else if (!hotspot_file_read(symbols, &ret->layout.hotspot, &ret->jvm))
		ret->jvm = (struct jvm_file){ 0 };
}

/* A symbol that only this runtime exports, and what reads the rest of its file. */
static const struct mark {
	const char *symbol;
	enum runtime_kind kind;
	void (*read)(const struct elf_exports *symbols, const struct elf_export *mark,
		     struct runtime_file *ret);
} marks[] = {
	{ "_PyRuntime", RUNTIME_PYTHON, python_file_read },
	{ "_PyThreadState_Current", RUNTIME_PYTHON, python_file_read }, /* before 3.7 */
	{ "gHotSpotVMStructs", RUNTIME_HOTSPOT, read_hotspot },
	{ "v8dbg_off_fp_function", RUNTIME_V8, v8_file_read },
	{ "_ZN2v82V810GetVersionEv", RUNTIME_V8, v8_file_read },
	{ "rb_iseq_eval_main", RUNTIME_RUBY, ruby_file_read },
	{ "g_dacTable", RUNTIME_DOTNET, dotnet_file_read },
	{ "mono_jit_info_get_code_start", RUNTIME_DOTNET, mono_file_read },
	{ "execute_ex", RUNTIME_PHP, php_file_read },
	{ "etp_otp_release", RUNTIME_BEAM, beam_file_read },
	{ "luaJIT_setmode", RUNTIME_LUA, lua_file_read },
	{ "lua_ident", RUNTIME_PUC, puc_file_read },
	{ "Perl_runops_standard", RUNTIME_PERL, perl_file_read },
	{ "node_module_register", RUNTIME_JSC, jsc_file_read }, /* or another that loads addons */
};

/* What exports none of the symbols. */
static struct runtime_file *find_without_mark(const struct elf_exports *symbols)
{
	struct runtime_file *file = mem_new(struct runtime_file);

	file->layout.kind = RUNTIME_V8;
	if (v8_file_find(symbols, file))
		return file;
	free(file);
	return NULL;
}

struct runtime_file *runtime_file_read(int fd, const struct elf_info *info)
{
	struct elf_exports symbols;
	struct elf_export symbol;

	if (info->machine != EM_X86_64 || !elf_exports_open(&symbols, fd, info))
		return NULL;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		struct runtime_file *file;

		if (!elf_exports_find(&symbols, marks[i].symbol, &symbol))
			continue;
		file = mem_new(struct runtime_file);
		file->layout.kind = marks[i].kind;
		marks[i].read(&symbols, &symbol, file);
		if (file->layout.kind != RUNTIME_KINDS)
			return file;
		free(file);
	}
	return find_without_mark(&symbols);
}

bool runtime_file_is_loop(const struct runtime_file *file, uint64_t offset)
{
	for (size_t i = 0; i < file->loops_count; i++)
		if (offset >= file->loops[i].start && offset < file->loops[i].end)
			return true;
	return false;
}
