/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: JavaScriptCore's runtime/JSType.h, JSFunction.h, FunctionRareData.h, ExecutableBase.h,
 * ScriptExecutable.h, FunctionExecutable.h, bytecode/CodeBlock.h, UnlinkedFunctionExecutable.h,
 * parser/SourceProvider.h, jit/JITCode.h, dfg/DFGCommonData.h, of the versions named.
 */
#include "agent/runtime/jsc/jsc_file.h"

#include <stdio.h>
#include <string.h>

#include "agent/runtime/text_search.h"
#include "codec/elf/elf.h"

#define INTERPRETER_SECTION "__DATA,__jsc_opcodes"
#define TEXT_SECTION ".rodata"
#define MARK "bun-v"
#define VERSION_BYTES 24u /* of text: "bun-v1.2.3" with what is behind */

/* From the kind of a function's executable on (JSType.h). */
#define SCRIPT_BELOW 3
#define MODULE_BELOW 2
#define EVAL_BELOW 1
#define UNLINKED_ABOVE 1
#define CODE_ABOVE 6

struct known_version {
	uint16_t first[3], last[3];
	uint8_t function_kind;	/* of its executable */
	uint8_t callee_kind;	/* of the callee of code at the top of a file */
	uint8_t unlinked, name; /* as in struct jsc_layout */
};

/* What differs between the versions; older ones lack the section. */
static const struct known_version known_versions[] = {
	{ { 1, 2, 20 }, { 1, 3, 5 }, 12, 25, 88, 80 },
	{ { 1, 3, 6 }, { 1, 3, 9 }, 14, 30, 88, 80 },
	{ { 1, 3, 10 }, { 1, 3, 13 }, 14, 31, 88, 80 },
	{ { 1, 3, 14 }, { 1, 3, 14 }, 14, 35, 88, 80 },
	{ { 1, 4, 0 }, { 1, 4, 2 }, 12, 35, 88, 72 },
	{ { 1, 4, 3 }, { 1, 4, 5 }, 12, 35, 80, 64 },
};

struct sections {
	struct elf_section_info opcodes, text;
};

static void see_section(void *context, const struct elf_section_info *section)
{
	struct sections *sections = context;

	if (!strcmp(section->name, INTERPRETER_SECTION))
		sections->opcodes = *section;
	else if (!strcmp(section->name, TEXT_SECTION))
		sections->text = *section;
}

struct search {
	uint16_t version[3];
	unsigned found;
	bool differs;
};

/* True when nothing more is looked for. */
static bool take_version(struct search *search, const char *text)
{
	uint16_t version[3];

	if (sscanf(text, MARK "%5hu.%5hu.%5hu", &version[0], &version[1], &version[2]) != 3)
		return false;
	search->differs = search->found && memcmp(version, search->version, sizeof(version)) != 0;
	memcpy(search->version, version, sizeof(version));
	return ++search->found == 2;
}

static bool search_piece(void *context, const char *piece, size_t len, size_t own)
{
	const char *at = piece, *end = piece + len;

	while ((at = memmem(at, (size_t)(end - at), MARK, strlen(MARK))) && at < piece + own) {
		char text[VERSION_BYTES + 1] = "";
		size_t left = (size_t)(end - at);

		memcpy(text, at, left < VERSION_BYTES ? left : VERSION_BYTES);
		if (take_version(context, text))
			return true;
		at += strlen(MARK);
	}
	return false;
}

static bool find_version(int fd, const struct elf_section_info *section, uint16_t ret[3])
{
	struct search search = { 0 };
	uint64_t bytes = section->file_bytes;

	if (bytes > JSC_FILE_SEARCHED_MAX)
		bytes = JSC_FILE_SEARCHED_MAX;
	text_search(fd, section->offset, bytes, search_piece, &search);
	memcpy(ret, search.version, sizeof(search.version));
	return search.found && !search.differs;
}

static int compare(const uint16_t one[3], const uint16_t other[3])
{
	for (size_t i = 0; i < 3; i++)
		if (one[i] != other[i])
			return one[i] < other[i] ? -1 : 1;
	return 0;
}

static const struct known_version *find_known(const uint16_t version[3])
{
	for (size_t i = 0; i < sizeof(known_versions) / sizeof(known_versions[0]); i++)
		if (compare(version, known_versions[i].first) >= 0 &&
		    compare(version, known_versions[i].last) <= 0)
			return &known_versions[i];
	return NULL;
}

static struct jsc_layout layout_of(const struct known_version *known)
{
	return (struct jsc_layout){
		.script_kind = known->function_kind - SCRIPT_BELOW,
		.module_kind = known->function_kind - MODULE_BELOW,
		.eval_kind = known->function_kind - EVAL_BELOW,
		.function_kind = known->function_kind,
		.unlinked_kind = known->function_kind + UNLINKED_ABOVE,
		.code_kind = known->function_kind + CODE_ABOVE,
		.owner = 64,
		.jit = 120,
		.source = 40,
		.unlinked = known->unlinked,
		.name = known->name,
		.url = 72,
		.tier = 12,
		.dfg_calls = 72,
		.ftl_calls = 56,
	};
}

static struct script_jsc_layout script_of(const struct known_version *known,
					  const struct jsc_layout *layout)
{
	return (struct script_jsc_layout){
		.code_kind = layout->code_kind,
		.callee_kind = known->callee_kind,
		.top_kind = layout->script_kind,
		.executable = 24,
		.rare_executable = 48,
		.owner = layout->owner,
		.jit = layout->jit,
	};
}

void jsc_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		   struct runtime_file *ret)
{
	const struct known_version *known = NULL;
	struct sections sections = { 0 };
	uint16_t version[3];
	uint64_t opcodes;

	(void)mark;
	if (elf_each_section(symbols->fd, "a binary", see_section, &sections, NULL) ||
	    !sections.opcodes.file_bytes) {
		ret->layout.kind = RUNTIME_KINDS;
		return;
	}
	if (find_version(symbols->fd, &sections.text, version)) {
		snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", version[0] % 1000u,
			 version[1] % 1000u, version[2] % 10000u);
		known = find_known(version);
	}
	ret->script.kind = SCRIPT_JSC;
	ret->script.state_form = SCRIPT_STATE_STATIC;
	if (!known || !elf_offset_to_address(symbols->info, sections.opcodes.offset, &opcodes)) {
		ret->problem = "unknown layout";
		return;
	}
	ret->layout.jsc = layout_of(known);
	ret->layout.jsc.opcodes = opcodes;
	ret->layout.jsc.opcodes_count = (uint32_t)(sections.opcodes.file_bytes / 8);
	ret->script.jsc = script_of(known, &ret->layout.jsc);
	ret->source = "table";
}
