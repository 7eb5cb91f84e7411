/* SPDX-License-Identifier: Apache-2.0 */
/* Packs of random numbers: what was written is read, in no more room than is needed. */
#include "server/resolve/table/symbol_pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define FIELDS 3

static unsigned seed = 1;

static uint32_t draw(void)
{
	return (uint32_t)rand_r(&seed) << 16 ^ (uint32_t)rand_r(&seed);
}

/* Mostly small numbers, above a base that may be any; some are of any size. */
static void fill(struct symbol_pack_input *input, unsigned count)
{
	uint32_t base = draw() >> draw() % 32, mask = (uint32_t)((1ull << draw() % 33) - 1);
	unsigned outliers = draw() % 20;

	input->must_patch = input->any = 0;
	for (unsigned i = 0; i < count; i++) {
		input->values[i] = input->patches[i] = base + (draw() & mask);
		if (draw() % 100 < outliers)
			input->values[i] = input->patches[i] = draw();
		if (draw() % 50 == 0) {
			input->must_patch |= 1ull << i;
			input->patches[i] = draw();
		}
		if (draw() % 50 == 0)
			input->any |= 1ull << i;
	}
}

static void add_slack(struct strbuf *out)
{
	strbuf_add_u64(out, 0);
}

static void what_was_written_is_read(void **state)
{
	struct strbuf out = { 0 };

	(void)state;
	for (int round = 0; round < 20000; round++) {
		unsigned count = 1 + draw() % SYMBOL_PACK_RECORDS;
		struct symbol_pack_input inputs[FIELDS];
		struct symbol_pack pack;
		size_t len;

		for (unsigned f = 0; f < FIELDS; f++)
			fill(&inputs[f], count);
		strbuf_clear(&out);
		symbol_pack_write(inputs, FIELDS, count, &out);
		len = out.len;
		add_slack(&out);
		assert_true(symbol_pack_open((const uint8_t *)out.data, len, FIELDS, &pack));
		assert_int_equal(pack.count, count);
		for (unsigned f = 0; f < FIELDS; f++) {
			for (unsigned i = 0; i < count; i++) {
				bool is_patch;
				uint32_t value = symbol_pack_get(&pack, f, i, &is_patch);

				if (inputs[f].any >> i & 1)
					continue;
				assert_int_equal(value, is_patch ? inputs[f].patches[i]
								 : inputs[f].values[i]);
				if (inputs[f].must_patch >> i & 1)
					assert_true(is_patch);
			}
		}
		assert_false(symbol_pack_open((const uint8_t *)out.data, len - 1, FIELDS, &pack));
	}
	strbuf_free(&out);
}

static void an_outlier_does_not_widen_the_others(void **state)
{
	struct symbol_pack_input input = { .any = 0 };
	struct strbuf out = { 0 };

	(void)state;
	for (unsigned i = 0; i < SYMBOL_PACK_RECORDS; i++)
		input.values[i] = input.patches[i] = 1000000 + i % 2;
	input.values[40] = input.patches[40] = UINT32_MAX;
	symbol_pack_write(&input, 1, SYMBOL_PACK_RECORDS, &out);
	/* Head of 4 bytes; base of 20 bits, 64 bits, a patch of 38: not 64 of 32. */
	assert_int_equal(out.len, 4 + (20 + 64 + 38 + 7) / 8);
	strbuf_free(&out);
}

/* Whatever the bytes are, nothing behind them and the slack is read (as the sanitizer sees). */
static void damaged_packs_are_refused_or_read(void **state)
{
	(void)state;
	for (int round = 0; round < 100000; round++) {
		size_t len = draw() % 64;
		uint8_t *bytes = malloc(len + SYMBOL_SLACK_BYTES);
		struct symbol_pack pack;
		bool is_patch;

		for (size_t i = 0; i < len + SYMBOL_SLACK_BYTES; i++)
			bytes[i] = (uint8_t)(draw() % 4 ? draw() % 16 : draw());
		if (symbol_pack_open(bytes, len, FIELDS, &pack))
			for (unsigned f = 0; f < FIELDS; f++)
				for (unsigned i = 0; i < pack.count; i++)
					symbol_pack_get(&pack, f, i, &is_patch);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(an_outlier_does_not_widen_the_others),
		cmocka_unit_test(damaged_packs_are_refused_or_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
