/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of Perl's subs and files, and how its contexts are walked, in memory that is laid
 * out by hand as in Perl 5.36 with threads, and in older ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/perl/perl_code.h"

#define IMAGE_WORDS 65536u
#include "unit/agent/forged_memory.h"

#define STATEMENT_FUNCTION 0x4000u /* pp_nextstate */
#define BIAS 0x100000u
#define RETURN 8u /* an instruction to return to */

#include "agent/bpf/script_perl.h"

static const struct perl_layout perl_36 = { .is_threaded = true,
					    .has_names_in_bodies = true,
					    .statement = STATEMENT_FUNCTION };
static const struct script_perl_layout walk_36 = { .stack = 0xe0,
						   .statement = 0xd0,
						   .context_bytes = 104,
						   .sub = 72,
						   .links_calls = 1,
						   .file_bytes = 16 };

static struct sample sample;

static uint64_t put_aligned(const uint64_t *words, size_t count)
{
	uint64_t at = put(words, count);

	used += used % 2; /* as malloc aligns */
	return at;
}

static int setup(void **state)
{
	(void)state;
	clear_image(4);
	return 0;
}

static uint64_t string(const char *text)
{
	uint64_t words[64] = { 0 };

	assert_true(strlen(text) < sizeof(words));
	memcpy(words, text, strlen(text));
	return put_aligned(words, strlen(text) / 8 + 9);
}

/* Of Perl's tables; `flags` are behind the text. */
static uint64_t key_of(const char *text, uint8_t flags)
{
	uint64_t words[32] = { 0 };
	int32_t length = (int32_t)strlen(text);

	memcpy((char *)words + 4, &length, 4);
	memcpy((char *)words + 8, text, (size_t)length);
	((uint8_t *)words)[8 + length + 1] = flags;
	return put_aligned(words, 32);
}

static uint64_t value_of(uint64_t body, uint32_t kind, uint64_t word)
{
	return put_aligned((uint64_t[]){ body, (uint64_t)kind << 32 | 1, word }, 3);
}

static uint64_t package(const char *name)
{
	return value_of(put_aligned((uint64_t[]){ 0, 0, 0, 7, key_of(name, 0), 0, 0, 0 }, 8), 12,
			0);
}

static uint64_t glob_of(uint64_t in, const char *name)
{
	return value_of(put_aligned((uint64_t[]){ 0, 0, 0, 0, key_of(name, 0), in }, 6), 9, 0);
}

static uint64_t statement(uint64_t file, uint32_t line)
{
	const uint64_t words[11] = { 0, 0,   STATEMENT_FUNCTION + BIAS, 0, (uint64_t)line << 32,
				     0, file };

	return put_aligned(words, 11);
}

/* A sub whose first statement is behind another instruction. */
static uint64_t sub_of(uint64_t in, uint64_t name, bool is_named, const char *file, uint32_t line)
{
	uint64_t path = string(file), first = statement(path, line);
	uint64_t start = put_aligned((uint64_t[]){ first, 0, 0x5000 }, 3);
	uint64_t body[13] = { 0, 0, 0, 0, in, start, 0x77, name, path };

	body[11] = (uint64_t)(is_named ? 0x8000u : 0) << 32;
	return value_of(put_aligned(body, 13), 13, 0);
}

static uint64_t sub_named(const char *in, const char *name)
{
	return sub_of(package(in), key_of(name, 0), true, "/srv/shop.pl", 7);
}

static enum script_code_result read_code(uint64_t word, struct script_code *ret)
{

	return perl_code_read(&image_memory, &perl_36, BIAS, word >> SCRIPT_PLACE_SHIFT,
			      SCRIPT_ADDRESS(word), ret);
}

static void check(uint64_t word, const char *function, const char *file, uint32_t line)
{
	struct script_code code;

	assert_int_equal(read_code(word, &code), SCRIPT_CODE_READ);
	assert_string_equal(code.function, function);
	assert_string_equal(code.file, file);
	assert_int_equal(code.first_line, line);
	script_code_fini(&code);
}

