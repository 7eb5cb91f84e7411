/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reflection - grpc.reflection.v1 and v1alpha: which services there are, and descriptors of those
 * whose messages are known (calls.h), so that grpcurl and its like can ask without .proto files.
 *
 * A stream is answered once, after its first request: clients that ask more open another. The
 * descriptors are made of the tables that also turn messages into JSON: optional fields are oneofs
 * of their own, names that meet get a number, which nobody sees on the wire.
 */
#include "server/serve/rpc/reflection.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/pb.h"
#include "server/serve/rpc/calls.h"
#include "server/serve/serve.h"

#define MESSAGES_MAX 128
#define NAME_BYTES 128
#define NOT_FOUND 5 /* gRPC's code */

/* field numbers of google/protobuf/descriptor.proto */
enum {
	FILE_NAME = 1,
	FILE_PACKAGE,
	FILE_DEPENDENCY,
	FILE_MESSAGE,
	FILE_SERVICE = 6,
	FILE_SYNTAX = 12
};
enum { MESSAGE_NAME = 1, MESSAGE_FIELD, MESSAGE_ENUM = 4, MESSAGE_ONEOF = 8 };
enum {
	FIELD_NAME = 1,
	FIELD_NUMBER = 3,
	FIELD_LABEL,
	FIELD_TYPE,
	FIELD_TYPE_NAME,
	FIELD_ONEOF = 9,
	FIELD_OPTIONAL = 17
};
enum { METHOD_SERVER_STREAMING = 6 };
enum { LABEL_OPTIONAL = 1, LABEL_REPEATED = 3 };

struct reflected {
	const char *package, *file;
};

static const struct reflected files[] = {
	{ "parca.query.v1alpha1", "parca/query/v1alpha1/query.proto" },
	{ "querier.v1", "querier/v1/querier.proto" },
	{ "grpc.health.v1", "grpc/health/v1/health.proto" },
};

static const char *const other_services[] = {
	"grpc.reflection.v1.ServerReflection",
	"grpc.reflection.v1alpha.ServerReflection",
	"opentelemetry.proto.collector.profiles.v1development.ProfilesService",
	"parca.debuginfo.v1alpha1.DebuginfoService",
	"parca.profilestore.v1alpha1.ProfileStoreService",
	"parca.scrape.v1alpha1.ScrapeService",
};

static const struct transcode_field seconds_fields[] = {
	{ 1, "seconds", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "nanos", TRANSCODE_INT32, false, false, NULL, NULL },
};
static const struct transcode_message known[] = { { "Timestamp", seconds_fields, 2 },
						  { "Duration", seconds_fields, 2 } };
static const char *const known_files[] = { "google/protobuf/timestamp.proto",
					   "google/protobuf/duration.proto" };

/* The messages of a file, each once. */
struct gathered {
	const char *package;
	const struct transcode_message *list[MESSAGES_MAX];
	size_t count;
};

static void gather(struct gathered *gathered, const struct transcode_message *message)
{
	for (size_t i = 0; i < gathered->count; i++)
		if (gathered->list[i] == message)
			return;
	if (gathered->count == MESSAGES_MAX)
		return;
	gathered->list[gathered->count++] = message;
	for (size_t i = 0; i < message->fields_count; i++)
		if (message->fields[i].kind == TRANSCODE_MESSAGE)
			gather(gathered, message->fields[i].message);
}

/* Its name in the file: with a number when another one has it already. */
static void name_of(const struct gathered *gathered, const struct transcode_message *message,
		    char ret[static NAME_BYTES])
{
	unsigned before = 0;

	for (size_t i = 0; i < gathered->count && gathered->list[i] != message; i++)
		before += !strcmp(gathered->list[i]->name, message->name);
	if (before)
		snprintf(ret, NAME_BYTES, "%s%u", message->name, before + 1);
	else
		snprintf(ret, NAME_BYTES, "%s", message->name);
}

/* "report_type" -> "ReportType" */
static void enum_name(const struct transcode_field *field, char ret[static NAME_BYTES])
{
	bool begins = true;
	size_t len = 0;

	for (const char *at = field->name; *at && len + 1 < NAME_BYTES; at++) {
		if (*at == '_') {
			begins = true;
			continue;
		}
		ret[len++] = begins ? (char)toupper((unsigned char)*at) : *at;
		begins = false;
	}
	ret[len] = '\0';
}

static unsigned type_of(enum transcode_kind kind)
{
	static const unsigned types[] = {
		[TRANSCODE_INT32] = 5,	   [TRANSCODE_UINT32] = 13,  [TRANSCODE_INT64] = 3,
		[TRANSCODE_UINT64] = 4,	   [TRANSCODE_FLOAT] = 2,    [TRANSCODE_DOUBLE] = 1,
		[TRANSCODE_BOOL] = 8,	   [TRANSCODE_TEXT] = 9,     [TRANSCODE_BYTES] = 12,
		[TRANSCODE_ENUM] = 14,	   [TRANSCODE_MESSAGE] = 11, [TRANSCODE_TIMESTAMP] = 11,
		[TRANSCODE_DURATION] = 11,
	};

	return types[kind];
}

