/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_file - which language runtime a binary has, by its exported symbols, or V8 by its
 * constants, not by its name: a runtime may be in a library, in its own program, or embedded in
 * another.
 *
 * Made once per binary, from the file alone; nothing changes afterwards. Reading is bounded; the
 * file may say anything, so that everything taken from it is checked when it is used.
 */
#ifndef FIRN_AGENT_RUNTIME_RUNTIME_FILE_H
#define FIRN_AGENT_RUNTIME_RUNTIME_FILE_H

#include "agent/runtime/beam/beam_layout.h"
#include "agent/runtime/dotnet/dotnet_layout.h"
#include "agent/runtime/elf_exports.h"
#include "agent/runtime/hotspot/vm_structs.h"
#include "agent/runtime/jsc/jsc_layout.h"
#include "agent/runtime/lua/lua_layout.h"
#include "agent/runtime/perl/perl_layout.h"
#include "agent/runtime/php/php_layout.h"
#include "agent/runtime/puc/puc_layout.h"
#include "agent/runtime/python/python_layout.h"
#include "agent/runtime/ruby/ruby_layout.h"
#include "agent/runtime/v8/v8_layout.h"
#include "codec/elf/elf.h"

#define RUNTIME_LOOPS_MAX 4
#define RUNTIME_VERSION_BYTES 16

enum runtime_kind {
	RUNTIME_PYTHON,
	RUNTIME_HOTSPOT,
	RUNTIME_V8, /* its generated code keeps frame pointers */
	RUNTIME_RUBY,
	RUNTIME_DOTNET,
	RUNTIME_PHP,
	RUNTIME_BEAM,
	RUNTIME_LUA,  /* LuaJIT */
	RUNTIME_PUC,  /* PUC-Rio's Lua */
	RUNTIME_JSC,  /* JavaScriptCore, in Bun */
	RUNTIME_PERL, /* linked to many a program that does another thing */
	RUNTIME_KINDS
};

/* The layout by which code objects of the kind are read. */
struct runtime_layout {
	enum runtime_kind kind;
	union {
		struct python_layout python;
		struct v8_layout v8;
		struct ruby_layout ruby;
		struct php_layout php;
		struct vm_symbols hotspot; /* by which each process tells its own */
		struct dotnet_symbols dotnet;
		struct beam_layout beam;
		struct perl_layout perl;
		struct lua_layout lua;
		struct puc_layout puc;
		struct jsc_layout jsc;
	};
};

struct runtime_range {
	uint64_t start, end; /* offsets in the file */
};

struct runtime_file {
	char version[RUNTIME_VERSION_BYTES]; /* "3.11.7"; "" = not known */
	/* The function whose calls run the language's frames, and parts of it laid elsewhere. */
	struct runtime_range loops[RUNTIME_LOOPS_MAX];
	size_t loops_count;
	/* Of the layout: "debug_offsets", "v8dbg", "contract", ...; NULL = there is none. */
	const char *source;
	const char *problem; /* why frames cannot be read; NULL = they can */
	struct runtime_layout layout;
	/*
	 * For the program in the kernel (bpf/script.h); start_ns and exec_id are 0, and `state_at`
	 * is a virtual address, except with SCRIPT_STATE_STATIC.
	 */
	struct script_process script;
	struct jvm_file jvm; /* of a HotSpot; code_bytes is 0 where only its processes tell */
};

/* NULL when it is no runtime that we know. The caller frees it with free(). */
struct runtime_file *runtime_file_read(int fd, const struct elf_info *info);

/*
 * Adds a loop function, with the parts that the compiler put elsewhere. False if the file has no
 * such code.
 */
bool runtime_file_add_loop(struct runtime_file *file, const struct elf_exports *symbols,
			   const struct elf_export *loop);

/* JavaScript: its functions have native frames of their own. */
static inline bool runtime_has_native_frames(enum runtime_kind kind)
{
	return kind == RUNTIME_V8 || kind == RUNTIME_JSC;
}

bool runtime_file_is_loop(const struct runtime_file *file, uint64_t offset);

/* "python", "hotspot", "v8", "ruby", "dotnet", "php", "beam", "lua", "puc-lua", "jsc", "perl"
 */
const char *runtime_kind_name(enum runtime_kind kind);

#endif
