/* SPDX-License-Identifier: Apache-2.0 */
/*
 * s3: against a small server of this file's own that can fail any request in several ways. What a
 * call says it did is there, once; what fails for a while is repeated, what is refused is not.
 */
#include "net/s3/s3.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/http/uri.h"
#include "net/s3/s3_answer.h"
#include "net/s3/s3_credentials.h"
#include "net/s3/s3_sign.h"

#define OBJECTS_MAX 64
#define CONNECTIONS_MAX 64
#define HOUR_NS (3600 * CLOCK_NS_PER_S)

enum fault {
	FAULT_NONE,
	FAULT_500,
	FAULT_SLOW_DOWN,
	FAULT_LOST_REQUEST, /* the connection ends, nothing was done */
	FAULT_LOST_ANSWER,  /* it was done */
	FAULT_CUT_ANSWER,   /* it was done, and half of the answer came */
	FAULT_KINDS,
	FAULT_SKEW = FAULT_KINDS, /* until the time is right */
	FAULT_DENIED,
	FAULT_EXPIRED,
};

struct object {
	char key[128];
	struct strbuf bytes;
};

struct fake {
	int fd;
	unsigned int port;
	pthread_t thread;
	pthread_mutex_t mutex; /* one request at a time, on however many connections */
	pthread_t speakers[CONNECTIONS_MAX];
	struct speaker {
		struct fake *fake;
		int fd;
	} spoken[CONNECTIONS_MAX];
	size_t connections;
	enum fault fault;
	_Atomic int at, requests; /* `fault` hits the request with that number, from 1 */
	int page;		  /* keys of one list */
	int64_t time_ns;	  /* of its clock */
	struct object objects[OBJECTS_MAX];
	size_t count;
	struct strbuf pieces; /* of the upload under way */
	_Atomic int aborted;
	int key_number; /* of the metadata service */
};

struct asked {
	char method[16], target[2048];
	struct strbuf head, body;
};

static struct object *find(struct fake *fake, const char *key, bool make)
{
	for (size_t i = 0; i < fake->count; i++)
		if (!strcmp(fake->objects[i].key, key))
			return &fake->objects[i];
	if (!make)
		return NULL;
	assert(fake->count < OBJECTS_MAX);
	snprintf(fake->objects[fake->count].key, sizeof(fake->objects[0].key), "%s", key);
	return &fake->objects[fake->count++];
}

static const char *header(const struct asked *asked, const char *name, char ret[256])
{
	struct strbuf with = { 0 };
	const char *at, *end;

	strbuf_addf(&with, "\r\n%s: ", name);
	at = strcasestr(asked->head.data, with.data);
	ret[0] = '\0';
	if (at) {
		at += with.len;
		end = strstr(at, "\r\n");
		snprintf(ret, 256, "%.*s", (int)(end - at), at);
	}
	strbuf_free(&with);
	return ret;
}

static void answer(struct strbuf *out, int status, const char *more, struct slice body)
{
	strbuf_addf(out, "HTTP/1.1 %d X\r\n%scontent-length: %zu\r\n\r\n", status, more, body.len);
	strbuf_add_slice(out, body);
}

