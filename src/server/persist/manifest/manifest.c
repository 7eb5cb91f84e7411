/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/manifest/manifest.h"

#include <assert.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"
#include "server/persist/disk/byte_reader.h"

#define MAGIC "FIRNMAN"
#define HEADER_BYTES 16u
#define RECORD_HEADER_BYTES 12u
#define EDITS_MAX 512 /* then a new file begins with the whole state */
#define CURRENT_BYTES_MAX 64

static void free_tombstone(struct manifest_tombstone *tombstone)
{
	free((void *)(uintptr_t)tombstone->by);
	free((void *)(uintptr_t)tombstone->selector);
}

void manifest_state_free(struct manifest_state *state)
{
	for (size_t i = 0; i < state->tombstones_count; i++)
		free_tombstone(&state->tombstones[i]);
	free(state->tombstones);
	free(state->parts);
	*state = (struct manifest_state){ 0 };
}

void manifest_state_check(const struct manifest_state *state)
{
	assert(state->next_number && state->log_generation);
	assert(state->parts_count <= state->parts_capacity);
	assert(state->tombstones_count <= MANIFEST_TOMBSTONES_MAX);
	for (size_t i = 0; i < state->parts_count; i++) {
		assert(state->parts[i].number && state->parts[i].number < state->next_number);
		assert(!i || state->parts[i - 1].number < state->parts[i].number);
		assert(state->parts[i].tier < PART_TIERS);
	}
	for (size_t i = 0; i < state->tombstones_count; i++) {
		assert(state->tombstones[i].number < state->next_number);
		assert(!i || state->tombstones[i - 1].number < state->tombstones[i].number);
		assert(state->tombstones[i].by && state->tombstones[i].selector);
	}
}

/* Items. */

void manifest_edit_free(struct manifest_edit *edit)
{
	strbuf_free(&edit->items);
}

static void add_item(struct manifest_edit *edit, enum manifest_item item, uint64_t number)
{
	strbuf_add_byte(&edit->items, (char)item);
	strbuf_add_varint(&edit->items, number);
}

static void add_text(struct manifest_edit *edit, const char *text)
{
	strbuf_add_varint(&edit->items, strlen(text));
	strbuf_add_text(&edit->items, text);
}

static void put_part(struct strbuf *out, const struct part_info *info)
{
	strbuf_add_varint(out, info->number);
	strbuf_add_varint(out, info->bytes);
	strbuf_add_zigzag(out, info->min_start_ns);
	strbuf_add_zigzag(out, info->max_start_ns);
	strbuf_add_varint(out, info->rows);
	strbuf_add_varint(out, info->reports);
	strbuf_add_varint(out, info->series);
	strbuf_add_varint(out, info->stacks);
	strbuf_add_varint(out, info->bytes_samples);
	strbuf_add_varint(out, info->bytes_stacks);
	strbuf_add_varint(out, info->bytes_symbols);
	strbuf_add_varint(out, info->bytes_rollups);
	strbuf_add_varint(out, info->hash.low);
	strbuf_add_varint(out, info->hash.high);
	strbuf_add_varint(out, info->tier);
	strbuf_add_varint(out, info->deleted_to);
	strbuf_add_varint(out, info->bytes_moments);
}

void manifest_edit_add_part(struct manifest_edit *edit, const struct part_info *info)
{
	struct strbuf fields = { 0 };

	assert(info->number && info->tier < PART_TIERS);
	put_part(&fields, info);
	add_item(edit, MANIFEST_PART_ADDED, fields.len);
	strbuf_add_slice(&edit->items, strbuf_slice(&fields));
	strbuf_free(&fields);
}

