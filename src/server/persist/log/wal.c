/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariant: what was acknowledged can be told from what was not, by the file alone. Three means:
 *
 *   - each record has the CRC of the one before and a sequence, so a record that belongs
 *     elsewhere never passes for the next;
 *   - each record says up to which sequence all was synced, so a later record is proof that an
 *     earlier one which is broken had been durable, and is damage;
 *   - a segment is full of zeros before it is begun, so a write that was cut off leaves sectors of
 *     zeros, and the harm of a last record that was whole is told from a torn one.
 *
 * The next segment is made ahead by another thread: allocating and filling it with zeros changes
 * the file system's own data, which a sync of a record would wait for.
 */
#include "server/persist/log/wal.h"

#include <assert.h>
#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"

#define SEGMENT_MAGIC "FIRNWAL"
#define RECORD_MAGIC 0x524e5246u	   /* "FRNR" */
#define AHEAD_STEP_BYTES ((size_t)1 << 20) /* synced each: long writes hold up the log's */
#define SECTOR_BYTES 512u		   /* what a disk writes wholly or not at all */
#define SEARCH_CANDIDATES_MAX 4096 /* records looked at behind a bad one: bounds hostile files */

static size_t padded(size_t len)
{
	return (len + 7) & ~(size_t)7;
}

void wal_init(struct wal *wal, const struct vfs *vfs, const char *dir, uint64_t segment_bytes,
	      uint64_t generation, uint64_t segment_next, struct wal_position last)
{
	*wal = (struct wal){
		.vfs = vfs,
		.dir = dir,
		.segment_bytes = segment_bytes,
		.generation = generation,
		.segment_next = segment_next,
		.last = last,
	};
}

void wal_check(const struct wal *wal)
{
	assert(!(wal->ahead && wal->ahead_claimed));
	if (!wal->file)
		return;
	assert(wal->segment_next);
	assert(wal->offset >= WAL_SEGMENT_HEADER_BYTES && wal->offset <= wal->file_bytes);
}

static void close_segment(struct wal *wal)
{
	vfs_close(wal->file); /* every acknowledged byte was synced */
	wal->file = NULL;
}

/* Best effort: what stays, the next open removes. */
static void remove_ahead(const struct wal *wal, struct layout_name name, struct vfs_file *file)
{
	struct layout_path path = layout_path_of(wal->dir, name);

	vfs_close(file);
	wal->vfs->unlink(wal->vfs, path.text);
}

static void drop_ahead(struct wal *wal)
{
	if (wal->ahead)
		remove_ahead(wal, wal->ahead_name, wal->ahead);
	wal->ahead = NULL;
}

void wal_fini(struct wal *wal)
{
	close_segment(wal);
	drop_ahead(wal);
}

void wal_begin_generation(struct wal *wal, uint64_t generation)
{
	bool is_claimed =
		(wal->ahead || wal->ahead_claimed) && wal->ahead_name.number == generation;

	assert(generation > wal->generation);
	close_segment(wal);
	if (!is_claimed)
		drop_ahead(wal);
	wal->generation = generation;
	wal->segment_next = is_claimed ? wal->ahead_name.segment + 1 : 0;
	wal->generation_bytes = 0;
	wal->ahead_failed = false;
}

bool wal_claim_ahead(struct wal *wal, struct layout_name *ret)
{
	wal_check(wal);
	if (wal->poisoned || wal->ahead || wal->ahead_claimed || wal->ahead_failed)
		return false;
	wal->ahead_name = (struct layout_name){ LAYOUT_WAL, wal->generation + 1, 0 };
	if (!wal->file)
		wal->ahead_name =
			(struct layout_name){ LAYOUT_WAL, wal->generation, wal->segment_next++ };
	wal->ahead_claimed = true;
	*ret = wal->ahead_name;
	return true;
}

static int reserve_segment(const struct wal *wal, struct vfs_file *file, uint64_t bytes,
			   struct err *err)
{
	int rc = wal->vfs->allocate(file, bytes);

	return rc ? err_set_errno(err, -rc, "reserve %llu bytes for \"%s\"",
				  (unsigned long long)bytes, file->path)
		  : 0;
}

