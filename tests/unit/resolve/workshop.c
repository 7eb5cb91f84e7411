/* SPDX-License-Identifier: Apache-2.0 */
#include "workshop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source[] =
	"volatile int sink;\n"
	"namespace shapes {\n"
	"static inline __attribute__((always_inline)) int twice(int v)\n"
	"{\n"
	"	sink = v;\n"
	"	return v * 2;\n"
	"}\n"
	"template <typename T> static inline __attribute__((always_inline)) T both(T a)\n"
	"{\n"
	"	T sum = twice(a);\n"
	"	for (int i = 0; i < sink; i++)\n"
	"		sum += twice(a + i);\n"
	"	return sum;\n"
	"}\n"
	"struct box {\n"
	"	int edge;\n"
	"	__attribute__((noinline)) int volume(int height);\n"
	"};\n"
	"int box::volume(int height)\n"
	"{\n"
	"	auto grow = [&](int by) { sink = by; return edge + by; };\n"
	"	return both(edge) * height + grow(height);\n"
	"}\n"
	"}\n"
	"static __attribute__((noinline)) int unlikely_path(int v)\n"
	"{\n"
	"	if (__builtin_expect(v > 1000, 0)) {\n"
	"		sink = v;\n"
	"		__builtin_trap();\n"
	"	}\n"
	"	return shapes::both<long>(v);\n"
	"}\n"
	"__attribute__((noinline)) int unused_function(int v)\n"
	"{\n"
	"	return shapes::both(v) + 1;\n"
	"}\n"
	"int main(int argc, char **)\n"
	"{\n"
	"	shapes::box b{ argc };\n"
	"	return b.volume(3) + unlikely_path(argc);\n"
	"}\n";

bool workshop_run(const struct workshop *workshop, const char *format, ...)
{
	char command[1024];
	va_list args;
	int len = snprintf(command, sizeof(command), "cd %s && { ", workshop->directory);

	va_start(args, format);
	len += vsnprintf(command + len, sizeof(command) - (size_t)len, format, args);
	va_end(args);
	snprintf(command + len, sizeof(command) - (size_t)len, " ; } >>log 2>&1");
	return system(command) == 0;
}

const char *workshop_path(const struct workshop *workshop, const char *name, char into[256])
{
	snprintf(into, 256, "%s/%s", workshop->directory, name);
	return into;
}

void workshop_open(struct workshop *workshop)
{
	char path[256];
	FILE *file;

	snprintf(workshop->directory, sizeof(workshop->directory), "/tmp/firn-resolve-XXXXXX");
	if (!mkdtemp(workshop->directory))
		abort();
	file = fopen(workshop_path(workshop, "shapes.cc", path), "w");
	if (!file || fputs(source, file) < 0 || fclose(file))
		abort();
}

void workshop_close(struct workshop *workshop)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", workshop->directory);
	if (system(command))
		abort();
}

static const char *told_path(pid_t test, char path[64])
{
	snprintf(path, 64, "/tmp/firn-workshop-%d", (int)test);
	return path;
}

void workshop_tell(const char *what)
{
	char path[64];
	FILE *file;

	told_path(getpid(), path);
	if (!what) {
		unlink(path);
		return;
	}
	file = fopen(path, "we");
	if (!file || fputs(what, file) < 0 || fclose(file))
		abort();
}

const char *workshop_told(void)
{
	static char what[64];
	char path[64];
	FILE *file = fopen(told_path(getppid(), path), "re");

	if (file) {
		if (!fgets(what, sizeof(what), file))
			what[0] = '\0';
		fclose(file);
	}
	return what;
}