/* Fields that a later writer adds behind the known ones are skipped. */
static bool take_part(struct byte_reader *item, struct part_info *ret)
{
	uint64_t len = byte_reader_varint(item);
	struct byte_reader in = byte_reader_of(byte_reader_bytes(item, len));
	uint64_t tier;

	*ret = (struct part_info){ 0 };
	ret->number = byte_reader_varint(&in);
	ret->bytes = byte_reader_varint(&in);
	ret->min_start_ns = byte_reader_zigzag(&in);
	ret->max_start_ns = byte_reader_zigzag(&in);
	ret->rows = byte_reader_varint(&in);
	ret->reports = byte_reader_varint(&in);
	ret->series = byte_reader_varint(&in);
	ret->stacks = byte_reader_varint(&in);
	ret->bytes_samples = byte_reader_varint(&in);
	ret->bytes_stacks = byte_reader_varint(&in);
	ret->bytes_symbols = byte_reader_varint(&in);
	ret->bytes_rollups = byte_reader_varint(&in);
	ret->hash.low = byte_reader_varint(&in);
	ret->hash.high = byte_reader_varint(&in);
	tier = byte_reader_varint(&in);
	ret->deleted_to = byte_reader_varint(&in);
	if (byte_reader_left(&in)) /* as of the first that kept times of samples */
		ret->bytes_moments = byte_reader_varint(&in);
	if (item->failed || in.failed || tier >= PART_TIERS || !ret->bytes)
		return false;
	ret->tier = (enum part_tier)tier;
	return true;
}

void manifest_edit_drop_part(struct manifest_edit *edit, uint64_t number)
{
	assert(number);
	add_item(edit, MANIFEST_PART_DROPPED, number);
}

void manifest_edit_damage_part(struct manifest_edit *edit, uint64_t number)
{
	assert(number);
	add_item(edit, MANIFEST_PART_DAMAGED, number);
}

void manifest_edit_deleted_to(struct manifest_edit *edit, uint64_t number, uint64_t tombstone)
{
	assert(number && tombstone);
	add_item(edit, MANIFEST_PART_DELETED_TO, number);
	strbuf_add_varint(&edit->items, tombstone);
}

void manifest_edit_add_tombstone(struct manifest_edit *edit,
				 const struct manifest_tombstone *tombstone)
{
	assert(tombstone->number && tombstone->by && tombstone->selector);
	add_item(edit, MANIFEST_TOMBSTONE_ADDED, tombstone->number);
	strbuf_add_zigzag(&edit->items, tombstone->from_ns);
	strbuf_add_zigzag(&edit->items, tombstone->to_ns);
	strbuf_add_zigzag(&edit->items, tombstone->created_ns);
	add_text(edit, tombstone->by);
	add_text(edit, tombstone->selector);
}

void manifest_edit_tombstone_done(struct manifest_edit *edit, uint64_t number, int64_t done_ns)
{
	assert(number && done_ns);
	add_item(edit, MANIFEST_TOMBSTONE_DONE, number);
	strbuf_add_zigzag(&edit->items, done_ns);
}

void manifest_edit_drop_tombstone(struct manifest_edit *edit, uint64_t number)
{
	assert(number);
	add_item(edit, MANIFEST_TOMBSTONE_DROPPED, number);
}

void manifest_edit_log_from(struct manifest_edit *edit, uint64_t generation,
			    struct wal_position before, uint64_t state_generation)
{
	assert(generation);
	strbuf_add_byte(&edit->items, MANIFEST_LOG_FROM);
	strbuf_add_varint(&edit->items, generation);
	strbuf_add_varint(&edit->items, before.sequence);
	strbuf_add_varint(&edit->items, before.crc);
	strbuf_add_varint(&edit->items, state_generation);
}

/* Applying. */

static bool note_number(struct manifest_state *state, uint64_t number)
{
	if (!number || number > UINT64_MAX / 2)
		return false;
	if (number >= state->next_number)
		state->next_number = number + 1;
	return true;
}

/* The index of the first part whose number is not below. */
static size_t part_place(const struct manifest_state *state, uint64_t number)
{
	return bisect(0, state->parts_count, i, state->parts[i].number < number);
}

static struct part_info *find_part(const struct manifest_state *state, uint64_t number)
{
	size_t place = part_place(state, number);

	return place < state->parts_count && state->parts[place].number == number
		       ? &state->parts[place]
		       : NULL;
}

