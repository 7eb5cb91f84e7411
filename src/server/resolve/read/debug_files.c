/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/debug_files.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"

#define SYSTEM_DEBUG_PATH "/usr/lib/debug"
#define CHECKSUM_FILE_BYTES_MAX ((off_t)4 << 30)
#define CHECKSUM_READ_BYTES ((size_t)64 * 1024)

bool debug_files_id_valid(struct slice build_id)
{
	if (build_id.len < 4 || build_id.len % 2 || build_id.len >= ELF_BUILD_ID_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < build_id.len; i++)
		if (!strchr("0123456789abcdef", build_id.data[i]) || !build_id.data[i])
			return false;
	return true;
}

int debug_files_open(const char *path, struct err *err)
{
	/* O_NONBLOCK: opening a FIFO or a device must not wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return err_set_errno(err, errno, "open \"%s\"", path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(err, ERR_INVALID, "open \"%s\": not a regular file", path);
	}
	return fd;
}

/* Opens `path` and keeps it when its identity is the wanted one. */
static int open_matching(const char *path, struct slice build_id, struct err *err)
{
	struct elf_info info;
	int fd = debug_files_open(path, err);
	int status;

	if (fd < 0)
		return fd;
	status = elf_read_info(fd, path, &info, err);
	if (!status && !slice_is(build_id, info.build_id))
		status = err_set(err, ERR_NOT_FOUND, "open \"%s\": its build id is %s, not %.*s",
				 path, info.build_id, SLICE_FMT(build_id));
	if (status) {
		close(fd);
		return status;
	}
	return fd;
}

int debug_files_open_binary(struct slice path, struct slice build_id, struct err *err)
{
	char text[PATH_MAX];

	if (!path.len || path.data[0] != '/' || path.len >= sizeof(text) ||
	    slice_find_byte(path, 0) != SIZE_MAX)
		return err_set(err, ERR_NOT_FOUND, "open \"%.*s\": not an absolute path",
			       (int)(path.len < 256 ? path.len : 256), path.len ? path.data : "");
	memcpy(text, path.data, path.len);
	text[path.len] = 0;
	return open_matching(text, build_id, err);
}

static int open_in(const char *directory, struct slice build_id, struct err *err)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%.2s/%.*s.debug", directory, build_id.data,
			   (int)build_id.len - 2, build_id.data + 2);

	if (len < 0 || (size_t)len >= sizeof(path))
		return err_set(err, ERR_NOT_FOUND, "open debug file: path too long");
	return open_matching(path, build_id, err);
}

int debug_files_open_by_id(const char *directory, struct slice build_id, struct err *err)
{
	int fd = -ERR_NOT_FOUND;

	if (!debug_files_id_valid(build_id))
		return err_set(err, ERR_INVALID, "open debug file: \"%.*s\" is not a build id",
			       (int)(build_id.len < 256 ? build_id.len : 256),
			       build_id.len ? build_id.data : "");
	if (directory && *directory)
		fd = open_in(directory, build_id, err);
	if (fd < 0)
		fd = open_in(SYSTEM_DEBUG_PATH "/.build-id", build_id, err);
	return fd;
}

int debug_files_open_upload(const char *directory, struct slice build_id, const char *suffix,
			    struct err *err)
{
	char path[PATH_MAX];
	int len;

	if (!directory || !debug_files_id_valid(build_id))
		return err_set(err, ERR_NOT_FOUND, "open uploaded file: none");
	len = snprintf(path, sizeof(path), "%s/%.2s/%.*s.%s", directory, build_id.data,
		       (int)build_id.len - 2, build_id.data + 2, suffix);
	if (len < 0 || (size_t)len >= sizeof(path))
		return err_set(err, ERR_NOT_FOUND, "open uploaded file: path too long");
	return debug_files_open(path, err);
}

static bool checksum_is(int fd, uint32_t wanted)
{
	unsigned char *bytes;
	uLong crc = crc32(0, NULL, 0);
	struct stat st;
	ssize_t got;
	off_t at = 0;

	if (fstat(fd, &st) || st.st_size > CHECKSUM_FILE_BYTES_MAX)
		return false;
	bytes = mem_new_array(unsigned char, CHECKSUM_READ_BYTES);
	while ((got = pread(fd, bytes, CHECKSUM_READ_BYTES, at)) > 0 &&
	       at < CHECKSUM_FILE_BYTES_MAX) {
		crc = crc32(crc, bytes, (uInt)got);
		at += got;
	}
	free(bytes);
	return crc == wanted;
}

