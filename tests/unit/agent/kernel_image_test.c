/* SPDX-License-Identifier: Apache-2.0 */
/* vmlinux is found in a folder that stands for a host's root: a program linked where a kernel is.
 */
#include "agent/describe/kernel_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define RELEASE "6.1.0-9-test"

struct host {
	char root[64], notes[96];
	struct kernel_image image;
};

static bool run(const struct host *host, const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && { %s; } >/dev/null 2>&1", host->root, command);
	return !system(line);
}

static int set_up(void **state)
{
	struct host *host = calloc(1, sizeof(*host));

	snprintf(host->root, sizeof(host->root), "/tmp/firn-kernel-XXXXXX");
	if (!mkdtemp(host->root))
		return -1;
	snprintf(host->notes, sizeof(host->notes), "%s/notes", host->root);
	*state = host;
	return 0;
}

static int tear_down(void **state)
{
	struct host *host = *state;
	char command[96];

	kernel_image_free(&host->image);
	snprintf(command, sizeof(command), "rm -r %s", host->root);
	free(host);
	return system(command);
}

/* The file "kernel" and its notes as /sys/kernel/notes has them. */
static void make_kernel(const struct host *host)
{
	if (!run(host, "echo 'void _start(void) { for (;;); }' >a.c && "
		       "cc -g -O1 -nostdlib -static -fno-pie -no-pie -mcmodel=kernel "
		       "-Wl,--omagic -Wl,-Ttext=0xffffffff81000000 -Wl,--build-id=sha1 "
		       "-o kernel a.c && "
		       "objcopy -O binary --only-section=.note.gnu.build-id "
		       "--set-section-flags .note.gnu.build-id=alloc,load kernel notes")) {
		print_message("# skip: no compiler that links kernels\n");
		skip();
	}
}

static bool is_found(struct host *host)
{
	kernel_image_free(&host->image);
	kernel_image_find(&host->image, host->root, host->notes, RELEASE);
	return host->image.fd >= 0;
}

static void in_the_places_of_distributions(void **state)
{
	static const char *const places[] = { "usr/lib/debug/boot/vmlinux-" RELEASE,
					      "usr/lib/debug/lib/modules/" RELEASE "/vmlinux" };
	struct host *host = *state;

	make_kernel(host);
	assert_false(is_found(host));
	assert_int_equal(strlen(host->image.build_id), 40);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char command[256];

		snprintf(command, sizeof(command), "mkdir -p $(dirname %s) && cp kernel %s",
			 places[i], places[i]);
		assert_true(run(host, command));
		assert_true(is_found(host));
		assert_non_null(strstr(host->image.path, places[i]));
		assert_true(host->image.text_address == 0xffffffff81000000);
		snprintf(command, sizeof(command), "rm %s", places[i]);
		assert_true(run(host, command));
	}
}

static void not_that_of_another_build(void **state)
{
	struct host *host = *state;

	make_kernel(host);
	assert_true(run(host, "mkdir boot && cp kernel boot/vmlinux-" RELEASE));
	assert_true(is_found(host));
	assert_true(run(host, "printf '\\4\\0\\0\\0\\4\\0\\0\\0\\3\\0\\0\\0GNU\\0abcd' >notes"));
	assert_false(is_found(host));
	assert_string_equal(host->image.build_id, "61626364");
}

static void not_one_without_debug_information(void **state)
{
	struct host *host = *state;

	make_kernel(host);
	assert_true(run(host, "mkdir boot && strip -o boot/vmlinux-" RELEASE " kernel"));
	assert_false(is_found(host));
}

static void broken_notes_are_none(void **state)
{
	struct host *host = *state;

	assert_true(run(host,
			"printf '\\377\\377\\377\\377\\377\\377\\377\\377\\3\\0\\0\\0GNU' >notes"));
	assert_false(is_found(host));
	assert_string_equal(host->image.build_id, "");
	assert_true(run(host, ": >notes"));
	assert_false(is_found(host));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(in_the_places_of_distributions),
		TEST(not_that_of_another_build),
		TEST(not_one_without_debug_information),
		TEST(broken_notes_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