static uint64_t word_of(uint64_t file, enum script_perl_code kind)
{
	return file | (uint64_t)kind << SCRIPT_PERL_KIND_SHIFT << SCRIPT_PLACE_SHIFT;
}

static void subs_are_called_with_their_package(void **state)
{
	uint64_t shop = package("Shop::Cart"), anonymous = glob_of(shop, "__ANON__");

	(void)state;
	check(sub_named("Shop::Cart", "add"), "Shop::Cart::add", "/srv/shop.pl", 7);
	check(sub_of(0, anonymous, false, "/srv/shop.pl", 9), "Shop::Cart::__ANON__",
	      "/srv/shop.pl", 9);
	/* In UTF-8; once in UTF-8, and kept as Latin-1; and neither. */
	check(sub_of(shop, key_of("測量", 1), true, "/srv/a.pl", 3), "Shop::Cart::測量",
	      "/srv/a.pl", 3);
	check(sub_of(shop, key_of("gr\xf6\xdf\x65", 2), true, "/srv/a.pl", 3), "Shop::Cart::größe",
	      "/srv/a.pl", 3);
	check(sub_of(shop, key_of("größe", 0), true, "/srv/a.pl", 3), "Shop::Cart::größe",
	      "/srv/a.pl", 3);
	/* A package that was deleted has no name. */
	check(sub_of(value_of(put_aligned((uint64_t[8]){ 0 }, 8), 12, 0), key_of("f", 0), true,
		     "(eval 17)", 3),
	      "f", "(eval)", 3);
}

static void other_code_is_called_by_what_it_is(void **state)
{
	(void)state;
	check(word_of(string("/srv/shop.pl"), PERL_CODE_PROGRAM), "<main>", "/srv/shop.pl", 0);
	check(word_of(string("/srv/lib/Cart.pm"), PERL_CODE_FILE), "<require Cart.pm>",
	      "/srv/lib/Cart.pm", 0);
	check(word_of(string("(eval 23)"), PERL_CODE_TEXT), "(eval)", "(eval)", 0);
	check(word_of(string("/srv/shop.pl"), PERL_CODE_BEGIN), "BEGIN", "/srv/shop.pl", 0);
}

static void older_packages_have_names_behind_their_buckets(void **state)
{
	struct perl_layout older = { .is_threaded = true };
	uint64_t buckets[12] = { 0 }, in, sub;
	struct script_code code;

	(void)state;
	buckets[8] = key_of("Shop", 0);
	in = value_of(put_aligned((uint64_t[]){ 0, 0, 0, 7 }, 4), 12, put_aligned(buckets, 12));
	sub = sub_of(in, key_of("add", 0), true, "/srv/shop.pl", 7);
	assert_int_equal(perl_code_read(&image_memory, &older, 0, 0, sub, &code), SCRIPT_CODE_READ);
	assert_string_equal(code.function, "Shop::add");
	script_code_fini(&code);
}

static void what_is_none_is_not_read(void **state)
{
	uint64_t lost = sub_named("Shop", "add"), endless = key_of("add", 0);
	struct script_code code;
	int32_t length = -3;

	(void)state;
	assert_int_equal(read_code(package("Shop"), &code), SCRIPT_CODE_OTHER);
	assert_int_equal(read_code(1 << 20, &code), SCRIPT_CODE_GONE);
	image[(lost - BASE) / 8] = 1 << 20; /* its body */
	assert_int_equal(read_code(lost, &code), SCRIPT_CODE_GONE);
	memcpy((char *)image + (endless - BASE) + 4, &length, 4);
	assert_int_equal(read_code(sub_of(package("Shop"), endless, true, "/a.pl", 1), &code),
			 SCRIPT_CODE_GONE);
	assert_int_equal(read_code(word_of(1 << 20, PERL_CODE_FILE), &code), SCRIPT_CODE_GONE);
}

