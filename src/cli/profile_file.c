/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_file.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/whole_file.h"
#include "cli/output_file.h"
#include "codec/archive/compress.h"
#include "codec/profile/pprof_check.h"
#include "server/ingest/ingest.h"

#define SAMPLES_MAX ((size_t)1 << 26)
#define RECORDING_MAGIC "FIRNREC1" /* docs/formats/recording.md */
#define RECORDING_ZSTD_LEVEL 3
#define GZIP_LEVEL 6

static struct ingest_limits limits_of_files(void)
{
	struct ingest_limits limits = ingest_limits_default;

	limits.decompressed_bytes_max = PROFILE_FILE_BYTES_MAX;
	limits.samples_max = SAMPLES_MAX;
	return limits;
}

/* `name` is the profile's, or empty. */
static int take_pprof(struct profile_file *file, struct slice bytes, const char *name,
		      struct err *err)
{
	struct ingest_limits limits = limits_of_files();
	struct ingest_scratch *scratch = ingest_scratch_new(NULL);
	struct ingest_pprof input = { .bytes = bytes,
				      .name = slice_of(name),
				      .now_ns = clock_real_ns() };
	int rc;

	rc = ingest_from_pprof(scratch, &limits, &input, &file->tables, err);
	ingest_scratch_free(scratch);
	return rc;
}

static int take_profile(void *context, struct pprof *profile, const char *name, struct err *err)
{
	struct strbuf encoded = { 0 };
	int rc;

	pprof_encode(profile, &encoded);
	rc = take_pprof(context, strbuf_slice(&encoded), name, err);
	strbuf_free(&encoded);
	return rc;
}

static int take_otlp(struct profile_file *file, struct slice bytes, struct err *err)
{
	struct ingest_limits limits = limits_of_files();
	struct ingest_scratch *scratch = ingest_scratch_new(NULL);
	struct ingest_partial partial = { 0 };
	int rc = ingest_from_otlp(scratch, &limits, bytes, clock_real_ns(), &file->tables, &partial,
				  err);

	if (!rc && partial.rejected_profiles)
		rc = err_set(err, ERR_INVALID, "%s", partial.message);
	ingest_scratch_free(scratch);
	return rc;
}

static int take(struct profile_file *file, struct slice bytes, struct err *err)
{
	struct profile_decode decode;
	int rc = profile_decode_open(&decode, bytes, err);

	if (!rc && decode.form == PROFILE_FORM_RECORDING)
		rc = tables_decode(decode.bytes, PROFILE_FILE_BYTES_MAX, &file->image, err);
	else if (!rc && decode.form == PROFILE_FORM_OTLP)
		rc = take_otlp(file, decode.bytes, err);
	else if (!rc && decode.form == PROFILE_FORM_PPROF)
		rc = take_pprof(file, decode.bytes, "", err);
	else if (!rc)
		rc = profile_decode_each(&decode, take_profile, file, err);
	profile_decode_close(&decode);
	return rc;
}

static bool is_state(struct slice type)
{
	return slice_starts_with(type, SLICE_LITERAL("inuse_")) ||
	       slice_starts_with(type, SLICE_LITERAL("goroutine"));
}

/* What the file calls amounts and states, with kinds as the header above says. */
static void set_kinds(struct profile_file *file, struct tables_view *view)
{
	file->columns = mem_new_array(struct column, (size_t)view->columns_count + 1);
	for (uint32_t i = 0; i < view->columns_count; i++) {
		file->columns[i] = view->columns[i];
		file->columns[i].kind = is_state(tables_text(view, view->columns[i].sample_type))
						? COLUMN_GAUGE
						: COLUMN_DELTA;
	}
	view->columns = file->columns;
}

/* "cpu, samples", for an error. */
static void list_types(const struct tables_view *view, struct strbuf *out)
{
	for (uint32_t i = 0; i < view->columns_count; i++)
		strbuf_addf(out, "%s%.*s", i ? ", " : "",
			    SLICE_FMT(tables_text(view, view->columns[i].sample_type)));
}

static bool find_type(const struct tables_view *view, const char *sample_type,
		      struct profile_type *ret)
{
	for (uint32_t i = 0; i < view->groups_count; i++)
		for (uint32_t k = 0; k < view->groups[i].column_count; k++) {
			*ret = profile_type_of(view, i, k);
			if (slice_is(ret->sample_type, sample_type))
				return true;
		}
	return false;
}

