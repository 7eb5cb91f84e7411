/* SPDX-License-Identifier: Apache-2.0 */
/* schema - messages of querier.v1 and types.v1. */
#include "server/serve/rpc/schema.h"

#define FIELDS(array) array, sizeof(array) / sizeof((array)[0])

static const char *const aggregation_names[] = {
	"TIME_SERIES_AGGREGATION_TYPE_SUM",
	"TIME_SERIES_AGGREGATION_TYPE_AVERAGE",
};
static const struct transcode_enum aggregation = { FIELDS(aggregation_names) };

static const char *const exemplar_type_names[] = {
	"EXEMPLAR_TYPE_UNSPECIFIED",
	"EXEMPLAR_TYPE_NONE",
	"EXEMPLAR_TYPE_INDIVIDUAL",
	"EXEMPLAR_TYPE_SPAN",
};
static const struct transcode_enum exemplar_type = { FIELDS(exemplar_type_names) };

static const char *const format_names[] = {
	"PROFILE_FORMAT_UNSPECIFIED", "PROFILE_FORMAT_FLAMEGRAPH", "PROFILE_FORMAT_TREE",
	"PROFILE_FORMAT_DOT",	      "PROFILE_FORMAT_PPROF",
};
static const struct transcode_enum format = { FIELDS(format_names) };

