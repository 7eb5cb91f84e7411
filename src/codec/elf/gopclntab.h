/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopclntab - Go's table of functions, as unwind rules and function names.
 *
 * Every Go program carries it, stripped or not, since its runtime unwinds with it. For each
 * function it tells by how much the stack pointer is below its value at entry, per instruction
 * (pcsp); from that follow rules that are exact in prologues and epilogues, and in assembly
 * functions without a frame. The formats of Go 1.2, 1.16, 1.18 and 1.20 (the present one), 64-bit,
 * x86-64 and arm64.
 *
 * Some functions of Go's runtime do with the stack what pcsp cannot say. They get rules of their
 * own: threads and goroutines end where Go says so; the signal trampoline leads to the interrupted
 * frame; a function that changes stacks is left by the frame pointer, which it does not touch.
 * That crosses to the goroutine's stack, but where the function has no frame itself
 * (runtime.systemstack, runtime.asmcgocall) its direct caller is not seen. runtime.morestack is
 * left by what the runtime notes in the goroutine (UNWIND_CFA_GOROUTINE).
 *
 * Reads through section_reader: memory is the struct, whatever the table's size. A function whose
 * entry is damaged is left out and counted. One thread at a time.
 *
 * Sources: Go's src/runtime/symtab.go, src/runtime/runtime2.go (_func), src/debug/gosym/pclntab.go,
 * src/cmd/link/internal/ld/pcln.go, src/cmd/internal/obj/{x86/obj6.go,arm64/obj7.go}.
 */
#ifndef FIRN_CODEC_ELF_GOPCLNTAB_H
#define FIRN_CODEC_ELF_GOPCLNTAB_H

#include "codec/elf/section_reader.h"
#include "codec/elf/unwind_sink.h"

#define GOPCLNTAB_NAME_BYTES_MAX 512 /* of a function's name, with NUL; longer ones are cut */

enum gopclntab_version {
	GOPCLNTAB_GO_1_2,
	GOPCLNTAB_GO_1_16,
	GOPCLNTAB_GO_1_18,
	GOPCLNTAB_GO_1_20,
};

struct gopclntab_layout {
	enum gopclntab_version version;
	uint16_t machine; /* e_machine */
	uint8_t quantum;  /* bytes of the shortest instruction */
	uint64_t text;	  /* what function addresses are relative to, since Go 1.18; 0: not known */
	uint64_t functions_count;
	/* Offsets in the table: of what, and of what offsets to records, names, values count from.
	 */
	uint64_t functions_at, records_at, names_at, values_at;
	uint64_t units_at, files_at; /* since Go 1.16 */
};

struct gopclntab {
	struct gopclntab_layout layout;
	uint64_t damaged_count; /* functions left out by gopclntab_functions */
	/* One window for each part, or reading would go back and forth. */
	struct section_reader functions, records, values, names;
};

/*
 * Opens the table at the start of `section`, whose size may be too large (a table that was found
 * by gopclntab_find has no end). ERR_INVALID when it is none, ERR_UNSUPPORTED when it is for
 * another machine. The struct is 64 KiB: not for a small stack. Nothing to close.
 *
 * Where ret->layout.text is 0, which it is for Go 1.26 and where the address is yet to be
 * relocated, the caller finds it with gopclntab_find_text and sets it before anything else.
 */
int gopclntab_open(struct gopclntab *ret, const struct section_reader *section, uint16_t machine,
		   struct err *err);

/*
 * Searches a section or segment for a table, for files that name none: *ret_offset. Costs reading
 * all of it. ERR_NOT_FOUND.
 */
int gopclntab_find(struct section_reader *range, uint16_t machine, uint64_t *ret_offset,
		   struct err *err);

/*
 * Finds the address of Go's text in the module's description, which is somewhere in writable data
 * (.data, .noptrdata, .go.module, .data.rel.ro). `relocations` is the section of RELA entries that
 * a position independent executable has (.rela, .rela.dyn), or NULL. ERR_NOT_FOUND.
 */
int gopclntab_find_text(const struct gopclntab *table, struct section_reader *data,
			struct section_reader *relocations, uint64_t *ret, struct err *err);

/* From the same description: the address that offsets of inline trees count from; since Go 1.18. */
int gopclntab_find_function_data(const struct gopclntab *table, struct section_reader *data,
				 struct section_reader *relocations, uint64_t *ret,
				 struct err *err);

int gopclntab_functions(struct gopclntab *table, const struct unwind_function_sink *sink,
			struct err *err);

/* The rows of a function that gopclntab_functions listed. */
int gopclntab_rows(struct gopclntab *table, uint64_t cookie, const struct unwind_row_sink *sink,
		   struct err *err);

/*
 * The function that holds an address: its name as Go writes it ("main.(*T).run"), and its first
 * address. ERR_NOT_FOUND when there is none.
 */
int gopclntab_name(struct gopclntab *table, uint64_t address,
		   char ret_name[GOPCLNTAB_NAME_BYTES_MAX], uint64_t *ret_start, struct err *err);

#endif
