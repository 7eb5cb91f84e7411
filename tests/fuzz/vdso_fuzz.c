/* SPDX-License-Identifier: Apache-2.0 */
/* An image of a vdso: all names lie in it and end there, whatever its tables say. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/elf/vdso_image.h"

#define IMAGE_BYTES_MAX ((uint64_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_function(const struct vdso_image *vdso,
			   const struct vdso_image_function *function, const char *image,
			   size_t size)
{
	if (function->start >= function->end || function->name < image ||
	    function->name >= image + size ||
	    !memchr(function->name, 0, (size_t)(image + size - function->name)))
		abort();
	if (!vdso_image_find(vdso, function->start) || !vdso_image_find(vdso, function->end - 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *image = malloc(size ? size : 1); /* its end is where the sanitizer sees it */
	struct vdso_image vdso;
	uint64_t bytes;

	if (!image)
		abort();
	if (size)
		memcpy(image, data, size);
	bytes = vdso_image_bytes(slice_from(image, size), IMAGE_BYTES_MAX);
	if (bytes > IMAGE_BYTES_MAX)
		abort();
	if (vdso_image_read(slice_from(image, size), &vdso)) {
		if (!vdso.build_id[0] || !memchr(vdso.build_id, 0, sizeof(vdso.build_id)))
			abort();
		for (size_t i = 0; i < vdso.functions_count; i++)
			check_function(&vdso, &vdso.functions[i], image, size);
	}
	free(image);
	return 0;
}
