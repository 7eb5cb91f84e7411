/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/manifest.h"

#include <assert.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/byte_reader.h"

#define MAGIC "FIRNMAN"
#define HEADER_BYTES 16u
#define RECORD_HEADER_BYTES 12u
#define EDITS_MAX 512	    /* then a new file begins with the whole state */
#define EDIT_BYTES_MAX 1024 /* far over what one takes */
#define CURRENT_BYTES_MAX 64

void manifest_state_free(struct manifest_state *state)
{
	free(state->parts);
	*state = (struct manifest_state){ 0 };
}

/* Items. */

void manifest_edit_free(struct manifest_edit *edit)
{
	strbuf_free(&edit->items);
}

void manifest_edit_add_part(struct manifest_edit *edit, const struct part_info *info)
{
	strbuf_add_byte(&edit->items, MANIFEST_PART_ADDED);
	strbuf_add_varint(&edit->items, info->generation);
	strbuf_add_varint(&edit->items, info->bytes);
	strbuf_add_zigzag(&edit->items, info->min_start_ns);
	strbuf_add_zigzag(&edit->items, info->max_start_ns);
	strbuf_add_varint(&edit->items, info->rows);
	strbuf_add_varint(&edit->items, info->reports);
	strbuf_add_varint(&edit->items, info->series);
	strbuf_add_varint(&edit->items, info->stacks);
	strbuf_add_varint(&edit->items, info->bytes_samples);
	strbuf_add_varint(&edit->items, info->bytes_stacks);
	strbuf_add_varint(&edit->items, info->bytes_symbols);
	strbuf_add_varint(&edit->items, info->hash.low);
	strbuf_add_varint(&edit->items, info->hash.high);
}

static void take_part(struct byte_reader *in, struct part_info *ret)
{
	ret->generation = byte_reader_varint(in);
	ret->bytes = byte_reader_varint(in);
	ret->min_start_ns = byte_reader_zigzag(in);
	ret->max_start_ns = byte_reader_zigzag(in);
	ret->rows = byte_reader_varint(in);
	ret->reports = byte_reader_varint(in);
	ret->series = byte_reader_varint(in);
	ret->stacks = byte_reader_varint(in);
	ret->bytes_samples = byte_reader_varint(in);
	ret->bytes_stacks = byte_reader_varint(in);
	ret->bytes_symbols = byte_reader_varint(in);
	ret->hash.low = byte_reader_varint(in);
	ret->hash.high = byte_reader_varint(in);
}

void manifest_edit_drop_part(struct manifest_edit *edit, uint64_t generation)
{
	strbuf_add_byte(&edit->items, MANIFEST_PART_DROPPED);
	strbuf_add_varint(&edit->items, generation);
}

void manifest_edit_damage_part(struct manifest_edit *edit, uint64_t generation)
{
	strbuf_add_byte(&edit->items, MANIFEST_PART_DAMAGED);
	strbuf_add_varint(&edit->items, generation);
}

void manifest_edit_log_from(struct manifest_edit *edit, uint64_t generation,
			    struct wal_position before, uint64_t state_generation)
{
	strbuf_add_byte(&edit->items, MANIFEST_LOG_FROM);
	strbuf_add_varint(&edit->items, generation);
	strbuf_add_varint(&edit->items, before.sequence);
	strbuf_add_varint(&edit->items, before.crc);
	strbuf_add_varint(&edit->items, state_generation);
}

/* Applying. */

static bool add_part(struct manifest_state *state, const struct part_info *info)
{
	if (state->parts_count &&
	    state->parts[state->parts_count - 1].generation >= info->generation)
		return false;
	mem_grow(state->parts, state->parts_count, state->parts_capacity);
	state->parts[state->parts_count++] = *info;
	return true;
}

static struct part_info *find_part(const struct manifest_state *state, uint64_t generation)
{
	for (size_t i = 0; i < state->parts_count; i++)
		if (state->parts[i].generation == generation)
			return &state->parts[i];
	return NULL;
}

