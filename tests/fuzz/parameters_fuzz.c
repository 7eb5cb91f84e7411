/* SPDX-License-Identifier: Apache-2.0 */
/* Any query string is a query or an error that says why; what is read keeps the promises of
 * query_params. */
#include <stdint.h>
#include <stdlib.h>

#include "server/serve/api/parameters.h"

#define NOW_NS (1700000000 * CLOCK_NS_PER_S)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct parameters *asked)
{
	const struct query_params *params = &asked->params;

	if (params->from_ns > params->to_ns || params->selector != &asked->selector ||
	    params->group_by_count > QUERY_GROUP_BY_MAX || (params->at_moment && params->by_times))
		abort();
	for (size_t i = 0; i < params->spans_count; i++)
		if (params->spans[i].from_ns > params->spans[i].to_ns ||
		    (i && params->spans[i].from_ns <= params->spans[i - 1].to_ns))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct net_request request = { .query = slice_from(data, size) };
	struct parameters asked;
	struct err err = { 0 };
	int rc;

	for (int need = PARAMETERS_TYPE_NEEDED; need <= PARAMETERS_SELECTOR_OPTIONAL; need++) {
		parameters_init(&asked);
		rc = parameters_read(&asked, &request, (enum parameters_need)need, NOW_NS, &err);
		if (!rc)
			check(&asked);
		else if (!err.message[0])
			abort();
		parameters_free(&asked);
	}
	parameters_init(&asked);
	rc = parameters_read_base(&asked, &request, NOW_NS, &err);
	if (!rc)
		check(&asked);
	parameters_free(&asked);
	return 0;
}