static int fill_with_zeros(struct vfs_file *file, uint64_t bytes, struct err *err)
{
	char *zeros = mem_calloc(AHEAD_STEP_BYTES, 1);
	int rc = 0;

	for (uint64_t at = 0; !rc && at < bytes; at += AHEAD_STEP_BYTES) {
		size_t len = bytes - at < AHEAD_STEP_BYTES ? bytes - at : AHEAD_STEP_BYTES;

		rc = vfs_write_all(file, zeros, len, at, err);
		if (!rc)
			rc = vfs_sync(file, err);
	}
	free(zeros);
	return rc;
}

int wal_make_ahead(const struct wal *wal, struct layout_name name, struct vfs_file **ret,
		   struct err *err)
{
	struct layout_path path = layout_path_of(wal->dir, name);
	struct vfs_file *file;
	int rc = vfs_open(wal->vfs, path.text, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &file, err);

	if (rc)
		return rc;
	rc = reserve_segment(wal, file, wal->segment_bytes, err);
	if (!rc)
		rc = fill_with_zeros(file, wal->segment_bytes, err);
	if (!rc)
		rc = vfs_sync_dir(wal->vfs, wal->dir, err);
	if (rc)
		remove_ahead(wal, name, file);
	else
		*ret = file;
	return rc;
}

/* Segments are read in the order of their numbers: none with a later one may have been begun. */
static bool comes_next(const struct wal *wal, const struct layout_name *name)
{
	return name->number == wal->generation && name->segment + 1 == wal->segment_next;
}

void wal_give_ahead(struct wal *wal, struct layout_name name, struct vfs_file *file)
{
	assert(wal->ahead_claimed && !wal->ahead);
	wal->ahead_claimed = false;
	wal->ahead_failed = !file;
	if (!file)
		return;
	if (comes_next(wal, &name) || name.number == wal->generation + 1)
		wal->ahead = file;
	else
		remove_ahead(wal, name, file);
}

static void encode_segment_header(const struct wal *wal, uint64_t number, struct strbuf *out)
{
	strbuf_add(out, SEGMENT_MAGIC, 8);
	strbuf_add_u32(out, WAL_VERSION);
	strbuf_add_u32(out, 0);
	strbuf_add_u64(out, wal->generation);
	strbuf_add_u64(out, number);
	strbuf_add_u64(out, wal->last.sequence + 1);
	strbuf_add_u32(out, wal->last.crc);
	strbuf_add_u32(out, hash_crc32c(0, out->data, out->len));
	assert(out->len == WAL_SEGMENT_HEADER_BYTES);
}

/* Header and name durable before the first record is: recovery then knows where it belongs. */
static int write_segment_header(struct wal *wal, uint64_t number, bool has_name, struct err *err)
{
	struct strbuf header = { 0 };
	int rc;

	assert(wal->file && number < wal->segment_next);
	encode_segment_header(wal, number, &header);
	rc = vfs_write_all(wal->file, header.data, header.len, 0, err);
	if (!rc)
		rc = vfs_sync(wal->file, err);
	if (!rc && !has_name)
		rc = vfs_sync_dir(wal->vfs, wal->dir, err);
	strbuf_free(&header);
	return rc;
}

static int make_segment(struct wal *wal, uint64_t bytes, struct err *err)
{
	struct layout_name name = { LAYOUT_WAL, wal->generation, wal->segment_next };
	struct layout_path path = layout_path_of(wal->dir, name);
	int rc = vfs_open(wal->vfs, path.text, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &wal->file,
			  err);

	if (rc)
		return rc;
	wal->segment_next++;
	rc = reserve_segment(wal, wal->file, bytes, err);
	if (!rc)
		return 0;
	close_segment(wal);
	wal->vfs->unlink(wal->vfs, path.text); /* best effort: an empty segment is harmless */
	return rc;
}

static int begin_segment(struct wal *wal, uint64_t records_bytes, struct err *err)
{
	uint64_t need = WAL_SEGMENT_HEADER_BYTES + records_bytes;
	uint64_t bytes = need > wal->segment_bytes ? need : wal->segment_bytes;
	bool is_ahead =
		wal->ahead && need <= wal->segment_bytes && comes_next(wal, &wal->ahead_name);
	int rc = 0;

	close_segment(wal);
	if (is_ahead) {
		wal->file = wal->ahead;
		wal->ahead = NULL;
	} else {
		if (wal->ahead && wal->ahead_name.number == wal->generation)
			drop_ahead(wal);
		rc = make_segment(wal, bytes, err);
	}
	if (rc)
		return rc;
	rc = write_segment_header(wal, wal->segment_next - 1, is_ahead, err);
	wal->poisoned = rc != 0;
	wal->offset = WAL_SEGMENT_HEADER_BYTES;
	wal->file_bytes = bytes;
	return rc;
}

