/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are coming: who may send, what is received, and what becomes of it. */
#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/whole_file.h"
#include "server/debuginfo/debuginfo_int.h"
#include "server/debuginfo/shared.h"
#include "server/debuginfo/source_tar.h"

#define PIECE_BYTES ((size_t)1 << 20)

static METRIC_COUNTER(kept_uploads, "firn_debuginfo_uploads_total", "{result=\"kept\"}",
		      "Uploads of debug information.");
static METRIC_COUNTER(refused_uploads, "firn_debuginfo_uploads_total", "{result=\"refused\"}",
		      "Uploads of debug information.");
static METRIC_COUNTER(abandoned_uploads, "firn_debuginfo_uploads_total", "{result=\"abandoned\"}",
		      "Uploads of debug information.");
static METRIC_COUNTER(taken_bytes, "firn_debuginfo_received_bytes_total", "",
		      "Bytes of debug information received.");
static METRIC_GAUGE(uploads_under_way, "firn_debuginfo_uploads_under_way", "",
		    "Uploads of debug information that have begun.");
void debuginfo_upload_register(void)
{
	static struct metric *const metrics[] = { &kept_uploads, &refused_uploads,
						  &abandoned_uploads, &taken_bytes,
						  &uploads_under_way };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

struct debuginfo_receiver {
	struct debuginfo *debuginfo;
	struct upload upload; /* as it was when the receiver began */
	int fd;
	uint64_t bytes;
	bool has_failed; /* what came is of no use for another try */
	struct sha256 sha;
};

static struct upload *find_upload(struct debuginfo *debuginfo, struct slice build_id,
				  enum debuginfo_content content)
{
	for (size_t i = 0; i < debuginfo->uploads_count; i++)
		if (slice_is(build_id, debuginfo->uploads[i].build_id) &&
		    debuginfo->uploads[i].content == content)
			return &debuginfo->uploads[i];
	return NULL;
}

static void publish(const struct debuginfo *debuginfo)
{
	int64_t count = 0;

	for (size_t i = 0; i < debuginfo->uploads_count; i++)
		count += debuginfo->uploads[i].state != UPLOAD_ASKED;
	metric_set(&uploads_under_way, count);
}

static void drop_upload(struct debuginfo *debuginfo, struct upload *upload)
{
	*upload = debuginfo->uploads[--debuginfo->uploads_count];
	publish(debuginfo);
}

/* Only content whose hash will be compared may be put together from two uploads. */
static bool has_sha256(const struct debuginfo_record *record)
{
	return strlen(record->hash) == 2 * SHA256_DIGEST_BYTES;
}

/* What is left of an upload stays for a while. */
static void keep_partial(struct debuginfo *debuginfo, const struct upload *upload,
			 uint64_t received)
{
	struct partial partial = { .bytes = upload->bytes,
				   .received = received,
				   .at_ns = debuginfo_now_ns(debuginfo) };

	memcpy(partial.build_id, upload->build_id, sizeof(partial.build_id));
	memcpy(partial.id, upload->id, sizeof(partial.id));
	memcpy(partial.hash, upload->record.hash, sizeof(partial.hash));
	debuginfo_add_partial(debuginfo, &partial);
}

/*
 * Goes on with a partial upload of the same content, if there is one. Among tenants each sends all
 * of it: who knows a hash and the end alone has not the file.
 */
static void take_partial(struct debuginfo *debuginfo, struct upload *upload)
{
	if (upload->record.owners[0])
		return;
	for (size_t i = 0; has_sha256(&upload->record) && i < debuginfo->partials_count; i++) {
		struct partial *partial = &debuginfo->partials[i];

		if (strcmp(partial->build_id, upload->build_id) != 0 ||
		    strcasecmp(partial->hash, upload->record.hash) != 0 ||
		    partial->bytes != upload->bytes)
			continue;
		memcpy(upload->id, partial->id, sizeof(upload->id));
		upload->received = partial->received;
		*partial = debuginfo->partials[--debuginfo->partials_count];
		return;
	}
}

/* Forgets those who did not do what they were allowed to. */
static void expire(struct debuginfo *debuginfo)
{
	int64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; i < debuginfo->uploads_count;) {
		struct upload *upload = &debuginfo->uploads[i];
		int64_t age_ns = now_ns - upload->since_ns;

		if ((upload->state == UPLOAD_ASKED && age_ns > ASKED_NS) ||
		    (upload->state == UPLOAD_BEGUN && age_ns > BEGUN_NS)) {
			if (upload->received)
				keep_partial(debuginfo, upload, upload->received);
			drop_upload(debuginfo, upload);
		} else {
			i++;
		}
	}
}

