/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of JavaScriptCore's code, and which frames of a walk are functions', in memory that
 * is laid out by hand as in Bun 1.4.5.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/jsc/jsc_code.h"
#include "fuzz/jsc_layout_145.h"
#include "unit/agent/forged_memory.h"

#include "agent/bpf/script_jsc.h"

#define NARROW 4u
#define FTL 5
#define APART 1u
#define INDEX(number) ((uint64_t)(number) << 48) /* in the bytecode, of a call site */
#define ARGUMENTS(site, count) ((uint64_t)(site) << 32 | (count))

static const struct script_jsc_layout walk_145 = { JSC_WALK_145 };
static struct jsc_layout layout = { JSC_LAYOUT_145 };
static uint64_t opcodes, source;

static void set64(uint64_t at, uint64_t value)
{
	memcpy((uint8_t *)image + (at - BASE), &value, sizeof(value));
}

static uint64_t object(size_t words)
{
	uint64_t empty[32] = { 0 };

	return put(empty, words);
}

/* Anything that the collector knows, by its kind. */
static uint64_t cell(uint8_t kind, size_t words)
{
	uint64_t at = object(words);

	set64(at, (uint64_t)kind << 40 | 0xb11670);
	return at;
}

static uint64_t string_of(const void *characters, uint32_t count, uint32_t flags)
{
	uint64_t words[16] = { 0 }, at;
	size_t bytes = flags & NARROW ? count : 2 * count;

	assert_true(bytes <= sizeof(words));
	memcpy(words, characters, bytes);
	at = put(words, 16);
	return put((uint64_t[]){ (uint64_t)count << 32 | 2, at, flags }, 3);
}

static uint64_t narrow(const char *text)
{
	return string_of(text, (uint32_t)strlen(text), 0x1400 | NARROW);
}

static uint64_t executable_of(uint8_t kind, uint64_t name)
{
	uint64_t unlinked = cell(JSC_UNLINKED, 12), at = cell(kind, 16);

	set64(unlinked + layout.name, name);
	set64(at + layout.source, source);
	set64(at + layout.unlinked, unlinked);
	return at;
}

static uint64_t code_of(uint64_t executable, uint64_t jit)
{
	uint64_t at = cell(JSC_CODE, 28);

	set64(at + layout.owner - 8, 0x7000);
	set64(at + layout.owner, executable);
	set64(at + layout.owner + 8, 0x8000);
	set64(at + layout.jit, jit);
	return at;
}

static uint64_t code_named(const char *name)
{
	return code_of(executable_of(JSC_FUNCTION, narrow(name)), 0);
}

static int setup(void **state)
{
	(void)state;
	clear_image(4);
	source = object(12);
	set64(source + layout.url, narrow("/srv/app.js"));
	opcodes = put((uint64_t[]){ 0x405000, 0, 0x402000, 0x409000 }, 4);
	layout.opcodes = opcodes - 0x100;
	layout.opcodes_count = 4;
	return 0;
}

static struct script_code read_code(uint64_t address)
{
	struct script_code code;

	assert_int_equal(jsc_code_read(&image_memory, &layout, 0x100, address, &code),
			 SCRIPT_CODE_READ);
	return code;
}

static void check(uint64_t address, const char *name)
{
	struct script_code code = read_code(address);

	assert_string_equal(code.function, name);
	assert_string_equal(code.name, name);
	assert_string_equal(code.file, "/srv/app.js");
	assert_int_equal(code.first_line, 0);
	script_code_fini(&code);
}

static void names_are_those_of_functions(void **state)
{
	const uint16_t wide[] = { 0x6d4b, 0x91cf, 0xd83d, 0xde00, 0xd83d };

	(void)state;
	check(code_named("total"), "total");
	check(code_of(executable_of(JSC_FUNCTION, string_of(wide, 5, 0)), 0),
	      "测量\xf0\x9f\x98\x80\xef\xbf\xbd");
	check(code_of(executable_of(JSC_FUNCTION, string_of("Gr\xf6\xdf"
							    "e",
							    5, NARROW)),
		      0),
	      "Größe");
	check(code_named(""), "(anonymous)");
	check(code_of(executable_of(JSC_FUNCTION, 0), 0), "(anonymous)");
}

static void code_at_the_top_of_a_file_is_called_what_it_is(void **state)
{
	(void)state;
	check(code_of(executable_of(JSC_MODULE, 0), 0), "(module)");
	check(code_of(executable_of(JSC_SCRIPT, 0), 0), "(script)");
	check(code_of(executable_of(JSC_EVAL, 0), 0), "(eval)");
}