static struct wal_position encode_record(struct strbuf *out, struct wal_position after,
					 uint64_t durable, struct slice payload)
{
	static const char zeros[8];
	size_t begin = out->len;
	uint32_t crc;

	strbuf_add_u32(out, RECORD_MAGIC);
	strbuf_add_u32(out, (uint32_t)payload.len);
	strbuf_add_u64(out, after.sequence + 1);
	strbuf_add_u64(out, durable);
	strbuf_add_u32(out, after.crc);
	strbuf_add_u32(out, WAL_RECORD_BATCH);
	crc = hash_crc32c(0, out->data + begin, out->len - begin);
	strbuf_add_u32(out, crc);
	crc = hash_crc32c(crc, payload.data, payload.len);
	strbuf_add_u32(out, crc);
	strbuf_add_slice(out, payload);
	strbuf_add(out, zeros, padded(payload.len) - payload.len);
	assert((out->len - begin) % 8 == 0);
	return (struct wal_position){ after.sequence + 1, crc };
}

int wal_append(struct wal *wal, const struct slice *payloads, size_t count, struct err *err)
{
	struct wal_position last = wal->last;
	struct strbuf records = { 0 };
	int rc = 0;

	assert(count);
	if (wal->poisoned)
		return err_set(err, ERR_READ_ONLY, "the log is closed after a failed write");
	for (size_t i = 0; i < count; i++) {
		assert(payloads[i].len && payloads[i].len <= WAL_PAYLOAD_BYTES_MAX);
		last = encode_record(&records, last, wal->last.sequence, payloads[i]);
	}
	if (!wal->file || records.len > wal->file_bytes - wal->offset)
		rc = begin_segment(wal, records.len, err);
	if (!rc) {
		assert(records.len <= wal->file_bytes - wal->offset);
		rc = vfs_write_all(wal->file, records.data, records.len, wal->offset, err);
		if (!rc)
			rc = vfs_sync(wal->file, err);
		wal->poisoned = rc != 0;
	}
	if (!rc) {
		wal->last = last;
		wal->offset += records.len;
		wal->generation_bytes += records.len;
		wal_check(wal);
	}
	strbuf_free(&records);
	return rc;
}

/* Reading. */

struct header {
	uint32_t payload_bytes, prev_crc, type, header_crc, crc;
	uint64_t sequence, durable;
};

enum found { FOUND_NOTHING, FOUND_ZEROS, FOUND_RECORD };

/* Whether a record that is whole and unharmed begins at `offset`. */
static enum found record_at(struct slice bytes, size_t offset, struct header *ret,
			    struct slice *ret_payload)
{
	struct byte_reader in = byte_reader_of(slice_tail(bytes, offset));
	const unsigned char *begin = in.at;
	uint32_t magic = byte_reader_u32(&in);

	ret->payload_bytes = byte_reader_u32(&in);
	ret->sequence = byte_reader_u64(&in);
	ret->durable = byte_reader_u64(&in);
	ret->prev_crc = byte_reader_u32(&in);
	ret->type = byte_reader_u32(&in);
	ret->header_crc = byte_reader_u32(&in);
	ret->crc = byte_reader_u32(&in);
	if (in.failed)
		return FOUND_ZEROS; /* no room for another record */
	if (magic != RECORD_MAGIC)
		return magic || ret->payload_bytes || ret->sequence ? FOUND_NOTHING : FOUND_ZEROS;
	if (hash_crc32c(0, begin, 32) != ret->header_crc)
		return FOUND_NOTHING;
	*ret_payload = byte_reader_bytes(&in, ret->payload_bytes);
	if (in.failed ||
	    hash_crc32c(ret->header_crc, ret_payload->data, ret_payload->len) != ret->crc)
		return FOUND_NOTHING;
	return FOUND_RECORD;
}

