/* SPDX-License-Identifier: Apache-2.0 */
/*
 * password - checks bcrypt passwords, and caches the verdicts.
 *
 * One password is checked at a time, because that costs tens of milliseconds of CPU, on purpose.
 * One more may wait; others get PASSWORD_LATER, so that guessing does not occupy all workers.
 * Verdicts, good and bad, are kept by a digest of (a random salt of this process, hash, password)
 * in a small table; neither passwords nor plain digests of them are kept. Thread-safe.
 */
#ifndef FIRN_SERVER_ACCESS_PASSWORD_H
#define FIRN_SERVER_ACCESS_PASSWORD_H

#include <stdbool.h>

#include "base/lock.h"
#include "base/slice.h"
#include "codec/wire/sha256.h"

#define PASSWORD_VERDICTS 1024u
#define PASSWORD_TRIALS_MAX 2u /* under way or waiting */

struct password_verdict {
	uint8_t digest[SHA256_DIGEST_BYTES];
	bool known, fits;
};

struct password_memory {
	uint8_t salt[SHA256_DIGEST_BYTES];
	struct lock lock; /* of the verdicts and trials */
	unsigned trials;
	struct lock trying; /* whoever hashes */
	struct password_verdict
		verdicts[PASSWORD_VERDICTS]; /* by digest; right ones stay, the later wins */
};

void password_init(struct password_memory *memory);
void password_fini(struct password_memory *memory);

/* A verdict that is remembered; false when there is none. Takes no time. */
bool password_recall(struct password_memory *memory, struct slice bcrypt, struct slice password,
		     bool *ret_fits);

enum password_answer { PASSWORD_WRONG, PASSWORD_FITS, PASSWORD_LATER };

/* Whether `password` is what `bcrypt` was made of; PASSWORD_LATER: too many are being tried. */
enum password_answer password_try(struct password_memory *memory, struct slice bcrypt,
				  struct slice password);

#endif
