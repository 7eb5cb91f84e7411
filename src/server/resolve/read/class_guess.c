/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/read/class_guess.h"

#include <gelf.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"
#include "codec/elf/section_reader.h"
#include "server/resolve/display/demangle.h"
#include "server/resolve/read/elf_pointers.h"

#define CLASSES_MAX ((size_t)1 << 20)
#define METHODS_MAX ((size_t)8 << 20)
#define BASES_MAX 256u		     /* of one class */
#define DEPTH_MAX 64u		     /* of a hierarchy */
#define STEPS_MAX ((size_t)64 << 20) /* from classes to their bases, in all */
#define EMPTY_MAX 64u		     /* methods that are left out at the start of a table */
#define TABLE_METHODS_MAX 1024u
#define OBJECT_BYTES_MAX ((int64_t)1 << 24)
#define HEIRS_MAX 1024u /* classes that share a method */
#define HEIRS_MIN 3u	/* of a class without a table */
#define NAME_BYTES_MAX 4096u
#define SHOWN_BYTES_MAX 512u
#define WORD 8u
#define CLASS_NONE UINT32_MAX

/* How a record of type information goes on behind the name. */
enum type_kind { TYPE_ALONE, TYPE_ONE_BASE, TYPE_SEVERAL_BASES, TYPE_KINDS };

struct class
{
	uint64_t type;	   /* address of the record */
	struct slice name; /* mangled, without "_ZTI" */
	size_t base_first, bases_count;
	enum type_kind kind;
	bool has_table, is_cut;
	uint32_t heirs; /* classes with tables that name it as a base */
};

/* A function in the table of a class. */
struct method {
	uint64_t function;
	uint32_t class;
};

struct hierarchy {
	const struct elf_pointers *pointers;
	uint64_t kinds[TYPE_KINDS]; /* what records of a kind begin with; 0: not known */
	struct class *classes;	    /* by address of the record */
	size_t count, capacity;
	uint32_t *bases; /* classes, or CLASS_NONE for one of another file */
	size_t bases_count, bases_capacity;
	struct method *methods;
	size_t methods_count, methods_capacity;
	size_t steps;
};

static const char *const kind_classes[TYPE_KINDS] = {
	[TYPE_ALONE] = "N10__cxxabiv117__class_type_infoE",
	[TYPE_ONE_BASE] = "N10__cxxabiv120__si_class_type_infoE",
	[TYPE_SEVERAL_BASES] = "N10__cxxabiv121__vmi_class_type_infoE",
};

/* The kind whose methods a record's first pointer leads to, or TYPE_KINDS. */
static enum type_kind kind_of(const struct hierarchy *hierarchy, const struct elf_pointer *pointer)
{
	for (int kind = TYPE_ALONE; kind < TYPE_KINDS; kind++) {
		const char *table = "_ZTV";

		if (pointer->symbol) {
			if (pointer->value == 2 * WORD &&
			    !strncmp(pointer->symbol, table, strlen(table)) &&
			    !strcmp(pointer->symbol + strlen(table), kind_classes[kind]))
				return (enum type_kind)kind;
		} else if (hierarchy->kinds[kind] && pointer->value == hierarchy->kinds[kind]) {
			return (enum type_kind)kind;
		}
	}
	return TYPE_KINDS;
}

/* Where the pointer at a place leads to within this file; 0: nowhere. */
static uint64_t target_at(const struct hierarchy *hierarchy, uint64_t place)
{
	const struct elf_pointer *pointer = elf_pointers_at(hierarchy->pointers, place);

	return pointer && !pointer->symbol ? pointer->value : 0;
}

static bool is_code(const struct hierarchy *hierarchy, uint64_t address)
{
	const struct elf_bytes *section = elf_bytes_at(hierarchy->pointers, address);

	return section && section->is_code;
}

/* Whether the text is the name of a type: the length of an identifier first, or a nested name. */
static bool is_type_name(struct slice name)
{
	bool is_first = name.len && ((name.data[0] >= '1' && name.data[0] <= '9') ||
				     strchr("NSZ", name.data[0]));

	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] <= ' ' || name.data[i] > '~')
			return false;
	return is_first;
}

static struct slice type_name(const struct hierarchy *hierarchy, uint64_t type)
{
	uint64_t place = target_at(hierarchy, type + WORD);
	struct slice name = elf_text_at(hierarchy->pointers, place, NAME_BYTES_MAX);

	if (name.len && name.data[0] == '*') /* not compared by its text */
		name = slice_tail(name, 1);
	return is_type_name(name) ? name : (struct slice){ 0 };
}