static void answer_error(struct strbuf *out, int status, const char *code)
{
	struct strbuf body = { 0 };

	strbuf_addf(&body, "<Error><Code>%s</Code><Message>m</Message></Error>", code);
	answer(out, status, "", strbuf_slice(&body));
	strbuf_free(&body);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void parameter(const char *query, const char *name, struct strbuf *out)
{
	char with[64];
	const char *at;

	snprintf(with, sizeof(with), "%s=", name);
	at = strstr(query, with);
	strbuf_add_text(out, "");
	if (at)
		assert_true(
			uri_decode(slice_from(at + strlen(with), strcspn(at + strlen(with), "&")),
				   false, out));
}

static void answer_list(struct fake *fake, const char *query, struct strbuf *out)
{
	struct strbuf prefix = { 0 }, after = { 0 }, token = { 0 }, body = { 0 };
	const char *keys[OBJECTS_MAX];
	int given = 0;

	parameter(query, "prefix", &prefix);
	parameter(query, "start-after", &after);
	parameter(query, "continuation-token", &token);
	for (size_t i = 0; i < fake->count; i++)
		keys[i] = fake->objects[i].key;
	qsort(keys, fake->count, sizeof(*keys), by_key);
	strbuf_add_text(&body, "<ListBucketResult>");
	for (size_t i = 0; i < fake->count; i++) {
		if (strncmp(keys[i], strbuf_text(&prefix), prefix.len) != 0 ||
		    strcmp(keys[i], strbuf_text(&after)) <= 0 ||
		    strcmp(keys[i], strbuf_text(&token)) <= 0)
			continue;
		if (given++ == fake->page) {
			strbuf_addf(&body,
				    "<IsTruncated>true</IsTruncated><NextContinuationToken>%s"
				    "</NextContinuationToken>",
				    keys[i - 1]);
			break;
		}
		strbuf_addf(&body, "<Contents><Key>%s</Key><Size>%zu</Size></Contents>", keys[i],
			    find(fake, keys[i], false)->bytes.len);
	}
	strbuf_add_text(&body, "</ListBucketResult>");
	answer(out, 200, "", strbuf_slice(&body));
	strbuf_free(&prefix);
	strbuf_free(&after);
	strbuf_free(&token);
	strbuf_free(&body);
}

static void answer_post(struct fake *fake, const struct asked *asked, const char *key,
			const char *query, struct strbuf *out)
{
	if (!strcmp(query, "uploads=")) {
		strbuf_clear(&fake->pieces);
		answer(out, 200, "", SLICE_LITERAL("<R><UploadId>a/b+c</UploadId></R>"));
		return;
	}
	assert_string_equal(query, "uploadId=a%2Fb%2Bc");
	assert_non_null(strstr(asked->body.data, "<PartNumber>2</PartNumber><ETag>\"e2\"</ETag>"));
	strbuf_clear(&find(fake, key, true)->bytes);
	strbuf_add_slice(&find(fake, key, true)->bytes, strbuf_slice(&fake->pieces));
	answer(out, 200, "", SLICE_LITERAL("<CompleteMultipartUploadResult/>"));
}

static void answer_put(struct fake *fake, const struct asked *asked, const char *key,
		       const char *query, struct strbuf *out)
{
	char only_new[256], tag[64];
	struct object *object;
	int piece;

	if (sscanf(query, "partNumber=%d&uploadId=a%%2Fb%%2Bc", &piece) == 1) {
		if (piece == 1) /* sent again: it replaces */
			strbuf_clear(&fake->pieces);
		else if (fake->pieces.len > S3_PIECE_BYTES)
			fake->pieces.len = S3_PIECE_BYTES;
		strbuf_add_slice(&fake->pieces, strbuf_slice(&asked->body));
		snprintf(tag, sizeof(tag), "etag: \"e%d\"\r\n", piece);
		answer(out, 200, tag, (struct slice){ 0 });
		return;
	}
	if (header(asked, "if-none-match", only_new)[0] && find(fake, key, false)) {
		answer_error(out, 412, "PreconditionFailed");
		return;
	}
	object = find(fake, key, true);
	strbuf_clear(&object->bytes);
	strbuf_add_slice(&object->bytes, strbuf_slice(&asked->body));
	answer(out, 200, "", (struct slice){ 0 });
}

static void answer_get(struct fake *fake, const struct asked *asked, const char *key,
		       struct strbuf *out)
{
	struct object *object = find(fake, key, false);
	unsigned long from, to;
	char range[256];

	if (!object) {
		answer_error(out, 404, "NoSuchKey");
	} else if (sscanf(header(asked, "range", range), "bytes=%lu-%lu", &from, &to) == 2) {
		struct slice bytes = slice_tail(strbuf_slice(&object->bytes), from);

		if (bytes.len > to - from + 1)
			bytes.len = to - from + 1;
		if (!bytes.len)
			answer_error(out, 416, "InvalidRange");
		else
			answer(out, 206, "", bytes);
	} else {
		answer(out, 200, "", strbuf_slice(&object->bytes));
	}
	if (!strcmp(asked->method, "HEAD"))
		out->len = (size_t)(strstr(out->data, "\r\n\r\n") + 4 - out->data);
}

static void answer_delete(struct fake *fake, const char *key, const char *query, struct strbuf *out)
{
	struct object *object = find(fake, key, false);

	if (*query) {
		fake->aborted++;
	} else if (object) {
		strbuf_free(&object->bytes);
		*object = fake->objects[--fake->count];
		fake->objects[fake->count] = (struct object){ 0 };
	}
	answer(out, 204, "", (struct slice){ 0 });
}

/* What the metadata services of instances and containers say. */
static bool answer_metadata(struct fake *fake, const struct asked *asked, struct strbuf *out)
{
	char text[256], body[256];

	if (!strcmp(asked->target, "/latest/api/token")) {
		assert_string_equal(asked->method, "PUT");
		answer(out, 200, "", SLICE_LITERAL("TOKEN"));
	} else if (!strcmp(asked->target, "/latest/meta-data/iam/security-credentials/")) {
		assert_string_equal(header(asked, "x-aws-ec2-metadata-token", text), "TOKEN");
		answer(out, 200, "", SLICE_LITERAL("the-role\n"));
	} else if (!strcmp(asked->target, "/latest/meta-data/iam/security-credentials/the-role") ||
		   !strcmp(asked->target, "/container?a=b")) {
		if (asked->target[1] == 'c')
			assert_string_equal(header(asked, "authorization", text), "SECRET");
		snprintf(body, sizeof(body),
			 "{\"AccessKeyId\":\"K%d\",\"SecretAccessKey\":\"S\",\"Token\":\"T\","
			 "\"Expiration\":\"2100-01-01T00:00:00Z\"}",
			 ++fake->key_number);
		answer(out, 200, "", slice_of(body));
	} else {
		return false;
	}
	return true;
}

/* Each request says the hash of its body and who asks. */
static void check_signed(const struct asked *asked)
{
	char hash[S3_SIGN_HASH_BYTES], said[256];

	s3_sign_hash(strbuf_slice(&asked->body), hash);
	assert_string_equal(header(asked, "x-amz-content-sha256", said), hash);
	assert_int_equal(strncmp(header(asked, "authorization", said), "AWS4-HMAC-SHA256 ", 17), 0);
}

static bool refuses(struct fake *fake, const struct asked *asked, struct strbuf *out)
{
	char right[S3_SIGN_TIME_BYTES], said[256], date[64], more[80];
	time_t now = fake->time_ns / CLOCK_NS_PER_S;
	struct tm parts;

	if (fake->fault == FAULT_SKEW) {
		s3_sign_time(fake->time_ns, right);
		header(asked, "x-amz-date", said);
		if (!strncmp(right, said, 11)) /* the hour */
			return false;
		gmtime_r(&now, &parts);
		strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
		snprintf(more, sizeof(more), "Date: %s\r\n", date);
		answer(out, 403, more,
		       SLICE_LITERAL("<Error><Code>RequestTimeTooSkewed</Code></Error>"));
		return true;
	}
	if (fake->requests != fake->at)
		return false;
	if (fake->fault == FAULT_500)
		answer(out, 500, "", (struct slice){ 0 });
	else if (fake->fault == FAULT_SLOW_DOWN)
		answer_error(out, 503, "SlowDown");
	else if (fake->fault == FAULT_DENIED)
		answer_error(out, 403, "AccessDenied");
	else if (fake->fault == FAULT_EXPIRED)
		answer_error(out, 400, "ExpiredToken");
	return out->len > 0;
}

/* False: the connection ends. */
static bool serve(struct fake *fake, const struct asked *asked, struct strbuf *out)
{
	char path[2048], key[128] = "";
	const char *query = "";
	char *mark;

	fake->requests++;
	if (answer_metadata(fake, asked, out))
		return true;
	check_signed(asked);
	if (refuses(fake, asked, out))
		return true;
	if (fake->requests == fake->at && fake->fault == FAULT_LOST_REQUEST)
		return false;
	snprintf(path, sizeof(path), "%s", asked->target);
	mark = strchr(path, '?');
	if (mark) {
		*mark = '\0';
		query = mark + 1;
	}
	assert_int_equal(strncmp(path, "/bucket", 7), 0);
	if (path[7])
		snprintf(key, sizeof(key), "%.127s", path + 8);
	if (!key[0])
		answer_list(fake, query, out);
	else if (!strcmp(asked->method, "PUT"))
		answer_put(fake, asked, key, query, out);
	else if (!strcmp(asked->method, "POST"))
		answer_post(fake, asked, key, query, out);
	else if (!strcmp(asked->method, "DELETE"))
		answer_delete(fake, key, query, out);
	else
		answer_get(fake, asked, key, out);
	if (fake->requests != fake->at)
		return true;
	if (fake->fault == FAULT_CUT_ANSWER)
		out->len = out->len / 2;
	return fake->fault != FAULT_LOST_ANSWER && fake->fault != FAULT_CUT_ANSWER;
}

static bool read_request(int fd, struct asked *asked)
{
	char piece[65536], length[256];
	size_t want = SIZE_MAX, begin = 0;
	struct strbuf all = { 0 };

	*asked = (struct asked){ 0 };
	while (all.len < want) {
		ssize_t got = recv(fd, piece, sizeof(piece), 0);
		const char *end;

		if (got <= 0)
			break;
		strbuf_add(&all, piece, (size_t)got);
		end = begin ? NULL : strstr(all.data, "\r\n\r\n");
		if (!end)
			continue;
		begin = (size_t)(end + 4 - all.data);
		strbuf_add(&asked->head, all.data, begin);
		want = begin + strtoull(header(asked, "content-length", length), NULL, 10);
	}
	if (all.len < want) {
		strbuf_free(&all);
		strbuf_free(&asked->head);
		return false;
	}
	strbuf_add(&asked->body, all.data + begin, want - begin);
	assert_int_equal(sscanf(all.data, "%15s %2047s", asked->method, asked->target), 2);
	strbuf_free(&all);
	return true;
}

static void *speak(void *context)
{
	const struct speaker *speaker = context;
	struct fake *fake = speaker->fake;
	struct asked asked;
	bool goes_on = true;

	while (goes_on && read_request(speaker->fd, &asked)) {
		struct strbuf out = { 0 };

		pthread_mutex_lock(&fake->mutex);
		goes_on = serve(fake, &asked, &out);
		if (!goes_on && fake->fault == FAULT_LOST_ANSWER)
			out.len = 0;
		pthread_mutex_unlock(&fake->mutex);
		if (out.len)
			(void)!send(speaker->fd, out.data, out.len, MSG_NOSIGNAL);
		strbuf_free(&out);
		strbuf_free(&asked.head);
		strbuf_free(&asked.body);
	}
	close(speaker->fd);
	return NULL;
}

static void *run(void *context)
{
	struct fake *fake = context;

	for (;;) {
		int fd = accept(fake->fd, NULL, NULL);
		size_t i = fake->connections;

		if (fd < 0)
			return NULL;
		assert(i < CONNECTIONS_MAX);
		fake->spoken[i] = (struct speaker){ fake, fd };
		fake->connections++;
		assert_int_equal(pthread_create(&fake->speakers[i], NULL, speak, &fake->spoken[i]),
				 0);
	}
}

static struct fake *fake_start(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	struct fake *fake = mem_new(struct fake);

	fake->page = 1000;
	pthread_mutex_init(&fake->mutex, NULL);
	fake->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fake->fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fake->fd, 8), 0);
	assert_int_equal(getsockname(fake->fd, (struct sockaddr *)&address, &len), 0);
	fake->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&fake->thread, NULL, run, fake), 0);
	return fake;
}