static void built_in_functions_are_in_no_file(void **state)
{
	uint64_t executable = executable_of(JSC_FUNCTION, narrow("map"));
	struct script_code code;

	(void)state;
	set64(source + layout.url, 0);
	code = read_code(code_of(executable, 0));
	assert_string_equal(code.function, "map");
	assert_string_equal(code.file, "");
	script_code_fini(&code);
	set64(executable + layout.source, 0);
	code = read_code(code_of(executable, 0));
	assert_string_equal(code.file, "");
	script_code_fini(&code);
}

static void what_is_no_code_is_told_apart(void **state)
{
	uint64_t good = code_named("total"), executable = executable_of(JSC_FUNCTION, narrow("f"));
	uint64_t other = cell(JSC_CALLABLE, 28), unlinked = cell(JSC_MODULE, 12);
	struct script_code code;

	(void)state;
	assert_int_equal(jsc_code_read(&image_memory, &layout, 0x100, other, &code),
			 SCRIPT_CODE_OTHER);
	assert_int_equal(jsc_code_read(&image_memory, &layout, 0x100, 8, &code), SCRIPT_CODE_GONE);
	assert_int_equal(jsc_code_read(&image_memory, &layout, 0x100,
				       code_of(cell(JSC_CALLABLE, 16), 0), &code),
			 SCRIPT_CODE_GONE);
	set64(executable + layout.unlinked, unlinked);
	assert_int_equal(
		jsc_code_read(&image_memory, &layout, 0x100, code_of(executable, 0), &code),
		SCRIPT_CODE_GONE);
	/* The interpreter is not there yet. */
	memset(image + (opcodes - BASE) / 8, 0, 4 * 8);
	assert_int_equal(jsc_code_read(&image_memory, &layout, 0x100, good, &code),
			 SCRIPT_CODE_GONE);
}

static void the_interpreter_reaches_from_its_first_instruction_to_its_last(void **state)
{
	struct script_code code = read_code(code_named("total"));

	(void)state;
	assert_int_equal(code.jsc->interpreter_start, 0x402000);
	assert_int_equal(code.jsc->interpreter_end, 0x409000);
	assert_false(code.jsc->has_inlined);
	script_code_fini(&code);
}

/* ---- inlined calls ---- */

static uint64_t call_of(uint64_t code, uint64_t origin)
{
	return put((uint64_t[]){ 0, code, origin }, 3);
}

static uint64_t optimized(const uint64_t *origins, size_t count)
{
	uint64_t list = put(origins, count), at = object(16);
	uint64_t pool = put((uint64_t[]){ 1, list, (uint64_t)count << 32 | count }, 3);

	set64(at + 8, (uint64_t)FTL << 32 | 2);
	set64(at + layout.ftl_calls, 0x9000);
	set64(at + layout.ftl_calls + 8, pool);
	return at;
}

static void check_calls(const struct script_code *code, uint32_t site, const char *expected)
{
	const struct jsc_call *calls[JSC_INLINED_MAX];
	char text[128] = "";
	size_t count;

	if (!expected) {
		assert_false(jsc_code_calls(code->jsc, site, calls, &count));
		return;
	}
	assert_true(jsc_code_calls(code->jsc, site, calls, &count));
	for (size_t i = 0; i < count; i++) {
		strcat(text, calls[i]->function);
		strcat(text, ";");
	}
	assert_string_equal(text, expected);
}

static void call_sites_lead_to_the_functions_that_are_inlined_there(void **state)
{
	uint64_t outer = call_of(code_named("price"), INDEX(7));
	uint64_t inner = call_of(code_named("tax"), INDEX(9) | outer);
	uint64_t apart = put((uint64_t[]){ outer, 100000 }, 2), gone = 0x10;
	struct script_code code = read_code(
		code_of(executable_of(JSC_FUNCTION, narrow("total")),
			optimized((uint64_t[]){ INDEX(1), INDEX(2) | inner, INDEX(3) | outer,
						apart | APART, 2, INDEX(5) | gone },
				  6)));

	(void)state;
	assert_int_equal(code.jsc->tier, JSC_TIER_FTL);
	assert_true(code.jsc->has_inlined);
	check_calls(&code, 0, "");
	check_calls(&code, 1, "price;tax;");
	check_calls(&code, 2, "price;");
	check_calls(&code, 3, "price;");
	check_calls(&code, 4, NULL);
	check_calls(&code, 5, NULL);
	check_calls(&code, 6, NULL);
	check_calls(&code, UINT32_MAX, NULL);
	script_code_fini(&code);
}

static void a_call_that_is_inlined_into_itself_is_not_known(void **state)
{
	uint64_t call = call_of(code_named("price"), 0);
	struct script_code code;

	(void)state;
	set64(call + 16, INDEX(1) | call);
	code = read_code(code_of(executable_of(JSC_FUNCTION, narrow("total")),
				 optimized((uint64_t[]){ INDEX(1) | call, INDEX(2) }, 2)));
	check_calls(&code, 0, NULL);
	check_calls(&code, 1, "");
	script_code_fini(&code);
}

