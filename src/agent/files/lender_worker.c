/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/lender_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/files/lender_wire.h"
#include "agent/files/near_file.h"
#include "agent/files/prompt.h"
#include "base/privilege.h"

#define CHILDREN_MAX (2u * LENDER_STUCK_MAX)
#define REAP_MS 1000
#define MINOR_BITS 20 /* of a device within the kernel */
#define FD_SOCKET 3   /* of the starter and of a worker; the only one besides the first three */

struct child {
	uint32_t worker;
	pid_t pid;
};

struct worker {
	bool is_far;
	int64_t began_cpu_ns;
	struct lender_reply reply;
	char path[LENDER_PATH_BYTES_MAX];
};

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

/* ---- a worker ---- */

/* Ends the worker when nobody listens any more. */
static void send_reply(struct worker *worker, enum lender_word word, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec parts[] = { { &worker->reply, sizeof(worker->reply) },
				 { worker->path, worker->reply.path_bytes } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	if (fd >= 0) {
		struct cmsghdr *rights = &control.header;

		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	}
	worker->reply.word = word;
	worker->reply.cpu_ns = cpu_ns() - worker->began_cpu_ns;
	while (sendmsg(FD_SOCKET, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			_exit(0);
}

static void tell_progress(void *context)
{
	struct worker *worker = context;
	uint32_t path_bytes = worker->reply.path_bytes;

	worker->reply.path_bytes = 0;
	send_reply(worker, LENDER_PROGRESS, -1);
	worker->reply.path_bytes = path_bytes;
}

static void set_path(struct worker *worker, const char *path)
{
	size_t len = strlen(path);

	if (len >= sizeof(worker->path))
		len = 0;
	memcpy(worker->path, path, len);
	worker->path[len] = '\0';
	worker->reply.path_bytes = (uint32_t)len + 1;
}

static struct file_key key_of(const struct stat *stat)
{
	return (struct file_key){
		.inode = stat->st_ino,
		.device = (uint64_t)major(stat->st_dev) << MINOR_BITS | minor(stat->st_dev),
		.changed_ns = stat->st_mtim.tv_sec * CLOCK_NS_PER_S + stat->st_mtim.tv_nsec,
	};
}

/* A regular file of our own root, looked at before it is opened. */
static int open_program(const char *path, struct file_key *ret)
{
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -1;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode)) {
		close(fd);
		return -1;
	}
	*ret = key_of(&stat);
	return fd;
}

/* Looks before opening: a device or a pipe could do something when it is opened. */
static int open_regular(int root, const char *path, bool is_last_followed, struct stat *ret)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (is_last_followed ? 0u : (unsigned)O_NOFOLLOW),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int found = (int)syscall(SYS_openat2, root, path, &how, sizeof(how)), fd = -1;
	char own[32];

	if (found < 0)
		return -1;
	if (!fstat(found, ret) && S_ISREG(ret->st_mode)) {
		snprintf(own, sizeof(own), "/proc/self/fd/%d", found);
		fd = open(own, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	close(found);
	return fd;
}

static int open_in_root(struct worker *worker, const struct lender_request *request,
			const char *path)
{
	char of_process[48];
	struct stat stat;
	int root, fd;

	if (request->root.holder)
		snprintf(of_process, sizeof(of_process), "/proc/%" PRIu32 "/fd/%d",
			 request->root.holder, request->root.fd);
	else
		snprintf(of_process, sizeof(of_process), "/proc/%" PRIu32 "/root",
			 request->place.pids[0]);
	root = open(of_process, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = open_regular(root, path, request->is_last_followed, &stat);
	close(root);
	if (fd < 0)
		return -1;
	worker->reply.key = key_of(&stat);
	worker->reply.owner = stat.st_uid;
	return fd;
}

static int open_wanted(struct worker *worker, const struct lender_request *request,
		       const char *path)
{
	struct strbuf found = { 0 };
	int fd;

	if (request->wish == LENDER_PROGRAM) {
		set_path(worker, path);
		return open_program(path, &worker->reply.key);
	}
	if (request->wish == LENDER_IN_ROOT) {
		set_path(worker, path);
		return open_in_root(worker, request, path);
	}
	fd = opener_open(&request->place, &request->key, &found);
	set_path(worker, strbuf_text(&found));
	strbuf_free(&found);
	return fd;
}

static int copy_part(struct worker *worker, int fd, const struct lender_part *part)
{
	struct stat stat;
	uint64_t size, from;

	if (fstat(fd, &stat) || stat.st_size < 0)
		return -1;
	size = (uint64_t)stat.st_size;
	from = part->from <= size ? part->from : 0;
	if (part->is_end && size - from > part->bytes_max)
		from = size - part->bytes_max;
	worker->reply.copied_from = from;
	return near_file_copy_part(fd, from,
				   size - from < part->bytes_max ? size - from : part->bytes_max,
				   tell_progress, worker);
}

/* What is lent instead of a far file; -1 when it cannot be copied. Takes `fd` over. */
static int copy_far(struct worker *worker, int fd, const struct lender_part *part)
{
	int copy = part->bytes_max
			   ? copy_part(worker, fd, part)
			   : near_file_copy(fd, LENDER_COPY_BYTES_MAX, tell_progress, worker);
	struct stat stat;

	if (copy < 0 && errno == EFBIG)
		worker->reply.is_too_large = 1;
	if (copy >= 0 && !fstat(fd, &stat)) {
		worker->reply.is_copy = 1;
		worker->reply.mode = stat.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
	}
	close(fd);
	return copy;
}

static bool is_near(const struct worker *worker, const struct lender_request *request, int fd)
{
	if (request->wish == LENDER_IN_ROOT && (request->part.bytes_max || request->root.holder))
		return near_file_is_written(fd, request->place.pids[0]);
	return near_file_is(fd, worker->reply.key.device);
}

static void lend(struct worker *worker, const struct lender_request *request, const char *path)
{
	int fd = open_wanted(worker, request, path);

	if (fd >= 0 && !is_near(worker, request, fd)) {
		if (!worker->is_far) {
			close(fd);
			send_reply(worker, LENDER_FAR, -1);
			return;
		}
		fd = copy_far(worker, fd, &request->part);
	}
	if (fd >= 0 && request->wish != LENDER_IN_ROOT)
		worker->reply.is_elf = !elf_read_info(fd, worker->path, &worker->reply.elf, NULL) &&
				       elf_is_linked(&worker->reply.elf);
	send_reply(worker, fd < 0 ? LENDER_FAILED : LENDER_DONE, fd);
	if (fd >= 0)
		close(fd);
}

static void find_key(struct worker *worker, const struct lender_request *request, char *path)
{
	const struct maps_range range = { .inode = request->key.inode,
					  .device = request->key.device,
					  .path = path };

	worker->reply.key = opener_key(&request->place, &range);
	send_reply(worker, LENDER_DONE, -1);
}

static void answer(struct worker *worker, const struct lender_call *call, char *path)
{
	worker->began_cpu_ns = cpu_ns();
	memset(&worker->reply, 0, sizeof(worker->reply));
	worker->reply.number = call->number;
	worker->reply.key = call->request.key;
	if (call->request.wish == LENDER_KEY)
		find_key(worker, &call->request, path);
	else
		lend(worker, &call->request, path);
}

static _Noreturn void run_worker(bool is_far)
{
	static struct worker worker;
	static struct lender_call call;
	static char path[LENDER_PATH_BYTES_MAX];
	struct iovec parts[] = { { &call, sizeof(call) }, { path, sizeof(path) } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	prctl(PR_SET_NAME, is_far ? "firn-far-files" : "firn-files");
	if (privilege_enter(PRIVILEGE_FILE_WORKER, NULL, NULL))
		_exit(1);
	worker.is_far = is_far;
	worker.reply.number = (uint32_t)getpid();
	send_reply(&worker, LENDER_HELLO, -1);
	for (;;) {
		ssize_t got = recvmsg(FD_SOCKET, &message, MSG_CMSG_CLOEXEC);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < (ssize_t)sizeof(call))
			_exit(0);
		path[call.path_bytes < sizeof(path) ? call.path_bytes : 0] = '\0';
		answer(&worker, &call, path);
	}
}

/* ---- the starter ---- */

/* Nobody's standard streams and descriptors stay open because of a worker that is stuck. */
static void keep_only(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd != FD_SOCKET)
		dup2(fd, FD_SOCKET);
	for (int i = 0; i < FD_SOCKET; i++)
		if (null >= 0)
			dup2(null, i);
	close_range(FD_SOCKET + 1, ~0u, 0);
}

static void begin(void)
{
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigfillset(&all); /* what stops the agent stops us through the socket */
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static void start(struct child *children, size_t *count, const struct lender_order *order, int fd)
{
	pid_t starter = getpid(), pid;

	if (*count == CHILDREN_MAX)
		return;
	pid = fork();
	if (!pid) {
		begin();
		if (fd != FD_SOCKET)
			dup2(fd, FD_SOCKET);
		close_range(FD_SOCKET + 1, ~0u, 0);
		if (getppid() != starter)
			_exit(0);
		run_worker(order->is_far);
	}
	if (pid > 0)
		children[(*count)++] = (struct child){ order->worker, pid };
}

static void end(const struct child *children, size_t count, const struct lender_order *order)
{
	for (size_t i = 0; i < count; i++)
		if (children[i].worker == order->worker)
			kill(children[i].pid, SIGKILL);
}

static void reap(struct child *children, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++)
		if (!waitpid(children[i].pid, NULL, WNOHANG))
			children[kept++] = children[i];
	*count = kept;
}

/* Waits for an order; `ret_fd` is -1 when no descriptor came along. False at the end. */
static bool take_order(struct lender_order *ret, int *ret_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { ret, sizeof(*ret) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *rights;
	ssize_t got;

	while ((got = recvmsg(FD_SOCKET, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		continue;
	if (got != (ssize_t)sizeof(*ret))
		return false;
	rights = CMSG_FIRSTHDR(&message);
	*ret_fd = -1;
	if (rights && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(rights), sizeof(*ret_fd));
	return true;
}

_Noreturn void lender_starter_run(int fd)
{
	struct child children[CHILDREN_MAX];
	size_t count = 0;

	begin();
	keep_only(fd);
	prompt_begin();
	prctl(PR_SET_NAME, "firn-starter");
	if (privilege_enter(PRIVILEGE_FILE_STARTER, NULL, NULL))
		_exit(1);
	for (;;) {
		struct pollfd event = { .fd = FD_SOCKET, .events = POLLIN };
		struct lender_order order;
		int given;

		reap(children, &count);
		if (poll(&event, 1, count ? REAP_MS : -1) <= 0)
			continue;
		if (!take_order(&order, &given))
			_exit(0);
		if (order.is_end)
			end(children, count, &order);
		else if (given >= 0)
			start(children, &count, &order, given);
		if (given >= 0)
			close(given);
	}
}
