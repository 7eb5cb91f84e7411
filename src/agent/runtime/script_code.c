/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/script_code.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/hotspot/java_code.h"
#include "agent/runtime/jsc/jsc_code.h"
#include "agent/runtime/lua/lua_code.h"
#include "agent/runtime/v8/v8_optimized.h"
#include "base/mem.h"

struct script_code script_code_none(void)
{
	return (struct script_code){ .function = mem_strndup("", 0),
				     .name = mem_strndup("", 0),
				     .file = mem_strndup("", 0) };
}

static char *copy_text(const char *text)
{
	return mem_strndup(text, strlen(text));
}

struct script_code script_code_copy(const struct script_code *code)
{
	struct script_code copy = *code;

	assert(!code->java && !code->v8 && !code->lua && !code->jsc);
	copy.function = copy_text(code->function);
	copy.name = copy_text(code->name);
	copy.file = copy_text(code->file);
	if (code->lines) {
		copy.lines = mem_new_array(uint8_t, code->lines_len);
		memcpy(copy.lines, code->lines, code->lines_len);
	}
	return copy;
}

void script_code_fini(struct script_code *code)
{
	free(code->function);
	free(code->name);
	free(code->file);
	free(code->lines);
	java_code_free(code->java);
	free(code->v8);
	lua_code_free(code->lua);
	jsc_code_free(code->jsc);
	*code = (struct script_code){ 0 };
}

size_t script_code_bytes(const struct script_code *code)
{
	if (code->java)
		return java_code_bytes(code->java);
	if (code->v8)
		return v8_place_bytes(code->v8);
	return code->function ? strlen(code->function) + strlen(code->name) + strlen(code->file) +
					code->lines_len + 64 +
					(code->lua ? lua_code_bytes(code->lua) : 0) +
					(code->jsc ? jsc_code_bytes(code->jsc) : 0)
			      : 0;
}