/* After the bucket was closed, and with it its connections. */
static void fake_stop(struct fake *fake)
{
	shutdown(fake->fd, SHUT_RDWR);
	pthread_join(fake->thread, NULL);
	for (size_t i = 0; i < fake->connections; i++)
		pthread_join(fake->speakers[i], NULL);
	close(fake->fd);
	pthread_mutex_destroy(&fake->mutex);
	for (size_t i = 0; i < fake->count; i++)
		strbuf_free(&fake->objects[i].bytes);
	strbuf_free(&fake->pieces);
	free(fake);
}

static void own_keys(void)
{
	setenv("AWS_ACCESS_KEY_ID", "AK", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "SK", 1);
	unsetenv("AWS_SESSION_TOKEN");
}

static struct bucket *open_at(const struct fake *fake, const char *url)
{
	char endpoint[64];
	struct s3_options options = { .url = url, .endpoint = endpoint, .retry_ns = 1000 };
	struct bucket *bucket = NULL;
	struct err err;

	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", fake->port);
	if (s3_open(&options, &bucket, &err))
		fail_msg("%s", err.message);
	return bucket;
}

static int add_key(void *context, const struct bucket_entry *entry, struct err *err)
{
	(void)err;
	strbuf_addf(context, "%.*s=%llu ", SLICE_FMT(entry->key), (unsigned long long)entry->bytes);
	return 0;
}

