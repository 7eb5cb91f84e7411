/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/api/service_senders.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/whole_file.h"
#include "codec/wire/json.h"
#include "codec/wire/json_read.h"
#include "model/service.h"

#define FILE_BYTES_MAX ((size_t)32 << 20)
#define MEMORY_BYTES_MAX ((int64_t)256 << 20) /* while the file is read */
#define SAVE_NS (60 * CLOCK_NS_PER_S)

struct service_senders {
	char *path; /* of the file; NULL = none */
	pthread_t thread;
	bool has_thread;
	struct lock lock; /* guards the rest */
	struct lock_condition changed;
	bool is_ending, is_new; /* something is not in the file */
	struct service_sender *list;
	size_t count, capacity;
	struct idmap map;
};

/* Not within a character. */
static struct slice cut(struct slice text)
{
	if (text.len < SERVICE_SENDERS_TEXT_BYTES)
		return text;
	text.len = SERVICE_SENDERS_TEXT_BYTES - 1;
	while (text.len && ((unsigned char)text.data[text.len] & 0xc0) == 0x80)
		text.len--;
	return text;
}

struct slice service_senders_name(struct slice service)
{
	return cut(service);
}

struct key {
	struct slice tenant, service, sender;
};

static struct key key_of(const struct service_sender *sender)
{
	return (struct key){ slice_of(sender->tenant), slice_of(sender->service),
			     slice_of(sender->sender) };
}

static bool is_same(const void *context, uint32_t id, const void *wanted)
{
	struct key key = key_of(&((const struct service_senders *)context)->list[id]);
	const struct key *other = wanted;

	return slice_equal(key.service, other->service) && slice_equal(key.sender, other->sender) &&
	       slice_equal(key.tenant, other->tenant);
}

static uint64_t hash_of(const struct key *key)
{
	uint64_t hash = hash_bytes(key->service.data, key->service.len);

	hash = hash_mix(hash, hash_bytes(key->sender.data, key->sender.len));
	return hash_mix(hash, hash_bytes(key->tenant.data, key->tenant.len));
}

static int by_last(const void *a, const void *b)
{
	const struct service_sender *left = a, *right = b;

	return (left->last_at_ns < right->last_at_ns) - (left->last_at_ns > right->last_at_ns);
}

static int by_service(const void *a, const void *b)
{
	const struct service_sender *left = a, *right = b;
	int order = strcmp(left->service, right->service);

	return order ? order : by_last(a, b);
}

static void make_room(struct service_senders *senders)
{
	if (senders->count < SERVICE_SENDERS_MAX)
		return;
	qsort(senders->list, senders->count, sizeof(*senders->list), by_last);
	senders->count /= 2;
	idmap_free(&senders->map);
	senders->map = (struct idmap){ 0 };
	for (size_t i = 0; i < senders->count; i++) {
		struct key key = key_of(&senders->list[i]);

		idmap_add(&senders->map, hash_of(&key), (uint32_t)i);
	}
}

/* A text with a NUL in it ends there. */
static struct slice set_text(char *to, struct slice text)
{
	snprintf(to, SERVICE_SENDERS_TEXT_BYTES, "%.*s", (int)text.len, text.data);
	return slice_of(to);
}

static uint32_t find(struct service_senders *senders, const struct key *key)
{
	uint64_t hash = hash_of(key);
	uint32_t id = idmap_find(&senders->map, hash, is_same, senders, key);
	struct service_sender *sender;

	if (id != IDMAP_NONE)
		return id;
	make_room(senders);
	id = (uint32_t)senders->count;
	mem_grow(senders->list, senders->count, senders->capacity);
	sender = &senders->list[senders->count++];
	*sender = (struct service_sender){ .newest_ns = INT64_MIN };
	snprintf(sender->tenant, sizeof(sender->tenant), "%.*s", (int)key->tenant.len,
		 key->tenant.data);
	set_text(sender->service, key->service);
	set_text(sender->sender, key->sender);
	idmap_add(&senders->map, hash, id);
	return id;
}

