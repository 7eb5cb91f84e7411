/* SPDX-License-Identifier: Apache-2.0 */
/* firn debuginfo - sends files with symbols to a server, and lists what it has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/defaults.h"
#include "cli/output_file.h"
#include "cli/verb.h"
#include "codec/elf.h"
#include "codec/pb.h"
#include "codec/sha256.h"
#include "net/client.h"
#include "net/grpc.h"

#define SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define TYPE_EXECUTABLE 1 /* DebuginfoType */
#define STRATEGY_GRPC 1	  /* UploadInstructions.UploadStrategy */
#define PIECE_BYTES ((size_t)1 << 20)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define LIST_BYTES_MAX ((size_t)1 << 30)
#define CALL_TIMEOUT_NS (30 * CLOCK_NS_PER_S)
#define BYTES_PER_S_MIN 65536 /* what the time for an upload is reckoned from */
#define ATTEMPTS_MAX 6
#define PAUSE_NS (500 * CLOCK_NS_PER_MS)
#define BUSY_WAIT_NS (120 * CLOCK_NS_PER_S) /* for somebody else's upload of the same file */
#define PROGRESS_NS (200 * CLOCK_NS_PER_MS)

struct debuginfo_verb_options {
	struct verb_common common;
	const char *server;
	bool force;
	bool json;
};

#define AT(member) offsetof(struct debuginfo_verb_options, member)
#define SERVER_OPTION                                                                              \
	{                                                                                          \
		0, "server", OPTION_TEXT, AT(server), "URL", "default http://127.0.0.1:7070", 0, 0 \
	}

static const struct option upload_options[] = {
	SERVER_OPTION,
	{ 0, "force", OPTION_FLAG, AT(force), NULL,
	  "replace a file with symbols of the same kind; never a better one", 0, 0 },
	VERB_COMMON_OPTIONS,
};

static const struct option list_options[] = {
	SERVER_OPTION,
	{ 0, "json", OPTION_FLAG, AT(json), NULL, "as JSON, stable for scripts", 0, 0 },
	VERB_COMMON_OPTIONS,
};

static const struct option_verb upload_spec = {
	.name = "debuginfo upload",
	.operands = "FILE...",
	.summary = "send programs and debug files, so that frames have names",
	.details = "FILE is an ELF program, library or separate debug file; its build id is found "
		   "in it.\n"
		   "What the server has already is not sent. Profiles stored before gain the names "
		   "too.\n"
		   "Exits 0 when the server has all of them.\n\n"
		   "  objcopy --only-keep-debug app app.debug && strip app\n"
		   "  firn debuginfo upload --server http://firn:7070 app.debug",
	.options = upload_options,
	.options_count = VERB_COUNT_OF(upload_options),
};

static const struct option_verb list_spec = {
	.name = "debuginfo list",
	.operands = "",
	.summary = "what a server has been sent: build ids, files, what they are good for",
	.details = "Behind the files come the build ids that queries asked for in vain, and why.\n"
		   "The quality is the best source of names in the file: debug_info (DWARF), "
		   "symtab,\n"
		   "gopclntab, gnu_debugdata, dynsym or nothing.",
	.options = list_options,
	.options_count = VERB_COUNT_OF(list_options),
};

/* One file on its way. */
struct sending {
	const char *path;
	const struct debuginfo_verb_options *values;
	struct net_client *client;
	int fd;
	struct elf_info info;
	char sha256[2 * SHA256_DIGEST_BYTES + 1];
	char name_header[300];

	char id[128]; /* of the upload */
	uint64_t sent;
	bool is_begun; /* info was sent */
	int64_t told_at_ns;
};

