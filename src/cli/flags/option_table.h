/* SPDX-License-Identifier: Apache-2.0 */
/* option_table - every option of every verb, from options.def. */
#ifndef FIRN_CLI_FLAGS_OPTION_TABLE_H
#define FIRN_CLI_FLAGS_OPTION_TABLE_H

#include "config/options.h"

#define OPTION(id, ...) OPT_##id,
enum option_id {
#include "cli/flags/options.def"
	OPTION_IDS_COUNT,
};
#undef OPTION

extern const struct option_spec option_table[OPTION_IDS_COUNT];

/* The row of a verb that takes an option; `offset` is where its value stands. */
#define OPTION_AT(id, offset)                                                                      \
	{                                                                                          \
		&option_table[OPT_##id], offset                                                    \
	}

#endif
