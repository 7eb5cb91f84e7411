/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_image - the running kernel's own file with debug information, vmlinux, when a package of
 * this host has it: then frames of the kernel keep their address in it, and so get files, lines and
 * inlined callers. Without it a frame is a function's name. Modules have no such file here.
 */
#ifndef FIRN_AGENT_DESCRIBE_KERNEL_IMAGE_H
#define FIRN_AGENT_DESCRIBE_KERNEL_IMAGE_H

#include "codec/elf/elf.h"

struct kernel_image {
	int fd; /* -1: there is none */
	char *path;
	char build_id[ELF_BUILD_ID_TEXT_BYTES]; /* of the running kernel; "" = not known */
	uint64_t text_address;			/* where `_text` is in the file */
};

/*
 * Looks in the places of Debian, Fedora and similar distributions below `root` ("" for the host's),
 * and takes the file only when its build id is the one in `notes` (/sys/kernel/notes).
 */
void kernel_image_find(struct kernel_image *image, const char *root, const char *notes,
		       const char *release);
void kernel_image_free(struct kernel_image *image);

#endif
