/* SPDX-License-Identifier: Apache-2.0 */
/* schema - messages of parca.query.v1alpha1. */
#include "server/serve/rpc/schema.h"

#define FIELDS(array) array, sizeof(array) / sizeof((array)[0])

static const char *const diff_mode_names[] = {
	"MODE_SINGLE_UNSPECIFIED",
	"MODE_MERGE",
};
static const struct transcode_enum diff_mode = { FIELDS(diff_mode_names) };

static const char *const query_mode_names[] = {
	"MODE_SINGLE_UNSPECIFIED",
	"MODE_DIFF",
	"MODE_MERGE",
};
static const struct transcode_enum query_mode = { FIELDS(query_mode_names) };

static const char *const report_type_names[] = {
	"REPORT_TYPE_FLAMEGRAPH_UNSPECIFIED",
	"REPORT_TYPE_PPROF_UNSPECIFIED",
	"REPORT_TYPE_TOP",
	"REPORT_TYPE_CALLGRAPH",
	"REPORT_TYPE_FLAMEGRAPH_TABLE",
	"REPORT_TYPE_FLAMEGRAPH_ARROW",
	"REPORT_TYPE_SOURCE",
	"REPORT_TYPE_TABLE_ARROW",
	"REPORT_TYPE_PROFILE_METADATA",
	"REPORT_TYPE_FLAMECHART",
};
static const struct transcode_enum report_type = { FIELDS(report_type_names) };

static const struct transcode_field profile_type_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "sample_type", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "sample_unit", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 4, "period_type", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 5, "period_unit", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 6, "delta", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message profile_type = { "ProfileType", FIELDS(profile_type_fields) };