static void put_text(struct strbuf *out, uint32_t field, const char *text)
{
	pb_put_bytes(out, field, slice_of(text));
}

static void put_type_name(struct strbuf *out, const struct gathered *gathered, const char *message,
			  const struct transcode_field *field)
{
	struct strbuf name = { 0 };
	char last[NAME_BYTES];

	if (field->kind == TRANSCODE_TIMESTAMP || field->kind == TRANSCODE_DURATION) {
		strbuf_addf(&name, ".google.protobuf.%s",
			    known[field->kind == TRANSCODE_DURATION].name);
	} else if (field->kind == TRANSCODE_ENUM) {
		enum_name(field, last);
		strbuf_addf(&name, ".%s.%s.%s", gathered->package, message, last);
	} else if (field->kind == TRANSCODE_MESSAGE) {
		name_of(gathered, field->message, last);
		strbuf_addf(&name, ".%s.%s", gathered->package, last);
	}
	pb_put_bytes(out, FIELD_TYPE_NAME, strbuf_slice(&name));
	strbuf_free(&name);
}

static void put_enum(struct strbuf *out, const struct transcode_field *field)
{
	size_t begun = pb_begin(out, MESSAGE_ENUM);
	char name[NAME_BYTES];

	enum_name(field, name);
	put_text(out, 1, name);
	for (size_t i = 0; i < field->names->count; i++) {
		size_t value;

		if (!field->names->names[i])
			continue;
		value = pb_begin(out, 2);
		put_text(out, 1, field->names->names[i]);
		pb_put_varint(out, 2, i);
		pb_end(out, value);
	}
	pb_end(out, begun);
}

static void put_message(struct strbuf *out, const struct gathered *gathered,
			const struct transcode_message *message)
{
	size_t begun = pb_begin(out, FILE_MESSAGE);
	unsigned oneofs = 0;
	char name[NAME_BYTES];

	name_of(gathered, message, name);
	put_text(out, MESSAGE_NAME, name);
	for (size_t i = 0; i < message->fields_count; i++) {
		const struct transcode_field *field = &message->fields[i];
		size_t at = pb_begin(out, MESSAGE_FIELD);

		put_text(out, FIELD_NAME, field->name);
		pb_put_varint(out, FIELD_NUMBER, field->number);
		pb_put_varint(out, FIELD_LABEL, field->repeated ? LABEL_REPEATED : LABEL_OPTIONAL);
		pb_put_varint(out, FIELD_TYPE, type_of(field->kind));
		put_type_name(out, gathered, name, field);
		if (field->in_oneof) {
			pb_put_varint_always(out, FIELD_ONEOF, oneofs++);
			pb_put_varint(out, FIELD_OPTIONAL, 1);
		}
		pb_end(out, at);
	}
	for (size_t i = 0; i < message->fields_count; i++)
		if (message->fields[i].kind == TRANSCODE_ENUM)
			put_enum(out, &message->fields[i]);
	for (size_t i = 0; i < message->fields_count; i++) {
		size_t at;

		if (!message->fields[i].in_oneof)
			continue;
		at = pb_begin(out, MESSAGE_ONEOF);
		snprintf(name, sizeof(name), "_%s", message->fields[i].name);
		put_text(out, 1, name);
		pb_end(out, at);
	}
	pb_end(out, begun);
}

/* "/package.Service/Method" as its three parts, when the package is that one. */
static bool split_path(const char *path, const char *package, struct slice *service,
		       struct slice *method)
{
	struct slice rest = slice_of(path + 1), prefix = slice_of(package);

	if (!slice_starts_with(rest, prefix) || rest.data[prefix.len] != '.')
		return false;
	*service = slice_cut(slice_tail(rest, prefix.len + 1), '/', method);
	return true;
}

static void put_type(struct strbuf *out, uint32_t number, const struct gathered *gathered,
		     const struct transcode_message *message)
{
	char name[NAME_BYTES], whole[2 * NAME_BYTES];

	name_of(gathered, message, name);
	snprintf(whole, sizeof(whole), ".%s.%s", gathered->package, name);
	put_text(out, number, whole);
}

/* The package has one service. */
static void put_service(struct strbuf *out, const struct gathered *gathered)
{
	size_t count, begun = pb_begin(out, FILE_SERVICE);
	const struct call *calls = calls_list(&count);
	struct slice service, method;
	bool is_named = false;

	for (size_t i = 0; i < count; i++) {
		size_t at;

		if (!split_path(calls[i].path, gathered->package, &service, &method))
			continue;
		if (!is_named)
			pb_put_bytes(out, 1, service);
		is_named = true;
		at = pb_begin(out, 2);
		pb_put_bytes(out, 1, method);
		put_type(out, 2, gathered, calls[i].request);
		put_type(out, 3, gathered, calls[i].answer);
		pb_put_varint(out, METHOD_SERVER_STREAMING, !calls[i].handler);
		pb_end(out, at);
	}
	pb_end(out, begun);
}

