/* SPDX-License-Identifier: Apache-2.0 */
/* JavaScriptCore's objects as in Bun 1.4.5, for memory that is laid out by hand. */
#ifndef FIRN_TESTS_JSC_LAYOUT_145_H
#define FIRN_TESTS_JSC_LAYOUT_145_H

#include "agent/bpf/shared.h"
#include "agent/runtime/jsc/jsc_layout.h"

enum {
	JSC_SCRIPT = 9,
	JSC_MODULE,
	JSC_EVAL,
	JSC_FUNCTION,
	JSC_UNLINKED,
	JSC_CODE = 18,
	JSC_CALLEE = 35,
	JSC_CALLABLE
};

#define JSC_LAYOUT_145                                                                             \
	.script_kind = JSC_SCRIPT, .module_kind = JSC_MODULE, .eval_kind = JSC_EVAL,               \
	.function_kind = JSC_FUNCTION, .unlinked_kind = JSC_UNLINKED, .code_kind = JSC_CODE,       \
	.owner = 64, .jit = 120, .source = 40, .unlinked = 80, .name = 64, .url = 72, .tier = 12,  \
	.dfg_calls = 72, .ftl_calls = 56

#define JSC_WALK_145                                                                               \
	.code_kind = JSC_CODE, .callee_kind = JSC_CALLEE, .top_kind = JSC_SCRIPT,                  \
	.executable = 24, .rare_executable = 48, .owner = 64, .jit = 120

#endif