static int hash_content(struct sending *sending, struct err *err)
{
	uint8_t digest[SHA256_DIGEST_BYTES];
	struct sha256 sha;
	struct strbuf piece = { 0 };
	uint64_t at = 0;
	ssize_t got;

	sha256_init(&sha);
	strbuf_reserve(&piece, PIECE_BYTES);
	while ((got = pread(sending->fd, piece.data, PIECE_BYTES, (off_t)at)) > 0) {
		sha256_add(&sha, piece.data, (size_t)got);
		at += (uint64_t)got;
	}
	strbuf_free(&piece);
	if (got < 0)
		return err_set_errno(err, errno, "read \"%s\"", sending->path);
	sha256_finish(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(sending->sha256 + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

/* The header that carries the file's name; none when it has bytes that a header must not have. */
static void set_name_header(struct sending *sending)
{
	const char *slash = strrchr(sending->path, '/');
	const char *name = slash ? slash + 1 : sending->path;

	for (const char *p = name; *p; p++)
		if (*p < ' ' || *p > '~')
			return;
	if (strlen(name) < 256)
		snprintf(sending->name_header, sizeof(sending->name_header),
			 "firn-file-name: %s\r\n", name);
}

static int open_file(struct sending *sending, struct err *err)
{
	struct stat status;
	int rc;

	sending->fd = open(sending->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (sending->fd < 0)
		return err_set_errno(err, errno, "open");
	if (fstat(sending->fd, &status) || !S_ISREG(status.st_mode))
		return err_set(err, ERR_INVALID, "not a regular file");
	rc = elf_read_info(sending->fd, sending->path, &sending->info, err);
	if (!rc)
		rc = hash_content(sending, err);
	set_name_header(sending);
	return rc;
}

/* BuildIDType: GNU 1, HASH 2, GO 3 */
static uint64_t id_type(const struct elf_info *info)
{
	return info->id_kind == ELF_ID_GNU ? 1 : info->id_kind == ELF_ID_HASH ? 2 : 3;
}

/* A refusal as an error whose code says whether it makes sense to begin anew. */
static int refusal(const struct net_reply *reply, struct err *err)
{
	enum err_code code = ERR_INVALID;

	if (reply->status != 200)
		return err_set(err, ERR_UNAVAILABLE, "the server answers HTTP %d", reply->status);
	if (reply->grpc_status == GRPC_ALREADY_EXISTS)
		code = ERR_EXISTS;
	else if (reply->grpc_status == GRPC_FAILED_PRECONDITION)
		code = ERR_BUSY;
	else if (reply->grpc_status == GRPC_UNAVAILABLE || reply->grpc_status == GRPC_NOT_FOUND ||
		 reply->retry_after_ns)
		code = ERR_UNAVAILABLE;
	return err_set(err, code, "the server refuses: %s", reply->grpc_message);
}

static int call(struct sending *sending, const char *path, struct net_call *call,
		struct strbuf *ret, struct err *err)
{
	struct net_reply reply = { .grpc_status = -1 };
	int rc;

	call->method = "POST";
	call->path = path;
	call->content_type = "application/grpc";
	call->headers = sending->name_header;
	call->grpc = true;
	call->body_bytes_max = ANSWER_BYTES_MAX;
	rc = net_client_call(sending->client, call, &reply, err);
	if (rc)
		return rc;
	if (reply.grpc_status)
		rc = refusal(&reply, err);
	else
		strbuf_add_slice(ret, strbuf_slice(&reply.body));
	strbuf_free(&reply.body);
	return rc;
}

static int call_with(struct sending *sending, const char *path, const struct strbuf *message,
		     struct strbuf *ret, struct err *err)
{
	struct net_call unary = { .body = strbuf_slice(message), .timeout_ns = CALL_TIMEOUT_NS };

	return call(sending, path, &unary, ret, err);
}

/*
 * ShouldInitiateUploadRequest{ build_id = 1; hash = 2; force = 3; type = 4; build_id_type = 5 }
 * ShouldInitiateUploadResponse{ should_initiate_upload = 1; reason = 2 }
 *
 * Not when somebody else was told to send either: whether he does, the next call tells.
 */
static int ask(struct sending *sending, bool *ret_present, struct err *err)
{
	struct strbuf message = { 0 }, answer = { 0 };
	struct slice reason = { 0 };
	struct pb_field field;
	bool is_wanted = false;
	int rc;

	pb_put_bytes(&message, 1, slice_of(sending->info.build_id));
	pb_put_bytes(&message, 2, slice_of(sending->sha256));
	pb_put_varint(&message, 3, sending->values->force);
	pb_put_varint(&message, 4, elf_has_offsets(&sending->info) ? TYPE_EXECUTABLE : 0);
	pb_put_varint(&message, 5, id_type(&sending->info));
	rc = call_with(sending, SERVICE "ShouldInitiateUpload", &message, &answer, err);
	if (!rc) {
		struct pb_reader in = pb_reader_of(strbuf_slice(&answer));

		while (pb_next(&in, &field)) {
			if (field.wire == PB_VARINT && field.number == 1)
				is_wanted = field.value;
			else if (field.wire == PB_BYTES && field.number == 2)
				reason = field.bytes;
		}
		*ret_present = !is_wanted && !memmem(reason.data ? reason.data : "", reason.len,
						     "in-progress", strlen("in-progress"));
	}
	strbuf_free(&message);
	strbuf_free(&answer);
	return rc;
}

/* InitiateUploadResponse{ upload_instructions = 1 { upload_id = 2; upload_strategy = 3 } } */
static int read_instructions(struct sending *sending, struct slice answer, struct err *err)
{
	struct pb_reader in = pb_reader_of(answer);
	struct slice instructions = { 0 };
	struct pb_field field;
	uint64_t strategy = 0;

	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			instructions = field.bytes;
	sending->id[0] = '\0';
	in = pb_reader_of(instructions);
	while (pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 2)
			snprintf(sending->id, sizeof(sending->id), "%.*s", SLICE_FMT(field.bytes));
		else if (field.wire == PB_VARINT && field.number == 3)
			strategy = field.value;
	}
	if (!sending->id[0] || strategy != STRATEGY_GRPC)
		return err_set(err, ERR_UNSUPPORTED, "the server wants the file in another way");
	return 0;
}

/*
 * InitiateUploadRequest{ build_id = 1; size = 2; hash = 3; force = 4; type = 5; build_id_type = 6 }
 */
static int begin(struct sending *sending, struct err *err)
{
	struct strbuf message = { 0 }, answer = { 0 };
	int rc;

	pb_put_bytes(&message, 1, slice_of(sending->info.build_id));
	pb_put_varint(&message, 2, sending->info.file_bytes);
	pb_put_bytes(&message, 3, slice_of(sending->sha256));
	pb_put_varint(&message, 4, sending->values->force);
	pb_put_varint(&message, 5, elf_has_offsets(&sending->info) ? TYPE_EXECUTABLE : 0);
	pb_put_varint(&message, 6, id_type(&sending->info));
	rc = call_with(sending, SERVICE "InitiateUpload", &message, &answer, err);
	if (!rc)
		rc = read_instructions(sending, strbuf_slice(&answer), err);
	strbuf_free(&message);
	strbuf_free(&answer);
	return rc;
}

static void tell_progress(struct sending *sending, bool is_over)
{
	int64_t now_ns = clock_monotonic_ns();

	if (!isatty(STDERR_FILENO) || (!is_over && now_ns - sending->told_at_ns < PROGRESS_NS))
		return;
	sending->told_at_ns = now_ns;
	fprintf(stderr, "\r%s: %llu of %llu MB%s", sending->path,
		(unsigned long long)(sending->sent >> 20),
		(unsigned long long)(sending->info.file_bytes >> 20), is_over ? "\n" : "");
}

/* UploadRequest{ info = 1 { build_id = 1; upload_id = 2; type = 3 } | chunk_data = 2 } */
static int next_message(void *context, struct strbuf *out, struct err *err)
{
	struct sending *sending = context;
	uint64_t left = sending->info.file_bytes - sending->sent;
	size_t begun, len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
	ssize_t got;

	if (!sending->is_begun) {
		begun = pb_begin(out, 1);
		pb_put_bytes(out, 1, slice_of(sending->info.build_id));
		pb_put_bytes(out, 2, slice_of(sending->id));
		pb_put_varint(out, 3, elf_has_offsets(&sending->info) ? TYPE_EXECUTABLE : 0);
		pb_end(out, begun);
		sending->is_begun = true;
		return 1;
	}
	if (!left)
		return 0;
	begun = pb_begin(out, 2);
	strbuf_reserve(out, len);
	got = pread(sending->fd, out->data + out->len, len, (off_t)sending->sent);
	if (got != (ssize_t)len)
		return got < 0 ? err_set_errno(err, errno, "read")
			       : err_set(err, ERR_IO, "the file became shorter while it was sent");
	out->len += len;
	pb_end(out, begun);
	sending->sent += len;
	tell_progress(sending, false);
	return 1;
}

static int send_content(struct sending *sending, struct err *err)
{
	struct net_call stream = {
		.next = next_message,
		.next_context = sending,
		.timeout_ns = CALL_TIMEOUT_NS + (int64_t)(sending->info.file_bytes /
							  BYTES_PER_S_MIN * CLOCK_NS_PER_S),
	};
	struct strbuf answer = { 0 };
	int rc;

	sending->sent = 0;
	sending->is_begun = false;
	rc = call(sending, SERVICE "Upload", &stream, &answer, err);
	tell_progress(sending, true);
	strbuf_free(&answer);
	return rc;
}

/* MarkUploadFinishedRequest{ build_id = 1; upload_id = 2; type = 3 } */
static int finish(struct sending *sending, struct err *err)
{
	struct strbuf message = { 0 }, answer = { 0 };
	int rc;

	pb_put_bytes(&message, 1, slice_of(sending->info.build_id));
	pb_put_bytes(&message, 2, slice_of(sending->id));
	rc = call_with(sending, SERVICE "MarkUploadFinished", &message, &answer, err);
	strbuf_free(&message);
	strbuf_free(&answer);
	return rc;
}

/* All calls, once. */
static int send_once(struct sending *sending, bool *ret_present, struct err *err)
{
	int rc = ask(sending, ret_present, err);

	if (rc || *ret_present)
		return rc;
	rc = begin(sending, err);
	if (rc == -ERR_EXISTS) {
		*ret_present = true;
		return 0;
	}
	if (!rc)
		rc = send_content(sending, err);
	return rc ? rc : finish(sending, err);
}

static bool may_retry(int rc)
{
	return rc == -ERR_UNAVAILABLE || rc == -ERR_BUSY || rc == -ERR_DEADLINE || rc == -ERR_IO;
}

/* What was cut off begins anew; somebody else's upload of the same file is waited for. */
static int send_file(struct sending *sending, bool *ret_present, struct err *err)
{
	int64_t give_up_at_ns = clock_monotonic_ns() + BUSY_WAIT_NS;
	int64_t pause_ns = PAUSE_NS;
	int rc;

	for (int attempt = 1;;) {
		struct timespec pause;

		rc = send_once(sending, ret_present, err);
		if (!may_retry(rc) || clock_monotonic_ns() > give_up_at_ns)
			return rc;
		if (rc != -ERR_BUSY && attempt++ == ATTEMPTS_MAX)
			return rc;
		pause = (struct timespec){ pause_ns / CLOCK_NS_PER_S, pause_ns % CLOCK_NS_PER_S };
		nanosleep(&pause, NULL);
		if (rc != -ERR_BUSY)
			pause_ns *= 2;
	}
}

static int upload_file(const struct debuginfo_verb_options *values, struct net_client *client,
		       const char *path, struct err *err)
{
	struct sending sending = { .path = path, .values = values, .client = client, .fd = -1 };
	bool is_present = false;
	int rc = open_file(&sending, err);

	if (!rc)
		rc = send_file(&sending, &is_present, err);
	if (sending.fd >= 0)
		close(sending.fd);
	if (rc)
		return err_wrap(err, "%s", path);
	printf("%s: build id %s: %s\n", path, sending.info.build_id,
	       is_present ? "the server has it already" : "sent");
	fflush(stdout);
	return 0;
}

static int run_upload(int argc, char **argv)
{
	struct debuginfo_verb_options values = { .server = DEFAULT_SERVER_URL };
	struct option_operands operands;
	struct net_client *client;
	struct err err;
	int code = verb_parse(&verb_debuginfo_upload, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (!operands.count) {
		err_set(&err, ERR_INVALID, "expected ELF files, for example app.debug");
		return verb_error(&verb_debuginfo_upload, &err);
	}
	if (net_client_new(values.server, &client, &err))
		return verb_error(&verb_debuginfo_upload, &err);
	code = VERB_OK;
	for (size_t i = 0; i < operands.count; i++)
		if (upload_file(&values, client, operands.items[i], &err))
			code = verb_error(&verb_debuginfo_upload, &err);
	net_client_free(client);
	return code;
}

static int run_list(int argc, char **argv)
{
	struct debuginfo_verb_options values = { .server = DEFAULT_SERVER_URL };
	struct net_call list = { .method = "GET",
				 .headers = "accept: text/plain\r\n",
				 .timeout_ns = CALL_TIMEOUT_NS,
				 .body_bytes_max = LIST_BYTES_MAX };
	struct option_operands operands;
	struct net_reply reply = { 0 };
	struct net_client *client;
	struct err err;
	int code = verb_parse(&verb_debuginfo_list, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (net_client_new(values.server, &client, &err))
		return verb_error(&verb_debuginfo_list, &err);
	list.path = values.json ? "/api/v1/debuginfo" : "/api/v1/debuginfo?format=text";
	code = net_client_call(client, &list, &reply, &err);
	net_client_free(client);
	if (!code && reply.status != 200)
		code = err_set(&err, ERR_UNAVAILABLE, "the server answers HTTP %d", reply.status);
	if (!code && values.json)
		strbuf_add_byte(&reply.body, '\n');
	if (!code)
		code = output_file_write("-", strbuf_slice(&reply.body), &err);
	strbuf_free(&reply.body);
	return code ? verb_error(&verb_debuginfo_list, &err) : VERB_OK;
}

const struct verb verb_debuginfo_upload = { &upload_spec, run_upload, LOG_WARN };
const struct verb verb_debuginfo_list = { &list_spec, run_list, LOG_WARN };
