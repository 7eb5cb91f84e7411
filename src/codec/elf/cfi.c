/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/elf/cfi.h"

#include <dwarf.h>
#include <elf.h>

#define X86_LAST_REGISTER 15 /* r15 */
#define X86_RA 16	     /* the column of the return address */
#define ENTRY_HEAD_BYTES 256 /* of an FDE before its instructions; rarely more than 30 */
#define CIE_BYTES_MAX 4096
#define HEADER_TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)
#define HEADER_ENTRY_BYTES 8u
#define HEADER_BYTES_MAX 32u /* of .eh_frame_hdr before its table */

/* One CIE or FDE, without what is in it. */
struct entry {
	uint64_t offset, id_at, end; /* in the section */
	bool is_64;		     /* the length was of 64 bits */
};

struct fde {
	uint64_t start, end; /* addresses */
	uint64_t instructions_at, instructions_end;
	const struct cfi_cie *cie;
};

/* Bytes of an entry in view, and where they are. */
struct view {
	const uint8_t *start, *at, *end;
	uint64_t address; /* of `start` */
};

static uint64_t view_address(const struct view *view)
{
	return view->address + (uint64_t)(view->at - view->start);
}

static bool take_byte(struct view *view, uint8_t *ret)
{
	if (view->at == view->end)
		return false;
	*ret = *view->at++;
	return true;
}

int cfi_open(struct cfi *cfi, enum cfi_kind kind, uint16_t machine,
	     const struct section_reader *section, struct err *err)
{
	struct section_reader *readers[] = { &cfi->fdes, &cfi->cies };

	if (machine == EM_X86_64)
		cfi->registers = (struct cfi_registers){
			.ra = X86_RA,
			.fp = UNWIND_X86_FP,
			.sp = UNWIND_X86_SP,
			.bx = UNWIND_X86_BX,
			.last = X86_LAST_REGISTER,
		};
	else if (machine == EM_AARCH64)
		cfi->registers = (struct cfi_registers){
			.ra = UNWIND_ARM64_LR,
			.fp = UNWIND_ARM64_FP,
			.sp = UNWIND_ARM64_SP,
			.bx = UNWIND_ARM64_LR,
			.last = UNWIND_ARM64_SP,
			.is_arm64 = true,
		};
	else
		return err_set(err, ERR_UNSUPPORTED,
			       "read call frame information of \"%s\": machine %u is not supported",
			       section->name, machine);
	cfi->kind = kind;
	cfi->work_left_bytes = CFI_WORK_BYTES_MAX;
	cfi->counts = (struct cfi_counts){ 0 };
	for (size_t i = 0; i < CFI_CIES_CACHED; i++)
		cfi->cache[i].offset = UINT64_MAX;
	for (size_t i = 0; i < 2; i++) {
		if (section->fd < 0)
			section_reader_open_memory(readers[i],
						   slice_from(section->memory, section->size),
						   section->address, section->name);
		else
			section_reader_open_file(readers[i], section->fd, section->file_offset,
						 section->size, section->address, section->name);
	}
	return 0;
}

/* 0: an entry, 1: a zero length, 2: nonsense, or the section's end; or a negative code. */
enum entry_kind { ENTRY_FOUND, ENTRY_TERMINATOR, ENTRY_NONE };

static int read_entry(struct section_reader *reader, uint64_t offset, struct entry *ret,
		      struct err *err)
{
	const uint8_t *bytes;
	size_t have;
	uint64_t length, from;
	int status = section_reader_view_some(reader, offset, 12, &bytes, &have, err);

	if (status)
		return status;
	if (have < 4)
		return ENTRY_NONE;
	length = section_u32(bytes);
	from = offset + 4;
	ret->is_64 = length == UINT32_MAX;
	if (ret->is_64) {
		if (have < 12)
			return ENTRY_NONE;
		length = section_u64(bytes + 4);
		from = offset + 12;
	}
	if (!length)
		return ENTRY_TERMINATOR;
	if (length > reader->size - from)
		return ENTRY_NONE;
	ret->offset = offset;
	ret->id_at = from;
	ret->end = from + length;
	return ENTRY_FOUND;
}

/* ---- CIE ---- */