#define OK(call)                                                                                   \
	do {                                                                                       \
		if (call)                                                                          \
			fail_msg("fault %d at %d: %s", fake->fault, fake->at, err.message);        \
	} while (0)

/* Puts, reads, lists and removes; says what it must. */
static void use(struct fake *fake, struct bucket *bucket)
{
	struct strbuf text = { 0 };
	struct err err = { 0 };
	uint64_t bytes = 0;

	OK(bucket->put(bucket, "part/1", SLICE_LITERAL("0123456789"), false, &err));
	OK(bucket->put(bucket, "part/2", SLICE_LITERAL(""), false, &err));
	OK(bucket->size(bucket, "part/1", &bytes, &err));
	assert_int_equal(bytes, 10);
	OK(bucket->get_range(bucket, "part/1", 3, 4, &text, &err));
	OK(bucket->get(bucket, "part/1", 100, &text, &err));
	OK(bucket->list(bucket, "part/", NULL, false, add_key, &text, &err));
	OK(bucket->remove(bucket, "part/2", &err));
	OK(bucket->list(bucket, "", "part/1", false, add_key, &text, &err));
	assert_string_equal(text.data, "34560123456789part/1=10 part/2=0 ");
	assert_int_equal(bucket->get(bucket, "part/2", 100, &text, &err), -ERR_NOT_FOUND);
	assert_int_equal(bucket->get_range(bucket, "part/1", 8, 4, &text, &err), -ERR_INVALID);
	strbuf_free(&text);
}

