/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent may say to the server beside it: any bytes, with a descriptor and without. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/binary_channel.h"

#define MESSAGE_BYTES_MAX ((size_t)128 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void taken(void *context, struct slice build_id, struct slice path, int fd)
{
	size_t *count = context;

	if (fcntl(fd, F_GETFD) != FD_CLOEXEC || memchr(build_id.data, '\n', build_id.len))
		abort();
	*count += 1 + build_id.len + path.len;
}

static void say(int channel, const uint8_t *data, size_t size, int lent)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { (void *)(uintptr_t)data, size };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (lent >= 0) {
		memcpy(CMSG_DATA(&control.header), &lent, sizeof(lent));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	if (sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count = 0;
	int ends[2], zero;
	struct err err;

	if (!size || size > MESSAGE_BYTES_MAX || binary_channel_open(ends, &err))
		return 0;
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (binary_channel_opener(ends[1]) != getpid())
		abort();
	say(ends[1], data, size, -1);
	say(ends[1], data, size, zero);
	close(ends[1]);
	while (binary_channel_take(ends[0], taken, &count))
		continue;
	if (count > 1 + size)
		abort();
	close(zero);
	close(ends[0]);
	return 0;
}