/* If two parts were being made, the one with the later number may be added first. */
static bool add_part(struct manifest_state *state, const struct part_info *info)
{
	size_t place = part_place(state, info->number);

	assert(place <= state->parts_count);
	if (!note_number(state, info->number) || find_part(state, info->number))
		return false;
	mem_grow(state->parts, state->parts_count, state->parts_capacity);
	memmove(state->parts + place + 1, state->parts + place,
		(state->parts_count - place) * sizeof(*state->parts));
	state->parts[place] = *info;
	state->parts_count++;
	return true;
}

static bool remove_part(struct manifest_state *state, uint64_t number)
{
	struct part_info *part = find_part(state, number);

	if (!part)
		return false;
	state->parts_count--;
	memmove(part, part + 1, (size_t)(state->parts + state->parts_count - part) * sizeof(*part));
	return true;
}

static bool mark_damaged(struct manifest_state *state, uint64_t number)
{
	struct part_info *part = find_part(state, number);

	if (part)
		part->damaged = true;
	return part != NULL;
}

static bool take_deleted_to(struct manifest_state *state, struct byte_reader *in)
{
	struct part_info *part = find_part(state, byte_reader_varint(in));
	uint64_t tombstone = byte_reader_varint(in);

	if (!part || in->failed || tombstone < part->deleted_to)
		return false;
	part->deleted_to = tombstone;
	return true;
}

static struct manifest_tombstone *find_tombstone(const struct manifest_state *state,
						 uint64_t number)
{
	for (size_t i = state->tombstones_count; i--;)
		if (state->tombstones[i].number == number)
			return &state->tombstones[i];
	return NULL;
}

static bool take_text(struct byte_reader *in, size_t bytes_max, struct slice *ret)
{
	uint64_t len = byte_reader_varint(in);

	if (len > bytes_max)
		return false;
	*ret = byte_reader_bytes(in, len);
	return !in->failed && !memchr(ret->data, '\0', ret->len);
}

static bool take_tombstone(struct manifest_state *state, struct byte_reader *in)
{
	struct manifest_tombstone made = { .number = byte_reader_varint(in) };
	const struct manifest_tombstone *last =
		state->tombstones_count ? &state->tombstones[state->tombstones_count - 1] : NULL;
	struct slice by, selector;

	made.from_ns = byte_reader_zigzag(in);
	made.to_ns = byte_reader_zigzag(in);
	made.created_ns = byte_reader_zigzag(in);
	if (!take_text(in, MANIFEST_BY_BYTES_MAX, &by) ||
	    !take_text(in, MANIFEST_SELECTOR_BYTES_MAX, &selector) ||
	    state->tombstones_count == MANIFEST_TOMBSTONES_MAX ||
	    (last && last->number >= made.number) || !note_number(state, made.number))
		return false;
	made.by = mem_strndup(by.data, by.len);
	made.selector = mem_strndup(selector.data, selector.len);
	mem_grow(state->tombstones, state->tombstones_count, state->tombstones_capacity);
	state->tombstones[state->tombstones_count++] = made;
	return true;
}

static bool take_tombstone_done(struct manifest_state *state, struct byte_reader *in)
{
	struct manifest_tombstone *tombstone = find_tombstone(state, byte_reader_varint(in));
	int64_t done_ns = byte_reader_zigzag(in);

	if (!tombstone || in->failed || tombstone->done_ns || !done_ns)
		return false;
	tombstone->done_ns = done_ns;
	return true;
}

static bool remove_tombstone(struct manifest_state *state, uint64_t number)
{
	struct manifest_tombstone *tombstone = find_tombstone(state, number);

	if (!tombstone)
		return false;
	free_tombstone(tombstone);
	state->tombstones_count--;
	memmove(tombstone, tombstone + 1,
		(size_t)(state->tombstones + state->tombstones_count - tombstone) *
			sizeof(*tombstone));
	return true;
}

