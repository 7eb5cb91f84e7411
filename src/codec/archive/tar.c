/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/archive/tar.h"

#include <inttypes.h>
#include <stdio.h>

#define EXTENDED_BYTES_MAX (64u * 1024)
#define SIZE_MAX_BYTES ((uint64_t)1 << 50)

/* Fields of a header: offset and length (POSIX.1-2017, pax, "ustar Interchange Format"). */
enum {
	NAME_AT = 0,
	NAME_LEN = 100,
	MODE_AT = 100,
	UID_AT = 108,
	GID_AT = 116,
	SIZE_AT = 124,
	SIZE_LEN = 12,
	TIME_AT = 136,
	CHECKSUM_AT = 148,
	CHECKSUM_LEN = 8,
	TYPE_AT = 156,
	MAGIC_AT = 257,
	PREFIX_AT = 345,
	PREFIX_LEN = 155,
};

void tar_begin(struct tar_reader *reader, const struct tar_sink *sink)
{
	*reader = (struct tar_reader){ .sink = sink, .phase = TAR_HEADER };
}

void tar_free(struct tar_reader *reader)
{
	strbuf_free(&reader->extended);
	strbuf_free(&reader->next_name);
}

static int wrong(const struct tar_reader *reader, const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID, "tar archive: %s at offset %" PRIu64, what,
		       reader->offset);
}

/* Octal digits between blanks, or base 256 when the first bit is set (GNU). */
static bool parse_number(const char *field, size_t len, uint64_t *ret)
{
	const unsigned char *bytes = (const unsigned char *)field;
	uint64_t value = 0;
	size_t i = 0;

	if (bytes[0] & 0x80) {
		if (bytes[0] != 0x80)
			return false; /* negative */
		for (i = 1; i < len; i++) {
			if (value >> 56)
				return false;
			value = value << 8 | bytes[i];
		}
		*ret = value;
		return true;
	}
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		value = value << 3 | (uint64_t)(field[i] - '0'); /* 12 digits at most */
	for (; i < len; i++)
		if (field[i] && field[i] != ' ')
			return false;
	*ret = value;
	return true;
}

static uint64_t checksum_of(const char *block)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
		sum += i >= CHECKSUM_AT && i < CHECKSUM_AT + CHECKSUM_LEN ? ' '
									  : (unsigned char)block[i];
	return sum;
}

static bool is_zero(const char *block)
{
	for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
		if (block[i])
			return false;
	return true;
}

/* "LENGTH key=value\n" lines of a pax header. */
static int read_pax(struct tar_reader *reader, struct err *err)
{
	struct slice rest = strbuf_slice(&reader->extended);

	while (rest.len) {
		struct slice after, key, value, number = slice_cut(rest, ' ', &after);
		uint64_t len;

		if (!slice_parse_u64(number, &len) || len <= number.len + 1 || len > rest.len ||
		    rest.data[len - 1] != '\n')
			return wrong(reader, "a pax header that is none", err);
		key = slice_cut(slice_from(after.data, (size_t)len - number.len - 2), '=', &value);
		if (slice_is(key, "path") && value.len <= TAR_NAME_BYTES_MAX) {
			strbuf_clear(&reader->next_name);
			strbuf_add_slice(&reader->next_name, value);
		} else if (slice_is(key, "size")) {
			if (!slice_parse_u64(value, &reader->next_size))
				return wrong(reader, "a size that is not a number", err);
			reader->has_next_size = true;
		}
		rest = slice_tail(rest, (size_t)len);
	}
	return 0;
}

static int end_extended(struct tar_reader *reader, struct err *err)
{
	struct slice name = strbuf_slice(&reader->extended);

	if (reader->type == 'x')
		return read_pax(reader, err);
	if (reader->type == 'L') {
		name.len = strnlen(strbuf_text(&reader->extended), name.len);
		if (name.len > TAR_NAME_BYTES_MAX)
			return wrong(reader, "a name that is too long", err);
		strbuf_clear(&reader->next_name);
		strbuf_add_slice(&reader->next_name, name);
	}
	return 0;
}