/* A new place, at the cost of the oldest who was only told yes; NULL when all are under way. */
static struct upload *add_upload(struct debuginfo *debuginfo, const char *build_id,
				 enum debuginfo_content content)
{
	struct upload *upload, *oldest = NULL;

	for (size_t i = 0; i < debuginfo->uploads_count; i++) {
		upload = &debuginfo->uploads[i];
		if (upload->state == UPLOAD_ASKED &&
		    (!oldest || upload->since_ns < oldest->since_ns))
			oldest = upload;
	}
	if (debuginfo->uploads_count == UPLOADS_MAX && !oldest)
		return NULL;
	if (debuginfo->uploads_count == UPLOADS_MAX)
		drop_upload(debuginfo, oldest);
	mem_grow(debuginfo->uploads, debuginfo->uploads_count, debuginfo->uploads_capacity);
	upload = &debuginfo->uploads[debuginfo->uploads_count++];
	*upload = (struct upload){ .since_ns = clock_monotonic_ns(), .content = content };
	snprintf(upload->build_id, sizeof(upload->build_id), "%s", build_id);
	return upload;
}

static bool is_same(const struct entry *entry, struct slice hash)
{
	return entry && hash.len &&
	       (slice_is(hash, entry->record.hash) || slice_is(hash, entry->record.sha256));
}

/* A tenant that has not sent the file may neither see into it nor replace it by force. */
static bool is_of_others(const struct entry *entry, const struct debuginfo_offer *offer)
{
	return entry && offer->has_tenant &&
	       !debuginfo_record_has_owner(&entry->record, offer->tenant);
}

/* What belongs to a program, and says nothing of how good it is. */
static enum debuginfo_verdict judge_belonging(struct debuginfo *debuginfo, struct slice build_id,
					      enum debuginfo_kind kind,
					      const struct debuginfo_offer *offer)
{
	const struct entry *kept = debuginfo_find(debuginfo, build_id, kind);

	if (!kept)
		return DEBUGINFO_WANTED;
	if (is_of_others(kept, offer))
		return is_same(kept, offer->hash) ? DEBUGINFO_WANTED_MORE : DEBUGINFO_PRESENT;
	return offer->is_forced && !is_same(kept, offer->hash) ? DEBUGINFO_WANTED_FORCED
							       : DEBUGINFO_PRESENT;
}

static enum elf_quality best_quality(const struct entry *binary, const struct entry *debug)
{
	enum elf_quality of_binary = binary ? binary->record.quality : ELF_QUALITY_NOTHING;
	enum elf_quality of_debug = debug ? debug->record.quality : ELF_QUALITY_NOTHING;

	return of_binary > of_debug ? of_binary : of_debug;
}