/*
 * Of a program with the C++ library inside: the record that names the class of records of a kind is
 * found by its text, and the class's table by the pointer to that record that methods follow.
 */
static void find_kinds(struct hierarchy *hierarchy)
{
	const struct elf_pointers *pointers = hierarchy->pointers;
	uint64_t types[TYPE_KINDS] = { 0 };

	for (size_t i = 0; i < pointers->count; i++) {
		const struct elf_pointer *pointer = &pointers->items[i];
		struct slice name;

		if (pointer->symbol)
			continue;
		name = elf_text_at(pointers, pointer->value, strlen(kind_classes[2]) + 1);
		for (int kind = TYPE_ALONE; name.len && kind < TYPE_KINDS; kind++)
			if (slice_is(name, kind_classes[kind]))
				types[kind] = pointer->place - WORD;
	}
	for (size_t i = 0; i < pointers->count; i++) {
		const struct elf_pointer *pointer = &pointers->items[i];

		for (int kind = TYPE_ALONE; !pointer->symbol && kind < TYPE_KINDS; kind++)
			if (types[kind] && pointer->value == types[kind] &&
			    is_code(hierarchy, target_at(hierarchy, pointer->place + WORD)))
				hierarchy->kinds[kind] = pointer->place + WORD;
	}
}

/* In a program that is not relocated the library's tables are copied to places of its own. */
static void find_copies(Elf *elf, struct hierarchy *hierarchy)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;
		GElf_Sym symbol;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && i < INT32_MAX && gelf_getsym(data, i, &symbol); i++) {
			const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);

			for (int kind = TYPE_ALONE; name && kind < TYPE_KINDS; kind++)
				if (symbol.st_value && !strncmp(name, "_ZTV", 4) &&
				    !strcmp(name + 4, kind_classes[kind]))
					hierarchy->kinds[kind] = symbol.st_value + 2 * WORD;
		}
	}
}

/* Pointers are sorted by place, and so are the records. */
static void find_classes(struct hierarchy *hierarchy)
{
	const struct elf_pointers *pointers = hierarchy->pointers;

	for (size_t i = 0; i < pointers->count && hierarchy->count < CLASSES_MAX; i++) {
		struct class class = { .type = pointers->items[i].place,
				       .kind = kind_of(hierarchy, &pointers->items[i]) };

		if (class.kind == TYPE_KINDS)
			continue;
		class.name = type_name(hierarchy, class.type);
		if (!class.name.len)
			continue;
		mem_grow(hierarchy->classes, hierarchy->count, hierarchy->capacity);
		hierarchy->classes[hierarchy->count++] = class;
	}
}

/* The class whose record is at an address, or CLASS_NONE. */
static uint32_t class_at(const struct hierarchy *hierarchy, uint64_t type)
{
	size_t first = bisect(0, hierarchy->count, i, hierarchy->classes[i].type < type);

	return first < hierarchy->count && hierarchy->classes[first].type == type ? (uint32_t)first
										  : CLASS_NONE;
}

static void add_base(struct hierarchy *hierarchy, struct class *class, uint64_t place)
{
	mem_grow(hierarchy->bases, hierarchy->bases_count, hierarchy->bases_capacity);
	hierarchy->bases[hierarchy->bases_count++] =
		class_at(hierarchy, target_at(hierarchy, place));
	class->bases_count++;
}

/* How many bases a record with several names: flags and count are two words of 4 bytes. */
static uint32_t bases_of(const struct hierarchy *hierarchy, uint64_t type)
{
	uint64_t place = type + 2 * WORD;
	const struct elf_bytes *section = elf_bytes_at(hierarchy->pointers, place);

	if (!section || section->high - place < WORD)
		return 0;
	return section_u32(section->data + (place - section->low) + 4);
}

static void find_bases(struct hierarchy *hierarchy)
{
	for (size_t i = 0; i < hierarchy->count; i++) {
		struct class *class = &hierarchy->classes[i];
		uint32_t count;

		class->base_first = hierarchy->bases_count;
		if (class->kind == TYPE_ONE_BASE)
			add_base(hierarchy, class, class->type + 2 * WORD);
		if (class->kind != TYPE_SEVERAL_BASES)
			continue;
		count = bases_of(hierarchy, class->type);
		if (count > BASES_MAX) /* damaged */
			class->name.len = 0;
		for (uint32_t base = 0; base < count && count <= BASES_MAX; base++)
			add_base(hierarchy, class, class->type + (3 + 2 * (uint64_t)base) * WORD);
	}
}

/*
 * Whether what stands before a pointer to a record is as in a table of methods: how far the part of
 * the object that has the table is behind its start, negated.
 */
