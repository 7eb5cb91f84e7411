/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form: crates/environ/src/obj.rs and crates/wasmtime/src/compile.rs of wasmtime. How functions
 * begin and end: cranelift/codegen/src/isa/x64/abi.rs, winch/codegen/src/isa/x64/masm.rs. wasmtime
 * refuses code without frame pointers (preserve_frame_pointers in crates/wasmtime/src/engine.rs)
 * since version 1. Functions leave their frame by `pop %rbp` and a return; tail calls, which are
 * since 12, do it otherwise before 21.
 */
#include "agent/jit/wasm_image.h"

#include <elf.h>
#include <stdlib.h>

#include "agent/bpf/shared.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/order/bisect.h"

#define PAGE_BYTES 4096u
#define OSABI_WASMTIME 200
#define SECTION_NAME_BYTES 32u /* longer ones are not asked for */
#define VERSION_BYTES_MAX 16u  /* in .wasmtime.engine, behind a zero and a length */
#define TAIL_CALLS_SINCE 12u   /* version */
#define FRAMED_SINCE 21u       /* ... that leave their frame as a return does */
#define PIECE_BYTES ((size_t)64 * 1024)
#define PIECE_OVERLAP 32u    /* what is looked for is shorter */
#define FRAME_MOVE_BYTES 64u /* that move a frame, at most */

#define POP_FP 0x5d /* pop %rbp */
#define CODE_RETURN 0xc3
#define CODE_RETURN_BYTES 0xc2
#define SYMBOLS_IN_PIECE (PIECE_BYTES / sizeof(Elf64_Sym))

static const uint8_t push_fp[] = { 0x55, 0x48, 0x89, 0xe5 };	/* push %rbp; mov %rsp,%rbp */
static const uint8_t move_fp[] = { 0x48, 0x89, 0xe5 };		/* mov %rsp,%rbp */
static const uint8_t restore_fp[] = { 0x48, 0x89, 0xec, 0x5d }; /* mov %rbp,%rsp; pop %rbp */

/* A reading under way. */
struct reading {
	const struct memory_reader *memory;
	struct wasm_image *image;
	Elf64_Ehdr header;
	Elf64_Shdr sections[WASM_IMAGE_SECTIONS_MAX];
	const Elf64_Shdr *text, *symbols, *names;
	char *name_text;
	uint32_t *starts; /* of functions, from `text` on */
	size_t starts_count, starts_capacity;
};

/* ---- finding ---- */

static bool is_header(const Elf64_Ehdr *header)
{
	static const uint8_t ident[EI_PAD] = {
		ELFMAG0,    ELFMAG1,	 ELFMAG2,    ELFMAG3,
		ELFCLASS64, ELFDATA2LSB, EV_CURRENT, OSABI_WASMTIME
	};

	return !memcmp(header->e_ident, ident, sizeof(ident)) && header->e_machine == EM_X86_64 &&
	       header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum &&
	       header->e_shnum <= WASM_IMAGE_SECTIONS_MAX && header->e_shoff &&
	       header->e_shstrndx < header->e_shnum;
}

/* A section's bytes are in the image, and not more than so many. */
static bool fits(const Elf64_Shdr *section, uint64_t bytes_max)
{
	return section->sh_size <= bytes_max && section->sh_offset <= UINT32_MAX;
}

static bool is_named(const struct reading *reading, const Elf64_Shdr *section, const char *name)
{
	const Elf64_Shdr *texts = &reading->sections[reading->header.e_shstrndx];
	char text[SECTION_NAME_BYTES];
	size_t len = strlen(name) + 1;

	return fits(texts, PIECE_BYTES) && section->sh_name < texts->sh_size &&
	       texts->sh_size - section->sh_name >= len &&
	       memory_read(reading->memory,
			   reading->image->start + texts->sh_offset + section->sh_name, text,
			   len) &&
	       !memcmp(text, name, len);
}

/* Reads the headers of the sections; sets proof. */
static bool read_sections(struct reading *reading)
{
	struct wasm_image *image = reading->image;
	Elf64_Ehdr *header = &reading->header;
	size_t bytes;

	if (!memory_read(reading->memory, image->start, header, sizeof(*header)) ||
	    !is_header(header) || header->e_shoff > UINT32_MAX)
		return false;
	bytes = header->e_shnum * sizeof(*reading->sections);
	if (!memory_read(reading->memory, image->start + header->e_shoff, reading->sections, bytes))
		return false;
	image->proof =
		hash_mix(hash_bytes(header, sizeof(*header)), hash_bytes(reading->sections, bytes));
	return true;
}

static const Elf64_Shdr *find_section(const struct reading *reading, const char *name)
{
	for (uint32_t i = 0; i < reading->header.e_shnum; i++)
		if (reading->sections[i].sh_type == SHT_PROGBITS &&
		    is_named(reading, &reading->sections[i], name))
			return &reading->sections[i];
	return NULL;
}

