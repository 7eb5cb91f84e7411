/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of other formats: each decoder on any bytes; what it makes is a well-formed profile. */
#include <assert.h>
#include <stdlib.h>

#include "base/budget.h"
#include "codec/profile/firefox.h"
#include "codec/profile/folded.h"
#include "codec/profile/legacy_pprof.h"
#include "codec/profile/name_tree.h"
#include "codec/profile/perf_script.h"
#include "codec/profile/speedscope.h"

#define ELEMENTS_MAX 10000
#define TRIE_TEXT_BYTES 100000
#define BUDGET_BYTES ((int64_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct pprof *profile)
{
	for (size_t i = 0; i < profile->samples.count; i++) {
		const struct pprof_sample *sample = &profile->samples.data[i];

		if (sample->value_count != profile->sample_types.count ||
		    sample->location_first + sample->location_count > profile->location_ids.count)
			abort();
	}
	for (size_t i = 0; i < profile->values.count; i++)
		if (profile->values.data[i] < 0)
			abort();
	for (size_t i = 0; i < profile->location_ids.count; i++)
		if (!profile->location_ids.data[i] ||
		    profile->location_ids.data[i] > profile->locations.count)
			abort();
	if (profile->samples.count > ELEMENTS_MAX || profile->locations.count > ELEMENTS_MAX)
		abort();
}

static int trie_decode(struct slice bytes, struct stack_builder *into, struct err *err)
{
	return name_trie_decode(bytes, TRIE_TEXT_BYTES, into, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const decoders[])(struct slice, struct stack_builder *, struct err *) = {
		firefox_decode,	   folded_decode,    legacy_pprof_decode, perf_script_decode,
		speedscope_decode, name_tree_decode, trie_decode
	};
	struct slice bytes = slice_from(data, size);

	for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++) {
		struct budget budget = { .max_bytes = BUDGET_BYTES };
		struct stack_builder builder;
		struct strbuf encoded = { 0 };
		struct err err;

		stack_builder_init(&builder, ELEMENTS_MAX, &budget);
		if (!decoders[i](bytes, &builder, &err)) {
			check(&builder.profile);
			if (!stack_builder_encode(&builder, &encoded, &err))
				assert(encoded.len);
		}
		strbuf_free(&encoded);
		stack_builder_free(&builder);
		assert(!budget.used_bytes);
	}
	firefox_is(bytes);
	legacy_pprof_is(bytes);
	speedscope_is(bytes);
	perf_script_is(bytes);
	return 0;
}