/* The pair of a series; `last` is that of the one before, which mostly is of the same service. */
static uint32_t pair_of(struct service_senders *senders, struct key *key,
			const struct tables_view *view, uint32_t series, uint32_t last)
{
	struct service service = service_of(view, view->series[series].label_set);
	char text[SERVICE_SENDERS_TEXT_BYTES];
	uint32_t id;

	key->service = set_text(text, cut(service.name));
	if (last == IDMAP_NONE || !is_same(senders, last, key)) {
		if (!slice_is_utf8(key->service))
			return IDMAP_NONE;
		id = find(senders, key);
		senders->list[id].is_named = service.is_named;
		return id;
	}
	return last;
}

void service_senders_note(struct service_senders *senders, struct slice tenant, struct slice sender,
			  const struct tables_view *view)
{
	char text[SERVICE_SENDERS_TEXT_BYTES];
	struct key key = { .tenant = tenant, .sender = set_text(text, cut(sender)) };
	int64_t now_ns = clock_real_ns();
	uint32_t last = IDMAP_NONE, series = UINT32_MAX;

	if (tenant.len > TENANT_BYTES_MAX || !slice_is_utf8(key.sender))
		return;
	lock_take(&senders->lock);
	if (!senders->is_new)
		lock_broadcast(&senders->changed);
	senders->is_new = true;
	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];

		if (report->series != series)
			last = pair_of(senders, &key, view, report->series, last);
		series = report->series;
		if (last == IDMAP_NONE)
			continue;
		senders->list[last].last_at_ns = now_ns;
		if (report->start_ns > senders->list[last].newest_ns)
			senders->list[last].newest_ns = report->start_ns;
	}
	lock_give(&senders->lock);
}

struct service_sender *service_senders_list(struct service_senders *senders, struct slice tenant,
					    size_t *ret_count)
{
	struct service_sender *list;
	size_t count = 0;

	lock_take(&senders->lock);
	list = mem_new_array(struct service_sender, senders->count + 1);
	for (size_t i = 0; i < senders->count; i++)
		if (slice_is(tenant, senders->list[i].tenant))
			list[count++] = senders->list[i];
	lock_give(&senders->lock);
	qsort(list, count, sizeof(*list), by_service);
	*ret_count = count;
	return list;
}

bool service_senders_several(struct service_senders *senders, struct slice tenant, int64_t since_ns)
{
	const char *first = NULL;
	bool several = false;

	lock_take(&senders->lock);
	for (size_t i = 0; !several && i < senders->count; i++) {
		const struct service_sender *sender = &senders->list[i];

		if (!sender->is_named || sender->newest_ns < since_ns ||
		    !slice_is(tenant, sender->tenant))
			continue;
		if (!first)
			first = sender->service;
		several = strcmp(first, sender->service) != 0;
	}
	lock_give(&senders->lock);
	return several;
}

/* ---- the file ---- */

static void write_one(struct json *json, const struct service_sender *sender)
{
	json_open_object(json);
	json_member_text(json, "tenant", sender->tenant);
	json_member_text(json, "service", sender->service);
	json_member_text(json, "sender", sender->sender);
	json_member_bool(json, "is_named", sender->is_named);
	json_member_int(json, "last_at_ns", sender->last_at_ns);
	json_member_int(json, "newest_ns", sender->newest_ns);
	json_close_object(json);
}

void service_senders_write(struct service_senders *senders, struct strbuf *out)
{
	struct json json;

	json_begin(&json, out);
	json_open_array(&json);
	lock_take(&senders->lock);
	for (size_t i = 0; i < senders->count; i++)
		write_one(&json, &senders->list[i]);
	senders->is_new = false;
	lock_give(&senders->lock);
	json_close_array(&json);
}

static int read_one(struct service_senders *senders, const json_t *item, struct err *err)
{
	const struct key key = { json_text_at(item, "tenant"), json_text_at(item, "service"),
				 json_text_at(item, "sender") };
	const json_t *last = json_object_get(item, "last_at_ns");
	const json_t *newest = json_object_get(item, "newest_ns");
	struct service_sender *sender;
	uint32_t id;

	if (!key.service.len || key.tenant.len > TENANT_BYTES_MAX ||
	    key.service.len >= SERVICE_SENDERS_TEXT_BYTES ||
	    key.sender.len >= SERVICE_SENDERS_TEXT_BYTES || !json_is_integer(last) ||
	    !json_is_integer(newest))
		return err_set(err, ERR_INVALID, "senders: an entry is none");
	id = find(senders, &key); /* the list may move */
	sender = &senders->list[id];
	sender->is_named = json_is_true(json_object_get(item, "is_named"));
	sender->last_at_ns = json_integer_value(last);
	sender->newest_ns = json_integer_value(newest);
	return 0;
}

