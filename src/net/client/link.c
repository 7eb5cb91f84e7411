/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client/link.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define LOOK_MS 200 /* between looks at end_by_ns and the stops */
#define FULL_QUEUE_MS 20

void link_init(struct link *link)
{
	*link = (struct link){ .fd = -1, .end_by_ns = INT64_MAX };
}

void link_end_by(struct link *link, int64_t at_ns)
{
	atomic_store(&link->end_by_ns, at_ns);
}

void link_close(struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	net_transport_free(&link->transport);
	link->transport = (struct net_transport){ 0 };
	free(link->read_buffer);
	link->read_buffer = NULL;
}

static bool is_stopped(const struct link *link)
{
	for (size_t i = 0; i < LINK_STOPS; i++)
		if (link->stops[i] && atomic_load(link->stops[i]))
			return true;
	return false;
}

/*
 * Waits until the socket is ready for `events`, looking at end_by_ns and the stops now and then.
 * 0, or errno.
 */
static int wait_ready(const struct link *link, int fd, short events, int64_t deadline_at_ns)
{
	for (;;) {
		struct pollfd poll_fd = { .fd = fd, .events = events };
		int64_t end_by_ns = atomic_load(&link->end_by_ns);
		int64_t until_ns = end_by_ns < deadline_at_ns ? end_by_ns : deadline_at_ns;
		int64_t left_ms =
			(until_ns - clock_monotonic_ns() + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
		int ready;

		if (is_stopped(link))
			return ECANCELED;
		if (left_ms < 0)
			left_ms = 0;
		ready = poll(&poll_fd, 1, left_ms > LOOK_MS ? LOOK_MS : (int)left_ms);
		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return errno;
		if (ready == 0 && clock_monotonic_ns() >= until_ns)
			return ETIMEDOUT;
	}
}

static int failure(const struct link *link, const char *what, int error_number, struct err *err)
{
	if (error_number == ETIMEDOUT)
		return err_set(err, ERR_DEADLINE, "%s \"%s\": no answer in time", what, link->text);
	if (error_number == ECANCELED)
		return err_set(err, ERR_CANCELLED, "%s \"%s\": cancelled", what, link->text);
	err_set_errno(err, error_number, "%s \"%s\"", what, link->text);
	if (err)
		err->code = ERR_UNAVAILABLE;
	return -ERR_UNAVAILABLE;
}

/* 0, or an error number. */
static int try_connect(const struct link *link, const union address_socket *to,
		       int64_t deadline_at_ns, int *ret_fd)
{
	const int on = 1;
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t bytes = sizeof(int);
	int code = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, &to->any, address_socket_bytes(to)))
		code = errno;
	if (code == EINPROGRESS || code == EINTR)
		code = wait_ready(link, fd, POLLOUT, deadline_at_ns);
	if (!code && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes))
		code = errno;
	if (code) {
		close(fd);
		return code;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	*ret_fd = fd;
	return 0;
}

static int connect_tcp(struct link *link, const struct address *address, int64_t deadline_at_ns,
		       struct err *err)
{
	union address_socket sockets[ADDRESS_CHOICES_MAX];
	bool is_ip6 = strchr(address->host, ':');
	size_t count;
	int code;

	link_close(link);
	snprintf(link->text, sizeof(link->text), is_ip6 ? "[%s]:%u" : "%s:%u", address->host,
		 address->port);
	code = address_resolve(address, sockets, &count, err);
	if (code)
		return err_wrap(err, "connect to \"%s\"", link->text);
	for (size_t i = 0; i < count; i++) {
		code = try_connect(link, &sockets[i], deadline_at_ns, &link->fd);
		if (!code) {
			link->read_buffer = mem_calloc(LINK_READ_BYTES, 1);
			return 0;
		}
	}
	return failure(link, "connect to", code, err);
}

/* Waits for bytes of the wire, at least one. */
static int receive_wire(struct link *link, struct slice *ret, int64_t deadline_at_ns,
			struct err *err)
{
	for (;;) {
		ssize_t len = recv(link->fd, link->read_buffer, LINK_READ_BYTES, 0);
		int code = errno;

		if (len > 0) {
			*ret = slice_from(link->read_buffer, (size_t)len);
			return 0;
		}
		link->is_at_end = len == 0;
		if (len == 0)
			return err_set(err, ERR_UNAVAILABLE,
				       "receive from \"%s\": connection closed by the server",
				       link->text);
		if (code == EAGAIN)
			code = wait_ready(link, link->fd, POLLIN, deadline_at_ns);
		if (code && code != EINTR)
			return failure(link, "receive from", code, err);
	}
}

