/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: gABI, "Section Compression"; for .zdebug_*: binutils, "ZLIB" and the size, big-endian.
 */
#include "server/resolve/read/elf_inflate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/strbuf.h"

#define OUT_BYTES ((size_t)1 << 20)
#define ALIGNMENT 16u
#define ZDEBUG_HEADER_BYTES 12
#define COMPRESS_ZLIB 1 /* ch_type */
#define COMPRESS_ZSTD 2
#define SECTIONS_MAX ((size_t)1 << 20)

struct inflater {
	Elf *elf;
	struct slice image;
	uint64_t left; /* bytes that may still come out */
	int fd;
	uint64_t at; /* in the new file */
	GElf_Shdr *headers;
	size_t count, names_index;
	struct strbuf names; /* the new table of section names */
	char *out;	     /* OUT_BYTES */
	struct err *err;
};

/* A section that is compressed. */
struct packed {
	const char *name;
	struct slice bytes; /* without its header */
	uint64_t full_bytes;
	uint32_t type;
};

static const char *section_name(Elf *elf, const GElf_Shdr *header)
{
	size_t names;
	const char *name;

	if (elf_getshdrstrndx(elf, &names))
		return "";
	name = elf_strptr(elf, names, header->sh_name);
	return name ? name : "";
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool is_packed(const GElf_Shdr *header, const char *name)
{
	if (header->sh_type == SHT_NOBITS)
		return false;
	return starts_with(name, ".zdebug") ||
	       (header->sh_flags & SHF_COMPRESSED && starts_with(name, ".debug"));
}

bool elf_inflate_is_needed(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    is_packed(&header, section_name(elf, &header)))
			return true;
	return false;
}

static int write_bytes(struct inflater *in, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t done = pwrite(in->fd, at, len, (off_t)in->at);

		if (done <= 0 && errno != EINTR)
			return err_set_errno(in->err, errno, "unpack debug sections");
		if (done > 0) {
			at += done;
			len -= (size_t)done;
			in->at += (uint64_t)done;
		}
	}
	return 0;
}

static int bad_section(struct inflater *in, const struct packed *packed, const char *what)
{
	return err_set(in->err, ERR_INVALID,
		       "unpack section %s: %s at offset 0x%" PRIx64 " of the file", packed->name,
		       what, (uint64_t)(packed->bytes.data - in->image.data));
}

/* Takes what came out; no more than the section's header says. */
static int take(struct inflater *in, const struct packed *packed, size_t len, uint64_t *done)
{
	if (len > packed->full_bytes - *done)
		return bad_section(in, packed, "more bytes than its header says");
	*done += len;
	return write_bytes(in, in->out, len);
}

static int unpack_zlib(struct inflater *in, const struct packed *packed, uint64_t *done)
{
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed->bytes.data };
	uint64_t left = packed->bytes.len;
	int result = inflateInit(&stream), status = 0;

	while (!status && result == Z_OK) {
		uInt given = left < OUT_BYTES ? (uInt)left : (uInt)OUT_BYTES;

		stream.avail_in = given;
		stream.next_out = (Bytef *)in->out;
		stream.avail_out = OUT_BYTES;
		result = inflate(&stream, Z_NO_FLUSH);
		left -= given - stream.avail_in;
		status = take(in, packed, OUT_BYTES - stream.avail_out, done);
	}
	inflateEnd(&stream);
	if (!status && result != Z_STREAM_END)
		status = bad_section(in, packed, "not valid zlib data");
	return status;
}

static int unpack_zstd(struct inflater *in, const struct packed *packed, uint64_t *done)
{
	ZSTD_inBuffer from = { packed->bytes.data, packed->bytes.len, 0 };
	ZSTD_DStream *stream = ZSTD_createDStream();
	size_t result = 1;
	int status = 0;

	while (stream && !status && result && !ZSTD_isError(result)) {
		ZSTD_outBuffer to = { in->out, OUT_BYTES, 0 };
		size_t was = from.pos;

		result = ZSTD_decompressStream(stream, &to, &from);
		status = take(in, packed, to.pos, done);
		if (from.pos == was && !to.pos)
			break;
	}
	ZSTD_freeDStream(stream);
	if (!status && result)
		status = bad_section(in, packed, "not valid zstd data");
	return status;
}

