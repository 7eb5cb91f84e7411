/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is rules for a diff or an error; what is read is within the text and the limits. */
#include <assert.h>
#include <stdint.h>

#include "server/query/diff/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct rules_rule *rule, struct slice text)
{
	assert(rule->text.data >= text.data &&
	       rule->text.data + rule->text.len <= text.data + text.len);
	assert(rule->terms_count <= RULES_TERMS_MAX);
	assert(rule->terms_count || rule->significant);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct rules rules = { 0 };
	struct err err = { 0 };

	if (rules_parse(text, &rules, &err))
		assert(err.message[0]);
	else
		for (size_t i = 0; i < rules.count; i++)
			check(&rules.list[i], text);
	assert(rules.count <= RULES_MAX);
	rules_need_comparison(&rules);
	rules_free(&rules);
	return 0;
}
