/* SPDX-License-Identifier: Apache-2.0 */
/* Which native frames are those of the greenlet that runs: by greenlet's module in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/describe/greenlet.h"

#define CODE_BYTES 0x1000u

/*
 * Native frames innermost first: 'L' a loop, 'n' another, 'G' one in the module at `path`. Returns
 * how many of them are the greenlet's.
 */
static size_t frames_of(char *path, const char *native)
{
	static char program[] = "/usr/bin/python3";
	struct binary python = { .path = program }, module = { .path = path };
	struct space *space = calloc(1, sizeof(*space) + 2 * sizeof(struct mapping));
	size_t count = strlen(native), inside;
	uint64_t addresses[16];
	bool loops[16];

	space->count = 2;
	space->mappings[0] = (struct mapping){
		.start = CODE_BYTES, .end = 2 * CODE_BYTES, .binary = &python, .kind = MAPPING_FILE
	};
	space->mappings[1] = (struct mapping){ .start = 3 * CODE_BYTES,
					       .end = 4 * CODE_BYTES,
					       .binary = &module,
					       .kind = MAPPING_FILE };
	for (size_t i = 0; i < count; i++) {
		addresses[i] = (native[i] == 'G' ? 3 : 1) * CODE_BYTES + i;
		loops[i] = native[i] == 'L';
	}
	inside = greenlet_frames(space, addresses, count, loops);
	free(space);
	return inside;
}

static void frames_inside_of_the_module_are_the_greenlets(void **state)
{
	static char path[] = "/venv/greenlet/_greenlet.cpython-39-x86_64-linux-gnu.so";
	static char older[] = "/venv/greenlet.cpython-36m-x86_64-linux-gnu.so";

	(void)state;
	assert_int_equal(frames_of(path, "nLnGnL"), 3);
	assert_int_equal(frames_of(older, "nLnGnL"), 3);
	/* Of several greenlets the innermost runs. */
	assert_int_equal(frames_of(path, "LGLGL"), 1);
	/* It is about to switch. */
	assert_int_equal(frames_of(path, "GnL"), 3);
	assert_int_equal(frames_of(path, "GnLnGL"), 4);
}

static void other_modules_switch_no_stacks(void **state)
{
	static char other[] = "/venv/greenlet/_greenlets.so", bare[] = "greenlet";

	(void)state;
	assert_int_equal(frames_of(other, "LGL"), 3);
	assert_int_equal(frames_of(bare, "LGL"), 3);
	assert_int_equal(frames_of(NULL, "LGL"), 3);
	assert_int_equal(greenlet_frames(NULL, (uint64_t[]){ CODE_BYTES }, 1, (bool[]){ true }), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_inside_of_the_module_are_the_greenlets),
		cmocka_unit_test(other_modules_switch_no_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