static const struct transcode_field schema_parca_types_request_fields[] = {
	{ 1, "start", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 2, "end", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_types_request = {
	"ProfileTypesRequest", FIELDS(schema_parca_types_request_fields)
};

static const struct transcode_field schema_parca_types_response_fields[] = {
	{ 1, "types", TRANSCODE_MESSAGE, true, false, &profile_type, NULL },
};
const struct transcode_message schema_parca_types_response = {
	"ProfileTypesResponse", FIELDS(schema_parca_types_response_fields)
};

static const struct transcode_field schema_parca_labels_request_fields[] = {
	{ 1, "match", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "start", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 3, "end", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 4, "profile_type", TRANSCODE_TEXT, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_labels_request = {
	"LabelsRequest", FIELDS(schema_parca_labels_request_fields)
};

static const struct transcode_field schema_parca_labels_response_fields[] = {
	{ 1, "label_names", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "warnings", TRANSCODE_TEXT, true, false, NULL, NULL },
};
const struct transcode_message schema_parca_labels_response = {
	"LabelsResponse", FIELDS(schema_parca_labels_response_fields)
};

static const struct transcode_field schema_parca_values_request_fields[] = {
	{ 1, "label_name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "match", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 3, "start", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 4, "end", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 5, "profile_type", TRANSCODE_TEXT, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_values_request = {
	"ValuesRequest", FIELDS(schema_parca_values_request_fields)
};

static const struct transcode_field schema_parca_values_response_fields[] = {
	{ 1, "label_values", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "warnings", TRANSCODE_TEXT, true, false, NULL, NULL },
};
const struct transcode_message schema_parca_values_response = {
	"ValuesResponse", FIELDS(schema_parca_values_response_fields)
};

static const struct transcode_field label_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message label = { "Label", FIELDS(label_fields) };

static const struct transcode_field label_set_fields[] = {
	{ 1, "labels", TRANSCODE_MESSAGE, true, false, &label, NULL },
};
static const struct transcode_message label_set = { "LabelSet", FIELDS(label_set_fields) };

static const struct transcode_field value_type_fields[] = {
	{ 1, "type", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "unit", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message value_type = { "ValueType", FIELDS(value_type_fields) };

static const struct transcode_field sample_fields[] = {
	{ 1, "timestamp", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "value_per_second", TRANSCODE_DOUBLE, false, false, NULL, NULL },
	{ 4, "duration", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "count", TRANSCODE_INT32, false, false, NULL, NULL },
};
static const struct transcode_message sample = { "MetricsSample", FIELDS(sample_fields) };

static const struct transcode_field series_fields[] = {
	{ 1, "labelset", TRANSCODE_MESSAGE, false, false, &label_set, NULL },
	{ 2, "samples", TRANSCODE_MESSAGE, true, false, &sample, NULL },
	{ 3, "period_type", TRANSCODE_MESSAGE, false, false, &value_type, NULL },
	{ 4, "sample_type", TRANSCODE_MESSAGE, false, false, &value_type, NULL },
};
static const struct transcode_message series = { "MetricsSeries", FIELDS(series_fields) };

static const struct transcode_field schema_parca_range_request_fields[] = {
	{ 1, "query", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "start", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 3, "end", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 4, "limit", TRANSCODE_UINT32, false, false, NULL, NULL },
	{ 5, "step", TRANSCODE_DURATION, false, false, NULL, NULL },
	{ 6, "sum_by", TRANSCODE_TEXT, true, false, NULL, NULL },
};
const struct transcode_message schema_parca_range_request = {
	"QueryRangeRequest", FIELDS(schema_parca_range_request_fields)
};

static const struct transcode_field schema_parca_range_response_fields[] = {
	{ 1, "series", TRANSCODE_MESSAGE, true, false, &series, NULL },
};
const struct transcode_message schema_parca_range_response = {
	"QueryRangeResponse", FIELDS(schema_parca_range_response_fields)
};

static const struct transcode_field merge_profile_fields[] = {
	{ 1, "query", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "start", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 3, "end", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
};
static const struct transcode_message merge_profile = { "MergeProfile",
							FIELDS(merge_profile_fields) };

static const struct transcode_field single_profile_fields[] = {
	{ 1, "time", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 2, "query", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message single_profile = { "SingleProfile",
							 FIELDS(single_profile_fields) };

static const struct transcode_field diff_selection_fields[] = {
	{ 1, "mode", TRANSCODE_ENUM, false, false, NULL, &diff_mode },
	{ 2, "merge", TRANSCODE_MESSAGE, false, true, &merge_profile, NULL },
	{ 3, "single", TRANSCODE_MESSAGE, false, true, &single_profile, NULL },
};
static const struct transcode_message diff_selection = { "ProfileDiffSelection",
							 FIELDS(diff_selection_fields) };

static const struct transcode_field diff_profile_fields[] = {
	{ 1, "a", TRANSCODE_MESSAGE, false, false, &diff_selection, NULL },
	{ 2, "b", TRANSCODE_MESSAGE, false, false, &diff_selection, NULL },
	{ 3, "absolute", TRANSCODE_BOOL, false, true, NULL, NULL },
};
static const struct transcode_message diff_profile = { "DiffProfile", FIELDS(diff_profile_fields) };

static const struct transcode_field group_by_fields[] = {
	{ 1, "fields", TRANSCODE_TEXT, true, false, NULL, NULL },
};
static const struct transcode_message group_by = { "GroupBy", FIELDS(group_by_fields) };

static const struct transcode_field source_reference_fields[] = {
	{ 1, "build_id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "filename", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "source_only", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message source_reference = { "SourceReference",
							   FIELDS(source_reference_fields) };

static const struct transcode_field text_condition_fields[] = {
	{ 1, "equal", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 2, "not_equal", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 3, "contains", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 4, "not_contains", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 5, "starts_with", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 6, "not_starts_with", TRANSCODE_TEXT, false, true, NULL, NULL },
};
static const struct transcode_message text_condition = { "StringCondition",
							 FIELDS(text_condition_fields) };

static const struct transcode_field number_condition_fields[] = {
	{ 1, "equal", TRANSCODE_UINT64, false, true, NULL, NULL },
	{ 2, "not_equal", TRANSCODE_UINT64, false, true, NULL, NULL },
};
static const struct transcode_message number_condition = { "NumberCondition",
							   FIELDS(number_condition_fields) };

static const struct transcode_field criteria_fields[] = {
	{ 1, "function_name", TRANSCODE_MESSAGE, false, false, &text_condition, NULL },
	{ 2, "system_name", TRANSCODE_MESSAGE, false, false, &text_condition, NULL },
	{ 3, "binary", TRANSCODE_MESSAGE, false, false, &text_condition, NULL },
	{ 4, "filename", TRANSCODE_MESSAGE, false, false, &text_condition, NULL },
	{ 5, "address", TRANSCODE_MESSAGE, false, false, &number_condition, NULL },
	{ 6, "line_number", TRANSCODE_MESSAGE, false, false, &number_condition, NULL },
};
static const struct transcode_message criteria = { "FilterCriteria", FIELDS(criteria_fields) };

static const struct transcode_field function_stack_filter_fields[] = {
	{ 1, "function_to_filter", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "exclude", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message function_stack_filter = {
	"FunctionNameStackFilter", FIELDS(function_stack_filter_fields)
};

static const struct transcode_field stack_filter_fields[] = {
	{ 1, "function_name_stack_filter", TRANSCODE_MESSAGE, false, true, &function_stack_filter,
	  NULL },
	{ 2, "criteria", TRANSCODE_MESSAGE, false, true, &criteria, NULL },
};
static const struct transcode_message stack_filter = { "StackFilter", FIELDS(stack_filter_fields) };

static const struct transcode_field binary_frame_filter_fields[] = {
	{ 1, "include_binaries", TRANSCODE_TEXT, true, false, NULL, NULL },
};
static const struct transcode_message binary_frame_filter = { "BinaryFrameFilter",
							      FIELDS(binary_frame_filter_fields) };

static const struct transcode_field frame_filter_fields[] = {
	{ 1, "binary_frame_filter", TRANSCODE_MESSAGE, false, true, &binary_frame_filter, NULL },
	{ 2, "criteria", TRANSCODE_MESSAGE, false, true, &criteria, NULL },
};
static const struct transcode_message frame_filter = { "FrameFilter", FIELDS(frame_filter_fields) };

static const struct transcode_field filter_fields[] = {
	{ 1, "stack_filter", TRANSCODE_MESSAGE, false, true, &stack_filter, NULL },
	{ 2, "frame_filter", TRANSCODE_MESSAGE, false, true, &frame_filter, NULL },
};
static const struct transcode_message filter = { "Filter", FIELDS(filter_fields) };

static const struct transcode_field schema_parca_query_request_fields[] = {
	{ 1, "mode", TRANSCODE_ENUM, false, false, NULL, &query_mode },
	{ 2, "diff", TRANSCODE_MESSAGE, false, true, &diff_profile, NULL },
	{ 3, "merge", TRANSCODE_MESSAGE, false, true, &merge_profile, NULL },
	{ 4, "single", TRANSCODE_MESSAGE, false, true, &single_profile, NULL },
	{ 5, "report_type", TRANSCODE_ENUM, false, false, NULL, &report_type },
	{ 6, "filter_query", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 7, "node_trim_threshold", TRANSCODE_FLOAT, false, true, NULL, NULL },
	{ 8, "group_by", TRANSCODE_MESSAGE, false, false, &group_by, NULL },
	{ 9, "source_reference", TRANSCODE_MESSAGE, false, false, &source_reference, NULL },
	{ 11, "invert_call_stack", TRANSCODE_BOOL, false, true, NULL, NULL },
	{ 12, "filter", TRANSCODE_MESSAGE, true, false, &filter, NULL },
	{ 13, "sandwich_by_function", TRANSCODE_TEXT, false, true, NULL, NULL },
};
const struct transcode_message schema_parca_query_request = {
	"QueryRequest", FIELDS(schema_parca_query_request_fields)
};

static const struct transcode_field line_fields[] = {
	{ 2, "line", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "function_index", TRANSCODE_UINT32, false, false, NULL, NULL },
};
static const struct transcode_message line = { "Line", FIELDS(line_fields) };

static const struct transcode_field location_fields[] = {
	{ 1, "id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "address", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 6, "lines", TRANSCODE_MESSAGE, true, false, &line, NULL },
	{ 7, "mapping_index", TRANSCODE_UINT32, false, false, NULL, NULL },
};
static const struct transcode_message location = { "Location", FIELDS(location_fields) };

static const struct transcode_field mapping_fields[] = {
	{ 1, "id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 5, "file", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 6, "build_id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 11, "file_string_index", TRANSCODE_UINT32, false, false, NULL, NULL },
	{ 12, "build_id_string_index", TRANSCODE_UINT32, false, false, NULL, NULL },
};
static const struct transcode_message mapping = { "Mapping", FIELDS(mapping_fields) };

static const struct transcode_field function_fields[] = {
	{ 1, "id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "start_line", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 4, "system_name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 5, "filename", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 6, "name_string_index", TRANSCODE_UINT32, false, false, NULL, NULL },
	{ 7, "system_name_string_index", TRANSCODE_UINT32, false, false, NULL, NULL },
	{ 8, "filename_string_index", TRANSCODE_UINT32, false, false, NULL, NULL },
};
static const struct transcode_message function = { "Function", FIELDS(function_fields) };

static const struct transcode_field meta_fields[] = {
	{ 1, "location", TRANSCODE_MESSAGE, false, false, &location, NULL },
	{ 2, "mapping", TRANSCODE_MESSAGE, false, false, &mapping, NULL },
	{ 3, "function", TRANSCODE_MESSAGE, false, false, &function, NULL },
	{ 4, "line", TRANSCODE_MESSAGE, false, false, &line, NULL },
};
static const struct transcode_message meta = { "TopNodeMeta", FIELDS(meta_fields) };

static const struct transcode_field top_node_fields[] = {
	{ 1, "meta", TRANSCODE_MESSAGE, false, false, &meta, NULL },
	{ 2, "cumulative", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "flat", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "diff", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message top_node = { "TopNode", FIELDS(top_node_fields) };

static const struct transcode_field top_fields[] = {
	{ 1, "list", TRANSCODE_MESSAGE, true, false, &top_node, NULL },
	{ 2, "reported", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 3, "total", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 4, "unit", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message top = { "Top", FIELDS(top_fields) };

static const struct transcode_field graph_node_fields[] = {
	{ 1, "id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "meta", TRANSCODE_MESSAGE, false, false, &meta, NULL },
	{ 3, "cumulative", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "flat", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message graph_node = { "CallgraphNode", FIELDS(graph_node_fields) };

static const struct transcode_field graph_edge_fields[] = {
	{ 1, "id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "source", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "target", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 4, "cumulative", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "is_collapsed", TRANSCODE_BOOL, false, false, NULL, NULL },
};
static const struct transcode_message graph_edge = { "CallgraphEdge", FIELDS(graph_edge_fields) };

static const struct transcode_field callgraph_fields[] = {
	{ 1, "nodes", TRANSCODE_MESSAGE, true, false, &graph_node, NULL },
	{ 2, "edges", TRANSCODE_MESSAGE, true, false, &graph_edge, NULL },
	{ 3, "cumulative", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message callgraph = { "Callgraph", FIELDS(callgraph_fields) };

static const struct transcode_field flamegraph_arrow_fields[] = {
	{ 1, "record", TRANSCODE_BYTES, false, false, NULL, NULL },
	{ 2, "unit", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "height", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 4, "trimmed", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message flamegraph_arrow = { "FlamegraphArrow",
							   FIELDS(flamegraph_arrow_fields) };

static const struct transcode_field table_arrow_fields[] = {
	{ 1, "record", TRANSCODE_BYTES, false, false, NULL, NULL },
	{ 2, "unit", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message table_arrow = { "TableArrow", FIELDS(table_arrow_fields) };

static const struct transcode_field metadata_fields[] = {
	{ 1, "mapping_files", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "labels", TRANSCODE_TEXT, true, false, NULL, NULL },
};
static const struct transcode_message metadata = { "ProfileMetadata", FIELDS(metadata_fields) };

static const struct transcode_field flame_meta_fields[] = {
	{ 1, "location", TRANSCODE_MESSAGE, false, false, &location, NULL },
	{ 2, "mapping", TRANSCODE_MESSAGE, false, false, &mapping, NULL },
	{ 3, "function", TRANSCODE_MESSAGE, false, false, &function, NULL },
	{ 4, "line", TRANSCODE_MESSAGE, false, false, &line, NULL },
	{ 5, "location_index", TRANSCODE_UINT32, false, false, NULL, NULL },
	{ 6, "line_index", TRANSCODE_UINT32, false, false, NULL, NULL },
};
static const struct transcode_message flame_meta = { "FlamegraphNodeMeta",
						     FIELDS(flame_meta_fields) };

static const struct transcode_message flame_node;
static const struct transcode_field flame_node_fields[] = {
	{ 1, "meta", TRANSCODE_MESSAGE, false, false, &flame_meta, NULL },
	{ 2, "cumulative", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "diff", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 4, "children", TRANSCODE_MESSAGE, true, false, &flame_node, NULL },
};
static const struct transcode_message flame_node = { "FlamegraphNode", FIELDS(flame_node_fields) };

static const struct transcode_field flame_root_fields[] = {
	{ 1, "cumulative", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "diff", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "children", TRANSCODE_MESSAGE, true, false, &flame_node, NULL },
};
static const struct transcode_message flame_root = { "FlamegraphRootNode",
						     FIELDS(flame_root_fields) };

static const struct transcode_field flamegraph_fields[] = {
	{ 1, "root", TRANSCODE_MESSAGE, false, false, &flame_root, NULL },
	{ 2, "total", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "unit", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 4, "height", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 5, "string_table", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 6, "locations", TRANSCODE_MESSAGE, true, false, &location, NULL },
	{ 7, "mapping", TRANSCODE_MESSAGE, true, false, &mapping, NULL },
	{ 8, "function", TRANSCODE_MESSAGE, true, false, &function, NULL },
	{ 9, "untrimmed_total", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 10, "trimmed", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message flamegraph = { "Flamegraph", FIELDS(flamegraph_fields) };

static const struct transcode_field source_fields[] = {
	{ 1, "record", TRANSCODE_BYTES, false, false, NULL, NULL },
	{ 2, "source", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "unit", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message source = { "Source", FIELDS(source_fields) };

static const struct transcode_field schema_parca_query_response_fields[] = {
	{ 5, "flamegraph", TRANSCODE_MESSAGE, false, true, &flamegraph, NULL },
	{ 6, "pprof", TRANSCODE_BYTES, false, true, NULL, NULL },
	{ 7, "top", TRANSCODE_MESSAGE, false, true, &top, NULL },
	{ 8, "callgraph", TRANSCODE_MESSAGE, false, true, &callgraph, NULL },
	{ 11, "flamegraph_arrow", TRANSCODE_MESSAGE, false, true, &flamegraph_arrow, NULL },
	{ 12, "source", TRANSCODE_MESSAGE, false, true, &source, NULL },
	{ 13, "table_arrow", TRANSCODE_MESSAGE, false, true, &table_arrow, NULL },
	{ 14, "profile_metadata", TRANSCODE_MESSAGE, false, true, &metadata, NULL },
	{ 9, "total", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 10, "filtered", TRANSCODE_INT64, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_query_response = {
	"QueryResponse", FIELDS(schema_parca_query_response_fields)
};

const struct transcode_message schema_parca_has_data_request = { "HasProfileDataRequest", NULL, 0 };

static const struct transcode_field schema_parca_has_data_response_fields[] = {
	{ 1, "has_data", TRANSCODE_BOOL, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_has_data_response = {
	"HasProfileDataResponse", FIELDS(schema_parca_has_data_response_fields)
};

static const struct transcode_field schema_parca_series_request_fields[] = {
	{ 1, "match", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 2, "start", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
	{ 3, "end", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_series_request = {
	"SeriesRequest", FIELDS(schema_parca_series_request_fields)
};

const struct transcode_message schema_parca_series_response = { "SeriesResponse", NULL, 0 };

static const struct transcode_field schema_parca_share_request_fields[] = {
	{ 1, "query_request", TRANSCODE_MESSAGE, false, false, &schema_parca_query_request, NULL },
	{ 2, "description", TRANSCODE_TEXT, false, true, NULL, NULL },
};
const struct transcode_message schema_parca_share_request = {
	"ShareProfileRequest", FIELDS(schema_parca_share_request_fields)
};

static const struct transcode_field schema_parca_share_response_fields[] = {
	{ 1, "link", TRANSCODE_TEXT, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_share_response = {
	"ShareProfileResponse", FIELDS(schema_parca_share_response_fields)
};