static const struct transcode_field profile_type_fields[] = {
	{ 1, "ID", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 4, "sample_type", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 5, "sample_unit", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 6, "period_type", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 7, "period_unit", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message profile_type = { "ProfileType", FIELDS(profile_type_fields) };

static const struct transcode_field schema_pyro_types_request_fields[] = {
	{ 1, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "end", TRANSCODE_INT64, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_types_request = {
	"ProfileTypesRequest", FIELDS(schema_pyro_types_request_fields)
};

static const struct transcode_field schema_pyro_types_response_fields[] = {
	{ 1, "profile_types", TRANSCODE_MESSAGE, true, false, &profile_type, NULL },
};
const struct transcode_message schema_pyro_types_response = {
	"ProfileTypesResponse", FIELDS(schema_pyro_types_response_fields)
};

static const struct transcode_field schema_pyro_names_request_fields[] = {
	{ 1, "matchers", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "end", TRANSCODE_INT64, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_names_request = {
	"LabelNamesRequest", FIELDS(schema_pyro_names_request_fields)
};

static const struct transcode_field schema_pyro_values_request_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "matchers", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 3, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "end", TRANSCODE_INT64, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_values_request = {
	"LabelValuesRequest", FIELDS(schema_pyro_values_request_fields)
};

static const struct transcode_field schema_pyro_names_response_fields[] = {
	{ 1, "names", TRANSCODE_TEXT, true, false, NULL, NULL },
};
const struct transcode_message schema_pyro_names_response = {
	"LabelNamesResponse", FIELDS(schema_pyro_names_response_fields)
};

static const struct transcode_field label_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message label = { "LabelPair", FIELDS(label_fields) };

static const struct transcode_field labels_fields[] = {
	{ 1, "labels", TRANSCODE_MESSAGE, true, false, &label, NULL },
};
static const struct transcode_message labels = { "Labels", FIELDS(labels_fields) };

static const struct transcode_field schema_pyro_series_request_fields[] = {
	{ 1, "matchers", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "label_names", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 3, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "end", TRANSCODE_INT64, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_series_request = {
	"SeriesRequest", FIELDS(schema_pyro_series_request_fields)
};

static const struct transcode_field schema_pyro_series_response_fields[] = {
	{ 2, "labels_set", TRANSCODE_MESSAGE, true, false, &labels, NULL },
};
const struct transcode_message schema_pyro_series_response = {
	"SeriesResponse", FIELDS(schema_pyro_series_response_fields)
};

static const struct transcode_field call_site_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message call_site = { "Location", FIELDS(call_site_fields) };

static const struct transcode_field go_pgo_fields[] = {
	{ 1, "keep_locations", TRANSCODE_UINT32, false, false, NULL, NULL },
	{ 2, "aggregate_callees", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message go_pgo = { "GoPGO", FIELDS(go_pgo_fields) };

static const struct transcode_field stack_selector_fields[] = {
	{ 1, "call_site", TRANSCODE_MESSAGE, true, false, &call_site, NULL },
	{ 2, "go_pgo", TRANSCODE_MESSAGE, false, false, &go_pgo, NULL },
};
static const struct transcode_message stack_selector = { "StackTraceSelector",
							 FIELDS(stack_selector_fields) };

static const struct transcode_field annotation_fields[] = {
	{ 1, "key", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message annotation = { "ProfileAnnotation",
						     FIELDS(annotation_fields) };

static const struct transcode_field exemplar_fields[] = {
	{ 1, "timestamp", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "profile_id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "span_id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 4, "value", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "labels", TRANSCODE_MESSAGE, true, false, &label, NULL },
	{ 6, "trace_id", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message exemplar = { "Exemplar", FIELDS(exemplar_fields) };

static const struct transcode_field point_fields[] = {
	{ 1, "value", TRANSCODE_DOUBLE, false, false, NULL, NULL },
	{ 2, "timestamp", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "annotations", TRANSCODE_MESSAGE, true, false, &annotation, NULL },
	{ 4, "exemplars", TRANSCODE_MESSAGE, true, false, &exemplar, NULL },
};
static const struct transcode_message point = { "Point", FIELDS(point_fields) };

static const struct transcode_field series_fields[] = {
	{ 1, "labels", TRANSCODE_MESSAGE, true, false, &label, NULL },
	{ 2, "points", TRANSCODE_MESSAGE, true, false, &point, NULL },
};
static const struct transcode_message series = { "Series", FIELDS(series_fields) };

static const struct transcode_field schema_pyro_select_series_request_fields[] = {
	{ 1, "profile_typeID", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "label_selector", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "end", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "group_by", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 6, "step", TRANSCODE_DOUBLE, false, false, NULL, NULL },
	{ 7, "aggregation", TRANSCODE_ENUM, false, true, NULL, &aggregation },
	{ 8, "stack_trace_selector", TRANSCODE_MESSAGE, false, true, &stack_selector, NULL },
	{ 9, "limit", TRANSCODE_INT64, false, true, NULL, NULL },
	{ 10, "exemplar_type", TRANSCODE_ENUM, false, false, NULL, &exemplar_type },
};
const struct transcode_message schema_pyro_select_series_request = {
	"SelectSeriesRequest", FIELDS(schema_pyro_select_series_request_fields)
};

static const struct transcode_field schema_pyro_select_series_response_fields[] = {
	{ 1, "series", TRANSCODE_MESSAGE, true, false, &series, NULL },
};
const struct transcode_message schema_pyro_select_series_response = {
	"SelectSeriesResponse", FIELDS(schema_pyro_select_series_response_fields)
};

static const struct transcode_field level_fields[] = {
	{ 1, "values", TRANSCODE_INT64, true, false, NULL, NULL },
};
static const struct transcode_message level = { "Level", FIELDS(level_fields) };

static const struct transcode_field flame_graph_fields[] = {
	{ 1, "names", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "levels", TRANSCODE_MESSAGE, true, false, &level, NULL },
	{ 3, "total", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "max_self", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message flame_graph = { "FlameGraph", FIELDS(flame_graph_fields) };

static const struct transcode_field schema_pyro_stacks_request_fields[] = {
	{ 1, "profile_typeID", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "label_selector", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "end", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "max_nodes", TRANSCODE_INT64, false, true, NULL, NULL },
	{ 6, "format", TRANSCODE_ENUM, false, false, NULL, &format },
	{ 7, "stack_trace_selector", TRANSCODE_MESSAGE, false, true, &stack_selector, NULL },
	{ 8, "profile_id_selector", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 10, "trace_id_selector", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 11, "span_selector", TRANSCODE_TEXT, true, false, NULL, NULL },
};
const struct transcode_message schema_pyro_stacks_request = {
	"SelectMergeStacktracesRequest", FIELDS(schema_pyro_stacks_request_fields)
};

static const struct transcode_field schema_pyro_profile_request_fields[] = {
	{ 1, "profile_typeID", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "label_selector", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "end", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "max_nodes", TRANSCODE_INT64, false, true, NULL, NULL },
	{ 6, "stack_trace_selector", TRANSCODE_MESSAGE, false, true, &stack_selector, NULL },
	{ 7, "profile_id_selector", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 8, "trace_id_selector", TRANSCODE_TEXT, true, false, NULL, NULL },
};
const struct transcode_message schema_pyro_profile_request = {
	"SelectMergeProfileRequest", FIELDS(schema_pyro_profile_request_fields)
};

static const struct transcode_field pprof_value_type_fields[] = {
	{ 1, "type", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "unit", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message pprof_value_type = { "ValueType",
							   FIELDS(pprof_value_type_fields) };

static const struct transcode_field pprof_label_fields[] = {
	{ 1, "key", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "str", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "num", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "num_unit", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message pprof_label = { "Label", FIELDS(pprof_label_fields) };

static const struct transcode_field pprof_sample_fields[] = {
	{ 1, "location_id", TRANSCODE_UINT64, true, false, NULL, NULL },
	{ 2, "value", TRANSCODE_INT64, true, false, NULL, NULL },
	{ 3, "label", TRANSCODE_MESSAGE, true, false, &pprof_label, NULL },
};
static const struct transcode_message pprof_sample = { "Sample", FIELDS(pprof_sample_fields) };

static const struct transcode_field pprof_mapping_fields[] = {
	{ 1, "id", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 2, "memory_start", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 3, "memory_limit", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 4, "file_offset", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 5, "filename", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 6, "build_id", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 7, "has_functions", TRANSCODE_BOOL, false, false, NULL, NULL },
	{ 8, "has_filenames", TRANSCODE_BOOL, false, false, NULL, NULL },
	{ 9, "has_line_numbers", TRANSCODE_BOOL, false, false, NULL, NULL },
	{ 10, "has_inline_frames", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message pprof_mapping = { "Mapping", FIELDS(pprof_mapping_fields) };

static const struct transcode_field pprof_line_fields[] = {
	{ 1, "function_id", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 2, "line", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message pprof_line = { "Line", FIELDS(pprof_line_fields) };

static const struct transcode_field pprof_location_fields[] = {
	{ 1, "id", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 2, "mapping_id", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 3, "address", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 4, "line", TRANSCODE_MESSAGE, true, false, &pprof_line, NULL },
	{ 5, "is_folded", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message pprof_location = { "Location",
							 FIELDS(pprof_location_fields) };

static const struct transcode_field pprof_function_fields[] = {
	{ 1, "id", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 2, "name", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "system_name", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "filename", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "start_line", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message pprof_function = { "Function",
							 FIELDS(pprof_function_fields) };

static const struct transcode_field schema_pyro_profile_fields[] = {
	{ 1, "sample_type", TRANSCODE_MESSAGE, true, false, &pprof_value_type, NULL },
	{ 2, "sample", TRANSCODE_MESSAGE, true, false, &pprof_sample, NULL },
	{ 3, "mapping", TRANSCODE_MESSAGE, true, false, &pprof_mapping, NULL },
	{ 4, "location", TRANSCODE_MESSAGE, true, false, &pprof_location, NULL },
	{ 5, "function", TRANSCODE_MESSAGE, true, false, &pprof_function, NULL },
	{ 6, "string_table", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 7, "drop_frames", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 8, "keep_frames", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 9, "time_nanos", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 10, "duration_nanos", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 11, "period_type", TRANSCODE_MESSAGE, false, false, &pprof_value_type, NULL },
	{ 12, "period", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 13, "comment", TRANSCODE_INT64, true, false, NULL, NULL },
	{ 14, "default_sample_type", TRANSCODE_INT64, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_profile = { "Profile",
						       FIELDS(schema_pyro_profile_fields) };

static const struct transcode_field pprof_fields[] = {
	{ 1, "profile", TRANSCODE_MESSAGE, false, true, &schema_pyro_profile, NULL },
};
static const struct transcode_message pprof = { "PprofProfile", FIELDS(pprof_fields) };

static const struct transcode_field schema_pyro_stacks_response_fields[] = {
	{ 1, "flamegraph", TRANSCODE_MESSAGE, false, true, &flame_graph, NULL },
	{ 2, "tree", TRANSCODE_BYTES, false, true, NULL, NULL },
	{ 3, "dot", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 5, "pprof", TRANSCODE_MESSAGE, false, true, &pprof, NULL },
};
const struct transcode_message schema_pyro_stacks_response = {
	"SelectMergeStacktracesResponse", FIELDS(schema_pyro_stacks_response_fields)
};

static const struct transcode_field schema_pyro_diff_request_fields[] = {
	{ 1, "left", TRANSCODE_MESSAGE, false, false, &schema_pyro_stacks_request, NULL },
	{ 2, "right", TRANSCODE_MESSAGE, false, false, &schema_pyro_stacks_request, NULL },
};
const struct transcode_message schema_pyro_diff_request = {
	"DiffRequest", FIELDS(schema_pyro_diff_request_fields)
};

static const struct transcode_field flame_graph_diff_fields[] = {
	{ 1, "names", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "levels", TRANSCODE_MESSAGE, true, false, &level, NULL },
	{ 3, "total", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "max_self", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "left_ticks", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 6, "right_ticks", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message flame_graph_diff = { "FlameGraphDiff",
							   FIELDS(flame_graph_diff_fields) };

static const struct transcode_field schema_pyro_diff_response_fields[] = {
	{ 1, "flamegraph", TRANSCODE_MESSAGE, false, false, &flame_graph_diff, NULL },
};
const struct transcode_message schema_pyro_diff_response = {
	"DiffResponse", FIELDS(schema_pyro_diff_response_fields)
};

const struct transcode_message schema_pyro_stats_request = { "GetProfileStatsRequest", NULL, 0 };

static const struct transcode_field schema_pyro_stats_response_fields[] = {
	{ 1, "data_ingested", TRANSCODE_BOOL, false, false, NULL, NULL },
	{ 2, "oldest_profile_time", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "newest_profile_time", TRANSCODE_INT64, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_stats_response = {
	"GetProfileStatsResponse", FIELDS(schema_pyro_stats_response_fields)
};

static const struct transcode_field schema_pyro_span_request_fields[] = {
	{ 1, "profile_typeID", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "label_selector", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "span_selector", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 4, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "end", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 6, "max_nodes", TRANSCODE_INT64, false, true, NULL, NULL },
	{ 7, "format", TRANSCODE_ENUM, false, false, NULL, &format },
};
const struct transcode_message schema_pyro_span_request = {
	"SelectMergeSpanProfileRequest", FIELDS(schema_pyro_span_request_fields)
};

static const char *const heatmap_query_type_names[] = {
	"HEATMAP_QUERY_TYPE_UNSPECIFIED",
	"HEATMAP_QUERY_TYPE_INDIVIDUAL",
	"HEATMAP_QUERY_TYPE_SPAN",
};
static const struct transcode_enum heatmap_query_type = { FIELDS(heatmap_query_type_names) };

static const struct transcode_field schema_pyro_heatmap_request_fields[] = {
	{ 1, "profile_typeID", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "label_selector", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "end", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "step", TRANSCODE_DOUBLE, false, false, NULL, NULL },
	{ 6, "group_by", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 7, "query_type", TRANSCODE_ENUM, false, false, NULL, &heatmap_query_type },
	{ 8, "exemplar_type", TRANSCODE_ENUM, false, false, NULL, &exemplar_type },
	{ 9, "limit", TRANSCODE_INT64, false, true, NULL, NULL },
};
const struct transcode_message schema_pyro_heatmap_request = {
	"SelectHeatmapRequest", FIELDS(schema_pyro_heatmap_request_fields)
};

static const struct transcode_field heatmap_slot_fields[] = {
	{ 1, "timestamp", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "y_min", TRANSCODE_DOUBLE, true, false, NULL, NULL },
	{ 3, "counts", TRANSCODE_INT32, true, false, NULL, NULL },
	{ 4, "exemplars", TRANSCODE_MESSAGE, true, false, &exemplar, NULL },
};
static const struct transcode_message heatmap_slot = { "HeatmapSlot", FIELDS(heatmap_slot_fields) };

static const struct transcode_field heatmap_series_fields[] = {
	{ 1, "labels", TRANSCODE_MESSAGE, true, false, &label, NULL },
	{ 2, "slots", TRANSCODE_MESSAGE, true, false, &heatmap_slot, NULL },
};
static const struct transcode_message heatmap_series = { "HeatmapSeries",
							 FIELDS(heatmap_series_fields) };

static const struct transcode_field schema_pyro_heatmap_response_fields[] = {
	{ 1, "series", TRANSCODE_MESSAGE, true, false, &heatmap_series, NULL },
};
const struct transcode_message schema_pyro_heatmap_response = {
	"SelectHeatmapResponse", FIELDS(schema_pyro_heatmap_response_fields)
};

static const struct transcode_field schema_pyro_analyze_request_fields[] = {
	{ 2, "start", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "end", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "query", TRANSCODE_TEXT, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_analyze_request = {
	"AnalyzeQueryRequest", FIELDS(schema_pyro_analyze_request_fields)
};

static const struct transcode_field query_scope_fields[] = {
	{ 1, "component_type", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "component_count", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 3, "block_count", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 4, "series_count", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 5, "profile_count", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 6, "sample_count", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 7, "index_bytes", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 8, "profile_bytes", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 9, "symbol_bytes", TRANSCODE_UINT64, false, false, NULL, NULL },
};
static const struct transcode_message query_scope = { "QueryScope", FIELDS(query_scope_fields) };

static const struct transcode_field query_impact_fields[] = {
	{ 2, "total_bytes_in_time_range", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 3, "total_queried_series", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 4, "deduplication_needed", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message query_impact = { "QueryImpact", FIELDS(query_impact_fields) };

static const struct transcode_field schema_pyro_analyze_response_fields[] = {
	{ 1, "query_scopes", TRANSCODE_MESSAGE, true, false, &query_scope, NULL },
	{ 2, "query_impact", TRANSCODE_MESSAGE, false, false, &query_impact, NULL },
};
const struct transcode_message schema_pyro_analyze_response = {
	"AnalyzeQueryResponse", FIELDS(schema_pyro_analyze_response_fields)
};

/* capabilities.v1 and settings.v1 */

const struct transcode_message schema_pyro_flags_request = { "GetFeatureFlagsRequest", NULL, 0 };

static const struct transcode_field flag_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "enabled", TRANSCODE_BOOL, false, false, NULL, NULL },
	{ 3, "description", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 4, "documentation_url", TRANSCODE_TEXT, false, true, NULL, NULL },
};
static const struct transcode_message flag = { "FeatureFlag", FIELDS(flag_fields) };

static const struct transcode_field schema_pyro_flags_response_fields[] = {
	{ 1, "feature_flags", TRANSCODE_MESSAGE, true, false, &flag, NULL },
};
const struct transcode_message schema_pyro_flags_response = {
	"GetFeatureFlagsResponse", FIELDS(schema_pyro_flags_response_fields)
};

static const struct transcode_field setting_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "modifiedAt", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message setting = { "Setting", FIELDS(setting_fields) };

const struct transcode_message schema_pyro_settings_request = { "GetSettingsRequest", NULL, 0 };

static const struct transcode_field schema_pyro_settings_response_fields[] = {
	{ 1, "settings", TRANSCODE_MESSAGE, true, false, &setting, NULL },
};
const struct transcode_message schema_pyro_settings_response = {
	"GetSettingsResponse", FIELDS(schema_pyro_settings_response_fields)
};

static const struct transcode_field schema_pyro_set_fields[] = {
	{ 1, "setting", TRANSCODE_MESSAGE, false, false, &setting, NULL },
};
const struct transcode_message schema_pyro_set_request = { "SetSettingsRequest",
							   FIELDS(schema_pyro_set_fields) };
const struct transcode_message schema_pyro_set_response = { "SetSettingsResponse",
							    FIELDS(schema_pyro_set_fields) };

static const struct transcode_field schema_pyro_delete_request_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
};
const struct transcode_message schema_pyro_delete_request = {
	"DeleteSettingsRequest", FIELDS(schema_pyro_delete_request_fields)
};
const struct transcode_message schema_pyro_delete_response = { "DeleteSettingsResponse", NULL, 0 };

/* push.v1 */
static const struct transcode_field raw_sample_fields[] = {
	{ 1, "raw_profile", TRANSCODE_BYTES, false, false, NULL, NULL },
	{ 2, "ID", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message raw_sample = { "RawSample", FIELDS(raw_sample_fields) };

static const struct transcode_field raw_series_fields[] = {
	{ 1, "labels", TRANSCODE_MESSAGE, true, false, &label, NULL },
	{ 2, "samples", TRANSCODE_MESSAGE, true, false, &raw_sample, NULL },
};
static const struct transcode_message raw_series = { "RawProfileSeries",
						     FIELDS(raw_series_fields) };

static const struct transcode_field schema_pyro_push_request_fields[] = {
	{ 1, "series", TRANSCODE_MESSAGE, true, false, &raw_series, NULL },
};
const struct transcode_message schema_pyro_push_request = {
	"PushRequest", FIELDS(schema_pyro_push_request_fields)
};
const struct transcode_message schema_pyro_push_response = { "PushResponse", NULL, 0 };
