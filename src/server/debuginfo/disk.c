/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/disk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define UPLOADS "uploads"
#define RECORD_SUFFIX ".record"
#define ROOM_BYTES ((uint64_t)1 << 30) /* left free, or, of a small disk, this part of it: */
#define ROOM_PART 20

static const char *const suffixes[DEBUGINFO_KINDS] = {
	[DEBUGINFO_BINARY] = ".bin",
	[DEBUGINFO_DEBUG] = ".debug",
	[DEBUGINFO_SOURCES] = ".sources",
	[DEBUGINFO_PACKAGE] = ".dwp",
};

/* The paths are ours, but for the folder, whose length disk_open checked. */
static __attribute__((format(printf, 1, 2))) struct disk_path join(const char *format, ...)
{
	struct disk_path path;
	va_list arguments;
	int len;

	va_start(arguments, format);
	len = vsnprintf(path.text, sizeof(path.text), format, arguments);
	va_end(arguments);
	assert(len > 0 && len < (int)sizeof(path.text));
	return path;
}

struct disk_path disk_upload_path(const char *path, const char *id)
{
	return join("%s/" UPLOADS "/%s", path, id);
}

static struct disk_path upload_record_path(const char *path, const char *id)
{
	return join("%s/" UPLOADS "/%s" RECORD_SUFFIX, path, id);
}

static struct disk_path folder_of(const char *path, struct slice build_id)
{
	return join("%s/%.2s", path, build_id.data);
}

struct disk_path disk_file_path(const char *path, struct slice build_id, enum debuginfo_kind kind)
{
	return join("%s/%.2s/%.*s%s", path, build_id.data, (int)build_id.len - 2, build_id.data + 2,
		    suffixes[kind]);
}

static struct disk_path record_path(const char *path, struct slice build_id,
				    enum debuginfo_kind kind)
{
	return join("%s/%.2s/%.*s%s" RECORD_SUFFIX, path, build_id.data, (int)build_id.len - 2,
		    build_id.data + 2, suffixes[kind]);
}

static int make_folder(const char *path, struct err *err)
{
	if (mkdir(path, 0750) && errno != EEXIST)
		return err_set_errno(err, errno, "create folder \"%s\"", path);
	return 0;
}

static int sync_folder(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return err_set_errno(err, errno, "open folder \"%s\"", path);
	if (fsync(fd))
		rc = err_set_errno(err, errno, "sync folder \"%s\"", path);
	close(fd);
	return rc;
}

int disk_open(const char *path, struct err *err)
{
	struct disk_path uploads;
	int rc;

	if (strlen(path) > DISK_PATH_BYTES / 2)
		return err_set(err, ERR_LIMIT, "debuginfo folder: its path is too long");
	rc = make_folder(path, err);
	uploads = join("%s/" UPLOADS, path);
	if (!rc)
		rc = make_folder(uploads.text, err);
	return rc ? rc : sync_folder(path, err);
}

static bool read_record(const char *path, struct debuginfo_record *ret)
{
	char text[DEBUGINFO_RECORD_BYTES_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text));
	close(fd);
	return len > 0 && !debuginfo_record_parse(slice_from(text, (size_t)len), ret, NULL);
}

/* A record from what the file itself tells. */
static bool make_record(const char *path, enum debuginfo_kind kind, const struct stat *status,
			struct debuginfo_record *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_inspection inspection = { .sections = 0 };
	struct err err;
	int rc = 0;

	if (fd < 0)
		return false;
	if (kind == DEBUGINFO_BINARY ||
	    kind == DEBUGINFO_DEBUG) /* others are found wanting when read */
		rc = elf_inspect(fd, path, &inspection, &err);
	close(fd);
	if (rc) {
		log_warn("debuginfo", "file is not used", "cause=\"%s\"", err.message);
		return false;
	}
	*ret = (struct debuginfo_record){
		.bytes = (uint64_t)status->st_size,
		.quality = inspection.quality,
		.sections = inspection.sections,
		.has_offsets = inspection.has_offsets,
		.uploaded_at_ns = status->st_mtim.tv_sec * CLOCK_NS_PER_S,
	};
	memcpy(ret->alternate, inspection.alternate, sizeof(ret->alternate));
	return true;
}