static void each_call_survives_one_fault(void **state)
{
	int calls;

	(void)state;
	own_keys();
	for (enum fault fault = FAULT_NONE; fault < FAULT_KINDS; fault++) {
		calls = 12;
		for (int at = 1; at <= calls; at++) {
			struct fake *fake = fake_start();
			struct bucket *bucket = open_at(fake, "s3://bucket/some/prefix/");

			fake->fault = fault;
			fake->at = at;
			use(fake, bucket);
			assert_int_equal(fake->count, 1);
			assert_string_equal(fake->objects[0].key, "some/prefix/part/1");
			bucket->close(bucket);
			fake_stop(fake);
			if (!fault)
				break;
		}
	}
}

static void new_objects_are_put_once(void **state)
{
	(void)state;
	for (enum fault fault = FAULT_NONE; fault < FAULT_KINDS; fault++) {
		struct fake *fake = fake_start();
		struct bucket *bucket = open_at(fake, "s3://bucket");
		bool may_be_ours = fault == FAULT_LOST_ANSWER || fault == FAULT_CUT_ANSWER;
		struct err err = { 0 };
		int rc;

		fake->fault = fault;
		fake->at = 1;
		rc = bucket->put(bucket, "m/1", SLICE_LITERAL("first"), true, &err);
		assert_int_equal(rc, may_be_ours ? -ERR_EXISTS : 0);
		rc = bucket->put(bucket, "m/1", SLICE_LITERAL("second"), true, &err);
		assert_int_equal(rc, -ERR_EXISTS);
		assert_string_equal(fake->objects[0].bytes.data, "first");
		bucket->close(bucket);
		fake_stop(fake);
	}
}

