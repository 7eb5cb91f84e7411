/* SPDX-License-Identifier: Apache-2.0 */
/* Reading by pages gives what the memory itself gives, and asks it less often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/code_memory.h"
#include "agent/runtime/script_reader.h"
#include "base/mem.h"

#define PAGE ((uint64_t)CODE_MEMORY_PAGE)
#define START (16 * PAGE + 100) /* inside of a page, as its end is */
#define BYTES (300 * PAGE)	/* more pages than are kept */

/* A process's memory; notes what is asked of it. */
struct image {
	uint8_t *bytes;
	unsigned reads;
	uint64_t last, last_len;
	uint64_t low, high; /* of all that was asked for */
};

static struct image image;
static const struct memory_reader *direct;
static struct memory_reader by_pages;
static struct code_memory *pages;

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	struct image *from = context;

	from->reads++;
	from->last = address;
	from->last_len = len;
	from->low = address < from->low ? address : from->low;
	from->high = address + len > from->high ? address + len : from->high;
	if (address < START || address - START > BYTES || len > BYTES - (address - START))
		return false;
	memcpy(to, from->bytes + (address - START), len);
	return true;
}

static int setup(void **state)
{
	static const struct memory_reader reader = { read_image, &image };

	(void)state;
	image = (struct image){ .bytes = mem_new_array(uint8_t, BYTES), .low = UINT64_MAX };
	for (size_t i = 0; i < BYTES; i++)
		image.bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	direct = &reader;
	pages = code_memory_new(direct);
	by_pages = code_memory_reader(pages);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(image.bytes);
	free(pages);
	return 0;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void all_that_can_be_read_is_read(void **state)
{
	static uint8_t wanted[3 * CODE_MEMORY_PAGE], given[sizeof(wanted)];
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 50000; i++) {
		uint64_t address = START - 2 * PAGE + next_random(&random) % (BYTES + 4 * PAGE);
		size_t len = 1 + next_random(&random) % (i % 8 ? 16 : sizeof(wanted));
		bool is_there;

		memset(wanted, 0, len);
		memset(given, 0, len);
		is_there = memory_read(direct, address, wanted, len);
		assert_int_equal(memory_read(&by_pages, address, given, len), is_there);
		if (is_there)
			assert_memory_equal(given, wanted, len);
	}
	/* at both ends, where no page is whole */
	assert_true(memory_read(&by_pages, START, given, 1));
	assert_false(memory_read(&by_pages, START - 1, given, 1));
	assert_true(memory_read(&by_pages, START + BYTES - 1, given, 1));
	assert_false(memory_read(&by_pages, START + BYTES, given, 1));
	assert_false(memory_read(&by_pages, 0, given, 8));
	assert_false(memory_read(&by_pages, UINT64_MAX - 3, given, 8));
}

static void words_of_a_page_cost_one_read(void **state)
{
	uint64_t at = START / PAGE * PAGE + 5 * PAGE, word;

	(void)state;
	for (uint64_t into = 0; into < PAGE; into += sizeof(word))
		assert_true(memory_read(&by_pages, at + into, &word, sizeof(word)));
	assert_int_equal(image.reads, 1);
	assert_int_equal(image.low, at);
	assert_int_equal(image.high, at + PAGE);
}

static void what_crosses_pages_is_read_as_it_is_asked_for(void **state)
{
	static uint8_t bytes[5 * CODE_MEMORY_PAGE];
	uint64_t at = START / PAGE * PAGE + 5 * PAGE;

	(void)state;
	assert_true(memory_read(&by_pages, at - 3, bytes, 8));
	assert_int_equal(image.last, at - 3);
	assert_int_equal(image.last_len, 8);
	assert_true(memory_read(&by_pages, at + 8, bytes, sizeof(bytes)));
	assert_int_equal(image.last, at + 8);
	assert_int_equal(image.last_len, sizeof(bytes));
	assert_int_equal(image.reads, 2);
	assert_int_equal(image.low, at - 3);
	assert_int_equal(image.high, at + 8 + sizeof(bytes));
}