static int choose_type(struct profile_file *file, const struct tables_view *view,
		       const char *sample_type, struct err *err)
{
	struct profile_type type;
	struct strbuf known = { 0 };
	int rc = 0;

	if (!sample_type || !find_type(view, sample_type, &type))
		type = profile_type_of(view, 0, view->groups[0].column_count - 1);
	if (sample_type && !slice_is(type.sample_type, sample_type)) {
		list_types(view, &known);
		rc = err_set(err, ERR_NOT_FOUND, "no sample type \"%s\"; there are: %.*s",
			     sample_type, SLICE_FMT(strbuf_slice(&known)));
		strbuf_free(&known);
		return rc;
	}
	profile_type_format(&file->type, &type);
	return selector_parse(strbuf_slice(&file->type), &file->selector, err);
}

static void set_range(struct profile_file *file, const struct tables_view *view)
{
	int64_t from_ns = INT64_MAX, last_ns = INT64_MIN;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];

		from_ns = report->start_ns < from_ns ? report->start_ns : from_ns;
		last_ns = report->start_ns > last_ns ? report->start_ns : last_ns;
		if (report->duration_ns > file->report_ns)
			file->report_ns = report->duration_ns;
	}
	file->params.from_ns = from_ns;
	file->params.to_ns = last_ns < INT64_MAX ? last_ns + 1 : last_ns;
}

static int make_source(struct profile_file *file, const char *sample_type, const char *filter,
		       struct err *err)
{
	struct resolver_options resolve = { .local_files = true };
	struct tables_view view =
		file->image.bytes ? file->image.view : tables_view_of(&file->tables);
	int rc;

	if (!view.reports_count)
		return err_set(err, ERR_INVALID, "it contains no profile");
	set_kinds(file, &view);
	set_range(file, &view);
	segment_of_tables(&file->segment, &view);
	rc = choose_type(file, &view, sample_type, err);
	if (!rc && filter)
		rc = filter_list_parse(&file->filters, slice_of(filter), err);
	if (!rc)
		rc = resolver_new(&resolve, &file->resolver, err);
	file->source = (struct query_source){ &file->segment, 1, file->resolver, NULL };
	file->params.selector = &file->selector;
	file->params.filters = &file->filters;
	return rc;
}

/* The sample type that the file itself says is its default; free() it. */
static char *default_type(struct slice bytes)
{
	struct strbuf unpacked = { 0 };
	struct pprof profile;
	char *name = NULL;

	pprof_init(&profile);
	if (compress_is_gzip(bytes) &&
	    !compress_gunzip(bytes, PROFILE_FILE_BYTES_MAX, &unpacked, NULL))
		bytes = strbuf_slice(&unpacked);
	if (!pprof_decode(bytes, PROFILE_ELEMENTS_MAX, &profile, NULL) &&
	    profile.default_sample_type > 0 &&
	    (uint64_t)profile.default_sample_type < profile.strings.count) {
		struct slice text = profile.strings.data[profile.default_sample_type];

		name = mem_strndup(text.data, text.len);
	}
	pprof_free(&profile);
	strbuf_free(&unpacked);
	return name;
}

int profile_file_decode(struct profile_file *file, struct slice bytes, const char *name,
			const char *sample_type, const char *filter, struct err *err)
{
	char *own = NULL;
	int rc;

	*file = (struct profile_file){ 0 };
	tables_init(&file->tables);
	rc = take(file, bytes, err);
	if (!rc && !sample_type)
		sample_type = own = default_type(bytes);
	if (!rc)
		rc = make_source(file, sample_type, filter, err);
	free(own);
	return rc ? err_wrap(err, "%s", name) : 0;
}

int profile_file_open(struct profile_file *file, const char *path, const char *sample_type,
		      const char *filter, struct err *err)
{
	struct strbuf bytes = { 0 };
	int rc = whole_file_read(path, PROFILE_FILE_BYTES_MAX, &bytes, err);

	*file = (struct profile_file){ 0 };
	if (!rc)
		rc = profile_file_decode(file, strbuf_slice(&bytes), path, sample_type, filter,
					 err);
	strbuf_free(&bytes);
	return rc;
}

void profile_file_close(struct profile_file *file)
{
	resolver_free(file->resolver);
	filter_list_free(&file->filters);
	selector_free(&file->selector);
	strbuf_free(&file->type);
	free(file->columns);
	if (file->image.bytes)
		tables_image_free(&file->image);
	if (file->tables.strings.element_bytes)
		tables_free(&file->tables);
	*file = (struct profile_file){ 0 };
}

const struct render_export profile_recording = { .name = "firn",
						 .ending = ".firn",
						 .is_binary = true };

/* Further endings of formats. */
static const struct {
	const char *ending, *name;
} other_endings[] = {
	{ ".pb", "pprof" },
	{ ".pprof", "pprof" },
	{ ".pgo", "pprof" },
	{ ".collapsed", "folded" },
};

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

