/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/debuginfo/debuginfo_int.h"
#include "server/debuginfo/shared_list.h"

#define POLL_NS CLOCK_NS_PER_S
#define LIST_NS (30 * CLOCK_NS_PER_S)	  /* what others put is seen so late */
#define LIST_SOON_NS (2 * CLOCK_NS_PER_S) /* when somebody waits */
#define RETRY_NS (300 * CLOCK_NS_PER_S)
#define LOG_PAUSE_NS (60 * CLOCK_NS_PER_S)
#define DAY_NS (24 * 3600 * CLOCK_NS_PER_S)
#define PIECE_BYTES ((size_t)4 << 20)
#define WANTED_MAX 64u

static METRIC_COUNTER(files_put, "firn_debuginfo_shared_uploads_total", "",
		      "Files of debug information put into a bucket.");
static METRIC_COUNTER(files_got, "firn_debuginfo_shared_downloads_total", "",
		      "Files of debug information got from a bucket.");
static METRIC_COUNTER(errors, "firn_debuginfo_shared_errors_total", "",
		      "Failed attempts to read or write debug information in a bucket.");

struct source {
	struct bucket *bucket;
	struct shared_list list; /* written by who does the step, with the lock */
	int64_t listed_ns;	 /* monotonic; 0: not yet, or again now */
};

struct shared_files {
	struct debuginfo *debuginfo;
	struct source *sources;
	size_t sources_count;
	int64_t quiet_until_ns; /* failures are logged once a minute */

	struct lock lock; /* of the lists and all below */
	struct lock_condition wake, stepped;
	uint64_t steps;					  /* begun and ended */
	char wanted[WANTED_MAX][ELF_BUILD_ID_TEXT_BYTES]; /* whose sources somebody waits for */
	size_t wanted_count;
	size_t taken_count; /* of those, the step under way looks for the first ones */
	bool stopping, has_thread;
	pthread_t thread;
};

void shared_register(void)
{
	static struct metric *const metrics[] = { &files_put, &files_got, &errors };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

static uint32_t day_of(int64_t at_ns)
{
	return at_ns > 0 ? (uint32_t)(at_ns / DAY_NS) : 0;
}

static bool is_read_only(const struct shared_files *shared)
{
	return shared->debuginfo->options.buckets_read_only;
}

/* Listing. */

static int list_source(struct shared_files *shared, struct source *source, struct err *err)
{
	struct shared_list list = { 0 };
	int64_t now_ns = clock_monotonic_ns(), age_ns = now_ns - source->listed_ns;
	bool somebody_waits;
	int rc;

	lock_take(&shared->lock);
	somebody_waits = shared->taken_count > 0;
	lock_give(&shared->lock);
	if (source->listed_ns && age_ns < (somebody_waits ? LIST_SOON_NS : LIST_NS))
		return 0;
	rc = shared_list_read(&list, source->bucket, debuginfo_now_ns(shared->debuginfo), err);
	if (rc) {
		shared_list_free(&list);
		return rc;
	}
	lock_take(&shared->lock);
	shared_list_adopt(&list, &source->list);
	lock_give(&shared->lock);
	source->listed_ns = now_ns;
	return 0;
}

/* Putting. */

static int read_file(void *context, void *data, size_t len, uint64_t offset, struct err *err)
{
	int fd = *(const int *)context;
	char *to = data;

	while (len) {
		ssize_t got = pread(fd, to, len, (off_t)offset);

		if (got <= 0)
			return err_set_errno(err, got ? errno : EIO, "read debuginfo");
		to += got;
		offset += (uint64_t)got;
		len -= (size_t)got;
	}
	return 0;
}

static int put_content(struct shared_files *shared, struct source *source,
		       const struct shared_object *object, uint64_t bytes, struct err *err)
{
	struct disk_path path =
		disk_file_path(shared->debuginfo->path, slice_of(object->build_id), object->kind);
	int fd = open(path.text, O_RDONLY | O_CLOEXEC), rc;
	const struct bucket_source content = { bytes, read_file, &fd };

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "open \"%s\"", path.text);
	rc = source->bucket->put_source(source->bucket, shared_file_key(object).text, &content,
					err);
	close(fd);
	return rc;
}