/* ---- contexts ---- */

struct context {
	uint64_t kind, sub, returns, next, statement;
};

#define NO_CALL 0xffffffffull

/* A stack of contexts. `top` is the innermost that is a call. */
static uint64_t stack_of(uint64_t outer, const struct context *contexts, size_t count, uint64_t top,
			 uint64_t kind)
{
	uint64_t words[16 * 13] = { 0 };
	uint64_t at;

	assert_true(count <= 16);
	for (size_t i = 0; i < count; i++) {
		words[13 * i] = contexts[i].kind;
		words[13 * i + 2] = contexts[i].statement;
		words[13 * i + 6] = contexts[i].returns;
		words[13 * i + 7] = contexts[i].next;
		words[13 * i + 9] = contexts[i].sub;
	}
	at = put_aligned(words, 13 * (count ? count : 1));
	return put_aligned(
		(uint64_t[]){ 0, at, outer, 0, (uint32_t)(count - 1), kind << 32 | top, 0 }, 7);
}

/* Walks from a stack; returns how many entries. */
static size_t walk_from(uint64_t stack, uint64_t at_hand)
{
	uint64_t interpreter[32] = { 0 }, thread[512] = { 0 }, key = 3;
	struct script script = { .room = SCRIPT_FRAMES_MAX };

	interpreter[0xe0 / 8] = stack;
	interpreter[0xd0 / 8] = at_hand;
	thread[(THREAD_KEYS_AT + 16 * 3 + 8) / 8] = put_aligned(interpreter, 32);
	script.process.state_form = SCRIPT_STATE_KEY_NUMBER;
	script.process.state_at = put_aligned(&key, 1);
	script.process.perl = walk_36;
	if (!script_perl_start(&script, put_aligned(thread, 512)))
		return 0;
	for (int i = 0; i < 4096; i++)
		if (!script_perl_frame(&script, &sample))
			return script.at / 2;
	script_perl_end(&script, &sample);
	return script.at / 2;
}

static uint64_t flags_at(size_t i)
{
	return sample.frames[2 * i] & SCRIPT_FLAGS;
}

static uint32_t line_at(size_t i)
{
	return (uint32_t)sample.frames[2 * i + 1];
}

static void frames_are_calls_with_the_lines_that_they_are_at(void **state)
{
	uint64_t file = string("/srv/shop.pl"), inner = sub_named("Shop", "inner");
	uint64_t outer = sub_named("Shop", "outer");
	struct context contexts[] = {
		{ PERL_SUB, outer, RETURN, NO_CALL, statement(file, 10) },
		{ 4, 0, 0, 0, statement(file, 11) }, /* a loop */
		{ PERL_EVAL | PERL_EVAL_IS_BLOCK, 0, RETURN, 0, statement(file, 12) },
		{ PERL_SUB, inner, RETURN, 2, statement(file, 13) },
	};
	struct script_code code;

	(void)state;
	assert_int_equal(walk_from(stack_of(0, contexts, 4, 3, 1), statement(file, 20)), 3);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[0]), inner);
	assert_int_equal(line_at(0), 20);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[2]), outer);
	assert_int_equal(line_at(1), 13);
	assert_int_equal(flags_at(0) | flags_at(1), 0);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[4]), file);
	assert_int_equal(line_at(2), 10);
	assert_int_equal(flags_at(2), SCRIPT_ENDS_RUN);
	/* With a proof of what each was. */
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(read_code(sample.frames[2 * i], &code), SCRIPT_CODE_READ);
		assert_int_equal(code.proof, sample.frames[2 * i + 1] >> 32);
		script_code_fini(&code);
	}
	assert_int_equal(script_perl_kind(sample.frames[4] >> SCRIPT_PLACE_SHIFT),
			 PERL_CODE_PROGRAM);
}

