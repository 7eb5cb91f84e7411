/* SPDX-License-Identifier: Apache-2.0 */
/* The channel on which an agent lends open files to its server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/binary_channel.h"

#define LENT_MAX 100000

static void count(void *context, struct slice build_id, struct slice path, int fd)
{
	unsigned *taken = context;
	char first;

	assert_true(slice_is(build_id, "0123abcd"));
	assert_true(slice_is(path, "/bin/a program"));
	assert_int_equal(pread(fd, &first, 1, 0), 1);
	++*taken;
}

/* The agent keeps what was refused, so a refusal must be told, and nothing told twice. */
static void full_channel_refuses_and_takes_again_when_there_is_room(void **state)
{
	struct agent_binary binary = { SLICE_LITERAL("0123abcd"), SLICE_LITERAL("/bin/a program"),
				       open("/proc/self/exe", O_RDONLY | O_CLOEXEC), getpid() };
	unsigned lent = 0, taken = 0;
	int channel[2];

	(void)state;
	assert_true(binary.fd >= 0);
	assert_int_equal(binary_channel_open(channel, NULL), 0);
	while (lent < LENT_MAX && binary_channel_lend(&channel[1], &binary))
		lent++;
	assert_in_range(lent, 1, LENT_MAX - 1);
	assert_false(binary_channel_lend(&channel[1], &binary));
	for (unsigned i = 0; i < lent; i++)
		assert_true(binary_channel_take(channel[0], count, &taken));
	assert_true(binary_channel_lend(&channel[1], &binary));
	close(channel[1]);
	while (binary_channel_take(channel[0], count, &taken))
		continue;
	assert_int_equal(taken, lent + 1);
	close(channel[0]);
	close(binary.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_channel_refuses_and_takes_again_when_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