/*
 * The file's bytes are those of its hash, unless a better one has just taken its place: whoever
 * gets it checks that.
 */
static int put_file(struct shared_files *shared, struct source *source,
		    const struct shared_object *object, const struct debuginfo_record *record,
		    struct err *err)
{
	struct strbuf text = { 0 };
	int rc = put_content(shared, source, object, record->bytes, err);

	if (!rc) {
		debuginfo_record_write(record, &text);
		rc = source->bucket->put(source->bucket, shared_record_key(object).text,
					 strbuf_slice(&text), false, err);
	}
	strbuf_free(&text);
	if (rc)
		return rc;
	metric_add(&files_put, 1);
	log_info("debuginfo", "put into the bucket", "build_id=%s bytes=%llu", object->build_id,
		 (unsigned long long)record->bytes);
	source->listed_ns = 0;
	return 0;
}

static int put_use(struct source *source, const struct shared_object *object, uint32_t day,
		   struct err *err)
{
	int rc = source->bucket->put(source->bucket, shared_use_key(object, day).text,
				     (struct slice){ "", 0 }, false, err);

	source->listed_ns = rc ? source->listed_ns : 0;
	return rc;
}

/* A file of this server, as it was when the step began. */
struct own {
	struct shared_object object;
	struct debuginfo_record record;
	uint32_t used_day;
};

static bool is_sent(const struct debuginfo_record *record)
{
	return record->origin != DEBUGINFO_FROM_DEBUGINFOD &&
	       strlen(record->sha256) == 2 * SHA256_DIGEST_BYTES;
}

/* Free with free(). */
static size_t copy_own(struct debuginfo *debuginfo, struct own **ret)
{
	size_t count = 0;

	lock_take(&debuginfo->lock);
	*ret = mem_new_array(struct own, debuginfo->count + 1);
	for (size_t i = 0; i < debuginfo->count; i++) {
		const struct entry *entry = &debuginfo->entries[i];
		struct own *own = &(*ret)[count];

		if (!is_sent(&entry->record))
			continue;
		own->record = entry->record;
		own->used_day = day_of(entry->used_at_ns);
		own->object.kind = entry->kind;
		snprintf(own->object.build_id, sizeof(own->object.build_id), "%s", entry->build_id);
		memcpy(own->object.sha256, entry->record.sha256, sizeof(own->object.sha256));
		count++;
	}
	lock_give(&debuginfo->lock);
	return count;
}

static bool is_stopping(struct shared_files *shared)
{
	bool stopping;

	lock_take(&shared->lock);
	stopping = shared->stopping;
	lock_give(&shared->lock);
	return stopping;
}

/* What this server was sent, and when it used it last. */
static int put_own(struct shared_files *shared, struct source *source, const struct own *own,
		   size_t count, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count && !is_stopping(shared); i++) {
		const struct shared_object *there =
			shared_list_find(&source->list, slice_of(own[i].object.build_id),
					 own[i].object.kind, own[i].object.sha256);

		if (!there || !there->has_file || !there->has_record)
			rc = put_file(shared, source, &own[i].object, &own[i].record, err);
		if (!rc && (!there || there->used_day < own[i].used_day))
			rc = put_use(source, &own[i].object, own[i].used_day, err);
	}
	return rc;
}

/* Removing. */

static bool is_old(const struct shared_files *shared, const struct shared_object *object,
		   int64_t now_ns)
{
	int64_t retention_ns = shared->debuginfo->options.retention_ns;

	if (!object->has_record || !object->has_file) /* its sender would have put it again */
		return now_ns - object->seen_at_ns > DAY_NS;
	return retention_ns && object->used_day &&
	       day_of(now_ns) > object->used_day + day_of(retention_ns) + 1;
}

