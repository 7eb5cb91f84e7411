/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/mini_debuginfo.h"

#include "codec/archive/compress.h"

int mini_debuginfo_open(struct slice section, struct strbuf *image, Elf **ret, struct err *err)
{
	int status = compress_unxz(section, MINI_DEBUGINFO_BYTES_MAX, image, err);
	Elf *elf;

	if (status)
		return err_wrap(err, "read .gnu_debugdata");
	elf = elf_memory(image->data, image->len);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		elf_end(elf);
		strbuf_free(image);
		return err_set(err, ERR_INVALID, "read .gnu_debugdata: it holds no ELF file");
	}
	*ret = elf;
	return 0;
}