/* After the letters' order in the string; 'z' came first, so unknown data can be skipped. */
static bool read_augmentation_data(struct view *view, const char *letters, struct cfi_cie *cie)
{
	uint64_t ignored;
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'L':
			if (!take_byte(view, &encoding))
				return false;
			break;
		case 'R':
			if (!take_byte(view, &cie->address_encoding))
				return false;
			break;
		case 'P': /* may be indirect; its value is of no use here */
			if (!take_byte(view, &encoding) ||
			    !cfi_read_pointer(&view->at, view->end, encoding & 0x0f, 0, 0,
					      &ignored))
				return false;
			break;
		case 'S':
			cie->rule_flags |= UNWIND_RULE_SIGNAL;
			break;
		case 'B': /* signs with the B key: no difference to who reads the stack */
		case 'G': /* memory tags on the stack: the same */
			break;
		default:
			return false;
		}
	}
	return true;
}

static bool read_augmentation(struct view *view, const char *letters, struct cfi_cie *cie)
{
	struct view data = *view;
	uint64_t len;

	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	cie->has_augmentation_data = true;
	if (!cfi_read_uleb(&view->at, view->end, &len) || len > (size_t)(view->end - view->at))
		return false;
	data = *view;
	data.end = view->at + len;
	view->at += len;
	return read_augmentation_data(&data, letters + 1, cie);
}

/* The head of a CIE, from its version on; `view` ends up at the instructions. */
static bool read_cie_head(const struct cfi *cfi, struct view *view, struct cfi_cie *cie)
{
	const char *letters;
	const uint8_t *nul;
	uint8_t version, byte;
	uint64_t ra;

	if (!take_byte(view, &version) || (version != 1 && version != 3 && version != 4))
		return false;
	nul = memchr(view->at, 0, (size_t)(view->end - view->at));
	if (!nul)
		return false;
	letters = (const char *)view->at;
	view->at = nul + 1;
	if (!strcmp(letters, "eh")) { /* of GCC 2: one pointer */
		letters = "";
		if (view->end - view->at < 8)
			return false;
		view->at += 8;
	}
	if (version == 4) { /* the sizes of an address and of a segment selector */
		if (!take_byte(view, &byte) || byte != 8 || !take_byte(view, &byte) || byte)
			return false;
	}
	if (!cfi_read_uleb(&view->at, view->end, &cie->code_align) ||
	    !cfi_read_sleb(&view->at, view->end, &cie->data_align))
		return false;
	if (version == 1) {
		if (!take_byte(view, &byte))
			return false;
		ra = byte;
	} else if (!cfi_read_uleb(&view->at, view->end, &ra)) {
		return false;
	}
	return ra == cfi->registers.ra && read_augmentation(view, letters, cie);
}

static bool is_cie_id(const struct cfi *cfi, const struct entry *entry, const uint8_t *id)
{
	if (cfi->kind == CFI_EH_FRAME)
		return section_u32(id) == 0;
	return entry->is_64 ? section_u64(id) == UINT64_MAX : section_u32(id) == UINT32_MAX;
}

/* In .eh_frame it has 32 bits even where the length has 64. */
static size_t id_bytes(const struct cfi *cfi, const struct entry *entry)
{
	return cfi->kind == CFI_DEBUG_FRAME && entry->is_64 ? 8 : 4;
}

static int parse_cie(struct cfi *cfi, const struct entry *entry, struct cfi_cie *cie,
		     struct err *err)
{
	size_t id_len = id_bytes(cfi, entry), len = entry->end - entry->id_at;
	struct cfi_program program = { .registers = &cfi->registers, .reader = &cfi->cies };
	enum cfi_program_end end;
	struct view view = { 0 };
	int status;

	if (len <= id_len || len > CIE_BYTES_MAX || len > cfi->work_left_bytes)
		return 0;
	cfi->work_left_bytes -= len;
	status = section_reader_view(&cfi->cies, entry->id_at, len, &view.start, err);
	if (status)
		return status;
	view.at = view.start + id_len;
	view.end = view.start + len;
	view.address = cfi->cies.address + entry->id_at;
	if (!is_cie_id(cfi, entry, view.start) || !read_cie_head(cfi, &view, cie))
		return 0;
	program.at = entry->id_at + (uint64_t)(view.at - view.start);
	program.end = entry->end;
	program.code_align = cie->code_align;
	program.data_align = cie->data_align;
	cfi_state_init(&cie->state, &cfi->registers);
	status = cfi_program_run(&program, &cie->state, NULL, &end, err);
	cie->is_bad = status || end == CFI_PROGRAM_MALFORMED;
	return status;
}

