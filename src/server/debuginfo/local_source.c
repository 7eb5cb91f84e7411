/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/local_source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "server/debuginfo/source.h"
#include "server/debuginfo/source_tar.h"

#define PIECE_BYTES ((size_t)32 * 1024)
#define POLL_MS 100

enum { PIECE_MORE = 0, PIECE_LAST = 1 };

struct request {
	uint64_t number;
	char path[SOURCE_PATH_BYTES_MAX + 1];
};

struct piece {
	uint64_t number;
	int32_t code;
	char text[PIECE_BYTES];
};

#define REQUEST_HEAD offsetof(struct request, path)
#define PIECE_HEAD offsetof(struct piece, text)

struct local_source {
	int fd;
	struct lock lock; /* for all below: one request at a time */
	uint64_t number;
	struct piece piece;
};

struct local_source *local_source_new(int fd)
{
	struct local_source *source = mem_new(struct local_source);

	source->fd = fd;
	lock_init(&source->lock, "debuginfo.local_source", LOCK_DEBUGINFO + 3);
	return source;
}

void local_source_free(struct local_source *source)
{
	if (!source)
		return;
	lock_free(&source->lock);
	free(source);
}

/* ---- the server's end ---- */

static bool wait_for(int fd, short what, int64_t until_ns)
{
	for (;;) {
		struct pollfd poller = { .fd = fd, .events = what };

		if (poll(&poller, 1, POLL_MS) > 0)
			return poller.revents & what;
		if (clock_monotonic_ns() >= until_ns)
			return false;
	}
}

static bool ask(struct local_source *source, struct slice path, int64_t until_ns)
{
	struct request request = { .number = ++source->number };

	memcpy(request.path, path.data, path.len);
	while (send(source->fd, &request, REQUEST_HEAD + path.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		if ((errno != EAGAIN && errno != EINTR) || !wait_for(source->fd, POLLOUT, until_ns))
			return false;
	return true;
}

/* The next piece of this request; its bytes of text, or -1 when none comes. */
static ssize_t take(struct local_source *source, int64_t until_ns)
{
	for (;;) {
		ssize_t got;

		if (!wait_for(source->fd, POLLIN, until_ns))
			return -1;
		got = recv(source->fd, &source->piece, sizeof(source->piece), MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return -1;
		if (got >= (ssize_t)PIECE_HEAD && source->piece.number == source->number)
			return got - (ssize_t)PIECE_HEAD;
	}
}

static void add_reason(int code, struct strbuf *why)
{
	if (code == -EACCES || code == -EPERM)
		strbuf_add_text(why, "; who started firn may not read it");
	else if (code == -EFBIG)
		strbuf_addf(why, "; the file on this host has more than %zu bytes",
			    SOURCE_FILE_BYTES_MAX);
	else
		strbuf_add_text(why, "; it is not on this host");
}

static bool read_locked(struct local_source *source, struct slice path, int64_t until_ns,
			struct strbuf *out, struct strbuf *why)
{
	ssize_t got = -1;

	if (ask(source, path, until_ns))
		while ((got = take(source, until_ns)) >= 0 && source->piece.code >= 0 &&
		       out->len + (size_t)got <= SOURCE_FILE_BYTES_MAX) {
			strbuf_add(out, source->piece.text, (size_t)got);
			if (source->piece.code == PIECE_LAST)
				return true;
		}
	if (got < 0)
		strbuf_add_text(why, "; the process that reads this host's files does not answer");
	else
		add_reason(source->piece.code < 0 ? source->piece.code : -EFBIG, why);
	strbuf_clear(out);
	return false;
}

bool local_source_read(struct local_source *source, struct slice path, int64_t until_ns,
		       struct strbuf *out, struct strbuf *why)
{
	bool is_read;

	if (!path.len || path.data[0] != '/' || path.len > SOURCE_PATH_BYTES_MAX ||
	    memchr(path.data, '\0', path.len))
		return false;
	lock_take(&source->lock);
	is_read = read_locked(source, path, until_ns, out, why);
	lock_give(&source->lock);
	return is_read;
}

/* ---- the reader's end ---- */

/* A file that is text and lies on a disk: not what the kernel makes up, such as other processes. */
static int open_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs system;
	struct stat status;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || fstatfs(fd, &system))
		error = -errno;
	else if (!S_ISREG(status.st_mode) || system.f_type == PROC_SUPER_MAGIC ||
		 system.f_type == SYSFS_MAGIC)
		error = -ENOENT;
	else if ((uint64_t)status.st_size > SOURCE_FILE_BYTES_MAX)
		error = -EFBIG;
	if (!error)
		return fd;
	close(fd);
	return error;
}

static bool send_piece(int fd, struct piece *piece, int code, size_t bytes)
{
	piece->code = code;
	return send(fd, piece, PIECE_HEAD + bytes, MSG_NOSIGNAL) >= 0;
}

static bool answer(int fd, struct piece *piece, const char *path)
{
	int file = open_text(path);
	ssize_t got = 0;
	bool goes_on = true;

	if (file < 0)
		return send_piece(fd, piece, file, 0);
	while (goes_on && (got = read(file, piece->text, PIECE_BYTES)) > 0)
		goes_on = send_piece(fd, piece, PIECE_MORE, (size_t)got);
	if (goes_on)
		goes_on = send_piece(fd, piece, got < 0 ? -errno : PIECE_LAST, 0);
	close(file);
	return goes_on;
}

void local_source_serve(int fd)
{
	static struct piece piece;
	struct request request;
	ssize_t got;

	while ((got = recv(fd, &request, sizeof(request) - 1, 0)) > 0 ||
	       (got < 0 && errno == EINTR)) {
		if (got <= (ssize_t)REQUEST_HEAD)
			continue;
		request.path[(size_t)got - REQUEST_HEAD] = '\0';
		piece.number = request.number;
		if (!answer(fd, &piece, request.path))
			return;
	}
}