static int send_wire(struct link *link, struct slice wire, int64_t deadline_at_ns, struct err *err)
{
	while (wire.len) {
		ssize_t sent = send(link->fd, wire.data, wire.len, MSG_NOSIGNAL);
		int code = errno;

		if (sent >= 0) {
			wire = slice_tail(wire, (size_t)sent);
			continue;
		}
		if (code == EAGAIN)
			code = wait_ready(link, link->fd, POLLOUT, deadline_at_ns);
		if (code && code != EINTR)
			return failure(link, "send to", code, err);
	}
	return 0;
}

int link_send(struct link *link, struct slice plain, int64_t deadline_at_ns, struct err *err)
{
	struct slice wire;
	int code = net_transport_seal(&link->transport, plain, &wire, err);

	return code ? code : send_wire(link, wire, deadline_at_ns, err);
}

int link_receive(struct link *link, struct slice *ret_plain, int64_t deadline_at_ns,
		 struct err *err)
{
	struct slice wire;
	int code;

	do { /* some bytes of TLS carry nothing for us */
		code = receive_wire(link, &wire, deadline_at_ns, err);
		if (!code)
			code = net_transport_open(&link->transport, wire, ret_plain, err);
	} while (!code && !ret_plain->len);
	return code;
}

/* An alert that says why is sent before giving up. */
static int shake_hands(struct link *link, int64_t deadline_at_ns, struct err *err)
{
	struct slice nothing = { 0 };
	int code = link_send(link, nothing, deadline_at_ns, err);

	while (!code && !tls_is_established(&link->transport)) {
		struct slice wire;

		code = receive_wire(link, &wire, deadline_at_ns, err);
		if (code)
			return code;
		code = net_transport_open(&link->transport, wire, &nothing, err);
		(void)link_send(link, (struct slice){ 0 }, deadline_at_ns, NULL);
	}
	return code;
}

/* A socket of this host tells nobody when its queue has room again. */
static int connect_local(const struct link *link, const struct sockaddr_un *to, int fd,
			 int64_t deadline_at_ns)
{
	while (connect(fd, (const struct sockaddr *)to, sizeof(*to))) {
		int64_t end_by_ns = atomic_load(&link->end_by_ns), now_ns = clock_monotonic_ns();

		if (errno != EAGAIN && errno != EINTR)
			return errno;
		if (now_ns >= deadline_at_ns || now_ns >= end_by_ns)
			return ETIMEDOUT;
		poll(NULL, 0, FULL_QUEUE_MS);
	}
	return 0;
}

int link_open_local(struct link *link, const char *path, int64_t deadline_at_ns, struct err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, code;

	link_close(link);
	snprintf(link->text, sizeof(link->text), "%s", path);
	if (strlen(path) >= sizeof(to.sun_path))
		return failure(link, "connect to", ENAMETOOLONG, err);
	memcpy(to.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failure(link, "connect to", errno, err);
	code = connect_local(link, &to, fd, deadline_at_ns);
	if (code) {
		close(fd);
		return failure(link, "connect to", code, err);
	}
	link->fd = fd;
	link->read_buffer = mem_calloc(LINK_READ_BYTES, 1);
	return 0;
}

int link_open(struct link *link, const struct address *address, struct tls *tls,
	      int64_t deadline_at_ns, struct err *err)
{
	int code = connect_tcp(link, address, deadline_at_ns, err);

	return code || !tls ? code : link_secure(link, tls, address->host, deadline_at_ns, err);
}

int link_secure(struct link *link, struct tls *tls, const char *host, int64_t deadline_at_ns,
		struct err *err)
{
	int code = tls_connect(tls, host, &link->transport, err);

	if (!code)
		code = shake_hands(link, deadline_at_ns, err);
	if (code) {
		link_close(link);
		return err_wrap(err, "connect to \"%s\"", link->text);
	}
	return 0;
}
