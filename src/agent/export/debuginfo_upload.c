/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/export/debuginfo_upload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/export/debuginfo_client.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#define FILE_BYTES_DEFAULT ((uint64_t)256 << 20)
#define RETRY_DEFAULT_NS (300 * CLOCK_NS_PER_S)
#define QUEUE_MAX 256u	 /* descriptors kept open */
#define KNOWN_MAX 16384u /* build ids remembered; then all are forgotten, and asked about anew */
#define DEBUG_PATH "/usr/lib/debug/.build-id"
#define PRIORITY 19

static METRIC_COUNTER(sent, "firn_agent_debuginfo_files_total", "{result=\"sent\"}",
		      "Binaries and debug files that the server was asked about.");
static METRIC_COUNTER(present, "firn_agent_debuginfo_files_total", "{result=\"present\"}",
		      "Binaries and debug files that the server was asked about.");
static METRIC_COUNTER(failed, "firn_agent_debuginfo_files_total", "{result=\"failed\"}",
		      "Binaries and debug files that the server was asked about.");
static METRIC_COUNTER(too_large, "firn_agent_debuginfo_files_total", "{result=\"too_large\"}",
		      "Binaries and debug files that the server was asked about.");
static METRIC_COUNTER(dropped, "firn_agent_debuginfo_files_total", "{result=\"dropped\"}",
		      "Binaries and debug files that the server was asked about.");

/* One binary that waits. */
struct item {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	char *path; /* owned */
	int fd;
	int64_t due_ns; /* monotonic */
};

struct debuginfo_upload {
	struct net_client *client; /* the thread's */
	uint64_t file_bytes_max;
	int64_t retry_ns;
	pthread_t thread;
	_Atomic bool is_stopping;

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t wake;
	struct item items[QUEUE_MAX]; /* in no order */
	size_t count;
	char (*known)[ELF_BUILD_ID_TEXT_BYTES]; /* offered before */
	size_t known_count, known_capacity;
	struct idmap known_map;
};

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &sent, &present, &failed, &too_large, &dropped };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

static void free_item(struct item *item)
{
	close(item->fd);
	free(item->path);
}

static bool known_equal(const void *context, uint32_t id, const void *key)
{
	const char(*known)[ELF_BUILD_ID_TEXT_BYTES] = context;

	return slice_is(*(const struct slice *)key, known[id]);
}

/* False when it was known already. */
static bool remember(struct debuginfo_upload *upload, struct slice build_id)
{
	uint64_t hash = hash_bytes(build_id.data, build_id.len);
	char *place;

	if (idmap_find(&upload->known_map, hash, known_equal, upload->known, &build_id) !=
	    IDMAP_NONE)
		return false;
	if (upload->known_count == KNOWN_MAX) {
		idmap_clear(&upload->known_map);
		upload->known_count = 0;
	}
	mem_grow(upload->known, upload->known_count, upload->known_capacity);
	place = upload->known[upload->known_count];
	memcpy(place, build_id.data, build_id.len);
	place[build_id.len] = '\0';
	idmap_add(&upload->known_map, hash, (uint32_t)upload->known_count++);
	return true;
}

/* Takes over what the item owns. */
static void enqueue(struct debuginfo_upload *upload, const struct item *item)
{
	size_t oldest = 0;

	if (upload->count == QUEUE_MAX) {
		for (size_t i = 1; i < upload->count; i++)
			if (upload->items[i].due_ns < upload->items[oldest].due_ns)
				oldest = i;
		free_item(&upload->items[oldest]);
		upload->items[oldest] = upload->items[--upload->count];
		metric_add(&dropped, 1);
	}
	upload->items[upload->count++] = *item;
	pthread_cond_signal(&upload->wake);
}

void debuginfo_upload_offer(void *context, struct slice build_id, struct slice path, int fd)
{
	struct debuginfo_upload *upload = context;
	struct item item = { .due_ns = clock_monotonic_ns() };

	if (!build_id.len || build_id.len >= sizeof(item.build_id))
		return;
	memcpy(item.build_id, build_id.data, build_id.len);
	pthread_mutex_lock(&upload->lock);
	if (remember(upload, build_id)) {
		item.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		item.path = mem_strndup(path.data, path.len);
		if (item.fd >= 0)
			enqueue(upload, &item);
		else
			free(item.path);
	}
	pthread_mutex_unlock(&upload->lock);
}

static bool goes_on(void *context, uint64_t bytes, uint64_t total)
{
	const struct debuginfo_upload *upload = context;

	(void)bytes;
	(void)total;
	return !atomic_load(&upload->is_stopping);
}