static int read_pattern(void *context, void *data, size_t len, uint64_t offset, struct err *err)
{
	(void)err;
	for (size_t i = 0; i < len; i++)
		((unsigned char *)data)[i] = (unsigned char)((offset + i) * 31 >> 3);
	return context && offset ? err_set(err, ERR_IO, "read: gone") : 0;
}

static void large_objects_go_in_pieces(void **state)
{
	struct bucket_source source = { S3_PIECE_BYTES + 12345, read_pattern, NULL };

	(void)state;
	for (int at = 0; at <= 4; at++) {
		struct fake *fake = fake_start();
		struct bucket *bucket = open_at(fake, "s3://bucket");
		struct err err = { 0 };
		unsigned char last;

		fake->fault = at % 2 ? FAULT_LOST_ANSWER : FAULT_SLOW_DOWN;
		fake->at = at;
		OK(bucket->put_source(bucket, "large", &source, &err));
		assert_int_equal(fake->objects[0].bytes.len, source.bytes);
		read_pattern(NULL, &last, 1, source.bytes - 1, NULL);
		assert_int_equal((unsigned char)fake->objects[0].bytes.data[source.bytes - 1],
				 last);
		assert_int_equal(fake->aborted, 0);
		source.context = &source;
		assert_int_equal(bucket->put_source(bucket, "other", &source, &err), -ERR_IO);
		assert_int_equal(fake->aborted, 1);
		assert_int_equal(fake->count, 1);
		source.context = NULL;
		bucket->close(bucket);
		fake_stop(fake);
	}
}

static void long_lists_come_page_by_page(void **state)
{
	struct fake *fake = fake_start();
	struct bucket *bucket = open_at(fake, "s3://bucket/p");
	struct strbuf text = { 0 };
	struct err err = { 0 };

	(void)state;
	fake->page = 2;
	for (int i = 0; i < 7; i++) {
		char key[16];

		snprintf(key, sizeof(key), "k/%d", i);
		OK(bucket->put(bucket, key, SLICE_LITERAL("x"), false, &err));
	}
	OK(bucket->list(bucket, "k/", "k/1", false, add_key, &text, &err));
	assert_string_equal(text.data, "k/2=1 k/3=1 k/4=1 k/5=1 k/6=1 ");
	strbuf_free(&text);
	bucket->close(bucket);
	fake_stop(fake);
}

static void refusals_are_not_repeated(void **state)
{
	struct fake *fake = fake_start();
	struct bucket *bucket = open_at(fake, "s3://bucket");
	struct strbuf text = { 0 };
	struct err err = { 0 };

	(void)state;
	fake->fault = FAULT_DENIED;
	fake->at = 1;
	assert_int_equal(bucket->get(bucket, "k", 100, &text, &err), -ERR_DENIED);
	assert_non_null(strstr(err.message, "AccessDenied"));
	assert_non_null(strstr(err.message, "s3://bucket/k"));
	assert_int_equal(fake->requests, 1);
	fake->at = 0;
	OK(bucket->put(bucket, "k", SLICE_LITERAL("0123456789"), false, &err));
	assert_int_equal(bucket->get(bucket, "k", 9, &text, &err), -ERR_LIMIT);
	assert_int_equal(fake->requests, 3);
	bucket->close(bucket);
	fake_stop(fake);
	strbuf_free(&text);
}

