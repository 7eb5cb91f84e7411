/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3/s3.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/mem.h"
#include "codec/wire/xml.h"
#include "net/client/rest.h"
#include "net/s3/s3_answer.h"
#include "net/s3/s3_credentials.h"
#include "net/s3/s3_sign.h"

#define TRIES 5
#define RETRY_NS (100 * CLOCK_NS_PER_MS)
#define CALL_NS (30 * CLOCK_NS_PER_S)
#define SLOWEST_BYTES_PER_S 131072
#define LINKS_MAX 32 /* connections, and calls at once */
#define ANSWER_BYTES_MAX ((uint64_t)4 << 20)
#define ERROR_BYTES_MAX ((uint64_t)64 << 10) /* room for it also where little is asked for */
#define PIECES_MAX 10000u
#define LIST_PAGES_MAX 100000

struct s3 {
	struct bucket bucket;
	char *name, *prefix;	   /* the prefix ends in '/' unless it is empty */
	char *region, *url, *path; /* of the server; of the bucket on it: "" or "/NAME" */
	char *credentials_file;
	struct tls *tls;
	int64_t retry_ns;
	clock_f *clock;
	void *clock_context;

	struct lock lock;
	struct lock_condition changed;
	struct rest *idle[LINKS_MAX], *busy[LINKS_MAX];
	size_t idle_count, busy_count;
	struct s3_credentials credentials;
	bool has_credentials;
	int64_t skew_ns; /* of the server's clock against ours */
	bool cancelled;
};

/* One request and what may be done about its failure. */
struct call {
	const char *method;
	const char *key;    /* relative; NULL: the bucket itself */
	struct slice query; /* escaped and sorted */
	struct slice body;
	bool only_new;
	struct slice range; /* empty: all of it */
	uint64_t body_bytes_max;
};

static struct s3 *s3_of(struct bucket *bucket)
{
	return (struct s3 *)bucket;
}

static int64_t now_ns(const struct s3 *s3)
{
	return s3->clock(s3->clock_context);
}

/* Connections. */

static int cancelled(struct err *err)
{
	return err_set(err, ERR_CANCELLED, "object storage: stopped");
}

static int take_rest(struct s3 *s3, struct rest **ret, struct err *err)
{
	struct rest *rest = NULL;
	int rc = 0;

	lock_take(&s3->lock);
	while (s3->busy_count == LINKS_MAX && !s3->cancelled)
		lock_wait(&s3->changed, &s3->lock);
	if (s3->cancelled)
		rc = cancelled(err);
	else if (s3->idle_count)
		rest = s3->idle[--s3->idle_count];
	else
		rc = rest_new(s3->url, s3->tls, &rest, err);
	if (!rc)
		s3->busy[s3->busy_count++] = rest;
	lock_give(&s3->lock);
	*ret = rest;
	return rc;
}

static void give_rest(struct s3 *s3, struct rest *rest)
{
	lock_take(&s3->lock);
	for (size_t i = 0; i < s3->busy_count; i++)
		if (s3->busy[i] == rest)
			s3->busy[i] = s3->busy[--s3->busy_count];
	s3->idle[s3->idle_count++] = rest;
	lock_broadcast(&s3->changed);
	lock_give(&s3->lock);
}

static void cancel(struct bucket *bucket)
{
	struct s3 *s3 = s3_of(bucket);

	lock_take(&s3->lock);
	s3->cancelled = true;
	for (size_t i = 0; i < s3->busy_count; i++)
		rest_end_by(s3->busy[i], clock_monotonic_ns());
	lock_broadcast(&s3->changed);
	lock_give(&s3->lock);
}

/* Keys. */

static void copy_text(struct strbuf *to, const struct strbuf *from)
{
	strbuf_clear(to);
	strbuf_add_slice(to, strbuf_slice(from));
}

static int find_credentials(struct s3 *s3, struct err *err)
{
	struct s3_credentials found;
	int rc = s3_credentials_find(s3->credentials_file, s3->tls, &found, err);

	if (rc)
		return rc;
	lock_take(&s3->lock);
	s3_credentials_free(&s3->credentials);
	s3->credentials = found;
	s3->has_credentials = true;
	lock_give(&s3->lock);
	return 0;
}

