/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"

#include <sys/socket.h>

#include "base/mem.h"
#include "net/sniff.h"
#include "net/tls.h"
#include "net/http/traffic.h"

#define OUT_BYTES_MAX (64u * 1024)  /* pulled at a time: a copy, while who reads is slow */
#define OUT_KEPT_BYTES (32u * 1024) /* buffer kept by a quiet connection */
#define WRITES_PER_RUN 8u	    /* then others have their turn */
#define FIRST_READ_BYTES (4u * 1024)
#define KEEPALIVE_S 60u

static struct conn *conn_of(void *handle)
{
	return ((uv_handle_t *)handle)->data;
}

static void enter(struct conn *conn, enum conn_phase phase)
{
	conn->phase = phase;
	conn->phase_since_ns = conn->host.now_ns;
}

static void look_at_clock(struct conn *conn)
{
	conn->host.now_ns = clock_monotonic_ns();
}

static void on_closed(uv_handle_t *handle)
{
	struct conn *conn = conn_of(handle);

	strbuf_free(&conn->pending);
	strbuf_free(&conn->out);
	net_transport_free(&conn->transport);
	conn->owner->closed(conn->owner, conn);
	free(conn);
}

void conn_close(struct conn *conn)
{
	if (conn->phase == CONN_CLOSING)
		return;
	enter(conn, CONN_CLOSING);
	if (conn->engine)
		conn->engine->ops->free(conn->engine);
	conn->engine = NULL;
	traffic_add_connection(-1);
	uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

struct conn *conn_accept(uv_stream_t *listener, struct conn_owner *owner)
{
	struct conn *conn = mem_new(struct conn);
	union address_socket peer = { 0 };
	int peer_bytes = sizeof(peer);

	conn->owner = owner;
	conn->host.service = owner->service;
	conn->host.idle_timeout_ns = owner->idle_timeout_ns;
	conn->host.submit = owner->submit;
	look_at_clock(conn);
	enter(conn, CONN_SNIFFING);
	uv_tcp_init(listener->loop, &conn->tcp);
	conn->tcp.data = conn;
	traffic_add_connection(1);
	if (uv_accept(listener, (uv_stream_t *)&conn->tcp)) {
		conn_close(conn);
		return conn;
	}
	uv_tcp_nodelay(&conn->tcp, 1);
	uv_tcp_keepalive(&conn->tcp, 1, KEEPALIVE_S);
	uv_tcp_getpeername(&conn->tcp, &peer.any, &peer_bytes);
	address_format(&peer, conn->peer);
	conn->host.peer = slice_of(conn->peer);
	conn->network = address_network(&peer);
	if (owner->tls) {
		struct tls *tls = owner->tls(owner->tls_context);

		tls_accept(tls, &conn->transport);
		tls_unref(tls);
	}
	return conn;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	(void)suggested;
	*ret = uv_buf_init(conn_of(handle)->owner->read_buffer, CONN_READ_BYTES);
}

static void take_front(struct strbuf *buf, size_t bytes)
{
	if (!bytes)
		return;
	buf->len -= bytes;
	memmove(buf->data, buf->data + bytes, buf->len);
}

/* Chooses the engine once the first bytes tell; they are in `pending`. */
static void sniff(struct conn *conn)
{
	switch (sniff_protocol(strbuf_slice(&conn->pending))) {
	case SNIFF_MORE:
		return;
	case SNIFF_HTTP1:
		conn->engine = http1_new(&conn->host);
		break;
	case SNIFF_HTTP2:
		conn->engine = http2_new(&conn->host);
		break;
	case SNIFF_TLS:
		refusal_count(REFUSAL_TLS);
		conn_close(conn);
		return;
	}
	enter(conn, CONN_SPEAKING);
}

/* Ends the session in form, as far as the socket takes it at once. */
static void say_farewell(struct conn *conn)
{
	struct slice wire = net_transport_end(&conn->transport);
	uv_buf_t buf = uv_buf_init((char *)(uintptr_t)wire.data, (unsigned)wire.len);

	if (wire.len && uv_try_write((uv_stream_t *)&conn->tcp, &buf, 1) > 0)
		traffic_count_sent(wire.len);
}

/* Somebody talks to a port of TLS in plain text: told so in the same. */
static bool is_plain_text(struct conn *conn, struct slice wire)
{
	if (!conn->transport.ops || conn->has_received)
		return false;
	conn->has_received = true;
	return wire.data[0] != SNIFF_TLS_RECORD;
}

static void refuse_plain_text(struct conn *conn)
{
	net_transport_free(&conn->transport);
	conn->transport = (struct net_transport){ 0 };
	conn_turn_away(conn, REFUSAL_PLAIN_TEXT);
}

static void receive(struct conn *conn, struct slice bytes)
{
	if (conn->phase == CONN_SPEAKING && !conn->pending.len)
		bytes = slice_tail(bytes, conn->engine->ops->feed(conn->engine, bytes));
	strbuf_add_slice(&conn->pending, bytes);
	if (conn->phase == CONN_SNIFFING)
		sniff(conn);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
	struct conn *conn = conn_of(stream);
	struct slice plain;

	look_at_clock(conn);
	if (len == 0)
		return;
	if (len < 0) {
		conn->peer_ended = true;
		if (len != UV_EOF || conn->phase != CONN_SPEAKING) {
			conn_close(conn);
			return;
		}
		conn->engine->ops->end(conn->engine);
		conn_run(conn);
		return;
	}
	traffic_count_received((size_t)len);
	if (conn->phase == CONN_LINGERING)
		return; /* thrown away; a session has ended by now */
	plain = slice_from(buf->base, (size_t)len);
	if (is_plain_text(conn, plain)) {
		refuse_plain_text(conn);
		return;
	}
	if (net_transport_open(&conn->transport, plain, &plain, NULL)) {
		refusal_count(REFUSAL_TLS);
		say_farewell(conn);
		conn_close(conn);
		return;
	}
	receive(conn, plain);
	conn_run(conn);
}

static void update_reading(struct conn *conn)
{
	bool wants = !conn->peer_ended && !conn->is_writing &&
		     (!conn->pending.len || conn->phase == CONN_SNIFFING);

	if (wants && !conn->is_reading)
		uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
	else if (!wants && conn->is_reading)
		uv_read_stop((uv_stream_t *)&conn->tcp);
	conn->is_reading = wants;
}

static void on_written(uv_write_t *write, int status)
{
	struct conn *conn = conn_of(write->handle);

	if (conn->phase == CONN_CLOSING)
		return;
	look_at_clock(conn);
	conn->is_writing = false;
	traffic_count_sent(conn->wire.len);
	conn->wire = (struct slice){ 0 };
	if (status)
		conn_close(conn);
	else
		conn_run(conn);
}

/* Leaves the rest to libuv, which goes on when the socket takes bytes again. */
static void write_later(struct conn *conn)
{
	uv_buf_t buf = uv_buf_init((char *)(uintptr_t)conn->wire.data, (unsigned)conn->wire.len);

	conn->is_writing = true;
	conn->write_left = conn->wire.len;
	pace_begin(&conn->write_pace, conn->host.now_ns);
	if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_written))
		conn_close(conn);
}

