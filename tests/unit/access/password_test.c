/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords: verdicts, and that known ones do not wait for those who guess. */
#include "server/access/password.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* htpasswd -nbBC 5 ann ann-secret */
#define HASH "$2b$05$abcdefghijklmnopqrstuuTiO/KVoK528XHhK5ppG/oBowDaYxheu"
#define PATIENCE_S 30

static bool try(struct password_memory *memory, const char *password)
{
	return password_fits(memory, slice_of(HASH), slice_of(password));
}

static void verdicts_are_what_bcrypt_says_the_second_time_too(void **state)
{
	struct password_memory memory;

	(void)state;
	password_init(&memory);
	for (int i = 0; i < 2; i++) {
		assert_true(try(&memory, "ann-secret"));
		assert_false(try(&memory, "ann-secre"));
		assert_false(try(&memory, ""));
		assert_false(password_fits(&memory, slice_of(HASH), SLICE_LITERAL("ann-secret\0")));
	}
	password_fini(&memory);
}

static void who_is_known_does_not_wait_for_those_who_guess(void **state)
{
	struct password_memory memory;

	(void)state;
	password_init(&memory);
	assert_true(try(&memory, "ann-secret"));
	pthread_mutex_lock(&memory.trying); /* a guess is being hashed */
	alarm(PATIENCE_S);
	assert_true(try(&memory, "ann-secret"));
	alarm(0);
	pthread_mutex_unlock(&memory.trying);
	password_fini(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_are_what_bcrypt_says_the_second_time_too),
		cmocka_unit_test(who_is_known_does_not_wait_for_those_who_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