static bool take_log_from(struct manifest_state *state, struct byte_reader *in)
{
	uint64_t generation = byte_reader_varint(in);

	state->log_from.sequence = byte_reader_varint(in);
	state->log_from.crc = byte_reader_varint32(in);
	state->state_generation = byte_reader_varint(in);
	if (generation < state->log_generation || generation > UINT64_MAX / 2 ||
	    state->log_from.sequence > UINT64_MAX / 2)
		return false;
	state->log_generation = generation;
	return true;
}

static bool apply_item(struct manifest_state *state, struct byte_reader *in)
{
	struct part_info info;

	switch (byte_reader_fixed(in, 1)) {
	case MANIFEST_PART_ADDED:
		return take_part(in, &info) && add_part(state, &info);
	case MANIFEST_PART_DROPPED:
		return remove_part(state, byte_reader_varint(in)) && !in->failed;
	case MANIFEST_PART_DAMAGED:
		return mark_damaged(state, byte_reader_varint(in)) && !in->failed;
	case MANIFEST_LOG_FROM:
		return take_log_from(state, in) && !in->failed;
	case MANIFEST_COUNTER:
		return note_number(state, byte_reader_varint(in)) && !in->failed;
	case MANIFEST_TOMBSTONE_ADDED:
		return take_tombstone(state, in);
	case MANIFEST_TOMBSTONE_DONE:
		return take_tombstone_done(state, in);
	case MANIFEST_TOMBSTONE_DROPPED:
		return remove_tombstone(state, byte_reader_varint(in)) && !in->failed;
	case MANIFEST_PART_DELETED_TO:
		return take_deleted_to(state, in);
	default:
		return false;
	}
}

static bool apply_items(struct manifest_state *state, struct slice items)
{
	struct byte_reader in = byte_reader_of(items);

	while (byte_reader_left(&in))
		if (!apply_item(state, &in))
			return false;
	return true;
}

/* The state as the first record of a new file. */
static void encode_state(const struct manifest_state *state, struct manifest_edit *edit)
{
	manifest_edit_log_from(edit, state->log_generation, state->log_from,
			       state->state_generation);
	for (size_t i = 0; i < state->parts_count; i++) {
		manifest_edit_add_part(edit, &state->parts[i]);
		if (state->parts[i].damaged)
			manifest_edit_damage_part(edit, state->parts[i].number);
	}
	for (size_t i = 0; i < state->tombstones_count; i++) {
		manifest_edit_add_tombstone(edit, &state->tombstones[i]);
		if (state->tombstones[i].done_ns)
			manifest_edit_tombstone_done(edit, state->tombstones[i].number,
						     state->tombstones[i].done_ns);
	}
	if (state->next_number > 1)
		add_item(edit, MANIFEST_COUNTER, state->next_number - 1);
}

/* Files. */

static uint32_t encode_header(struct strbuf *out)
{
	uint32_t crc;

	strbuf_add(out, MAGIC, 8);
	strbuf_add_u32(out, MANIFEST_VERSION);
	crc = hash_crc32c(0, out->data, out->len);
	strbuf_add_u32(out, crc);
	return crc;
}

static uint32_t encode_record(const struct manifest_edit *edit, uint32_t chain_crc,
			      struct strbuf *out)
{
	size_t begin = out->len;
	uint32_t crc;

	assert(edit->items.len <= UINT32_MAX);
	strbuf_add_u32(out, (uint32_t)edit->items.len);
	strbuf_add_u32(out, chain_crc);
	crc = hash_crc32c(0, out->data + begin, out->len - begin);
	crc = hash_crc32c(crc, edit->items.data ? edit->items.data : "", edit->items.len);
	strbuf_add_u32(out, crc);
	strbuf_add_slice(out, strbuf_slice(&edit->items));
	return crc;
}

void manifest_encode(const struct manifest_state *state, struct strbuf *out)
{
	struct manifest_edit whole = { 0 };
	struct strbuf header = { 0 };
	uint32_t crc = encode_header(&header);

	encode_state(state, &whole);
	strbuf_add_slice(out, strbuf_slice(&header));
	encode_record(&whole, crc, out);
	manifest_edit_free(&whole);
	strbuf_free(&header);
}

