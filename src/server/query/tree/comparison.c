/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/comparison.h"

#include <stdlib.h>

void comparison_free(struct comparison *comparison)
{
	if (!comparison)
		return;
	functions_free(&comparison->functions);
	free(comparison->tests);
	free(comparison);
}