/* The record first: without it, the file is not there. */
static int remove_object(struct source *source, struct shared_object *object, struct err *err)
{
	struct bucket *bucket = source->bucket;
	int rc = bucket->remove(bucket, shared_record_key(object).text, err);

	if (!rc)
		rc = bucket->remove(bucket, shared_file_key(object).text, err);
	if (!rc && object->used_day)
		rc = bucket->remove(bucket, shared_use_key(object, object->used_day).text, err);
	if (rc)
		return rc;
	log_info("debuginfo", "removed from the bucket: no server used it", "build_id=%s",
		 object->build_id);
	source->listed_ns = 0;
	return 0;
}

static int remove_old(struct shared_files *shared, struct source *source, struct err *err)
{
	int64_t now_ns = debuginfo_now_ns(shared->debuginfo);
	struct slice left = strbuf_slice(&source->list.old_uses);
	int rc = 0;

	while (!rc && left.len && !is_stopping(shared)) {
		rc = source->bucket->remove(source->bucket, left.data, err);
		left = slice_tail(left, strlen(left.data) + 1);
	}
	for (size_t i = 0; !rc && i < source->list.count && !is_stopping(shared); i++) {
		struct shared_object *object = &source->list.objects[i];

		if (is_old(shared, object, now_ns))
			rc = remove_object(source, object, err);
		else if (object->has_record && !object->used_day)
			rc = put_use(source, object, day_of(now_ns), err);
	}
	return rc;
}

/* Getting. */

static int get_record(struct source *source, const struct shared_object *object,
		      struct debuginfo_record *ret, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = source->bucket->get(source->bucket, shared_record_key(object).text,
				     DEBUGINFO_RECORD_BYTES_MAX, &text, err);

	if (!rc)
		rc = debuginfo_record_parse(strbuf_slice(&text), ret, err);
	strbuf_free(&text);
	if (!rc && strcmp(ret->sha256, object->sha256) != 0)
		rc = err_set(err, ERR_CORRUPT, "the record in the bucket is of another file");
	return rc;
}

static int receive(struct shared_files *shared, struct source *source,
		   const struct shared_object *object, struct debuginfo_receiver *receiver,
		   uint64_t bytes, struct err *err)
{
	struct shared_key key = shared_file_key(object);
	struct strbuf piece = { 0 };
	int rc = 0;

	for (uint64_t at = 0; !rc && at < bytes; at += PIECE_BYTES) {
		size_t len = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;

		strbuf_clear(&piece);
		rc = source->bucket->get_range(source->bucket, key.text, at, len, &piece, err);
		if (!rc)
			rc = debuginfo_receive(receiver, strbuf_slice(&piece), err);
		if (!rc && is_stopping(shared))
			rc = err_set(err, ERR_CANCELLED, "the server ends");
	}
	strbuf_free(&piece);
	if (rc) {
		debuginfo_receive_abandon(receiver);
		return rc;
	}
	return debuginfo_receive_end(receiver, &bytes, err);
}

static int fetch(struct shared_files *shared, struct source *source,
		 const struct shared_object *object, struct err *err)
{
	static const enum debuginfo_content contents[DEBUGINFO_KINDS] = {
		[DEBUGINFO_BINARY] = DEBUGINFO_PROGRAM,
		[DEBUGINFO_DEBUG] = DEBUGINFO_PROGRAM,
		[DEBUGINFO_SOURCES] = DEBUGINFO_ARCHIVE,
		[DEBUGINFO_PACKAGE] = DEBUGINFO_SPLIT,
	};
	struct debuginfo_offer offer = { .build_id = slice_of(object->build_id),
					 .hash = slice_of(object->sha256),
					 .id_kind =
						 DEBUGINFO_ID_HASH, /* its server has checked it */
					 .content = contents[object->kind],
					 .is_executable = object->kind == DEBUGINFO_BINARY };
	struct debuginfo_receiver *receiver;
	struct debuginfo_record record;
	char id[DISK_UPLOAD_ID_BYTES];
	uint64_t received;
	int rc = get_record(source, object, &record, err);

	if (rc)
		return rc;
	offer.name = slice_of(record.name);
	offer.bytes = record.bytes;
	offer.origin = record.origin;
	offer.quality = record.quality;
	offer.shared_owners = record.owners;
	rc = debuginfo_begin(shared->debuginfo, &offer, id, &received, err);
	if (!rc)
		rc = debuginfo_receive_begin(shared->debuginfo, offer.build_id, slice_of(id), 0,
					     &receiver, err);
	if (!rc)
		rc = receive(shared, source, object, receiver, record.bytes, err);
	metric_add(&files_got, !rc);
	return rc;
}

