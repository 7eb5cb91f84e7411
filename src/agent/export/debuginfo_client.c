/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/export/debuginfo_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/wire/pb.h"
#include "codec/wire/sha256.h"
#include "net/http/grpc.h"

#define SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define TYPE_EXECUTABLE 1 /* DebuginfoType */
#define TYPE_SOURCES 2
#define TYPE_SPLIT 100	/* firn's alone */
#define STRATEGY_GRPC 1 /* UploadInstructions.UploadStrategy */
/* Ours, unknown to Parca: UploadInstructions.received and UploadInfo.offset, bytes. */
#define FIELD_RESUME 100
/* Ours too, of both requests that offer a file: what names it can give (elf_quality_name). */
#define FIELD_QUALITY 101
#define PIECE_BYTES ((size_t)128 << 10) /* stays in a CPU's cache between its copies */
/*
 * Up to this an agent does not hash what it sends, which would double the cost: a build id comes
 * with it. The server compares what is as long as a SHA-256 with what it got, and keeps what came
 * of a larger upload that was cut off: that of a smaller one takes a few seconds again.
 */
#define UNHASHED_BYTES_MAX ((uint64_t)64 << 20)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define CALL_TIMEOUT_NS (30 * CLOCK_NS_PER_S)
#define BYTES_PER_S_MIN 65536 /* what the time for an upload is reckoned from */

/* One file on its way. */
struct sending {
	const struct debuginfo_client_file *file;
	struct net_client *client;
	struct elf_info info;
	char hash[2 * SHA256_DIGEST_BYTES + 1]; /* hex; empty: not known yet */
	char headers[400];

	char id[128];	   /* of the upload */
	uint64_t received; /* bytes that the server has from an upload that was cut off */
	uint64_t sent;
	bool is_begun; /* info was sent */
};

/* Exactly so many bytes of what is sent. */
static int read_content(const struct sending *sending, uint64_t at, char *into, size_t len,
			struct err *err)
{
	const struct debuginfo_client_file *file = sending->file;
	ssize_t got;

	if (file->extract)
		return elf_extract_read(file->extract, at, into, len, err);
	got = pread(file->fd, into, len, (off_t)at);
	if (got < 0)
		return err_set_errno(err, errno, "read \"%s\"", file->path);
	if ((size_t)got != len)
		return err_set(err, ERR_IO, "read \"%s\": it became shorter", file->path);
	return 0;
}

