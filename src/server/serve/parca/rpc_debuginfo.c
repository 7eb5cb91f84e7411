/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_debuginfo - parca.debuginfo.v1alpha1.DebuginfoService over gRPC. Field numbers:
 * parca/debuginfo/v1alpha1/debuginfo.proto. Parca's agent compares the texts of reasons, so those
 * that it has are its words.
 */
#include "base/mem.h"
#include "codec/wire/pb.h"
#include "net/http/grpc.h"
#include "server/serve/serve.h"
#include "server/serve/tenant.h"

/* DebuginfoType */
#define TYPE_EXECUTABLE 1
#define TYPE_SOURCES 2
#define TYPE_SPLIT 100 /* ours: a package of split DWARF of the program */

#define STRATEGY_GRPC 1
#define NAME_HEADER "firn-file-name"
#define SENDER_HEADER "firn-sender"
/*
 * Ours, beside Parca's: UploadInstructions.received says how many bytes of the file are here from
 * an upload that was cut off, UploadInfo.offset behind how many of them the content begins.
 */
#define FIELD_RESUME 100
/* Ours too, of both requests that offer a file: what names it can give (elf_quality_name). */
#define FIELD_QUALITY 101

static const char *const reasons[] = {
	[DEBUGINFO_WANTED] = "First time we see this Build ID, therefore please upload!",
	[DEBUGINFO_WANTED_MORE] =
		"What is here for this Build ID is poorer than this may be, therefore please "
		"upload!",
	[DEBUGINFO_WANTED_FORCED] =
		"Debuginfo already exists and is not marked as invalid, therefore "
		"wouldn't have accepted a new upload, but accepting it because "
		"it's requested to be forced.",
	[DEBUGINFO_IN_PROGRESS] = "A previous upload is still in-progress and not stale yet (only "
				  "stale uploads can be retried).",
	[DEBUGINFO_PRESENT] =
		"Debuginfo already exists and is not marked as invalid, therefore no new "
		"upload is needed.",
};

/* Where the two requests that offer a file have their fields. */
struct offer_shape {
	const char *name;
	uint32_t size, hash, force, type, id_type;
};

struct rpc_offer {
	struct debuginfo_offer offer;
	uint64_t type;
};

static bool is_known_type(uint64_t type)
{
	return type <= TYPE_SOURCES || type == TYPE_SPLIT;
}

static int read_offer(const struct net_request *request, const struct offer_shape *shape,
		      struct rpc_offer *ret, struct err *err)
{
	struct pb_reader in = pb_reader_of(request->body);
	struct pb_field field;

	*ret = (struct rpc_offer){ .offer = { .name = net_request_header(request, NAME_HEADER) } };
	while (pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 1)
			ret->offer.build_id = field.bytes;
		else if (field.wire == PB_BYTES && field.number == shape->hash)
			ret->offer.hash = field.bytes;
		else if (field.wire == PB_VARINT && field.number == shape->size)
			ret->offer.bytes = field.value;
		else if (field.wire == PB_VARINT && field.number == shape->force)
			ret->offer.is_forced = field.value;
		else if (field.wire == PB_VARINT && field.number == shape->type)
			ret->type = field.value;
		else if (field.wire == PB_VARINT && field.number == shape->id_type)
			ret->offer.id_kind = field.value <= DEBUGINFO_ID_GO
						     ? (enum debuginfo_id_kind)field.value
						     : DEBUGINFO_ID_UNKNOWN;
		else if (field.wire == PB_BYTES && field.number == FIELD_QUALITY)
			(void)elf_quality_parse(field.bytes, &ret->offer.quality);
	}
	ret->offer.is_executable = ret->type == TYPE_EXECUTABLE;
	ret->offer.content = ret->type == TYPE_SOURCES ? DEBUGINFO_ARCHIVE
			     : ret->type == TYPE_SPLIT ? DEBUGINFO_SPLIT
						       : DEBUGINFO_PROGRAM;
	if (slice_is(net_request_header(request, SENDER_HEADER), "agent"))
		ret->offer.origin = DEBUGINFO_FROM_AGENT;
	return in.problem ? pb_fail(&in, shape->name, err) : 0;
}

