/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/elf_origin.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/elf/section_reader.h"
#include "codec/wire/json_read.h"

#define GO_MAGIC SLICE_LITERAL("\xff Go buildinf:")
#define GO_HEADER_BYTES 32
#define GO_INLINE_STRINGS 2  /* a flag of the header */
#define GO_SENTINEL_BYTES 16 /* before and behind the list of modules */
#define GO_VERSION_MAX 64
#define COMMENT_BYTES_MAX 4096
#define NOTE_BYTES_MAX 4096
#define NOTE_HEADER_BYTES 12
#define NOTE_PACKAGE 0xcafe1a7eu

struct found {
	struct elf_section_info go, package, comment;
	bool has_symbols, has_interpreter;
};

static void see_section(void *context, const struct elf_section_info *section)
{
	struct found *found = context;
	struct slice name = slice_of(section->name);

	if (slice_is(name, ".interp"))
		found->has_interpreter = true;
	if (!section->file_bytes)
		return;
	if (slice_is(name, ".go.buildinfo"))
		found->go = *section;
	else if (slice_is(name, ".note.package"))
		found->package = *section;
	else if (slice_is(name, ".comment"))
		found->comment = *section;
	else if (slice_is(name, ".symtab"))
		found->has_symbols = true;
}

static bool is_text(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] < ' ')
			return false;
	return text.len && text.len <= ELF_ORIGIN_TEXT_MAX && slice_is_utf8(text);
}

static void set(char **text, struct slice value)
{
	if (!is_text(value))
		return;
	free(*text);
	*text = mem_strndup(value.data, value.len);
}

static void set_compiler(struct elf_origin *origin, const char *name, struct slice version)
{
	struct strbuf text = { 0 };

	strbuf_add_text(&text, name);
	strbuf_add_byte(&text, ' ');
	strbuf_add_slice(&text, version);
	if (version.len)
		set(&origin->compiler, strbuf_slice(&text));
	strbuf_free(&text);
}

/* `len` bytes at an offset of the file, in `to`; fewer, or none, where it ends. */
static struct slice read_bytes(int fd, uint64_t offset, size_t len, struct strbuf *to)
{
	ssize_t got;

	strbuf_clear(to);
	if (offset > INT64_MAX)
		return (struct slice){ 0 };
	got = pread(fd, strbuf_reserve(to, len), len, (off_t)offset);
	return got > 0 ? slice_from(to->data, (size_t)got) : (struct slice){ 0 };
}

/* ---- Go ---- */

/* The value of "KEY=VALUE", when the text is of this key. */
static bool value_of(struct slice text, struct slice key, struct slice *ret)
{
	if (!slice_starts_with(text, key))
		return false;
	*ret = slice_tail(text, key.len);
	return true;
}

void elf_origin_take_modules(struct elf_origin *origin, struct slice modules)
{
	struct slice revision = { 0 }, value;
	bool is_changed = false;
	struct strbuf text = { 0 };

	while (modules.len) {
		struct slice line = slice_cut(modules, '\n', &modules), rest;
		struct slice kind = slice_cut(line, '\t', &rest);

		if (slice_is(kind, "mod")) {
			slice_cut(rest, '\t', &rest);
			value = slice_cut(rest, '\t', &rest);
			if (!slice_is(value, "(devel)"))
				set(&origin->version, value);
		} else if (slice_is(kind, "build")) {
			value_of(rest, SLICE_LITERAL("vcs.revision="), &revision);
			is_changed = is_changed || slice_is(rest, "vcs.modified=true");
		}
	}
	strbuf_add_slice(&text, revision);
	if (is_changed)
		strbuf_add_text(&text, "+dirty");
	if (revision.len)
		set(&origin->revision, strbuf_slice(&text));
	strbuf_free(&text);
}

static void take_go_version(struct elf_origin *origin, struct slice version)
{
	struct slice go = SLICE_LITERAL("go"), rest;

	if (slice_starts_with(version, go))
		set_compiler(origin, "Go", slice_cut(slice_tail(version, go.len), ' ', &rest));
}

static void take_module_list(struct elf_origin *origin, struct slice list)
{
	if (list.len <= 2 * (size_t)GO_SENTINEL_BYTES)
		return;
	list = slice_tail(list, GO_SENTINEL_BYTES);
	list.len -= GO_SENTINEL_BYTES;
	elf_origin_take_modules(origin, list);
}

/* The length before a string, and the bytes that it takes; 0 when there is no sound one. */
static size_t read_length(struct slice bytes, size_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes.len && i < 4; i++) {
		value |= (uint64_t)((unsigned char)bytes.data[i] & 0x7f) << (7 * i);
		if (!((unsigned char)bytes.data[i] & 0x80)) {
			*ret = (size_t)value;
			return value <= ELF_ORIGIN_BYTES_MAX ? i + 1 : 0;
		}
	}
	return 0;
}

/* A string with its length before it; its end is where the next one begins. False: none. */
static bool read_inline(int fd, uint64_t *offset, size_t max, struct strbuf *to, struct slice *ret)
{
	size_t len = 0, head = read_length(read_bytes(fd, *offset, 4, to), &len);

	if (!head || len > max)
		return false;
	*ret = read_bytes(fd, *offset + head, len, to);
	*offset += head + len;
	return ret->len == len;
}

/* The string whose header (pointer, length) lies where the pointer at an offset leads to. */
static bool read_pointed(int fd, const struct elf_info *info, uint64_t at, size_t max,
			 struct strbuf *to, struct slice *ret)
{
	uint64_t offset, len;
	struct slice bytes = read_bytes(fd, at, 8, to);

