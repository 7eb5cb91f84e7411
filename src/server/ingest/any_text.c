/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/any_text.h"

#include "codec/wire/json.h"
#include "codec/wire/pb.h"

/* One array or list being written, and where its reader stands. */
struct level {
	struct pb_reader in;
	bool list; /* of keys and values */
};

struct writer {
	const struct otlp *request;
	struct json json;
	struct level levels[ANY_TEXT_DEPTH_MAX];
	uint32_t depth;
	size_t bytes_max;
	struct err *err;
};

/* The front of bytes of which no more is wanted. */
static struct slice front(struct slice bytes, size_t bytes_max)
{
	return bytes.len > bytes_max ? slice_from(bytes.data, bytes_max) : bytes;
}

static void add_hex(struct strbuf *out, struct slice bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		strbuf_addf(out, "%02x", (unsigned char)bytes.data[i]);
}

static void open_level(struct writer *writer, const struct otlp_any *value)
{
	bool list = value->type == OTLP_TYPE_KVLIST;

	if (writer->depth == ANY_TEXT_DEPTH_MAX) {
		json_put_null(&writer->json);
		return;
	}
	if (list)
		json_open_object(&writer->json);
	else
		json_open_array(&writer->json);
	writer->levels[writer->depth++] =
		(struct level){ .in = pb_reader_of(value->bytes), .list = list };
}

static void write_value(struct writer *writer, const struct otlp_any *value)
{
	struct strbuf hex = { 0 };

	switch (value->type) {
	case OTLP_TYPE_STRING:
		json_put_string(&writer->json, front(value->bytes, writer->bytes_max));
		break;
	case OTLP_TYPE_BOOL:
		json_put_bool(&writer->json, value->number);
		break;
	case OTLP_TYPE_INT:
		json_put_int(&writer->json, value->number);
		break;
	case OTLP_TYPE_DOUBLE:
		json_put_double(&writer->json, value->real);
		break;
	case OTLP_TYPE_BYTES:
		add_hex(&hex, front(value->bytes, writer->bytes_max));
		json_put_string(&writer->json, strbuf_slice(&hex));
		strbuf_free(&hex);
		break;
	case OTLP_TYPE_ARRAY:
	case OTLP_TYPE_KVLIST:
		open_level(writer, value);
		break;
	default:
		json_put_null(&writer->json);
		break;
	}
}

/* One KeyValue of a list: its key to `json`, its value to *ret. */
static int read_pair(struct writer *writer, struct slice bytes, struct slice *ret)
{
	static const struct pb_shape shape = { .name = "KeyValue",
					       .varints = PB_BIT(OTLP_KEY_VALUE_KEY_STRINDEX),
					       .bytes = PB_BITS(1, 2) };
	struct pb_reader in = pb_reader_of(bytes);
	struct slice key = SLICE_LITERAL("");
	struct pb_field field;
	bool dangling = false;

	*ret = SLICE_LITERAL("");
	while (pb_next_known(&in, &shape, &field)) {
		if (field.number == OTLP_KEY_VALUE_KEY)
			key = field.bytes;
		else if (field.number == OTLP_KEY_VALUE_VALUE)
			*ret = field.bytes;
		else
			key = otlp_string(writer->request, (int64_t)field.value, &dangling);
	}
	json_put_key_slice(&writer->json, front(key, writer->bytes_max));
	return in.problem ? pb_fail(&in, shape.name, writer->err) : 0;
}

/* The next value of the innermost level, or the level's end. */
static int step(struct writer *writer)
{
	static const struct pb_shape shape = { .name = "ArrayValue", .bytes = PB_BIT(1) };
	struct level *level = &writer->levels[writer->depth - 1];
	struct otlp_any value;
	struct pb_field field;
	struct slice bytes;
	int status = 0;

	if (!pb_next_known(&level->in, &shape, &field)) {
		if (level->in.problem)
			return pb_fail(&level->in, shape.name, writer->err);
		writer->depth--;
		if (level->list)
			json_close_object(&writer->json);
		else
			json_close_array(&writer->json);
		return 0;
	}
	bytes = field.bytes;
	if (level->list)
		status = read_pair(writer, field.bytes, &bytes);
	if (!status)
		status = otlp_any_decode(writer->request, bytes, &value, writer->err);
	if (!status)
		write_value(writer, &value);
	return status;
}

static int write_nested(const struct otlp *request, const struct otlp_any *value, size_t bytes_max,
			struct strbuf *out, struct err *err)
{
	struct writer writer = { .request = request, .bytes_max = bytes_max, .err = err };
	int status = 0;

	json_begin(&writer.json, out);
	write_value(&writer, value);
	while (!status && writer.depth && out->len <= bytes_max)
		status = step(&writer);
	return status;
}

int any_text(const struct otlp *request, const struct otlp_any *value, size_t bytes_max,
	     struct strbuf *out, struct err *err)
{
	strbuf_clear(out);
	if (value->type == OTLP_TYPE_EMPTY)
		return 0;
	if (value->type == OTLP_TYPE_STRING)
		strbuf_add_slice(out, front(value->bytes, bytes_max));
	else if (value->type == OTLP_TYPE_BYTES)
		add_hex(out, front(value->bytes, bytes_max));
	else
		return write_nested(request, value, bytes_max, out, err);
	return 0;
}
