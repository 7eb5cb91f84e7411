/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says that it is a language's runtime: what is read of it stays within it, in finite
 * time, and what it says of structures leads the readers of objects nowhere else.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/runtime/c_library.h"
#include "agent/runtime/jsc/jsc_code.h"
#include "agent/runtime/python/python_code.h"
#include "agent/runtime/runtime_file.h"
#include "agent/runtime/v8/v8_code.h"
#include "image_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const struct runtime_file *file)
{
	if ((!file->problem && !file->source) || file->loops_count > RUNTIME_LOOPS_MAX ||
	    strnlen(file->version, RUNTIME_VERSION_BYTES) == RUNTIME_VERSION_BYTES)
		abort();
	for (size_t i = 0; i < file->loops_count; i++)
		if (file->loops[i].start >= file->loops[i].end)
			abort();
}

/* By offsets that the file says. */
static void check_objects(const struct runtime_file *file)
{
	const struct memory_reader memory = { read_image, NULL };
	struct script_code code = { 0 };
	struct v8_lines lines = { 0 };

	for (uint64_t at = BASE; at < BASE + 64; at += 8) {
		if (file->layout.kind == RUNTIME_PYTHON)
			python_code_read(&memory, &file->layout.python, 0,
					 file->script.layout.proof_words, at, &code);
		else if (file->layout.kind == RUNTIME_V8)
			v8_code_read(&memory, &file->layout.v8, &lines, 0, at, &code);
		else if (file->layout.kind == RUNTIME_JSC)
			jsc_code_read(&memory, &file->layout.jsc, 0, at, &code);
		script_code_fini(&code);
	}
	v8_lines_fini(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runtime_file *file = NULL;
	struct elf_info info;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (!elf_read_info(fd, "fuzz", &info, NULL)) {
		file = runtime_file_read(fd, &info);
		if (c_library_read(fd, &info) & 7)
			abort();
	}
	close(fd);
	if (!file)
		return 0;
	image = data;
	image_bytes = size;
	check_file(file);
	if (!file->problem)
		check_objects(file);
	free(file);
	return 0;
}