struct record {
	uint32_t chain_crc, crc;
	struct slice items;
};

/* Takes the record at the reader, if it is whole. */
static bool take_whole_record(struct byte_reader *in, struct record *ret)
{
	struct byte_reader ahead = *in;
	const unsigned char *begin = in->at;
	uint32_t len = byte_reader_u32(&ahead), chain = byte_reader_u32(&ahead);
	uint32_t crc = byte_reader_u32(&ahead);
	struct slice items = byte_reader_bytes(&ahead, len);

	if (ahead.failed || hash_crc32c(hash_crc32c(0, begin, 8), items.data, items.len) != crc)
		return false;
	*in = ahead;
	*ret = (struct record){ chain, crc, items };
	return true;
}

/* The items of the record at the reader, if it is good. */
static bool take_record(struct byte_reader *in, uint32_t *chain_crc, struct slice *ret)
{
	struct byte_reader ahead = *in;
	struct record record;

	if (!take_whole_record(&ahead, &record) || record.chain_crc != *chain_crc)
		return false;
	*in = ahead;
	*chain_crc = record.crc;
	*ret = record.items;
	return true;
}

/* True if an edit is behind what is not good: then it is no torn end, for each edit is synced. */
static bool edit_follows(struct slice rest)
{
	for (size_t at = 0; at < rest.len; at++) {
		size_t len = rest.len - at < MANIFEST_EDIT_BYTES_MAX ? rest.len - at
								     : MANIFEST_EDIT_BYTES_MAX;
		struct byte_reader in = byte_reader_of(slice_from(rest.data + at, len));
		struct record record;

		if (take_whole_record(&in, &record))
			return true;
	}
	return false;
}

static int check_header(struct byte_reader *in, struct slice bytes, uint32_t *ret_crc,
			struct err *err)
{
	bool magic = slice_equal(byte_reader_bytes(in, 8), slice_from(MAGIC, 8));
	uint32_t version = byte_reader_u32(in);

	*ret_crc = byte_reader_u32(in);
	if (in->failed || !magic || hash_crc32c(0, bytes.data, HEADER_BYTES - 4) != *ret_crc)
		return err_set(err, ERR_CORRUPT, "not a manifest, or its header is damaged");
	if (version < MANIFEST_VERSION)
		return err_set(
			err, ERR_UNSUPPORTED,
			"the store has format version %u, and this firn reads %d: choose an empty "
			"--storage-path, and read the old store with the firn that wrote it",
			version, MANIFEST_VERSION);
	if (version != MANIFEST_VERSION)
		return err_set(
			err, ERR_UNSUPPORTED,
			"the store has format version %u, newer than this firn understands (%d)",
			version, MANIFEST_VERSION);
	return 0;
}

int manifest_decode(struct slice bytes, struct manifest_state *ret, struct err *err)
{
	struct byte_reader in = byte_reader_of(bytes);
	struct manifest_state state = { .next_number = 1 };
	struct slice items;
	uint32_t crc, records = 0;
	size_t good_bytes;
	int rc = check_header(&in, bytes, &crc, err);

	while (!rc && take_record(&in, &crc, &items)) {
		records++;
		if (!apply_items(&state, items))
			rc = err_set(err, ERR_CORRUPT, "record %u makes no sense", records);
	}
	good_bytes = bytes.len - byte_reader_left(&in);
	if (!rc && !records)
		rc = err_set(err, ERR_CORRUPT, "the first record is damaged");
	if (!rc && edit_follows(slice_tail(bytes, good_bytes)))
		rc = err_set(err, ERR_CORRUPT,
			     "the record at offset %zu is damaged, and later ones were in force; "
			     "restore the store from a backup",
			     good_bytes);
	if (!rc && !state.log_generation)
		rc = err_set(err, ERR_CORRUPT, "no record says where the log begins");
	if (rc) {
		manifest_state_free(&state);
		return rc;
	}
	manifest_state_check(&state);
	*ret = state;
	return 0;
}

