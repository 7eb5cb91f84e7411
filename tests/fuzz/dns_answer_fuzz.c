/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a DNS answer of each type, or an error that says so; each target has an address. */
#include <stdlib.h>
#include <string.h>

#include "server/scrape/dns_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int record = 0; record < DISCOVERY_RECORDS; record++) {
		struct discovery_config config = {
			.port = 1, .dns = { .record = (enum discovery_record)record }
		};
		struct found *found = found_new();
		struct err err = { 0 };

		if (dns_answer_read(slice_from(data, size), &config, SLICE_LITERAL("name"), found,
				    &err) &&
		    strncmp(err.message, "DNS' answer for ", strlen("DNS' answer for ")) != 0)
			abort();
		for (size_t i = 0; i < found->count; i++) {
			const struct found_target *target = &found->targets[i];

			if (!slice_is(target->labels[target->count - 1].name, "__address__"))
				abort();
		}
		found_free(found);
	}
	return 0;
}
