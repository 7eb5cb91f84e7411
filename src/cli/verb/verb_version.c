/* SPDX-License-Identifier: Apache-2.0 */
/* firn version - what this program is made of. */
#include <stdio.h>

#include "cli/libraries.h"
#include "cli/verb.h"

struct version_verb_options {
	struct verb_common common;
	bool verbose;
	bool sbom;
};

static const struct option options[] = {
	OPTION_AT(VERBOSE, offsetof(struct version_verb_options, verbose)),
	OPTION_AT(SBOM, offsetof(struct version_verb_options, sbom)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "version",
	.operands = "",
	.summary = "print the version, and which libraries are linked into this program",
	.details = "Libraries are linked statically: rebuild firn to get their fixes. The\n"
		   "versions are those of the packages that this program was built with\n"
		   "(docs/security.md).\n"
		   "\n"
		   "  firn version --sbom > firn.spdx.json",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static int run(int argc, char **argv)
{
	struct version_verb_options values = { 0 };
	struct option_operands operands;
	struct strbuf out = { 0 };
	int code = verb_parse(&verb_version, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (values.sbom)
		libraries_sbom(&out);
	else
		strbuf_add_text(&out, "firn " FIRN_VERSION "\n");
	if (values.verbose && !values.sbom)
		libraries_list(&out);
	fputs(strbuf_text(&out), stdout);
	strbuf_free(&out);
	return VERB_OK;
}

const struct verb verb_version = { &spec, run, LOG_WARN };