void manifest_init(struct manifest *manifest, const struct vfs *vfs, const char *dir)
{
	*manifest = (struct manifest){ .vfs = vfs, .dir = dir };
	manifest->state.log_generation = 1;
	manifest->state.next_number = 1;
}

void manifest_fini(struct manifest *manifest)
{
	vfs_close(manifest->file);
	manifest->file = NULL;
	manifest_state_free(&manifest->state);
}

/* What CURRENT says. */
static int read_current(const struct vfs *vfs, const char *dir, struct layout_name *ret,
			struct err *err)
{
	struct layout_path path = layout_join(dir, LAYOUT_CURRENT);
	struct strbuf text = { 0 };
	int rc = vfs_read_whole(vfs, path.text, CURRENT_BYTES_MAX, &text, err);

	if (!rc) {
		if (text.len && text.data[text.len - 1] == '\n')
			text.data[--text.len] = '\0';
		*ret = layout_parse(strbuf_text(&text));
		if (ret->kind != LAYOUT_MANIFEST || strlen(strbuf_text(&text)) != text.len)
			rc = err_set(err, ERR_CORRUPT, "\"%s\" does not name a manifest",
				     path.text);
	}
	strbuf_free(&text);
	return rc;
}

/* A process killed before its sync leaves bytes that are only in memory: now they are on disk. */
static int make_durable(const struct vfs *vfs, const char *dir, const char *path, struct err *err)
{
	struct vfs_file *file;
	int rc = vfs_open(vfs, path, VFS_WRITE, &file, err);

	if (rc)
		return rc;
	rc = vfs_sync(file, err);
	if (!rc)
		vfs->drop_cache(file); /* a hint: what is read next comes from the disk */
	vfs_close(file);
	return rc ? rc : vfs_sync_dir(vfs, dir, err);
}

/* What the file says, or ERR_NOT_FOUND. */
static int read_file(struct manifest *manifest, uint64_t number, bool durable, struct err *err)
{
	struct layout_path path = layout_path(manifest->dir, LAYOUT_MANIFEST, number);
	struct strbuf bytes = { 0 };
	int rc = 0;

	if (durable)
		rc = make_durable(manifest->vfs, manifest->dir, path.text, err);
	if (!rc)
		rc = vfs_read_whole(manifest->vfs, path.text, MANIFEST_BYTES_MAX, &bytes, err);
	if (!rc) {
		rc = manifest_decode(strbuf_slice(&bytes), &manifest->state, err);
		if (rc)
			rc = (err_wrap(err, "manifest \"%s\"", path.text), rc);
	}
	strbuf_free(&bytes);
	manifest->number = number;
	return rc;
}

int manifest_load(struct manifest *manifest, const struct vfs *vfs, const char *dir, bool durable,
		  struct err *err)
{
	struct layout_name name = { 0 }, again = { 0 };
	int rc = read_current(vfs, dir, &name, err);

	if (rc)
		return rc;
	manifest_init(manifest, vfs, dir);
	while ((rc = read_file(manifest, name.number, durable, err)) == -ERR_NOT_FOUND) {
		/* A reader beside a running server may find it replaced just now. */
		rc = read_current(vfs, dir, &again, err);
		if (rc || again.number <= name.number)
			return rc ? rc
				  : err_set(err, ERR_CORRUPT,
					    "store \"%s\": manifest %llu is missing although "
					    "CURRENT names it",
					    dir, (unsigned long long)name.number);
		name = again;
	}
	return rc;
}

static int point_current(struct manifest *manifest, uint64_t number, struct err *err)
{
	struct layout_path path = layout_join(manifest->dir, LAYOUT_CURRENT);
	struct layout_name name = { LAYOUT_MANIFEST, number, 0 };
	char text[LAYOUT_NAME_BYTES_MAX], line[LAYOUT_NAME_BYTES_MAX + 1];

	layout_format(&name, text);
	snprintf(line, sizeof(line), "%s\n", text);
	return vfs_replace(manifest->vfs, manifest->dir, path.text, slice_of(line), err);
}

