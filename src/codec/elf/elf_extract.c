/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/elf_extract.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"

#define PROGRAM_HEADERS_MAX 4096u
#define ALIGN_MAX 4096u
#define TABLE_ALIGN 8u

/* Bytes of the file that come at `at` in what is extracted. */
struct piece {
	uint64_t at, from, bytes;
};

/* One section header, as far as it decides. */
struct section {
	const char *name;
	uint64_t flags, offset, bytes, align;
	uint32_t type, link;
	bool is_kept;
};

struct elf_extract {
	int fd;
	char *name;
	bool is_64, is_big, has_debug_info;
	uint64_t file_bytes, bytes;
	uint8_t *head; /* ELF header and program headers, changed */
	size_t head_bytes;
	uint8_t *table; /* section headers, changed, */
	size_t table_bytes;
	uint64_t table_at;    /* and where they come */
	struct piece *pieces; /* rising, disjoint */
	size_t pieces_count, pieces_capacity;
};

/* What is needed while the plan is made. */
struct planning {
	struct elf_extract *extract;
	char *names;
	size_t names_bytes;
	struct section *sections;
	uint32_t sections_count, segments_count;
	bool is_go, has_go_table, has_dwarf;
};

static uint64_t load(const struct elf_extract *extract, const uint8_t *p, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | p[extract->is_big ? i : bytes - 1 - i];
	return value;
}

static void put(const struct elf_extract *extract, uint8_t *p, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++, value >>= 8)
		p[extract->is_big ? bytes - 1 - i : i] = (uint8_t)value;
}

