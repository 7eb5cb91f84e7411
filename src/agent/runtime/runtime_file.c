/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/runtime_file.h"

#include <elf.h>
#include <string.h>

#include "agent/runtime/beam/beam_file.h"
#include "agent/runtime/dotnet/dotnet_file.h"
#include "agent/runtime/dotnet/mono_file.h"
#include "agent/runtime/function_parts.h"
#include "agent/runtime/hotspot/hotspot_file.h"
#include "agent/runtime/lua/lua_file.h"
#include "agent/runtime/perl/perl_file.h"
#include "agent/runtime/php/php_file.h"
#include "agent/runtime/puc/puc_file.h"
#include "agent/runtime/python/python_file.h"
#include "agent/runtime/ruby/ruby_file.h"
#include "agent/runtime/v8/v8_file.h"
#include "base/mem.h"

static const struct {
	const char *symbol;
	enum runtime_kind kind;
} marks[] = {
	{ "_PyRuntime", RUNTIME_PYTHON },
	{ "_PyThreadState_Current", RUNTIME_PYTHON }, /* before 3.7 */
	{ "gHotSpotVMStructs", RUNTIME_HOTSPOT },
	{ "v8dbg_off_fp_function", RUNTIME_V8 },
	{ "_ZN2v82V810GetVersionEv", RUNTIME_V8 },
	{ "rb_iseq_eval_main", RUNTIME_RUBY },
	{ "g_dacTable", RUNTIME_DOTNET },
	{ MONO_MARK, RUNTIME_DOTNET },
	{ "execute_ex", RUNTIME_PHP },
	{ "etp_otp_release", RUNTIME_BEAM },
	{ "luaJIT_setmode", RUNTIME_LUA },
	{ "lua_ident", RUNTIME_PUC },
	{ "Perl_runops_standard", RUNTIME_PERL },
};

const char *runtime_kind_name(enum runtime_kind kind)
{
	static const char *const names[RUNTIME_KINDS] = { "python",  "hotspot", "v8",	"ruby",
							  "dotnet",  "php",	"beam", "lua",
							  "puc-lua", "perl" };

	return names[kind];
}

static void read_hotspot(const struct elf_exports *symbols, struct runtime_file *ret)
{
	ret->source = "vm_structs";
	if (!vm_symbols_find(symbols, &ret->layout.hotspot))
		ret->problem = "unknown layout";
	else if (!hotspot_file_read(symbols, &ret->layout.hotspot, &ret->jvm))
		ret->jvm = (struct jvm_file){ 0 };
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

struct runtime_file *runtime_file_read(int fd, const struct elf_info *info)
{
	struct runtime_file *file = NULL;
	struct elf_exports symbols;
	struct elf_export mark;

	if (info->machine != EM_X86_64 || !elf_exports_open(&symbols, fd, info))
		return NULL;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && !file; i++) {
		if (!elf_exports_find(&symbols, marks[i].symbol, &mark))
			continue;
		file = mem_new(struct runtime_file);
		file->layout.kind = marks[i].kind;
		if (marks[i].kind == RUNTIME_PYTHON)
			python_file_read(&symbols, &mark, file);
		else if (marks[i].kind == RUNTIME_HOTSPOT)
			read_hotspot(&symbols, file);
		else if (marks[i].kind == RUNTIME_RUBY)
			ruby_file_read(&symbols, file);
		else if (marks[i].kind == RUNTIME_PHP)
			php_file_read(&symbols, &mark, file);
		else if (marks[i].kind == RUNTIME_DOTNET && !strcmp(marks[i].symbol, MONO_MARK))
			mono_file_read(&symbols, file);
		else if (marks[i].kind == RUNTIME_DOTNET)
			dotnet_file_read(&symbols, &mark, file);
		else if (marks[i].kind == RUNTIME_LUA)
			lua_file_read(&symbols, file);
		else if (marks[i].kind == RUNTIME_PUC)
			puc_file_read(&symbols, &mark, file);
		else if (marks[i].kind == RUNTIME_PERL)
			perl_file_read(&symbols, &mark, file);
		else if (marks[i].kind == RUNTIME_BEAM)
			beam_file_read(&symbols, &mark, file);
		else
			v8_file_read(&symbols, file);
	}
	return file;
}

bool runtime_file_is_loop(const struct runtime_file *file, uint64_t offset)
{
	for (size_t i = 0; i < file->loops_count; i++)
		if (offset >= file->loops[i].start && offset < file->loops[i].end)
			return true;
	return false;
}