/* A copy of those in force, asked for anew when they are due or `anew`. */
static int get_credentials(struct s3 *s3, bool anew, struct s3_credentials *ret, struct err *err)
{
	bool is_due, had;
	int rc = 0;

	lock_take(&s3->lock);
	had = s3->has_credentials;
	is_due = anew || !had || clock_real_ns() >= s3->credentials.ask_again_ns;
	lock_give(&s3->lock);
	if (is_due)
		rc = find_credentials(s3, err);
	if (rc && (anew || !had))
		return rc;
	*ret = (struct s3_credentials){ 0 }; /* old ones may do a while longer */
	lock_take(&s3->lock);
	copy_text(&ret->access_key, &s3->credentials.access_key);
	copy_text(&ret->secret_key, &s3->credentials.secret_key);
	copy_text(&ret->token, &s3->credentials.token);
	lock_give(&s3->lock);
	return 0;
}

/* Requests. */

static void add_path(const struct s3 *s3, const char *key, struct strbuf *out)
{
	strbuf_add_text(out, s3->path);
	if (key) {
		strbuf_add_byte(out, '/');
		strbuf_add_for_uri(out, slice_of(s3->prefix), "/");
		strbuf_add_for_uri(out, slice_of(key), "/");
	} else if (!out->len) {
		strbuf_add_byte(out, '/');
	}
}

static void add_header(struct s3_header *headers, size_t *count, const char *name,
		       struct slice value)
{
	if (value.len)
		headers[(*count)++] = (struct s3_header){ name, value };
}

/* The lines of all headers, signed. `path` is the target's. */
static void sign(struct s3 *s3, const struct call *call, struct slice path, const char *host,
		 const struct s3_credentials *keys, int64_t skew_ns, struct strbuf *out)
{
	const struct s3_scope scope = { strbuf_slice(&keys->access_key),
					strbuf_slice(&keys->secret_key), s3->region, "s3" };
	struct s3_header headers[S3_SIGN_HEADERS_MAX];
	char hash[S3_SIGN_HASH_BYTES], time[S3_SIGN_TIME_BYTES];
	struct s3_unsigned request = { .method = call->method,
				       .path = path,
				       .query = call->query,
				       .headers = headers,
				       .payload_hash = hash };

	s3_sign_hash(call->body, hash);
	s3_sign_time(now_ns(s3) + skew_ns, time);
	add_header(headers, &request.headers_count, "host", slice_of(host));
	add_header(headers, &request.headers_count, "if-none-match",
		   call->only_new ? SLICE_LITERAL("*") : (struct slice){ 0 });
	add_header(headers, &request.headers_count, "range", call->range);
	add_header(headers, &request.headers_count, "x-amz-content-sha256", slice_of(hash));
	add_header(headers, &request.headers_count, "x-amz-date", slice_of(time));
	add_header(headers, &request.headers_count, "x-amz-security-token",
		   strbuf_slice(&keys->token));
	for (size_t i = 1; i < request.headers_count; i++) /* all but host, which rest writes */
		strbuf_addf(out, "%s: %.*s\r\n", headers[i].name, SLICE_FMT(headers[i].value));
	strbuf_add_text(out, "authorization: ");
	s3_sign(&scope, &request, time, out);
	strbuf_add_text(out, "\r\n");
}

static int try_once(struct s3 *s3, const struct call *call, bool new_keys, struct rest_answer *ret,
		    struct err *err)
{
	int64_t limit_ns =
		CALL_NS + (int64_t)((call->body.len + call->body_bytes_max) / SLOWEST_BYTES_PER_S) *
				  CLOCK_NS_PER_S;
	struct strbuf target = { 0 }, headers = { 0 };
	struct s3_credentials keys;
	struct rest *rest;
	int64_t skew_ns;
	int rc = get_credentials(s3, new_keys, &keys, err);

