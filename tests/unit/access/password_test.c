/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords: verdicts, and that known ones do not wait for those who guess. */
#include "server/access/password.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* htpasswd -nbBC 5 ann ann-secret */
#define HASH "$2b$05$abcdefghijklmnopqrstuuTiO/KVoK528XHhK5ppG/oBowDaYxheu"
#define PATIENCE_S 30

static bool try(struct password_memory *memory, const char *password)
{
	return password_try(memory, slice_of(HASH), slice_of(password)) == PASSWORD_FITS;
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
		assert_int_equal(
			password_try(&memory, slice_of(HASH), SLICE_LITERAL("ann-secret\0")),
			PASSWORD_WRONG);
	}
	password_fini(&memory);
}

static void who_is_known_does_not_wait_for_those_who_guess(void **state)
{
	struct password_memory memory;

	(void)state;
	password_init(&memory);
	assert_true(try(&memory, "ann-secret"));
	lock_take(&memory.trying); /* a guess is being hashed */
	alarm(PATIENCE_S);
	assert_true(try(&memory, "ann-secret"));
	alarm(0);
	lock_give(&memory.trying);
	password_fini(&memory);
}

static void *guess(void *context)
{
	return try(context, "guess") ? context : NULL;
}

static unsigned trials_of(struct password_memory *memory)
{
	unsigned trials;

	lock_take(&memory->lock);
	trials = memory->trials;
	lock_give(&memory->lock);
	return trials;
}

static void who_guesses_does_not_make_more_than_one_other_wait(void **state)
{
	struct password_memory memory;
	pthread_t guessers[PASSWORD_TRIALS_MAX];

	(void)state;
	password_init(&memory);
	lock_take(&memory.trying); /* so that none of them gets on */
	alarm(PATIENCE_S);
	for (unsigned i = 0; i < PASSWORD_TRIALS_MAX; i++)
		assert_int_equal(pthread_create(&guessers[i], NULL, guess, &memory), 0);
	while (trials_of(&memory) < PASSWORD_TRIALS_MAX)
		sched_yield();
	assert_int_equal(password_try(&memory, slice_of(HASH), slice_of("ann-secret")),
			 PASSWORD_LATER);
	lock_give(&memory.trying);
	for (unsigned i = 0; i < PASSWORD_TRIALS_MAX; i++)
		pthread_join(guessers[i], NULL);
	alarm(0);
	assert_true(try(&memory, "ann-secret"));
	password_fini(&memory);
}

static void guesses_do_not_make_known_ones_forgotten(void **state)
{
	struct password_memory memory;
	bool fits = false;
	char text[16];

	(void)state;
	password_init(&memory);
	assert_true(try(&memory, "ann-secret"));
	for (unsigned i = 0; i < 20 * PASSWORD_VERDICTS; i++) {
		snprintf(text, sizeof(text), "%u", i);
		/* no hash, so that it is quick */
		assert_int_equal(password_try(&memory, SLICE_LITERAL("$2b$05$"), slice_of(text)),
				 PASSWORD_WRONG);
	}
	assert_true(password_recall(&memory, slice_of(HASH), slice_of("ann-secret"), &fits));
	assert_true(fits);
	password_fini(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_are_what_bcrypt_says_the_second_time_too),
		cmocka_unit_test(who_is_known_does_not_wait_for_those_who_guess),
		cmocka_unit_test(who_guesses_does_not_make_more_than_one_other_wait),
		cmocka_unit_test(guesses_do_not_make_known_ones_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
