/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/export/debuginfo_upload.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/export/debug_file.h"
#include "agent/export/debuginfo_client.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "codec/elf/elf_inspect.h"

#define FILE_BYTES_DEFAULT ((uint64_t)1 << 30)
#define BYTES_PER_S_DEFAULT ((uint64_t)8 << 20)
#define RETRY_DEFAULT_NS (300 * CLOCK_NS_PER_S)
#define BUSY_RETRY_NS (10 * CLOCK_NS_PER_S) /* somebody else sends a file of this build id */
#define QUEUE_MAX 256u			    /* descriptors kept open */
#define KNOWN_MAX 16384u /* files remembered; then all are forgotten, and asked about anew */
/* As the others: at 19 a loaded host left it a thousandth of a CPU. bytes_per_s bounds its work. */
#define NICE 5
#define AHEAD_NS (100 * CLOCK_NS_PER_MS) /* of its share of time, so that it waits seldom */

static METRIC_COUNTER(sent, "firn_agent_debuginfo_files_total", "{result=\"sent\"}",
		      "Binaries and debug files that the server was asked about.");
static METRIC_COUNTER(present, "firn_agent_debuginfo_files_total", "{result=\"present\"}",
		      "Binaries and debug files that the server was asked about.");
static METRIC_COUNTER(failed, "firn_agent_debuginfo_files_total", "{result=\"failed\"}",
		      "Binaries and debug files that the server was asked about.");
static METRIC_COUNTER(too_large, "firn_agent_debuginfo_files_total", "{result=\"too_large\"}",
		      "Binaries and debug files that the server was asked about.");

/* One binary that waits. */
struct item {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	char *path; /* owned */
	int fd;
	pid_t pid;
	int root_fd;	/* debug_file_root of its process */
	int64_t due_ns; /* monotonic */
};

/* Files of one build id and size are taken for the same. */
struct known {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	off_t bytes;
};

struct debuginfo_upload {
	struct net_client *client; /* the thread's */
	struct root_files *files;
	uint64_t file_bytes_max, bytes_per_s;
	int64_t retry_ns;
	uint64_t sent_bytes; /* of the file under way, when last looked at */
	int64_t next_ns;     /* when the next piece may go */
	pthread_t thread;
	_Atomic bool is_stopping;

	struct lock lock; /* for all below */
	struct lock_condition wake;
	struct item items[QUEUE_MAX]; /* in no order */
	size_t count;
	struct known *known; /* offered before */
	size_t known_count, known_capacity;
	struct idmap known_map;
};

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &sent, &present, &failed, &too_large };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

static void free_item(struct item *item)
{
	close(item->fd);
	if (item->root_fd >= 0)
		close(item->root_fd);
	free(item->path);
}

static bool known_equal(const void *context, uint32_t id, const void *key)
{
	const struct known *known = context, *wanted = key;

	return known[id].bytes == wanted->bytes && !strcmp(known[id].build_id, wanted->build_id);
}

/* False when it was known already. */
static bool remember(struct debuginfo_upload *upload, const struct known *file)
{
	uint64_t hash =
		hash_mix(hash_bytes(file->build_id, strlen(file->build_id)), (uint64_t)file->bytes);

	if (idmap_find(&upload->known_map, hash, known_equal, upload->known, file) != IDMAP_NONE)
		return false;
	if (upload->known_count == KNOWN_MAX) {
		idmap_clear(&upload->known_map);
		upload->known_count = 0;
	}
	mem_grow(upload->known, upload->known_count, upload->known_capacity);
	upload->known[upload->known_count] = *file;
	idmap_add(&upload->known_map, hash, (uint32_t)upload->known_count++);
	return true;
}

/* Takes over what the item owns. */
static void enqueue(struct debuginfo_upload *upload, const struct item *item)
{
	lock_assert_held(&upload->lock);
	assert(upload->count < QUEUE_MAX);
	upload->items[upload->count++] = *item;
	lock_signal(&upload->wake);
}

/* Takes copies of what it needs. */
static void enqueue_offered(struct debuginfo_upload *upload, const struct agent_binary *binary,
			    const struct known *file)
{
	struct item item = { .due_ns = clock_monotonic_ns(),
			     .fd = fcntl(binary->fd, F_DUPFD_CLOEXEC, 0),
			     .pid = binary->pid,
			     .root_fd = debug_file_root(binary->pid),
			     .path = mem_strndup(binary->path.data, binary->path.len) };

	memcpy(item.build_id, file->build_id, sizeof(item.build_id));
	if (item.fd >= 0)
		enqueue(upload, &item);
	else
		free_item(&item);
}

