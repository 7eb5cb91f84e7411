/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class_guess - guesses the C++ class of virtual methods without symbols, for a symbol_builder.
 *
 * Programs with exceptions or dynamic_cast keep their run-time type information when they are
 * stripped: for each class with virtual methods a record with its name and its bases, and a table
 * of pointers to its methods, which begins with a pointer to that record. A method is in the table
 * of its class and in those of the classes that inherit it; so its class is the one from which all
 * other classes whose tables have it are derived.
 *
 * That holds if all bases of that class are in the file, too: else it may inherit the method. If a
 * base is missing, or the linker folded functions of unrelated classes into one, there is no guess.
 * Layout: the Itanium C++ ABI, sections 2.5 and 2.9.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_CLASS_GUESS_H
#define FIRN_SERVER_RESOLVE_READ_CLASS_GUESS_H

#include <libelf.h>

#include "server/resolve/table/symbol_builder.h"

void class_guess_read(Elf *elf, struct symbol_builder *builder);

#endif
