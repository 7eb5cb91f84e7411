/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/access.h"

#include <limits.h>
#include <pthread.h>
#include <strings.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "codec/wire/base64.h"
#include "server/access/password.h"
#include "server/access/state.h"

#define LOOK_NS CLOCK_NS_PER_S
#define CREDENTIALS_BYTES_MAX 4096u

struct access {
	char *path;
	struct strbuf headers;
	struct lock lock;
	struct state *state;  /* guarded, as the next two */
	int64_t look_next_ns; /* monotonic */
	bool failed;	      /* the last reading; told once */
	struct password_memory passwords;
	bool has_own_token;
	uint8_t own_token[SHA256_DIGEST_BYTES]; /* its digest */
};

static METRIC_COUNTER(count_reloaded, "firn_web_config_reloads_total", "{result=\"ok\"}",
		      "Readings of the changed web configuration.");
static METRIC_COUNTER(count_failed, "firn_web_config_reloads_total", "{result=\"failed\"}",
		      "Readings of the changed web configuration.");
static METRIC_COUNTER(count_unauthenticated, "firn_web_denied_total",
		      "{reason=\"unauthenticated\"}", "Requests without valid credentials.");
static METRIC_COUNTER(count_forbidden, "firn_web_denied_total", "{reason=\"role\"}",
		      "Requests of users and tokens that lack the role.");
static METRIC_GAUGE(web_config_ok, "firn_web_config_ok", "",
		    "1 while the web configuration in use is what the files say.");

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &count_reloaded, &count_failed,
						  &count_unauthenticated, &count_forbidden,
						  &web_config_ok };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

static void write_headers(struct access *access)
{
	const struct web_config *config = &access->state->config;

	for (size_t i = 0; i < config->headers_count; i++)
		strbuf_addf(&access->headers, "%.*s: %.*s\r\n", SLICE_FMT(config->headers[i].name),
			    SLICE_FMT(config->headers[i].value));
}

static void digest_of(struct slice secret, uint8_t ret[SHA256_DIGEST_BYTES])
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, secret.data, secret.len);
	sha256_finish(&sha, ret);
}

/* In a time that does not tell where they differ. */
static bool same_digest(const uint8_t *a, const uint8_t *b)
{
	unsigned char difference = 0;

	for (size_t i = 0; i < SHA256_DIGEST_BYTES; i++)
		difference |= a[i] ^ b[i];
	return !difference;
}

int access_open(const char *path, const char *own_token, struct access **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct access *access;
	struct state *state;
	int rc = state_read(path, &state, err);

	if (rc)
		return rc;
	pthread_once(&once, register_metrics);
	access = mem_new(struct access);
	access->path = mem_strndup(path, strlen(path));
	access->state = state;
	lock_init(&access->lock, "access", LOCK_ACCESS);
	password_init(&access->passwords);
	write_headers(access);
	access->has_own_token = own_token;
	if (own_token)
		digest_of(slice_of(own_token), access->own_token);
	metric_set(&web_config_ok, 1);
	*ret = access;
	return 0;
}

void access_close(struct access *access)
{
	if (!access)
		return;
	state_unref(access->state);
	password_fini(&access->passwords);
	lock_free(&access->lock);
	strbuf_free(&access->headers);
	free(access->path);
	free(access);
}

bool access_has_tls(const struct access *access)
{
	return access->state->tls != NULL;
}

static bool asks_for_nothing(const struct web_config *config)
{
	return !config->users_count && !config->tokens_count;
}

static bool lets_anyone_in(const struct web_config *config)
{
	return asks_for_nothing(config) &&
	       config->client_auth != WEB_CONFIG_REQUIRE_AND_VERIFY_CLIENT_CERT;
}

bool access_is_open(const struct access *access)
{
	return lets_anyone_in(&access->state->config);
}

struct slice access_headers(const struct access *access)
{
	return strbuf_slice(&access->headers);
}

/*
 * What cannot change. A file that is being written may be empty for a moment: nobody is let in for
 * that.
 */
static int check_change(const struct access *access, const struct state *state, struct err *err)
{
	if (!state->tls != !access->state->tls)
		return err_set(err, ERR_INVALID,
			       "%s: TLS cannot be switched while the server runs; restart it",
			       access->path);
	if (lets_anyone_in(&state->config) && !lets_anyone_in(&access->state->config))
		return err_set(err, ERR_INVALID,
			       "%s: it names no users and no tokens any more, which would let "
			       "anyone in; restart the server if you want that",
			       access->path);
	return 0;
}

/* With the lock. */
static void read_again(struct access *access)
{
	struct state *state = NULL;
	struct err err;
	int rc = state_read(access->path, &state, &err);

	if (!rc) {
		rc = check_change(access, state, &err);
		if (rc)
			state_unref(state);
	}
	metric_set(&web_config_ok, !rc);
	if (!rc) {
		state_unref(access->state);
		access->state = state;
		metric_add(&count_reloaded, 1);
		log_info("access", "web configuration reloaded", "path=\"%s\"", access->path);
	} else if (!access->failed) {
		metric_add(&count_failed, 1);
		log_error("access", "web configuration is invalid; the old one stays in force",
			  "error=\"%s\"", err.message);
	}
	access->failed = rc;
}

/* The state in force, a reference. */
static struct state *take_state(struct access *access)
{
	int64_t now_ns = clock_monotonic_ns();
	struct state *state;