/* Negative when it makes sense to try again later. */
static int send_file(struct debuginfo_upload *upload, int fd, const char *path)
{
	const struct debuginfo_client_file file = { .fd = fd,
						    .path = path,
						    .is_agent = true,
						    .progress = goes_on,
						    .progress_context = upload };
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	struct stat status;
	bool is_present;
	struct err err;
	int rc;

	if (fstat(fd, &status) || (uint64_t)status.st_size > upload->file_bytes_max) {
		metric_add(&too_large, 1);
		return 0;
	}
	rc = debuginfo_client_send(upload->client, &file, build_id, &is_present, &err);
	if (!rc) {
		metric_add(is_present ? &present : &sent, 1);
		return 0;
	}
	if (rc == -ERR_BUSY || rc == -ERR_CANCELLED)
		return rc;
	metric_add(&failed, 1);
	log_debug("debuginfo", "file is not sent", "file=\"%s\" cause=\"%s\"", path, err.message);
	return rc == -ERR_UNAVAILABLE || rc == -ERR_DEADLINE || rc == -ERR_IO ? rc : 0;
}

/* The separate debug file, where a package of this host has put it; -1 when there is none. */
static int open_debug_file(const char *build_id, char *ret_path, size_t bytes)
{
	struct elf_info info;
	int fd, len = snprintf(ret_path, bytes, DEBUG_PATH "/%.2s/%s.debug", build_id,
			       strlen(build_id) > 2 ? build_id + 2 : "");

	if (len < 0 || (size_t)len >= bytes)
		return -1;
	fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (elf_read_info(fd, ret_path, &info, NULL) || strcmp(info.build_id, build_id) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int send_item(struct debuginfo_upload *upload, const struct item *item)
{
	char path[PATH_MAX];
	int rc = send_file(upload, item->fd, item->path);
	int fd = rc ? -1 : open_debug_file(item->build_id, path, sizeof(path));

	if (fd >= 0) {
		rc = send_file(upload, fd, path);
		close(fd);
	}
	return rc;
}

/* Waits for an item that is due and takes it out. False at the end. With the lock held. */
static bool next_item(struct debuginfo_upload *upload, struct item *ret)
{
	while (!atomic_load(&upload->is_stopping)) {
		int64_t now_ns = clock_monotonic_ns();
		struct timespec until;
		size_t first = 0;

		if (!upload->count) {
			pthread_cond_wait(&upload->wake, &upload->lock);
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
		until = (struct timespec){ upload->items[first].due_ns / CLOCK_NS_PER_S,
					   upload->items[first].due_ns % CLOCK_NS_PER_S };
		pthread_cond_clockwait(&upload->wake, &upload->lock, CLOCK_MONOTONIC, &until);
	}
	return false;
}

static void *run(void *data)
{
	struct debuginfo_upload *upload = data;
	struct item item;

	setpriority(PRIO_PROCESS, 0, PRIORITY); /* of this thread alone */
	pthread_mutex_lock(&upload->lock);
	while (next_item(upload, &item)) {
		int rc;

		pthread_mutex_unlock(&upload->lock);
		rc = send_item(upload, &item);
		pthread_mutex_lock(&upload->lock);
		item.due_ns = clock_monotonic_ns() + upload->retry_ns;
		if (rc && !atomic_load(&upload->is_stopping))
			enqueue(upload, &item);
		else
			free_item(&item);
	}
	pthread_mutex_unlock(&upload->lock);
	return NULL;
}

static void release(struct debuginfo_upload *upload)
{
	for (size_t i = 0; i < upload->count; i++)
		free_item(&upload->items[i]);
	free(upload->known);
	idmap_free(&upload->known_map);
	net_client_free(upload->client);
	pthread_cond_destroy(&upload->wake);
	pthread_mutex_destroy(&upload->lock);
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
	upload->file_bytes_max =
		options->file_bytes_max ? options->file_bytes_max : FILE_BYTES_DEFAULT;
	upload->retry_ns = options->retry_ns ? options->retry_ns : RETRY_DEFAULT_NS;
	pthread_mutex_init(&upload->lock, NULL);
	pthread_cond_init(&upload->wake, NULL);
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
	pthread_mutex_lock(&upload->lock);
	atomic_store(&upload->is_stopping, true);
	pthread_cond_signal(&upload->wake);
	pthread_mutex_unlock(&upload->lock);
	pthread_join(upload->thread, NULL);
	release(upload);
}