	if (bytes.len < 8 ||
	    !elf_address_to_offset(info, section_u64((const uint8_t *)bytes.data), &offset))
		return false;
	bytes = read_bytes(fd, offset, 16, to);
	if (bytes.len < 16)
		return false;
	len = section_u64((const uint8_t *)bytes.data + 8);
	if (len > max ||
	    !elf_address_to_offset(info, section_u64((const uint8_t *)bytes.data), &offset))
		return false;
	*ret = read_bytes(fd, offset, (size_t)len, to);
	return ret->len == len;
}

static void read_go(int fd, const struct elf_info *info, const struct elf_section_info *section,
		    struct elf_origin *ret)
{
	struct strbuf text = { 0 };
	struct slice bytes = read_bytes(fd, section->offset, GO_HEADER_BYTES, &text);
	bool is_inline = bytes.len == GO_HEADER_BYTES && bytes.data[15] & GO_INLINE_STRINGS;
	bool is_known = bytes.len == GO_HEADER_BYTES && slice_starts_with(bytes, GO_MAGIC) &&
			(is_inline || (bytes.data[14] == 8 && !bytes.data[15]));
	uint64_t at = section->offset + (is_inline ? GO_HEADER_BYTES : 16);

	if (is_known && is_inline) {
		if (read_inline(fd, &at, GO_VERSION_MAX, &text, &bytes))
			take_go_version(ret, bytes);
		if (at > section->offset + GO_HEADER_BYTES &&
		    read_inline(fd, &at, ELF_ORIGIN_BYTES_MAX, &text, &bytes))
			take_module_list(ret, bytes);
	} else if (is_known) {
		if (read_pointed(fd, info, at, GO_VERSION_MAX, &text, &bytes))
			take_go_version(ret, bytes);
		if (read_pointed(fd, info, at + 8, ELF_ORIGIN_BYTES_MAX, &text, &bytes))
			take_module_list(ret, bytes);
	}
	strbuf_free(&text);
}

/* ---- other notes ---- */

static void take_package(struct elf_origin *origin, struct slice json)
{
	json_t *package = json_loadb(json.data, json.len, JSON_DISABLE_EOF_CHECK, NULL);
	struct slice version = json_text_at(package, "version");

	if (version.len)
		set(&origin->version, version);
	json_decref(package);
}

/* The section is one note: lengths of name and content, type, "FDO", JSON with a NUL behind it. */
static void read_package(int fd, const struct elf_section_info *section, struct elf_origin *ret)
{
	struct strbuf text = { 0 };
	size_t len =
		section->file_bytes < NOTE_BYTES_MAX ? (size_t)section->file_bytes : NOTE_BYTES_MAX;
	struct slice note = read_bytes(fd, section->offset, len, &text), name, json;
	const uint8_t *head = (const uint8_t *)note.data;

	if (note.len > NOTE_HEADER_BYTES && section_u32(head) == 4 &&
	    section_u32(head + 8) == NOTE_PACKAGE) {
		name = slice_tail(note, NOTE_HEADER_BYTES);
		json = slice_tail(name, 4);
		if (slice_starts_with(name, SLICE_LITERAL("FDO")) &&
		    section_u32(head + 4) <= json.len)
			take_package(ret, slice_from(json.data, section_u32(head + 4)));
	}
	strbuf_free(&text);
}

static struct slice first_word(struct slice text)
{
	struct slice rest;

	return slice_cut(text, ' ', &rest);
}

/* Strings with NULs between them. Who links C's start files has GCC's beside its own. */
static void take_comments(struct elf_origin *origin, struct slice comments)
{
	static const struct {
		const char *mark, *name;
	} known[] = { { "GCC: (", "GCC" },
		      { "clang version ", "Clang" },
		      { "rustc version ", "Rust" } };
	size_t best = 0;

	while (comments.len) {
		struct slice text = slice_cut(comments, '\0', &comments);

		for (size_t i = best; i < sizeof(known) / sizeof(*known); i++) {
			const char *mark = text.len ? memmem(text.data, text.len, known[i].mark,
							     strlen(known[i].mark))
						    : NULL;
			struct slice rest;

			if (!mark)
				continue;
			best = i;
			rest = slice_tail(text, (size_t)(mark - text.data) + strlen(known[i].mark));
			if (!i)
				slice_cut(rest, ')', &rest);
			set_compiler(origin, known[i].name, first_word(slice_trim(rest)));
		}
	}
}

static void read_comments(int fd, const struct elf_section_info *section, struct elf_origin *ret)
{
	struct strbuf text = { 0 };
	size_t len = section->file_bytes < COMMENT_BYTES_MAX ? (size_t)section->file_bytes
							     : COMMENT_BYTES_MAX;

	take_comments(ret, read_bytes(fd, section->offset, len, &text));
	strbuf_free(&text);
}

void elf_origin_read(int fd, const char *name, const struct elf_info *info, struct elf_origin *ret)
{
	struct found found = { 0 };

	*ret = (struct elf_origin){ 0 };
	if (elf_each_section(fd, name, see_section, &found, NULL))
		return;
	ret->is_static = !found.has_interpreter;
	ret->is_stripped = !found.has_symbols;
	if (found.comment.file_bytes)
		read_comments(fd, &found.comment, ret);
	if (found.package.file_bytes)
		read_package(fd, &found.package, ret);
	if (found.go.file_bytes)
		read_go(fd, info, &found.go, ret);
}

void elf_origin_free(struct elf_origin *origin)
{
	free(origin->version);
	free(origin->revision);
	free(origin->compiler);
	*origin = (struct elf_origin){ 0 };
}