	if (rc)
		return rc;
	rc = take_rest(s3, &rest, err);
	if (!rc) {
		struct rest_request request = { .method = call->method,
						.body = call->body,
						.body_bytes_max =
							call->body_bytes_max + ERROR_BYTES_MAX,
						.deadline_at_ns = clock_monotonic_ns() + limit_ns };
		struct slice path;

		lock_take(&s3->lock);
		skew_ns = s3->skew_ns;
		lock_give(&s3->lock);
		add_path(s3, call->key, &target);
		path = strbuf_slice(&target);
		sign(s3, call, path, rest_authority(rest), &keys, skew_ns, &headers);
		if (call->query.len)
			strbuf_addf(&target, "?%.*s", SLICE_FMT(call->query));
		request.target = strbuf_text(&target);
		request.headers = strbuf_slice(&headers);
		rc = rest_ask(rest, &request, ret, err);
		if (rc == -ERR_LIMIT)
			err_wrap(err, "the bucket's server %s, asked to %s %s",
				 rest_authority(rest), call->method, request.target);
		give_rest(s3, rest);
	}
	s3_credentials_free(&keys);
	strbuf_wipe(&headers);
	strbuf_free(&target);
	return rc;
}

/* True if the server's time, as it says it, is another one: the next try goes by it. */
static bool correct_clock(struct s3 *s3, const struct rest_answer *answer)
{
	char text[64];
	struct tm parts = { 0 };
	time_t seconds;

	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(rest_header(answer, "date")));
	if (!strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &parts))
		return false;
	seconds = timegm(&parts);
	if (seconds <= 0 || seconds > INT64_MAX / CLOCK_NS_PER_S)
		return false;
	lock_take(&s3->lock);
	s3->skew_ns = (int64_t)seconds * CLOCK_NS_PER_S - now_ns(s3);
	lock_give(&s3->lock);
	return true;
}

static bool is_temporary(const struct call *call, int status, const struct s3_error *why)
{
	return status == 500 || status == 502 || status == 503 || status == 504 || status == 429 ||
	       status == 408 || (status == 409 && call->only_new) ||
	       !strcmp(why->code, "RequestTimeout") || !strcmp(why->code, "SlowDown");
}

static bool have_keys_ended(const struct s3_error *why)
{
	return !strcmp(why->code, "ExpiredToken") || !strcmp(why->code, "InvalidToken") ||
	       !strcmp(why->code, "TokenRefreshRequired");
}

static int failure_of(const struct s3 *s3, const struct call *call, int status,
		      const struct s3_error *why, struct err *err)
{
	enum err_code code = status == 404		       ? ERR_NOT_FOUND
			     : status == 412		       ? ERR_EXISTS
			     : status == 401 || status == 403  ? ERR_DENIED
			     : status >= 500 || status == 429  ? ERR_UNAVAILABLE
			     : is_temporary(call, status, why) ? ERR_UNAVAILABLE
							       : ERR_INVALID;

	return err_set(err, code, "object storage: %s \"s3://%s/%s%s\": status %d%s%s%s%.200s",
		       call->method, s3->name, call->key ? s3->prefix : "",
		       call->key ? call->key : "", status, why->code[0] ? ", " : "", why->code,
		       why->message[0] ? ": " : "", why->message);
}

/* 100 ms x 2^n, and up to half of it more; ERR_CANCELLED when it is not worth waiting. */
static int pause_before(struct s3 *s3, int try, struct err *err)
{
	int64_t pause_ns = s3->retry_ns << (try - 1);
	int64_t until_ns = clock_monotonic_ns();
	bool stop;

	pause_ns +=
		(int64_t)(hash_bytes(&until_ns, sizeof(until_ns)) % (uint64_t)(pause_ns / 2 + 1));
	until_ns += pause_ns;
	lock_take(&s3->lock);
	while (!s3->cancelled && lock_wait_until(&s3->changed, &s3->lock, until_ns))
		;
	stop = s3->cancelled;
	lock_give(&s3->lock);
	return stop ? cancelled(err) : 0;
}

