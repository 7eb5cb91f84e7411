/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/lender.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/files/lender_wire.h"
#include "agent/files/lender_worker.h"
#include "agent/files/near_file.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

/* Without an answer or a sign of progress for so long a worker is looked at. */
#define STUCK_NS CLOCK_NS_PER_S
/* One that wants to run but gets no CPU, or has not begun yet, is not stuck before this. */
#define STARVED_NS (30 * CLOCK_NS_PER_S)
#define RESTART_NS CLOCK_NS_PER_S
#define WAIT_STEP_NS (100 * CLOCK_NS_PER_MS)
#define UNANSWERED_MAX 128 /* sent to a worker: fewer than descriptors may be under way */
#define FAR_DEVICES_MAX 64
#define MINOR_BITS 20 /* of a device within the kernel */

enum { LANE_NEAR, LANE_FAR, LANES };

struct waiting {
	struct lender_call call;
	char *path;
};

/* The requests for one worker, in order; the first `sent` were sent, to the worker that is there.
 */
struct lane {
	int fd; /* -1: there is no worker */
	uint32_t worker;
	pid_t pid;		/* 0 = it has not said hello yet */
	int64_t moved_at_ns;	/* monotonic: it got on, or something to do */
	int64_t start_again_ns; /* not before */
	struct waiting *items;
	size_t first, count, capacity, sent;
};

struct stuck {
	int fd; /* closed by the worker's end, -1 after it */
	uint64_t device;
	int64_t until_ns; /* the device is left alone at least so long */
};

struct lender {
	int starter_fd;
	pid_t starter;
	uint32_t last_number, last_worker;
	struct lane lanes[LANES];
	struct stuck stuck[LENDER_STUCK_MAX];
	size_t stuck_count;
	uint64_t far_devices[FAR_DEVICES_MAX]; /* that are known; the oldest gives way */
	size_t far_next;
	struct lender_answer *answers;
	size_t answers_first, answers_count, answers_capacity;
};

static METRIC_COUNTER(lent, "firn_agent_files_total", "{result=\"opened\"}",
		      "Files of other processes that were asked for.");
static METRIC_COUNTER(failed, "firn_agent_files_total", "{result=\"failed\"}",
		      "Files of other processes that were asked for.");
static METRIC_COUNTER(refused, "firn_agent_files_total", "{result=\"refused\"}",
		      "Files of other processes that were asked for.");
static METRIC_COUNTER(stuck_total, "firn_agent_files_stuck_total", "",
		      "Files given up because their file system did not answer.");
static METRIC_GAUGE(stuck_now, "firn_agent_file_workers_stuck", "",
		    "Processes that still wait for such a file system.");
static METRIC_COUNTER(copied, "firn_agent_files_copied_total", "",
		      "Files copied because their file system is far: network or FUSE.");
static METRIC_COUNTER(too_large, "firn_agent_files_too_large_total", "",
		      "Files not copied because they are too large.");
static METRIC_COUNTER(died, "firn_agent_file_workers_died_total", "",
		      "Processes that ended over a file.");

