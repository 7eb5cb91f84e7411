/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/debuginfo.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/debuginfo/consent.h"
#include "server/debuginfo/debuginfo_int.h"
#include "server/debuginfo/debuginfod.h"
#include "server/debuginfo/shared.h"

#define FILE_BYTES_DEFAULT ((uint64_t)4 << 30)
#define COLLECT_NS (300 * CLOCK_NS_PER_S)

void debuginfo_collect(struct debuginfo *debuginfo)
{
	lock_take(&debuginfo->lock);
	debuginfo_note_uses(debuginfo);
	debuginfo_remove_old(debuginfo);
	debuginfo_drop_partials(debuginfo, NULL);
	debuginfo_make_room(debuginfo, NULL, 0);
	lock_give(&debuginfo->lock);
	if (atomic_load(&debuginfo->debuginfod))
		debuginfod_collect(debuginfo->debuginfod);
}

static void register_metrics(void)
{
	debuginfo_kept_register();
	debuginfod_register();
	shared_register();
	debuginfo_upload_register();
}

static void remove_garbage(struct debuginfo *debuginfo)
{
	while (debuginfo->garbage_count) {
		char id[DISK_UPLOAD_ID_BYTES];

		memcpy(id, debuginfo->garbage[--debuginfo->garbage_count], sizeof(id));
		lock_give(&debuginfo->lock);
		disk_remove_upload(debuginfo->path, id);
		lock_take(&debuginfo->lock);
	}
}

static void *run(void *data)
{
	struct debuginfo *debuginfo = data;

	lock_take(&debuginfo->lock);
	while (!debuginfo->is_stopping) {
		int64_t until_ns = clock_monotonic_ns() + COLLECT_NS;
		bool in_time = true;

		while (in_time && !debuginfo->is_stopping) {
			remove_garbage(debuginfo);
			if (!debuginfo->is_stopping)
				in_time = lock_wait_until(&debuginfo->wake, &debuginfo->lock,
							  until_ns);
		}
		if (debuginfo->is_stopping)
			break;
		lock_give(&debuginfo->lock);
		debuginfo_collect(debuginfo);
		lock_take(&debuginfo->lock);
	}
	remove_garbage(debuginfo);
	lock_give(&debuginfo->lock);
	return NULL;
}

static int start_thread(struct debuginfo *debuginfo, struct err *err)
{
	sigset_t all, old;
	int code;

	sigfillset(&all);
	sigdelset(&all, SIGPROF); /* asks what a thread does */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&debuginfo->thread, NULL, run, debuginfo);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return err_set_errno(err, code, "start the thread that removes old debuginfo");
	pthread_setname_np(debuginfo->thread, "firn-debuginfo");
	debuginfo->has_thread = true;
	return 0;
}

static void found(void *context, struct slice build_id, enum debuginfo_kind kind,
		  const struct debuginfo_record *record, int64_t used_at_ns)
{
	struct debuginfo *debuginfo = context;

	if (debuginfo->count < FILES_MAX)
		debuginfo_put(debuginfo, build_id, kind, record, used_at_ns);
}

static void found_upload(void *context, const char *id, const struct debuginfo_record *record,
			 uint64_t received, int64_t at_ns)
{
	struct partial partial = { .bytes = record->bytes, .received = received, .at_ns = at_ns };

	memcpy(partial.build_id, record->build_id, sizeof(partial.build_id));
	memcpy(partial.hash, record->hash, sizeof(partial.hash));
	memcpy(partial.id, id, sizeof(partial.id));
	debuginfo_add_partial(context, &partial);
}

int debuginfo_open(const struct debuginfo_options *options, struct debuginfo **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct debuginfo *debuginfo = mem_new(struct debuginfo);
	int rc;

	pthread_once(&once, register_metrics);
	debuginfo->options = *options;
	debuginfo->path = mem_strndup(options->path, strlen(options->path));
	if (!debuginfo->options.file_bytes_max)
		debuginfo->options.file_bytes_max = FILE_BYTES_DEFAULT;
	lock_init(&debuginfo->lock, "debuginfo", LOCK_DEBUGINFO + 1);
	lock_init(&debuginfo->consent_lock, "debuginfo consent", LOCK_DEBUGINFO - 1);
	lock_condition_init(&debuginfo->wake);
	rc = disk_open(debuginfo->path, err);
	if (!rc)
		rc = disk_each(debuginfo->path, found, debuginfo, err);
	if (!rc)
		rc = disk_each_upload(debuginfo->path, found_upload, debuginfo, err);
	if (!rc)
		rc = start_thread(debuginfo, err);
	if (!rc)
		rc = consent_open(debuginfo, err);
	if (!rc && options->buckets_count)
		rc = shared_start(debuginfo, &debuginfo->shared, err);
	if (rc) {
		debuginfo_close(debuginfo);
		return rc;
	}
	*ret = debuginfo;
	return 0;
}

void debuginfo_end_waits(struct debuginfo *debuginfo)
{
	if (!debuginfo)
		return;
	shared_end_waits(debuginfo->shared);
	debuginfod_end_waits(debuginfo->debuginfod);
}

void debuginfo_close(struct debuginfo *debuginfo)
{
	if (!debuginfo)
		return;
	lock_take(&debuginfo->lock);
	debuginfo->is_stopping = true;
	lock_signal(&debuginfo->wake);
	lock_give(&debuginfo->lock);
	if (debuginfo->has_thread) /* which uses debuginfod */
		pthread_join(debuginfo->thread, NULL);
	shared_stop(debuginfo->shared);
	debuginfod_stop(debuginfo->debuginfod);
	lock_take(&debuginfo->lock);
	remove_garbage(debuginfo); /* of downloads that these two gave up */
	lock_give(&debuginfo->lock);
	debuginfo_note_uses(debuginfo);
	for (size_t i = 0; i < debuginfo->count; i++)
		free(debuginfo->entries[i].build_id);
	free(debuginfo->entries);
	free(debuginfo->uploads);
	free(debuginfo->garbage);
	idmap_free(&debuginfo->map);
	consent_close(debuginfo);
	lock_condition_free(&debuginfo->wake);
	lock_free(&debuginfo->lock);
	lock_free(&debuginfo->consent_lock);
	free(debuginfo->path);
	free(debuginfo);
}

void debuginfo_each_asked(struct debuginfo *debuginfo, struct slice build_id,
			  debuginfo_asked_f *visit, void *context)
{
	struct debuginfod *debuginfod = atomic_load(&debuginfo->debuginfod);

	if (debuginfod)
		debuginfod_each(debuginfod, build_id, visit, context);
}
