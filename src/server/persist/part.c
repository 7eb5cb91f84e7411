/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part.h"

#include <assert.h>

#include "base/hash.h"
#include "server/persist/byte_reader.h"
#include "server/persist/part_arrange.h"

#define MAGIC "FIRNPRT"
#define MAGIC_END "FIRNEND"
#define HEADER_BYTES 24u
#define TRAILER_BYTES 48u
#define TRAILER_CHECKED_BYTES 36u
#define FOOTER_SECTION_BYTES 20u
#define ZSTD_LEVEL 3 /* higher ones gain under 1 %: what is left is entropy */

static void add_footer(const struct tables_layout *layout, uint64_t generation,
		       struct identity hash, struct strbuf *out)
{
	size_t footer = out->len;

	strbuf_add_u32(out, layout->count);
	for (uint32_t i = 0; i < layout->count; i++) {
		strbuf_add_u32(out, layout->sections[i].type);
		strbuf_add_u64(out, HEADER_BYTES + layout->sections[i].offset);
		strbuf_add_u64(out, layout->sections[i].bytes);
	}
	strbuf_add_u64(out, footer);
	strbuf_add_u64(out, generation);
	strbuf_add_u64(out, hash.low);
	strbuf_add_u64(out, hash.high);
	strbuf_add_u32(out, (uint32_t)(out->len + 4 - 36 - footer));
	strbuf_add_u32(out, hash_crc32c(0, out->data + footer, out->len - footer));
	strbuf_add(out, MAGIC_END, 8);
}

static void describe(const struct tables_view *view, const struct tables_layout *layout,
		     struct part_info *info)
{
	info->min_start_ns = INT64_MAX;
	info->max_start_ns = INT64_MIN;
	for (uint32_t i = 0; i < view->reports_count; i++) {
		int64_t start_ns = view->reports[i].start_ns;

		if (start_ns < info->min_start_ns)
			info->min_start_ns = start_ns;
		if (start_ns > info->max_start_ns)
			info->max_start_ns = start_ns;
	}
	info->rows = view->rows_count;
	info->reports = view->reports_count;
	info->series = view->series_count;
	info->stacks = view->nodes_count - 1;
	for (uint32_t i = 0; i < layout->count; i++) {
		const struct tables_section *section = &layout->sections[i];

		if (section->type >= TABLES_SECTION_REPORTS)
			info->bytes_samples += section->bytes;
		else if (section->type == TABLES_SECTION_NODES)
			info->bytes_stacks += section->bytes;
		else
			info->bytes_symbols += section->bytes;
	}
}

void part_encode(const struct tables_view *arranged, uint64_t generation, struct strbuf *out,
		 struct part_info *ret)
{
	struct part_info info = { .number = generation };
	struct tables_layout layout;

	assert(!out->len && arranged->reports_count);
	strbuf_add(out, MAGIC, 8);
	strbuf_add_u32(out, PART_VERSION);
	strbuf_add_u32(out, 0);
	strbuf_add_u64(out, generation);
	tables_encode(arranged, ZSTD_LEVEL, out, &layout);
	describe(arranged, &layout, &info);
	info.hash = identity_of_bytes(out->data, out->len);
	add_footer(&layout, generation, info.hash, out);
	info.bytes = out->len;
	*ret = info;
}

struct trailer {
	uint64_t footer_offset, generation;
	struct identity hash;
	uint32_t footer_bytes, crc;
};

/* Checks the frame around the sections and returns them. */
static int open_frame(struct slice bytes, struct trailer *ret, struct slice *ret_sections,
		      struct err *err)
{
	struct byte_reader head = byte_reader_of(bytes), tail;
	bool magic = slice_equal(byte_reader_bytes(&head, 8), slice_from(MAGIC, 8));
	uint32_t version = byte_reader_u32(&head);
	struct slice footer;

	if (!magic || bytes.len < HEADER_BYTES + TRAILER_BYTES)
		return err_set(err, ERR_CORRUPT, "not a part file, or cut short");
	if (version != PART_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "part has version %u, newer than this firn",
			       version);
	tail = byte_reader_of(slice_tail(bytes, bytes.len - TRAILER_BYTES));
	ret->footer_offset = byte_reader_u64(&tail);
	ret->generation = byte_reader_u64(&tail);
	ret->hash.low = byte_reader_u64(&tail);
	ret->hash.high = byte_reader_u64(&tail);
	ret->footer_bytes = byte_reader_u32(&tail);
	ret->crc = byte_reader_u32(&tail);
	if (!slice_equal(byte_reader_bytes(&tail, 8), slice_from(MAGIC_END, 8)))
		return err_set(err, ERR_CORRUPT, "part has no end: cut short or overwritten");
	if (ret->footer_offset < HEADER_BYTES || ret->footer_offset > bytes.len - TRAILER_BYTES ||
	    bytes.len - TRAILER_BYTES - ret->footer_offset != ret->footer_bytes)
		return err_set(err, ERR_CORRUPT, "footer lies outside the file");
	footer = slice_from(bytes.data + ret->footer_offset,
			    ret->footer_bytes + TRAILER_CHECKED_BYTES);
	if (hash_crc32c(0, footer.data, footer.len) != ret->crc)
		return err_set(err, ERR_CORRUPT, "footer: checksum mismatch");
	*ret_sections = slice_from(bytes.data + HEADER_BYTES, ret->footer_offset - HEADER_BYTES);
	return 0;
}