static bool is_table(const struct hierarchy *hierarchy, uint64_t place)
{
	const struct elf_bytes *section = elf_bytes_at(hierarchy->pointers, place - WORD);
	int64_t offset;

	if (!section || section->is_code || section->is_writable ||
	    section->high - (place - WORD) < 2 * WORD ||
	    elf_pointers_at(hierarchy->pointers, place - WORD))
		return false;
	offset = (int64_t)section_u64(section->data + (place - WORD - section->low));
	return offset <= 0 && offset >= -OBJECT_BYTES_MAX;
}

static void add_method(struct hierarchy *hierarchy, uint64_t function, uint32_t class)
{
	if (hierarchy->methods_count == METHODS_MAX)
		return;
	mem_grow(hierarchy->methods, hierarchy->methods_count, hierarchy->methods_capacity);
	hierarchy->methods[hierarchy->methods_count++] = (struct method){ function, class };
}

/* Whether an empty word stands at a place. */
static bool is_empty(const struct hierarchy *hierarchy, uint64_t place)
{
	const struct elf_bytes *section = elf_bytes_at(hierarchy->pointers, place);

	return section && section->high - place >= WORD &&
	       !elf_pointers_at(hierarchy->pointers, place) &&
	       !section_u64(section->data + (place - section->low));
}

/*
 * The methods of the table whose pointer to the class's record is at `place`. What stands in it
 * more than once is no method of its own: it says that a pure one was called, or is several that
 * the linker folded. Of an abstract class methods that nobody can call may be left out:
 * destructors, and pure ones where nothing else of the library is needed.
 */
static void read_table(struct hierarchy *hierarchy, uint32_t class, uint64_t place)
{
	size_t first = hierarchy->methods_count, end;
	unsigned empty = 0;
	const struct elf_pointer *pointer;

	if (!is_table(hierarchy, place))
		return;
	place += WORD;
	for (; is_empty(hierarchy, place) && empty < EMPTY_MAX; empty++)
		place += WORD;
	for (; (pointer = elf_pointers_at(hierarchy->pointers, place)); place += WORD) {
		if (!pointer->symbol && !is_code(hierarchy, pointer->value))
			break;
		hierarchy->classes[class].has_table = true;
		if (!pointer->symbol && hierarchy->methods_count - first < TABLE_METHODS_MAX)
			add_method(hierarchy, pointer->value, class);
	}
	/* Or is it cut by another method that is left out? */
	if (empty && is_empty(hierarchy, place) &&
	    class_at(hierarchy, target_at(hierarchy, place + WORD)) == CLASS_NONE)
		hierarchy->classes[class].is_cut = true;
	end = hierarchy->methods_count;
	for (size_t i = first; i < end; i++)
		for (size_t k = first; k < i; k++)
			if (hierarchy->methods[i].function == hierarchy->methods[k].function)
				hierarchy->methods[i].class = CLASS_NONE;
}

static void find_methods(struct hierarchy *hierarchy)
{
	const struct elf_pointers *pointers = hierarchy->pointers;

	for (size_t i = 0; i < pointers->count; i++) {
		const struct elf_pointer *pointer = &pointers->items[i];
		uint32_t class = pointer->symbol ? CLASS_NONE : class_at(hierarchy, pointer->value);

		if (class != CLASS_NONE)
			read_table(hierarchy, class, pointer->place);
	}
}

static void count_heirs(struct hierarchy *hierarchy)
{
	for (size_t i = 0; i < hierarchy->count; i++) {
		const struct class *class = &hierarchy->classes[i];

		for (size_t k = 0; class->has_table && k < class->bases_count; k++) {
			uint32_t base = hierarchy->bases[class->base_first + k];

			if (base != CLASS_NONE)
				hierarchy->classes[base].heirs++;
		}
	}
}

/*
 * Whether a method that is in no table of the class's bases is its own. A base without a table has
 * no virtual methods, or is abstract: then what it gives to its heirs stands in more tables than
 * one.
 */
static bool is_complete(struct hierarchy *hierarchy, uint32_t number, unsigned depth)
{
	const struct class *class = &hierarchy->classes[number];

	if (!class->name.len || class->is_cut || depth == DEPTH_MAX ||
	    hierarchy->steps++ >= STEPS_MAX || (!class->has_table && class->heirs < HEIRS_MIN))
		return false;
	for (size_t i = 0; i < class->bases_count; i++) {
		uint32_t base = hierarchy->bases[class->base_first + i];

		if (base == CLASS_NONE || !is_complete(hierarchy, base, depth + 1))
			return false;
	}
	return true;
}