/* A member of one of <elf.h>'s structures, in the file's class and byte order. */
#define MEMBER(extract, p, type, member)                                                           \
	((extract)->is_64 ? load((extract), (p) + offsetof(Elf64_##type, member),                  \
				 sizeof(((Elf64_##type *)0)->member))                              \
			  : load((extract), (p) + offsetof(Elf32_##type, member),                  \
				 sizeof(((Elf32_##type *)0)->member)))
#define SET_MEMBER(extract, p, type, member, value)                                                \
	((extract)->is_64 ? put((extract), (p) + offsetof(Elf64_##type, member),                   \
				sizeof(((Elf64_##type *)0)->member), (value))                      \
			  : put((extract), (p) + offsetof(Elf32_##type, member),                   \
				sizeof(((Elf32_##type *)0)->member), (value)))
#define TYPE_BYTES(extract, type) ((extract)->is_64 ? sizeof(Elf64_##type) : sizeof(Elf32_##type))

static int read_exactly(const struct elf_extract *extract, uint64_t offset, void *into, size_t len,
			struct err *err)
{
	size_t done = 0;

	while (done < len) {
		ssize_t got = offset + done > INT64_MAX ? 0
							: pread(extract->fd, (char *)into + done,
								len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set_errno(err, errno, "read \"%s\" at offset %" PRIu64,
					     extract->name, offset + done);
		if (!got)
			return err_set(err, ERR_IO, "read \"%s\": it ends at offset %" PRIu64,
				       extract->name, offset + done);
		done += (size_t)got;
	}
	return 0;
}

static int invalid(const struct elf_extract *extract, const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID, "extract symbols of \"%s\": %s", extract->name, what);
}

static bool is_inside(const struct elf_extract *extract, uint64_t offset, uint64_t bytes)
{
	return offset <= extract->file_bytes && bytes <= extract->file_bytes - offset;
}

/* Both tables as they are in the file; the program headers follow the header at once. */
static int read_tables(struct planning *p, struct err *err)
{
	struct elf_extract *extract = p->extract;
	uint8_t header[sizeof(Elf64_Ehdr)] = { 0 }, first[sizeof(Elf64_Shdr)];
	size_t header_bytes, entry;
	uint64_t segments_at, sections_at;
	int rc;

	if (extract->file_bytes < sizeof(Elf32_Ehdr))
		return invalid(extract, "not an ELF file", err);
	rc = read_exactly(extract, 0, header, EI_NIDENT, err);
	if (rc)
		return rc;
	if (memcmp(header, ELFMAG, SELFMAG) != 0 ||
	    (header[EI_CLASS] != ELFCLASS64 && header[EI_CLASS] != ELFCLASS32) ||
	    (header[EI_DATA] != ELFDATA2LSB && header[EI_DATA] != ELFDATA2MSB))
		return invalid(extract, "not an ELF file", err);
	extract->is_64 = header[EI_CLASS] == ELFCLASS64;
	extract->is_big = header[EI_DATA] == ELFDATA2MSB;
	header_bytes = TYPE_BYTES(extract, Ehdr);
	rc = read_exactly(extract, 0, header, header_bytes, err);
	if (rc)
		return rc;
	segments_at = MEMBER(extract, header, Ehdr, e_phoff);
	sections_at = MEMBER(extract, header, Ehdr, e_shoff);
	p->segments_count = (uint32_t)MEMBER(extract, header, Ehdr, e_phnum);
	p->sections_count = (uint32_t)MEMBER(extract, header, Ehdr, e_shnum);
	entry = TYPE_BYTES(extract, Shdr);
	if (!sections_at || MEMBER(extract, header, Ehdr, e_shentsize) != entry ||
	    !is_inside(extract, sections_at, entry))
		return err_set(err, ERR_UNSUPPORTED, "extract symbols of \"%s\": no sections",
			       extract->name);
	rc = read_exactly(extract, sections_at, first, entry, err);
	if (rc)
		return rc;
	if (!p->sections_count && MEMBER(extract, first, Shdr, sh_size) <= UINT32_MAX)
		p->sections_count = (uint32_t)MEMBER(extract, first, Shdr, sh_size);
	if (p->segments_count == PN_XNUM)
		p->segments_count = (uint32_t)MEMBER(extract, first, Shdr, sh_info);
	if (p->segments_count > PROGRAM_HEADERS_MAX || p->sections_count > ELF_EXTRACT_SECTIONS_MAX)
		return err_set(err, ERR_LIMIT, "extract symbols of \"%s\": too many headers",
			       extract->name);
	/* Also when they turn out to be none: the header is sent as it is. */
	if (MEMBER(extract, header, Ehdr, e_phnum) &&
	    MEMBER(extract, header, Ehdr, e_phentsize) != TYPE_BYTES(extract, Phdr))
		return invalid(extract, "program headers of another size", err);
	extract->table_bytes = p->sections_count * entry;
	extract->head_bytes = header_bytes + p->segments_count * TYPE_BYTES(extract, Phdr);
	extract->table = mem_new_array(uint8_t, extract->table_bytes + 1);
	extract->head = mem_new_array(uint8_t, extract->head_bytes);
	memcpy(extract->head, header, header_bytes);
	rc = read_exactly(extract, segments_at, extract->head + header_bytes,
			  extract->head_bytes - header_bytes, err);
	return rc ? rc
		  : read_exactly(extract, sections_at, extract->table, extract->table_bytes, err);
}

static uint8_t *header_of(const struct elf_extract *extract, uint32_t index)
{
	return extract->table + (size_t)index * TYPE_BYTES(extract, Shdr);
}

/* The names of all sections, ended with a NUL. */
static int read_names(struct planning *p, struct err *err)
{
	const struct elf_extract *extract = p->extract;
	uint64_t index = MEMBER(extract, extract->head, Ehdr, e_shstrndx), offset, bytes;

	if (index == SHN_XINDEX && p->sections_count)
		index = MEMBER(extract, header_of(extract, 0), Shdr, sh_link);
	if (index >= p->sections_count)
		return invalid(extract, "sections have no names", err);
	offset = MEMBER(extract, header_of(extract, (uint32_t)index), Shdr, sh_offset);
	bytes = MEMBER(extract, header_of(extract, (uint32_t)index), Shdr, sh_size);
	if (!is_inside(extract, offset, bytes))
		return invalid(extract, "the names of sections lie after its end", err);
	if (bytes > ELF_EXTRACT_NAMES_BYTES_MAX)
		return err_set(err, ERR_LIMIT,
			       "extract symbols of \"%s\": names of sections over "
			       "%zu bytes",
			       extract->name, ELF_EXTRACT_NAMES_BYTES_MAX);
	p->names_bytes = (size_t)bytes;
	p->names = mem_new_array(char, bytes + 1);
	p->sections = mem_new_array(struct section, p->sections_count);
	p->sections[index].is_kept = true;
	return read_exactly(extract, offset, p->names, (size_t)bytes, err);
}

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}
#define IS_ONE_OF(name, list) is_one_of((name), (list), sizeof(list) / sizeof(*(list)))

static int read_sections(struct planning *p, struct err *err)
{
	static const char *const go_tables[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	const struct elf_extract *extract = p->extract;

	for (uint32_t i = 0; i < p->sections_count; i++) {
		const uint8_t *header = header_of(extract, i);
		struct section *section = &p->sections[i];
		uint64_t name = MEMBER(extract, header, Shdr, sh_name);

		section->name = name < p->names_bytes ? p->names + name : "";
		section->type = (uint32_t)MEMBER(extract, header, Shdr, sh_type);
		section->link = (uint32_t)MEMBER(extract, header, Shdr, sh_link);
		section->flags = MEMBER(extract, header, Shdr, sh_flags);
		section->offset = MEMBER(extract, header, Shdr, sh_offset);
		section->bytes = MEMBER(extract, header, Shdr, sh_size);
		section->align = MEMBER(extract, header, Shdr, sh_addralign);
		if (section->type == SHT_NULL || section->type == SHT_NOBITS)
			continue;
		if (!is_inside(extract, section->offset, section->bytes))
			return invalid(extract, "a section lies after its end: it was cut short",
				       err);
		p->has_dwarf |= !strcmp(section->name, ".debug_info") ||
				!strcmp(section->name, ".zdebug_info");
		p->has_go_table |= IS_ONE_OF(section->name, go_tables);
		p->is_go |= !strcmp(section->name, ".go.buildinfo");
	}
	return 0;
}

/* Of DWARF: what says where variables are and what macros were, and indexes of names. */
static bool is_for_debuggers(const char *name)
{
	static const char *const unused[] = {
		".debug_loc",	    ".debug_loclists",	   ".debug_macro",	  ".debug_macinfo",
		".debug_names",	    ".debug_pubnames",	   ".debug_pubtypes",	  ".zdebug_loc",
		".zdebug_loclists", ".debug_gnu_pubnames", ".debug_gnu_pubtypes",
	};

	if (has_prefix(name, ".rela."))
		name += strlen(".rela");
	return IS_ONE_OF(name, unused);
}

static bool is_kept(const struct planning *p, const struct section *section)
{
	static const char *const go[] = { ".gopclntab", ".data.rel.ro.gopclntab", ".gosymtab",
					  ".go.buildinfo", ".go.module" };
	/* Where functions without names are, and which functions of others they call. */
	static const char *const boundaries[] = { ".eh_frame", ".plt",	   ".plt.sec",
						  ".plt.got",  ".plt.bnd", ".rela.plt" };
	/* Inlined calls are described in data, whose place is found by the module's description. */
	static const char *const go_data[] = { ".rodata", ".data.rel.ro", ".noptrdata",
					       ".data",	  ".rela.dyn",	  ".rela" };

	if (section->type == SHT_NULL || section->type == SHT_NOBITS)
		return false;
	if (section->type == SHT_NOTE || section->type == SHT_SYMTAB ||
	    section->type == SHT_DYNSYM || section->type == SHT_SYMTAB_SHNDX)
		return true;
	if (is_for_debuggers(section->name))
		return false;
	if (!(section->flags & SHF_ALLOC))
		return has_prefix(section->name, ".debug_") ||
		       has_prefix(section->name, ".zdebug_") ||
		       has_prefix(section->name, ".rela.debug_") ||
		       has_prefix(section->name, ".rel.debug_") ||
		       has_prefix(section->name, ".gnu_debug");
	return IS_ONE_OF(section->name, go) || IS_ONE_OF(section->name, boundaries) ||
	       (!p->has_dwarf && (p->is_go || p->has_go_table) &&
		IS_ONE_OF(section->name, go_data));
}

static void choose(struct planning *p)
{
	for (uint32_t i = 0; i < p->sections_count; i++) {
		struct section *section = &p->sections[i];
		bool has_strings = section->type == SHT_SYMTAB || section->type == SHT_DYNSYM;

		section->is_kept |= is_kept(p, section);
		if (has_strings && section->link < p->sections_count &&
		    p->sections[section->link].type == SHT_STRTAB)
			p->sections[section->link].is_kept = true;
	}
}

static uint64_t aligned(uint64_t at, uint64_t align)
{
	bool is_usable = align && align <= ALIGN_MAX && !(align & (align - 1));

	align = is_usable ? align : 1;
	return (at + align - 1) & ~(align - 1);
}

/* Places what is kept, in the order of the table, and changes the headers accordingly. */
static int place(struct planning *p, uint64_t bytes_max, struct err *err)
{
	struct elf_extract *extract = p->extract;

	extract->bytes = extract->head_bytes;
	for (uint32_t i = 0; i < p->sections_count; i++) {
		const struct section *section = &p->sections[i];
		struct piece piece = { 0, section->offset, section->bytes };

		if (section->type == SHT_NULL || section->type == SHT_NOBITS)
			continue;
		if (!section->is_kept) {
			SET_MEMBER(extract, header_of(extract, i), Shdr, sh_type, SHT_NOBITS);
			continue;
		}
		piece.at = aligned(extract->bytes, section->align);
		if (piece.bytes > bytes_max || piece.at > bytes_max - piece.bytes)
			return err_set(err, ERR_LIMIT,
				       "extract symbols of \"%s\": over %" PRIu64 " bytes",
				       extract->name, bytes_max);
		SET_MEMBER(extract, header_of(extract, i), Shdr, sh_offset, piece.at);
		extract->bytes = piece.at + piece.bytes;
		extract->has_debug_info |= piece.bytes && (!strcmp(section->name, ".debug_info") ||
							   !strcmp(section->name, ".zdebug_info"));
		if (!piece.bytes)
			continue;
		mem_grow(extract->pieces, extract->pieces_count, extract->pieces_capacity);
		extract->pieces[extract->pieces_count++] = piece;
	}
	extract->table_at = aligned(extract->bytes, TABLE_ALIGN);
	extract->bytes = extract->table_at + extract->table_bytes;
	SET_MEMBER(extract, extract->head, Ehdr, e_shoff, extract->table_at);
	SET_MEMBER(extract, extract->head, Ehdr, e_phoff,
		   p->segments_count ? TYPE_BYTES(extract, Ehdr) : 0);
	return 0;
}

/* Notes are read by their segment: it is where the content has gone. */
static void move_note(const struct elf_extract *extract, uint8_t *header)
{
	uint64_t offset = MEMBER(extract, header, Phdr, p_offset);
	uint64_t bytes = MEMBER(extract, header, Phdr, p_filesz);

	for (size_t i = 0; i < extract->pieces_count; i++) {
		const struct piece *piece = &extract->pieces[i];
		uint64_t left;

		if (offset < piece->from || offset - piece->from >= piece->bytes)
			continue;
		left = piece->bytes - (offset - piece->from);
		SET_MEMBER(extract, header, Phdr, p_offset, piece->at + (offset - piece->from));
		SET_MEMBER(extract, header, Phdr, p_filesz, bytes < left ? bytes : left);
		return;
	}
	SET_MEMBER(extract, header, Phdr, p_filesz, 0);
}

/* Loaded segments keep their place in the program's file: that is what they are here for. */
static void change_segments(struct planning *p)
{
	const struct elf_extract *extract = p->extract;
	uint8_t *header = extract->head + TYPE_BYTES(extract, Ehdr);

	for (uint32_t i = 0; i < p->segments_count; i++, header += TYPE_BYTES(extract, Phdr)) {
		uint64_t type = MEMBER(extract, header, Phdr, p_type);

		if (type == PT_NOTE)
			move_note(extract, header);
		else if (type != PT_LOAD)
			SET_MEMBER(extract, header, Phdr, p_filesz, 0);
	}
}

int elf_extract_open(int fd, const char *name, uint64_t bytes_max, struct elf_extract **ret,
		     struct err *err)
{
	struct elf_extract *extract = mem_new(struct elf_extract);
	struct planning planning = { .extract = extract };
	struct stat status;
	int rc = 0;

	extract->fd = fd;
	extract->name = mem_strndup(name, strlen(name));
	if (fstat(fd, &status))
		rc = err_set_errno(err, errno, "look at \"%s\"", name);
	else
		extract->file_bytes = (uint64_t)status.st_size;
	if (!rc)
		rc = read_tables(&planning, err);
	if (!rc)
		rc = read_names(&planning, err);
	if (!rc)
		rc = read_sections(&planning, err);
	if (!rc) {
		choose(&planning);
		rc = place(&planning, bytes_max, err);
	}
	if (!rc)
		change_segments(&planning);
	free(planning.names);
	free(planning.sections);
	if (rc)
		elf_extract_close(extract);
	else
		*ret = extract;
	return rc;
}

void elf_extract_close(struct elf_extract *extract)
{
	if (!extract)
		return;
	free(extract->name);
	free(extract->head);
	free(extract->table);
	free(extract->pieces);
	free(extract);
}

uint64_t elf_extract_bytes(const struct elf_extract *extract)
{
	return extract->bytes;
}

uint64_t elf_extract_fingerprint(const struct elf_extract *extract)
{
	uint64_t of_head = hash_stable(extract->head, extract->head_bytes, extract->bytes);

	return hash_stable(extract->table, extract->table_bytes, of_head);
}

bool elf_extract_has_debug_info(const struct elf_extract *extract)
{
	return extract->has_debug_info;
}

/* The part of [at, at + len) that [from, from + bytes) covers; false when there is none. */
static bool overlap(uint64_t at, size_t len, uint64_t from, uint64_t bytes, uint64_t *ret_begin,
		    uint64_t *ret_end)
{
	*ret_begin = at > from ? at : from;
	*ret_end = at + len < from + bytes ? at + len : from + bytes;
	return *ret_begin < *ret_end;
}

static void copy_overlap(uint64_t at, char *into, size_t len, uint64_t from, const uint8_t *bytes,
			 size_t count)
{
	uint64_t begin, end;

	if (overlap(at, len, from, count, &begin, &end))
		memcpy(into + (begin - at), bytes + (begin - from), end - begin);
}

int elf_extract_read(const struct elf_extract *extract, uint64_t at, void *into, size_t len,
		     struct err *err)
{
	uint64_t filled = at; /* up to here */
	size_t next;

	/* The first piece that ends behind `at`. */
	next = bisect(0, extract->pieces_count, i,
		      extract->pieces[i].at + extract->pieces[i].bytes <= at);
	for (; next < extract->pieces_count && extract->pieces[next].at < at + len; next++) {
		const struct piece *piece = &extract->pieces[next];
		uint64_t begin, end;
		int rc;

		if (!overlap(at, len, piece->at, piece->bytes, &begin, &end))
			continue;
		memset((char *)into + (filled - at), 0, (size_t)(begin - filled));
		rc = read_exactly(extract, piece->from + (begin - piece->at),
				  (char *)into + (begin - at), (size_t)(end - begin), err);
		if (rc)
			return rc;
		filled = end;
	}
	memset((char *)into + (filled - at), 0, (size_t)(at + len - filled));
	copy_overlap(at, into, len, 0, extract->head, extract->head_bytes);
	copy_overlap(at, into, len, extract->table_at, extract->table, extract->table_bytes);
	return 0;
}
