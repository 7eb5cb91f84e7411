/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/root_files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/mem.h"

#define STEP_MS 100 /* how long a stop may go unnoticed, and a worker that hangs */

struct root_files {
	atomic_uint references;
	_Atomic bool is_stopping;
	struct lock lock; /* guards what follows */
	struct lender *lender;
	uint64_t last_mark;
};

int root_files_new(struct root_files **ret, struct err *err)
{
	struct lender *lender;
	struct root_files *files;
	int code = lender_new(&lender, err);

	if (code)
		return code;
	files = mem_new(struct root_files);
	files->references = 1;
	files->lender = lender;
	lock_init(&files->lock, "root_files", LOCK_AGENT + 11);
	*ret = files;
	return 0;
}

struct root_files *root_files_ref(struct root_files *files)
{
	if (files)
		files->references++;
	return files;
}

void root_files_unref(struct root_files *files)
{
	if (!files || --files->references)
		return;
	lender_free(files->lender);
	lock_free(&files->lock);
	free(files);
}

void root_files_stop(struct root_files *files)
{
	if (files)
		files->is_stopping = true;
}

/* The root directory and where it is mounted, told without asking its file system anything. */
static uint64_t hash_root(int fd)
{
	struct statx root;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &root))
		return 0;
	return hash_mix(
		hash_mix(root.stx_ino, (uint64_t)root.stx_dev_major << 32 | root.stx_dev_minor),
		root.stx_mask & STATX_MNT_ID ? root.stx_mnt_id : 0);
}

/*
 * What stands for the device where that is not known before the file is opened: the root directory
 * of the process and its mounts. That directory is read as a link, which asks no file system.
 */
static uint64_t view_of(const struct root_files_wish *wish)
{
	char path[32], root[PATH_MAX];
	struct stat mounts;
	ssize_t len;

	if (wish->root_fd > 0)
		return LENDER_VIEW | hash_root(wish->root_fd);
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", wish->pid);
	len = readlink(path, root, sizeof(root));
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/mnt", wish->pid);
	return LENDER_VIEW | hash_mix(hash_bytes(root, len > 0 ? (size_t)len : 0),
				      stat(path, &mounts) ? 0 : mounts.st_ino);
}

/* The answer with this mark; those that came too late for others are dropped. */
static bool take(struct lender *lender, uint64_t mark, struct lender_answer *ret)
{
	while (lender_take(lender, ret)) {
		if (ret->request.mark == mark)
			return true;
		lender_answer_free(ret);
	}
	return false;
}

static bool wait_for(struct root_files *files, uint64_t mark, struct lender_answer *ret)
{
	int64_t until_ns = clock_monotonic_ns() + ROOT_FILES_WAIT_NS;

	lock_assert_held(&files->lock);
	while (!take(files->lender, mark, ret)) {
		struct pollfd event = { .fd = lender_fd(files->lender), .events = POLLIN };

		if (files->is_stopping || clock_monotonic_ns() > until_ns)
			return false;
		poll(&event, 1, STEP_MS);
		lender_look_after(files->lender);
	}
	return true;
}

static struct root_file ask(struct root_files *files, const struct lender_request *request)
{
	struct root_file file = { .fd = -1 };
	struct lender_answer answer;

	lock_assert_held(&files->lock);
	if (files->is_stopping)
		return file;
	lender_look_after(files->lender);
	if (!lender_ask(files->lender, request) || !wait_for(files, request->mark, &answer)) {
		file.is_stuck = true;
		return file;
	}
	file = (struct root_file){ .fd = answer.fd,
				   .key = answer.key,
				   .owner = answer.owner,
				   .is_copy = answer.is_copy,
				   .copied_from = answer.copied_from,
				   .is_stuck = answer.is_stuck,
				   .cpu_ns = answer.cpu_ns };
	answer.fd = -1;
	lender_answer_free(&answer);
	return file;
}

struct root_file root_files_open(struct root_files *files, const struct root_files_wish *wish)
{
	struct lender_request request = {
		.wish = LENDER_IN_ROOT,
		.place = { .pids = { wish->pid }, .pids_count = 1 },
		.key = { .device = wish->device ? wish->device : view_of(wish) },
		.path = wish->path,
		.part = wish->part,
		.is_last_followed = wish->is_last_followed,
	};
	struct root_file file;

	if (wish->root_fd > 0)
		request.root = (struct lender_root){ (uint32_t)getpid(), wish->root_fd };
	lock_take(&files->lock);
	request.mark = ++files->last_mark;
	file = ask(files, &request);
	lock_give(&files->lock);
	return file;
}