void lender_metrics_register(void)
{
	static struct metric *const metrics[] = { &lent,      &failed, &refused,   &stuck_total,
						  &stuck_now, &copied, &too_large, &died };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

/* ---- the starter ---- */

static int fork_starter(struct lender *lender, struct err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set_errno(err, errno, "make a socket");
	lender->starter = fork();
	if (!lender->starter)
		lender_starter_run(ends[1]);
	close(ends[1]);
	lender->starter_fd = ends[0];
	if (lender->starter < 0)
		return err_set_errno(err, errno, "start the process that opens files");
	return 0;
}

static bool give_order(const struct lender *lender, const struct lender_order *order, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)order, sizeof(*order) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(lender->starter_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static bool is_far(const struct lender *lender, const struct lane *lane)
{
	return lane == &lender->lanes[LANE_FAR];
}

static void start_worker(struct lender *lender, struct lane *lane, int64_t now_ns)
{
	struct lender_order order = { .is_far = is_far(lender, lane) };
	int ends[2];

	lane->start_again_ns = now_ns + RESTART_NS;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	order.worker = ++lender->last_worker;
	if (give_order(lender, &order, ends[1])) {
		lane->fd = ends[0];
		lane->worker = order.worker;
		lane->moved_at_ns = now_ns;
	} else {
		close(ends[0]);
	}
	close(ends[1]);
}

/* ---- what waits ---- */

static struct waiting *waiting_at(const struct lane *lane, size_t at)
{
	return &lane->items[lane->first + at];
}

static void add_waiting(struct lane *lane, const struct waiting *waiting)
{
	if (lane->first && lane->first + lane->count == lane->capacity) {
		memmove(lane->items, lane->items + lane->first, lane->count * sizeof(*lane->items));
		lane->first = 0;
	}
	mem_grow(lane->items, lane->first + lane->count, lane->capacity);
	lane->items[lane->first + lane->count++] = *waiting;
}

static struct waiting take_waiting(struct lane *lane)
{
	struct waiting waiting = lane->items[lane->first];

	assert(lane->count);
	lane->count--;
	lane->first = lane->count ? lane->first + 1 : 0;
	lane->sent -= lane->sent > 0;
	return waiting;
}

/* Takes the first one that was not sent out of the order. */
static struct waiting take_unsent(struct lane *lane)
{
	struct waiting *at = waiting_at(lane, lane->sent), waiting = *at;

	assert(lane->sent < lane->count);
	lane->count--;
	memmove(at, at + 1, (lane->count - lane->sent) * sizeof(*at));
	return waiting;
}

static bool send_one(const struct lane *lane, struct waiting *waiting)
{
	struct iovec parts[] = { { &waiting->call, sizeof(waiting->call) },
				 { waiting->path, waiting->call.path_bytes } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	return sendmsg(lane->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static struct lender_answer *add_answer(struct lender *lender, struct waiting *waiting)
{
	struct lender_answer *answer;

	if (lender->answers_first &&
	    lender->answers_first + lender->answers_count == lender->answers_capacity) {
		memmove(lender->answers, lender->answers + lender->answers_first,
			lender->answers_count * sizeof(*lender->answers));
		lender->answers_first = 0;
	}
	mem_grow(lender->answers, lender->answers_first + lender->answers_count,
		 lender->answers_capacity);
	answer = &lender->answers[lender->answers_first + lender->answers_count++];
	*answer = (struct lender_answer){ .request = waiting->call.request,
					  .key = waiting->call.request.key,
					  .fd = -1 };
	answer->request.path = NULL;
	free(waiting->path);
	return answer;
}

/* The lane's first request stays without its file. */
static void fail_first(struct lender *lender, struct lane *lane, bool is_stuck)
{
	struct waiting waiting = take_waiting(lane);

	add_answer(lender, &waiting)->is_stuck = is_stuck;
	metric_add(&failed, 1);
}

static bool is_stuck_device(const struct lender *lender, uint64_t device)
{
	for (size_t i = 0; i < lender->stuck_count; i++)
		if (lender->stuck[i].device == device)
			return true;
	return false;
}

/* The file system does not answer, or so many do not that only those of this host are asked. */
static bool is_given_up(const struct lender *lender, uint64_t device)
{
	return is_stuck_device(lender, device) ||
	       (device && lender->stuck_count >= LENDER_STUCK_FAR_MAX &&
		(device & LENDER_VIEW || !near_file_is_device(device)));
}

static void fail_unsent(struct lender *lender, struct lane *lane)
{
	struct waiting waiting = take_unsent(lane);

	add_answer(lender, &waiting)->is_stuck = true;
	metric_add(&failed, 1);
}

static void send_waiting(struct lender *lender, struct lane *lane)
{
	int64_t now_ns = clock_monotonic_ns();

	if (lane->fd < 0 && lane->count && now_ns >= lane->start_again_ns &&
	    lender->stuck_count < LENDER_STUCK_MAX)
		start_worker(lender, lane, now_ns);
	if (lane->fd >= 0 && !lane->sent)
		lane->moved_at_ns = now_ns;
	while (lane->fd >= 0 && lane->sent < lane->count && lane->sent < UNANSWERED_MAX) {
		struct waiting *waiting = waiting_at(lane, lane->sent);

		if (is_given_up(lender, waiting->call.request.key.device))
			fail_unsent(lender, lane);
		else if (send_one(lane, waiting))
			lane->sent++;
		else
			break;
	}
}

/* ---- workers that do not get on ---- */

static bool is_far_device(const struct lender *lender, uint64_t device)
{
	for (size_t i = 0; device && i < FAR_DEVICES_MAX; i++)
		if (lender->far_devices[i] == device)
			return true;
	return false;
}

/* True if the process waits for something, rather than for its turn on a CPU. */
static bool is_waiting(pid_t pid)
{
	char path[32], text[512];
	const char *name_end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return true; /* it has gone: its socket says so */
	text[len] = '\0';
	name_end = strrchr(text, ')');
	return !name_end || name_end[1] != ' ' || name_end[2] != 'R';
}

static bool is_stuck(const struct lane *lane, int64_t now_ns)
{
	int64_t still_ns = now_ns - lane->moved_at_ns;

	if (lane->fd < 0 || !lane->sent || still_ns < STUCK_NS)
		return false;
	return still_ns >= STARVED_NS || (lane->pid && is_waiting(lane->pid));
}

static void lose_worker(struct lane *lane)
{
	lane->fd = -1;
	lane->pid = 0;
	lane->sent = 0;
}

static void give_up(struct lender *lender, struct lane *lane)
{
	const struct lender_order order = { .worker = lane->worker, .is_end = 1 };
	const struct lender_request *request = &waiting_at(lane, 0)->call.request;
	uint64_t device = request->key.device;

	if (device & LENDER_VIEW)
		log_warn("files",
			 "a file system does not answer: its files are skipped until it does",
			 "pid=%u path=\"%s\" worker=%d", (unsigned)request->place.pids[0],
			 waiting_at(lane, 0)->path, (int)lane->pid);
	else
		log_warn("files",
			 "a file system does not answer: its files are skipped until it does",
			 "device=%u:%u worker=%d", (unsigned)(device >> MINOR_BITS),
			 (unsigned)(device & ((1u << MINOR_BITS) - 1)), (int)lane->pid);
	give_order(lender, &order, -1);
	assert(lender->stuck_count < LENDER_STUCK_MAX);
	lender->stuck[lender->stuck_count++] =
		(struct stuck){ lane->fd, device, clock_monotonic_ns() + LENDER_PENALTY_NS };
	metric_add(&stuck_total, 1);
	metric_add(&stuck_now, 1);
	lose_worker(lane);
	lane->start_again_ns = 0;
	fail_first(lender, lane, true);
}

/* True if the other end is closed: what a stuck worker still says is of no use to anyone. */
static bool has_ended(int fd)
{
	char byte;
	ssize_t got;

	while ((got = recv(fd, &byte, 1, MSG_DONTWAIT)) > 0)
		continue;
	return !got || (errno != EAGAIN && errno != EINTR);
}

static void look_for_ends(struct lender *lender)
{
	int64_t now_ns = clock_monotonic_ns();
	size_t kept = 0;

	for (size_t i = 0; i < lender->stuck_count; i++) {
		struct stuck *stuck = &lender->stuck[i];

		if (stuck->fd >= 0 && has_ended(stuck->fd)) {
			close(stuck->fd);
			stuck->fd = -1;
			metric_add(&stuck_now, -1);
		}
		if (stuck->fd >= 0 || (stuck->device && now_ns < stuck->until_ns))
			lender->stuck[kept++] = *stuck;
	}
	lender->stuck_count = kept;
}

/* ---- answers ---- */

/* What a worker says is checked: it has looked at files that anybody may have made. */
static bool is_sound(const struct lender_reply *reply, const char *path, size_t path_bytes)
{
	return reply->path_bytes == path_bytes && path_bytes <= LENDER_PATH_BYTES_MAX &&
	       (!path_bytes || !path[path_bytes - 1]) &&
	       reply->elf.segments_count <= ELF_SEGMENTS_MAX &&
	       memchr(reply->elf.build_id, 0, sizeof(reply->elf.build_id));
}

static void ask_far(struct lender *lender, struct lane *lane)
{
	struct waiting waiting = take_waiting(lane);
	uint64_t device = waiting.call.request.key.device;

	if (device && !is_far_device(lender, device))
		lender->far_devices[lender->far_next++ % FAR_DEVICES_MAX] = device;
	add_waiting(&lender->lanes[LANE_FAR], &waiting);
}

static void take_done(struct lender *lender, struct lane *lane, const struct lender_reply *reply,
		      const char *path, int fd)
{
	struct waiting waiting = take_waiting(lane);
	bool is_key = waiting.call.request.wish == LENDER_KEY;
	bool is_done = reply->word == LENDER_DONE && (fd >= 0 || is_key);
	struct lender_answer *answer = add_answer(lender, &waiting);

	answer->cpu_ns = reply->cpu_ns;
	answer->is_done = is_done;
	answer->fd = fd;
	/* The file's mode decides who may see its code, so workers must not change modes. */
	if (is_done && reply->is_copy && waiting.call.request.wish != LENDER_IN_ROOT &&
	    fchmod(fd, (mode_t)reply->mode & (S_IRWXU | S_IRWXG | S_IRWXO)))
		log_debug("files", "a copied file has another mode than the original",
			  "path=\"%s\"", path);
	if (is_done) {
		answer->key = reply->key;
		answer->owner = reply->owner;
		answer->is_copy = reply->is_copy != 0;
		answer->copied_from = reply->copied_from;
		answer->path = mem_strndup(path, reply->path_bytes ? reply->path_bytes - 1 : 0);
	}
	if (is_done && reply->is_elf) {
		answer->elf = mem_new(struct elf_info);
		*answer->elf = reply->elf;
	}
	metric_add(is_done ? &lent : &failed, 1);
	metric_add(&copied, is_done && is_far(lender, lane) && !is_key);
	metric_add(&too_large, reply->is_too_large != 0);
}

/* Takes the descriptor over. */
static void take_reply(struct lender *lender, struct lane *lane, const struct lender_reply *reply,
		       const char *path, int fd)
{
	lane->moved_at_ns = clock_monotonic_ns();
	if (reply->word == LENDER_HELLO) {
		lane->pid = (pid_t)reply->number;
	} else if (reply->word != LENDER_PROGRESS && lane->sent &&
		   waiting_at(lane, 0)->call.number == reply->number) {
		if (reply->word == LENDER_FAR) {
			ask_far(lender, lane);
		} else {
			take_done(lender, lane, reply, path, fd);
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* One reply, if there is one; notices the end of the worker. */
static bool receive(struct lender *lender, struct lane *lane)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct lender_reply reply;
	char path[LENDER_PATH_BYTES_MAX];
	struct iovec parts[] = { { &reply, sizeof(reply) }, { path, sizeof(path) } };
	struct msghdr message = { .msg_iov = parts,
				  .msg_iovlen = 2,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t got;
	int fd;

	if (lane->fd < 0)
		return false;
	got = recvmsg(lane->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	fd = got > 0 ? descriptor_of(&message) : -1;
	if (got < (ssize_t)sizeof(reply) || !is_sound(&reply, path, (size_t)got - sizeof(reply))) {
		if (fd >= 0)
			close(fd);
		close(lane->fd);
		metric_add(&died, 1);
		if (lane->sent)
			fail_first(lender, lane, false); /* it may be what killed it */
		lose_worker(lane);
		return true;
	}
	take_reply(lender, lane, &reply, path, fd);
	return true;
}

/* What a lane's worker says. */
static void receive_lane(struct lender *lender, struct lane *lane)
{
	while (receive(lender, lane))
		continue;
}

/* What was asked for. */
static void receive_all(struct lender *lender)
{
	for (size_t i = 0; i < LANES; i++)
		if (lender->lanes[i].count)
			receive_lane(lender, &lender->lanes[i]);
	for (size_t i = 0; i < LANES; i++)
		send_waiting(lender, &lender->lanes[i]);
}

/* ---- for the caller ---- */

int lender_new(struct lender **ret, struct err *err)
{
	struct lender *lender = mem_new(struct lender);
	int code;

	lender->starter_fd = -1;
	for (size_t i = 0; i < LANES; i++)
		lender->lanes[i].fd = -1;
	code = fork_starter(lender, err);
	if (code) {
		lender_free(lender);
		return code;
	}
	*ret = lender;
	return 0;
}

static void free_lane(struct lane *lane)
{
	for (size_t i = 0; i < lane->count; i++)
		free(waiting_at(lane, i)->path);
	free(lane->items);
	if (lane->fd >= 0)
		close(lane->fd);
}

void lender_free(struct lender *lender)
{
	struct lender_answer answer;

	if (!lender)
		return;
	while (lender_take(lender, &answer))
		lender_answer_free(&answer);
	for (size_t i = 0; i < LANES; i++)
		free_lane(&lender->lanes[i]);
	for (size_t i = 0; i < lender->stuck_count; i++) {
		if (lender->stuck[i].fd < 0)
			continue;
		close(lender->stuck[i].fd);
		metric_add(&stuck_now, -1);
	}
	if (lender->starter_fd >= 0)
		close(lender->starter_fd);
	if (lender->starter > 0) {
		kill(lender->starter, SIGKILL); /* its workers end with it */
		while (waitpid(lender->starter, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	free(lender->answers);
	free(lender);
}

bool lender_ask(struct lender *lender, const struct lender_request *request)
{
	uint64_t device = request->key.device;
	struct lane *lane = &lender->lanes[is_far_device(lender, device) ? LANE_FAR : LANE_NEAR];
	size_t path_bytes = request->path ? strlen(request->path) + 1 : 0;
	struct waiting waiting = { .call = { .request = *request,
					     .number = ++lender->last_number,
					     .path_bytes = (uint32_t)path_bytes } };

	if (lender->lanes[LANE_NEAR].count + lender->lanes[LANE_FAR].count >= LENDER_WAITING_MAX ||
	    path_bytes > LENDER_PATH_BYTES_MAX || is_given_up(lender, device)) {
		metric_add(&refused, 1);
		return false;
	}
	waiting.call.request.path = NULL;
	if (path_bytes)
		waiting.path = mem_strndup(request->path, path_bytes - 1);
	add_waiting(lane, &waiting);
	send_waiting(lender, lane);
	return true;
}

bool lender_take(struct lender *lender, struct lender_answer *ret)
{
	if (!lender->answers_count)
		receive_all(lender);
	if (!lender->answers_count)
		return false;
	*ret = lender->answers[lender->answers_first];
	lender->answers_count--;
	lender->answers_first = lender->answers_count ? lender->answers_first + 1 : 0;
	return true;
}

void lender_answer_free(struct lender_answer *answer)
{
	if (answer->fd >= 0)
		close(answer->fd);
	free(answer->elf);
	free(answer->path);
	*answer = (struct lender_answer){ .fd = -1 };
}

bool lender_wait(struct lender *lender, int64_t timeout_ns)
{
	int64_t until_ns = clock_monotonic_ns() + timeout_ns;

	receive_all(lender);
	while (lender->lanes[LANE_NEAR].count) {
		struct pollfd event = { .fd = lender->lanes[LANE_NEAR].fd, .events = POLLIN };
		int64_t left_ns = until_ns - clock_monotonic_ns();

		if (left_ns <= 0)
			return false;
		if (left_ns > WAIT_STEP_NS)
			left_ns = WAIT_STEP_NS;
		poll(&event, 1, (int)((left_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS));
		lender_look_after(lender);
	}
	return true;
}

int lender_fd(const struct lender *lender)
{
	const struct lane *far = &lender->lanes[LANE_FAR];

	return far->fd >= 0 && far->count ? far->fd : lender->lanes[LANE_NEAR].fd;
}

void lender_look_after(struct lender *lender)
{
	look_for_ends(lender);
	/* Also of a lane that nothing is asked of: that its worker has ended. */
	for (size_t i = 0; i < LANES; i++)
		receive_lane(lender, &lender->lanes[i]);
	receive_all(lender);
	for (size_t i = 0; i < LANES; i++) {
		struct lane *lane = &lender->lanes[i];

		if (!is_stuck(lane, clock_monotonic_ns()))
			continue;
		receive_lane(lender, lane); /* it may wait because it has answered since */
		if (is_stuck(lane, clock_monotonic_ns()) && lender->stuck_count < LENDER_STUCK_MAX)
			give_up(lender, lane);
	}
	receive_all(lender);
}