static void damage(struct wal_chain *chain, const struct layout_name *name, size_t offset,
		   const char *what)
{
	char text[LAYOUT_NAME_BYTES_MAX];

	chain->damages++;
	if (!chain->report)
		return;
	layout_format(name, text);
	strbuf_addf(chain->report, "%s: offset %zu: %s (after sequence %llu)\n", text, offset, what,
		    (unsigned long long)chain->last.sequence);
}

static void torn_tail(struct wal_chain *chain, const struct layout_name *name, size_t offset)
{
	char text[LAYOUT_NAME_BYTES_MAX];

	chain->torn++;
	if (!chain->report)
		return;
	layout_format(name, text);
	strbuf_addf(chain->report,
		    "note: %s: offset %zu: ends in a write that was cut off before it was "
		    "acknowledged\n",
		    text, offset);
}

/* Sequences `first` up to one before `next` are gone. */
static void count_lost(struct wal_chain *chain, uint64_t next)
{
	chain->lost += next - chain->last.sequence - 1;
}

enum header_state { HEADER_GOOD, HEADER_UNUSABLE, HEADER_BROKEN };

static bool header_is_whole(struct slice bytes)
{
	struct byte_reader in = byte_reader_of(slice_tail(bytes, WAL_SEGMENT_HEADER_BYTES - 4));
	uint32_t crc = byte_reader_u32(&in);

	return !in.failed && slice_starts_with(bytes, slice_from(SEGMENT_MAGIC, 8)) &&
	       hash_crc32c(0, bytes.data, WAL_SEGMENT_HEADER_BYTES - 4) == crc;
}

static enum header_state take_segment_header(struct wal_chain *chain,
					     const struct layout_name *name, struct slice bytes)
{
	struct byte_reader in = byte_reader_of(slice_tail(bytes, 8));
	uint32_t version = byte_reader_u32(&in), zero = byte_reader_u32(&in);
	uint64_t generation = byte_reader_u64(&in), number = byte_reader_u64(&in);
	uint64_t sequence = byte_reader_u64(&in);
	uint32_t prev_crc = byte_reader_u32(&in);

	if (!header_is_whole(bytes))
		return HEADER_BROKEN;
	if (version != WAL_VERSION || zero || generation != name->number ||
	    number != name->segment) {
		damage(chain, name, 8, "header is of another version or file");
		return HEADER_UNUSABLE;
	}
	if (sequence <= chain->last.sequence || !sequence) {
		damage(chain, name, 32, "segment repeats sequences that came before it");
		return HEADER_UNUSABLE;
	}
	if (sequence != chain->last.sequence + 1) {
		damage(chain, name, 32, "records before this segment are missing");
		count_lost(chain, sequence);
	} else if (prev_crc != chain->last.crc) {
		damage(chain, name, 40, "segment does not continue the records before it");
	}
	chain->last = (struct wal_position){ sequence - 1, prev_crc };
	return HEADER_GOOD;
}

/*
 * Looks from a bad record on for one that proves the missing sequence to have been durable.
 * Returns its offset, or 0.
 */
static size_t find_proof(const struct wal_chain *chain, struct slice bytes, size_t offset)
{
	uint64_t missing = chain->last.sequence + 1;
	size_t candidates = 0;

	for (size_t at = offset; at + WAL_RECORD_HEADER_BYTES <= bytes.len; at += 8) {
		struct header header;
		struct slice payload;

		if (memcmp(bytes.data + at, "FRNR", 4))
			continue;
		if (++candidates > SEARCH_CANDIDATES_MAX)
			break;
		if (record_at(bytes, at, &header, &payload) == FOUND_RECORD &&
		    header.sequence > missing && header.durable >= missing)
			return at;
	}
	return 0;
}

/*
 * True if every sector that the bytes lie in was written: a write that was cut off leaves zeros in
 * some, for a segment is full of zeros before it is begun.
 */
static bool is_written(struct slice bytes, size_t from, size_t to)
{
	while (from < to) {
		size_t end = from / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES, at = from;

		if (end > to)
			end = to;
		while (at < end && !bytes.data[at])
			at++;
		if (at == end)
			return false;
		from = end;
	}
	return true;
}

/*
 * Nothing behind a bad record says whether it was acknowledged. When all of it was written it was
 * not cut off, so it was harmed later. Where the header is, its payload need not be looked at: a
 * bad one that is there as a whole was harmed.
 */
