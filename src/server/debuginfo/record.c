/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/record.h"

#include <stdio.h>

#define FIRST_LINE "firn debuginfo 1"

static const char *const origin_names[DEBUGINFO_ORIGINS] = {
	[DEBUGINFO_FROM_UPLOAD] = "upload",
	[DEBUGINFO_FROM_AGENT] = "agent",
	[DEBUGINFO_FROM_DEBUGINFOD] = "debuginfod",
};

const char *debuginfo_origin_name(enum debuginfo_origin origin)
{
	return origin < DEBUGINFO_ORIGINS ? origin_names[origin] : "unknown";
}

static bool parse_origin(struct slice name, enum debuginfo_origin *ret)
{
	for (int i = 0; i < DEBUGINFO_ORIGINS; i++) {
		if (slice_is(name, origin_names[i])) {
			*ret = (enum debuginfo_origin)i;
			return true;
		}
	}
	return false;
}

void debuginfo_record_set_name(struct debuginfo_record *record, struct slice name)
{
	size_t used = 0;

	if (!slice_is_utf8(name))
		name.len = 0;
	for (size_t i = 0; i < name.len && used + 1 < sizeof(record->name); i++)
		if ((unsigned char)name.data[i] >= ' ' && name.data[i] != 0x7f)
			record->name[used++] = name.data[i];
	while (used && !slice_is_utf8(slice_from(record->name, used))) /* cut within a character */
		used--;
	record->name[used] = '\0';
}

bool debuginfo_record_has_owner(const struct debuginfo_record *record, struct slice tenant)
{
	struct slice rest = slice_of(record->owners);

	if (record->origin == DEBUGINFO_FROM_DEBUGINFOD || (!rest.len && !tenant.len))
		return true;
	while (rest.len) {
		size_t end;

		rest = slice_tail(rest, 1); /* the "/" before each */
		end = slice_find_byte(rest, '/');
		if (end == SIZE_MAX)
			end = rest.len;
		if (slice_equal(slice_from(rest.data, end), tenant))
			return true;
		rest = slice_tail(rest, end);
	}
	return false;
}

void debuginfo_record_add_owner(struct debuginfo_record *record, struct slice tenant)
{
	size_t used = strlen(record->owners);

	if (used + 1 + tenant.len < sizeof(record->owners))
		snprintf(record->owners + used, sizeof(record->owners) - used, "/%.*s",
			 SLICE_FMT(tenant));
}

void debuginfo_record_write(const struct debuginfo_record *record, struct strbuf *out)
{
	strbuf_addf(out, FIRST_LINE "\nbytes %llu\nquality %s\noffsets %d\nuploaded_at_ns %llu\n",
		    (unsigned long long)record->bytes, elf_quality_name(record->quality),
		    record->has_offsets,
		    (unsigned long long)(record->uploaded_at_ns > 0 ? record->uploaded_at_ns : 0));
	strbuf_add_text(out, "sections ");
	elf_sections_write(record->sections, out);
	strbuf_addf(out, "\norigin %s\nalternate %s\nbuild_id %s\n",
		    debuginfo_origin_name(record->origin), record->alternate, record->build_id);
	strbuf_addf(out, "upload_id %s\nsha256 %s\nhash %s\nname %s\n", record->upload_id,
		    record->sha256, record->hash, record->name);
	if (record->owners[0])
		strbuf_addf(out, "owners %s\n", record->owners);
}

static bool is_hex(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!text.data[i] || !strchr("0123456789abcdefABCDEF", text.data[i]))
			return false;
	return true;
}

static bool take_hex(struct slice value, char *ret, size_t ret_bytes)
{
	if (value.len >= ret_bytes || !is_hex(value))
		return false;
	if (value.len)
		memcpy(ret, value.data, value.len);
	ret[value.len] = '\0';
	return true;
}

void debuginfo_record_set_hash(struct debuginfo_record *record, struct slice hash)
{
	if (!take_hex(hash, record->hash, sizeof(record->hash)))
		record->hash[0] = '\0';
}

static bool take_owners(struct slice value, struct debuginfo_record *record)
{
	if (value.len >= sizeof(record->owners) || (value.len && value.data[0] != '/'))
		return false;
	snprintf(record->owners, sizeof(record->owners), "%.*s", SLICE_FMT(value));
	return true;
}

/* One "key value" line. False when the value is not right; unknown keys are let be. */
static bool take_line(struct slice key, struct slice value, struct debuginfo_record *record)
{
	uint64_t number = 0;
	bool is_number = slice_parse_u64(value, &number);

	if (slice_is(key, "bytes")) {
		record->bytes = number;
		return is_number;
	}
	if (slice_is(key, "offsets")) {
		record->has_offsets = number;
		return is_number && number <= 1;
	}
	if (slice_is(key, "uploaded_at_ns")) {
		record->uploaded_at_ns = (int64_t)number;
		return is_number && number <= INT64_MAX;
	}
	if (slice_is(key, "quality"))
		return elf_quality_parse(value, &record->quality);
	if (slice_is(key, "sections"))
		return elf_sections_parse(value, &record->sections);
	if (slice_is(key, "origin"))
		return parse_origin(value, &record->origin);
	if (slice_is(key, "alternate"))
		return take_hex(value, record->alternate, sizeof(record->alternate));
	if (slice_is(key, "build_id"))
		return take_hex(value, record->build_id, sizeof(record->build_id));
	if (slice_is(key, "upload_id"))
		return take_hex(value, record->upload_id, sizeof(record->upload_id));
	if (slice_is(key, "sha256"))
		return take_hex(value, record->sha256, sizeof(record->sha256));
	if (slice_is(key, "hash"))
		return take_hex(value, record->hash, sizeof(record->hash));
	if (slice_is(key, "owners"))
		return take_owners(value, record);
	if (slice_is(key, "name"))
		debuginfo_record_set_name(record, value);
	return true;
}

int debuginfo_record_parse(struct slice text, struct debuginfo_record *ret, struct err *err)
{
	struct debuginfo_record record = { .bytes = 0 };
	struct slice rest, line = slice_cut(text, '\n', &rest);

	if (!slice_is(line, FIRST_LINE))
		return err_set(err, ERR_CORRUPT, "debuginfo record: no \"" FIRST_LINE "\"");
	while (rest.len) {
		struct slice value, key;

		line = slice_cut(rest, '\n', &rest);
		key = slice_cut(line, ' ', &value);
		if (!take_line(key, value, &record))
			return err_set(err, ERR_CORRUPT, "debuginfo record: \"%.*s\"",
				       (int)(line.len < 100 ? line.len : 100), line.data);
	}
	*ret = record;
	return 0;
}
