/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions - a tree's values by name of function: flat is the function's own value, cum includes
 * all that it called; on a recursive path only the outermost occurrence counts.
 *
 * A row is a name: functions of one name in several binaries share it. Group-by values are not
 * functions and have no row. Names are borrowed from the tree.
 */
#ifndef FIRN_SERVER_QUERY_TREE_FUNCTIONS_H
#define FIRN_SERVER_QUERY_TREE_FUNCTIONS_H

#include "server/query/tree/tree.h"

#define FUNCTIONS_NO_ROW UINT32_MAX

struct functions_value {
	int64_t flat, cum;
};

struct functions_row {
	struct slice name;
	struct functions_value value;
	struct functions_value base; /* of a diff: the side compared to */
};

struct functions {
	struct functions_row *rows;
	uint32_t rows_count;
	uint32_t *row_of; /* by function of the tree; FUNCTIONS_NO_ROW: none */
};

void functions_make(struct functions *functions, const struct tree *tree);
void functions_free(struct functions *functions);

#endif
