/* SPDX-License-Identifier: Apache-2.0 */
/* script_code - the function, file and lines of an interpreter's code object. */
#ifndef FIRN_AGENT_RUNTIME_SCRIPT_CODE_H
#define FIRN_AGENT_RUNTIME_SCRIPT_CODE_H

#include <stddef.h>
#include <stdint.h>

enum script_code_result {
	SCRIPT_CODE_READ,
	SCRIPT_CODE_GONE,  /* its memory is not there, or has changed under the reading */
	SCRIPT_CODE_OTHER, /* there is something else: no code object */
};

struct java_code;
struct v8_place;
struct lua_code;
struct jsc_code;

/* Of HotSpot there is `java` and nothing else, of a place in V8's optimized code `v8`. */
struct script_code {
	char *function; /* with its module: "json.decoder.JSONDecoder.decode" */
	char *name;	/* as the interpreter has it: "JSONDecoder.decode" */
	char *file;	/* "" = it is the runtime's own, and not shown */
	uint32_t first_line;
	uint8_t lines_form;
	uint8_t *lines;
	size_t lines_len;
	struct java_code *java;
	struct v8_place *v8;
	struct lua_code *lua; /* of LuaJIT, beside names and file; otherwise NULL */
	struct jsc_code *jsc; /* of JavaScriptCore, the same */
	uint32_t proof;	      /* see script_prove in bpf/script.h */
};

struct script_code script_code_none(void); /* there is nothing to be shown */
/* Of PHP: names, file and lines alone. */
struct script_code script_code_copy(const struct script_code *code);
void script_code_fini(struct script_code *code);
size_t script_code_bytes(const struct script_code *code);

#endif