bool debuginfo_upload_offer(void *context, const struct agent_binary *binary)
{
	struct debuginfo_upload *upload = context;
	struct slice build_id = binary->build_id;
	struct known file = { .bytes = 0 };
	struct stat status;
	bool has_room;

	if (!build_id.len || build_id.len >= sizeof(file.build_id) || fstat(binary->fd, &status))
		return true;
	memcpy(file.build_id, build_id.data, build_id.len);
	file.bytes = status.st_size;
	lock_take(&upload->lock);
	has_room = upload->count + 1 < QUEUE_MAX; /* the one under way may come back */
	if (has_room && remember(upload, &file))
		enqueue_offered(upload, binary, &file);
	lock_give(&upload->lock);
	return has_room;
}

/* After each piece: waits for its share of time when too far ahead of it. */
static bool goes_on(void *context, uint64_t bytes, uint64_t total)
{
	struct debuginfo_upload *upload = context;
	uint64_t piece = bytes >= upload->sent_bytes ? bytes - upload->sent_bytes : bytes;
	int64_t now_ns = clock_monotonic_ns();

	(void)total;
	upload->sent_bytes = bytes;
	if (upload->next_ns < now_ns)
		upload->next_ns = now_ns;
	upload->next_ns += (int64_t)(piece * 1000 / upload->bytes_per_s) * CLOCK_NS_PER_MS;
	if (upload->next_ns - now_ns < AHEAD_NS)
		return !atomic_load(&upload->is_stopping);
	lock_take(&upload->lock);
	while (!atomic_load(&upload->is_stopping) && clock_monotonic_ns() < upload->next_ns)
		lock_wait_until(&upload->wake, &upload->lock, upload->next_ns);
	lock_give(&upload->lock);
	return !atomic_load(&upload->is_stopping);
}

/* Negative when it makes sense to try again later. */
static int send_extract(struct debuginfo_upload *upload, int fd, const char *path,
			bool is_debug_file, const struct elf_extract *extract)
{
	struct debuginfo_client_file file = { .fd = fd,
					      .path = path,
					      .extract = extract,
					      .is_agent = true,
					      .is_debug_file = is_debug_file,
					      .progress = goes_on,
					      .progress_context = upload };
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	struct elf_inspection inspection;
	bool is_present;
	struct err err;
	int rc;

	if (!elf_inspect(fd, path, &inspection, &err))
		file.quality = inspection.quality;
	upload->sent_bytes = 0;
	rc = debuginfo_client_send(upload->client, &file, build_id, &is_present, &err);
	if (!rc) {
		metric_add(is_present ? &present : &sent, 1);
		return 0;
	}
	if (rc == -ERR_BUSY || rc == -ERR_CANCELLED)
		return rc;
	metric_add(&failed, 1);
	log_debug("debuginfo", "file was not sent", "file=\"%s\" cause=\"%s\"", path, err.message);
	return rc == -ERR_UNAVAILABLE || rc == -ERR_DEADLINE || rc == -ERR_IO ? rc : 0;
}

static int send_file(struct debuginfo_upload *upload, int fd, const char *path, bool is_debug_file,
		     bool *ret_has_debug_info)
{
	struct elf_extract *extract;
	struct err err;
	int rc = elf_extract_open(fd, path, upload->file_bytes_max, &extract, &err);

	*ret_has_debug_info = false;
	if (rc) {
		metric_add(rc == -ERR_LIMIT ? &too_large : &failed, 1);
		log_debug("debuginfo", "file was not sent", "file=\"%s\" cause=\"%s\"", path,
			  err.message);
		return 0;
	}
	*ret_has_debug_info = elf_extract_has_debug_info(extract);
	rc = send_extract(upload, fd, path, is_debug_file, extract);
	elf_extract_close(extract);
	return rc;
}

/* The file with the parts that dwz has taken out of the one at `path`. */
static int send_alternate(struct debuginfo_upload *upload, struct debug_file_place *place, int fd,
			  struct slice path)
{
	struct strbuf found = { 0 };
	int alternate = debug_file_find_alternate(place, fd, path, &found), rc = 0;
	bool has_debug_info;

	if (alternate >= 0) {
		rc = send_file(upload, alternate, strbuf_text(&found), true, &has_debug_info);
		close(alternate);
	}
	strbuf_free(&found);
	return rc;
}

/* The separate debug file of a binary that has none of it inside, and what belongs to that. */
static int send_debug_file(struct debuginfo_upload *upload, struct debug_file_place *place,
			   const struct item *item)
{
	struct strbuf path = { 0 };
	int fd = debug_file_find(place, item->fd, slice_of(item->path), item->build_id, &path);
	bool has_debug_info;
	int rc = 0;

	if (fd >= 0) {
		rc = send_file(upload, fd, strbuf_text(&path), true, &has_debug_info);
		if (!rc)
			rc = send_alternate(upload, place, fd, strbuf_slice(&path));
		close(fd);
	}
	strbuf_free(&path);
	return rc;
}

