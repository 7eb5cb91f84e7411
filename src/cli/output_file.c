/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/whole_file.h"

static int write_beside(const char *temporary, const char *path, struct slice bytes,
			struct err *err)
{
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int rc;

	if (fd < 0)
		return err_set_errno(err, errno, "create \"%s\"", temporary);
	rc = whole_file_write(fd, bytes);
	if (!rc && fsync(fd))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (!rc)
		return 0;
	unlink(temporary);
	return err_set_errno(err, -rc, "write \"%s\"", path);
}

/* A device, pipe or socket: to be written to, never to be replaced by a file. */
static bool is_special(const char *path)
{
	struct stat status;

	return !stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static int write_into(const char *path, struct slice bytes, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return err_set_errno(err, errno, "open \"%s\"", path);
	rc = whole_file_write(fd, bytes);
	if (close(fd) && !rc)
		rc = -errno;
	return rc ? err_set_errno(err, -rc, "write \"%s\"", path) : 0;
}

int output_file_write(const char *path, struct slice bytes, struct err *err)
{
	struct strbuf temporary = { 0 };
	int rc;

	if (!strcmp(path, "-")) {
		rc = whole_file_write(STDOUT_FILENO, bytes);
		return rc ? err_set_errno(err, -rc, "write to standard output") : 0;
	}
	if (is_special(path))
		return write_into(path, bytes, err);
	strbuf_addf(&temporary, "%s.tmp.%d", path, (int)getpid());
	rc = write_beside(strbuf_text(&temporary), path, bytes, err);
	strbuf_free(&temporary);
	return rc;
}

int output_file_print(const char *path, struct slice text, struct err *err)
{
	struct strbuf shown = { 0 };
	int rc;

	printable_add_lines(&shown, text);
	rc = output_file_write(path, strbuf_slice(&shown), err);
	strbuf_free(&shown);
	return rc;
}
