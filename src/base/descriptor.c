/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptor.h"

#include <string.h>

int descriptor_of(struct msghdr *message)
{
	struct cmsghdr *rights = CMSG_FIRSTHDR(message);
	int fd;

	if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS ||
	    rights->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
	return fd;
}