static enum debuginfo_verdict judge(struct debuginfo *debuginfo, struct slice build_id,
				    const struct debuginfo_offer *offer)
{
	const struct entry *binary = debuginfo_find(debuginfo, build_id, DEBUGINFO_BINARY);
	const struct entry *debug = debuginfo_find(debuginfo, build_id, DEBUGINFO_DEBUG);
	const struct entry *best = binary;

	/* It comes from there when it is needed. */
	if (debuginfo->shared && !offer->shared_owners && !offer->is_forced && !offer->has_tenant &&
	    offer->hash.len && shared_has(debuginfo->shared, build_id, offer->hash))
		return DEBUGINFO_PRESENT;
	if (offer->content == DEBUGINFO_ARCHIVE)
		return judge_belonging(debuginfo, build_id, DEBUGINFO_SOURCES, offer);
	if (offer->content == DEBUGINFO_SPLIT)
		return judge_belonging(debuginfo, build_id, DEBUGINFO_PACKAGE, offer);
	if (is_same(binary, offer->hash) || is_same(debug, offer->hash))
		return is_of_others(is_same(binary, offer->hash) ? binary : debug, offer)
			       ? DEBUGINFO_WANTED_MORE
			       : DEBUGINFO_PRESENT;
	if (!offer->is_executable && debug &&
	    (!binary || debug->record.quality > binary->record.quality))
		best = debug;
	if (offer->is_forced && !is_of_others(best, offer))
		return best ? DEBUGINFO_WANTED_FORCED : DEBUGINFO_WANTED;
	if (!best)
		return DEBUGINFO_WANTED;
	if (offer->quality != ELF_QUALITY_NOTHING)
		return offer->quality > best_quality(binary, debug) ? DEBUGINFO_WANTED_MORE
								    : DEBUGINFO_PRESENT;
	if (best->record.quality < ELF_QUALITY_DEBUG_INFO &&
	    (offer->hash.len || offer->origin == DEBUGINFO_FROM_DEBUGINFOD))
		return DEBUGINFO_WANTED_MORE;
	return DEBUGINFO_PRESENT;
}

static int check_offer(const struct debuginfo_offer *offer, char ret_id[ELF_BUILD_ID_TEXT_BYTES],
		       struct err *err)
{
	if (!debuginfo_normalise_id(offer->build_id, ret_id))
		return err_set(err, ERR_INVALID,
			       "build id \"%.*s\": expected 4 to %d hexadecimal digits",
			       (int)(offer->build_id.len < 200 ? offer->build_id.len : 200),
			       offer->build_id.data ? offer->build_id.data : "",
			       ELF_BUILD_ID_TEXT_BYTES - 1);
	if (offer->hash.len >= DEBUGINFO_HASH_BYTES)
		return err_set(err, ERR_INVALID, "hash of %zu bytes, at most %d", offer->hash.len,
			       DEBUGINFO_HASH_BYTES - 1);
	return 0;
}

int debuginfo_ask(struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
		  enum debuginfo_verdict *ret, struct err *err)
{
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	int rc = check_offer(offer, build_id, err);

	if (rc)
		return rc;
	lock_take(&debuginfo->lock);
	expire(debuginfo);
	*ret = judge(debuginfo, slice_of(build_id), offer);
	if (!offer->is_forced && *ret != DEBUGINFO_PRESENT &&
	    find_upload(debuginfo, slice_of(build_id), offer->content))
		*ret = DEBUGINFO_IN_PROGRESS;
	else if (!offer->is_forced && *ret != DEBUGINFO_PRESENT)
		(void)add_upload(debuginfo, build_id, offer->content);
	lock_give(&debuginfo->lock);
	return 0;
}

/* Bytes that those under way may still bring, and how many they are. */
static uint64_t reserved_bytes(const struct debuginfo *debuginfo, size_t *ret_count)
{
	uint64_t bytes = 0;

	*ret_count = 0;
	for (size_t i = 0; i < debuginfo->uploads_count; i++) {
		if (debuginfo->uploads[i].state == UPLOAD_ASKED)
			continue;
		bytes += debuginfo->uploads[i].bytes;
		++*ret_count;
	}
	return bytes;
}

