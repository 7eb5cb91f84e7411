/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/binary_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/strbuf.h"

#define MESSAGE_BYTES_MAX 8192

int binary_channel_open(int ret[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret))
		return err_set_errno(err, errno, "open a channel to the agent");
	fcntl(ret[1], F_SETFD, 0);
	return 0;
}

pid_t binary_channel_opener(int fd)
{
	struct ucred opener = { 0 };
	socklen_t len = sizeof(opener);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &opener, &len) ? 0 : opener.pid;
}

bool binary_channel_lend(void *channel, const struct agent_binary *binary)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct strbuf text = { 0 };
	struct iovec iov;
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	bool is_full = false;

	strbuf_addf(&text, "%.*s\n%.*s", SLICE_FMT(binary->build_id), SLICE_FMT(binary->path));
	if (text.len <= MESSAGE_BYTES_MAX) {
		iov = (struct iovec){ text.data, text.len };
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &binary->fd, sizeof(binary->fd));
		/* ETOOMANYREFS: too many descriptors are on their way. */
		is_full = sendmsg(*(int *)channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
			  (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS);
	}
	strbuf_free(&text);
	return !is_full;
}

bool binary_channel_take(int fd, binary_channel_taken_f *taken, void *context)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char text[MESSAGE_BYTES_MAX];
	struct iovec iov = { text, sizeof(text) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	struct slice build_id, path;
	int lent;

	if (got < 0)
		return errno == EINTR;
	if (!got)
		return false;
	lent = descriptor_of(&message);
	if (lent < 0)
		return true;
	build_id = slice_cut(slice_from(text, (size_t)got), '\n', &path);
	taken(context, build_id, path, lent);
	close(lent);
	return true;
}
