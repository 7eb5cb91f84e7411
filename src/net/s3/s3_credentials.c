/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3/s3_credentials.h"

#include <stdio.h>
#include <time.h>

#include "base/whole_file.h"
#include "codec/wire/json_read.h"
#include "net/client/rest.h"
#include "net/client/url.h"
#include "net/s3/s3_answer.h"
#include "net/s3/s3_sign.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define ANSWER_BYTES_MAX ((uint64_t)256 << 10)
#define ASK_NS (5 * CLOCK_NS_PER_S)
#define LOOK_AGAIN_NS (300 * CLOCK_NS_PER_S) /* at what does not say when it ends */
#define AHEAD_NS (300 * CLOCK_NS_PER_S)	     /* of the end of keys that are lent */
#define CONTAINER_URL "http://169.254.170.2"
#define INSTANCE_URL "http://169.254.169.254"
#define INSTANCE_PATH "/latest/meta-data/iam/security-credentials/"
#define STS_URL "https://sts.amazonaws.com"

void s3_credentials_free(struct s3_credentials *credentials)
{
	strbuf_wipe(&credentials->access_key);
	strbuf_wipe(&credentials->secret_key);
	strbuf_wipe(&credentials->token);
}

/* A variable of the environment that is set and not empty, or NULL. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* Bytes that would break out of a header are none of a key. */
static bool is_key_text(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return true;
}

static int check(struct s3_credentials *made, struct s3_credentials *ret, struct err *err)
{
	if (made->access_key.len && made->secret_key.len &&
	    is_key_text(strbuf_slice(&made->access_key)) &&
	    is_key_text(strbuf_slice(&made->secret_key)) &&
	    is_key_text(strbuf_slice(&made->token))) {
		*ret = *made;
		return 0;
	}
	s3_credentials_free(made);
	return err_set(err, ERR_INVALID,
		       "access key and secret key are not both there, or hold blanks");
}

static int64_t look_again_ns(void)
{
	return clock_real_ns() + LOOK_AGAIN_NS;
}

static void set_text(struct strbuf *to, struct slice text)
{
	strbuf_clear(to);
	strbuf_add_slice(to, text);
}

static bool is_section(struct slice line, const char *profile)
{
	struct slice name = slice_trim(slice_from(line.data + 1, line.len - 1));

	if (name.len && name.data[name.len - 1] == ']')
		name.len--;
	name = slice_trim(name);
	if (slice_starts_with(name, SLICE_LITERAL("profile ")))
		name = slice_trim(slice_tail(name, strlen("profile ")));
	return slice_is(name, profile);
}

int s3_credentials_of_file(struct slice text, const char *profile, struct s3_credentials *ret,
			   struct err *err)
{
	struct s3_credentials made = { .ask_again_ns = look_again_ns(), .from = "a file" };
	bool is_ours = false, was_there = false;

	while (text.len) {
		struct slice line = slice_trim(slice_cut(text, '\n', &text)), value, name;

		if (!line.len || line.data[0] == '#' || line.data[0] == ';')
			continue;
		if (line.data[0] == '[') {
			is_ours = is_section(line, profile);
			was_there = was_there || is_ours;
			continue;
		}
		if (!is_ours)
			continue;
		name = slice_trim(slice_cut(line, '=', &value));
		value = slice_trim(value);
		if (slice_is(name, "aws_access_key_id"))
			set_text(&made.access_key, value);
		else if (slice_is(name, "aws_secret_access_key"))
			set_text(&made.secret_key, value);
		else if (slice_is(name, "aws_session_token"))
			set_text(&made.token, value);
	}
	if (!was_there)
		return err_set(err, ERR_NOT_FOUND, "no profile \"%s\"", profile);
	return check(&made, ret, err);
}

/* "2030-01-02T03:04:05Z"; 0 when it is none. */
static int64_t parse_end(const char *text)
{
	struct tm parts = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
	time_t seconds = end && (*end == 'Z' || *end == '.') ? timegm(&parts) : -1;

	return seconds > 0 && seconds < INT64_MAX / CLOCK_NS_PER_S ? seconds * CLOCK_NS_PER_S : 0;
}

/* Some minutes before the end, but not all the time where they are short. */
static void set_end(struct s3_credentials *made, const char *end_text)
{
	int64_t now_ns = clock_real_ns();
	int64_t end_ns = parse_end(end_text);

	made->ask_again_ns = end_ns ? end_ns - AHEAD_NS : now_ns + LOOK_AGAIN_NS;
	if (made->ask_again_ns < now_ns + ASK_NS)
		made->ask_again_ns = now_ns + ASK_NS;
}

static void set_member(const json_t *object, const char *name, struct strbuf *to)
{
	strbuf_add_slice(to, json_text_at(object, name));
}