/* What a failure says of the object; 0 unless the bucket itself fails. */
static int settle(struct shared_object *object, int rc, const struct err *err)
{
	switch (rc) {
	case 0:
	case -ERR_EXISTS: /* what is here is as good */
		/* Sources are fetched when somebody lacks them: they may have been removed here. */
		object->is_settled = object->kind != DEBUGINFO_SOURCES;
		return 0;
	case -ERR_NOT_FOUND: /* removed meanwhile: the next list says so */
	case -ERR_BUSY:	     /* somebody is sending it */
	case -ERR_NO_SPACE:
	case -ERR_NO_MEMORY:
		object->again_ns = clock_monotonic_ns() + RETRY_NS;
		return 0;
	case -ERR_INVALID:
	case -ERR_LIMIT:
	case -ERR_CORRUPT:
		log_warn("debuginfo", "a file in the bucket is not taken",
			 "build_id=%s cause=\"%s\"", object->build_id, err->message);
		object->is_settled = true;
		return 0;
	default:
		return rc;
	}
}

/* Every file of the build id but sources, or these alone. */
static int fetch_all(struct shared_files *shared, struct source *source, struct slice build_id,
		     bool sources, struct err *err)
{
	struct shared_list *list = &source->list;
	int rc = 0;

	for (size_t i = shared_list_first(list, build_id);
	     !rc && i < list->count && slice_is(build_id, list->objects[i].build_id); i++) {
		struct shared_object *object = &list->objects[i];

		if (object->is_settled || !object->has_file || !object->has_record ||
		    (object->kind == DEBUGINFO_SOURCES) != sources ||
		    (!sources && clock_monotonic_ns() < object->again_ns) || is_stopping(shared))
			continue;
		rc = settle(object, fetch(shared, source, object, err), err);
	}
	return rc;
}

struct ids {
	char (*items)[ELF_BUILD_ID_TEXT_BYTES];
	size_t count, capacity;
	const struct shared_list *list;
};

/* Only what the bucket has. */
static void add_id(void *context, struct slice build_id, uint64_t cost)
{
	struct ids *ids = context;
	char normal[ELF_BUILD_ID_TEXT_BYTES];
	size_t at;

	(void)cost;
	if (!debuginfo_normalise_id(build_id, normal))
		return;
	at = shared_list_first(ids->list, slice_of(normal));
	if (at == ids->list->count || strcmp(ids->list->objects[at].build_id, normal) != 0)
		return;
	mem_grow(ids->items, ids->count, ids->capacity);
	memcpy(ids->items[ids->count++], normal, sizeof(normal));
}

/* Build ids without names; those of which files are here; and those that these refer to. */
static void find_wanted(struct shared_files *shared, struct ids *ids)
{
	struct debuginfo *debuginfo = shared->debuginfo;
	const struct debuginfo_options *options = &debuginfo->options;

	if (options->each_wanted)
		options->each_wanted(options->context, add_id, ids);
	lock_take(&debuginfo->lock);
	for (size_t i = 0; i < debuginfo->count; i++) {
		add_id(ids, slice_of(debuginfo->entries[i].build_id), 0);
		if (debuginfo->entries[i].record.alternate[0])
			add_id(ids, slice_of(debuginfo->entries[i].record.alternate), 0);
	}
	lock_give(&debuginfo->lock);
}