/* More bytes to send. False when there are none. */
static bool refill(struct conn *conn)
{
	strbuf_clear(&conn->out);
	if (conn->engine)
		conn->engine->ops->pull(conn->engine, &conn->out, OUT_BYTES_MAX);
	if (net_transport_seal(&conn->transport, strbuf_slice(&conn->out), &conn->wire, NULL))
		conn_close(conn);
	else if (!conn->wire.len && conn->out.capacity > OUT_KEPT_BYTES)
		strbuf_free(&conn->out);
	return conn->wire.len;
}

/* Sends what the socket takes at once. True when that was all. */
static bool write_now(struct conn *conn)
{
	uv_buf_t buf = uv_buf_init((char *)(uintptr_t)conn->wire.data, (unsigned)conn->wire.len);
	int sent = uv_try_write((uv_stream_t *)&conn->tcp, &buf, 1);

	if (sent < 0 && sent != UV_EAGAIN) {
		conn_close(conn);
		return false;
	}
	if (sent > 0) {
		traffic_count_sent((size_t)sent);
		conn->wire = slice_tail(conn->wire, (size_t)sent);
	}
	return !conn->wire.len;
}

static void flush(struct conn *conn)
{
	for (unsigned i = 0; !conn->is_writing; i++) {
		if (!conn->wire.len && !refill(conn))
			return;
		if (i < WRITES_PER_RUN && write_now(conn))
			continue;
		if (conn->phase != CONN_CLOSING)
			write_later(conn);
		return;
	}
}