static void put_file(struct strbuf *out, const struct reflected *file)
{
	struct gathered *gathered = mem_new(struct gathered);
	struct slice service, method;
	size_t count;
	const struct call *calls = calls_list(&count);

	gathered->package = file->package;
	for (size_t i = 0; i < count; i++) {
		if (!split_path(calls[i].path, file->package, &service, &method))
			continue;
		gather(gathered, calls[i].request);
		gather(gathered, calls[i].answer);
	}
	put_text(out, FILE_NAME, file->file);
	put_text(out, FILE_PACKAGE, file->package);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		put_text(out, FILE_DEPENDENCY, known_files[i]);
	for (size_t i = 0; i < gathered->count; i++)
		put_message(out, gathered, gathered->list[i]);
	put_service(out, gathered);
	put_text(out, FILE_SYNTAX, "proto3");
	free(gathered);
}

static void put_known(struct strbuf *out, size_t number)
{
	struct gathered gathered = { .package = "google.protobuf", .count = 1 };

	gathered.list[0] = &known[number];
	put_text(out, FILE_NAME, known_files[number]);
	put_text(out, FILE_PACKAGE, gathered.package);
	put_message(out, &gathered, &known[number]);
	put_text(out, FILE_SYNTAX, "proto3");
}

/* The descriptor of a file, by its name, or by a name of something in it. */
static bool find_file(struct slice name, bool is_symbol, struct strbuf *out)
{
	char symbol[NAME_BYTES];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct slice package = slice_of(files[i].package);

		if (is_symbol ? slice_starts_with(name, package) && name.len > package.len &&
					name.data[package.len] == '.'
			      : slice_is(name, files[i].file)) {
			put_file(out, &files[i]);
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		snprintf(symbol, sizeof(symbol), "google.protobuf.%s", known[i].name);
		if (slice_is(name, is_symbol ? symbol : known_files[i])) {
			put_known(out, i);
			return true;
		}
	}
	return false;
}

bool reflection_has_service(struct slice name)
{
	size_t count;
	const struct call *calls = calls_list(&count);
	struct slice method;

	for (size_t i = 0; i < count; i++)
		if (slice_equal(slice_cut(slice_of(calls[i].path + 1), '/', &method), name))
			return true;
	for (size_t i = 0; i < sizeof(other_services) / sizeof(other_services[0]); i++)
		if (slice_is(name, other_services[i]))
			return true;
	return false;
}

/* ListServiceResponse{ service = 1 { name = 1 } } */
static void put_services(struct strbuf *out)
{
	size_t begun = pb_begin(out, 6), count;
	const struct call *calls = calls_list(&count);
	struct slice service, method, last = { 0 };

	for (size_t i = 0; i < count; i++) {
		service = slice_cut(slice_of(calls[i].path + 1), '/', &method);
		if (!slice_equal(service, last)) {
			size_t at = pb_begin(out, 1);

			pb_put_bytes(out, 1, service);
			pb_end(out, at);
		}
		last = service;
	}
	for (size_t i = 0; i < sizeof(other_services) / sizeof(other_services[0]); i++) {
		size_t at = pb_begin(out, 1);

		put_text(out, 1, other_services[i]);
		pb_end(out, at);
	}
	pb_end(out, begun);
}

/*
 * ServerReflectionResponse{ valid_host = 1; original_request = 2; file_descriptor_response = 4
 * { file_descriptor_proto = 1 }; list_services_response = 6; error_response = 7 { error_code = 1;
 * error_message = 2 } }
 */
static void put_answer(struct slice request, const struct pb_field *asked, struct strbuf *out)
{
	struct strbuf file = { 0 };
	size_t begun;

	pb_put_bytes(out, 2, request);
	if (asked->number == 7) {
		put_services(out);
	} else if ((asked->number == 3 || asked->number == 4) &&
		   find_file(asked->bytes, asked->number == 4, &file)) {
		begun = pb_begin(out, 4);
		pb_put_bytes(out, 1, strbuf_slice(&file));
		pb_end(out, begun);
	} else {
		begun = pb_begin(out, 7);
		pb_put_varint(out, 1, NOT_FOUND);
		put_text(out, 2, "no descriptor of that");
		pb_end(out, begun);
	}
	strbuf_free(&file);
}

/* ServerReflectionRequest{ host = 1; file_by_filename = 3; file_containing_symbol = 4;
 * list_services = 7 }: what is asked is the last of them. */
static int reflect(void *context, const struct net_request *request, void **state,
		   struct strbuf *reply, struct err *err)
{
	struct pb_reader in = pb_reader_of(request->body);
	struct pb_field field, asked = { 0 };

	(void)context;
	(void)state;
	while (pb_next(&in, &field))
		if (field.number != 1 && field.wire == PB_BYTES)
			asked = field;
	if (in.problem)
		return pb_fail(&in, "ServerReflectionRequest", err);
	put_answer(request->body, &asked, reply);
	return 0;
}

/* Each was replied to. */
static void finish(void *context, const struct net_request *request, void *state,
		   struct net_response *response)
{
	(void)context;
	(void)request;
	(void)state;
	(void)response;
}

const struct net_stream rpc_reflection = { .message = reflect, .finish = finish, .replies = true };