static int get_wanted(struct shared_files *shared, struct source *source, struct err *err)
{
	char wanted[WANTED_MAX][ELF_BUILD_ID_TEXT_BYTES];
	struct ids ids = { .list = &source->list };
	size_t count;
	int rc = 0, last = 0;

	lock_take(&shared->lock);
	count = shared->taken_count;
	memcpy(wanted, shared->wanted, sizeof(wanted));
	lock_give(&shared->lock);
	/*
	 * Each, because no later step looks for them; but a bucket that does not answer in time
	 * takes longer than anybody waits.
	 */
	for (size_t i = 0; i < count && last != -ERR_DEADLINE; i++) {
		struct err later;

		last = fetch_all(shared, source, slice_of(wanted[i]), true, rc ? &later : err);
		rc = rc ? rc : last;
	}
	find_wanted(shared, &ids);
	for (size_t i = 0; !rc && i < ids.count; i++)
		rc = fetch_all(shared, source, slice_of(ids.items[i]), false, err);
	free(ids.items);
	return rc;
}

/* Steps. */

static int step_source(struct shared_files *shared, struct source *source, struct err *err)
{
	struct own *own = NULL;
	size_t count;
	int rc = list_source(shared, source, err);

	if (!rc)
		rc = get_wanted(shared, source, err);
	if (rc || is_read_only(shared))
		return rc;
	count = copy_own(shared->debuginfo, &own);
	rc = put_own(shared, source, own, count, err);
	free(own);
	if (!rc && source->listed_ns)
		rc = remove_old(shared, source, err);
	return rc;
}

static void begin_step(struct shared_files *shared)
{
	lock_take(&shared->lock);
	shared->steps++;
	shared->taken_count = shared->wanted_count;
	lock_give(&shared->lock);
}

/* What was asked for since it began is the next one's. */
static void end_step(struct shared_files *shared)
{
	lock_take(&shared->lock);
	shared->steps++;
	shared->wanted_count -= shared->taken_count;
	memmove(shared->wanted, shared->wanted + shared->taken_count,
		shared->wanted_count * sizeof(*shared->wanted));
	shared->taken_count = 0;
	lock_broadcast(&shared->stepped);
	lock_give(&shared->lock);
}

int shared_step(struct shared_files *shared, struct err *err)
{
	int result = 0;

	begin_step(shared);
	for (size_t i = 0; i < shared->sources_count; i++) {
		struct err cause = { 0 };
		int rc = step_source(shared, &shared->sources[i], &cause);

		metric_add(&errors, rc != 0);
		if (rc && !result && err)
			*err = cause;
		result = result ? result : rc;
	}
	end_step(shared);
	return result;
}

static void *run(void *context)
{
	struct shared_files *shared = context;

	lock_take(&shared->lock);
	while (!shared->stopping) {
		struct err err = { 0 };
		int rc;

		lock_give(&shared->lock);
		rc = shared_step(shared, &err);
		lock_take(&shared->lock);
		if (rc && !shared->stopping && clock_monotonic_ns() >= shared->quiet_until_ns) {
			shared->quiet_until_ns = clock_monotonic_ns() + LOG_PAUSE_NS;
			log_warn("debuginfo",
				 "debug information in the bucket; retried, logged once a minute",
				 "error=\"%s\"", err.message);
		}
		if (!shared->stopping && !shared->wanted_count)
			lock_wait_until(&shared->wake, &shared->lock,
					clock_monotonic_ns() + POLL_NS);
	}
	lock_give(&shared->lock);
	return NULL;
}