/* A build id decides when the file has one, the checksum of the link otherwise. */
static int open_linked(const char *path, struct slice build_id, uint32_t checksum)
{
	int fd = debug_files_open(path, NULL);
	struct elf_info info;
	bool same;

	if (fd < 0)
		return fd;
	if (elf_read_info(fd, path, &info, NULL))
		same = false;
	else if (info.id_kind == ELF_ID_GNU)
		same = slice_is(build_id, info.build_id);
	else
		same = checksum_is(fd, checksum);
	if (!same) {
		close(fd);
		return -ERR_NOT_FOUND;
	}
	return fd;
}

/* The name in the section, or NULL; it lives as long as the Elf. */
static const char *link_name(Elf *elf, uint32_t *ret_checksum)
{
	const char *name = elf ? dwelf_elf_gnu_debuglink(elf, ret_checksum) : NULL;

	return name && *name && !strchr(name, '/') ? name : NULL;
}

int debug_files_open_by_link(int fd, const char *binary_path, struct slice build_id,
			     struct err *err)
{
	static const char *const places[][2] = { { "", "/" },
						 { "", "/.debug/" },
						 { SYSTEM_DEBUG_PATH, "/" } };
	const char *slash = strrchr(binary_path, '/');
	int directory_len = slash ? (int)(slash - binary_path) : 0;
	int found = -ERR_NOT_FOUND;
	uint32_t checksum;
	const char *name;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	name = link_name(elf, &checksum);
	for (size_t i = 0; name && slash && found < 0 && i < sizeof(places) / sizeof(*places);
	     i++) {
		char path[PATH_MAX];
		int len = snprintf(path, sizeof(path), "%s%.*s%s%s", places[i][0], directory_len,
				   binary_path, places[i][1], name);

		if (len > 0 && (size_t)len < sizeof(path))
			found = open_linked(path, build_id, checksum);
	}
	elf_end(elf);
	if (found < 0)
		return err_set(err, ERR_NOT_FOUND, "find debug file of \"%s\": no match",
			       binary_path);
	return found;
}

/* The build id behind the name in the section, as hexadecimal text. */
static bool read_alternate_link(Elf *elf, char ret_path[PATH_MAX],
				char ret_id[ELF_BUILD_ID_TEXT_BYTES])
{
	Elf_Scn *section = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *data;
		size_t path_len, id_len;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, ".gnu_debugaltlink"))
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf)
			return false;
		path_len = strnlen(data->d_buf, data->d_size);
		if (path_len >= data->d_size || path_len >= PATH_MAX)
			return false;
		id_len = data->d_size - path_len - 1;
		if (2 * id_len + 1 > ELF_BUILD_ID_TEXT_BYTES)
			return false;
		memcpy(ret_path, data->d_buf, path_len + 1);
		for (size_t i = 0; i < id_len; i++)
			snprintf(ret_id + 2 * i, 3, "%02x",
				 ((const uint8_t *)data->d_buf)[path_len + 1 + i]);
		return id_len > 0;
	}
	return false;
}

int debug_files_open_alternate(int fd, const char *binary_path, const char *directory,
			       struct err *err)
{
	char link[PATH_MAX], path[PATH_MAX], id[ELF_BUILD_ID_TEXT_BYTES] = "";
	const char *slash = binary_path ? strrchr(binary_path, '/') : NULL;
	int len, found;
	bool is_linked;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	is_linked = read_alternate_link(elf, link, id);
	elf_end(elf);
	if (!is_linked)
		return err_set(err, ERR_NOT_FOUND, "find alternate debug file: none is named");
	found = debug_files_open_by_id(directory, slice_of(id), err);
	if (found >= 0)
		return found;
	if (link[0] == '/')
		return open_matching(link, slice_of(id), err);
	if (!slash)
		return found;
	len = snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - binary_path), binary_path,
		       link);
	if (len < 0 || (size_t)len >= sizeof(path))
		return found;
	return open_matching(path, slice_of(id), err);
}
