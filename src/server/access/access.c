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
	struct state *state;  /* guarded, as the rest up to the names */
	int64_t look_next_ns; /* monotonic */
	bool failed;	      /* the last reading; told once */
	struct slice *names;  /* of tenants, kept for good: as many as files have named */
	size_t names_count, names_capacity;
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
	for (size_t i = 0; i < access->names_count; i++)
		free((char *)(uintptr_t)access->names[i].data);
	free(access->names);
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

/* The user or token that makes a request. */
struct principal {
	unsigned roles;			   /* 0 = nobody who is known */
	struct web_config_tenants tenants; /* of the state; none: any */
};

/* With an empty name: of any token. */
static struct principal find_token(const struct access *access, const struct web_config *config,
				   struct slice name, struct slice secret)
{
	struct principal found = { 0 };
	uint8_t digest[SHA256_DIGEST_BYTES];

	digest_of(secret, digest);
	if (access->has_own_token && !name.len && same_digest(access->own_token, digest))
		found.roles = WEB_CONFIG_INGEST;
	for (size_t i = 0; i < config->tokens_count; i++) {
		const struct web_config_token *token = &config->tokens[i];

		if (same_digest(token->sha256, digest) &&
		    (!name.len || slice_equal(name, token->name))) {
			found.roles |= token->roles;
			if (!found.tenants.count)
				found.tenants = token->tenants;
		}
	}
	return found;
}

#define NOT_KNOWN_YET UINT_MAX /* of roles: a password has to be hashed first */
#define LATER (UINT_MAX - 1)   /* too many are being hashed */

/*
 * A token may come as a password too, with its name as the user: browsers know no other way.
 */
static struct principal find_basic(struct access *access, const struct web_config *config,
				   struct slice credentials, bool at_once)
{
	struct slice password, user = slice_cut(credentials, ':', &password);
	const struct web_config_user *found = NULL;
	struct principal ret = { 0 };
	enum password_answer answer;
	struct slice bcrypt;
	bool fits;

	if (user.len)
		ret = find_token(access, config, user, password);
	if (ret.roles || !config->users_count)
		return ret;
	for (size_t i = 0; i < config->users_count; i++)
		if (slice_equal(config->users[i].name, user))
			found = &config->users[i];
	/* A user that does not exist takes as long as one that does. */
	bcrypt = found ? found->bcrypt : config->users[0].bcrypt;
	if (at_once) {
		if (!password_recall(&access->passwords, bcrypt, password, &fits))
			return (struct principal){ .roles = NOT_KNOWN_YET };
	} else {
		answer = password_try(&access->passwords, bcrypt, password);
		if (answer == PASSWORD_LATER)
			return (struct principal){ .roles = LATER };
		fits = answer == PASSWORD_FITS;
	}
	return found && fits ? (struct principal){ found->roles, found->tenants }
			     : (struct principal){ 0 };
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

/* Whom the request's credentials name. */
static struct principal find_principal(struct access *access, const struct web_config *config,
				       const struct net_request *request, bool at_once)
{
	struct slice value = net_request_header(request, "authorization");
	struct strbuf credentials = { 0 };
	struct slice key = net_request_header(request, "dd-api-key");
	struct principal found = { 0 };

	if (value.len > CREDENTIALS_BYTES_MAX || key.len > CREDENTIALS_BYTES_MAX)
		return found;
	if (!value.len && key.len) /* Datadog's tracers know no other way to give a token */
		return find_token(access, config, (struct slice){ 0 }, key);
	if (take_scheme(&value, "Bearer"))
		return find_token(access, config, (struct slice){ 0 }, value);
	if (take_scheme(&value, "Basic") && base64_decode(value, &credentials))
		found = find_basic(access, config, strbuf_slice(&credentials), at_once);
	strbuf_wipe(&credentials);
	return found;
}

static bool has_tenant(const struct web_config_tenants *tenants, struct slice tenant)
{
	for (size_t i = 0; i < tenants->count; i++)
		if (slice_equal(tenants->names[i], tenant))
			return true;
	return !tenants->count;
}

/* True unless the request is somebody else's. An empty header is none, as in tenant_of. */
static bool may_say(const struct principal *principal, const struct net_request *request)
{
	struct slice tenant = net_request_header(request, ACCESS_TENANT_HEADER);

	return !tenant.len || has_tenant(&principal->tenants, tenant);
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
	struct principal principal;
	struct state *state;
	unsigned roles;
	int status = 200;

	if (role == NET_ROLE_PROBE || role == NET_ROLE_NONE)
		return 200;
	state = take_state(access);
	if (!asks_for_nothing(&state->config)) {
		principal = find_principal(access, &state->config, request, at_once);
		roles = principal.roles;
		status = roles == NOT_KNOWN_YET		? 0
			 : roles == LATER		? 429
			 : !roles			? 401
			 : !(roles & role_bit(role))	? 403
			 : may_say(&principal, request) ? 200
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

/* The same text, for as long as `access` lives: the state may go before the request. */
static struct slice keep_name(struct access *access, struct slice name)
{
	struct slice kept = { "", 0 };

	lock_take(&access->lock);
	for (size_t i = 0; !kept.len && i < access->names_count; i++)
		if (slice_equal(access->names[i], name))
			kept = access->names[i];
	if (!kept.len) {
		kept = slice_from(mem_strndup(name.data, name.len), name.len);
		mem_grow(access->names, access->names_count, access->names_capacity);
		access->names[access->names_count++] = kept;
	}
	lock_give(&access->lock);
	return kept;
}

struct slice access_own_tenant(struct access *access, const struct net_request *request)
{
	struct slice name = { "", 0 };
	struct principal principal;
	struct state *state;

	if (!access)
		return name;
	state = take_state(access);
	principal = find_principal(access, &state->config, request, false);
	if (principal.tenants.count && principal.tenants.names[0].len)
		name = keep_name(access, principal.tenants.names[0]);
	state_unref(state);
	return name;
}

bool access_may_be(struct access *access, const struct net_request *request, struct slice tenant)
{
	struct principal principal;
	struct state *state;
	bool may;

	if (!access)
		return true;
	state = take_state(access);
	principal = find_principal(access, &state->config, request, false);
	may = has_tenant(&principal.tenants, tenant);
	state_unref(state);
	return may;
}

bool access_has_tenants(const struct access *access)
{
	const struct web_config *config = &access->state->config;
	bool has = config->tenant_limits.is_given;

	for (size_t i = 0; i < config->users_count; i++)
		has |= config->users[i].tenants.count > 0;
	for (size_t i = 0; i < config->tokens_count; i++)
		has |= config->tokens[i].tenants.count > 0;
	return has;
}

void access_tenant_limits(struct access *access, struct slice tenant, struct tenant_limits *ret)
{
	struct tenant_limits_list none;
	struct state *state;

	if (!access) {
		tenant_limits_init(&none);
		*ret = none.fallback;
		return;
	}
	state = take_state(access);
	*ret = *tenant_limits_find(&state->config.tenant_limits, tenant);
	state_unref(state);
}

void access_each_tenant(const struct access *access, access_tenant_f *each, void *context)
{
	const struct tenant_limits_list *list = &access->state->config.tenant_limits;

	for (size_t i = 0; i < list->count; i++)
		each(context, list->rows[i].tenant, &list->rows[i].limits);
}