static int add_tenant(const struct serve *serve, const struct net_request *request,
		      struct rpc_offer *rpc, struct err *err)
{
	rpc->offer.has_tenant = serve->tenants;
	return tenant_of(serve, request, &rpc->offer.tenant, err);
}

/* ShouldInitiateUploadResponse{ should_initiate_upload = 1; reason = 2 } */
static void put_verdict(struct strbuf *out, bool is_wanted, const char *reason)
{
	pb_put_varint(out, 1, is_wanted);
	pb_put_bytes(out, 2, slice_of(reason));
}

void rpc_debuginfo_should_upload(void *context, const struct net_request *request,
				 struct net_response *response)
{
	static const struct offer_shape shape = { "ShouldInitiateUploadRequest", .hash = 2,
						  .force = 3, .type = 4, .id_type = 5 };
	struct serve *serve = context;
	enum debuginfo_verdict verdict;
	struct rpc_offer rpc;
	struct err err;

	if (read_offer(request, &shape, &rpc, &err)) {
		net_response_error(request, response, &err);
	} else if (!is_known_type(rpc.type)) {
		put_verdict(&response->body, false, "This server keeps no source maps.");
	} else if (add_tenant(serve, request, &rpc, &err) ||
		   debuginfo_ask(serve->debuginfo, &rpc.offer, &verdict, &err)) {
		net_response_error(request, response, &err);
	} else {
		put_verdict(&response->body, verdict <= DEBUGINFO_WANTED_FORCED, reasons[verdict]);
	}
}

/*
 * UploadInstructions{ build_id = 1; upload_id = 2; upload_strategy = 3; signed_url = 4; type = 5;
 * received = 100 }
 */
static void put_instructions(struct strbuf *out, const struct rpc_offer *rpc, const char *id,
			     uint64_t received)
{
	size_t begun = pb_begin(out, 1);

	pb_put_bytes(out, 1, rpc->offer.build_id);
	pb_put_bytes(out, 2, slice_of(id));
	pb_put_varint(out, 3, STRATEGY_GRPC);
	pb_put_varint(out, 5, rpc->type);
	pb_put_varint(out, FIELD_RESUME, received);
	pb_end(out, begun);
}

/* What Parca answers where its agent tells "later" from "never" by the status. */
static void put_error(const struct net_request *request, struct net_response *response,
		      const struct err *err)
{
	net_response_error(request, response, err);
	if (request->rpc == NET_RPC_NONE || (err->code != ERR_BUSY && err->code != ERR_LIMIT))
		return;
	response->grpc_status =
		err->code == ERR_BUSY ? GRPC_FAILED_PRECONDITION : GRPC_INVALID_ARGUMENT;
	strbuf_clear(&response->headers);
}

void rpc_debuginfo_begin(void *context, const struct net_request *request,
			 struct net_response *response)
{
	static const struct offer_shape shape = {
		"InitiateUploadRequest", .size = 2, .hash = 3, .force = 4, .type = 5, .id_type = 6
	};
	struct serve *serve = context;
	char id[DISK_UPLOAD_ID_BYTES];
	struct rpc_offer rpc;
	uint64_t received;
	struct err err;
	int rc = read_offer(request, &shape, &rpc, &err);

	if (!rc && !is_known_type(rpc.type))
		rc = err_set(&err, ERR_UNSUPPORTED, "this server keeps no source maps");
	if (!rc && !rpc.offer.hash.len)
		rc = err_set(&err, ERR_INVALID, "the hash of the file is missing");
	if (!rc)
		rc = add_tenant(serve, request, &rpc, &err);
	if (!rc)
		rc = debuginfo_begin(serve->debuginfo, &rpc.offer, id, &received, &err);
	if (rc)
		put_error(request, response, &err);
	else
		put_instructions(&response->body, &rpc, id, received);
}

/* What names an upload: UploadInfo and MarkUploadFinishedRequest begin alike. */
struct upload_name {
	struct slice build_id, id;
	uint64_t offset;
};

/* { build_id = 1; upload_id = 2; type = 3; offset = 100 } */
static int read_upload_name(struct pb_reader in, const char *message, struct upload_name *ret,
			    struct err *err)
{
	struct pb_field field;

