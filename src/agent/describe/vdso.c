/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/vdso.h"

#include <pthread.h>
#include <sys/auxv.h>

#include "codec/elf/vdso_image.h"

#define PAGE_BYTES ((size_t)4096) /* headers lie in the first of its pages */
#define IMAGE_BYTES_MAX ((uint64_t)1 << 20)

static struct vdso_image vdso;

static void read_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t bytes =
		image ? vdso_image_bytes(slice_from(image, PAGE_BYTES), IMAGE_BYTES_MAX) : 0;

	if (bytes && !vdso_image_read(slice_from(image, bytes), &vdso))
		vdso = (struct vdso_image){ 0 };
}

static void once(void)
{
	static pthread_once_t control = PTHREAD_ONCE_INIT;

	pthread_once(&control, read_vdso);
}

const char *vdso_build_id(void)
{
	once();
	return vdso.build_id;
}

struct slice vdso_function(uint64_t offset)
{
	const char *name;

	once();
	name = vdso_image_find(&vdso, offset);
	return name ? slice_of(name) : SLICE_LITERAL("");
}