/* The header is at the image's start, and .text is the memory from `start` on. */
static bool is_image(struct reading *reading, uint64_t start, uint64_t end)
{
	struct wasm_image *image = reading->image;
	const Elf64_Shdr *text;

	if (!read_sections(reading))
		return false;
	text = reading->text = find_section(reading, ".text");
	if (!text || !(text->sh_flags & SHF_EXECINSTR) || text->sh_offset != start - image->start ||
	    !text->sh_size || text->sh_size > end - start ||
	    text->sh_size > WASM_IMAGE_TEXT_BYTES_MAX)
		return false;
	image->text = start;
	image->text_bytes = text->sh_size;
	return true;
}

static bool find_image(struct reading *reading, uint64_t start, uint64_t end)
{
	struct wasm_image *image = reading->image;

	for (uint64_t page = 1; page <= WASM_IMAGE_PAGES_MAX && start < end; page++) {
		uint32_t magic;

		image->start = start - page * PAGE_BYTES;
		if (start % PAGE_BYTES || image->start > start ||
		    !memory_read(reading->memory, image->start, &magic, sizeof(magic)))
			return false;
		if (!memcmp(&magic, ELFMAG, SELFMAG) && is_image(reading, start, end))
			return true;
	}
	return false;
}

/* ---- functions and their names ---- */

static bool find_symbols(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
		const Elf64_Shdr *section = &reading->sections[i];

		if (section->sh_type != SHT_SYMTAB || section->sh_entsize != sizeof(Elf64_Sym) ||
		    !fits(section, WASM_IMAGE_SYMBOLS_MAX * sizeof(Elf64_Sym)) ||
		    section->sh_link >= reading->header.e_shnum)
			continue;
		reading->symbols = section;
		reading->names = &reading->sections[section->sh_link];
		return fits(reading->names, WASM_IMAGE_NAMES_BYTES_MAX) && reading->names->sh_size;
	}
	return false;
}

static void add_name(struct reading *reading, struct code_map_builder *builder,
		     const Elf64_Sym *symbol)
{
	struct wasm_image *image = reading->image;
	uint64_t start = image->text + symbol->st_value, dropped = 0;
	const char *name = reading->name_text + symbol->st_name;
	struct code_place place = { .name = slice_of(name) };
	struct code_map *map;

	if (code_map_builder_add(builder, start, (uint32_t)symbol->st_size, &place))
		return;
	map = code_map_build(builder, image->names, &dropped);
	code_map_unref(image->names);
	image->names = map;
	code_map_builder_clear(builder);
	code_map_builder_add(builder, start, (uint32_t)symbol->st_size, &place);
}

/* Functions lie within the code, and their names within those read. */
static void take_symbol(struct reading *reading, struct code_map_builder *builder,
			const Elf64_Sym *symbol)
{
	const struct wasm_image *image = reading->image;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !symbol->st_size ||
	    symbol->st_shndx != reading->text - reading->sections ||
	    symbol->st_value >= image->text_bytes ||
	    symbol->st_size > image->text_bytes - symbol->st_value ||
	    symbol->st_name >= reading->names->sh_size)
		return;
	add_name(reading, builder, symbol);
	mem_grow(reading->starts, reading->starts_count, reading->starts_capacity);
	reading->starts[reading->starts_count++] = (uint32_t)symbol->st_value;
}

static bool read_names(struct reading *reading)
{
	uint64_t start = reading->image->start;
	uint64_t count = reading->symbols->sh_size / sizeof(Elf64_Sym), at = 0, dropped = 0;
	size_t name_bytes = (size_t)reading->names->sh_size;
	struct code_map_builder builder = { 0 };
	Elf64_Sym *piece = mem_calloc(SYMBOLS_IN_PIECE, sizeof(*piece));
	struct code_map *map;
	bool is_read;

	reading->name_text = mem_calloc(name_bytes + 1, 1);
	is_read = memory_read(reading->memory, start + reading->names->sh_offset,
			      reading->name_text, name_bytes);
	for (; is_read && at < count; at += SYMBOLS_IN_PIECE) {
		size_t some = count - at < SYMBOLS_IN_PIECE ? count - at : SYMBOLS_IN_PIECE;

		is_read = memory_read(reading->memory,
				      start + reading->symbols->sh_offset + at * sizeof(*piece),
				      piece, some * sizeof(*piece));
		for (size_t i = 0; is_read && i < some; i++)
			take_symbol(reading, &builder, &piece[i]);
	}
	map = code_map_build(&builder, reading->image->names, &dropped);
	code_map_unref(reading->image->names);
	reading->image->names = map;
	code_map_builder_free(&builder);
	free(piece);
	return is_read;
}

/* ---- blocks ---- */

