/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/dotnet_file.h"

#include <stdio.h>
#include <string.h>

#include "agent/runtime/text_search.h"

#define VERSION_MARK "@(#)Version "
#define VERSION_BYTES 32u
#define VERSION_SEARCH_BYTES_MAX ((uint64_t)64 << 20)

/* "8.0.3026.36720": the third number is the patch, times a hundred, and more. */
static bool take_version(const char *text, struct runtime_file *ret)
{
	unsigned int major, minor, patch;

	if (sscanf(text, "%3u.%3u.%6u", &major, &minor, &patch) != 3)
		return false;
	if (major > 255 || minor > 255 || patch > 99999)
		return false;
	snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", major & 255, minor & 255,
		 patch / 100 % 1000);
	ret->layout.dotnet.major = major;
	return true;
}

static bool look_for_version(void *context, const char *piece, size_t len, size_t own)
{
	const char *at = piece, *end = piece + len;

	(void)own;
	while ((at = memmem(at, (size_t)(end - at), VERSION_MARK, strlen(VERSION_MARK)))) {
		char text[VERSION_BYTES + 1] = "";
		size_t left = (size_t)(end - (at += strlen(VERSION_MARK)));

		memcpy(text, at, left < VERSION_BYTES ? left : VERSION_BYTES);
		if (take_version(text, context))
			return true;
	}
	return false;
}

/* What the build left in its data: the only place that says the version. */
static bool find_version(int fd, const struct elf_segment *segment, struct runtime_file *ret)
{
	uint64_t bytes = segment->file_bytes;

	if (bytes > VERSION_SEARCH_BYTES_MAX)
		bytes = VERSION_SEARCH_BYTES_MAX;
	return text_search(fd, segment->offset, bytes, look_for_version, ret);
}

void dotnet_file_read(const struct elf_exports *symbols, const struct elf_export *dac,
		      struct runtime_file *ret)
{
	struct dotnet_symbols *dotnet = &ret->layout.dotnet;
	const struct elf_info *info = symbols->info;
	struct elf_export contract;
	struct dotnet_layout layout;
	bool found = false;

	dotnet->dac = dac->address;
	if (elf_exports_find(symbols, "DotNetRuntimeContractDescriptor", &contract))
		dotnet->contract = contract.address;
	for (size_t i = 0; i < info->segments_count && !found; i++)
		if (!info->segments[i].executable)
			found = find_version(symbols->fd, &info->segments[i], ret);
	if (found && dotnet->major >= 10 && dotnet->contract)
		ret->source = "contract";
	else if (found && dotnet_layout_of(dotnet->major, &layout))
		ret->source = "table";
	else
		ret->problem = "unknown layout";
}
