/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says that it is HotSpot's library, and a list of such files from disk: what is read
 * of them stays within what they are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/collect/known_jvms.h"
#include "agent/runtime/hotspot/hotspot_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first bytes say where in the file the library's variables are. */
static void check_library(int fd, const uint8_t *data)
{
	struct vm_symbols symbols;
	struct elf_exports exports;
	struct elf_info info;
	struct jvm_file file;

	if (elf_read_info(fd, "fuzz", &info, NULL) || !elf_exports_open(&exports, fd, &info))
		return;
	if (!vm_symbols_find(&exports, &symbols))
		for (size_t i = 0; i < VM_SYMBOLS; i++)
			symbols.at[i] = 8ull * data[i];
	if (!hotspot_file_read(&exports, &symbols, &file))
		return;
	if (!file.roots.heaps || !file.roots.interpreter ||
	    file.layout.frame_size + 4 > JVM_HEAD_BYTES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct known_jvms known;
	int fd;

	known_jvms_parse(&known, data, size);
	if (known.count > KNOWN_JVMS_MAX)
		abort();
	if (size < VM_SYMBOLS)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + VM_SYMBOLS, size - VM_SYMBOLS) < 0)
		abort();
	check_library(fd, data);
	close(fd);
	return 0;
}
