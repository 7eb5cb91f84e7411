/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/lua/lua_source.h"

#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"

char *lua_source_file(const char *text)
{
	struct strbuf label = { 0 };
	char *copy;

	if (*text == '@' || *text == '=')
		return mem_strndup(text + 1, strlen(text + 1));
	strbuf_addf(&label, "[string \"%.*s\"]", (int)strcspn(text, "\n\r"), text);
	copy = mem_strndup(label.data, label.len);
	strbuf_free(&label);
	return copy;
}

char *lua_source_place(const char *file, uint32_t line)
{
	const char *slash = *file == '[' ? NULL : strrchr(file, '/');
	struct strbuf label = { 0 };
	char *copy;

	if (!line)
		return mem_strndup("main chunk", strlen("main chunk"));
	strbuf_add_text(&label, slash ? slash + 1 : file);
	if (line != LUA_SOURCE_NO_LINE)
		strbuf_addf(&label, ":%u", (unsigned)line);
	copy = mem_strndup(label.data, label.len);
	strbuf_free(&label);
	return copy;
}
