/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/access/oauth2.h"

#include "base/lock.h"
#include "base/mem.h"
#include "codec/wire/json_read.h"
#include "net/client/fetch.h"
#include "remote/access/credentials.h"

#define TOKENS_MAX 64u
#define TOKEN_BYTES_MAX ((size_t)64 << 10)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define ASK_NS (10 * CLOCK_NS_PER_S)
#define LASTS_MAX_NS (3600 * CLOCK_NS_PER_S) /* also of a token that says nothing */
#define MARGIN_NS (10 * CLOCK_NS_PER_S)	     /* before it expires; at most a quarter of its time */
#define WAIT_NS (100 * CLOCK_NS_PER_MS)	     /* between looks at who waits for others */

/* The state of one client's token. */
struct token {
	struct strbuf credentials; /* what tells it from others */
	struct strbuf value;	   /* "TYPE TOKEN" */
	int64_t until_ns;	   /* monotonic: it may be used, or the failure holds */
	int64_t used_at_ns;
	struct err failure; /* code 0: there is a value */
	int64_t had_ns;	    /* the time that the last request had */
	bool is_being_got;
};

static struct lock lock = LOCK_INITIALIZER("oauth2", LOCK_SCRAPE + 9);
static struct lock_condition got = LOCK_CONDITION_INITIALIZER;
static struct token tokens[TOKENS_MAX]; /* guarded by the lock */

static void add_pair(struct strbuf *out, struct slice name, struct slice value)
{
	if (out->len)
		strbuf_add_byte(out, '&');
	strbuf_add_for_uri(out, name, "");
	strbuf_add_byte(out, '=');
	strbuf_add_for_uri(out, value, "");
}

static void add_form(const struct http_oauth2_config *config, struct strbuf *out)
{
	struct strbuf scopes = { 0 };

	add_pair(out, SLICE_LITERAL("grant_type"), SLICE_LITERAL("client_credentials"));
	for (size_t i = 0; i < config->scopes.count; i++) {
		if (i)
			strbuf_add_byte(&scopes, ' ');
		strbuf_add_slice(&scopes, config->scopes.items[i]);
	}
	if (scopes.len)
		add_pair(out, SLICE_LITERAL("scope"), strbuf_slice(&scopes));
	strbuf_free(&scopes);
	for (size_t i = 0; i < config->endpoint_params.count; i++)
		add_pair(out, config->endpoint_params.items[i].name,
			 config->endpoint_params.items[i].value);
}

static int take_answer(void *context, struct slice bytes, struct err *err)
{
	(void)err;
	strbuf_add_slice(context, bytes);
	return 0;
}

static bool is_header_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

int oauth2_read_answer(struct slice text, struct strbuf *out, int64_t *ret_lasts_ns,
		       struct err *err)
{
	struct json_read answer;
	int rc = json_read(text, 0, "the token", NULL, &answer, err);
	const char *token = json_string_value(json_object_get(answer.root, "access_token"));
	const char *type = json_string_value(json_object_get(answer.root, "token_type"));
	const json_t *expires = json_object_get(answer.root, "expires_in");
	double seconds = json_number_value(expires);

	if (json_is_string(expires)) /* some say it so */
		seconds = strtod(json_string_value(expires), NULL);
	if (!type || !strcasecmp(type, "bearer"))
		type = "Bearer";
	if (!rc && (!token || !*token))
		rc = err_set(err, ERR_INVALID, "the answer has no access_token");
	if (!rc && (strlen(token) + strlen(type) > TOKEN_BYTES_MAX || !is_header_text(token) ||
		    !is_header_text(type)))
		rc = err_set(err, ERR_INVALID, "the token has bytes that a header may not have");
	if (!rc) {
		strbuf_addf(out, "%s %s", type, token);
		*ret_lasts_ns = !(seconds > 0) ? 0
				: seconds * (double)CLOCK_NS_PER_S > (double)LASTS_MAX_NS
					? LASTS_MAX_NS
					: (int64_t)(seconds * (double)CLOCK_NS_PER_S);
	}
	json_read_free(&answer);
	return rc;
}

