/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: System V gABI, chapters 4 (header, sections, notes) and 5 (program header).
 */
#include "codec/elf/elf.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/wire/sha256.h"

#define NOTE_BYTES_MAX ((uint64_t)16 * 1024) /* looked at in one note segment or section */
#define PROGRAM_HEADERS_MAX 4096u
#define SECTIONS_MAX 65536u
#define HEADERS_PER_READ 64u
#define BUILD_ID_BYTES_MAX 64u
#define HASH_PART_BYTES 4096u
#define HASH_ID_BYTES 16u
#define RESTORED_PAGE_BYTES 4096u /* modulo which linkers keep offsets and addresses equal */
#define NOTE_TYPE_GO_BUILD_ID 4u  /* name "Go", cmd/internal/buildid */

/* Where the bytes come from, and how its numbers are written. */
struct elf_source {
	int fd; /* -1: `image` */
	struct slice image;
	const char *name;
	uint64_t file_bytes;
	bool is_64, is_big;
};

/* A table of equal headers in the file. */
struct header_table {
	uint64_t offset;
	uint32_t count;
	uint32_t entry_bytes;
};

/* What the notes say; the best wins in the end. */
struct note_ids {
	uint8_t gnu[BUILD_ID_BYTES_MAX];
	size_t gnu_len;
	uint8_t go[SHA256_DIGEST_BYTES];
	bool has_go;
};

static uint64_t load(const struct elf_source *source, const uint8_t *p, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | p[source->is_big ? i : bytes - 1 - i];
	return value;
}

