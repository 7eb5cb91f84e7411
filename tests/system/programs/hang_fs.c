/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that shows a folder, and answers nothing any more after SIGUSR1 until SIGUSR2: like
 * a network server that has gone. hang_fs FOLDER MOUNT_POINT; prints "mounted" when it is there.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int folder;
static volatile sig_atomic_t hangs;

static void set_hangs(int number)
{
	hangs = number == SIGUSR1;
}

static void wait_if_hanging(void)
{
	while (hangs)
		usleep(10000);
}

static const char *inside(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int get_attributes(const char *path, struct stat *ret, struct fuse_file_info *info)
{
	(void)info;
	wait_if_hanging();
	return fstatat(folder, inside(path), ret, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

static int open_file(const char *path, struct fuse_file_info *info)
{
	int fd;

	wait_if_hanging();
	fd = openat(folder, inside(path), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	info->fh = (uint64_t)fd;
	return 0;
}

static int read_file(const char *path, char *bytes, size_t count, off_t at,
		     struct fuse_file_info *info)
{
	ssize_t got;

	(void)path;
	wait_if_hanging();
	got = pread((int)info->fh, bytes, count, at);
	return got < 0 ? -errno : (int)got;
}

static int flush_file(const char *path, struct fuse_file_info *info)
{
	(void)path;
	(void)info;
	wait_if_hanging();
	return 0;
}

static int release_file(const char *path, struct fuse_file_info *info)
{
	(void)path;
	close((int)info->fh);
	return 0;
}

static void *begin(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	/* Attributes and names are asked for each time, as of a server that others change. */
	config->attr_timeout = 0;
	config->entry_timeout = 0;
	config->kernel_cache = 1;
	printf("mounted\n");
	fflush(stdout);
	return NULL;
}

static const struct fuse_operations operations = {
	.init = begin,
	.getattr = get_attributes,
	.open = open_file,
	.read = read_file,
	.flush = flush_file,
	.release = release_file,
};

int main(int argc, char **argv)
{
	char *arguments[] = { argv[0], argc > 2 ? argv[2] : "", "-f", "-s", NULL };

	folder = argc > 2 ? open(argv[1], O_PATH | O_DIRECTORY) : -1;
	if (folder < 0)
		return 2;
	signal(SIGUSR1, set_hangs);
	signal(SIGUSR2, set_hangs);
	return fuse_main(4, arguments, &operations, NULL);
}