static bool was_cancelled(struct s3 *s3)
{
	bool is;

	lock_take(&s3->lock);
	is = s3->cancelled;
	lock_give(&s3->lock);
	return is;
}

/* True if an error of a try may be gone with the next one. */
static bool is_worth_another(int rc)
{
	return rc == -ERR_UNAVAILABLE || rc == -ERR_DEADLINE;
}

static int take_answer(const struct call *call, struct rest_answer *answer, struct rest_answer *ret,
		       struct err *err)
{
	if (answer->body.len > call->body_bytes_max) {
		rest_answer_free(answer);
		return err_set(
			err, ERR_LIMIT,
			"object storage: \"%s\" has more than the %llu bytes that are allowed",
			call->key ? call->key : "", (unsigned long long)call->body_bytes_max);
	}
	*ret = *answer;
	return 0;
}

/* 0 with an answer of status 2xx, to be freed. */
static int ask(struct s3 *s3, const struct call *call, struct rest_answer *ret, struct err *err)
{
	bool clock_corrected = false, new_keys = false;
	struct err cause = { 0 };
	int rc = 0;

	for (int try = 0; try < TRIES; try++) {
		struct s3_error why;
		struct rest_answer answer = { 0 };

		if (try) {
			rc = pause_before(s3, try, err);
			if (rc)
				return rc;
		}
		rc = try_once(s3, call, new_keys, &answer, &cause);
		if (was_cancelled(s3)) {
			rest_answer_free(&answer);
			return cancelled(err);
		}
		if (rc && !is_worth_another(rc))
			break;
		if (rc)
			continue;
		if (answer.status >= 200 && answer.status < 300)
			return take_answer(call, &answer, ret, err);
		s3_answer_error(strbuf_slice(&answer.body), &why);
		rc = failure_of(s3, call, answer.status, &why, &cause);
		if (!strcmp(why.code, "RequestTimeTooSkewed") && !clock_corrected)
			clock_corrected = correct_clock(s3, &answer);
		else if (have_keys_ended(&why) && !new_keys)
			new_keys = true;
		else if (!is_temporary(call, answer.status, &why))
			try = TRIES;
		rest_answer_free(&answer);
	}
	if (err)
		*err = cause;
	return rc;
}

static int ask_and_forget(struct s3 *s3, const struct call *call, struct err *err)
{
	struct rest_answer answer;
	int rc = ask(s3, call, &answer, err);

	if (!rc)
		rest_answer_free(&answer);
	return rc;
}

/* Calls. */

static int put(struct bucket *bucket, const char *key, struct slice bytes, bool only_new,
	       struct err *err)
{
	const struct call call = { .method = "PUT",
				   .key = key,
				   .body = bytes,
				   .only_new = only_new,
				   .body_bytes_max = ANSWER_BYTES_MAX };

	return ask_and_forget(s3_of(bucket), &call, err);
}

static int get(struct bucket *bucket, const char *key, size_t max_bytes, struct strbuf *out,
	       struct err *err)
{
	const struct call call = { .method = "GET", .key = key, .body_bytes_max = max_bytes };
	struct rest_answer answer;
	int rc = ask(s3_of(bucket), &call, &answer, err);

	if (rc)
		return rc;
	strbuf_add_slice(out, strbuf_slice(&answer.body));
	rest_answer_free(&answer);
	return 0;
}

static int get_range(struct bucket *bucket, const char *key, uint64_t from, size_t len,
		     struct strbuf *out, struct err *err)
{
	struct call call = { .method = "GET", .key = key, .body_bytes_max = len };
	struct rest_answer answer;
	char range[64];
	int rc;

	if (!len)
		return 0;
	snprintf(range, sizeof(range), "bytes=%llu-%llu", (unsigned long long)from,
		 (unsigned long long)(from + len - 1));
	call.range = slice_of(range);
	rc = ask(s3_of(bucket), &call, &answer, err);
	if (rc)
		return rc;
	if (answer.body.len == len && (answer.status == 206 || !from))
		strbuf_add_slice(out, strbuf_slice(&answer.body));
	else
		rc = err_set(err, ERR_INVALID,
			     "object storage: \"%s\": asked for %s, got %zu bytes (status %d)", key,
			     range, answer.body.len, answer.status);
	rest_answer_free(&answer);
	return rc;
}