static int start_thread(struct shared_files *shared, struct err *err)
{
	sigset_t all, old;
	int code;

	sigfillset(&all);
	sigdelset(&all, SIGPROF); /* asks what a thread does */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&shared->thread, NULL, run, shared);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return err_set_errno(err, code, "start the thread that shares debuginfo");
	pthread_setname_np(shared->thread, "firn-shared");
	shared->has_thread = true;
	return 0;
}

int shared_start(struct debuginfo *debuginfo, struct shared_files **ret, struct err *err)
{
	const struct debuginfo_options *options = &debuginfo->options;
	struct shared_files *shared = mem_new(struct shared_files);
	int rc = 0;

	shared->debuginfo = debuginfo;
	shared->sources = mem_new_array(struct source, options->buckets_count);
	shared->sources_count = options->buckets_count;
	for (size_t i = 0; i < options->buckets_count; i++)
		shared->sources[i].bucket = options->buckets[i];
	lock_init(&shared->lock, "debuginfo shared", LOCK_DEBUGINFO + 2);
	lock_condition_init(&shared->wake);
	lock_condition_init(&shared->stepped);
	*ret = shared; /* before the thread looks for it */
	if (!options->no_shared_thread)
		rc = start_thread(shared, err);
	if (rc) {
		*ret = NULL;
		shared_stop(shared);
	}
	return rc;
}

void shared_end_waits(struct shared_files *shared)
{
	if (!shared)
		return;
	lock_take(&shared->lock);
	shared->stopping = true;
	lock_broadcast(&shared->wake);
	lock_broadcast(&shared->stepped);
	lock_give(&shared->lock);
}

void shared_stop(struct shared_files *shared)
{
	if (!shared)
		return;
	shared_end_waits(shared);
	for (size_t i = 0; shared->has_thread && i < shared->sources_count; i++)
		shared->sources[i].bucket->cancel(shared->sources[i].bucket);
	if (shared->has_thread)
		pthread_join(shared->thread, NULL);
	for (size_t i = 0; i < shared->sources_count; i++)
		shared_list_free(&shared->sources[i].list);
	free(shared->sources);
	lock_condition_free(&shared->wake);
	lock_condition_free(&shared->stepped);
	lock_free(&shared->lock);
	free(shared);
}

/* For others. */

bool shared_has(struct shared_files *shared, struct slice build_id, struct slice sha256)
{
	bool has = false;

	lock_take(&shared->lock);
	for (size_t s = 0; s < shared->sources_count; s++) {
		const struct shared_list *list = &shared->sources[s].list;

		for (size_t i = shared_list_first(list, build_id);
		     i < list->count && slice_is(build_id, list->objects[i].build_id); i++)
			has |= list->objects[i].has_file && list->objects[i].has_record &&
			       slice_is(sha256, list->objects[i].sha256);
	}
	lock_give(&shared->lock);
	return has;
}

/* The next step is to look for it. False: too many are wanted. With the lock. */
static bool want_once(struct shared_files *shared, struct slice build_id)
{
	size_t i = shared->taken_count;

	lock_assert_held(&shared->lock);
	while (i < shared->wanted_count && !slice_is(build_id, shared->wanted[i]))
		i++;
	if (i == WANTED_MAX)
		return false;
	if (i == shared->wanted_count)
		snprintf(shared->wanted[shared->wanted_count++], sizeof(*shared->wanted), "%.*s",
			 SLICE_FMT(build_id));
	return true;
}

void shared_want_sources(struct shared_files *shared, struct slice build_id, int64_t until_ns)
{
	uint64_t steps;

	lock_take(&shared->lock);
	if (!shared->has_thread || !want_once(shared, build_id)) {
		lock_give(&shared->lock);
		return;
	}
	/* A step under way, whose number is odd, does not look for it; the next one does. */
	steps = shared->steps + (shared->steps % 2 ? 3 : 2);
	lock_signal(&shared->wake);
	while (!shared->stopping && shared->steps < steps &&
	       lock_wait_until(&shared->stepped, &shared->lock, until_ns)) {
	}
	lock_give(&shared->lock);
}
