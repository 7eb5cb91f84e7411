/* SPDX-License-Identifier: Apache-2.0 */
#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_BYTES 65536u

static int read_all(int fd, const char *path, size_t max_bytes, struct strbuf *out, struct err *err)
{
	size_t begun = out->len;

	for (;;) {
		ssize_t got = read(fd, strbuf_reserve(out, STEP_BYTES), STEP_BYTES);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set_errno(err, errno, "read \"%s\"", path);
		if (got == 0)
			return 0;
		out->len += (size_t)got;
		if (out->len - begun > max_bytes)
			return err_set(err, ERR_LIMIT, "\"%s\" is larger than %zu bytes", path,
				       max_bytes);
	}
}

int whole_file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat stat;
	int rc;

	if (fd < 0)
		return err_set_errno(err, errno, "open \"%s\"", path);
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		rc = err_set(err, ERR_INVALID, "\"%s\" is not a regular file", path);
	else
		rc = read_all(fd, path, max_bytes, out, err);
	close(fd);
	return rc;
}

int whole_file_write(int fd, struct slice bytes)
{
	while (bytes.len) {
		ssize_t done = write(fd, bytes.data, bytes.len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		bytes = slice_tail(bytes, (size_t)done);
	}
	return 0;
}