static bool is_id(const char *text, size_t len)
{
	return len && strspn(text, "0123456789abcdef") >= len;
}

static void visit_upload(const char *path, const char *name, disk_upload_visit_f *visit,
			 void *context)
{
	struct disk_path file = join("%s/" UPLOADS "/%.200s", path, name);
	struct debuginfo_record record;
	struct stat status;

	if (strlen(name) == DISK_UPLOAD_ID_BYTES - 1 && is_id(name, strlen(name)) &&
	    read_record(upload_record_path(path, name).text, &record) &&
	    is_id(record.build_id, strlen(record.build_id)) && !stat(file.text, &status) &&
	    S_ISREG(status.st_mode) && status.st_size && (uint64_t)status.st_size <= record.bytes)
		visit(context, name, &record, (uint64_t)status.st_size,
		      status.st_mtim.tv_sec * CLOCK_NS_PER_S);
	else
		disk_remove_upload(path, name);
}

int disk_each_upload(const char *path, disk_upload_visit_f *visit, void *context, struct err *err)
{
	struct disk_path uploads = join("%s/" UPLOADS, path);
	DIR *dir = opendir(uploads.text);
	struct dirent *entry;

	if (!dir)
		return err_set_errno(err, errno, "open folder \"%s\"", uploads.text);
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), suffix_len = strlen(RECORD_SUFFIX);

		if (entry->d_name[0] == '.' || len > 200)
			continue;
		/* A record goes with its file, or when it has none. */
		if (len > suffix_len && !strcmp(entry->d_name + len - suffix_len, RECORD_SUFFIX)) {
			entry->d_name[len - suffix_len] = '\0';
			if (!access(disk_upload_path(path, entry->d_name).text, F_OK))
				continue;
		}
		visit_upload(path, entry->d_name, visit, context);
	}
	closedir(dir);
	return 0;
}

struct walk {
	const char *path;
	disk_visit_f *visit;
	void *context;
};

static void visit_file(const struct walk *walk, const char *folder, const char *name)
{
	const char *dot = strchr(name, '.');
	size_t rest_len = dot ? (size_t)(dot - name) : 0;
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	struct debuginfo_record record;
	struct disk_path file;
	struct stat status;
	int kind = 0;

	while (dot && kind < DEBUGINFO_KINDS && strcmp(dot, suffixes[kind]))
		kind++;
	if (!dot || kind == DEBUGINFO_KINDS || !is_id(name, rest_len) ||
	    rest_len + 2 >= sizeof(build_id))
		return;
	snprintf(build_id, sizeof(build_id), "%s%.*s", folder, (int)rest_len, name);
	file = disk_file_path(walk->path, slice_of(build_id), (enum debuginfo_kind)kind);
	if (stat(file.text, &status) || !S_ISREG(status.st_mode))
		return;
	if ((read_record(
		     record_path(walk->path, slice_of(build_id), (enum debuginfo_kind)kind).text,
		     &record) &&
	     record.bytes == (uint64_t)status.st_size) || /* it is of this file */
	    make_record(file.text, (enum debuginfo_kind)kind, &status, &record))
		walk->visit(walk->context, slice_of(build_id), (enum debuginfo_kind)kind, &record,
			    status.st_mtim.tv_sec * CLOCK_NS_PER_S + status.st_mtim.tv_nsec);
}

static int each_name(const char *path, const struct walk *walk, const char *folder, struct err *err)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return err_set_errno(err, errno, "open folder \"%s\"", path);
	while ((entry = readdir(dir)))
		visit_file(walk, folder, entry->d_name);
	closedir(dir);
	return 0;
}

int disk_each(const char *path, disk_visit_f *visit, void *context, struct err *err)
{
	const struct walk walk = { path, visit, context };
	DIR *dir = opendir(path);
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return err_set_errno(err, errno, "open folder \"%s\"", path);
	while (!rc && (entry = readdir(dir)))
		if (strlen(entry->d_name) == 2 && is_id(entry->d_name, 2))
			rc = each_name(join("%s/%.2s", path, entry->d_name).text, &walk,
				       entry->d_name, err);
	closedir(dir);
	return rc;
}