static int size(struct bucket *bucket, const char *key, uint64_t *ret, struct err *err)
{
	const struct call call = { .method = "HEAD", .key = key };
	struct rest_answer answer;
	int rc = ask(s3_of(bucket), &call, &answer, err);

	if (rc)
		return rc;
	*ret = answer.length;
	rest_answer_free(&answer);
	return 0;
}

static int remove_object(struct bucket *bucket, const char *key, struct err *err)
{
	const struct call call = { .method = "DELETE",
				   .key = key,
				   .body_bytes_max = ANSWER_BYTES_MAX };
	int rc = ask_and_forget(s3_of(bucket), &call, err);

	return rc == -ERR_NOT_FOUND ? 0 : rc;
}

/* Objects in pieces. */

struct upload {
	struct s3 *s3;
	const char *key;
	struct strbuf id;   /* escaped for a query */
	struct strbuf list; /* of the pieces: what completes it */
};

static int begin_upload(struct upload *upload, struct err *err)
{
	const struct call call = { .method = "POST",
				   .key = upload->key,
				   .query = SLICE_LITERAL("uploads="),
				   .body_bytes_max = ANSWER_BYTES_MAX };
	struct rest_answer answer;
	struct strbuf id = { 0 };
	int rc = ask(upload->s3, &call, &answer, err);

	if (rc)
		return rc;
	rc = s3_answer_text(strbuf_slice(&answer.body), "UploadId", &id, err);
	strbuf_add_for_uri(&upload->id, strbuf_slice(&id), "");
	strbuf_free(&id);
	rest_answer_free(&answer);
	return rc;
}

static int put_piece(struct upload *upload, unsigned int number, struct slice bytes,
		     struct err *err)
{
	struct strbuf query = { 0 };
	struct call call = { .method = "PUT",
			     .key = upload->key,
			     .body = bytes,
			     .body_bytes_max = ANSWER_BYTES_MAX };
	struct rest_answer answer;
	int rc;

	strbuf_addf(&query, "partNumber=%u&uploadId=%s", number, strbuf_text(&upload->id));
	call.query = strbuf_slice(&query);
	rc = ask(upload->s3, &call, &answer, err);
	strbuf_free(&query);
	if (rc)
		return rc;
	strbuf_addf(&upload->list, "<Part><PartNumber>%u</PartNumber><ETag>", number);
	xml_escape(rest_header(&answer, "etag"), &upload->list);
	strbuf_add_text(&upload->list, "</ETag></Part>");
	rest_answer_free(&answer);
	return 0;
}

static int put_pieces(struct upload *upload, const struct bucket_source *source, struct err *err)
{
	uint64_t piece_bytes = S3_PIECE_BYTES;
	unsigned int number = 0;
	char *piece;
	int rc = 0;

	while (source->bytes / piece_bytes >= PIECES_MAX)
		piece_bytes *= 2;
	piece = mem_calloc(piece_bytes, 1);
	for (uint64_t at = 0; !rc && at < source->bytes; at += piece_bytes) {
		uint64_t left = source->bytes - at;
		size_t len = (size_t)(left < piece_bytes ? left : piece_bytes);

		rc = source->read(source->context, piece, len, at, err);
		if (!rc)
			rc = put_piece(upload, ++number, slice_from(piece, len), err);
	}
	free(piece);
	return rc;
}