static int by_number(const void *a, const void *b)
{
	uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

	return (first > second) - (first < second);
}

/* Of the code from `into` to `end`. */
static void spoil(struct wasm_image *image, uint64_t into, uint64_t end)
{
	for (uint64_t i = into >> CODE_BLOCK_SHIFT;
	     i < image->blocks && i << CODE_BLOCK_SHIFT < end; i++)
		image->framed[i] = 0;
}

/*
 * A function that calls others with more arguments than it has, as its last act, first moves what
 * it has pushed: `sub $N,%rsp; mov %rsp,%rbp`.
 */
static bool moves_frame(const uint8_t *code, size_t len)
{
	size_t at = sizeof(push_fp);

	if (len >= at + 3 && code[at] == 0x48 && code[at + 1] == 0x83 && code[at + 2] == 0xec)
		at += 4;
	else if (len >= at + 3 && code[at] == 0x48 && code[at + 1] == 0x81 && code[at + 2] == 0xec)
		at += 7;
	else
		return false;
	return len >= at + sizeof(move_fp) && !memcmp(code + at, move_fp, sizeof(move_fp));
}

/* A function that begins otherwise is unknown up to the next one. */
static void look_at_start(struct reading *reading, size_t index, const uint8_t *code, size_t len)
{
	uint64_t start = reading->starts[index], next = reading->image->text_bytes;

	while (index + 1 < reading->starts_count && reading->starts[index] == start)
		index++;
	if (reading->starts[index] != start)
		next = reading->starts[index];
	if (len < sizeof(push_fp) || memcmp(code, push_fp, sizeof(push_fp)))
		spoil(reading->image, start, next);
	else if (moves_frame(code, len))
		spoil(reading->image, start, start + FRAME_MOVE_BYTES);
}

/* A return or a jump comes next, which the return address is the innermost word for. */
static bool is_end(const uint8_t *code, size_t len)
{
	return code[0] == CODE_RETURN || code[0] == CODE_RETURN_BYTES || code[0] == 0xe9 ||
	       code[0] == 0xff || (code[0] == 0x41 && len > 1 && code[1] == 0xff);
}

/* The code behind `pop %rbp`, which is at `at` of the piece. */
static void look_at_pop(struct wasm_image *image, uint64_t into, const uint8_t *code, size_t at,
			size_t len, size_t own)
{
	bool is_restore = at >= 3 && !memcmp(code + at - 3, restore_fp, sizeof(restore_fp));
	size_t next = at + 1;

	if (next == len || (into && next < sizeof(restore_fp)) || next >= own + sizeof(restore_fp))
		return; /* other pieces have it whole */
	if (is_restore && !is_end(code + next, len - next))
		spoil(image, into + next, into + next + FRAME_MOVE_BYTES);
	if (!is_restore && code[next] != CODE_RETURN && code[next] != CODE_RETURN_BYTES)
		return;
	mem_grow(image->ends, image->ends_count, image->ends_capacity);
	image->ends[image->ends_count++] = (uint32_t)(into + next);
}

/* Of the code from `into` on; what begins in its first `own` bytes is looked at. */
static void look_at_piece(struct reading *reading, uint64_t into, const uint8_t *code, size_t len,
			  size_t own, size_t *next_start)
{
	const uint8_t *at = code, *end = code + len;

	for (; *next_start < reading->starts_count && reading->starts[*next_start] < into + own;
	     (*next_start)++) {
		uint64_t at_start = reading->starts[*next_start] - into;

		look_at_start(reading, *next_start, code + at_start, len - at_start);
	}
	for (; (at = memchr(at, POP_FP, (size_t)(end - at))); at++)
		look_at_pop(reading->image, into, code, (size_t)(at - code), len, own);
}

static bool read_text(struct reading *reading)
{
	struct wasm_image *image = reading->image;
	uint8_t *piece = mem_calloc(PIECE_BYTES + PIECE_OVERLAP, 1);
	size_t next_start = 0;
	bool is_read = true;

	for (uint64_t into = 0; is_read && into < image->text_bytes; into += PIECE_BYTES) {
		uint64_t left = image->text_bytes - into;
		size_t len = left < PIECE_BYTES + PIECE_OVERLAP ? (size_t)left
								: PIECE_BYTES + PIECE_OVERLAP;

		is_read = memory_read(reading->memory, image->text + into, piece, len);
		if (is_read && image->ends_count <= WASM_IMAGE_ENDS_MAX)
			look_at_piece(reading, into, piece, len, PIECE_BYTES, &next_start);
	}
	free(piece);
	if (image->ends_count > WASM_IMAGE_ENDS_MAX)
		image->blocks = 0;
	return is_read;
}