static int begin_entry(struct tar_reader *reader, uint64_t bytes, struct err *err)
{
	const char *block = reader->block;
	struct tar_entry entry = { .bytes = reader->has_next_size ? reader->next_size : bytes,
				   .is_file = !reader->type || reader->type == '0' ||
					      reader->type == '7' };
	char name[PREFIX_LEN + NAME_LEN + 2];
	int rc;

	if (entry.bytes > SIZE_MAX_BYTES)
		return wrong(reader, "an impossible size", err);
	if (++reader->entries > TAR_ENTRIES_MAX)
		return err_set(err, ERR_LIMIT, "tar archive: more than %u entries",
			       TAR_ENTRIES_MAX);
	entry.name = strbuf_slice(&reader->next_name);
	if (!entry.name.len) {
		bool has_prefix = !memcmp(block + MAGIC_AT, "ustar\0", 6) && block[PREFIX_AT];

		snprintf(name, sizeof(name), "%.*s%s%.*s", has_prefix ? PREFIX_LEN : 0,
			 block + PREFIX_AT, has_prefix ? "/" : "", NAME_LEN, block + NAME_AT);
		entry.name = slice_of(name);
	}
	reader->is_wanted = false;
	rc = reader->sink->entry(reader->sink->context, &entry, &reader->is_wanted, err);
	strbuf_clear(&reader->next_name);
	reader->has_next_size = false;
	reader->left = entry.bytes;
	reader->phase = TAR_CONTENT;
	if (!rc && reader->is_wanted && !entry.bytes)
		rc = reader->sink->content(reader->sink->context, (struct slice){ 0 }, 0, err);
	return rc;
}

static int read_header(struct tar_reader *reader, struct err *err)
{
	const char *block = reader->block;
	uint64_t checksum, bytes;
	int rc = 0;

	if (is_zero(block)) {
		reader->phase = TAR_ENDED; /* some write one block, most two, or a whole record */
		return 0;
	}
	if (!parse_number(block + CHECKSUM_AT, CHECKSUM_LEN, &checksum) ||
	    checksum != checksum_of(block))
		return wrong(reader, "no header", err);
	if (!parse_number(block + SIZE_AT, SIZE_LEN, &bytes))
		return wrong(reader, "a size that is not a number", err);
	reader->type = block[TYPE_AT];
	if (strchr("xgLK", reader->type) && reader->type) {
		if (bytes > EXTENDED_BYTES_MAX)
			return wrong(reader, "an extended header that is too large", err);
		strbuf_clear(&reader->extended);
		reader->left = bytes;
		reader->phase = TAR_EXTENDED;
	} else {
		/* Links and folders may state a size without having content. */
		if (reader->type >= '1' && reader->type <= '6')
			bytes = reader->next_size = 0;
		rc = begin_entry(reader, bytes, err);
	}
	reader->padding = (uint32_t)(-reader->left % TAR_BLOCK_BYTES);
	return rc;
}

/* A piece of what the phase reads; returns how much of it was taken. */
static int take(struct tar_reader *reader, struct slice *bytes, struct err *err)
{
	size_t len = bytes->len < reader->left ? bytes->len : (size_t)reader->left;
	struct slice piece = slice_from(bytes->data, len);
	int rc = 0;

	reader->left -= len;
	if (reader->phase == TAR_EXTENDED)
		strbuf_add_slice(&reader->extended, piece);
	else if (reader->phase == TAR_CONTENT && reader->is_wanted && len)
		rc = reader->sink->content(reader->sink->context, piece, reader->left, err);
	*bytes = slice_tail(*bytes, len);
	reader->offset += len;
	if (rc || reader->left)
		return rc;
	if (reader->phase == TAR_EXTENDED)
		rc = end_extended(reader, err);
	reader->left = reader->phase == TAR_PADDING ? 0 : reader->padding;
	reader->phase = reader->left ? TAR_PADDING : TAR_HEADER;
	return rc;
}

