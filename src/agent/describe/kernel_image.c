/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/kernel_image.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define NOTES_BYTES_MAX 16384u

/* The notes as the linker left them, in the byte order of this machine. */
static void read_build_id(struct kernel_image *image, const char *path)
{
	_Alignas(8) char notes[NOTES_BYTES_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, notes, sizeof(notes));
	size_t len = got > 0 ? (size_t)got : 0, at = 0;

	if (fd >= 0)
		close(fd);
	while (len - at >= sizeof(Elf64_Nhdr)) {
		size_t name = at + sizeof(Elf64_Nhdr), id, end;
		Elf64_Nhdr note;

		memcpy(&note, notes + at, sizeof(note));
		id = name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
		end = id + (((size_t)note.n_descsz + 3) & ~(size_t)3);
		if (end > len)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) &&
		    2 * (size_t)note.n_descsz < sizeof(image->build_id)) {
			for (size_t i = 0; i < note.n_descsz; i++)
				snprintf(image->build_id + 2 * i, 3, "%02x",
					 (unsigned char)notes[id + i]);
			return;
		}
		at = end;
	}
}

static void look_for_debug_info(void *context, const struct elf_section_info *section)
{
	if (section->file_bytes &&
	    (!strcmp(section->name, ".debug_info") || !strcmp(section->name, ".zdebug_info")))
		*(bool *)context = true;
}

/* The first segment with code begins with `_text`. */
static bool find_text(const struct elf_info *info, uint64_t *ret)
{
	for (size_t i = 0; i < info->segments_count; i++) {
		if (!info->segments[i].executable)
			continue;
		*ret = info->segments[i].address;
		return true;
	}
	return false;
}

static bool take(struct kernel_image *image, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool has_debug_info = false;
	struct elf_info info;

	if (fd < 0)
		return false;
	if (elf_read_info(fd, path, &info, NULL) || strcmp(info.build_id, image->build_id) != 0 ||
	    !find_text(&info, &image->text_address) ||
	    elf_each_section(fd, path, look_for_debug_info, &has_debug_info, NULL) ||
	    !has_debug_info) {
		close(fd);
		return false;
	}
	image->fd = fd;
	image->path = mem_strndup(path, strlen(path));
	return true;
}

void kernel_image_find(struct kernel_image *image, const char *root, const char *notes,
		       const char *release)
{
	static const char *const places[] = {
		"/usr/lib/debug/boot/vmlinux-%s",
		"/usr/lib/debug/lib/modules/%s/vmlinux",
		"/usr/lib/debug/boot/vmlinux-%s.debug",
		"/usr/lib/modules/%s/build/vmlinux",
		"/boot/vmlinux-%s",
	};
	char path[PATH_MAX], id[ELF_BUILD_ID_TEXT_BYTES];

	*image = (struct kernel_image){ .fd = -1 };
	read_build_id(image, notes);
	if (strlen(image->build_id) < 4)
		return;
	memcpy(id, image->build_id, sizeof(id));
	snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug", root, id, id + 2);
	if (take(image, path))
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *hole = strstr(places[i], "%s");
		int len = snprintf(path, sizeof(path), "%s%.*s%s%s", root, (int)(hole - places[i]),
				   places[i], release, hole + 2);

		if (len > 0 && (size_t)len < sizeof(path) && take(image, path))
			return;
	}
}

void kernel_image_free(struct kernel_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	free(image->path);
	*image = (struct kernel_image){ .fd = -1 };
}
