/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of a running interpreter's code that is there for moments: a closure of a Perl that is laid
 * out by hand in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/runtime_file.h"
#include "agent/runtime/runtime_metrics.h"
#include "agent/runtime/runtimes.h"
#include "agent/runtime/script_reader.h"
#include "base/clock.h"
#include "base/mem.h"

#define SETTLE_NS (60 * CLOCK_NS_PER_S)
#define START 0x400000u
#define BYTES 0x100000u
/* Frames, of which some are read while others are noted, until no more have room. */
#define FLOOD_MAX (16u * SCRIPT_JOBS_MAX * SCRIPT_JOB_ITEMS)
#define KIND_SUB 13u
#define KIND_OTHER 1u
#define IS_NAMED 0x8000u

static struct {
	uint32_t hash, length;
	char text[8];
} name = { 0, 3, "add" };
static const char path[64] = "/srv/shop.pl";

/* A value of Perl's, and its body. */
static uint64_t body[13];
static struct {
	const uint64_t *body;
	uint32_t references, kind;
	uint64_t word;
} value;

static struct elf_info elf = {
	.segments = { { .address = START, .file_bytes = BYTES, .executable = true } },
	.segments_count = 1
};
static struct runtime_file file = { .version = "5.42.0",
				    .source = "exports",
				    .layout = { .kind = RUNTIME_PERL,
						.perl = { .is_threaded = true,
							  .has_names_in_bodies = true } },
				    .script = { .kind = SCRIPT_PERL } };
static struct binary binary = { .elf = &elf, .runtime = &file };
static struct process process;
static struct runtimes *runtimes;
static bool is_refused;
static uint64_t asked_for; /* proof of a copy */
static uint32_t told;	   /* how often the program in the kernel was */
static struct script_process script;

static bool put_script(void *context, uint32_t tgid, const struct script_process *told_script)
{
	(void)context;
	(void)tgid;
	script = *told_script;
	told++;
	return true;
}

static void ask_for_copies(void *context, uint64_t proof)
{
	(void)context;
	asked_for = proof;
}

static void drop_script(void *context, uint32_t tgid)
{
	(void)context;
	(void)tgid;
	is_refused = true;
}

static bool find_jvm(void *context, uint32_t tgid, struct jvm_entry *ret)
{
	(void)context;
	(void)tgid;
	(void)ret;
	return false;
}

static void look(const struct process *at)
{
	struct space *space = mem_calloc(1, sizeof(*space) + sizeof(struct mapping));

	space->count = 1;
	space->mappings[0] = (struct mapping){ START, START + BYTES, 0, &binary, MAPPING_FILE };
	runtimes_look(runtimes, at, space, clock_monotonic_ns());
	free(space);
}

static int setup(void **state)
{
	(void)state;
	process = (struct process){ .identity = { 1, (uint32_t)getpid(), 1 } };
	body[5] = 0x55;
	body[7] = (uintptr_t)&name;
	body[8] = (uintptr_t)path;
	body[11] = (uint64_t)IS_NAMED << 32;
	value.body = body;
	value.kind = KIND_OTHER;
	is_refused = false;
	runtimes = runtimes_new(&(struct runtimes_options){ .put = put_script,
							    .find_jvm = find_jvm,
							    .ask_for_copies = ask_for_copies,
							    .drop = drop_script });
	look(&process);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	runtimes_free(runtimes);
	return 0;
}

/* A frame, as the program in the kernel notes it while a copy of the sub is there. */
static void frame_of(enum script_perl_code kind, uint64_t words[2])
{
	uint64_t proof = script_perl_proof((const __u64 *)&body[4], kind);

	words[0] = SCRIPT_ADDRESS((uintptr_t)&value) | proof << SCRIPT_PLACE_SHIFT;
	words[1] = proof >> 32 << 32 | 7;
}

static void note(const uint64_t words[2])
{
	runtimes_note(runtimes, &process.identity, words, 1, clock_monotonic_ns());
	runtimes_settle(runtimes, SETTLE_NS);
}

static void note_again(const uint64_t words[2])
{
	runtimes_note_again(runtimes, &process.identity, words, 1, clock_monotonic_ns());
	runtimes_settle(runtimes, SETTLE_NS);
}

/* Other values at the address of a copy that has gone say nothing against Perl. */
static void a_copy_is_asked_for_until_one_is_there(void **state)
{
	const struct script_code *code;
	uint64_t words[2];

	(void)state;
	frame_of(PERL_CODE_SUB, words);
	note(words);
	for (int i = 0; i < 40; i++)
		note_again(words);
	assert_null(runtimes_find(runtimes, &process.identity, words));
	assert_false(is_refused);
	assert_int_equal(asked_for, script_perl_proof((const __u64 *)&body[4], PERL_CODE_SUB));
	value.kind = KIND_SUB;
	note_again(words);
	code = runtimes_find(runtimes, &process.identity, words);
	assert_non_null(code);
	assert_string_equal(code->function, "add");
}

/* Many frames of subs at whose addresses none has ever been: the layout is another one. */
static void what_has_no_subs_is_refused(void **state)
{
	uint64_t words[2];

	(void)state;
	for (int i = 0; i < 40; i++) {
		body[5]++;
		frame_of(PERL_CODE_SUB, words);
		note(words);
	}
	assert_true(is_refused);
}