int tar_add(struct tar_reader *reader, struct slice bytes, struct err *err)
{
	int rc = 0;

	while (!rc && bytes.len && reader->phase != TAR_ENDED) {
		size_t len = TAR_BLOCK_BYTES - reader->block_len;

		if (reader->phase != TAR_HEADER) {
			rc = take(reader, &bytes, err);
			continue;
		}
		if (len > bytes.len)
			len = bytes.len;
		memcpy(reader->block + reader->block_len, bytes.data, len);
		reader->block_len += len;
		bytes = slice_tail(bytes, len);
		if (reader->block_len < TAR_BLOCK_BYTES)
			break;
		rc = read_header(reader, err);
		reader->offset += TAR_BLOCK_BYTES;
		reader->block_len = 0;
		if (!rc && reader->phase != TAR_ENDED && !reader->left)
			rc = take(reader, &(struct slice){ 0 }, err);
	}
	return rc;
}

int tar_end(struct tar_reader *reader, struct err *err)
{
	if (reader->phase != TAR_ENDED && (reader->phase != TAR_HEADER || reader->block_len))
		return wrong(reader, "the end comes too early,", err);
	if (!reader->entries)
		return err_set(err, ERR_INVALID, "tar archive: no entries");
	return 0;
}

static void put_block(struct strbuf *out, const char *name, size_t name_len, uint64_t bytes,
		      char type)
{
	char block[TAR_BLOCK_BYTES] = { 0 };

	memcpy(block + NAME_AT, name, name_len < NAME_LEN ? name_len : NAME_LEN);
	memcpy(block + MODE_AT, "0000644", 8);
	memcpy(block + UID_AT, "0000000", 8);
	memcpy(block + GID_AT, "0000000", 8);
	snprintf(block + SIZE_AT, SIZE_LEN, "%011" PRIo64, bytes & 077777777777u);
	memcpy(block + TIME_AT, "00000000000", 12);
	block[TYPE_AT] = type;
	memcpy(block + MAGIC_AT, "ustar\00000", 8);
	snprintf(block + CHECKSUM_AT, CHECKSUM_LEN, "%06o", (unsigned)checksum_of(block));
	block[CHECKSUM_AT + 7] = ' ';
	strbuf_add(out, block, sizeof(block));
}

/* A pax line states its own length, digits included. */
static void put_pax_line(struct strbuf *out, const char *key, struct slice value)
{
	size_t len = 1 + strlen(key) + 1 + value.len + 1, digits = 1;

	for (size_t power = 10; len + digits >= power; power *= 10)
		digits++;
	strbuf_addf(out, "%zu %s=", len + digits, key);
	strbuf_add_slice(out, value);
	strbuf_add_byte(out, '\n');
}

void tar_put_header(struct strbuf *out, struct slice name, uint64_t bytes)
{
	bool is_large = bytes >> 33; /* 11 octal digits */

	if (name.len >= NAME_LEN || is_large) {
		static const char zeros[TAR_BLOCK_BYTES];
		struct strbuf lines = { 0 };
		char text[24];

		if (name.len >= NAME_LEN)
			put_pax_line(&lines, "path", name);
		snprintf(text, sizeof(text), "%" PRIu64, bytes);
		if (is_large)
			put_pax_line(&lines, "size", slice_of(text));
		put_block(out, "pax", 3, lines.len, 'x');
		strbuf_add_slice(out, strbuf_slice(&lines));
		strbuf_add(out, zeros, -lines.len % TAR_BLOCK_BYTES);
		strbuf_free(&lines);
	}
	put_block(out, name.data, name.len, bytes, '0');
}