/* A status of 200 may come before the server knows whether it could: the body says it. */
static int complete_upload(struct upload *upload, struct err *err)
{
	struct strbuf query = { 0 }, body = { 0 };
	struct call call = { .method = "POST",
			     .key = upload->key,
			     .body_bytes_max = ANSWER_BYTES_MAX };
	struct rest_answer answer;
	struct s3_error why;
	int rc;

	strbuf_addf(&query, "uploadId=%s", strbuf_text(&upload->id));
	strbuf_addf(&body, "<CompleteMultipartUpload>%s</CompleteMultipartUpload>",
		    strbuf_text(&upload->list));
	call.query = strbuf_slice(&query);
	call.body = strbuf_slice(&body);
	rc = ask(upload->s3, &call, &answer, err);
	if (!rc) {
		s3_answer_error(strbuf_slice(&answer.body), &why);
		if (why.code[0])
			rc = err_set(err, ERR_UNAVAILABLE,
				     "object storage: completing \"%s\": %s: %.200s", upload->key,
				     why.code, why.message);
		rest_answer_free(&answer);
	}
	strbuf_free(&query);
	strbuf_free(&body);
	return rc;
}

/* What cannot be taken back now stays, for a rule of the bucket that ends old uploads. */
static void abort_upload(struct upload *upload)
{
	struct strbuf query = { 0 };
	struct call call = { .method = "DELETE",
			     .key = upload->key,
			     .body_bytes_max = ANSWER_BYTES_MAX };

	strbuf_addf(&query, "uploadId=%s", strbuf_text(&upload->id));
	call.query = strbuf_slice(&query);
	(void)ask_and_forget(upload->s3, &call, NULL);
	strbuf_free(&query);
}

static int put_whole(struct bucket *bucket, const char *key, const struct bucket_source *source,
		     struct err *err)
{
	char *bytes = mem_calloc((size_t)source->bytes + 1, 1);
	int rc = 0;

	if (source->bytes)
		rc = source->read(source->context, bytes, (size_t)source->bytes, 0, err);
	if (!rc)
		rc = put(bucket, key, slice_from(bytes, (size_t)source->bytes), false, err);
	free(bytes);
	return rc;
}

static int put_source(struct bucket *bucket, const char *key, const struct bucket_source *source,
		      struct err *err)
{
	struct upload upload = { .s3 = s3_of(bucket), .key = key };
	int rc;

	if (source->bytes <= S3_PIECE_BYTES)
		return put_whole(bucket, key, source, err);
	rc = begin_upload(&upload, err);
	if (!rc) {
		rc = put_pieces(&upload, source, err);
		if (!rc)
			rc = complete_upload(&upload, err);
		if (rc)
			abort_upload(&upload);
	}
	strbuf_free(&upload.id);
	strbuf_free(&upload.list);
	return rc;
}

/* Lists. */

static void add_parameter(struct strbuf *query, const char *name, struct slice value)
{
	strbuf_addf(query, "%s%s=", query->len ? "&" : "", name);
	strbuf_add_for_uri(query, value, "");
}

static int list_page(struct s3 *s3, struct slice prefix, struct slice after, struct slice from,
		     bool folders, struct s3_list *ret, struct err *err)
{
	struct strbuf query = { 0 };
	struct call call = { .method = "GET", .body_bytes_max = ANSWER_BYTES_MAX };
	struct rest_answer answer;
	int rc;

	if (from.len)
		add_parameter(&query, "continuation-token", from);
	if (folders)
		add_parameter(&query, "delimiter", SLICE_LITERAL("/"));
	add_parameter(&query, "list-type", SLICE_LITERAL("2"));
	add_parameter(&query, "prefix", prefix);
	if (after.len)
		add_parameter(&query, "start-after", after);
	call.query = strbuf_slice(&query);
	rc = ask(s3, &call, &answer, err);
	strbuf_free(&query);
	if (rc)
		return rc;
	rc = s3_answer_list(strbuf_slice(&answer.body), ret, err);
	rest_answer_free(&answer);
	return rc;
}

/* Not every server knows start-after, and none may be trusted with what it was not asked for. */
static int hand_over(const struct s3 *s3, const struct s3_list *page, const char *prefix,
		     const char *after, bucket_entry_f *entry, void *context, struct err *err)
{
	size_t cut = strlen(s3->prefix);
	int rc = 0;

	for (size_t i = 0; !rc && i < page->count; i++) {
		struct bucket_entry item = { slice_tail(strbuf_slice(&page->entries[i].key), cut),
					     page->entries[i].bytes };

		if (!slice_starts_with(strbuf_slice(&page->entries[i].key), slice_of(s3->prefix)) ||
		    !slice_starts_with(item.key, slice_of(prefix)) ||
		    (after && slice_compare(item.key, slice_of(after)) <= 0))
			continue;
		rc = entry(context, &item, err);
	}
	return rc;
}

