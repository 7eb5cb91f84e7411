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
	{ 0, "format", OPTION_TEXT, AT(format), "FORMAT",
	  "of OUT, whatever its extension: firn, " RENDER_EXPORT_NAMES, 0, 0 },
	{ 0, "sample-type", OPTION_TEXT, AT(sample_type), "TYPE",
	  "cpu, alloc_space, ... (default: the file's default, else its last; from pprof to pprof "
	  "all)",
	  0, 0 },
	{ 0, "filter", OPTION_TEXT, AT(filter), "EXPR",
	  "of stacks and frames: 'show-stack NAME; hide-frame binary=libc.so.6' (docs/api.md)", 0,
	  0 },
	{ 0, "group-by", OPTION_TEXT, AT(group_by), "LABEL",
	  "split by the value of a label, such as comm of perf script", 0, 0 },
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "convert",
	.operands = "IN OUT",
	.summary = "turn a profile into another format",
	.details =
		"Reads pprof, legacy pprof (gperftools), Java Flight Recorder, OTLP, folded "
		"stacks, speedscope, Firefox\n"
		"Profiler (samply), the output of `perf script` and firn's recordings, told apart "
		"by their content. OUT's\n"
		"extension says the format: .pb.gz\n"
		"(pprof), .pgo (pprof, for Go's compiler), .folded, .speedscope.json, .trace.json "
		"(Chrome, Perfetto),\n"
		".firefox.json (profiler.firefox.com), .callgrind, .dot (Graphviz), .afdo (sample "
		"profile of LLVM),\n"
		".fdata (llvm-bolt), .firn; - is standard output.\n\n"
		"A pprof stays whole in pprof: all its types, mappings, labels and comments, "
		"unless --filter or\n"
		"--group-by make another one of it.\n\n"
		"  perf script | tee perf.txt; firn convert perf.txt profile.pb.gz\n"
		"  firn convert heap.pb.gz heap.folded --sample-type alloc_space\n"
		"  firn convert cpu.pb.gz - --format folded | flamegraph.pl > cpu.svg\n"
		"  firn convert cpu.firn app.afdo --filter 'show-stack binary=app'"
		"    # clang -fprofile-sample-use=app.afdo",
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
