/* SPDX-License-Identifier: Apache-2.0 */
/* firn convert - a profile from one format to another; no server needed. */
#include "base/whole_file.h"
#include "cli/profile_file.h"
#include "cli/verb.h"

struct convert_verb_options {
	struct verb_common common;
	const char *format, *sample_type, *filter, *group_by;
};

#define AT(member) offsetof(struct convert_verb_options, member)

static const struct option options[] = {
	OPTION_AT(CONVERT_FORMAT, AT(format)),
	OPTION_AT(CONVERT_SAMPLE_TYPE, AT(sample_type)),
	OPTION_AT(FILTER, AT(filter)),
	OPTION_AT(CONVERT_GROUP_BY, AT(group_by)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "convert",
	.operands = "IN OUT",
	.summary = "convert a profile to another format",
	.details =
		"Reads pprof, legacy pprof (gperftools), Java Flight Recorder, OTLP, folded\n"
		"stacks, speedscope, Firefox Profiler (samply), the output of `perf script` and\n"
		"firn's recordings. The content of IN decides its format; the extension of OUT\n"
		"decides the output format:\n"
		"\n"
		"  .pb.gz              pprof\n"
		"  .pgo                pprof for Go's compiler\n"
		"  .folded             folded stacks\n"
		"  .speedscope.json    speedscope\n"
		"  .trace.json         Chrome, Perfetto\n"
		"  .firefox.json       profiler.firefox.com\n"
		"  .callgrind          KCachegrind\n"
		"  .dot                Graphviz\n"
		"  .afdo               sample profile for LLVM\n"
		"  .fdata              llvm-bolt\n"
		"  .firn               a recording of firn\n"
		"  -                   standard output\n"
		"\n"
		"From pprof to pprof everything is kept: all sample types, mappings, labels and\n"
		"comments, unless --filter or --group-by changes the profile.\n"
		"\n"
		"  perf script | tee perf.txt; firn convert perf.txt profile.pb.gz\n"
		"  firn convert heap.pb.gz heap.folded --sample-type alloc_space\n"
		"  firn convert cpu.pb.gz - --format folded | flamegraph.pl > cpu.svg\n"
		"  firn convert cpu.firn app.afdo --filter 'show-stack binary=app'    # clang "
		"-fprofile-sample-use=app.afdo",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static int convert_other(const struct convert_verb_options *values, struct slice bytes,
			 const struct option_operands *operands, const struct render_export *format,
			 struct err *err)
{
	struct profile_file file;
	int rc = profile_file_decode(&file, bytes, operands->items[0], values->sample_type,
				     values->filter, err);

	if (!rc && values->group_by) {
		file.params.group_by[0] = slice_of(values->group_by);
		file.params.group_by_count = 1;
	}
	if (!rc)
		rc = profile_write(&file.source, &file.params, format, operands->items[1], err);
	profile_file_close(&file);
	return rc;
}

static int convert(const struct convert_verb_options *values,
		   const struct option_operands *operands, struct err *err)
{
	const struct render_export *format;
	struct strbuf bytes = { 0 };
	bool copied = false;
	int rc;

	if (operands->count != 2)
		return err_set(err, ERR_INVALID,
			       "expected two files, for example perf.txt profile.pb.gz");
	rc = profile_format_of(values->format, operands->items[1], &format, err);
	if (!rc && format == &profile_recording &&
	    (values->sample_type || values->filter || values->group_by))
		return err_set(err, ERR_INVALID,
			       "a recording has all of the profile: --sample-type, --filter and "
			       "--group-by are for the other formats");
	if (!rc)
		rc = profile_refuse_terminal(format, operands->items[1], err);
	if (!rc)
		rc = whole_file_read(operands->items[0], PROFILE_FILE_BYTES_MAX, &bytes, err);
	if (!rc && !strcmp(format->name, "pprof") && !values->filter && !values->group_by)
		rc = profile_copy(strbuf_slice(&bytes), values->sample_type, operands->items[1],
				  &copied, err);
	if (!rc && !copied)
		rc = convert_other(values, strbuf_slice(&bytes), operands, format, err);
	strbuf_free(&bytes);
	return rc;
}

static int run(int argc, char **argv)
{
	struct convert_verb_options values = { 0 };
	struct option_operands operands;
	struct err err;
	int code = verb_parse(&verb_convert, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	return convert(&values, &operands, &err) ? verb_error(&verb_convert, &err) : VERB_OK;
}

const struct verb verb_convert = { &spec, run, LOG_WARN };
