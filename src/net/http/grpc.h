/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc - the framing of gRPC and gRPC-Web, independent of any transport.
 *
 * Sources: grpc/doc/PROTOCOL-HTTP2.md and PROTOCOL-WEB.md of the gRPC project. A message on the
 * wire is one flag byte (bit 0: compressed; bit 7: gRPC-Web trailers), a 32-bit big-endian length
 * and that many bytes.
 */
#ifndef FIRN_NET_HTTP_GRPC_H
#define FIRN_NET_HTTP_GRPC_H

#include "base/err.h"
#include "net/server.h"

#define GRPC_FRAME_BYTES 5u /* before each message */
#define GRPC_FLAG_COMPRESSED 0x01u
#define GRPC_FLAG_TRAILERS 0x80u

enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
	GRPC_STATUS_MAX = 16
};

/* Which kind of call a content-type announces: "application/grpc", "application/grpc-web+proto". */
enum net_rpc grpc_kind(struct slice content_type);

/* "100m": up to 8 digits and a unit of H M S m u n. False for any other text. */
bool grpc_parse_timeout(struct slice text, int64_t *ret_ns);

void grpc_add_frame(struct strbuf *out, unsigned flags, struct slice message);

/* Takes one frame off the front of *body. False if there is no whole frame. */
bool grpc_take_frame(struct slice *body, unsigned *ret_flags, struct slice *ret_message);

/*
 * The one message in `body`, from which it borrows. A body without a message, with a second one or
 * with an incomplete one is ERR_UNSUPPORTED or ERR_INVALID. A gRPC-Web trailers frame after the
 * message is ignored.
 */
int grpc_find_message(struct slice body, struct slice *ret_message, bool *ret_compressed,
		      struct err *err);

/* Percent-encoding of grpc-message: printable ASCII except '%' stays. */
void grpc_encode_message(struct slice text, struct strbuf *out);
/* Never fails: invalid escapes stay as they are. Truncated at bytes_max, NUL-terminated. */
void grpc_decode_message(struct slice text, char *ret, size_t bytes_max);

/*
 * The value of grpc-status-details-bin that says "try again after delay": a google.rpc.Status with
 * a google.rpc.RetryInfo. Without it, OTLP clients do not retry RESOURCE_EXHAUSTED.
 */
void grpc_add_retry_details(struct strbuf *out, int status, struct slice message, int64_t delay_ns);
/* The delay in such a value; 0 if it has none. */
int64_t grpc_parse_retry_details(struct slice value);

#endif