static void on_shut_down(uv_shutdown_t *shutdown, int status)
{
	struct conn *conn = conn_of(shutdown->handle);

	if (status && conn->phase != CONN_CLOSING)
		conn_close(conn);
}

/* All is sent: closes, or ends the sending side and gives the peer time to read. */
static void finish(struct conn *conn)
{
	bool lingers = conn->engine && conn->engine->lingers && !conn->peer_ended;

	say_farewell(conn);
	if (!lingers || uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shut_down)) {
		conn_close(conn);
		return;
	}
	conn->engine->ops->free(conn->engine);
	conn->engine = NULL;
	strbuf_free(&conn->pending);
	enter(conn, CONN_LINGERING);
}

void conn_run(struct conn *conn)
{
	bool moved = true;

	if (conn->phase == CONN_SNIFFING)
		flush(conn); /* a handshake */
	while (moved && conn->phase == CONN_SPEAKING) {
		size_t taken = 0;

		flush(conn);
		if (conn->phase == CONN_SPEAKING && conn->pending.len && !conn->is_writing)
			taken = conn->engine->ops->feed(conn->engine, strbuf_slice(&conn->pending));
		take_front(&conn->pending, taken);
		moved = taken > 0;
	}
	if (conn->phase == CONN_SPEAKING && conn->engine->is_parked)
		conn->owner->has_parked = true;
	if (conn->phase == CONN_SPEAKING && conn->engine->is_done && !conn->wire.len)
		finish(conn);
	if (conn->phase != CONN_CLOSING)
		update_reading(conn);
}

/*
 * The first bytes are taken at once: when many connect at a time, one that asks is not among those
 * that make room because nothing of theirs was read. Only the first: those who connect after it do
 * not wait for all that it sends.
 */
void conn_begin(struct conn *conn)
{
	uv_buf_t buf = uv_buf_init(conn->owner->read_buffer, FIRST_READ_BYTES);
	uv_os_fd_t fd;
	ssize_t len;

	update_reading(conn);
	if (uv_fileno((uv_handle_t *)&conn->tcp, &fd))
		return;
	len = recv(fd, buf.base, buf.len, MSG_DONTWAIT);
	if (len > 0)
		on_read((uv_stream_t *)&conn->tcp, len, &buf);
}

void conn_turn_away(struct conn *conn, enum refusal refusal)
{
	conn->engine = http1_new(&conn->host);
	enter(conn, CONN_SPEAKING);
	http1_turn_away(conn->engine, refusal);
	conn_run(conn);
}

static bool is_stuck(struct conn *conn)
{
	size_t left;

	if (!conn->is_writing)
		return false;
	left = uv_stream_get_write_queue_size((uv_stream_t *)&conn->tcp);
	if (left < conn->write_left)
		pace_move(&conn->write_pace, conn->host.now_ns, conn->write_left - left);
	conn->write_left = left;
	return pace_is_late(&conn->write_pace, conn->host.now_ns) ||
	       (service_answers_are_short(conn->owner->service) &&
		pace_is_late_when_short(&conn->write_pace, conn->host.now_ns));
}

void conn_tick(struct conn *conn)
{
	int64_t phase_ns;

	look_at_clock(conn);
	phase_ns = conn->host.now_ns - conn->phase_since_ns;
	if (conn->phase == CONN_CLOSING)
		return;
	if ((conn->phase == CONN_SNIFFING && phase_ns > ENGINE_HEAD_TIMEOUT_NS) || is_stuck(conn)) {
		refusal_count(REFUSAL_SLOW);
		conn_close(conn);
	} else if (conn->phase == CONN_LINGERING && phase_ns > ENGINE_LINGER_NS) {
		conn_close(conn);
	} else if (conn->phase == CONN_SPEAKING) {
		conn->engine->ops->tick(conn->engine);
		conn_run(conn);
	}
}

int64_t conn_idle_since(const struct conn *conn)
{
	switch (conn->phase) {
	case CONN_SNIFFING:
	case CONN_LINGERING:
		return conn->phase_since_ns;
	case CONN_SPEAKING:
		return conn->engine->ops->idle_since(conn->engine);
	case CONN_CLOSING:
		break;
	}
	return INT64_MAX;
}

void conn_stop(struct conn *conn)
{
	look_at_clock(conn);
	if (conn->phase == CONN_SNIFFING) {
		conn_close(conn);
	} else if (conn->phase == CONN_SPEAKING) {
		conn->engine->ops->stop(conn->engine);
		conn_run(conn);
	}
}