static int find_cie(struct cfi *cfi, uint64_t offset, const struct cfi_cie **ret, struct err *err)
{
	struct cfi_cie *cie = &cfi->cache[(offset >> 3) % CFI_CIES_CACHED];
	struct entry entry;
	int status;

	if (cie->offset == offset) {
		*ret = cie;
		return 0;
	}
	*cie = (struct cfi_cie){ .offset = UINT64_MAX, .is_bad = true };
	status = read_entry(&cfi->cies, offset, &entry, err);
	if (status == ENTRY_FOUND)
		status = parse_cie(cfi, &entry, cie, err);
	if (status < 0)
		return status;
	cie->offset = offset;
	*ret = cie;
	return 0;
}

/* ---- FDE ---- */

/* Where the CIE of an FDE is, from its pointer; false: not in the section. */
static bool cie_offset(const struct cfi *cfi, const struct entry *entry, const uint8_t *id,
		       uint64_t *ret)
{
	uint64_t pointer = id_bytes(cfi, entry) == 8 ? section_u64(id) : section_u32(id);

	if (cfi->kind == CFI_EH_FRAME) { /* back from the pointer itself */
		if (pointer > entry->id_at)
			return false;
		*ret = entry->id_at - pointer;
		return true;
	}
	*ret = pointer;
	return pointer < cfi->fdes.size;
}

static bool read_fde_head(struct view *view, const struct cfi_cie *cie, struct fde *fde)
{
	uint64_t range, len;

	if (!cfi_read_pointer(&view->at, view->end, cie->address_encoding, view_address(view), 0,
			      &fde->start) ||
	    !cfi_read_pointer(&view->at, view->end, cie->address_encoding & 0x0f, 0, 0, &range) ||
	    __builtin_add_overflow(fde->start, range, &fde->end))
		return false;
	if (!cie->has_augmentation_data)
		return true;
	if (!cfi_read_uleb(&view->at, view->end, &len) || len > (size_t)(view->end - view->at))
		return false;
	view->at += len;
	return true;
}

/* FDE_NONE: it is a CIE, or its function was discarded when linking. */
enum fde_kind { FDE_FOUND, FDE_NONE, FDE_MALFORMED };

static int read_fde(struct cfi *cfi, const struct entry *entry, struct fde *ret, struct err *err)
{
	size_t have, id_len = id_bytes(cfi, entry), len = entry->end - entry->id_at;
	struct view view = { 0 };
	uint64_t offset;
	int status;

	if (len > ENTRY_HEAD_BYTES)
		len = ENTRY_HEAD_BYTES;
	status = section_reader_view_some(&cfi->fdes, entry->id_at, len, &view.start, &have, err);
	if (status)
		return status;
	if (have < id_len)
		return FDE_MALFORMED;
	if (is_cie_id(cfi, entry, view.start))
		return FDE_NONE;
	view.at = view.start + id_len;
	view.end = view.start + have;
	view.address = cfi->fdes.address + entry->id_at;
	if (!cie_offset(cfi, entry, view.start, &offset))
		return FDE_MALFORMED;
	status = find_cie(cfi, offset, &ret->cie, err);
	if (status)
		return status;
	if (ret->cie->is_bad || !read_fde_head(&view, ret->cie, ret))
		return FDE_MALFORMED;
	ret->instructions_at = entry->id_at + (uint64_t)(view.at - view.start);
	ret->instructions_end = entry->end;
	return ret->start && ret->start != ret->end ? FDE_FOUND : FDE_NONE;
}

static int list_entry(struct cfi *cfi, const struct entry *entry,
		      const struct unwind_function_sink *sink, struct err *err)
{
	struct fde fde;
	int status = read_fde(cfi, entry, &fde, err);

	if (status == FDE_FOUND) {
		cfi->counts.functions++;
		return sink->function(sink->context, fde.start, fde.end, entry->offset);
	}
	if (status == FDE_MALFORMED)
		cfi->counts.malformed++;
	return status < 0 ? status : 0;
}

int cfi_list(struct cfi *cfi, bool to_terminator, const struct unwind_function_sink *sink,
	     struct err *err)
{
	uint64_t offset = 0;

	while (offset < cfi->fdes.size) {
		struct entry entry;
		int status = read_entry(&cfi->fdes, offset, &entry, err);

		if (status < 0)
			return status;
		if (status == ENTRY_TERMINATOR && !to_terminator) {
			offset += 4; /* linkers leave some between what they joined */
			continue;
		}
		if (status != ENTRY_FOUND) {
			cfi->counts.malformed += status == ENTRY_NONE;
			return 0;
		}
		status = list_entry(cfi, &entry, sink, err);
		if (status)
			return status;
		offset = entry.end;
	}
	return 0;
}