/* What a compressed section's own header says. */
static bool read_packed(struct inflater *in, Elf_Scn *section, const GElf_Shdr *header,
			const char *name, struct packed *ret)
{
	Elf_Data *raw = elf_rawdata(section, NULL);
	GElf_Chdr own;

	if (!raw || !raw->d_buf)
		return false;
	*ret = (struct packed){ .name = name, .bytes = slice_from(raw->d_buf, raw->d_size) };
	if (starts_with(name, ".zdebug")) {
		if (raw->d_size < ZDEBUG_HEADER_BYTES || memcmp(raw->d_buf, "ZLIB", 4))
			return false;
		for (int i = 4; i < ZDEBUG_HEADER_BYTES; i++)
			ret->full_bytes = ret->full_bytes << 8 | ((const uint8_t *)raw->d_buf)[i];
		ret->bytes = slice_tail(ret->bytes, ZDEBUG_HEADER_BYTES);
		ret->type = COMPRESS_ZLIB;
		return true;
	}
	if (!(header->sh_flags & SHF_COMPRESSED) || !gelf_getchdr(section, &own))
		return false;
	ret->full_bytes = own.ch_size;
	ret->type = own.ch_type;
	ret->bytes =
		slice_tail(ret->bytes, gelf_getclass(in->elf) == ELFCLASS64 ? sizeof(Elf64_Chdr)
									    : sizeof(Elf32_Chdr));
	return true;
}

static int unpack(struct inflater *in, const struct packed *packed)
{
	uint64_t done = 0;
	int status;

	if (packed->full_bytes > in->left)
		return err_set(in->err, ERR_LIMIT,
			       "unpack section %s: it says that %" PRIu64 " bytes are in it",
			       packed->name, packed->full_bytes);
	in->left -= packed->full_bytes;
	if (packed->type == COMPRESS_ZLIB)
		status = unpack_zlib(in, packed, &done);
	else if (packed->type == COMPRESS_ZSTD)
		status = unpack_zstd(in, packed, &done);
	else
		return err_set(in->err, ERR_UNSUPPORTED,
			       "unpack section %s: unknown compression %" PRIu32, packed->name,
			       packed->type);
	if (!status && done != packed->full_bytes)
		status = bad_section(in, packed, "fewer bytes than its header says");
	return status;
}