/* One request; the credentials are in its header or in its body: servers differ. */
static int ask(const struct http_oauth2_config *config, struct fetch *fetch, struct slice secret,
	       bool in_body, int *ret_status, struct err *err)
{
	struct strbuf headers = { 0 }, form = { 0 }, pair = { 0 };
	int rc;

	strbuf_add_text(&headers, "content-type: application/x-www-form-urlencoded\r\n");
	add_form(config, &form);
	if (in_body) {
		add_pair(&form, SLICE_LITERAL("client_id"), config->client_id);
		add_pair(&form, SLICE_LITERAL("client_secret"), secret);
	} else {
		strbuf_add_for_uri(&pair, config->client_id, "");
		strbuf_add_byte(&pair, ':');
		strbuf_add_for_uri(&pair, secret, "");
		fetch_add_basic(&headers, "authorization", strbuf_slice(&pair));
	}
	fetch->headers = strbuf_text(&headers);
	fetch->post = strbuf_slice(&form);
	rc = fetch_get(fetch, ret_status, err);
	strbuf_wipe(&headers);
	strbuf_wipe(&form);
	strbuf_wipe(&pair);
	return rc;
}

static int get(const struct http_oauth2_config *config, struct slice secret, int64_t deadline_at_ns,
	       const _Atomic bool *cancelled, struct strbuf *ret_answer, struct err *err)
{
	int64_t until_ns = clock_monotonic_ns() + ASK_NS;
	struct strbuf refusal = { 0 };
	struct fetch fetch = {
		.url = config->token_url.data,
		.tls_name = config->tls.server_name.len ? config->tls.server_name.data : NULL,
		.proxy = config->proxy_url.len ? config->proxy_url.data : NULL,
		.deadline_at_ns = until_ns < deadline_at_ns ? until_ns : deadline_at_ns,
		.body_bytes_max = ANSWER_BYTES_MAX,
		.take = take_answer,
		.context = ret_answer,
		.cancelled = cancelled,
		.refusal = &refusal,
		.stays = true
	};
	int status = 0, rc = 0;

	if (!strncmp(fetch.url, "https:", strlen("https:")))
		rc = credentials_tls(&config->tls, &fetch.tls, err);
	if (!rc)
		rc = ask(config, &fetch, secret, false, &status, err);
	if (!rc && (status == 400 || status == 401)) {
		strbuf_clear(&refusal);
		rc = ask(config, &fetch, secret, true, &status, err);
	}
	if (!rc && status != 200)
		rc = fetch_refused(status, &refusal, err);
	tls_unref(fetch.tls);
	strbuf_free(&refusal);
	return rc;
}

/* The token of those credentials, made if there is none: in the place of that not used longest. */
static struct token *find(struct slice credentials)
{
	struct token *oldest = NULL;

	lock_assert_held(&lock);
	for (size_t i = 0; i < TOKENS_MAX; i++) {
		struct token *token = &tokens[i];

		if (slice_equal(strbuf_slice(&token->credentials), credentials))
			return token;
		if (!token->is_being_got && (!oldest || token->used_at_ns < oldest->used_at_ns))
			oldest = token;
	}
	if (!oldest)
		return NULL;
	strbuf_wipe(&oldest->credentials);
	strbuf_wipe(&oldest->value);
	*oldest = (struct token){ .until_ns = INT64_MIN };
	strbuf_add_slice(&oldest->credentials, credentials);
	return oldest;
}

static bool is_given_up(int64_t deadline_at_ns, const _Atomic bool *cancelled)
{
	return clock_monotonic_ns() >= deadline_at_ns || (cancelled && atomic_load(cancelled));
}

/* Waits while another thread gets it. NULL: not in time. */
static struct token *await(struct slice credentials, int64_t deadline_at_ns,
			   const _Atomic bool *cancelled)
{
	for (;;) {
		struct token *token = find(credentials);

		if (token && !token->is_being_got)
			return token;
		if (is_given_up(deadline_at_ns, cancelled))
			return NULL;
		(void)lock_wait_until(&got, &lock, clock_monotonic_ns() + WAIT_NS);
	}
}