static int hash_content(struct sending *sending, struct err *err)
{
	uint8_t digest[SHA256_DIGEST_BYTES];
	struct sha256 sha;
	struct strbuf piece = { 0 };
	uint64_t left;
	int rc = 0;

	sha256_init(&sha);
	strbuf_reserve(&piece, PIECE_BYTES);
	for (uint64_t at = 0; !rc && (left = sending->info.file_bytes - at);) {
		size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

		rc = read_content(sending, at, piece.data, len, err);
		sha256_add(&sha, piece.data, len);
		at += len;
	}
	strbuf_free(&piece);
	if (rc)
		return rc;
	sha256_finish(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(sending->hash + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

/* What tells the file's content from another's. */
static int identify_content(struct sending *sending, struct err *err)
{
	const struct debuginfo_client_file *file = sending->file;

	if (!file->is_agent || !file->extract || sending->info.file_bytes > UNHASHED_BYTES_MAX)
		return hash_content(sending, err);
	snprintf(sending->hash, sizeof(sending->hash), "%016" PRIx64,
		 elf_extract_fingerprint(file->extract));
	return 0;
}

static bool fits_header(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			return false;
	return strlen(text) < 256;
}

/* Adds the sender, and the file's name unless it has bytes that a header must not have. */
static void set_headers(struct sending *sending)
{
	const char *slash = strrchr(sending->file->path, '/');
	const char *name = slash ? slash + 1 : sending->file->path;
	int len = 0;

	if (sending->file->is_agent)
		len = snprintf(sending->headers, sizeof(sending->headers),
			       "firn-sender: agent\r\n");
	if (fits_header(name))
		snprintf(sending->headers + len, sizeof(sending->headers) - (size_t)len,
			 "firn-file-name: %s\r\n", name);
}

static uint64_t type_of(const struct sending *sending)
{
	if (sending->file->belongs_to)
		return sending->file->is_package ? TYPE_SPLIT : TYPE_SOURCES;
	return elf_has_offsets(&sending->info) ? TYPE_EXECUTABLE : 0;
}

/* BuildIDType: unknown 0, GNU 1, HASH 2, GO 3 */
static uint64_t id_type(const struct elf_info *info)
{
	if (info->id_kind == ELF_ID_NONE)
		return 0;
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
	call->headers = sending->headers;
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

static void put_quality(const struct sending *sending, struct strbuf *message)
{
	if (sending->file->quality != ELF_QUALITY_NOTHING)
		pb_put_bytes(message, FIELD_QUALITY,
			     slice_of(elf_quality_name(sending->file->quality)));
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
	char other[24] = "";
	int rc;

	/*
	 * A server whose file is poor takes another one, which it tells by the hash. That costs
	 * reading all of a file which is not wanted most of the time: what is no hash of anything
	 * does as well, until it is.
	 */
	if (sending->file->is_debug_file && !sending->hash[0])
		snprintf(other, sizeof(other), "%016" PRIx64, sending->info.file_bytes);
	pb_put_bytes(&message, 1, slice_of(sending->info.build_id));
	pb_put_bytes(&message, 2, slice_of(other[0] ? other : sending->hash));
	pb_put_varint(&message, 3, sending->file->is_forced);
	pb_put_varint(&message, 4, type_of(sending));
	pb_put_varint(&message, 5, id_type(&sending->info));
	put_quality(sending, &message);
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

/*
 * InitiateUploadResponse{ upload_instructions = 1 { upload_id = 2; upload_strategy = 3;
 * received = 100 } }
 */
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
	sending->received = 0;
	in = pb_reader_of(instructions);
	while (pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 2)
			snprintf(sending->id, sizeof(sending->id), "%.*s", SLICE_FMT(field.bytes));
		else if (field.wire == PB_VARINT && field.number == 3)
			strategy = field.value;
		else if (field.wire == PB_VARINT && field.number == FIELD_RESUME &&
			 field.value <= sending->info.file_bytes)
			sending->received = field.value;
	}
	if (!sending->id[0] || strategy != STRATEGY_GRPC)
		return err_set(err, ERR_UNSUPPORTED, "the server requires another way to upload");
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
	pb_put_bytes(&message, 3, slice_of(sending->hash));
	pb_put_varint(&message, 4, sending->file->is_forced);
	pb_put_varint(&message, 5, type_of(sending));
	pb_put_varint(&message, 6, id_type(&sending->info));
	put_quality(sending, &message);
	rc = call_with(sending, SERVICE "InitiateUpload", &message, &answer, err);
	if (!rc)
		rc = read_instructions(sending, strbuf_slice(&answer), err);
	strbuf_free(&message);
	strbuf_free(&answer);
	return rc;
}

/* UploadRequest{ info = 1 { build_id = 1; upload_id = 2; type = 3; offset = 100 } | chunk_data = 2
 * }
 */
static int next_message(void *context, struct strbuf *out, struct err *err)
{
	struct sending *sending = context;
	uint64_t left = sending->info.file_bytes - sending->sent;
	size_t begun, len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
	int rc;

	if (!sending->is_begun) {
		begun = pb_begin(out, 1);
		pb_put_bytes(out, 1, slice_of(sending->info.build_id));
		pb_put_bytes(out, 2, slice_of(sending->id));
		pb_put_varint(out, 3, type_of(sending));
		pb_put_varint(out, FIELD_RESUME, sending->received);
		pb_end(out, begun);
		sending->is_begun = true;
		return 1;
	}
	if (!left)
		return 0;
	begun = pb_begin(out, 2);
	strbuf_reserve(out, len);
	rc = read_content(sending, sending->sent, out->data + out->len, len, err);
	if (rc)
		return rc;
	out->len += len;
	pb_end(out, begun);
	sending->sent += len;
	if (sending->file->progress &&
	    !sending->file->progress(sending->file->progress_context, sending->sent,
				     sending->info.file_bytes))
		return err_set(err, ERR_CANCELLED, "given up");
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

	sending->sent = sending->received;
	sending->is_begun = false;
	rc = call(sending, SERVICE "Upload", &stream, &answer, err);
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
	pb_put_varint(&message, 3, type_of(sending));
	rc = call_with(sending, SERVICE "MarkUploadFinished", &message, &answer, err);
	strbuf_free(&message);
	strbuf_free(&answer);
	return rc;
}

/* All calls. The hash costs reading the file: an agent asks before it takes the trouble. */
static int send_all(struct sending *sending, bool *ret_present, struct err *err)
{
	int rc = 0;

	if (sending->file->hash_first)
		rc = identify_content(sending, err);
	if (!rc)
		rc = ask(sending, ret_present, err);
	if (rc || *ret_present)
		return rc;
	if (!sending->file->hash_first)
		rc = identify_content(sending, err);
	if (!rc)
		rc = begin(sending, err);
	if (rc == -ERR_EXISTS) {
		*ret_present = true;
		return 0;
	}
	if (!rc)
		rc = send_content(sending, err);
	return rc ? rc : finish(sending, err);
}

static int read_identity(struct sending *sending, struct err *err)
{
	const struct debuginfo_client_file *file = sending->file;
	struct stat status;
	int rc;

	if (!file->belongs_to) {
		rc = elf_read_info(file->fd, file->path, &sending->info, err);
		if (!rc && file->extract)
			sending->info.file_bytes = elf_extract_bytes(file->extract);
		return rc;
	}
	if (fstat(file->fd, &status))
		return err_set_errno(err, errno, "look at \"%s\"", file->path);
	sending->info.file_bytes = (uint64_t)status.st_size;
	snprintf(sending->info.build_id, sizeof(sending->info.build_id), "%s", file->belongs_to);
	return 0;
}

int debuginfo_client_send(struct net_client *client, const struct debuginfo_client_file *file,
			  char ret_build_id[ELF_BUILD_ID_TEXT_BYTES], bool *ret_present,
			  struct err *err)
{
	struct sending sending = { .file = file, .client = client };
	bool is_present = false;
	int rc = read_identity(&sending, err);

	if (rc)
		return rc;
	set_headers(&sending);
	rc = send_all(&sending, &is_present, err);
	if (rc)
		return rc;
	memcpy(ret_build_id, sending.info.build_id, sizeof(sending.info.build_id));
	*ret_present = is_present;
	return 0;
}