/* What was refused while others were read is read when it is seen again. */
static void what_found_no_room_is_read_later(void **state)
{
	int64_t refused = metric_get(&runtime_codes_refused);
	uint64_t words[2], other[2];

	(void)state;
	value.kind = KIND_SUB;
	frame_of(PERL_CODE_SUB, words);
	other[0] = words[0];
	for (uint64_t i = 1; i <= FLOOD_MAX && metric_get(&runtime_codes_refused) == refused; i++) {
		other[1] = words[1] ^ i << 32;
		runtimes_note(runtimes, &process.identity, other, 1, clock_monotonic_ns());
	}
	assert_int_equal(metric_get(&runtime_codes_refused), refused + 1);
	note(words);
	assert_int_equal(metric_get(&runtime_codes_refused), refused + 2);
	assert_null(runtimes_find(runtimes, &process.identity, words));
	note(words);
	assert_non_null(runtimes_find(runtimes, &process.identity, words));
}

/* A function of PHP's, as 8.2 has it, and its texts, with room for all words of a proof. */
struct php_text {
	uint64_t references, hash, length;
	char text[8 * SCRIPT_TEXT_WORDS];
};
static struct php_text function_name = { 1, 0, 3, "buy" }, file_name = { 1, 0, 10, "/srv/a.php" };
static uint64_t function[22];

static uint64_t php_proof(void)
{
	return script_php_proof(
		script_text_proof((const __u64 *)&function_name, (uintptr_t)&function_name), 0,
		script_text_proof((const __u64 *)&file_name, (uintptr_t)&file_name), function[20],
		0);
}

static void look_at_php(const struct process *at)
{
	file.layout.kind = RUNTIME_PHP;
	file.layout.php = (struct php_layout){ .last = 80, .opcodes = 88, .file = 152 };
	file.script.kind = SCRIPT_PHP;
	look(at);
	file.layout.kind = RUNTIME_PERL;
	file.script.kind = SCRIPT_PERL;
}

static const struct script_code *find(const struct process *in, const uint64_t words[2])
{
	runtimes_note(runtimes, &in->identity, words, 1, clock_monotonic_ns());
	runtimes_settle(runtimes, SETTLE_NS);
	return runtimes_find(runtimes, &in->identity, words);
}

static int64_t readings(void)
{
	return metric_get(&runtime_codes_read) + metric_get(&runtime_codes_gone) +
	       metric_get(&runtime_codes_other);
}

/* Of the workers that one process forked, the first that runs a function is read. */
static void workers_of_php_tell_one_another(void **state)
{
	const uint32_t pid = (uint32_t)getpid();
	const int64_t later_ns = clock_monotonic_ns() + 1000 * CLOCK_NS_PER_S;
	struct process workers[] = {
		{ .identity = { 3, pid, 1 }, .parent_pid = 77, .image_of_parent = true },
		{ .identity = { 4, pid, 1 }, .parent_pid = 77, .image_of_parent = true },
		{ .identity = { 5, pid, 1 }, .parent_pid = 78, .image_of_parent = true },
		{ .identity = { 6, pid, 1 }, .parent_pid = 77 },
	};
	uint64_t words[2];
	int64_t before = readings();

	(void)state;
	function[0] = 2;
	function[1] = (uintptr_t)&function_name;
	function[19] = (uintptr_t)&file_name;
	function[20] = 20ull << 32 | 6;
	words[0] = (uintptr_t)function | php_proof() << SCRIPT_PLACE_SHIFT;
	words[1] = php_proof() >> 32 << 32;
	for (size_t i = 0; i < sizeof(workers) / sizeof(workers[0]); i++)
		look_at_php(&workers[i]);
	assert_string_equal(find(&workers[0], words)->function, "buy");
	assert_int_equal(readings(), before + 1);
	function[0] = 0; /* it is gone */
	assert_string_equal(find(&workers[1], words)->function, "buy");
	assert_int_equal(readings(), before + 1);
	assert_null(find(&workers[2], words));
	assert_null(find(&workers[3], words));
	assert_int_equal(readings(), before + 3);
	/* The one that told is not used any more, and forgotten. */
	runtimes_note(runtimes, &workers[1].identity, words, 1, later_ns);
	runtimes_sweep(runtimes, later_ns);
	assert_null(runtimes_find(runtimes, &workers[0].identity, words));
	assert_string_equal(find(&workers[1], words)->function, "buy");
}

/* Frames of a Java that cannot be asked yet are kept, and count as memory. */
static void early_frames_of_java_count(void **state)
{
	struct process java = { .identity = { 2, (uint32_t)getpid(), 1 } };
	uint64_t words[2 * 1000];

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = START + 8 * i;
	file.layout.kind = RUNTIME_HOTSPOT;
	look(&java);
	file.layout.kind = RUNTIME_PERL;
	runtimes_note(runtimes, &java.identity, words, 1000, clock_monotonic_ns());
	runtimes_sweep(runtimes, clock_monotonic_ns());
	assert_true(metric_get(&runtime_bytes) >= (int64_t)sizeof(words));
}

/* The file of the C library may be opened after that of the interpreter. */
static void a_c_library_that_turns_out_later_is_told(void **state)
{
	struct process other = { .identity = { 9, (uint32_t)getpid(), 1 } };
	const uint32_t before = told;

	(void)state;
	binary.opened = false;
	look(&other);
	look(&other);
	assert_int_equal(told, before + 1);
	assert_int_equal(script.keys_at, 0);
	binary.opened = true;
	binary.musl_keys_at = 0x80;
	look(&other);
	assert_int_equal(told, before + 2);
	assert_int_equal(script.keys_at, 0x80);
	assert_int_equal(script.start_ns, 9);
	look(&other);
	assert_int_equal(told, before + 2);
	binary.musl_keys_at = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_copy_is_asked_for_until_one_is_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_has_no_subs_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(what_found_no_room_is_read_later, setup, teardown),
		cmocka_unit_test_setup_teardown(workers_of_php_tell_one_another, setup, teardown),
		cmocka_unit_test_setup_teardown(early_frames_of_java_count, setup, teardown),
		cmocka_unit_test_setup_teardown(a_c_library_that_turns_out_later_is_told, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