static void a_wrong_clock_is_corrected(void **state)
{
	struct fake *fake = fake_start();
	struct bucket *bucket = open_at(fake, "s3://bucket");
	struct err err = { 0 };

	(void)state;
	fake->fault = FAULT_SKEW;
	/* Half past the hour, so that no hour ends under way: the fake looks at that. */
	fake->time_ns = (clock_real_ns() / HOUR_NS - 24) * HOUR_NS + HOUR_NS / 2;
	OK(bucket->put(bucket, "a", SLICE_LITERAL("x"), false, &err));
	assert_int_equal(fake->requests, 2);
	OK(bucket->put(bucket, "b", SLICE_LITERAL("x"), false, &err));
	assert_int_equal(fake->requests, 3); /* it is known from then on */
	bucket->close(bucket);
	fake_stop(fake);
}

static void keys_come_from_metadata_services(void **state)
{
	struct fake *fake = fake_start();
	struct bucket *bucket = open_at(fake, "s3://bucket");
	struct s3_credentials keys;
	struct err err = { 0 };
	char url[64];

	(void)state;
	unsetenv("AWS_ACCESS_KEY_ID");
	setenv("HOME", "/nonexistent", 1);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", fake->port);
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, 1);
	fake->fault = FAULT_EXPIRED;
	fake->at = 4; /* behind the three that ask for keys */
	OK(bucket->put(bucket, "a", SLICE_LITERAL("x"), false, &err));
	assert_int_equal(fake->key_number, 2);
	assert_int_equal(fake->requests, 8);
	bucket->close(bucket);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/container?a=b", fake->port);
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "SECRET", 1);
	OK(s3_credentials_find(NULL, NULL, &keys, &err));
	assert_string_equal(strbuf_text(&keys.access_key), "K3");
	assert_true(keys.ask_again_ns > clock_real_ns() + 86400 * CLOCK_NS_PER_S);
	s3_credentials_free(&keys);
	unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	assert_int_equal(s3_credentials_find(NULL, NULL, &keys, &err), -ERR_NOT_FOUND);
	fake_stop(fake);
}

static void keys_come_from_files(void **state)
{
	static const char text[] = "# mine\n[default]\naws_access_key_id = A\n"
				   "aws_secret_access_key =S/+=x\n[profile two]\r\n"
				   "aws_access_key_id=B\r\naws_secret_access_key=C\r\n"
				   "aws_session_token=D\r\n[half]\naws_access_key_id=A\n";
	struct s3_credentials keys;
	struct err err;

	(void)state;
	assert_int_equal(s3_credentials_of_file(slice_of(text), "default", &keys, &err), 0);
	assert_string_equal(strbuf_text(&keys.secret_key), "S/+=x");
	s3_credentials_free(&keys);
	assert_int_equal(s3_credentials_of_file(slice_of(text), "two", &keys, &err), 0);
	assert_string_equal(strbuf_text(&keys.token), "D");
	s3_credentials_free(&keys);
	assert_int_equal(s3_credentials_of_file(slice_of(text), "half", &keys, &err), -ERR_INVALID);
	assert_int_equal(s3_credentials_of_file(slice_of(text), "none", &keys, &err),
			 -ERR_NOT_FOUND);
}

static void addresses_are_checked(void **state)
{
	static const char *const bad[] = { "",	       "bucket",     "http://bucket", "s3://",
					   "s3:///a",  "s3://a b",   "s3://a?b",      "s3://a/b?c",
					   "s3://a/%", "s3://a\nb/c" };
	struct bucket *bucket;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct s3_options options = { .url = bad[i] };

		if (s3_open(&options, &bucket, &err) != -ERR_INVALID)
			fail_msg("\"%s\" is taken", bad[i]);
	}
	const struct s3_options with_path = { .url = "s3://b", .endpoint = "http://h:1/path" };

	assert_int_equal(s3_open(&with_path, &bucket, &err), -ERR_INVALID);
}