static void sites_that_cannot_be_read_are_not_known(void **state)
{
	uint64_t jit = optimized((uint64_t[]){ INDEX(1) }, 1);
	struct script_code code;

	(void)state;
	set64(jit + layout.ftl_calls + 8, 0x10);
	code = read_code(code_of(executable_of(JSC_FUNCTION, narrow("total")), jit));
	assert_true(code.jsc->has_inlined);
	check_calls(&code, 0, NULL);
	script_code_fini(&code);
}

/* ---- frames ---- */

static uint64_t callee_of(uint64_t executable)
{
	uint64_t at = cell(JSC_CALLABLE, 4);

	set64(at + walk_145.executable, executable);
	return at;
}

static uint64_t frame_of(uint64_t code, uint64_t callee, uint64_t arguments)
{
	return put((uint64_t[]){ 0, 0x401000, code, callee, arguments }, 5);
}

static struct sample sample;

/* How many words the frame gives. */
static uint32_t take(uint64_t fp)
{
	static struct script script;
	uint32_t first = 8;

	memset(&script, 0, sizeof(script));
	memset(&sample, 0, sizeof(sample));
	script.at = first;
	script.process.kind = SCRIPT_JSC;
	script.process.jsc = walk_145;
	script_jsc_frame(&script, fp, 2, &sample);
	return script.at - first;
}

static void frames_of_functions_are_sent_with_their_call_site(void **state)
{
	uint64_t executable = executable_of(JSC_FUNCTION, narrow("total"));
	uint64_t code = code_of(executable, 0), callee = callee_of(executable);
	struct script_code read = read_code(code);

	(void)state;
	assert_int_equal(take(frame_of(code, callee, ARGUMENTS(5, 2))), 2);
	assert_int_equal(sample.frames[8], (uint64_t)2 << SCRIPT_PLACE_SHIFT | code);
	assert_int_equal(sample.frames[9], (uint64_t)read.proof << 32 | 5);
	script_code_fini(&read);
}

static void a_function_may_have_its_executable_apart(void **state)
{
	uint64_t executable = executable_of(JSC_FUNCTION, narrow("total")), apart = object(8);

	(void)state;
	set64(apart + walk_145.rare_executable, executable);
	assert_int_equal(
		take(frame_of(code_of(executable, 0), callee_of(apart | SCRIPT_JSC_RARE), 1)), 2);
}

static void code_at_the_top_of_a_file_has_a_callee_of_its_own(void **state)
{
	uint64_t module = code_of(executable_of(JSC_MODULE, 0), 0);
	uint64_t callee = cell(JSC_CALLEE, 4);

	(void)state;
	assert_int_equal(take(frame_of(module, callee, 1)), 2);
	assert_int_equal(take(frame_of(code_named("total"), callee, 1)), 0);
}

static void words_that_do_not_belong_together_are_no_frame(void **state)
{
	uint64_t executable = executable_of(JSC_FUNCTION, narrow("total"));
	uint64_t code = code_of(executable, 0), callee = callee_of(executable);
	uint64_t other = callee_of(executable_of(JSC_FUNCTION, narrow("other")));

	(void)state;
	assert_int_equal(take(frame_of(code, other, 1)), 0);
	assert_int_equal(take(frame_of(callee, code, 1)), 0);
	assert_int_equal(take(frame_of(0, callee, 1)), 0);
	assert_int_equal(take(frame_of(code, 0x10, 1)), 0);
	assert_int_equal(take(frame_of(code, callee, 0)), 0);
	assert_int_equal(take(frame_of(code, callee, 1u << 30)), 0);
	assert_int_equal(take(0x10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_are_those_of_functions, setup),
		cmocka_unit_test_setup(code_at_the_top_of_a_file_is_called_what_it_is, setup),
		cmocka_unit_test_setup(built_in_functions_are_in_no_file, setup),
		cmocka_unit_test_setup(what_is_no_code_is_told_apart, setup),
		cmocka_unit_test_setup(
			the_interpreter_reaches_from_its_first_instruction_to_its_last, setup),
		cmocka_unit_test_setup(call_sites_lead_to_the_functions_that_are_inlined_there,
				       setup),
		cmocka_unit_test_setup(a_call_that_is_inlined_into_itself_is_not_known, setup),
		cmocka_unit_test_setup(sites_that_cannot_be_read_are_not_known, setup),
		cmocka_unit_test_setup(frames_of_functions_are_sent_with_their_call_site, setup),
		cmocka_unit_test_setup(a_function_may_have_its_executable_apart, setup),
		cmocka_unit_test_setup(code_at_the_top_of_a_file_has_a_callee_of_its_own, setup),
		cmocka_unit_test_setup(words_that_do_not_belong_together_are_no_frame, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
