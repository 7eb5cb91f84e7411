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
	{ 0, "verbose", OPTION_FLAG, offsetof(struct version_verb_options, verbose), NULL,
	  "the compiler and the libraries inside, with their versions", 0, 0 },
	{ 0, "sbom", OPTION_FLAG, offsetof(struct version_verb_options, sbom), NULL,
	  "the same as an SPDX 2.3 document in JSON, for scanners", 0, 0 },
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "version",
	.operands = "",
	.summary = "print the version, and what is linked into this program",
	.details = "Libraries are linked statically: their faults are fixed by building firn anew. "
		   "The versions are those\n"
		   "of the packages that this very program was built with (docs/security.md).\n\n"
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