static int list(struct bucket *bucket, const char *prefix, const char *after, bool folders,
		bucket_entry_f *entry, void *context, struct err *err)
{
	struct s3 *s3 = s3_of(bucket);
	struct strbuf whole = { 0 }, begin = { 0 }, token = { 0 };
	bool more = true;
	int rc = 0;

	strbuf_addf(&whole, "%s%s", s3->prefix, prefix);
	if (after)
		strbuf_addf(&begin, "%s%s", s3->prefix, after);
	for (int pages = 0; !rc && more; pages++) {
		struct s3_list page = { 0 };

		rc = pages == LIST_PAGES_MAX
			     ? err_set(err, ERR_LIMIT, "object storage: a list without end")
			     : list_page(s3, strbuf_slice(&whole), strbuf_slice(&begin),
					 strbuf_slice(&token), folders, &page, err);
		if (rc)
			break;
		rc = hand_over(s3, &page, prefix, after, entry, context, err);
		more = page.is_cut;
		copy_text(&token, &page.next);
		s3_list_free(&page);
	}
	strbuf_free(&whole);
	strbuf_free(&begin);
	strbuf_free(&token);
	return rc;
}

/* Opening. */

static void close_bucket(struct bucket *bucket)
{
	struct s3 *s3 = s3_of(bucket);

	for (size_t i = 0; i < s3->idle_count; i++)
		rest_free(s3->idle[i]);
	if (s3->has_credentials)
		s3_credentials_free(&s3->credentials);
	tls_unref(s3->tls);
	lock_condition_free(&s3->changed);
	lock_free(&s3->lock);
	free(s3->name);
	free(s3->prefix);
	free(s3->region);
	free(s3->url);
	free(s3->path);
	free(s3->credentials_file);
	free(s3);
}

static char *copy(const char *text)
{
	return text ? mem_strndup(text, strlen(text)) : NULL;
}

static bool is_name(struct slice text, const char *others)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (!c || c >= 0x80 || (!isalnum(c) && !strchr(others, c)))
			return false;
	}
	return text.len > 0;
}

/* s3://NAME[/PREFIX] into its parts. */
static int take_url(struct s3 *s3, const char *url, struct err *err)
{
	struct slice text = slice_of(url), prefix, name;
	struct strbuf whole = { 0 };

	if (!slice_starts_with(text, SLICE_LITERAL("s3://")))
		return err_set(err, ERR_INVALID, "bucket \"%.200s\": it does not begin with s3://",
			       url);
	name = slice_cut(slice_tail(text, strlen("s3://")), '/', &prefix);
	while (prefix.len && prefix.data[prefix.len - 1] == '/')
		prefix.len--;
	while (prefix.len && prefix.data[0] == '/')
		prefix = slice_tail(prefix, 1);
	if (!is_name(name, ".-_") || name.len > 255)
		return err_set(err, ERR_INVALID, "bucket \"%.200s\": no name of a bucket", url);
	if (prefix.len && (!is_name(prefix, "/._-=+@") || prefix.len > BUCKET_KEY_BYTES_MAX))
		return err_set(err, ERR_INVALID,
			       "bucket \"%.200s\": letters, digits and /._-=+@ make up a prefix",
			       url);
	s3->name = mem_strndup(name.data, name.len);
	strbuf_addf(&whole, "%.*s%s", SLICE_FMT(prefix), prefix.len ? "/" : "");
	s3->prefix = copy(strbuf_text(&whole));
	strbuf_free(&whole);
	return 0;
}

static const char *first_set(const char *given, const char *const *names, size_t count)
{
	for (size_t i = 0; !given && i < count; i++) {
		const char *value = getenv(names[i]);

		given = value && value[0] ? value : NULL;
	}
	return given;
}

