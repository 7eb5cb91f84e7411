/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define FOLDER_MODE 0700
#define LOCK_NAME "LOCK" /* every storage folder has one */
#define DEPTH_MAX 16

/* Makes the folder, and those above it as anybody may enter them. */
static int make_folder(const char *path, struct err *err)
{
	char above[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(above))
		return err_set(err, ERR_INVALID, "storage folder \"%s\": the path is too long",
			       path);
	for (size_t i = 1; i < len; i++) {
		if (path[i] != '/')
			continue;
		memcpy(above, path, i);
		above[i] = '\0';
		if (mkdir(above, 0755) && errno != EEXIST)
			return err_set_errno(err, errno, "make folder \"%s\"", above);
	}
	if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
		return err_set_errno(err, errno, "make folder \"%s\"", path);
	return 0;
}

/* Uses a copy of the descriptor, because the stream closes it. */
static DIR *open_list(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);

	if (copy >= 0 && !list)
		close(copy);
	return list;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool is_empty(int fd)
{
	DIR *list = open_list(fd);
	const struct dirent *entry;
	bool found = !list;

	while (!found && (entry = readdir(list)))
		found = !is_dots(entry->d_name);
	if (list)
		closedir(list);
	return !found;
}

static bool is_storage(int fd)
{
	struct stat stat;

	return !fstatat(fd, LOCK_NAME, &stat, AT_SYMLINK_NOFOLLOW) && S_ISREG(stat.st_mode);
}

/* Everything of root's in the folder, the folder itself last: what was cut short is begun anew. */
static int give_all(int fd, const struct privilege_user *user, unsigned depth)
{
	DIR *list = open_list(fd);
	const struct dirent *entry;
	int failed = list ? 0 : -1;

	while (!failed && (entry = readdir(list))) {
		struct stat stat;

		if (is_dots(entry->d_name))
			continue;
		failed = fstatat(fd, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW);
		if (!failed && S_ISDIR(stat.st_mode)) {
			int inner = openat(fd, entry->d_name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			failed = inner < 0 || depth == DEPTH_MAX ? -1
								 : give_all(inner, user, depth + 1);
			if (inner >= 0)
				close(inner);
		} else if (!failed && !stat.st_uid && stat.st_nlink == 1) {
			failed = fchownat(fd, entry->d_name, user->uid, user->gid,
					  AT_SYMLINK_NOFOLLOW);
		}
	}
	if (list)
		closedir(list);
	return failed ? failed : fchown(fd, user->uid, user->gid);
}

static int check_folder(int fd, const char *path, const struct privilege_user *user,
			struct stat *ret, struct err *err)
{
	if (fstat(fd, ret))
		return err_set_errno(err, errno, "look at \"%s\"", path);
	if (ret->st_uid && ret->st_uid != user->uid)
		return err_set(err, ERR_DENIED,
			       "storage folder \"%s\" belongs to user %u, and the server runs as "
			       "user %u: choose that one with --user, or another folder",
			       path, (unsigned)ret->st_uid, (unsigned)user->uid);
	if (ret->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, ERR_DENIED,
			       "storage folder \"%s\" may be written to by others: chmod go-w it",
			       path);
	if (!ret->st_uid && !is_empty(fd) && !is_storage(fd))
		return err_set(err, ERR_DENIED,
			       "storage folder \"%s\" is root's and holds other things than "
			       "profiles: choose another one",
			       path);
	return 0;
}

int storage_owner_hand_over(const char *path, const struct privilege_user *user, int *ret_fd,
			    struct err *err)
{
	int code = make_folder(path, err), fd;
	struct stat stat;
	bool is_fresh;

	if (code)
		return code;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "open folder \"%s\"", path);
	code = check_folder(fd, path, user, &stat, err);
	if (!code && !stat.st_uid) {
		is_fresh = is_empty(fd);
		if (give_all(fd, user, 0))
			code = err_set_errno(err, errno, "give \"%s\" to user %u", path,
					     (unsigned)user->uid);
		else if (!is_fresh)
			log_info("up",
				 "the storage directory belonged to root; it now belongs to the "
				 "server's user",
				 "path=\"%s\" uid=%u", path, (unsigned)user->uid);
	}
	if (code)
		close(fd);
	else
		*ret_fd = fd;
	return code;
}

/* By the permission bits of each folder above; access lists may only let in more. */
bool storage_owner_reaches(const char *path, const struct privilege_user *user)
{
	char *real = realpath(path, NULL);
	bool reaches = real != NULL;

	for (size_t i = 0; reaches && real[i]; i++) {
		char after = real[i + 1];
		struct stat stat_of;

		if (real[i] != '/')
			continue;
		real[i + 1] = '\0';
		reaches = !stat(real, &stat_of) &&
			  stat_of.st_mode & (stat_of.st_uid == user->uid   ? S_IXUSR
					     : stat_of.st_gid == user->gid ? S_IXGRP
									   : S_IXOTH);
		real[i + 1] = after;
	}
	free(real);
	return reaches;
}
