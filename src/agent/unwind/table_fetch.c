/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/table_fetch.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/unwind/table_build.h"
#include "agent/unwind/unwind_metrics.h"
#include "base/clock.h"
#include "base/log.h"

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

static int identify(const struct table_request *request, struct table_found *found, struct err *err)
{
	struct elf_info info;
	struct stat stat;
	int code;

	if (request->image.len)
		code = elf_parse_info(request->image, request->path, &info, err);
	else
		code = elf_read_info(request->fd, request->path, &info, err);
	if (code)
		return code;
	if (!elf_is_linked(&info))
		return err_set(err, ERR_UNSUPPORTED, "read \"%s\": generated code, not linked",
			       request->path);
	found->is_elf = true;
	memcpy(found->build_id, info.build_id, sizeof(found->build_id));
	if (request->image.len || fstat(request->fd, &stat) ||
	    !table_cache_name(&info, stat.st_uid, found->name))
		found->name[0] = '\0';
	return 0;
}

/* True when the cache has the table, and it is sound. */
static bool find_cached(struct table_fetch *fetch, const struct table_request *request,
			struct table_found *found)
{
	struct err err;
	int fd;

	if (!fetch->cache || !found->name[0] ||
	    table_cache_find(fetch->cache, found->name, &fd, NULL))
		return false;
	if (!table_file_open(fd, request->path, &found->file, &err)) {
		if (!found->file.damaged_count) {
			found->cached = true;
			metric_add(&unwind_cache_hits, 1);
			return true;
		}
		err = found->file.damage;
		found->file = (struct table_file){ .fd = -1 };
	}
	close(fd);
	table_cache_remove(fetch->cache, found->name);
	metric_add(&unwind_cache_damaged, 1);
	log_warn("agent", "removed a damaged unwind table from the cache", "reason=\"%s\"",
		 err.message);
	return false;
}

static int build(struct table_fetch *fetch, const struct table_request *request, int out_fd,
		 struct table_found *found, struct err *err)
{
	struct table_input input = { request->fd, request->image, request->path };
	struct table_limits limits = { .cancel = fetch->cancel };
	struct table_stats stats;
	int64_t start_ns = cpu_ns();
	int code = table_build(&input, out_fd, &limits, &stats, err);
	uint64_t spent_ns = (uint64_t)(cpu_ns() - start_ns);

	found->build_ns += spent_ns;
	metric_add(&unwind_build_seconds, (int64_t)spent_ns);
	if (code)
		return code;
	metric_add(&unwind_builds, 1);
	code = table_file_open(out_fd, request->path, &found->file, err);
	if (!code && found->file.damaged_count) {
		metric_add(&unwind_segments_damaged, found->file.damaged_count);
		log_warn("agent", "damaged part of an unwind table was skipped",
			 "path=\"%s\" segments=%u reason=\"%s\"", request->path,
			 found->file.damaged_count, found->file.damage.message);
	}
	return code;
}

static int build_in_memory(struct table_fetch *fetch, const struct table_request *request,
			   struct table_found *found, struct err *err)
{
	int fd = memfd_create("firn-unwind-table", MFD_CLOEXEC);
	int code;

	if (fd < 0)
		return err_set_errno(err, errno, "make a file for an unwind table");
	code = build(fetch, request, fd, found, err);
	if (code)
		close(fd);
	return code;
}

static int build_in_cache(struct table_fetch *fetch, const struct table_request *request,
			  struct table_found *found, struct err *err)
{
	struct table_cache_draft draft;
	int code = table_cache_create(fetch->cache, &draft, err);
	struct err publish_err;

	assert(fetch->cache);
	if (code)
		return code;
	code = build(fetch, request, draft.fd, found, err);
	if (code) {
		table_cache_discard(fetch->cache, &draft);
		close(draft.fd);
		return code;
	}
	if (found->file.damaged_count)
		table_cache_discard(fetch->cache, &draft);
	else if (table_cache_publish(fetch->cache, &draft, found->name, &publish_err)) {
		metric_add(&unwind_cache_failed, 1);
		log_debug("agent", "cannot cache an unwind table on disk", "reason=\"%s\"",
			  publish_err.message);
	}
	return 0;
}

/* True if it may be the cache's fault rather than the binary's. */
static bool may_be_of_the_disk(int code)
{
	return code == -ERR_IO || code == -ERR_NO_SPACE || code == -ERR_DENIED ||
	       code == -ERR_CORRUPT || code == -ERR_READ_ONLY;
}

int table_fetch_get(struct table_fetch *fetch, const struct table_request *request,
		    struct table_found *ret, struct err *err)
{
	bool has_binary = request->fd >= 0 || request->image.len;
	struct err disk_err;
	int code = 0;

	*ret = (struct table_found){ .file.fd = -1 };
	if (has_binary)
		code = identify(request, ret, err);
	else
		memccpy(ret->name, request->name, '\0', sizeof(ret->name) - 1);
	if (code || find_cached(fetch, request, ret))
		return code;
	if (!has_binary)
		return err_set(err, ERR_NOT_FOUND,
			       "unwind table of \"%s\": not cached, and the file is not open",
			       request->path);
	if (!fetch->cache || !ret->name[0])
		return build_in_memory(fetch, request, ret, err);
	code = build_in_cache(fetch, request, ret, err);
	if (!may_be_of_the_disk(code))
		return code;
	metric_add(&unwind_cache_failed, 1);
	code = build_in_memory(fetch, request, ret, &disk_err);
	if (code && err)
		*err = disk_err;
	return code;
}

void table_found_close(struct table_found *found)
{
	if (found->file.fd >= 0)
		close(found->file.fd);
	found->file.fd = -1;
}