/*
 * Against a server that is not ours, where FIRN_TEST_S3 names one: http://HOST:PORT/BUCKET, with
 * keys in the environment.
 */
static void a_real_server_agrees(void **state)
{
	const char *where = getenv("FIRN_TEST_S3");
	struct bucket_source source = { 2 * S3_PIECE_BYTES + 12345, read_pattern, NULL };
	struct strbuf text = { 0 }, url = { 0 };
	char endpoint[256];
	struct s3_options options = { .endpoint = endpoint };
	struct bucket *bucket;
	struct err err = { 0 };
	uint64_t bytes;
	char *slash;

	(void)state;
	if (!where) {
		print_message("# skip: FIRN_TEST_S3 names no server\n");
		skip();
	}
	snprintf(endpoint, sizeof(endpoint), "%s", where);
	slash = strrchr(endpoint, '/');
	*slash = '\0';
	strbuf_addf(&url, "s3://%s/test=%lld", slash + 1, (long long)clock_real_ns());
	options.url = url.data;
	struct fake none = { 0 }, *fake = &none; /* for OK */

	OK(s3_open(&options, &bucket, &err));
	for (int i = 0; i < 2; i++)
		assert_int_equal(bucket->put(bucket, "m/1", SLICE_LITERAL("new"), true, &err),
				 i ? -ERR_EXISTS : 0);
	OK(bucket->put(bucket, "a+b/c", SLICE_LITERAL("0123456789"), false, &err));
	OK(bucket->put(bucket, "empty", SLICE_LITERAL(""), false, &err));
	OK(bucket->put_source(bucket, "large", &source, &err));
	OK(bucket->size(bucket, "large", &bytes, &err));
	assert_int_equal(bytes, source.bytes);
	OK(bucket->get_range(bucket, "large", S3_PIECE_BYTES - 5, 10, &text, &err));
	char expected[10];
	read_pattern(NULL, expected, 10, S3_PIECE_BYTES - 5, NULL);
	assert_memory_equal(text.data, expected, 10);
	strbuf_clear(&text);
	assert_int_equal(bucket->get_range(bucket, "a+b/c", 8, 4, &text, &err), -ERR_INVALID);
	assert_int_equal(bucket->get(bucket, "none", 10, &text, &err), -ERR_NOT_FOUND);
	assert_int_equal(bucket->size(bucket, "none", &bytes, &err), -ERR_NOT_FOUND);
	OK(bucket->list(bucket, "", NULL, false, add_key, &text, &err));
	assert_string_equal(text.data, "a+b/c=10 empty=0 large=33566777 m/1=3 ");
	strbuf_clear(&text);
	OK(bucket->list(bucket, "", "large", true, add_key, &text, &err));
	assert_string_equal(text.data, "m/=0 ");
	OK(bucket->remove(bucket, "large", &err));
	OK(bucket->remove(bucket, "large", &err));
	bucket->close(bucket);
	setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
	OK(s3_open(&options, &bucket, &err));
	assert_int_equal(bucket->get(bucket, "empty", 10, &text, &err), -ERR_DENIED);
	bucket->close(bucket);
	strbuf_free(&text);
	strbuf_free(&url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_real_server_agrees), /* with the keys that it was given */
		cmocka_unit_test(each_call_survives_one_fault),
		cmocka_unit_test(new_objects_are_put_once),
		cmocka_unit_test(large_objects_go_in_pieces),
		cmocka_unit_test(long_lists_come_page_by_page),
		cmocka_unit_test(refusals_are_not_repeated),
		cmocka_unit_test(a_wrong_clock_is_corrected),
		cmocka_unit_test(keys_come_from_metadata_services),
		cmocka_unit_test(keys_come_from_files),
		cmocka_unit_test(addresses_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