/* The record of a running upload need not survive a crash: the file's hash is checked. */
static int write_record(const char *path, const struct debuginfo_record *record, bool is_durable,
			struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	struct strbuf text = { 0 };
	int rc = 0;

	if (fd < 0)
		return err_set_errno(err, errno, "create \"%s\"", path);
	debuginfo_record_write(record, &text);
	if (write(fd, text.data, text.len) != (ssize_t)text.len || (is_durable && fdatasync(fd)))
		rc = err_set_errno(err, errno, "write \"%s\"", path);
	close(fd);
	strbuf_free(&text);
	return rc;
}

static int rename_file(const char *from, const char *to, struct err *err)
{
	if (rename(from, to))
		return err_set_errno(err, errno, "rename \"%s\" to \"%s\"", from, to);
	return 0;
}

int disk_begin(const char *path, const char *id, const struct debuginfo_record *record,
	       uint64_t keep, struct err *err)
{
	struct disk_path file = disk_upload_path(path, id);
	int fd = open(file.text, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	int rc;

	if (fd < 0)
		return err_set_errno(err, errno, "create \"%s\"", file.text);
	if (ftruncate(fd, (off_t)keep) || lseek(fd, (off_t)keep, SEEK_SET) < 0)
		rc = err_set_errno(err, errno, "cut \"%s\"", file.text);
	else
		rc = write_record(upload_record_path(path, id).text, record, false, err);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int disk_install(const char *path, const char *id, struct slice build_id, enum debuginfo_kind kind,
		 const struct debuginfo_record *record, struct err *err)
{
	struct disk_path described = upload_record_path(path, id);
	struct disk_path place = record_path(path, build_id, kind);
	struct disk_path folder = folder_of(path, build_id);
	int rc = make_folder(folder.text, err);

	if (!rc)
		rc = sync_folder(path, err);
	if (!rc)
		rc = write_record(described.text, record, true, err);
	if (!rc) {
		unlink(place.text); /* of an older file: not to be taken for this one's */
		rc = rename_file(disk_upload_path(path, id).text,
				 disk_file_path(path, build_id, kind).text, err);
	}
	if (!rc)
		rc = rename_file(described.text, place.text, err);
	if (rc)
		unlink(described.text);
	return rc ? rc : sync_folder(folder.text, err);
}

void disk_remove_upload(const char *path, const char *id)
{
	unlink(disk_upload_path(path, id).text);
	unlink(upload_record_path(path, id).text);
}

int disk_remove(const char *path, struct slice build_id, enum debuginfo_kind kind, struct err *err)
{
	struct disk_path file = disk_file_path(path, build_id, kind);

	if (unlink(file.text) && errno != ENOENT)
		return err_set_errno(err, errno, "remove \"%s\"", file.text);
	unlink(record_path(path, build_id, kind).text);
	rmdir(folder_of(path, build_id).text); /* when it is empty */
	return 0;
}

void disk_touch(const char *path, struct slice build_id, enum debuginfo_kind kind, int64_t at_ns)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = at_ns / CLOCK_NS_PER_S, .tv_nsec = at_ns % CLOCK_NS_PER_S },
	};

	if (utimensat(AT_FDCWD, disk_file_path(path, build_id, kind).text, times, 0))
		log_warn("debuginfo", "cannot store when a file was last used", "cause=\"%s\"",
			 strerrordesc_np(errno));
}

int disk_check_room(const char *path, uint64_t bytes, struct err *err)
{
	uint64_t all, left, room = ROOM_BYTES;
	struct statvfs status;

	if (statvfs(path, &status))
		return err_set_errno(err, errno, "look at the file system of \"%s\"", path);
	all = (uint64_t)status.f_blocks * status.f_frsize;
	left = (uint64_t)status.f_bavail * status.f_frsize;
	if (room > all / ROOM_PART)
		room = all / ROOM_PART;
	if (left < room || left - room < bytes)
		return err_set(err, ERR_NO_SPACE,
			       "no room for %llu MB: %llu MB are free, %llu MB of them stay so",
			       (unsigned long long)(bytes >> 20), (unsigned long long)(left >> 20),
			       (unsigned long long)(room >> 20));
	return 0;
}