static const struct render_export *format_by_name(const char *name)
{
	return strcmp(name, "firn") != 0 ? render_export_find(slice_of(name)) : &profile_recording;
}

static const struct render_export *format_by_ending(const char *path)
{
	if (!strcmp(path, "-"))
		return format_by_name("pprof");
	if (ends_with(path, profile_recording.ending))
		return &profile_recording;
	for (size_t i = 0; i < render_exports_count; i++)
		if (ends_with(path, render_exports[i].ending))
			return &render_exports[i];
	for (size_t i = 0; i < sizeof(other_endings) / sizeof(other_endings[0]); i++)
		if (ends_with(path, other_endings[i].ending))
			return format_by_name(other_endings[i].name);
	return NULL;
}

int profile_format_of(const char *name, const char *path, const struct render_export **ret,
		      struct err *err)
{
	*ret = name ? format_by_name(name) : format_by_ending(path);
	if (*ret)
		return 0;
	if (name)
		return err_set(err, ERR_INVALID,
			       "--format: \"%s\" is not one of firn, " RENDER_EXPORT_NAMES, name);
	return err_set(err, ERR_INVALID,
		       "\"%s\": end it in .pb.gz, .folded, .speedscope.json or .firn, or give "
		       "--format (firn, " RENDER_EXPORT_NAMES ")",
		       path);
}

int profile_refuse_terminal(const struct render_export *format, const char *path, struct err *err)
{
	if (strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO) || !format->is_binary)
		return 0;
	return err_set(err, ERR_INVALID, "%s is binary; redirect it: > profile%s", format->name,
		       format->ending);
}

static int render(const struct query_source *source, struct query_params *params,
		  const struct render_export *format, struct strbuf *out, struct err *err)
{
	const struct render_export_for asked = { .resolver = source->resolver };
	struct tree *tree;
	int rc;

	params->nodes_only = !format->needs_stacks;
	rc = query_tree(source, params, &tree, err);
	if (rc)
		return rc;
	rc = render_export_check(format, tree, err);
	if (!rc)
		format->write(tree, &asked, out);
	tree_free(tree);
	return rc;
}

int profile_write(const struct query_source *source, struct query_params *params,
		  const struct render_export *format, const char *path, struct err *err)
{
	struct strbuf out = { 0 };
	int rc;

	rc = profile_refuse_terminal(format, path, err);
	if (rc)
		return rc;
	if (format == &profile_recording) {
		strbuf_add_text(&out, RECORDING_MAGIC);
		tables_encode(&source->segments[0].view, RECORDING_ZSTD_LEVEL, &out, NULL);
	} else {
		rc = render(source, params, format, &out, err);
	}
	if (!rc)
		rc = (format->is_binary ? output_file_write
					: output_file_print)(path, strbuf_slice(&out), err);
	strbuf_free(&out);
	return rc;
}

/* All that it has, or of the one type; false: firn has to read and write it as any other. */
static bool copy_pprof(struct slice bytes, const char *sample_type, struct strbuf *out)
{
	struct pprof profile;
	struct strbuf encoded = { 0 };
	size_t type = 0;
	bool sound;

	pprof_init(&profile);
	sound = !pprof_decode(bytes, PROFILE_ELEMENTS_MAX, &profile, NULL) &&
		pprof_is_sound(&profile);
	while (sound && sample_type && type < profile.sample_types.count &&
	       !slice_is(profile.strings.data[profile.sample_types.data[type].type], sample_type))
		type++;
	sound = sound && type < profile.sample_types.count;
	if (sound && sample_type) {
		pprof_keep_type(&profile, type);
		pprof_encode(&profile, &encoded);
		bytes = strbuf_slice(&encoded);
	}
	if (sound)
		compress_gzip(bytes, GZIP_LEVEL, out);
	strbuf_free(&encoded);
	pprof_free(&profile);
	return sound;
}

int profile_copy(struct slice bytes, const char *sample_type, const char *to, bool *ret,
		 struct err *err)
{
	struct strbuf unpacked = { 0 }, out = { 0 };
	int rc = 0;

	if (compress_is_gzip(bytes)) {
		rc = compress_gunzip(bytes, PROFILE_FILE_BYTES_MAX, &unpacked, err);
		bytes = strbuf_slice(&unpacked);
	}
	if (!rc && copy_pprof(bytes, sample_type, &out)) {
		*ret = true;
		rc = output_file_write(to, strbuf_slice(&out), err);
	}
	strbuf_free(&unpacked);
	strbuf_free(&out);
	return rc;
}
