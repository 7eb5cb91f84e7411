/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/export/debug_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "agent/files/near_file.h"
#include "base/mem.h"
#include "codec/elf/elf.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define LINK_BYTES_MAX 4096u
#define CHECKSUM_FILE_BYTES_MAX ((off_t)4 << 30)
#define CHECKSUM_READ_BYTES ((size_t)64 * 1024)
#define BYTES_OF_BIG_ENDIAN 2 /* ELFDATA2MSB */

/* A section that names another file: the name, a NUL, and what it must have. */
struct link {
	uint8_t bytes[LINK_BYTES_MAX];
	size_t len, name_len;
};

int debug_file_root(int pid)
{
	char path[32];
	int fd = -1;

	if (pid > 0 && near_file_root_may_wait((uint32_t)pid))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (pid > 0)
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int open_in(struct debug_file_place *place, const char *path)
{
	const struct root_files_wish wish = {
		.pid = place->pid, .root_fd = place->root_fd, .path = path, .is_last_followed = true
	};
	struct root_file file = root_files_open(place->files, &wish);

	place->is_stuck |= file.is_stuck;
	return file.fd;
}

static bool checksum_is(int fd, uint32_t wanted)
{
	struct stat status;
	uLong sum = crc32(0, NULL, 0);
	unsigned char *bytes;
	off_t at = 0;
	ssize_t got;

	if (fstat(fd, &status) || status.st_size > CHECKSUM_FILE_BYTES_MAX)
		return false;
	bytes = mem_new_array(unsigned char, CHECKSUM_READ_BYTES);
	while ((got = pread(fd, bytes, CHECKSUM_READ_BYTES, at)) > 0 && at < status.st_size) {
		sum = crc32(sum, bytes, (uInt)got);
		at += got;
	}
	free(bytes);
	return sum == wanted;
}

/* Opens it when it is the wanted build's; `checksum` (may be NULL) decides for files without id. */
static int open_matching(struct debug_file_place *place, const char *path, const char *build_id,
			 const uint32_t *checksum, struct strbuf *ret_path)
{
	int fd = open_in(place, path);
	struct elf_info info;
	bool is_good;

	if (fd < 0)
		return -1;
	is_good = !elf_read_info(fd, path, &info, NULL);
	if (is_good && (info.id_kind == ELF_ID_GNU || !checksum))
		is_good = !strcmp(info.build_id, build_id);
	else if (is_good)
		is_good = checksum_is(fd, *checksum);
	if (!is_good) {
		close(fd);
		return -1;
	}
	strbuf_clear(ret_path);
	strbuf_add(ret_path, path, strlen(path) + 1);
	ret_path->len--;
	return fd;
}

static int open_by_id(struct debug_file_place *place, const char *build_id, struct strbuf *ret_path)
{
	char path[PATH_MAX];
	int len;

	if (strlen(build_id) < 4)
		return -1;
	len = snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%.2s/%s.debug", build_id,
		       build_id + 2);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -1;
	return open_matching(place, path, build_id, NULL, ret_path);
}

struct link_search {
	const char *section;
	struct elf_section_info found;
};

static void look_for_link(void *context, const struct elf_section_info *section)
{
	struct link_search *search = context;

	if (!strcmp(section->name, search->section))
		search->found = *section;
}

static bool read_link(int fd, const char *section, struct link *ret)
{
	struct link_search search = { .section = section };
	const uint8_t *end;
	ssize_t got;

	if (elf_each_section(fd, section, look_for_link, &search, NULL) ||
	    !search.found.file_bytes || search.found.file_bytes > sizeof(ret->bytes))
		return false;
	got = pread(fd, ret->bytes, search.found.file_bytes, (off_t)search.found.offset);
	if (got != (ssize_t)search.found.file_bytes)
		return false;
	ret->len = (size_t)got;
	end = memchr(ret->bytes, 0, ret->len);
	ret->name_len = end ? (size_t)(end - ret->bytes) : 0;
	return ret->name_len > 0;
}

/* Behind the name, at the next multiple of 4, in the file's byte order. */
static bool read_checksum(int fd, const struct link *link, uint32_t *ret)
{
	size_t at = (link->name_len + 4) & ~(size_t)3;
	const uint8_t *p = link->bytes + at;
	uint8_t ident[6];

	if (at + 4 > link->len || pread(fd, ident, sizeof(ident), 0) != sizeof(ident))
		return false;
	*ret = ident[5] == BYTES_OF_BIG_ENDIAN
		       ? (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]
		       : (uint32_t)p[3] << 24 | p[2] << 16 | p[1] << 8 | p[0];
	return true;
}

/* The directory of a path, without the slash. */
static int directory_len(struct slice path)
{
	size_t len = path.len;

	while (len && path.data[len - 1] != '/')
		len--;
	return len && len < PATH_MAX ? (int)len - 1 : 0;
}

static int open_by_link(struct debug_file_place *place, int fd, struct slice path,
			const char *build_id, struct strbuf *ret_path)
{
	static const char *const places[][2] = { { "", "/" },
						 { "", "/.debug/" },
						 { DEBUG_ROOT, "/" } };
	struct link link;
	uint32_t checksum;
	int found = -1;

	if (!path.len || path.data[0] != '/' || !read_link(fd, ".gnu_debuglink", &link) ||
	    memchr(link.bytes, '/', link.name_len) || !read_checksum(fd, &link, &checksum))
		return -1;
	for (size_t i = 0; found < 0 && i < sizeof(places) / sizeof(*places); i++) {
		char text[PATH_MAX];
		int len = snprintf(text, sizeof(text), "%s%.*s%s%s", places[i][0],
				   directory_len(path), path.data, places[i][1],
				   (const char *)link.bytes);

		if (len > 0 && (size_t)len < sizeof(text))
			found = open_matching(place, text, build_id, &checksum, ret_path);
	}
	return found;
}

int debug_file_find(struct debug_file_place *place, int fd, struct slice path, const char *build_id,
		    struct strbuf *ret_path)
{
	int found = open_by_id(place, build_id, ret_path);

	return found >= 0 ? found : open_by_link(place, fd, path, build_id, ret_path);
}

int debug_file_find_alternate(struct debug_file_place *place, int fd, struct slice path,
			      struct strbuf *ret_path)
{
	char id[ELF_BUILD_ID_TEXT_BYTES] = "", text[PATH_MAX];
	struct link link;
	size_t id_len;
	int len, found;

	if (!read_link(fd, ".gnu_debugaltlink", &link))
		return -1;
	id_len = link.len - link.name_len - 1;
	if (!id_len || 2 * id_len >= sizeof(id))
		return -1;
	for (size_t i = 0; i < id_len; i++)
		snprintf(id + 2 * i, 3, "%02x", link.bytes[link.name_len + 1 + i]);
	found = open_by_id(place, id, ret_path);
	if (found >= 0)
		return found;
	if (link.bytes[0] == '/')
		len = snprintf(text, sizeof(text), "%s", (const char *)link.bytes);
	else
		len = snprintf(text, sizeof(text), "%.*s/%s", directory_len(path), path.data,
			       (const char *)link.bytes);
	if (len < 0 || (size_t)len >= sizeof(text))
		return -1;
	return open_matching(place, text, id, NULL, ret_path);
}