static bool remove_part(struct manifest_state *state, uint64_t generation)
{
	struct part_info *part = find_part(state, generation);

	if (!part)
		return false;
	state->parts_count--;
	memmove(part, part + 1, (size_t)(state->parts + state->parts_count - part) * sizeof(*part));
	return true;
}

static bool mark_damaged(struct manifest_state *state, uint64_t generation)
{
	struct part_info *part = find_part(state, generation);

	if (part)
		part->damaged = true;
	return part != NULL;
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
	struct part_info info = { 0 };

	switch (byte_reader_fixed(in, 1)) {
	case MANIFEST_PART_ADDED:
		take_part(in, &info);
		return !in->failed && add_part(state, &info);
	case MANIFEST_PART_DROPPED:
		return remove_part(state, byte_reader_varint(in)) && !in->failed;
	case MANIFEST_PART_DAMAGED:
		return mark_damaged(state, byte_reader_varint(in)) && !in->failed;
	case MANIFEST_LOG_FROM:
		return take_log_from(state, in) && !in->failed;
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
			manifest_edit_damage_part(edit, state->parts[i].generation);
	}
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

	strbuf_add_u32(out, (uint32_t)edit->items.len);
	strbuf_add_u32(out, chain_crc);
	crc = hash_crc32c(0, out->data + begin, out->len - begin);
	crc = hash_crc32c(crc, edit->items.data ? edit->items.data : "", edit->items.len);
	strbuf_add_u32(out, crc);
	strbuf_add_slice(out, strbuf_slice(&edit->items));
	return crc;
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

/* Whether an edit is behind what is not good: then it is no torn end, for each edit is synced. */
static bool edit_follows(struct slice rest)
{
	for (size_t at = 0; at < rest.len; at++) {
		size_t len = rest.len - at < EDIT_BYTES_MAX ? rest.len - at : EDIT_BYTES_MAX;
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
	struct manifest_state state = { 0 };
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
	*ret = state;
	return 0;
}

void manifest_init(struct manifest *manifest, const struct vfs *vfs, const char *dir)
{
	*manifest = (struct manifest){ .vfs = vfs, .dir = dir };
	manifest->state.log_generation = 1;
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

/* Writes the whole state with the edit applied to a new file and puts it in force. */
static int begin_file(struct manifest *manifest, const struct manifest_edit *edit, struct err *err)
{
	struct layout_path path = layout_path(manifest->dir, LAYOUT_MANIFEST, manifest->number + 1);
	struct layout_path old = layout_path(manifest->dir, LAYOUT_MANIFEST, manifest->number);
	struct manifest_edit whole = { 0 };
	struct strbuf bytes = { 0 };
	uint32_t crc;
	int rc;

	encode_state(&manifest->state, &whole);
	strbuf_add_slice(&whole.items, strbuf_slice(&edit->items));
	crc = encode_record(&whole, encode_header(&bytes), &bytes);
	vfs_close(manifest->file);
	manifest->file = NULL;
	rc = vfs_replace(manifest->vfs, manifest->dir, path.text, strbuf_slice(&bytes), err);
	if (!rc)
		rc = point_current(manifest, manifest->number + 1, err);
	if (!rc)
		rc = vfs_open(manifest->vfs, path.text, VFS_WRITE, &manifest->file, err);
	if (!rc) {
		if (manifest->number)
			manifest->vfs->unlink(manifest->vfs, old.text); /* else open removes it */
		manifest->number++;
		manifest->offset = bytes.len;
		manifest->chain_crc = crc;
		manifest->edits = 0;
	} else {
		manifest->poisoned = vfs_is_fault(rc);
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

int manifest_commit(struct manifest *manifest, const struct manifest_edit *edit, struct err *err)
{
	bool sensible;
	int rc;

	if (manifest->poisoned)
		return err_set(err, ERR_READ_ONLY, "the manifest is closed after a failed write");
	if (!manifest->file || manifest->edits >= EDITS_MAX)
		rc = begin_file(manifest, edit, err);
	else
		rc = append_edit(manifest, edit, err);
	if (rc)
		return rc;
	sensible = apply_items(&manifest->state, strbuf_slice(&edit->items));
	assert(sensible);
	return 0;
}
