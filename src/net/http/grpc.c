/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/grpc.h"

#include "codec/wire/pb.h"
#include "codec/wire/base64.h"
#include "net/http/uri.h"

#define RETRY_INFO_TYPE "type.googleapis.com/google.rpc.RetryInfo"
#define RETRY_DELAY_SECONDS_MAX 86400u
#define TIMEOUT_DIGITS_MAX 8u

enum net_rpc grpc_kind(struct slice content_type)
{
	static const struct {
		struct slice name;
		enum net_rpc kind;
	} kinds[] = {
		{ SLICE_LITERAL("application/grpc-web-text"), NET_RPC_GRPC_WEB_TEXT },
		{ SLICE_LITERAL("application/grpc-web"), NET_RPC_GRPC_WEB },
		{ SLICE_LITERAL("application/grpc"), NET_RPC_GRPC },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct slice rest = slice_tail(content_type, kinds[i].name.len);

		if (slice_starts_with(content_type, kinds[i].name) &&
		    (!rest.len || rest.data[0] == '+' || rest.data[0] == ';'))
			return kinds[i].kind;
	}
	return NET_RPC_NONE;
}

static int64_t unit_ns(char unit)
{
	switch (unit) {
	case 'H':
		return 3600 * CLOCK_NS_PER_S;
	case 'M':
		return 60 * CLOCK_NS_PER_S;
	case 'S':
		return CLOCK_NS_PER_S;
	case 'm':
		return CLOCK_NS_PER_MS;
	case 'u':
		return CLOCK_NS_PER_US;
	case 'n':
		return 1;
	default:
		return 0;
	}
}

bool grpc_parse_timeout(struct slice text, int64_t *ret_ns)
{
	int64_t unit = text.len ? unit_ns(text.data[text.len - 1]) : 0;
	uint64_t count;

	if (!unit || text.len > TIMEOUT_DIGITS_MAX + 1 ||
	    !slice_parse_u64(slice_from(text.data, text.len - 1), &count))
		return false;
	if (__builtin_mul_overflow((int64_t)count, unit, ret_ns))
		*ret_ns = INT64_MAX;
	return true;
}

void grpc_add_frame(struct strbuf *out, unsigned flags, struct slice message)
{
	strbuf_reserve(out, GRPC_FRAME_BYTES + message.len);
	strbuf_add_byte(out, (char)flags);
	for (int shift = 24; shift >= 0; shift -= 8)
		strbuf_add_byte(out, (char)(message.len >> shift));
	strbuf_add_slice(out, message);
}

bool grpc_take_frame(struct slice *body, unsigned *ret_flags, struct slice *ret_message)
{
	const unsigned char *p = (const unsigned char *)body->data;
	size_t len;

	if (body->len < GRPC_FRAME_BYTES)
		return false;
	len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	if (len > body->len - GRPC_FRAME_BYTES)
		return false;
	*ret_flags = p[0];
	*ret_message = slice_from(p + GRPC_FRAME_BYTES, len);
	*body = slice_tail(*body, GRPC_FRAME_BYTES + len);
	return true;
}

int grpc_find_message(struct slice body, struct slice *ret_message, bool *ret_compressed,
		      struct err *err)
{
	struct slice message = { 0 };
	unsigned message_flags = 0;
	unsigned count = 0;

	while (body.len) {
		struct slice next;
		unsigned flags;

		if (!grpc_take_frame(&body, &flags, &next))
			return err_set(err, ERR_INVALID,
				       "gRPC message cut short: %zu bytes are no whole frame",
				       body.len);
		if (flags & GRPC_FLAG_TRAILERS)
			break;
		if (flags & ~GRPC_FLAG_COMPRESSED)
			return err_set(err, ERR_INVALID, "gRPC frame with unknown flags 0x%02x",
				       flags);
		if (count++)
			break;
		message = next;
		message_flags = flags;
	}
	if (count != 1)
		return err_set(err, ERR_UNSUPPORTED, "the call takes one message, got %s",
			       count ? "more" : "none");
	*ret_message = message;
	*ret_compressed = message_flags & GRPC_FLAG_COMPRESSED;
	return 0;
}

void grpc_encode_message(struct slice text, struct strbuf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c >= 0x20 && c <= 0x7e && c != '%')
			strbuf_add_byte(out, (char)c);
		else
			strbuf_addf(out, "%%%02X", c);
	}
}

void grpc_decode_message(struct slice text, char *ret, size_t bytes_max)
{
	size_t used = 0;

	for (size_t i = 0; i < text.len && used + 1 < bytes_max; i++) {
		int escaped = uri_escaped_byte(text, i);
		char c = escaped >= 0 ? (char)escaped : text.data[i];

		if (escaped >= 0)
			i += 2;
		ret[used++] = c ? c : ' ';
	}
	ret[used] = '\0';
}

/*
 *     Status    { int32 code = 1; string message = 2; repeated Any details = 3; }
 *     Any       { string type_url = 1; bytes value = 2; }
 *     RetryInfo { Duration retry_delay = 1; }    Duration { int64 seconds = 1; int32 nanos = 2; }
 */
void grpc_add_retry_details(struct strbuf *out, int status, struct slice message, int64_t delay_ns)
{
	struct strbuf packed = { 0 };
	size_t any, info, duration;

	pb_put_varint(&packed, 1, (uint64_t)status);
	pb_put_bytes(&packed, 2, message);
	any = pb_begin(&packed, 3);
	pb_put_bytes(&packed, 1, SLICE_LITERAL(RETRY_INFO_TYPE));
	info = pb_begin(&packed, 2);
	duration = pb_begin(&packed, 1);
	pb_put_varint(&packed, 1, (uint64_t)(delay_ns / CLOCK_NS_PER_S));
	pb_put_varint(&packed, 2, (uint64_t)(delay_ns % CLOCK_NS_PER_S));
	pb_end(&packed, duration);
	pb_end(&packed, info);
	pb_end(&packed, any);
	base64_encode(strbuf_slice(&packed), false, out);
	strbuf_free(&packed);
}

/* The bytes of the last field `number`, or empty. */
static struct slice find_bytes(struct slice message, uint32_t number)
{
	struct pb_reader in = pb_reader_of(message);
	struct slice found = { 0 };
	struct pb_field field;

	while (pb_next(&in, &field))
		if (field.number == number)
			found = field.bytes;
	return found;
}

static int64_t duration_of(struct slice message)
{
	struct pb_reader in = pb_reader_of(message);
	uint64_t seconds = 0, nanos = 0;
	struct pb_field field;

	while (pb_next(&in, &field)) {
		if (field.number == 1)
			seconds = field.value;
		else if (field.number == 2)
			nanos = field.value;
	}
	if (seconds > RETRY_DELAY_SECONDS_MAX)
		seconds = RETRY_DELAY_SECONDS_MAX;
	if (nanos >= CLOCK_NS_PER_S)
		nanos = 0;
	return (int64_t)seconds * CLOCK_NS_PER_S + (int64_t)nanos;
}

int64_t grpc_parse_retry_details(struct slice value)
{
	struct strbuf status = { 0 };
	struct pb_field field;
	int64_t delay_ns = 0;

	if (base64_decode(value, &status)) {
		struct pb_reader in = pb_reader_of(strbuf_slice(&status));

		while (pb_next(&in, &field))
			if (field.number == 3 &&
			    slice_is(find_bytes(field.bytes, 1), RETRY_INFO_TYPE))
				delay_ns = duration_of(find_bytes(find_bytes(field.bytes, 2), 1));
	}
	strbuf_free(&status);
	return delay_ns;
}
