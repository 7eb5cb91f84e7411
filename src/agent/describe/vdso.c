/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/describe/vdso.h"

#include <pthread.h>
#include <sys/auxv.h>

#include "codec/elf.h"

#define VDSO_BYTES ((size_t)4096) /* headers and notes lie in the first of its pages */

static char build_id[ELF_BUILD_ID_TEXT_BYTES];

static void read_build_id(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct elf_info info;

	if (image && !elf_parse_info(slice_from(image, VDSO_BYTES), "[vdso]", &info, NULL) &&
	    info.id_kind == ELF_ID_GNU)
		memcpy(build_id, info.build_id, sizeof(build_id));
}

const char *vdso_build_id(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_build_id);
	return build_id;
}