int service_senders_read(struct service_senders *senders, struct slice text, struct err *err)
{
	struct budget budget = { .max_bytes = MEMORY_BYTES_MAX };
	struct json_read read;
	int rc = json_read(text, 0, "senders", &budget, &read, err);
	const json_t *item;
	size_t i;

	if (!rc && !json_is_array(read.root))
		rc = err_set(err, ERR_INVALID, "senders: it is no list");
	lock_take(&senders->lock);
	json_array_foreach(read.root, i, item)
	{
		if (!rc)
			rc = read_one(senders, item, err);
	}
	lock_give(&senders->lock);
	json_read_free(&read);
	return rc;
}

/* 0: there is none. */
static int read_file(struct service_senders *senders, const char *path, struct err *err)
{
	struct strbuf text = { 0 };
	int rc;

	if (access(path, F_OK))
		return 0;
	rc = whole_file_read(path, FILE_BYTES_MAX, &text, err);
	if (!rc)
		rc = service_senders_read(senders, strbuf_slice(&text), err);
	strbuf_free(&text);
	return rc;
}

static void load(struct service_senders *senders)
{
	struct err err;

	if (read_file(senders, senders->path, &err))
		log_warn("server", "cannot read the list of senders; starting an empty one",
			 "path=\"%s\" error=\"%s\"", senders->path, err.message);
}

int service_senders_check(const char *path, struct err *err)
{
	struct service_senders *senders = service_senders_new(NULL);
	int rc = read_file(senders, path, err);

	service_senders_free(senders);
	return rc;
}

/* In its place as a whole. */
static void save(struct service_senders *senders)
{
	struct strbuf made = { 0 }, text = { 0 };
	int fd, rc;

	strbuf_addf(&made, "%s.new", senders->path);
	service_senders_write(senders, &text);
	fd = open(strbuf_text(&made), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : whole_file_write(fd, strbuf_slice(&text));
	if (!rc && fsync(fd))
		rc = -errno;
	if (!rc && rename(strbuf_text(&made), senders->path))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	if (rc)
		log_warn("server", "the list of senders is not kept", "path=\"%s\" error=\"%s\"",
			 senders->path, strerrordesc_np(-rc));
	strbuf_free(&made);
	strbuf_free(&text);
}

static void *run(void *data)
{
	struct service_senders *senders = data;
	int64_t until_ns = clock_monotonic_ns() + SAVE_NS;

	lock_take(&senders->lock);
	while (!senders->is_ending || senders->is_new) {
		if (!senders->is_ending && !senders->is_new) {
			lock_wait(&senders->changed, &senders->lock);
			continue;
		}
		if (!senders->is_ending && clock_monotonic_ns() < until_ns) {
			lock_wait_until(&senders->changed, &senders->lock, until_ns);
			continue;
		}
		lock_give(&senders->lock);
		save(senders);
		until_ns = clock_monotonic_ns() + SAVE_NS;
		lock_take(&senders->lock);
	}
	lock_give(&senders->lock);
	return NULL;
}

struct service_senders *service_senders_new(const char *path)
{
	struct service_senders *senders = mem_new(struct service_senders);

	lock_init(&senders->lock, "service_senders", LOCK_SERVE + 6);
	lock_condition_init(&senders->changed);
	if (!path)
		return senders;
	senders->path = mem_strndup(path, strlen(path));
	load(senders);
	senders->has_thread = !pthread_create(&senders->thread, NULL, run, senders);
	if (senders->has_thread)
		pthread_setname_np(senders->thread, "firn-senders");
	return senders;
}

void service_senders_free(struct service_senders *senders)
{
	if (!senders)
		return;
	lock_take(&senders->lock);
	senders->is_ending = true;
	lock_broadcast(&senders->changed);
	lock_give(&senders->lock);
	if (senders->has_thread)
		pthread_join(senders->thread, NULL);
	idmap_free(&senders->map);
	lock_condition_free(&senders->changed);
	lock_free(&senders->lock);
	free(senders->list);
	free(senders->path);
	free(senders);
}
