/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_guess - of which C++ class the virtual methods without symbols are. Hands them to a
 * symbol_builder.
 *
 * Programs with exceptions or dynamic_cast keep their run-time type information when they are
 * stripped: for each class with virtual methods a record with its name and its bases, and a table
 * of pointers to its methods, which begins with a pointer to that record. A method stands in the
 * table of its class and in those of the classes that inherit it, so it is of the class in whose
 * table it stands and from which all others in whose tables it stands are derived.
 *
 * That is right as long as all bases of that class are in the file, too: else it may inherit the
 * method. Where one is not, and where functions of unrelated classes were folded into one, nothing
 * is said. Layout: the Itanium C++ ABI, sections 2.5 and 2.9.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_CLASS_GUESS_H
#define FIRN_SERVER_RESOLVE_READ_CLASS_GUESS_H

#include <libelf.h>

#include "server/resolve/table/symbol_builder.h"

void class_guess_read(Elf *elf, struct symbol_builder *builder);

#endif