	lock_take(&access->lock);
	if (now_ns >= access->look_next_ns) {
		access->look_next_ns = now_ns + LOOK_NS;
		if (state_is_stale(access->state))
			read_again(access);
	}
	state = state_ref(access->state);
	lock_give(&access->lock);
	return state;
}

struct tls *access_tls(void *context)
{
	struct state *state = take_state(context);
	struct tls *tls = tls_ref(state->tls);

	state_unref(state);
	return tls;
}

/* With an empty name: of any token. */
static unsigned roles_of_token(const struct access *access, const struct web_config *config,
			       struct slice name, struct slice secret)
{
	uint8_t digest[SHA256_DIGEST_BYTES];
	unsigned roles = 0;

	digest_of(secret, digest);
	if (access->has_own_token && !name.len && same_digest(access->own_token, digest))
		roles = WEB_CONFIG_INGEST;
	for (size_t i = 0; i < config->tokens_count; i++) {
		const struct web_config_token *token = &config->tokens[i];

		if (same_digest(token->sha256, digest) &&
		    (!name.len || slice_equal(name, token->name)))
			roles |= token->roles;
	}
	return roles;
}

#define NOT_KNOWN_YET UINT_MAX /* of roles: a password has to be hashed first */
#define LATER (UINT_MAX - 1)   /* too many are being hashed */

/*
 * A token may come as a password too, with its name as the user: browsers know no other way.
 */
static unsigned roles_of_basic(struct access *access, const struct web_config *config,
			       struct slice credentials, bool at_once)
{
	struct slice password, user = slice_cut(credentials, ':', &password);
	const struct web_config_user *found = NULL;
	unsigned roles = user.len ? roles_of_token(access, config, user, password) : 0;
	enum password_answer answer;
	struct slice bcrypt;
	bool fits;

	if (roles || !config->users_count)
		return roles;
	for (size_t i = 0; i < config->users_count; i++)
		if (slice_equal(config->users[i].name, user))
			found = &config->users[i];
	/* A user that does not exist takes as long as one that does. */
	bcrypt = found ? found->bcrypt : config->users[0].bcrypt;
	if (at_once) {
		if (!password_recall(&access->passwords, bcrypt, password, &fits))
			return NOT_KNOWN_YET;
		return found && fits ? found->roles : 0;
	}
	answer = password_try(&access->passwords, bcrypt, password);
	if (answer == PASSWORD_LATER)
		return LATER;
	return found && answer == PASSWORD_FITS ? found->roles : 0;
}

static bool take_scheme(struct slice *value, const char *scheme)
{
	size_t len = strlen(scheme);

	if (value->len <= len || strncasecmp(value->data, scheme, len) != 0 ||
	    value->data[len] != ' ')
		return false;
	*value = slice_trim(slice_tail(*value, len + 1));
	return true;
}

/* What the request's credentials allow; 0 = they are none. */
static unsigned roles_of_request(struct access *access, const struct web_config *config,
				 const struct net_request *request, bool at_once)
{
	struct slice value = net_request_header(request, "authorization");
	struct strbuf credentials = { 0 };
	struct slice key = net_request_header(request, "dd-api-key");
	unsigned roles = 0;

	if (value.len > CREDENTIALS_BYTES_MAX || key.len > CREDENTIALS_BYTES_MAX)
		return 0;
	if (!value.len && key.len) /* Datadog's tracers know no other way to give a token */
		return roles_of_token(access, config, (struct slice){ 0 }, key);
	if (take_scheme(&value, "Bearer"))
		return roles_of_token(access, config, (struct slice){ 0 }, value);
	if (take_scheme(&value, "Basic") && base64_decode(value, &credentials))
		roles = roles_of_basic(access, config, strbuf_slice(&credentials), at_once);
	strbuf_wipe(&credentials);
	return roles;
}

static unsigned role_bit(enum net_role role)
{
	static const unsigned bits[] = {
		[NET_ROLE_NONE] = 0,
		[NET_ROLE_INGEST] = WEB_CONFIG_INGEST,
		[NET_ROLE_QUERY] = WEB_CONFIG_QUERY,
		[NET_ROLE_ADMIN] = WEB_CONFIG_ADMIN,
		[NET_ROLE_PROBE] = 0,
	};

	return bits[role] | WEB_CONFIG_ADMIN;
}

static int verdict(struct access *access, const struct net_request *request, enum net_role role,
		   bool at_once)
{
	struct state *state;
	unsigned roles;
	int status = 200;

	if (role == NET_ROLE_PROBE || role == NET_ROLE_NONE)
		return 200;
	state = take_state(access);
	if (!asks_for_nothing(&state->config)) {
		roles = roles_of_request(access, &state->config, request, at_once);
		status = roles == NOT_KNOWN_YET	  ? 0
			 : roles == LATER	  ? 429
			 : !roles		  ? 401
			 : roles & role_bit(role) ? 200
						  : 403;
	}
	state_unref(state);
	return status;
}

int access_authorize(void *access, const struct net_request *request, enum net_role role,
		     bool at_once)
{
	int status = verdict(access, request, role, at_once);

	if (status == 401)
		metric_add(&count_unauthenticated, 1);
	if (status == 403)
		metric_add(&count_forbidden, 1);
	return status;
}

bool access_permits(struct access *access, const struct net_request *request, enum net_role role)
{
	return !access || verdict(access, request, role, false) == 200;
}