static void nothing_is_kept_when_it_begins_again(void **state)
{
	uint64_t at = START / PAGE * PAGE + 5 * PAGE;
	uint8_t byte, *real = image.bytes + (at - START);

	(void)state;
	*real = 1;
	assert_true(memory_read(&by_pages, at, &byte, 1));
	*real = 2;
	assert_true(memory_read(&by_pages, at, &byte, 1));
	assert_int_equal(byte, 1);
	code_memory_begin(pages, direct);
	assert_true(memory_read(&by_pages, at, &byte, 1));
	assert_int_equal(byte, 2);
}

/* ---- the thread's jobs, which read this process ---- */

#define TYPE 0x7000u

struct text {
	uint64_t count;
	uint32_t state, padding;
	char bytes[48];
};

/* As CPython has it, in an order of its own. */
struct code {
	uint64_t type, first_line;
	struct text *file, *name, *qualified_name;
	void *lines;
};

static const struct python_layout layout = {
	.type = offsetof(struct code, type),
	.first_line = offsetof(struct code, first_line),
	.file_name = offsetof(struct code, file),
	.name = offsetof(struct code, name),
	.qualified_name = offsetof(struct code, qualified_name),
	.lines = offsetof(struct code, lines),
	.text_count = offsetof(struct text, count),
	.text_state = offsetof(struct text, state),
	.text_ascii = offsetof(struct text, bytes),
	.code_type = TYPE,
};

static struct text text_of(const char *bytes)
{
	struct text text = { .count = strlen(bytes), .state = 1 << 2 | 1 << 5 | 1 << 6 };

	memcpy(text.bytes, bytes, strlen(bytes));
	return text;
}

static uint32_t proof_of(const struct code *code)
{
	__u64 words[SCRIPT_PROOF_WORDS];

	memcpy(words, &code->file, sizeof(words));
	return script_proof(words);
}

static struct script_job *job_of(const struct code *code, uint32_t proof)
{
	struct process_identity identity = { .pid = (uint32_t)getpid() };
	struct script_job *job = script_job_new(&identity);

	job->proof_words = SCRIPT_PROOF_WORDS;
	job->layout.kind = RUNTIME_PYTHON;
	job->layout.python = layout;
	job->count = 1;
	job->items[0].address = (uint64_t)(uintptr_t)code;
	job->items[0].proof = proof;
	return job;
}

/* Of the function's name; "" = it has gone. */
static void check_job(void *own, const struct code *code, uint32_t proof, const char *function)
{
	struct script_job *job = job_of(code, proof);

	script_reader_work.do_job(&job->job, own);
	if (*function) {
		assert_int_equal(job->items[0].result, SCRIPT_CODE_READ);
		assert_string_equal(job->items[0].code.function, function);
	} else {
		assert_int_equal(job->items[0].result, SCRIPT_CODE_GONE);
	}
	script_job_free(job);
}

static void a_job_sees_nothing_of_the_job_before(void **state)
{
	static struct text file, name, other;
	static struct code code;
	void *own = mem_calloc(1, script_reader_work.own_bytes);
	uint32_t proof;

	(void)state;
	file = text_of("/srv/shop.py");
	name = text_of("first");
	other = text_of("other");
	code = (struct code){ TYPE, 1, &file, &name, &name, NULL };
	proof = proof_of(&code);
	check_job(own, &code, proof, "shop.first");
	name = text_of("second");
	check_job(own, &code, proof, "shop.second");
	code.name = code.qualified_name = &other;
	check_job(own, &code, proof, "");
	check_job(own, &code, proof_of(&code), "shop.other");
	script_reader_work.fini_own(own);
	free(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_that_can_be_read_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(words_of_a_page_cost_one_read, setup, teardown),
		cmocka_unit_test_setup_teardown(what_crosses_pages_is_read_as_it_is_asked_for,
						setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_kept_when_it_begins_again, setup,
						teardown),
		cmocka_unit_test(a_job_sees_nothing_of_the_job_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