static int check_limits(const struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
			struct err *err)
{
	uint64_t bytes_max = debuginfo->options.file_bytes_max;
	uint64_t reserved;
	size_t count;

	if (debuginfo->options.bytes_max && debuginfo->options.bytes_max < bytes_max)
		bytes_max = debuginfo->options.bytes_max;
	if (!offer->bytes)
		return err_set(err, ERR_INVALID, "the size of the file is missing");
	if (offer->bytes > bytes_max)
		return err_set(err, ERR_LIMIT, "%llu MB are more than the limit of %llu MB",
			       (unsigned long long)(offer->bytes >> 20),
			       (unsigned long long)(bytes_max >> 20));
	reserved = reserved_bytes(debuginfo, &count);
	if (count >= RECEIVING_MAX)
		return err_set(err, ERR_NO_MEMORY, "%zu uploads are under way; try again later",
			       count);
	return disk_check_room(debuginfo->path, reserved + offer->bytes, err);
}

static void make_id(char ret[DISK_UPLOAD_ID_BYTES])
{
	unsigned char bytes[(DISK_UPLOAD_ID_BYTES - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort(); /* cannot fail for so few bytes */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* With the lock held. */
static int begin(struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
		 const char *build_id, struct upload **ret, struct err *err)
{
	struct upload *upload;
	int rc;

	expire(debuginfo);
	if (judge(debuginfo, slice_of(build_id), offer) == DEBUGINFO_PRESENT)
		return err_set(err, ERR_EXISTS, "debuginfo of build id %s is here already",
			       build_id);
	upload = find_upload(debuginfo, slice_of(build_id), offer->content);
	if (upload && upload->state != UPLOAD_ASKED && !offer->is_forced)
		return err_set(err, ERR_BUSY, "an upload for build id %s is under way", build_id);
	if (upload && upload->state == UPLOAD_BEGUN && upload->received)
		keep_partial(debuginfo, upload, upload->received);
	if (upload) /* who receives it finds that at its end */
		drop_upload(debuginfo, upload);
	rc = check_limits(debuginfo, offer, err);
	if (rc)
		return rc;
	*ret = add_upload(debuginfo, build_id, offer->content);
	return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "too many uploads are under way");
}

int debuginfo_begin(struct debuginfo *debuginfo, const struct debuginfo_offer *offer,
		    char ret_id[DISK_UPLOAD_ID_BYTES], uint64_t *ret_received, struct err *err)
{
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	struct upload *upload;
	int rc = check_offer(offer, build_id, err);

	if (rc)
		return rc;
	lock_take(&debuginfo->lock);
	rc = begin(debuginfo, offer, build_id, &upload, err);
	if (!rc) {
		upload->state = UPLOAD_BEGUN;
		upload->id_kind = offer->id_kind;
		upload->is_forced = offer->is_forced;
		upload->is_open_ended = offer->is_open_ended;
		upload->bytes = upload->record.bytes = offer->bytes;
		upload->record.origin = offer->origin;
		memcpy(upload->record.build_id, build_id, sizeof(build_id));
		make_id(upload->id);
		debuginfo_record_set_hash(&upload->record, offer->hash);
		debuginfo_record_set_name(&upload->record, offer->name);
		if (offer->has_tenant)
			debuginfo_record_add_owner(&upload->record, offer->tenant);
		if (offer->shared_owners)
			snprintf(upload->record.owners, sizeof(upload->record.owners), "%s",
				 offer->shared_owners);
		take_partial(debuginfo, upload);
		*ret_received = upload->received;
		memcpy(ret_id, upload->id, sizeof(upload->id));
		publish(debuginfo);
	}
	lock_give(&debuginfo->lock);
	return rc;
}

/* The upload that both name, under way; with the lock held. */
static struct upload *upload_of(struct debuginfo *debuginfo, struct slice build_id, struct slice id)
{
	char normal[ELF_BUILD_ID_TEXT_BYTES];

	for (size_t i = 0; debuginfo_normalise_id(build_id, normal) && i < debuginfo->uploads_count;
	     i++) {
		struct upload *upload = &debuginfo->uploads[i];

		if (upload->state != UPLOAD_ASKED && slice_is(id, upload->id) &&
		    !strcmp(upload->build_id, normal))
			return upload;
	}
	return NULL;
}

/* What came before is part of the content. */
static int hash_received(struct debuginfo_receiver *receiver, uint64_t bytes, struct err *err)
{
	char *piece = mem_calloc(PIECE_BYTES, 1);
	int rc = 0;

	while (!rc && receiver->bytes < bytes) {
		uint64_t left = bytes - receiver->bytes;
		ssize_t got = pread(receiver->fd, piece, left < PIECE_BYTES ? left : PIECE_BYTES,
				    (off_t)receiver->bytes);

		if (got <= 0) {
			rc = err_set_errno(err, got ? errno : EIO, "read what was received before");
			break;
		}
		sha256_add(&receiver->sha, piece, (size_t)got);
		receiver->bytes += (uint64_t)got;
	}
	free(piece);
	return rc;
}

static int open_receiver(struct debuginfo_receiver *receiver, uint64_t offset, struct err *err)
{
	sha256_init(&receiver->sha);
	receiver->fd = disk_begin(receiver->debuginfo->path, receiver->upload.id,
				  &receiver->upload.record, offset, err);
	return receiver->fd < 0 ? receiver->fd : hash_received(receiver, offset, err);
}

int debuginfo_receive_begin(struct debuginfo *debuginfo, struct slice build_id, struct slice id,
			    uint64_t offset, struct debuginfo_receiver **ret, struct err *err)
{
	struct debuginfo_receiver *receiver = mem_new(struct debuginfo_receiver);
	struct upload *upload;
	int rc = 0;

	lock_take(&debuginfo->lock);
	expire(debuginfo);
	upload = upload_of(debuginfo, build_id, id);
	if (!upload)
		rc = err_set(err, ERR_NOT_FOUND,
			     "no such upload is under way for this build id; initiate it (again)");
	else if (upload->state == UPLOAD_RECEIVING)
		rc = err_set(err, ERR_BUSY, "the upload is being received already");
	else if (offset > upload->received)
		rc = err_set(err, ERR_INVALID, "%llu bytes are here, not the %llu before offset",
			     (unsigned long long)upload->received, (unsigned long long)offset);
	if (!rc) {
		upload->state = UPLOAD_RECEIVING;
		upload->since_ns = clock_monotonic_ns();
		receiver->upload = *upload;
	}
	lock_give(&debuginfo->lock);
	if (rc) {
		free(receiver);
		return rc;
	}
	receiver->debuginfo = debuginfo;
	rc = open_receiver(receiver, offset, err);
	if (rc) {
		debuginfo_receive_abandon(receiver);
		return rc;
	}
	*ret = receiver;
	return 0;
}

int debuginfo_receive(struct debuginfo_receiver *receiver, struct slice bytes, struct err *err)
{
	int rc;

	if (bytes.len > receiver->upload.bytes - receiver->bytes) {
		rc = err_set(err, ERR_INVALID, "more than the %llu bytes that were announced",
			     (unsigned long long)receiver->upload.bytes);
	} else {
		rc = whole_file_write(receiver->fd, bytes);
		if (rc)
			rc = err_set_errno(err, -rc, "write debuginfo");
	}
	if (rc) {
		receiver->has_failed = true;
		return rc;
	}
	receiver->bytes += bytes.len;
	metric_add(&taken_bytes, (int64_t)bytes.len);
	sha256_add(&receiver->sha, bytes.data, bytes.len);
	return 0;
}

enum fate { INSTALLED, CUT_OFF, REFUSED };

/* Forgets the upload unless another one has taken its place, and sees to what is left of it. */
static void end_receiver(struct debuginfo_receiver *receiver, enum fate fate)
{
	struct debuginfo *debuginfo = receiver->debuginfo;
	struct upload *upload;

	if (receiver->fd >= 0)
		close(receiver->fd);
	lock_take(&debuginfo->lock);
	upload = upload_of(debuginfo, slice_of(receiver->upload.build_id),
			   slice_of(receiver->upload.id));
	if (upload)
		drop_upload(debuginfo, upload);
	if (fate == CUT_OFF && has_sha256(&receiver->upload.record) &&
	    receiver->bytes >= PARTIAL_BYTES_MIN)
		keep_partial(debuginfo, &receiver->upload, receiver->bytes);
	else if (fate != INSTALLED)
		debuginfo_add_garbage(debuginfo, receiver->upload.id);
	else
		debuginfo_drop_partials(debuginfo, receiver->upload.build_id);
	lock_give(&debuginfo->lock);
	free(receiver);
}

void debuginfo_receive_abandon(struct debuginfo_receiver *receiver)
{
	metric_add(&abandoned_uploads, 1);
	end_receiver(receiver, receiver->has_failed ? REFUSED : CUT_OFF);
}

static int check_content(struct debuginfo_receiver *receiver, struct err *err)
{
	struct debuginfo_record *record = &receiver->upload.record;
	uint8_t digest[SHA256_DIGEST_BYTES];

	record->bytes = receiver->bytes;
	record->build_id[0] = '\0'; /* from here on its place says it */
	if (receiver->bytes != receiver->upload.bytes &&
	    (!receiver->upload.is_open_ended || !receiver->bytes))
		return err_set(err, ERR_INVALID, "%llu bytes came, %llu were announced",
			       (unsigned long long)receiver->bytes,
			       (unsigned long long)receiver->upload.bytes);
	sha256_finish(&receiver->sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(record->sha256 + 2 * i, 3, "%02x", digest[i]);
	if (strlen(record->hash) == 2 * sizeof(digest) && strcasecmp(record->hash, record->sha256))
		return err_set(err, ERR_INVALID,
			       "the content's SHA-256 is %s, not %s as was announced",
			       record->sha256, record->hash);
	return 0;
}

/*
 * A GNU build id stands in the content, also of what is left of a program. Other ids are made from
 * the program's file: they are believed where the content cannot tell.
 */
static int check_identity(const struct upload *upload, const struct elf_inspection *found,
			  struct err *err)
{
	if (!strcmp(found->build_id, upload->build_id))
		return 0;
	if (found->id_kind != ELF_ID_GNU && upload->id_kind == DEBUGINFO_ID_HASH)
		return 0;
	return err_set(err, ERR_INVALID, "the content's build id is %s%s, not %s", found->build_id,
		       found->id_kind == ELF_ID_GNU ? "" : " (made from the file; it has no note)",
		       upload->build_id);
}

/* Whether who sends this has sent what is here; everybody has, where tenants are not told apart. */
static bool has_sender(const struct entry *entry, const struct upload *upload)
{
	const char *owners = upload->record.owners;

	return !owners[0] || debuginfo_record_has_owner(&entry->record, slice_of(owners + 1));
}

/* Whether the new file is to take the place of what is here; with the lock held. */
static int compare(const struct entry *old, const struct upload *upload, bool *ret_is_same,
		   struct err *err)
{
	*ret_is_same = old && !strcmp(old->record.sha256, upload->record.sha256);
	if (!old || *ret_is_same)
		return 0;
	if (old->record.quality > upload->record.quality ||
	    (old->record.quality == upload->record.quality &&
	     (!upload->is_forced || !has_sender(old, upload))))
		return err_set(err, ERR_EXISTS,
			       "a file with %s is here for build id %s; this one with %s is not "
			       "better",
			       elf_quality_name(old->record.quality), upload->build_id,
			       elf_quality_name(upload->record.quality));
	return 0;
}

/* It is the same file, so its owners stay. */
static void add_owner(const struct debuginfo_record *old, struct debuginfo_record *record)
{
	struct debuginfo_record both = *old;

	if (!both.owners[0])
		debuginfo_record_add_owner(&both, slice_of(""));
	debuginfo_record_add_owner(&both, slice_of(record->owners + 1));
	memcpy(record->owners, both.owners, sizeof(record->owners));
}

static int install(struct debuginfo_receiver *receiver, enum debuginfo_kind kind, bool *ret_is_same,
		   struct err *err)
{
	struct debuginfo *debuginfo = receiver->debuginfo;
	struct upload *upload = &receiver->upload;
	struct slice build_id = slice_of(upload->build_id);
	struct entry *old;
	int rc;

	upload->record.uploaded_at_ns = debuginfo_now_ns(debuginfo);
	memcpy(upload->record.upload_id, upload->id, sizeof(upload->id));
	if (!upload_of(debuginfo, build_id, slice_of(upload->id)))
		return err_set(err, ERR_CANCELLED, "another upload for build id %s was forced",
			       upload->build_id);
	old = debuginfo_find(debuginfo, build_id, kind);
	rc = compare(old, upload, ret_is_same, err);
	if (rc)
		return rc;
	if (*ret_is_same && has_sender(old, upload)) {
		memcpy(old->record.upload_id, upload->id, sizeof(upload->id));
		return 0;
	}
	if (*ret_is_same)
		add_owner(&old->record, &upload->record);
	*ret_is_same = false;
	debuginfo_make_room(debuginfo, old, upload->bytes);
	rc = disk_install(debuginfo->path, upload->id, build_id, kind, &upload->record, err);
	if (rc)
		return rc;
	disk_touch(debuginfo->path, build_id, kind, upload->record.uploaded_at_ns);
	debuginfo_put(debuginfo, build_id, kind, &upload->record, upload->record.uploaded_at_ns);
	return 0;
}

static int check_kind(struct debuginfo_receiver *receiver, struct elf_inspection *found,
		      enum debuginfo_kind *ret, struct err *err)
{
	const struct upload *upload = &receiver->upload;
	int rc;

	if (upload->content == DEBUGINFO_ARCHIVE) {
		*ret = DEBUGINFO_SOURCES;
		return source_tar_check(receiver->fd, err);
	}
	if (upload->content == DEBUGINFO_SPLIT) {
		*ret = DEBUGINFO_PACKAGE;
		return elf_inspect_package(receiver->fd, "the upload", err);
	}
	rc = elf_inspect(receiver->fd, "the upload", found, err);
	*ret = found->has_offsets ? DEBUGINFO_BINARY : DEBUGINFO_DEBUG;
	return rc ? rc : check_identity(upload, found, err);
}

static int take_file(struct debuginfo_receiver *receiver, bool *ret_is_same, struct err *err)
{
	struct debuginfo *debuginfo = receiver->debuginfo;
	struct elf_inspection found = { .quality = ELF_QUALITY_NOTHING };
	enum debuginfo_kind kind = DEBUGINFO_SOURCES;
	int rc = check_content(receiver, err);

	if (!rc)
		rc = check_kind(receiver, &found, &kind, err);
	if (!rc && fdatasync(receiver->fd))
		rc = err_set_errno(err, errno, "sync debuginfo");
	if (rc)
		return rc;
	receiver->upload.record.quality = found.quality;
	receiver->upload.record.sections = found.sections;
	memcpy(receiver->upload.record.alternate, found.alternate, sizeof(found.alternate));
	receiver->upload.record.has_offsets = found.has_offsets;
	lock_take(&debuginfo->lock);
	rc = install(receiver, kind, ret_is_same, err);
	lock_give(&debuginfo->lock);
	return rc;
}

/* Files that share DWARF with the new one gain from it, too. */
static void tell_added(struct debuginfo *debuginfo, const char *build_id)
{
	char(*gainers)[ELF_BUILD_ID_TEXT_BYTES] = NULL;
	size_t count = 0, capacity = 0;

	lock_take(&debuginfo->lock);
	for (size_t i = 0; i < debuginfo->count; i++) {
		if (strcmp(debuginfo->entries[i].record.alternate, build_id) != 0)
			continue;
		mem_grow(gainers, count, capacity);
		snprintf(gainers[count++], sizeof(*gainers), "%s", debuginfo->entries[i].build_id);
	}
	lock_give(&debuginfo->lock);
	debuginfo->options.added(debuginfo->options.context, slice_of(build_id));
	for (size_t i = 0; i < count; i++)
		debuginfo->options.added(debuginfo->options.context, slice_of(gainers[i]));
	free(gainers);
}

int debuginfo_receive_end(struct debuginfo_receiver *receiver, uint64_t *ret_bytes, struct err *err)
{
	struct debuginfo *debuginfo = receiver->debuginfo;
	struct upload upload;
	bool is_same = false;
	int rc = take_file(receiver, &is_same, err);

	upload = receiver->upload;
	end_receiver(receiver, rc || is_same ? REFUSED : INSTALLED);
	if (rc) {
		metric_add(&refused_uploads, 1);
		return rc;
	}
	*ret_bytes = upload.record.bytes;
	metric_add(&kept_uploads, 1);
	if (is_same)
		return 0;
	log_info("debuginfo", "received", "build_id=%s bytes=%llu quality=%s name=\"%s\"",
		 upload.build_id, (unsigned long long)upload.record.bytes,
		 elf_quality_name(upload.record.quality), upload.record.name);
	if (debuginfo->options.added && upload.content != DEBUGINFO_ARCHIVE)
		tell_added(debuginfo, upload.build_id);
	return 0;
}

int debuginfo_confirm(struct debuginfo *debuginfo, struct slice build_id, struct slice id,
		      struct err *err)
{
	char normal[ELF_BUILD_ID_TEXT_BYTES];
	bool is_here = false, is_under_way;

	lock_take(&debuginfo->lock);
	is_under_way = upload_of(debuginfo, build_id, id);
	for (int kind = 0; debuginfo_normalise_id(build_id, normal) && kind < DEBUGINFO_KINDS;
	     kind++) {
		const struct entry *entry =
			debuginfo_find(debuginfo, slice_of(normal), (enum debuginfo_kind)kind);

		is_here |= entry && id.len && slice_is(id, entry->record.upload_id);
	}
	lock_give(&debuginfo->lock);
	if (is_under_way)
		return err_set(err, ERR_INVALID, "the upload is incomplete");
	if (!is_here)
		return err_set(err, ERR_NOT_FOUND, "no such upload for this build id");
	return 0;
}

void debuginfo_each_coming(struct debuginfo *debuginfo, debuginfo_coming_f *visit, void *context)
{
	static const char *const states[] = {
		[UPLOAD_ASKED] = "asked",
		[UPLOAD_BEGUN] = "begun",
		[UPLOAD_RECEIVING] = "receiving",
	};

	lock_take(&debuginfo->lock);
	expire(debuginfo);
	for (size_t i = 0; i < debuginfo->uploads_count; i++) {
		const struct upload *upload = &debuginfo->uploads[i];

		visit(context,
		      &(struct debuginfo_coming){ slice_of(upload->build_id), states[upload->state],
						  upload->bytes, upload->received });
	}
	for (size_t i = 0; i < debuginfo->partials_count; i++) {
		const struct partial *partial = &debuginfo->partials[i];

		visit(context, &(struct debuginfo_coming){ slice_of(partial->build_id), "cut off",
							   partial->bytes, partial->received });
	}
	lock_give(&debuginfo->lock);
}