/* For the request of a caller with this deadline. */
static int64_t time_for(int64_t deadline_at_ns)
{
	int64_t left_ns = deadline_at_ns - clock_monotonic_ns();

	return left_ns < ASK_NS ? left_ns : ASK_NS;
}

/*
 * The token has expired, or the failure is old, or it came of a deadline and this caller has more
 * than twice the time: so a thousand callers with deadlines of their own make few requests.
 */
static bool is_due(const struct token *token, int64_t deadline_at_ns)
{
	return clock_monotonic_ns() >= token->until_ns ||
	       (token->failure.code == ERR_DEADLINE &&
		time_for(deadline_at_ns) / 2 > token->had_ns);
}

/* Without the lock, but for the end. */
static void renew(struct token *token, const struct http_oauth2_config *config, struct slice secret,
		  int64_t deadline_at_ns, const _Atomic bool *cancelled)
{
	struct strbuf answer = { 0 }, value = { 0 };
	struct err err = { 0 };
	int64_t lasts_ns = 0;
	int rc;

	token->is_being_got = true;
	token->had_ns = time_for(deadline_at_ns);
	lock_give(&lock);
	rc = get(config, secret, deadline_at_ns, cancelled, &answer, &err);
	if (!rc)
		rc = oauth2_read_answer(strbuf_slice(&answer), &value, &lasts_ns, &err);
	lock_take(&lock);
	strbuf_wipe(&answer);
	strbuf_wipe(&token->value);
	token->value = value;
	token->failure = rc ? err : (struct err){ 0 };
	if (rc == -ERR_CANCELLED)
		lasts_ns = 0;
	else if (rc)
		lasts_ns = OAUTH2_RETRY_NS;
	else if (!lasts_ns)
		lasts_ns = LASTS_MAX_NS;
	else
		lasts_ns -= lasts_ns / 4 < MARGIN_NS ? lasts_ns / 4 : MARGIN_NS;
	token->until_ns = clock_monotonic_ns() + lasts_ns;
	token->is_being_got = false;
	lock_broadcast(&got);
}

/* What is asked for is told apart by all that the token server sees. */
static void add_credentials(const struct http_oauth2_config *config, struct slice secret,
			    struct strbuf *out)
{
	strbuf_addf(out, "%.*s\n%.*s\n", SLICE_FMT(config->token_url),
		    SLICE_FMT(config->proxy_url));
	add_form(config, out);
	add_pair(out, SLICE_LITERAL("client_id"), config->client_id);
	add_pair(out, SLICE_LITERAL("client_secret"), secret);
}

int oauth2_add_token(const struct http_oauth2_config *config, int64_t deadline_at_ns,
		     const _Atomic bool *cancelled, struct strbuf *out, struct err *err)
{
	struct strbuf secret = { 0 }, credentials = { 0 };
	struct token *token = NULL;
	int rc = credentials_add_secret(config->client_secret, config->client_secret_file, &secret,
					err);

	if (rc)
		return err_wrap(err, "oauth2");
	add_credentials(config, strbuf_slice(&secret), &credentials);
	lock_take(&lock);
	token = await(strbuf_slice(&credentials), deadline_at_ns, cancelled);
	if (token && is_due(token, deadline_at_ns))
		renew(token, config, strbuf_slice(&secret), deadline_at_ns, cancelled);
	if (!token) {
		rc = err_set(err, ERR_DEADLINE, "oauth2: no token in time");
	} else if (token->failure.code) {
		if (err)
			*err = token->failure;
		rc = err_wrap(err, "oauth2: POST %.200s", config->token_url.data);
	} else {
		token->used_at_ns = clock_monotonic_ns();
		strbuf_add_slice(out, strbuf_slice(&token->value));
	}
	lock_give(&lock);
	strbuf_wipe(&secret);
	strbuf_wipe(&credentials);
	return rc;
}