static bool is_derived(struct hierarchy *hierarchy, uint32_t number, uint32_t from, unsigned depth)
{
	const struct class *class = &hierarchy->classes[number];

	if (number == from)
		return true;
	if (hierarchy->steps++ >= STEPS_MAX)
		return false;
	for (size_t i = 0; i < class->bases_count && depth < DEPTH_MAX; i++) {
		uint32_t base = hierarchy->bases[class->base_first + i];

		if (base != CLASS_NONE && is_derived(hierarchy, base, from, depth + 1))
			return true;
	}
	return false;
}

static int compare_methods(const void *a, const void *b)
{
	const struct method *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->class > y->class) - (x->class < y->class);
}

/* The class from which those of all these methods, which are one function, are derived. */
static uint32_t common_class(struct hierarchy *hierarchy, const struct method *methods,
			     size_t count)
{
	/* CLASS_NONE comes last. */
	if (count > HEIRS_MAX || methods[count - 1].class == CLASS_NONE)
		return CLASS_NONE;
	for (size_t i = 0; i < count; i++) {
		bool is_common = !i || methods[i].class != methods[i - 1].class;

		for (size_t k = 0; is_common && k < count; k++)
			is_common = is_derived(hierarchy, methods[k].class, methods[i].class, 0);
		if (is_common)
			return is_complete(hierarchy, methods[i].class, 0) ? methods[i].class
									   : CLASS_NONE;
	}
	return CLASS_NONE;
}

/*
 * As the names of its methods have it: by that of its destructor, because the names of some types
 * alone are abbreviated ("std::iostream").
 */
static struct slice class_name(struct slice type, struct arena *arena)
{
	const struct slice prefix = SLICE_LITERAL("typeinfo for "), mark = SLICE_LITERAL("::~");
	bool is_nested = type.data[0] == 'N', is_local = type.data[0] == 'Z';
	struct strbuf text = { 0 };
	struct slice shown = { 0 }, name = { 0 };

	if (is_nested)
		type = slice_from(type.data + 1, type.len > 2 ? type.len - 2 : 0);
	strbuf_addf(&text, is_local ? "_ZTI%.*s" : "_ZN%.*sD1Ev", SLICE_FMT(type));
	if (!demangle(strbuf_slice(&text), arena, &shown))
		shown.len = 0;
	strbuf_free(&text);
	if (slice_starts_with(shown, prefix))
		return slice_tail(shown, prefix.len);
	for (size_t i = shown.len; !name.len && i-- > mark.len;)
		if (slice_starts_with(slice_tail(shown, i), mark))
			name = slice_from(shown.data, i);
	return name;
}

/* "~ns::Shape::?" */
static void hand_over(const struct class *class, uint64_t function, struct arena *arena,
		      struct symbol_builder *builder)
{
	struct slice name = class_name(class->name, arena);
	struct strbuf text = { 0 };

	if (!name.len || name.len > SHOWN_BYTES_MAX)
		return;
	strbuf_addf(&text, SYMBOL_GUESS_PREFIX "%.*s::?", SLICE_FMT(name));
	symbol_builder_guess(builder,
			     &(struct symbol_guess){
				     function, symbol_builder_text(builder, strbuf_slice(&text)) });
	strbuf_free(&text);
}

static void guess(struct hierarchy *hierarchy, struct symbol_builder *builder)
{
	struct method *methods = hierarchy->methods;
	size_t end;

	if (hierarchy->methods_count)
		qsort(methods, hierarchy->methods_count, sizeof(*methods), compare_methods);
	for (size_t i = 0; i < hierarchy->methods_count; i = end) {
		struct arena arena;
		uint32_t class;

		for (end = i + 1;
		     end < hierarchy->methods_count && methods[end].function == methods[i].function;
		     end++)
			;
		class = common_class(hierarchy, &methods[i], end - i);
		if (class == CLASS_NONE)
			continue;
		arena_init(&arena, 0);
		hand_over(&hierarchy->classes[class], methods[i].function, &arena, builder);
		arena_free(&arena);
	}
}

void class_guess_read(Elf *elf, struct symbol_builder *builder)
{
	struct elf_pointers pointers;
	struct hierarchy hierarchy = { .pointers = &pointers };
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header) ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64))
		return;
	elf_pointers_read(elf, &header, &pointers);
	find_kinds(&hierarchy);
	find_copies(elf, &hierarchy);
	find_classes(&hierarchy);
	find_bases(&hierarchy);
	find_methods(&hierarchy);
	count_heirs(&hierarchy);
	guess(&hierarchy, builder);
	free(hierarchy.classes);
	free(hierarchy.bases);
	free(hierarchy.methods);
	elf_pointers_free(&pointers);
}
