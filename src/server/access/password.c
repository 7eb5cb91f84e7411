/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/password.h"

#include <crypt.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/mem.h"

void password_init(struct password_memory *memory)
{
	*memory = (struct password_memory){ 0 };
	if (getrandom(memory->salt, sizeof(memory->salt), 0) != sizeof(memory->salt))
		abort(); /* never happens for so few bytes once the system is up */
	lock_init(&memory->lock, "password.verdicts", LOCK_ACCESS + 2);
	lock_init(&memory->trying, "password.trying", LOCK_ACCESS + 1);
}

void password_fini(struct password_memory *memory)
{
	lock_free(&memory->lock);
	lock_free(&memory->trying);
}

static void digest_of(const struct password_memory *memory, struct slice bcrypt,
		      struct slice password, uint8_t ret[SHA256_DIGEST_BYTES])
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, memory->salt, sizeof(memory->salt));
	sha256_add(&sha, &bcrypt.len, sizeof(bcrypt.len));
	sha256_add(&sha, bcrypt.data, bcrypt.len);
	sha256_add(&sha, password.data, password.len);
	sha256_finish(&sha, ret);
}

static struct password_verdict *verdict_of(struct password_memory *memory, const uint8_t *digest)
{
	return &memory->verdicts[(digest[0] | (unsigned)digest[1] << 8) % PASSWORD_VERDICTS];
}

static bool recall(struct password_memory *memory, const uint8_t *digest, bool *ret_fits)
{
	const struct password_verdict *verdict = verdict_of(memory, digest);
	bool known;

	lock_take(&memory->lock);
	known = verdict->known && !memcmp(verdict->digest, digest, SHA256_DIGEST_BYTES);
	*ret_fits = known && verdict->fits;
	lock_give(&memory->lock);
	return known;
}

static void remember(struct password_memory *memory, const uint8_t *digest, bool fits)
{
	struct password_verdict *verdict = verdict_of(memory, digest);

	lock_take(&memory->lock);
	if (fits || !verdict->fits) { /* or who guesses makes those who know wait */
		memcpy(verdict->digest, digest, SHA256_DIGEST_BYTES);
		verdict->known = true;
		verdict->fits = fits;
	}
	lock_give(&memory->lock);
}

/* Equal in a time that does not tell where they differ. */
static bool same_text(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned char difference = 0;

	if (strlen(b) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		difference |= (unsigned char)(a[i] ^ b[i]);
	return !difference;
}

static bool try_password(const char *hash, const char *password)
{
	struct crypt_data *data = mem_new(struct crypt_data);
	const char *made = crypt_r(password, hash, data);
	bool fits = made && made[0] != '*' && same_text(made, hash);

	explicit_bzero(data, sizeof(*data));
	free(data);
	return fits;
}

bool password_recall(struct password_memory *memory, struct slice bcrypt, struct slice password,
		     bool *ret_fits)
{
	uint8_t digest[SHA256_DIGEST_BYTES];

	digest_of(memory, bcrypt, password, digest);
	return recall(memory, digest, ret_fits);
}

static bool begin_trial(struct password_memory *memory)
{
	bool may;

	lock_take(&memory->lock);
	may = memory->trials < PASSWORD_TRIALS_MAX;
	memory->trials += may;
	lock_give(&memory->lock);
	return may;
}

static void end_trial(struct password_memory *memory)
{
	lock_take(&memory->lock);
	memory->trials--;
	lock_give(&memory->lock);
}

enum password_answer password_try(struct password_memory *memory, struct slice bcrypt,
				  struct slice password)
{
	uint8_t digest[SHA256_DIGEST_BYTES];
	char *text, *hash;
	bool fits;

	if (password.len && memchr(password.data, '\0', password.len))
		return PASSWORD_WRONG;
	digest_of(memory, bcrypt, password, digest);
	if (recall(memory, digest, &fits))
		return fits ? PASSWORD_FITS : PASSWORD_WRONG; /* without waiting for guesses */
	if (!begin_trial(memory))
		return PASSWORD_LATER;
	lock_take(&memory->trying);
	if (!recall(memory, digest, &fits)) {
		text = mem_strndup(password.len ? password.data : "", password.len);
		hash = mem_strndup(bcrypt.data, bcrypt.len);
		fits = try_password(hash, text);
		remember(memory, digest, fits);
		explicit_bzero(text, password.len);
		free(text);
		free(hash);
	}
	lock_give(&memory->trying);
	end_trial(memory);
	return fits ? PASSWORD_FITS : PASSWORD_WRONG;
}