/* The section table must say what the sections themselves say. */
static int check_table(struct slice bytes, const struct trailer *trailer, struct err *err)
{
	struct byte_reader in = byte_reader_of(
		slice_from(bytes.data + trailer->footer_offset, trailer->footer_bytes));
	uint32_t count = byte_reader_u32(&in);
	uint64_t expected = HEADER_BYTES;

	if (count != byte_reader_left(&in) / FOOTER_SECTION_BYTES ||
	    byte_reader_left(&in) % FOOTER_SECTION_BYTES)
		return err_set(err, ERR_CORRUPT, "footer: has the wrong length");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = byte_reader_u32(&in);
		uint64_t offset = byte_reader_u64(&in), section_bytes = byte_reader_u64(&in);
		struct byte_reader header;

		if (offset != expected || section_bytes < TABLES_SECTION_HEADER_BYTES ||
		    section_bytes > trailer->footer_offset - offset)
			return err_set(err, ERR_CORRUPT, "footer: section %u lies elsewhere", i);
		header = byte_reader_of(slice_from(bytes.data + offset, 4));
		if (byte_reader_u32(&header) != type)
			return err_set(err, ERR_CORRUPT, "footer: section %u has another type", i);
		expected = offset + section_bytes;
	}
	if (expected != trailer->footer_offset)
		return err_set(err, ERR_CORRUPT, "footer: does not name every section");
	return 0;
}

int part_decode(struct slice bytes, uint64_t generation, struct tables_image *ret,
		struct identity *ret_hash, struct err *err)
{
	struct trailer trailer = { 0 };
	struct slice sections = { 0 };
	int rc = open_frame(bytes, &trailer, &sections, err);

	if (rc)
		return rc;
	if (!identity_equal(identity_of_bytes(bytes.data, trailer.footer_offset), trailer.hash))
		return err_set(err, ERR_CORRUPT, "file hash mismatch");
	if (trailer.generation != generation)
		return err_set(err, ERR_CORRUPT, "part has number %llu",
			       (unsigned long long)trailer.generation);
	rc = check_table(bytes, &trailer, err);
	if (!rc)
		rc = tables_decode(sections, PART_RAW_BYTES_MAX, ret, err);
	if (!rc)
		*ret_hash = trailer.hash;
	return rc;
}

int part_write(const struct vfs *vfs, const char *dir, const struct tables_view *view,
	       uint64_t generation, struct part_info *ret, struct err *err)
{
	struct layout_path path = layout_path(dir, LAYOUT_PART, generation);
	struct strbuf bytes = { 0 };
	struct tables arranged;
	struct tables_view ordered;
	struct part_info info;
	int rc;

	tables_init(&arranged);
	part_arrange(view, &arranged);
	ordered = tables_view_of(&arranged);
	part_encode(&ordered, generation, &bytes, &info);
	tables_free(&arranged);
	rc = vfs_replace(vfs, dir, path.text, strbuf_slice(&bytes), err);
	strbuf_free(&bytes);
	if (!rc)
		*ret = info;
	return rc;
}

int part_read(const struct vfs *vfs, const char *dir, const struct part_info *info,
	      struct tables_image *ret, struct err *err)
{
	struct layout_path path = layout_path(dir, LAYOUT_PART, info->number);
	struct strbuf bytes = { 0 };
	struct identity hash;
	int rc = vfs_read_whole(vfs, path.text, PART_FILE_BYTES_MAX, &bytes, err);

	if (!rc) {
		rc = part_decode(strbuf_slice(&bytes), info->number, ret, &hash, err);
		if (!rc && !identity_equal(hash, info->hash)) {
			tables_image_free(ret);
			rc = err_set(err, ERR_CORRUPT, "not the file that the manifest names");
		}
		if (rc)
			rc = (err_wrap(err, "part \"%s\"", path.text), rc);
	}
	strbuf_free(&bytes);
	return rc;
}