static bool was_harmed(struct slice bytes, size_t offset, const struct header *header)
{
	size_t payload = offset + WAL_RECORD_HEADER_BYTES;
	bool is_header_good = hash_crc32c(0, bytes.data + offset, 32) == header->header_crc;

	if (!is_written(bytes, offset, payload))
		return false;
	if (!is_header_good)
		return true;
	return header->payload_bytes <= bytes.len - payload &&
	       is_written(bytes, payload, payload + header->payload_bytes);
}

/* The last thing in a segment that is no good record. */
static void take_tail(struct wal_chain *chain, const struct layout_name *name, struct slice bytes,
		      size_t offset, const struct header *header, enum found found)
{
	if (found == FOUND_ZEROS)
		return;
	if (found == FOUND_NOTHING && was_harmed(bytes, offset, header)) {
		damage(chain, name, offset,
		       "the last record is damaged; it was written as a whole");
		chain->lost++;
	} else {
		torn_tail(chain, name, offset);
	}
}

static void give_record(struct wal_chain *chain, const struct layout_name *name, size_t offset,
			const struct header *header, struct slice payload, wal_record_f *record,
			void *context)
{
	struct wal_record found = { header->sequence, header->type, payload };
	struct err err = { 0 };

	chain->last = (struct wal_position){ header->sequence, header->crc };
	chain->records++;
	if (record && record(context, &found, &err))
		damage(chain, name, offset, err.message);
}

static bool continues(const struct wal_chain *chain, const struct header *header)
{
	return header->sequence == chain->last.sequence + 1 && header->prev_crc == chain->last.crc;
}

/* True if records of the chain follow an incomplete header. */
static bool records_follow(const struct wal_chain *chain, struct slice bytes)
{
	struct header header;
	struct slice payload;

	return bytes.len > WAL_SEGMENT_HEADER_BYTES &&
	       ((record_at(bytes, WAL_SEGMENT_HEADER_BYTES, &header, &payload) == FOUND_RECORD &&
		 continues(chain, &header)) ||
		find_proof(chain, bytes, WAL_SEGMENT_HEADER_BYTES));
}

bool wal_is_begun(const struct wal_chain *chain, struct slice bytes)
{
	return header_is_whole(bytes) || records_follow(chain, bytes);
}

/* Nothing was written there yet. */
static bool is_blank(struct slice bytes)
{
	static const char zeros[WAL_SEGMENT_HEADER_BYTES];
	size_t len = bytes.len < sizeof(zeros) ? bytes.len : sizeof(zeros);

	return !len || !memcmp(bytes.data, zeros, len);
}

/*
 * A header that was never finished has no record behind it, for it is synced before them; or else
 * it was lost, and the records may still be read, or the next header's sequence will tell.
 */
static bool header_was_lost(struct wal_chain *chain, const struct layout_name *name,
			    struct slice bytes)
{
	if (records_follow(chain, bytes)) {
		damage(chain, name, 0, "header is damaged, and records follow it");
		return true;
	}
	if (!is_blank(bytes))
		torn_tail(chain, name, 0);
	return false;
}

bool wal_read_segment(struct wal_chain *chain, const struct layout_name *name, struct slice bytes,
		      wal_record_f *record, void *context)
{
	uint64_t damages = chain->damages;
	enum header_state state = take_segment_header(chain, name, bytes);
	size_t offset = WAL_SEGMENT_HEADER_BYTES;

	if (state == HEADER_UNUSABLE ||
	    (state == HEADER_BROKEN && !header_was_lost(chain, name, bytes)))
		return chain->damages == damages;
	for (;;) {
		struct header header;
		struct slice payload;
		enum found found = record_at(bytes, offset, &header, &payload);
		size_t proof;

		if (found == FOUND_RECORD && continues(chain, &header)) {
			give_record(chain, name, offset, &header, payload, record, context);
			offset += WAL_RECORD_HEADER_BYTES + padded(payload.len);
			continue;
		}
		proof = find_proof(chain, bytes, offset);
		if (!proof) {
			take_tail(chain, name, bytes, offset, &header, found);
			break;
		}
		damage(chain, name, offset, "record is damaged, and later ones were acknowledged");
		record_at(bytes, proof, &header, &payload);
		count_lost(chain, header.sequence);
		chain->last = (struct wal_position){ header.sequence - 1, header.prev_crc };
		offset = proof;
	}
	return chain->damages == damages;
}