static int send_item(struct debuginfo_upload *upload, const struct item *item)
{
	struct debug_file_place place = { .files = upload->files,
					  .pid = (uint32_t)item->pid,
					  .root_fd = item->root_fd };
	bool has_debug_info = false;
	int rc = send_file(upload, item->fd, item->path, false, &has_debug_info);

	if (!rc && has_debug_info)
		rc = send_alternate(upload, &place, item->fd, slice_of(item->path));
	else if (!rc)
		rc = send_debug_file(upload, &place, item);
	return !rc && place.is_stuck ? -ERR_DEADLINE : rc;
}

/* Waits for an item that is due and takes it out. False at the end. */
static bool next_item(struct debuginfo_upload *upload, struct item *ret)
{
	lock_assert_held(&upload->lock);
	while (!atomic_load(&upload->is_stopping)) {
		int64_t now_ns = clock_monotonic_ns();
		size_t first = 0;

		if (!upload->count) {
			lock_wait(&upload->wake, &upload->lock);
			continue;
		}
		for (size_t i = 1; i < upload->count; i++)
			if (upload->items[i].due_ns < upload->items[first].due_ns)
				first = i;
		if (upload->items[first].due_ns <= now_ns) {
			*ret = upload->items[first];
			upload->items[first] = upload->items[--upload->count];
			return true;
		}
		lock_wait_until(&upload->wake, &upload->lock, upload->items[first].due_ns);
	}
	return false;
}

static int64_t retry_after_ns(const struct debuginfo_upload *upload, int rc)
{
	return rc == -ERR_BUSY && upload->retry_ns > BUSY_RETRY_NS ? BUSY_RETRY_NS
								   : upload->retry_ns;
}

static void *run(void *data)
{
	struct debuginfo_upload *upload = data;
	struct item item;

	setpriority(PRIO_PROCESS, 0, NICE); /* of this thread alone */
	lock_take(&upload->lock);
	while (next_item(upload, &item)) {
		int rc;

		lock_give(&upload->lock);
		rc = send_item(upload, &item);
		lock_take(&upload->lock);
		item.due_ns = clock_monotonic_ns() + retry_after_ns(upload, rc);
		if (rc && !atomic_load(&upload->is_stopping))
			enqueue(upload, &item);
		else
			free_item(&item);
	}
	lock_give(&upload->lock);
	return NULL;
}

static void release(struct debuginfo_upload *upload)
{
	for (size_t i = 0; i < upload->count; i++)
		free_item(&upload->items[i]);
	free(upload->known);
	idmap_free(&upload->known_map);
	net_client_free(upload->client);
	lock_condition_free(&upload->wake);
	lock_free(&upload->lock);
	free(upload);
}

int debuginfo_upload_new(const struct debuginfo_upload_options *options,
			 struct debuginfo_upload **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct debuginfo_upload *upload = mem_new(struct debuginfo_upload);
	sigset_t all, old;
	int rc;

	pthread_once(&once, register_metrics);
	upload->files = options->files;
	upload->file_bytes_max =
		options->file_bytes_max ? options->file_bytes_max : FILE_BYTES_DEFAULT;
	upload->bytes_per_s = options->bytes_per_s ? options->bytes_per_s : BYTES_PER_S_DEFAULT;
	upload->retry_ns = options->retry_ns ? options->retry_ns : RETRY_DEFAULT_NS;
	lock_init(&upload->lock, "debuginfo_upload", LOCK_AGENT + 5);
	lock_condition_init(&upload->wake);
	rc = net_client_new(options->address, options->access, &upload->client, err);
	if (!rc) {
		int code;

		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		code = pthread_create(&upload->thread, NULL, run, upload);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (code)
			rc = err_set_errno(err, code, "start the thread that sends debuginfo");
	}
	if (rc) {
		release(upload);
		return rc;
	}
	pthread_setname_np(upload->thread, "firn-debuginfo");
	*ret = upload;
	return 0;
}

void debuginfo_upload_free(struct debuginfo_upload *upload)
{
	if (!upload)
		return;
	lock_take(&upload->lock);
	atomic_store(&upload->is_stopping, true);
	root_files_stop(upload->files);
	net_client_end_by(upload->client, clock_monotonic_ns());
	lock_signal(&upload->wake);
	lock_give(&upload->lock);
	pthread_join(upload->thread, NULL);
	release(upload);
}
