/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/state.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/whole_file.h"
#include "codec/wire/sha256.h"

#define TOKEN_BYTES_MAX 8192u

_Static_assert((int)WEB_CONFIG_REQUIRE_AND_VERIFY_CLIENT_CERT == (int)TLS_CLIENT_REQUIRE_AND_VERIFY,
	       "the two lists of client authentication are the same");
_Static_assert(WEB_CONFIG_SHA256_BYTES == SHA256_DIGEST_BYTES, "a digest is a digest");

static struct state_file look_at(const char *path)
{
	struct state_file file = { .path = path };
	struct stat stat_of;

	if (stat(path, &stat_of))
		return file;
	file.changed_ns = stat_of.st_mtim.tv_sec * CLOCK_NS_PER_S + stat_of.st_mtim.tv_nsec;
	file.inode = stat_of.st_ino;
	file.bytes = (uint64_t)stat_of.st_size;
	return file;
}

/* Looked at before it is read: a change in between is found the next time. */
static int watch(struct state *state, struct slice path, struct err *err)
{
	if (state->files_count == STATE_FILES_MAX)
		return err_set(err, ERR_LIMIT, "web configuration: names more than %d files",
			       STATE_FILES_MAX - 1);
	state->files[state->files_count++] = look_at(path.data);
	return 0;
}

static int read_pem(struct state *state, const struct web_config_pem *pem, const char *name,
		    struct strbuf *text, struct tls_pem *ret, struct err *err)
{
	int rc;

	if (!pem->file.len) {
		*ret = (struct tls_pem){ pem->text, name };
		return 0;
	}
	rc = watch(state, pem->file, err);
	return rc ? rc : tls_read_pem(pem->file.data, text, ret, err);
}

static enum tls_version version_of(int version)
{
	return version == 13   ? TLS_VERSION_13
	       : version == 12 ? TLS_VERSION_12
			       : TLS_VERSION_DEFAULT;
}

static int make_tls(struct state *state, struct err *err)
{
	const struct web_config *config = &state->config;
	struct tls_server_options options = {
		.client_auth = (enum tls_client_auth)config->client_auth,
		.client_names = config->client_sans,
		.client_names_count = config->client_sans_count,
		.min_version = version_of(config->min_version),
		.max_version = version_of(config->max_version),
		.http1_only = config->http1_only,
	};
	struct strbuf certificate = { 0 }, key = { 0 }, client_ca = { 0 };
	int rc = read_pem(state, &config->certificate, "tls_server_config.cert", &certificate,
			  &options.certificate, err);

	if (!rc)
		rc = read_pem(state, &config->key, "tls_server_config.key", &key, &options.key,
			      err);
	if (!rc)
		rc = read_pem(state, &config->client_ca, "tls_server_config.client_ca", &client_ca,
			      &options.client_ca, err);
	if (!rc)
		rc = tls_server_new(&options, &state->tls, err);
	strbuf_free(&certificate);
	strbuf_wipe(&key);
	strbuf_free(&client_ca);
	return rc;
}

static int read_token(struct state *state, struct web_config_token *token, struct err *err)
{
	struct strbuf text = { 0 };
	struct sha256 sha;
	struct slice secret;
	int rc = watch(state, token->file, err);

	if (!rc)
		rc = whole_file_read(token->file.data, TOKEN_BYTES_MAX, &text, err);
	secret = slice_trim(strbuf_slice(&text));
	if (!rc && !secret.len)
		rc = err_set(err, ERR_INVALID, "token_file \"%s\" is empty", token->file.data);
	sha256_init(&sha);
	sha256_add(&sha, secret.data, secret.len);
	sha256_finish(&sha, token->sha256);
	strbuf_wipe(&text);
	return rc;
}

static int read_all(struct state *state, const char *path, struct err *err)
{
	struct web_config *config = &state->config;
	struct state_file file = look_at(path);
	int rc = web_config_load(path, config, err);

	if (rc)
		return rc;
	file.path = arena_copy(&config->arena, slice_of(path)).data;
	state->files[state->files_count++] = file;
	if (config->has_tls)
		rc = make_tls(state, err);
	for (size_t i = 0; !rc && i < config->tokens_count; i++)
		if (config->tokens[i].file.len)
			rc = read_token(state, &config->tokens[i], err);
	return rc;
}

int state_read(const char *path, struct state **ret, struct err *err)
{
	struct state *state = mem_new(struct state);
	int rc;

	atomic_init(&state->references, 1);
	rc = read_all(state, path, err);
	if (rc) {
		state_unref(state);
		return rc;
	}
	*ret = state;
	return 0;
}

struct state *state_ref(struct state *state)
{
	atomic_fetch_add(&state->references, 1);
	return state;
}

void state_unref(struct state *state)
{
	if (!state || atomic_fetch_sub(&state->references, 1) > 1)
		return;
	tls_unref(state->tls);
	web_config_free(&state->config);
	free(state);
}

bool state_is_stale(const struct state *state)
{
	for (size_t i = 0; i < state->files_count; i++) {
		struct state_file now = look_at(state->files[i].path);

		if (now.changed_ns != state->files[i].changed_ns ||
		    now.inode != state->files[i].inode || now.bytes != state->files[i].bytes)
			return true;
	}
	return false;
}