/* Reads a member of one of <elf.h>'s structures, in the file's class and byte order. */
#define MEMBER(source, p, type, member)                                                            \
	((source)->is_64 ? load((source), (p) + offsetof(Elf64_##type, member),                    \
				sizeof(((Elf64_##type *)0)->member))                               \
			 : load((source), (p) + offsetof(Elf32_##type, member),                    \
				sizeof(((Elf32_##type *)0)->member)))
#define TYPE_BYTES(source, type)                                                                   \
	((source)->is_64 ? (uint32_t)sizeof(Elf64_##type) : (uint32_t)sizeof(Elf32_##type))

/* Reads what there is, up to len bytes; the count read, or a negative code. */
static int64_t read_some(const struct elf_source *source, uint64_t offset, void *into, size_t len,
			 struct err *err)
{
	size_t done = 0;

	if (offset >= source->file_bytes)
		return 0;
	if (len > source->file_bytes - offset)
		len = source->file_bytes - offset;
	if (source->fd < 0) {
		memcpy(into, source->image.data + offset, len);
		return (int64_t)len;
	}
	while (done < len) {
		ssize_t got =
			pread(source->fd, (char *)into + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set_errno(err, errno, "read \"%s\" at offset %" PRIu64,
					     source->name, offset + done);
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

static int read_exactly(const struct elf_source *source, uint64_t offset, void *into, size_t len,
			const char *what, struct err *err)
{
	int64_t got = read_some(source, offset, into, len, err);

	if (got < 0)
		return (int)got;
	if ((size_t)got != len)
		return err_set(err, ERR_INVALID,
			       "parse ELF \"%s\": %s at offset %" PRIu64
			       " ends after the file's %" PRIu64 " bytes",
			       source->name, what, offset, source->file_bytes);
	return 0;
}

/*
 * Goes through the notes of one segment or section (gABI 5.2; name and descriptor are padded to
 * 4 bytes, or to 8 where the alignment says so, as linkers do for .note.gnu.property).
 */
static void scan_notes(const struct elf_source *source, const uint8_t *notes, size_t len,
		       uint64_t align, struct note_ids *ids)
{
	size_t pad = align == 8 ? 7 : 3;
	size_t at = 0;

	while (len - at >= sizeof(Elf64_Nhdr)) {
		size_t name_len = load(source, notes + at, 4);
		size_t desc_len = load(source, notes + at + 4, 4);
		uint32_t type = (uint32_t)load(source, notes + at + 8, 4);
		size_t name_at = at + sizeof(Elf64_Nhdr);
		size_t desc_at = (name_at + name_len + pad) & ~pad;

		if (desc_at > len || desc_len > len - desc_at)
			return;
		if (name_len == 4 && type == NT_GNU_BUILD_ID && desc_len &&
		    !memcmp(notes + name_at, "GNU", 4) && !ids->gnu_len) {
			ids->gnu_len =
				desc_len < BUILD_ID_BYTES_MAX ? desc_len : BUILD_ID_BYTES_MAX;
			memcpy(ids->gnu, notes + desc_at, ids->gnu_len);
		} else if (name_len == 4 && type == NOTE_TYPE_GO_BUILD_ID && desc_len &&
			   !memcmp(notes + name_at, "Go\0", 4) && !ids->has_go) {
			struct sha256 sha;

			sha256_init(&sha);
			sha256_add(&sha, notes + desc_at, desc_len);
			sha256_finish(&sha, ids->go);
			ids->has_go = true;
		}
		at = (desc_at + desc_len + pad) & ~pad;
		if (at > len)
			return;
	}
}

/* Notes that cannot be read are as good as none: the identity then comes from elsewhere. */
static void read_notes(const struct elf_source *source, uint64_t offset, uint64_t len,
		       uint64_t align, struct note_ids *ids)
{
	_Alignas(8) uint8_t notes[NOTE_BYTES_MAX];
	int64_t got =
		read_some(source, offset, notes, len < sizeof(notes) ? len : sizeof(notes), NULL);

	if (got > 0)
		scan_notes(source, notes, (size_t)got, align, ids);
}

static int add_segment(const struct elf_source *source, const uint8_t *header,
		       struct elf_info *info, struct err *err)
{
	struct elf_segment *segment = &info->segments[info->segments_count];

	if (info->segments_count == ELF_SEGMENTS_MAX)
		return err_set(err, ERR_LIMIT, "parse ELF \"%s\": more than %d loadable segments",
			       source->name, ELF_SEGMENTS_MAX);
	*segment = (struct elf_segment){
		.offset = MEMBER(source, header, Phdr, p_offset),
		.address = MEMBER(source, header, Phdr, p_vaddr),
		.file_bytes = MEMBER(source, header, Phdr, p_filesz),
		.memory_bytes = MEMBER(source, header, Phdr, p_memsz),
		.executable = MEMBER(source, header, Phdr, p_flags) & PF_X,
	};
	info->segments_count++;
	return 0;
}

static int read_segments(const struct elf_source *source, const struct header_table *table,
			 struct elf_info *info, struct note_ids *ids, struct err *err)
{
	uint8_t header[sizeof(Elf64_Phdr)];

	for (uint32_t i = 0; i < table->count; i++) {
		uint32_t type;
		int status = read_exactly(source, table->offset + (uint64_t)i * table->entry_bytes,
					  header, table->entry_bytes, "the program header", err);

		if (status)
			return status;
		type = (uint32_t)MEMBER(source, header, Phdr, p_type);
		if (type == PT_LOAD && (status = add_segment(source, header, info, err)))
			return status;
		if (type == PT_NOTE)
			read_notes(source, MEMBER(source, header, Phdr, p_offset),
				   MEMBER(source, header, Phdr, p_filesz),
				   MEMBER(source, header, Phdr, p_align), ids);
	}
	return 0;
}

/* For files whose segments hold no note: separate debug files, relocatable objects. */
static void read_note_sections(const struct elf_source *source, const struct header_table *table,
			       struct note_ids *ids)
{
	uint8_t headers[HEADERS_PER_READ * sizeof(Elf64_Shdr)];

	for (uint32_t first = 0; first < table->count && !ids->gnu_len; first += HEADERS_PER_READ) {
		int64_t got =
			read_some(source, table->offset + (uint64_t)first * table->entry_bytes,
				  headers, HEADERS_PER_READ * table->entry_bytes, NULL);
		uint32_t count = table->count - first;

		if (got <= 0)
			return;
		if (count > (uint64_t)got / table->entry_bytes)
			count = (uint32_t)((uint64_t)got / table->entry_bytes);
		for (uint32_t i = 0; i < count && i < HEADERS_PER_READ; i++) {
			const uint8_t *header = headers + (size_t)i * table->entry_bytes;

			if (MEMBER(source, header, Shdr, sh_type) == SHT_NOTE)
				read_notes(source, MEMBER(source, header, Shdr, sh_offset),
					   MEMBER(source, header, Shdr, sh_size),
					   MEMBER(source, header, Shdr, sh_addralign), ids);
		}
	}
}

static void set_hex(struct elf_info *info, enum elf_id_kind kind, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		info->build_id[2 * i] = digits[bytes[i] >> 4];
		info->build_id[2 * i + 1] = digits[bytes[i] & 15];
	}
	info->build_id[2 * len] = 0;
	info->id_kind = kind;
}

/* The file id of the OpenTelemetry profiles convention (process.executable.build_id.htlhash). */
static int hash_file(const struct elf_source *source, uint8_t ret_digest[SHA256_DIGEST_BYTES],
		     struct err *err)
{
	uint64_t part = source->file_bytes < HASH_PART_BYTES ? source->file_bytes : HASH_PART_BYTES;
	uint8_t bytes[HASH_PART_BYTES], length[8];
	struct sha256 sha;
	int status;

	sha256_init(&sha);
	status = read_exactly(source, 0, bytes, part, "the file's start", err);
	if (status)
		return status;
	sha256_add(&sha, bytes, part);
	status =
		read_exactly(source, source->file_bytes - part, bytes, part, "the file's end", err);
	if (status)
		return status;
	sha256_add(&sha, bytes, part);
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(source->file_bytes >> (56 - 8 * i));
	sha256_add(&sha, length, sizeof(length));
	sha256_finish(&sha, ret_digest);
	return 0;
}

static int set_identity(const struct elf_source *source, const struct note_ids *ids,
			struct elf_info *info, struct err *err)
{
	uint8_t digest[SHA256_DIGEST_BYTES];
	int status;

	if (ids->gnu_len) {
		set_hex(info, ELF_ID_GNU, ids->gnu, ids->gnu_len);
		return 0;
	}
	if (ids->has_go) { /* 83 characters of base64: the hash is what fits everywhere */
		set_hex(info, ELF_ID_GO, ids->go, HASH_ID_BYTES);
		return 0;
	}
	status = hash_file(source, digest, err);
	if (!status)
		set_hex(info, ELF_ID_HASH, digest, HASH_ID_BYTES);
	return status;
}

/* gABI 4: counts that do not fit the header are in section 0 (PN_XNUM, e_shnum 0). */
static int read_tables(const struct elf_source *source, const uint8_t *header,
		       struct header_table *ret_segments, struct header_table *ret_sections,
		       struct err *err)
{
	struct header_table segments = {
		.offset = MEMBER(source, header, Ehdr, e_phoff),
		.count = (uint32_t)MEMBER(source, header, Ehdr, e_phnum),
		.entry_bytes = TYPE_BYTES(source, Phdr),
	};
	struct header_table sections = {
		.offset = MEMBER(source, header, Ehdr, e_shoff),
		.count = (uint32_t)MEMBER(source, header, Ehdr, e_shnum),
		.entry_bytes = TYPE_BYTES(source, Shdr),
	};
	uint8_t section[sizeof(Elf64_Shdr)];

	if (segments.count && MEMBER(source, header, Ehdr, e_phentsize) != segments.entry_bytes)
		return err_set(err, ERR_INVALID, "parse ELF \"%s\": program headers of %d bytes",
			       source->name, (int)MEMBER(source, header, Ehdr, e_phentsize));
	if (!sections.offset || MEMBER(source, header, Ehdr, e_shentsize) != sections.entry_bytes) {
		sections.count = 0;
	} else if (read_some(source, sections.offset, section, sections.entry_bytes, NULL) ==
		   sections.entry_bytes) {
		if (!sections.count)
			sections.count = (uint32_t)MEMBER(source, section, Shdr, sh_size);
		if (segments.count == PN_XNUM)
			segments.count = (uint32_t)MEMBER(source, section, Shdr, sh_info);
	}
	if (segments.count > PROGRAM_HEADERS_MAX)
		return err_set(err, ERR_LIMIT,
			       "parse ELF \"%s\": %u program headers, at most %u allowed",
			       source->name, segments.count, PROGRAM_HEADERS_MAX);
	if (sections.count > SECTIONS_MAX)
		sections.count = SECTIONS_MAX;
	*ret_segments = segments;
	*ret_sections = sections;
	return 0;
}

static int read_identification(struct elf_source *source, uint8_t *header, struct err *err)
{
	int64_t got = read_some(source, 0, header, sizeof(Elf64_Ehdr), err);

	if (got < 0)
		return (int)got;
	if (got < EI_NIDENT || memcmp(header, ELFMAG, SELFMAG))
		return err_set(err, ERR_INVALID, "parse ELF \"%s\": not an ELF file", source->name);
	if (header[EI_CLASS] != ELFCLASS64 && header[EI_CLASS] != ELFCLASS32)
		return err_set(err, ERR_INVALID, "parse ELF \"%s\": unknown class %d", source->name,
			       header[EI_CLASS]);
	if (header[EI_DATA] != ELFDATA2LSB && header[EI_DATA] != ELFDATA2MSB)
		return err_set(err, ERR_INVALID, "parse ELF \"%s\": unknown byte order %d",
			       source->name, header[EI_DATA]);
	source->is_64 = header[EI_CLASS] == ELFCLASS64;
	source->is_big = header[EI_DATA] == ELFDATA2MSB;
	if ((uint64_t)got < TYPE_BYTES(source, Ehdr))
		return err_set(err, ERR_INVALID, "parse ELF \"%s\": the file ends in its header",
			       source->name);
	return 0;
}

static int parse(struct elf_source *source, struct elf_info *ret, struct err *err)
{
	uint8_t header[sizeof(Elf64_Ehdr)];
	struct header_table segments = { 0 }, sections = { 0 };
	struct note_ids ids = { 0 };
	struct elf_info info = { .file_bytes = source->file_bytes };
	int status;

	status = read_identification(source, header, err);
	if (status)
		return status;
	info.machine = (uint16_t)MEMBER(source, header, Ehdr, e_machine);
	info.type = (uint16_t)MEMBER(source, header, Ehdr, e_type);
	status = read_tables(source, header, &segments, &sections, err);
	if (status)
		return status;
	status = read_segments(source, &segments, &info, &ids, err);
	if (status)
		return status;
	if (!ids.gnu_len)
		read_note_sections(source, &sections, &ids);
	status = set_identity(source, &ids, &info, err);
	if (status)
		return status;
	*ret = info;
	return 0;
}

/* The section that holds the names of sections; gABI 4: a large index is in section 0. */
static uint64_t names_offset(const struct elf_source *source, const uint8_t *header,
			     const struct header_table *sections, uint64_t *ret_bytes)
{
	uint64_t index = MEMBER(source, header, Ehdr, e_shstrndx);
	uint8_t section[sizeof(Elf64_Shdr)];

	*ret_bytes = 0;
	if (index == SHN_XINDEX && read_some(source, sections->offset, section,
					     sections->entry_bytes, NULL) == sections->entry_bytes)
		index = MEMBER(source, section, Shdr, sh_link);
	if (index >= sections->count ||
	    read_some(source, sections->offset + index * sections->entry_bytes, section,
		      sections->entry_bytes, NULL) != sections->entry_bytes)
		return 0;
	*ret_bytes = MEMBER(source, section, Shdr, sh_size);
	return MEMBER(source, section, Shdr, sh_offset);
}

/* Reads section header `index`, with its name's place in the section of names. */
static int read_section(const struct elf_source *source, const struct header_table *table,
			uint32_t index, struct elf_section_info *ret, uint32_t *ret_name,
			struct err *err)
{
	uint8_t header[sizeof(Elf64_Shdr)];
	uint64_t end;
	int status = read_exactly(source, table->offset + (uint64_t)index * table->entry_bytes,
				  header, table->entry_bytes, "a section header", err);
	uint32_t type;

	if (status)
		return status;
	type = (uint32_t)MEMBER(source, header, Shdr, sh_type);
	*ret_name = (uint32_t)MEMBER(source, header, Shdr, sh_name);
	*ret = (struct elf_section_info){ .offset = MEMBER(source, header, Shdr, sh_offset) };
	if (type == SHT_NULL || type == SHT_NOBITS)
		return 0;
	ret->file_bytes = MEMBER(source, header, Shdr, sh_size);
	if (__builtin_add_overflow(ret->offset, ret->file_bytes, &end) || end > source->file_bytes)
		return err_set(err, ERR_INVALID,
			       "parse ELF \"%s\": section %u ends after the file's %" PRIu64
			       " bytes: it was cut short",
			       source->name, index, source->file_bytes);
	return 0;
}

static int each_section(struct elf_source *source, elf_section_visit_f *visit, void *context,
			struct err *err)
{
	struct header_table segments, sections;
	uint8_t header[sizeof(Elf64_Ehdr)];
	uint64_t names, names_bytes;
	int status = read_identification(source, header, err);

	if (!status)
		status = read_tables(source, header, &segments, &sections, err);
	if (status)
		return status;
	names = names_offset(source, header, &sections, &names_bytes);
	for (uint32_t i = 0; i < sections.count; i++) {
		struct elf_section_info section;
		uint32_t name;

		status = read_section(source, &sections, i, &section, &name, err);
		if (status)
			return status;
		if (name < names_bytes && names < source->file_bytes)
			(void)read_some(source, names + name, section.name,
					sizeof(section.name) - 1, NULL);
		visit(context, &section);
	}
	return 0;
}

int elf_read_info(int fd, const char *name, struct elf_info *ret, struct err *err)
{
	struct elf_source source = { .fd = fd, .name = name };
	struct stat st;

	if (fstat(fd, &st))
		return err_set_errno(err, errno, "stat \"%s\"", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "parse ELF \"%s\": not a regular file", name);
	source.file_bytes = (uint64_t)st.st_size;
	return parse(&source, ret, err);
}

int elf_parse_info(struct slice image, const char *name, struct elf_info *ret, struct err *err)
{
	struct elf_source source = {
		.fd = -1, .image = image, .name = name, .file_bytes = image.len
	};

	return parse(&source, ret, err);
}

int elf_each_section(int fd, const char *name, elf_section_visit_f *visit, void *context,
		     struct err *err)
{
	struct elf_source source = { .fd = fd, .name = name };
	struct stat st;

	if (fstat(fd, &st))
		return err_set_errno(err, errno, "stat \"%s\"", name);
	source.file_bytes = (uint64_t)st.st_size;
	return each_section(&source, visit, context, err);
}

int elf_parse_sections(struct slice image, const char *name, elf_section_visit_f *visit,
		       void *context, struct err *err)
{
	struct elf_source source = {
		.fd = -1, .image = image, .name = name, .file_bytes = image.len
	};

	return each_section(&source, visit, context, err);
}

bool elf_is_linked(const struct elf_info *info)
{
	return info->type != ET_REL;
}

/* Executable segments first: linkers may let a data segment cover the same page of the file. */
bool elf_offset_to_address(const struct elf_info *info, uint64_t offset, uint64_t *ret)
{
	for (int executable = 1; executable >= 0; executable--) {
		for (size_t i = 0; i < info->segments_count; i++) {
			const struct elf_segment *segment = &info->segments[i];

			if (segment->executable != executable || offset < segment->offset ||
			    offset - segment->offset >= segment->file_bytes)
				continue;
			*ret = segment->address + (offset - segment->offset);
			return true;
		}
	}
	return false;
}

bool elf_address_to_offset(const struct elf_info *info, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];

		if (address < segment->address || address - segment->address >= segment->file_bytes)
			continue;
		*ret = segment->offset + (address - segment->address);
		return true;
	}
	return false;
}

bool elf_has_offsets(const struct elf_info *info)
{
	for (size_t i = 0; i < info->segments_count; i++)
		if (info->segments[i].executable && info->segments[i].file_bytes)
			return true;
	return false;
}

void elf_restore_offsets(struct elf_info *info)
{
	uint64_t end = 0;

	if (elf_has_offsets(info))
		return;
	for (size_t i = 0; i < info->segments_count; i++) {
		struct elf_segment *segment = &info->segments[i];

		segment->offset =
			end + ((segment->address - end) & (uint64_t)(RESTORED_PAGE_BYTES - 1));
		segment->file_bytes = segment->memory_bytes;
		if (__builtin_add_overflow(segment->offset, segment->file_bytes, &end))
			end = UINT64_MAX;
	}
}
