/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puc_layout - where things are in a prototype of PUC-Rio's Lua, in bytes, as far as versions
 * differ. Plain data, made by puc_file, used by puc_code.
 */
#ifndef FIRN_AGENT_RUNTIME_PUC_PUC_LAYOUT_H
#define FIRN_AGENT_RUNTIME_PUC_PUC_LAYOUT_H

#include <stdint.h>

enum puc_instructions { PUC_INSTRUCTIONS_5_2, PUC_INSTRUCTIONS_5_3, PUC_INSTRUCTIONS_5_4 };

struct puc_layout {
	uint8_t code, code_count;
	uint8_t lines, lines_count;
	uint8_t bases, bases_count; /* lines of some instructions; 0 = there is one of each */
	uint8_t first_line;
	uint8_t source;
	uint8_t constants, constants_count;
	uint8_t locals, locals_count;
	uint8_t captured, captured_count; /* variables of functions around it */
	uint8_t instructions;		  /* enum puc_instructions */
	uint8_t proof;			  /* four words that tell it from others */
};

#endif
