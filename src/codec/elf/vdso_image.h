/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdso_image - the build id and the functions of a vdso as it lies in memory: loaded where it is in
 * its file, so that offsets, addresses and places in memory agree, with a dynamic section and no
 * section headers. The image is bounded by what was given, whatever is in it.
 */
#ifndef FIRN_CODEC_ELF_VDSO_IMAGE_H
#define FIRN_CODEC_ELF_VDSO_IMAGE_H

#include "codec/elf/elf.h"

#define VDSO_IMAGE_FUNCTIONS_MAX 64u /* those beyond have no names */

struct vdso_image_function {
	uint64_t start, end; /* start < end */
	const char *name;    /* in the image */
	bool is_weak;	     /* an alias: "clock_gettime" of "__vdso_clock_gettime" */
};

struct vdso_image {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	struct vdso_image_function functions[VDSO_IMAGE_FUNCTIONS_MAX];
	size_t functions_count;
};

/* How long the image is whose first page is here; 0 when it is none, or over `bytes_max`. */
uint64_t vdso_image_bytes(struct slice page, uint64_t bytes_max);

/* False when it is no vdso with a build id; names live as long as the image. */
bool vdso_image_read(struct slice image, struct vdso_image *ret);

/* The function at an offset; the alias only if there is no other. NULL = not known. */
const char *vdso_image_find(const struct vdso_image *vdso, uint64_t offset);

#endif