	*ret = (struct upload_name){ 0 };
	while (pb_next(&in, &field)) {
		if (field.wire == PB_BYTES && field.number == 1)
			ret->build_id = field.bytes;
		else if (field.wire == PB_BYTES && field.number == 2)
			ret->id = field.bytes;
		else if (field.wire == PB_VARINT && field.number == FIELD_RESUME)
			ret->offset = field.value;
	}
	return in.problem ? pb_fail(&in, message, err) : 0;
}

/* One running Upload call. */
struct incoming {
	struct debuginfo_receiver *receiver;
	struct slice build_id; /* owned */
};

static int begin_incoming(struct serve *serve, const struct pb_reader *outer, struct slice info,
			  void **state, struct err *err)
{
	struct debuginfo_receiver *receiver;
	struct upload_name name;
	struct incoming *incoming;
	int rc;

	if (*state)
		return err_set(err, ERR_INVALID, "UploadRequest: info comes once, at the start");
	rc = read_upload_name(pb_reader_into(outer, info), "UploadInfo", &name, err);
	if (!rc)
		rc = debuginfo_receive_begin(serve->debuginfo, name.build_id, name.id, name.offset,
					     &receiver, err);
	if (rc)
		return rc;
	incoming = mem_new(struct incoming);
	incoming->receiver = receiver;
	incoming->build_id =
		slice_from(mem_strndup(name.build_id.data, name.build_id.len), name.build_id.len);
	*state = incoming;
	return 0;
}

/* UploadRequest{ info = 1 | chunk_data = 2 } */
static int upload_message(void *context, const struct net_request *request, void **state,
			  struct strbuf *reply, struct err *err)
{
	struct pb_reader in = pb_reader_of(request->body);
	struct pb_field field;
	int rc = 0;

	(void)reply;
	while (!rc && pb_next(&in, &field)) {
		struct incoming *incoming = *state;

		if (field.wire == PB_BYTES && field.number == 1)
			rc = begin_incoming(context, &in, field.bytes, state, err);
		else if (field.wire == PB_BYTES && field.number == 2)
			rc = incoming ? debuginfo_receive(incoming->receiver, field.bytes, err)
				      : err_set(err, ERR_INVALID,
						"UploadRequest: the first message carries no info");
	}
	if (!rc && in.problem)
		rc = pb_fail(&in, "UploadRequest", err);
	return rc;
}

static void free_incoming(struct incoming *incoming)
{
	free((void *)(uintptr_t)incoming->build_id.data);
	free(incoming);
}

/* UploadResponse{ build_id = 1; size = 2 } */
static void upload_finish(void *context, const struct net_request *request, void *state,
			  struct net_response *response)
{
	struct incoming *incoming = state;
	uint64_t bytes;
	struct err err;

	(void)context;
	if (!incoming) {
		err_set(&err, ERR_INVALID, "Upload: no message came");
		net_response_error(request, response, &err);
		return;
	}
	if (debuginfo_receive_end(incoming->receiver, &bytes, &err)) {
		net_response_error(request, response, &err);
	} else {
		pb_put_bytes(&response->body, 1, incoming->build_id);
		pb_put_varint(&response->body, 2, bytes);
	}
	free_incoming(incoming);
}

static void upload_abandon(void *context, void *state)
{
	struct incoming *incoming = state;

	(void)context;
	debuginfo_receive_abandon(incoming->receiver);
	free_incoming(incoming);
}

const struct net_stream rpc_debuginfo_upload = { .message = upload_message,
						 .finish = upload_finish,
						 .abandon = upload_abandon };

void rpc_debuginfo_finished(void *context, const struct net_request *request,
			    struct net_response *response)
{
	struct serve *serve = context;
	struct upload_name name;
	struct err err;
	int rc = read_upload_name(pb_reader_of(request->body), "MarkUploadFinishedRequest", &name,
				  &err);

	if (!rc)
		rc = debuginfo_confirm(serve->debuginfo, name.build_id, name.id, &err);
	if (rc)
		net_response_error(request, response, &err);
}
