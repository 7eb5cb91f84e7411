/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_file - file_sd_configs: files that list targets. They are looked at each second for a
 * change (another inode, size or time), and read anew at the refresh interval in any case. A file
 * that cannot be read, or is no list, leaves all as it was: targets do not come and go with half
 * of a write.
 */
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/whole_file.h"
#include "server/scrape/discovery.h"
#include "server/scrape/target_list.h"

#define LOOK_NS CLOCK_NS_PER_S
#define FILE_BYTES_MAX ((size_t)64 << 20)

static void find_files(const struct discovery_config *config, glob_t *ret)
{
	*ret = (glob_t){ 0 };
	for (size_t i = 0; i < config->files.count; i++)
		(void)glob(config->files.items[i].data, i ? GLOB_APPEND : 0, NULL, ret);
}

/* Another number when any of the files is another one. */
static uint64_t fingerprint(const glob_t *files)
{
	uint64_t hash = files->gl_pathc;

	for (size_t i = 0; i < files->gl_pathc; i++) {
		struct stat stat_of = { 0 };

		hash = hash_mix(hash, hash_bytes(files->gl_pathv[i], strlen(files->gl_pathv[i])));
		if (stat(files->gl_pathv[i], &stat_of))
			continue;
		hash = hash_mix(hash, (uint64_t)stat_of.st_ino);
		hash = hash_mix(hash, (uint64_t)stat_of.st_size);
		hash = hash_mix(hash, (uint64_t)stat_of.st_mtim.tv_sec);
		hash = hash_mix(hash, (uint64_t)stat_of.st_mtim.tv_nsec);
	}
	return hash;
}

static int read_file(const char *path, struct found *found, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = whole_file_read(path, FILE_BYTES_MAX, &text, err);

	if (!rc)
		rc = slice_ends_with(slice_of(path), SLICE_LITERAL(".json"))
			     ? target_list_read_json(strbuf_slice(&text), "__meta_filepath", path,
						     found, err)
			     : target_list_read_yaml(strbuf_slice(&text), "__meta_filepath", path,
						     found, err);
	strbuf_free(&text);
	return rc;
}

static void read_all(struct discovery *discovery, const glob_t *files)
{
	struct found *found = discovery_new_found(discovery);
	struct err err;
	int rc = 0;

	for (size_t i = 0; !rc && i < files->gl_pathc; i++)
		rc = read_file(files->gl_pathv[i], found, &err);
	if (!rc) {
		discovery_publish(discovery, found);
		return;
	}
	discovery_fail(discovery, &err);
	found_free(found);
}

void discover_file(struct discovery *discovery)
{
	uint64_t seen = 0;
	int64_t read_at_ns = 0;

	do {
		int64_t now_ns = clock_monotonic_ns();
		uint64_t print;
		glob_t files;

		find_files(discovery->config, &files);
		print = fingerprint(&files);
		if (!read_at_ns || print != seen ||
		    now_ns - read_at_ns >= discovery->config->refresh_ns) {
			read_all(discovery, &files);
			seen = print;
			read_at_ns = now_ns;
		}
		globfree(&files);
	} while (discovery_sleep(discovery, LOOK_NS));
}