/* What C has called, and stacks of their own, are runs of their own. */
static void runs_end_where_the_loop_was_entered(void **state)
{
	uint64_t file = string("/srv/shop.pl"), at = statement(file, 5);
	uint64_t sub = sub_named("Shop", "f");
	struct context main_stack[] = { { PERL_SUB, sub, 0, NO_CALL, at } };
	struct context sort_block[] = { { 0, 0, 0, 0, at },
					{ PERL_SUB, sub, RETURN, NO_CALL, at } };
	struct context last_of_block[] = { { 0, 0, 0, 0, at }, { PERL_SUB, sub, 0, NO_CALL, at } };
	struct context destructor[] = {
		{ PERL_EVAL | PERL_EVAL_IS_BLOCK, 0, 0, NO_CALL, at },
		{ PERL_SUB, sub, 0, 0, at },
	};
	struct context expression[] = {
		{ PERL_SUB | PERL_SUB_IS_FAKE, sub, 0, NO_CALL, at },
		{ PERL_SUB, sub, 0, 0, at },
	};
	uint64_t outermost = stack_of(0, main_stack, 1, 0, 1);

	(void)state;
	assert_int_equal(walk_from(stack_of(outermost, sort_block, 2, 1, 3), at), 4);
	assert_int_equal(flags_at(0), 0);
	assert_int_equal(flags_at(1), SCRIPT_ENDS_RUN | SCRIPT_IS_MARK);
	assert_int_equal(flags_at(2), SCRIPT_ENDS_RUN);
	assert_int_equal(flags_at(3), SCRIPT_ENDS_RUN);
	/* One run, though both the call and the stack end one. */
	assert_int_equal(walk_from(stack_of(outermost, last_of_block, 2, 1, 3), at), 3);
	assert_int_equal(flags_at(0), SCRIPT_ENDS_RUN);
	assert_int_equal(walk_from(stack_of(outermost, destructor, 2, 1, 6), at), 3);
	assert_int_equal(flags_at(0), SCRIPT_ENDS_RUN);
	assert_int_equal(walk_from(stack_of(outermost, expression, 2, 1, 10), at), 3);
	assert_int_equal(flags_at(0), SCRIPT_ENDS_RUN);
	/* A stack on which nothing runs yet has no run. */
	assert_int_equal(walk_from(stack_of(outermost, NULL, 0, NO_CALL, 6), at), 2);
}

static void blocks_of_a_file_that_is_read_are_named_by_it(void **state)
{
	uint64_t file = string("/srv/shop.pl"), inner = string("/srv/lib/Cart.pm");
	struct context contexts[] = {
		{ PERL_SUB, sub_named("Shop", "BEGIN"), 0, NO_CALL, statement(file, 5) },
		{ PERL_EVAL, 0, RETURN, 0, statement(file, 6) },
	};
	uint64_t outermost = stack_of(0, NULL, 0, NO_CALL, 1);

	(void)state;
	assert_int_equal(walk_from(stack_of(outermost, contexts, 2, 1, 9), statement(inner, 2)), 3);
	check(sample.frames[0], "<require Cart.pm>", "/srv/lib/Cart.pm", 0);
	check(sample.frames[2], "BEGIN", "/srv/shop.pl", 0);
	assert_int_equal(line_at(1), 5);
	assert_int_equal(flags_at(1), SCRIPT_ENDS_RUN);
}

static void copies_of_a_closure_are_one(void **state)
{
	uint64_t file = string("/srv/shop.pl"), at = statement(file, 5), words[13];
	uint64_t sub = sub_named("Shop", "f"), copy, other = sub_named("Shop", "f");
	struct context contexts[3] = { { PERL_SUB, sub, RETURN, NO_CALL, at } };

	(void)state;
	memcpy(words, image + (image[(sub - BASE) / 8] - BASE) / 8, sizeof(words));
	copy = value_of(put_aligned(words, 13), 13, 0);
	contexts[1] = (struct context){ PERL_SUB, copy, RETURN, 0, at };
	contexts[2] = (struct context){ PERL_SUB, other, RETURN, 1, at };
	assert_int_equal(walk_from(stack_of(0, contexts, 3, 2, 1), at), 4);
	assert_int_equal(sample.frames[2] >> SCRIPT_PLACE_SHIFT,
			 sample.frames[4] >> SCRIPT_PLACE_SHIFT);
	assert_int_equal(sample.frames[3], sample.frames[5]);
	assert_true(sample.frames[1] != sample.frames[3]);
}