/* ---- .eh_frame_hdr ---- */

struct header {
	uint64_t eh_frame, count, table_at;
	bool has_table;
};

static int read_header(struct section_reader *reader, struct header *ret, struct err *err)
{
	struct view view = { 0 };
	size_t have;
	int status = section_reader_view_some(reader, 0, HEADER_BYTES_MAX, &view.start, &have, err);

	if (status)
		return status;
	view.at = view.start + 4; /* version and three encodings */
	view.end = view.start + have;
	view.address = reader->address;
	if (have < 4 || view.start[0] != 1 ||
	    !cfi_read_pointer(&view.at, view.end, view.start[1], view_address(&view),
			      reader->address, &ret->eh_frame))
		return err_set(err, ERR_INVALID, "read .eh_frame_hdr of \"%s\": unknown form",
			       reader->name);
	ret->has_table = view.start[3] == HEADER_TABLE_ENCODING &&
			 cfi_read_pointer(&view.at, view.end, view.start[2], view_address(&view),
					  reader->address, &ret->count);
	ret->table_at = (uint64_t)(view.at - view.start);
	return 0;
}

int cfi_header_target(struct section_reader *header, uint64_t *ret_address, struct err *err)
{
	struct header head;
	int status = read_header(header, &head, err);

	if (!status)
		*ret_address = head.eh_frame;
	return status;
}

int cfi_list_by_header(struct cfi *cfi, struct section_reader *header,
		       const struct unwind_function_sink *sink, struct err *err)
{
	struct header head;
	int status = read_header(header, &head, err);

	if (status)
		return status;
	if (!head.has_table)
		return err_set(err, ERR_UNSUPPORTED, "read .eh_frame_hdr of \"%s\": no table",
			       header->name);
	if (head.count > (header->size - head.table_at) / HEADER_ENTRY_BYTES)
		head.count = (header->size - head.table_at) / HEADER_ENTRY_BYTES;
	for (uint64_t i = 0; i < head.count; i++) {
		struct entry entry;
		const uint8_t *bytes;
		uint64_t address;

		status = section_reader_view(header, head.table_at + i * HEADER_ENTRY_BYTES,
					     HEADER_ENTRY_BYTES, &bytes, err);
		if (status)
			return status;
		address = header->address + (uint64_t)(int64_t)(int32_t)section_u32(bytes + 4);
		/* Below the section it wraps, and is over the size. */
		status = read_entry(&cfi->fdes, address - cfi->fdes.address, &entry, err);
		if (status == ENTRY_FOUND)
			status = list_entry(cfi, &entry, sink, err);
		else if (status > 0)
			status = 0, cfi->counts.malformed++;
		if (status)
			return status;
	}
	return 0;
}

int cfi_rows(struct cfi *cfi, uint64_t cookie, const struct unwind_row_sink *sink, struct err *err)
{
	struct cfi_program program = { .registers = &cfi->registers, .reader = &cfi->fdes };
	enum cfi_program_end end = CFI_PROGRAM_DONE;
	struct cfi_state state;
	struct entry entry;
	struct fde fde;
	uint64_t len;
	int status = read_entry(&cfi->fdes, cookie, &entry, err);

	if (status == ENTRY_FOUND)
		status = read_fde(cfi, &entry, &fde, err);
	if (status < 0)
		return status;
	if (status != FDE_FOUND) /* neither is 0: the file has changed since it was listed */
		return err_set(err, ERR_INVALID,
			       "read call frame information of \"%s\": no function at %llu",
			       cfi->fdes.name, (unsigned long long)cookie);
	len = fde.instructions_end - fde.instructions_at;
	if (len > cfi->work_left_bytes)
		return err_set(err, ERR_LIMIT,
			       "read call frame information of \"%s\": over %llu bytes of it",
			       cfi->fdes.name, CFI_WORK_BYTES_MAX);
	cfi->work_left_bytes -= len;
	program.at = fde.instructions_at;
	program.end = fde.instructions_end;
	program.code_align = fde.cie->code_align;
	program.data_align = fde.cie->data_align;
	program.pointer_encoding = fde.cie->address_encoding;
	program.initial = &fde.cie->state;
	program.address = fde.start;
	program.address_end = fde.end;
	program.rule_flags = fde.cie->rule_flags;
	state = fde.cie->state;
	status = cfi_program_run(&program, &state, sink, &end, err);
	cfi->counts.malformed += end == CFI_PROGRAM_MALFORMED;
	return status;
}