/* Puts a section's content into the new file, and where it is into its header. */
static int move_section(struct inflater *in, Elf_Scn *section, GElf_Shdr *header)
{
	const char *name = section_name(in->elf, header);
	struct packed packed;
	uint64_t start;
	int status;

	if (header->sh_type == SHT_NOBITS)
		return 0;
	in->at = (in->at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	start = in->at;
	if (!is_packed(header, name)) {
		if (header->sh_offset > in->image.len ||
		    header->sh_size > in->image.len - header->sh_offset)
			return err_set(in->err, ERR_INVALID,
				       "unpack debug sections: section %s is cut off", name);
		status = write_bytes(in, in->image.data + header->sh_offset, header->sh_size);
	} else if (read_packed(in, section, header, name, &packed)) {
		status = unpack(in, &packed);
		header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
		if (starts_with(name, ".zdebug")) {
			header->sh_name = (GElf_Word)in->names.len;
			strbuf_add_byte(&in->names, '.');
			strbuf_add(&in->names, name + 2, strlen(name + 2) + 1);
		}
	} else {
		return err_set(in->err, ERR_INVALID,
			       "unpack section %s: its compression header is damaged", name);
	}
	header->sh_offset = start;
	header->sh_size = in->at - start;
	return status;
}

static int move_sections(struct inflater *in)
{
	Elf_Scn *section = NULL;
	int status = 0;

	for (size_t i = 0; !status && i < in->count; i++) {
		section = elf_getscn(in->elf, i);
		if (!section || !gelf_getshdr(section, &in->headers[i]))
			return err_set(in->err, ERR_INVALID,
				       "unpack debug sections: section header %zu is damaged", i);
		if (i && i != in->names_index)
			status = move_section(in, section, &in->headers[i]);
	}
	in->headers[in->names_index].sh_offset = in->at;
	in->headers[in->names_index].sh_size = in->names.len;
	return status ? status : write_bytes(in, in->names.data, in->names.len);
}

static int write_header_table(struct inflater *in)
{
	bool is_64 = gelf_getclass(in->elf) == ELFCLASS64;
	size_t each = is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	char *table = mem_calloc(in->count, each);
	Elf_Data from = { .d_buf = table,
			  .d_type = ELF_T_SHDR,
			  .d_version = EV_CURRENT,
			  .d_size = in->count * each },
		 to = from;
	int status;

	for (size_t i = 0; i < in->count; i++) {
		const GElf_Shdr *header = &in->headers[i];

		if (is_64)
			((Elf64_Shdr *)table)[i] = *header;
		else
			((Elf32_Shdr *)table)[i] = (Elf32_Shdr){
				.sh_name = header->sh_name,
				.sh_type = header->sh_type,
				.sh_flags = (Elf32_Word)header->sh_flags,
				.sh_addr = (Elf32_Addr)header->sh_addr,
				.sh_offset = (Elf32_Off)header->sh_offset,
				.sh_size = (Elf32_Word)header->sh_size,
				.sh_link = header->sh_link,
				.sh_info = header->sh_info,
				.sh_addralign = (Elf32_Word)header->sh_addralign,
				.sh_entsize = (Elf32_Word)header->sh_entsize,
			};
	}
	if (!gelf_xlatetof(in->elf, &to, &from, (unsigned)elf_getident(in->elf, NULL)[EI_DATA])) {
		free(table);
		return err_set(in->err, ERR_INVALID, "unpack debug sections: %s", elf_errmsg(-1));
	}
	in->at = (in->at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	status = write_bytes(in, table, from.d_size);
	free(table);
	return status;
}

/* The file's header and its segments', with the new place of the section headers. */
static int write_start(struct inflater *in, uint64_t table_at)
{
	bool is_64 = gelf_getclass(in->elf) == ELFCLASS64;
	size_t len = is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	size_t field = is_64 ? offsetof(Elf64_Ehdr, e_shoff) : offsetof(Elf32_Ehdr, e_shoff);
	bool is_big = elf_getident(in->elf, NULL)[EI_DATA] == ELFDATA2MSB;
	uint8_t header[sizeof(Elf64_Ehdr)];

	memcpy(header, in->image.data, len);
	for (size_t i = 0, bytes = is_64 ? 8 : 4; i < bytes; i++)
		header[field + (is_big ? bytes - 1 - i : i)] = (uint8_t)(table_at >> 8 * i);
	in->at = 0;
	return write_bytes(in, header, len);
}

/* The segments' headers stay where they are, if that is behind the file's, as linkers do it. */
static int write_segments(struct inflater *in)
{
	GElf_Ehdr header;
	size_t count, bytes;
	uint64_t start;

	if (!gelf_getehdr(in->elf, &header) || elf_getphdrnum(in->elf, &count))
		return err_set(in->err, ERR_INVALID, "unpack debug sections: %s", elf_errmsg(-1));
	start = header.e_ehsize;
	bytes = count * header.e_phentsize;
	in->at = sizeof(Elf64_Ehdr);
	if (!count || header.e_phoff < start || header.e_phoff > ALIGNMENT * sizeof(Elf64_Ehdr) ||
	    header.e_phoff + bytes > in->image.len)
		return 0;
	in->at = header.e_phoff;
	return write_bytes(in, in->image.data + header.e_phoff, bytes);
}

int elf_inflate(Elf *elf, struct slice image, uint64_t max_bytes, int fd, struct err *err)
{
	struct inflater in = {
		.elf = elf, .image = image, .left = max_bytes, .fd = fd, .err = err
	};
	Elf_Data *names = NULL;
	uint64_t table_at;
	int status;

	if (elf_getshdrnum(elf, &in.count) || elf_getshdrstrndx(elf, &in.names_index) ||
	    in.count > SECTIONS_MAX || in.names_index >= in.count)
		return err_set(err, ERR_INVALID, "unpack debug sections: %s", elf_errmsg(-1));
	names = elf_rawdata(elf_getscn(elf, in.names_index), NULL);
	if (!names || !names->d_buf)
		return err_set(err, ERR_INVALID, "unpack debug sections: no section names");
	in.headers = mem_new_array(GElf_Shdr, in.count);
	in.out = mem_calloc(1, OUT_BYTES);
	strbuf_add(&in.names, names->d_buf, names->d_size);
	status = write_segments(&in);
	if (!status)
		status = move_sections(&in);
	if (!status)
		status = write_header_table(&in);
	table_at = in.at - in.count * (gelf_getclass(elf) == ELFCLASS64 ? sizeof(Elf64_Shdr)
									: sizeof(Elf32_Shdr));
	if (!status)
		status = write_start(&in, table_at);
	free(in.headers);
	free(in.out);
	strbuf_free(&in.names);
	return status;
}