static void check_cut(size_t count, enum script_end why)
{
	assert_true(count > 0);
	assert_int_equal(sample.frames[2 * (count - 1)], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[2 * (count - 1) + 1], why);
}

static void contexts_that_go_nowhere_are_cut(void **state)
{
	uint64_t at = statement(string("/srv/shop.pl"), 5), sub = sub_named("Shop", "f");
	struct context onward[] = { { PERL_SUB, sub, RETURN, 0, at } };
	struct context no_sub[] = { { PERL_SUB, 1 << 20, RETURN, NO_CALL, at } };
	struct context no_call[] = { { 4, 0, RETURN, NO_CALL, at } };
	struct context nowhere[] = { { PERL_SUB, sub, RETURN, NO_CALL, 1 << 20 } };

	(void)state;
	assert_int_equal(walk_from(0, at), 0);
	check_cut(walk_from(1 << 20, at), SCRIPT_UNREADABLE);
	check_cut(walk_from(stack_of(0, onward, 1, 0, 1), at), SCRIPT_UNREADABLE);
	check_cut(walk_from(stack_of(0, onward, 1, 77, 1), at), SCRIPT_UNREADABLE);
	check_cut(walk_from(stack_of(0, no_sub, 1, 0, 1), at), SCRIPT_UNREADABLE);
	check_cut(walk_from(stack_of(0, no_call, 1, 0, 1), at), SCRIPT_UNREADABLE);
	check_cut(walk_from(stack_of(0, nowhere, 1, 0, 1), at), SCRIPT_UNREADABLE);
	check_cut(walk_from(stack_of(1 << 20, nowhere, 1, 0, 1), 1 << 20), SCRIPT_UNREADABLE);
}

static void circles_and_deep_stacks_are_cut(void **state)
{
	uint64_t at = statement(string("/srv/shop.pl"), 5);
	struct context sort_block[] = { { 0, 0, 0, 0, at } };
	uint64_t stack = stack_of(0, sort_block, 1, NO_CALL, 3);
	uint64_t idle = stack_of(0, NULL, 0, NO_CALL, 3);

	(void)state;
	image[(stack - BASE) / 8 + 2] = stack;
	assert_int_equal(walk_from(stack, at), SCRIPT_FRAMES_MAX + 1);
	check_cut(SCRIPT_FRAMES_MAX + 1, SCRIPT_TOO_DEEP);
	image[(idle - BASE) / 8 + 2] = idle;
	assert_int_equal(walk_from(idle, at), 1);
	check_cut(1, SCRIPT_TOO_DEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(subs_are_called_with_their_package, setup),
		cmocka_unit_test_setup(other_code_is_called_by_what_it_is, setup),
		cmocka_unit_test_setup(older_packages_have_names_behind_their_buckets, setup),
		cmocka_unit_test_setup(what_is_none_is_not_read, setup),
		cmocka_unit_test_setup(frames_are_calls_with_the_lines_that_they_are_at, setup),
		cmocka_unit_test_setup(runs_end_where_the_loop_was_entered, setup),
		cmocka_unit_test_setup(blocks_of_a_file_that_is_read_are_named_by_it, setup),
		cmocka_unit_test_setup(copies_of_a_closure_are_one, setup),
		cmocka_unit_test_setup(contexts_that_go_nowhere_are_cut, setup),
		cmocka_unit_test_setup(circles_and_deep_stacks_are_cut, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