int s3_credentials_of_json(struct slice text, struct s3_credentials *ret, struct err *err)
{
	struct s3_credentials made = { .from = "a metadata service" };
	struct strbuf end = { 0 };
	json_t *root = json_loadb(text.data ? text.data : "", text.len, 0, NULL);

	if (!json_is_object(root)) {
		json_decref(root);
		return err_set(err, ERR_INVALID, "the answer is not a JSON object");
	}
	set_member(root, "AccessKeyId", &made.access_key);
	set_member(root, "SecretAccessKey", &made.secret_key);
	set_member(root, "Token", &made.token);
	set_member(root, "Expiration", &end);
	json_decref(root);
	set_end(&made, strbuf_text(&end));
	strbuf_free(&end);
	return check(&made, ret, err);
}

static int from_environment(struct s3_credentials *ret, struct err *err)
{
	struct s3_credentials made = { .ask_again_ns = look_again_ns(), .from = "the environment" };
	const char *token = variable("AWS_SESSION_TOKEN");
	const char *secret = variable("AWS_SECRET_ACCESS_KEY");

	strbuf_add_text(&made.access_key, variable("AWS_ACCESS_KEY_ID"));
	strbuf_add_text(&made.secret_key, secret ? secret : "");
	strbuf_add_text(&made.token, token ? token : "");
	if (check(&made, ret, err))
		return err_wrap(err, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
	return 0;
}

/* One request; the body of an answer with status 200. */
static int ask(const char *url, const char *method, const char *target, const char *headers,
	       struct slice body, struct tls *tls, struct strbuf *out, struct err *err)
{
	const struct rest_request request = { .method = method,
					      .target = target,
					      .headers = slice_of(headers),
					      .body = body,
					      .deadline_at_ns = clock_monotonic_ns() + ASK_NS,
					      .body_bytes_max = ANSWER_BYTES_MAX };
	struct rest_answer answer;
	struct rest *rest;
	int rc = rest_new(url, tls, &rest, err);

	if (rc)
		return rc;
	rc = rest_ask(rest, &request, &answer, err);
	rest_free(rest);
	if (rc)
		return rc;
	if (answer.status == 200)
		strbuf_add_slice(out, strbuf_slice(&answer.body));
	else
		rc = err_set(err, ERR_UNAVAILABLE, "%s%s answers with status %d", url, target,
			     answer.status);
	rest_answer_free(&answer);
	return rc;
}

static int sts_answer(struct slice body, struct s3_credentials *ret, struct err *err)
{
	struct s3_credentials made = { .from = "a web identity" };
	struct strbuf end = { 0 };
	int rc = s3_answer_text(body, "AccessKeyId", &made.access_key, err);

	if (!rc)
		rc = s3_answer_text(body, "SecretAccessKey", &made.secret_key, err);
	if (!rc)
		rc = s3_answer_text(body, "SessionToken", &made.token, err);
	if (!rc)
		rc = s3_answer_text(body, "Expiration", &end, err);
	if (!rc) {
		set_end(&made, strbuf_text(&end));
		rc = check(&made, ret, err);
	} else {
		s3_credentials_free(&made);
	}
	strbuf_free(&end);
	return rc;
}

static int from_web_identity(struct tls *tls, struct s3_credentials *ret, struct err *err)
{
	const char *role = variable("AWS_ROLE_ARN"), *session = variable("AWS_ROLE_SESSION_NAME");
	const char *url = variable("AWS_ENDPOINT_URL_STS");
	struct strbuf token = { 0 }, form = { 0 }, body = { 0 };
	int rc = whole_file_read(variable("AWS_WEB_IDENTITY_TOKEN_FILE"), FILE_BYTES_MAX, &token,
				 err);

	strbuf_add_text(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=");
	strbuf_add_for_uri(&form, slice_of(role), "");
	strbuf_add_text(&form, "&RoleSessionName=");
	strbuf_add_for_uri(&form, slice_of(session ? session : "firn"), "");
	strbuf_add_text(&form, "&WebIdentityToken=");
	strbuf_add_for_uri(&form, slice_trim(strbuf_slice(&token)), "");
	if (!rc)
		rc = ask(url ? url : STS_URL, "POST", "/",
			 "content-type: application/x-www-form-urlencoded\r\n", strbuf_slice(&form),
			 tls, &body, err);
	if (!rc)
		rc = sts_answer(strbuf_slice(&body), ret, err);
	strbuf_wipe(&token);
	strbuf_wipe(&form);
	strbuf_wipe(&body);
	return rc ? (err_wrap(err, "keys for the web identity"), rc) : 0;
}

static int from_file(const char *path, struct s3_credentials *ret, struct err *err)
{
	const char *profile = variable("AWS_PROFILE");
	struct strbuf text = { 0 };
	int rc = whole_file_read(path, FILE_BYTES_MAX, &text, err);

	if (!rc) {
		rc = s3_credentials_of_file(strbuf_slice(&text), profile ? profile : "default", ret,
					    err);
		if (rc)
			err_wrap(err, "credentials file \"%.200s\"", path);
	}
	strbuf_wipe(&text);
	return rc;
}

/* *ret_is_there: it could be read, or the error is of what stands in it. */
static int from_shared_file(struct s3_credentials *ret, bool *ret_is_there, struct err *err)
{
	const char *path = variable("AWS_SHARED_CREDENTIALS_FILE"), *home = variable("HOME");
	char in_home[4096];
	int rc;

	*ret_is_there = path != NULL;
	if (!path && !home)
		return 0;
	snprintf(in_home, sizeof(in_home), "%s/.aws/credentials", home ? home : "");
	rc = from_file(path ? path : in_home, ret, err);
	*ret_is_there = path || !rc || rc == -ERR_INVALID;
	return rc;
}

static int container_token(struct strbuf *headers, struct err *err)
{
	const char *token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	const char *path = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	struct strbuf text = { 0 };
	int rc = 0;

	if (path)
		rc = whole_file_read(path, FILE_BYTES_MAX, &text, err);
	else if (token)
		strbuf_add_text(&text, token);
	if (!rc && !is_key_text(slice_trim(strbuf_slice(&text))))
		rc = err_set(err, ERR_INVALID, "the container's token holds blanks");
	if (!rc && text.len)
		strbuf_addf(headers, "authorization: %.*s\r\n",
			    SLICE_FMT(slice_trim(strbuf_slice(&text))));
	strbuf_wipe(&text);
	return rc;
}

static int from_container(struct tls *tls, struct s3_credentials *ret, struct err *err)
{
	const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	struct strbuf url = { 0 }, headers = { 0 }, body = { 0 };
	const char *path = relative;
	struct url parts;
	int rc = 0;

	strbuf_add_text(&url, CONTAINER_URL);
	if (!relative) {
		rc = url_parse(full, &parts, err);
		path = rc || !parts.path.len ? "/" : parts.path.data;
		strbuf_clear(&url);
		strbuf_addf(&url, "%s://%s", rc || !parts.is_tls ? "http" : "https",
			    rc ? "" : parts.authority);
	}
	if (!rc && path[0] != '/')
		rc = err_set(err, ERR_INVALID, "\"%.100s\" is not a path", path);
	if (!rc)
		rc = container_token(&headers, err);
	if (!rc)
		rc = ask(strbuf_text(&url), "GET", path, strbuf_text(&headers), (struct slice){ 0 },
			 tls, &body, err);
	if (!rc)
		rc = s3_credentials_of_json(strbuf_slice(&body), ret, err);
	strbuf_free(&url);
	strbuf_wipe(&headers);
	strbuf_wipe(&body);
	return rc ? (err_wrap(err, "keys of the container"), rc) : 0;
}

/* A token, the role's name, the role's keys. */
static int from_instance(struct s3_credentials *ret, struct err *err)
{
	const char *set = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *url = set ? set : INSTANCE_URL;
	struct strbuf token = { 0 }, header = { 0 }, path = { 0 }, body = { 0 };
	struct slice role;
	int rc = ask(url, "PUT", "/latest/api/token",
		     "x-aws-ec2-metadata-token-ttl-seconds: 21600\r\n", (struct slice){ 0 }, NULL,
		     &token, err);

	if (!rc && !is_key_text(strbuf_slice(&token)))
		rc = err_set(err, ERR_INVALID, "the instance's token holds blanks");
	strbuf_addf(&header, "x-aws-ec2-metadata-token: %s\r\n", strbuf_text(&token));
	if (!rc)
		rc = ask(url, "GET", INSTANCE_PATH, strbuf_text(&header), (struct slice){ 0 }, NULL,
			 &body, err);
	role = slice_cut(slice_trim(strbuf_slice(&body)), '\n', &(struct slice){ 0 });
	strbuf_add_text(&path, INSTANCE_PATH);
	strbuf_add_for_uri(&path, slice_trim(role), "");
	strbuf_clear(&body);
	if (!rc)
		rc = ask(url, "GET", strbuf_text(&path), strbuf_text(&header), (struct slice){ 0 },
			 NULL, &body, err);
	if (!rc)
		rc = s3_credentials_of_json(strbuf_slice(&body), ret, err);
	strbuf_wipe(&token);
	strbuf_wipe(&header);
	strbuf_free(&path);
	strbuf_wipe(&body);
	return rc;
}

int s3_credentials_find(const char *file, struct tls *tls, struct s3_credentials *ret,
			struct err *err)
{
	const char *disabled = variable("AWS_EC2_METADATA_DISABLED");
	struct err why = { 0 };
	bool is_there;
	int rc;

	if (file)
		return from_file(file, ret, err);
	if (variable("AWS_ACCESS_KEY_ID"))
		return from_environment(ret, err);
	if (variable("AWS_WEB_IDENTITY_TOKEN_FILE") && variable("AWS_ROLE_ARN"))
		return from_web_identity(tls, ret, err);
	rc = from_shared_file(ret, &is_there, err);
	if (is_there)
		return rc;
	if (variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
	    variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
		return from_container(tls, ret, err);
	if (disabled && !strcmp(disabled, "true"))
		snprintf(why.message, sizeof(why.message), "switched off");
	else if (!from_instance(ret, &why))
		return 0;
	return err_set(err, ERR_NOT_FOUND,
		       "no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write "
		       "~/.aws/credentials (the instance's metadata service: %.200s)",
		       why.message);
}