static unsigned int number_of(const char *text, size_t len)
{
	unsigned int number = 0;

	for (size_t i = 0; i < len && text[i] >= '0' && text[i] <= '9' && number < 100000; i++)
		number = 10 * number + (unsigned int)(text[i] - '0');
	return number;
}

/* What compiled it; 0 = it does not say. */
static unsigned int read_version(const struct reading *reading)
{
	const Elf64_Shdr *section = find_section(reading, ".wasmtime.engine");
	uint8_t text[2 + VERSION_BYTES_MAX] = { 0 };
	size_t len;

	if (!section || section->sh_size < sizeof(text) || !fits(section, PIECE_BYTES) ||
	    !memory_read(reading->memory, reading->image->start + section->sh_offset, text,
			 sizeof(text)))
		return 0;
	len = text[1] < VERSION_BYTES_MAX ? text[1] : VERSION_BYTES_MAX;
	return text[0] ? 0 : number_of((const char *)text + 2, len);
}

/* False when the code could not be read. */
static bool read_blocks(struct reading *reading)
{
	struct wasm_image *image = reading->image;
	unsigned int version = read_version(reading);

	if (!version || (version >= TAIL_CALLS_SINCE && version < FRAMED_SINCE) ||
	    !reading->starts_count)
		return true;
	image->blocks = (image->text_bytes + CODE_BLOCK_BYTES - 1) >> CODE_BLOCK_SHIFT;
	image->framed = mem_calloc(image->blocks, 1);
	memset(image->framed, 1, image->blocks);
	qsort(reading->starts, reading->starts_count, sizeof(*reading->starts), by_number);
	return read_text(reading);
}

static struct reading *reading_new(const struct memory_reader *memory, struct wasm_image *image)
{
	struct reading *reading = mem_new(struct reading);

	reading->memory = memory;
	reading->image = image;
	return reading;
}

static void reading_free(struct reading *reading)
{
	free(reading->name_text);
	free(reading->starts);
	free(reading);
}

struct wasm_image *wasm_image_read(const struct memory_reader *memory, uint64_t start, uint64_t end)
{
	struct wasm_image *image = mem_new(struct wasm_image);
	struct reading *reading = reading_new(memory, image);
	bool is_read = find_image(reading, start, end) && find_symbols(reading) &&
		       read_names(reading) && read_blocks(reading);

	atomic_init(&image->references, 1);
	reading_free(reading);
	if (is_read && wasm_image_is_there(memory, image))
		return image;
	wasm_image_unref(image);
	return NULL;
}

bool wasm_image_is_there(const struct memory_reader *memory, const struct wasm_image *image)
{
	struct wasm_image now = { .start = image->start };
	struct reading *reading = reading_new(memory, &now);
	bool is_there = read_sections(reading) && now.proof == image->proof;

	reading_free(reading);
	return is_there;
}

static bool is_end_of_function(const struct wasm_image *image, uint32_t into)
{
	size_t at = bisect(0, image->ends_count, i, image->ends[i] < into);

	return at < image->ends_count && image->ends[at] == into;
}

bool wasm_image_is_framed(const struct wasm_image *image, uint64_t address, bool is_innermost)
{
	uint64_t into = address - image->text, start;

	if (into >= image->text_bytes || into >> CODE_BLOCK_SHIFT >= image->blocks ||
	    !image->framed[into >> CODE_BLOCK_SHIFT])
		return false;
	if (!is_innermost)
		return true;
	return code_map_find_start(image->names, address, &start) &&
	       address - start >= sizeof(push_fp) && !is_end_of_function(image, (uint32_t)into);
}

struct wasm_image *wasm_image_ref(struct wasm_image *image)
{
	atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
	return image;
}

void wasm_image_unref(struct wasm_image *image)
{
	if (!image || atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel) > 1)
		return;
	code_map_unref(image->names);
	free(image->framed);
	free(image->ends);
	free(image);
}

size_t wasm_image_bytes(const struct wasm_image *image)
{
	return sizeof(*image) + code_map_bytes(image->names) + image->blocks +
	       image->ends_capacity * sizeof(*image->ends);
}

struct slice wasm_image_function(struct slice symbol)
{
	static const struct slice prefix = SLICE_LITERAL("wasm["),
				  middle = SLICE_LITERAL("]::function[");
	size_t at;

	if (!slice_starts_with(symbol, prefix))
		return symbol;
	for (at = prefix.len; at < symbol.len && symbol.data[at] >= '0' && symbol.data[at] <= '9';)
		at++;
	if (!slice_starts_with(slice_tail(symbol, at), middle))
		return symbol;
	for (at += middle.len; at < symbol.len && symbol.data[at] >= '0' && symbol.data[at] <= '9';)
		at++;
	if (!slice_starts_with(slice_tail(symbol, at), SLICE_LITERAL("]::")) ||
	    symbol.len == at + 3)
		return symbol;
	return slice_tail(symbol, at + 3);
}
