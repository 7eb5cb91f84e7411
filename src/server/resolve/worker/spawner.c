/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/spawner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/privilege.h"
#include "base/strbuf.h"
#include "server/resolve/worker/launch.h"

#define CHANNEL_FD 3 /* in the spawner, which has no others but the standard ones */
#define ORDER_BYTES_MAX ((size_t)96 << 10)
#define ORDER_ARGS_MAX 64
#define ORDER_FDS_MAX (1 + LAUNCH_FDS_MAX) /* the first is the line of the one who asks */
#define CHILDREN_MAX 16
#define REAP_MS 20
#define POLL_MS 50

/* An order is the arguments, each with its NUL; on its line come an errno, then a wait status. */
struct spawned {
	pid_t pid;
	int line;
};

struct order {
	char text[ORDER_BYTES_MAX];
	size_t bytes;
	int fds[ORDER_FDS_MAX];
	size_t fds_count;
};

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(ORDER_FDS_MAX * sizeof(int))];
};

static int channel = -1; /* the server's end */

/* ---- the spawner ---- */

static void say(int line, int value)
{
	/* A reader that does not listen has ended. */
	(void)!send(line, &value, sizeof(value), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static size_t take_fds(struct msghdr *message, int *fds)
{
	struct cmsghdr *rights = CMSG_FIRSTHDR(message);
	size_t bytes;

	if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
		return 0;
	bytes = rights->cmsg_len - CMSG_LEN(0);
	assert(bytes <= ORDER_FDS_MAX * sizeof(int));
	memcpy(fds, CMSG_DATA(rights), bytes);
	return bytes / sizeof(int);
}

/* False at the end. */
static bool take_order(struct order *ret)
{
	union control control;
	struct iovec part = { ret->text, sizeof(ret->text) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t got;

	while ((got = recvmsg(CHANNEL_FD, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		continue;
	if (got <= 0)
		return false;
	ret->bytes = message.msg_flags & MSG_TRUNC ? 0 : (size_t)got;
	ret->fds_count = take_fds(&message, ret->fds);
	return true;
}

/* The arguments of an order; false when it makes no sense. */
static bool split(struct order *order, char *args[ORDER_ARGS_MAX + 1])
{
	size_t count = 0, at = 0;

	if (!order->bytes || order->text[order->bytes - 1])
		return false;
	while (at < order->bytes) {
		if (count == ORDER_ARGS_MAX)
			return false;
		args[count++] = order->text + at;
		at += strlen(order->text + at) + 1;
	}
	args[count] = NULL;
	return true;
}

static int start(struct spawned *children, size_t *count, struct order *order)
{
	char *args[ORDER_ARGS_MAX + 1];
	int error_number;
	pid_t pid;

	if (*count == CHILDREN_MAX)
		return EAGAIN;
	if (!split(order, args))
		return E2BIG;
	error_number = launch(order->fds + 1, (int)order->fds_count - 1, args, &pid);
	if (!error_number)
		children[(*count)++] = (struct spawned){ pid, order->fds[0] };
	return error_number;
}

static void follow(struct spawned *children, size_t *count, struct order *order)
{
	size_t kept = 0;

	if (order->fds_count) {
		int error_number = start(children, count, order);

		say(order->fds[0], error_number);
		kept = error_number ? 0 : 1; /* its line is the child's */
	}
	for (size_t i = kept; i < order->fds_count; i++)
		close(order->fds[i]);
}

static void reap(struct spawned *children, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++) {
		int status;

		if (waitpid(children[i].pid, &status, WNOHANG) == children[i].pid) {
			say(children[i].line, status);
			close(children[i].line);
		} else {
			children[kept++] = children[i];
		}
	}
	*count = kept;
}

/* Waits for orders, or for those who want no more of what they started; false at the end. */
static bool look(const struct spawned *children, size_t count)
{
	struct pollfd events[1 + CHILDREN_MAX] = { { .fd = CHANNEL_FD, .events = POLLIN } };

	for (size_t i = 0; i < count; i++)
		events[1 + i] = (struct pollfd){ .fd = children[i].line, .events = POLLIN };
	if (poll(events, 1 + count, count ? REAP_MS : -1) <= 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (events[1 + i].revents)
			kill(children[i].pid, SIGKILL);
	return events[0].revents;
}

static void keep_only(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < CHANNEL_FD && null >= 0 && !LAUNCH_HAS_SHADOW; i++)
		dup2(null, i);
	if (fd == CHANNEL_FD)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	else
		dup3(fd, CHANNEL_FD, O_CLOEXEC);
	close_range(CHANNEL_FD + 1, ~0u, 0);
}

static _Noreturn void run(int fd, const struct privilege_user *user, bool may_read_any,
			  pid_t server)
{
	static struct order order;
	struct spawned children[CHILDREN_MAX];
	size_t count = 0;
	sigset_t all;

	prctl(PR_SET_NAME, "firn-spawner");
	sigfillset(&all); /* what stops the server stops us through the channel */
	sigprocmask(SIG_SETMASK, &all, NULL);
	keep_only(fd);
	if (privilege_enter(may_read_any ? PRIVILEGE_SPAWNER_OF_ROOT : PRIVILEGE_SPAWNER, user,
			    NULL))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which forgets it */
	if (getppid() != server)
		_exit(0);
	say(CHANNEL_FD, 0);
	for (;;) {
		if (look(children, count)) {
			if (!take_order(&order))
				break;
			follow(children, &count, &order);
		}
		reap(children, &count);
	}
	for (size_t i = 0; i < count; i++)
		kill(children[i].pid, SIGKILL);
	_exit(0);
}

/* ---- the server ---- */

/* Waits for a number; false when the other end is gone. */
static bool hear(int line, int *ret)
{
	ssize_t got;

	while ((got = recv(line, ret, sizeof(*ret), 0)) < 0 && errno == EINTR)
		continue;
	return got == (ssize_t)sizeof(*ret);
}

int spawner_begin(bool may_read_any, struct err *err)
{
	struct privilege_user user;
	pid_t server = getpid(), pid;
	int ends[2], ready;

	assert(channel < 0);
	if (!privilege_find_worker(&user))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set_errno(err, errno, "open a channel to what starts readers");
	pid = fork();
	if (!pid)
		run(ends[1], &user, may_read_any, server);
	close(ends[1]);
	channel = ends[0];
	if (pid < 0)
		return err_set_errno(err, errno, "start what starts readers");
	if (!hear(channel, &ready))
		return err_set(err, ERR_DENIED, "run the readers of symbols as user %u",
			       (unsigned)user.uid);
	return 0;
}

bool spawner_is_there(void)
{
	return channel >= 0;
}

static int send_order(const char *text, size_t bytes, const int *fds, size_t count)
{
	union control control = { .header = { .cmsg_len = CMSG_LEN(count * sizeof(int)),
					      .cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)text, bytes };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	return sendmsg(channel, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

static int order_process(const int *fds, int count, char **args, int line)
{
	int all[ORDER_FDS_MAX] = { line };
	struct strbuf text = { 0 };
	int error_number = E2BIG;

	assert(count <= LAUNCH_FDS_MAX);
	memcpy(all + 1, fds, (size_t)count * sizeof(*fds));
	for (char **at = args; *at; at++) {
		strbuf_add_text(&text, *at);
		strbuf_add_byte(&text, '\0');
	}
	if (text.len <= ORDER_BYTES_MAX)
		error_number = send_order(text.data, text.len, all, 1 + (size_t)count);
	strbuf_free(&text);
	return error_number;
}

int spawner_start(const int *fds, int count, char **args, int *ret_line)
{
	int ends[2], error_number;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return errno;
	error_number = order_process(fds, count, args, ends[1]);
	close(ends[1]);
	if (!error_number && !hear(ends[0], &error_number))
		error_number = ESRCH;
	if (error_number)
		close(ends[0]);
	else
		*ret_line = ends[0];
	return error_number;
}

int spawner_wait(int line, int grace_ms)
{
	int64_t deadline_ns = clock_monotonic_ns() + grace_ms * CLOCK_NS_PER_MS;
	struct pollfd event = { .fd = line, .events = POLLIN };
	int status;

	while (poll(&event, 1, POLL_MS) <= 0 && clock_monotonic_ns() < deadline_ns)
		continue;
	if (!event.revents)
		shutdown(line, SHUT_WR);
	if (!hear(line, &status))
		status = SIGKILL; /* it ended with the spawner */
	close(line);
	return status;
}