/* True if CURRENT is what it was, although it could not be changed as it should. */
static bool still_current(const struct manifest *manifest)
{
	struct layout_name name = { 0 };
	int rc = read_current(manifest->vfs, manifest->dir, &name, NULL);

	return rc == -ERR_NOT_FOUND ? !manifest->number : !rc && name.number == manifest->number;
}

/* Writes the whole state with the edit applied to a new file and puts it in force. */
static int begin_file(struct manifest *manifest, const struct manifest_edit *edit, struct err *err)
{
	struct layout_path path = layout_path(manifest->dir, LAYOUT_MANIFEST, manifest->number + 1);
	struct layout_path old = layout_path(manifest->dir, LAYOUT_MANIFEST, manifest->number);
	struct manifest_edit whole = { 0 };
	struct strbuf bytes = { 0 };
	uint32_t crc;
	int rc;

	assert(!manifest->file || manifest->edits >= EDITS_MAX);
	encode_state(&manifest->state, &whole);
	strbuf_add_slice(&whole.items, strbuf_slice(&edit->items));
	crc = encode_record(&whole, encode_header(&bytes), &bytes);
	vfs_close(manifest->file);
	manifest->file = NULL;
	rc = vfs_replace(manifest->vfs, manifest->dir, path.text, strbuf_slice(&bytes), err);
	manifest->poisoned = vfs_is_fault(rc);
	if (!rc) {
		rc = point_current(manifest, manifest->number + 1, err);
		manifest->poisoned = vfs_is_fault(rc) || (rc && !still_current(manifest));
	}
	if (!rc) {
		/* In force. If it cannot be opened, the next edit begins another file. */
		if (vfs_open(manifest->vfs, path.text, VFS_WRITE, &manifest->file, NULL))
			manifest->file = NULL;
		if (manifest->number)
			manifest->vfs->unlink(manifest->vfs, old.text); /* else open removes it */
		manifest->number++;
		manifest->offset = bytes.len;
		manifest->chain_crc = crc;
		manifest->edits = 0;
	}
	manifest_edit_free(&whole);
	strbuf_free(&bytes);
	return rc;
}

static int append_edit(struct manifest *manifest, const struct manifest_edit *edit, struct err *err)
{
	struct strbuf bytes = { 0 };
	uint32_t crc = encode_record(edit, manifest->chain_crc, &bytes);
	int rc = vfs_write_all(manifest->file, bytes.data, bytes.len, manifest->offset, err);

	assert(manifest->number && manifest->offset > HEADER_BYTES);
	if (rc == -ERR_NO_SPACE) {
		vfs_close(manifest->file); /* its tail is torn now: the next commit begins a new
					      file */
		manifest->file = NULL;
	} else {
		if (!rc)
			rc = vfs_sync(manifest->file, err);
		manifest->poisoned = rc != 0;
	}
	if (!rc) {
		manifest->offset += bytes.len;
		manifest->chain_crc = crc;
		manifest->edits++;
	}
	strbuf_free(&bytes);
	return rc;
}

uint64_t manifest_take_number(struct manifest *manifest)
{
	if (manifest->taken < manifest->state.next_number)
		manifest->taken = manifest->state.next_number;
	assert(manifest->taken && manifest->taken >= manifest->state.next_number);
	return manifest->taken++;
}

int manifest_commit(struct manifest *manifest, const struct manifest_edit *edit, struct err *err)
{
	bool sensible;
	int rc;

	if (manifest->poisoned)
		return err_set(err, ERR_READ_ONLY, "the manifest is closed after a failed write");
	if (edit->items.len > MANIFEST_EDIT_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "an edit of the manifest has %zu bytes, limit %zu",
			       edit->items.len, MANIFEST_EDIT_BYTES_MAX);
	if (!manifest->file || manifest->edits >= EDITS_MAX)
		rc = begin_file(manifest, edit, err);
	else
		rc = append_edit(manifest, edit, err);
	if (rc)
		return rc;
	sensible = apply_items(&manifest->state, strbuf_slice(&edit->items));
	assert(sensible);
	manifest_state_check(&manifest->state);
	return 0;
}