/* The URL of the server; with host style the bucket is a part of its name. */
static int take_endpoint(struct s3 *s3, const struct s3_options *options, struct err *err)
{
	static const char *const regions[] = { "AWS_REGION", "AWS_DEFAULT_REGION" };
	static const char *const endpoints[] = { "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL" };
	const char *region = first_set(options->region, regions, 2);
	const char *endpoint = first_set(options->endpoint, endpoints, 2);
	struct strbuf url = { 0 }, whole = { 0 };
	struct slice scheme, host;
	size_t slashes;

	region = region ? region : "us-east-1";
	if (!is_name(slice_of(region), "-_."))
		return err_set(err, ERR_INVALID, "region \"%.100s\" is not the name of a region",
			       region);
	s3->region = copy(region);
	if (endpoint)
		strbuf_add_text(&url, endpoint);
	else
		strbuf_addf(&url, "https://s3.%s.amazonaws.com%s", region,
			    !strncmp(region, "cn-", 3) ? ".cn" : "");
	while (url.len && url.data[url.len - 1] == '/')
		url.data[--url.len] = '\0';
	scheme = strbuf_slice(&url);
	slashes = slice_find_byte(scheme, '/');
	host = slice_tail(scheme, slashes == SIZE_MAX ? scheme.len : slashes + 2);
	scheme.len -= host.len;
	strbuf_addf(&whole, "%.*s%s%s%.*s", SLICE_FMT(scheme), options->host_style ? s3->name : "",
		    options->host_style ? "." : "", SLICE_FMT(host));
	s3->url = copy(strbuf_text(&whole));
	strbuf_clear(&whole);
	if (!options->host_style) {
		strbuf_add_byte(&whole, '/');
		strbuf_add_text(&whole, s3->name);
	}
	s3->path = copy(strbuf_text(&whole));
	strbuf_free(&whole);
	strbuf_free(&url);
	return 0;
}

static int take_tls(struct s3 *s3, const struct s3_options *options, struct err *err)
{
	struct tls_client_options tls = { .http1_only = true };
	struct strbuf ca = { 0 };
	int rc = 0;

	if (strncmp(s3->url, "https:", 6) != 0 && !getenv("AWS_WEB_IDENTITY_TOKEN_FILE"))
		return 0; /* reading the system's certificates takes a while */
	if (options->ca_file)
		rc = tls_read_pem(options->ca_file, &ca, &tls.ca, err);
	if (!rc)
		rc = tls_client_new(&tls, &s3->tls, err);
	strbuf_free(&ca);
	return rc;
}

static int64_t real_time(void *context)
{
	(void)context;
	return clock_real_ns();
}

/* So that a wrong address is told at once, not when the first part is due. */
static int check_address(struct s3 *s3, struct err *err)
{
	int rc = rest_new(s3->url, s3->tls, &s3->idle[0], err);

	if (!rc)
		s3->idle_count = 1;
	return rc;
}

int s3_open(const struct s3_options *options, struct bucket **ret, struct err *err)
{
	struct s3 *s3 = mem_new(struct s3);
	int rc;

	s3->bucket = (struct bucket){ put,	     put_source, get_range, get,	 size,
				      remove_object, list,	 cancel,    close_bucket };
	lock_init(&s3->lock, "net.s3", LOCK_NET + 10);
	lock_condition_init(&s3->changed);
	s3->credentials_file = copy(options->credentials_file);
	s3->retry_ns = options->retry_ns ? options->retry_ns : RETRY_NS;
	s3->clock = options->clock ? options->clock : real_time;
	s3->clock_context = options->clock_context;
	rc = take_url(s3, options->url, err);
	if (!rc)
		rc = take_endpoint(s3, options, err);
	if (!rc)
		rc = take_tls(s3, options, err);
	if (!rc)
		rc = check_address(s3, err);
	if (rc) {
		close_bucket(&s3->bucket);
		return rc;
	}
	*ret = &s3->bucket;
	return 0;
}
