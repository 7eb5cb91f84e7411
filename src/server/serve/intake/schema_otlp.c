/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/schema_otlp.h"

#include <string.h>

#define FIELDS(array) array, sizeof(array) / sizeof((array)[0])

static const struct transcode_message any, key_value; /* values hold values */

static const struct transcode_field any_array_fields[] = {
	{ 1, "values", TRANSCODE_MESSAGE, true, false, &any, NULL },
};
static const struct transcode_message any_array = { "ArrayValue", FIELDS(any_array_fields) };

static const struct transcode_field any_list_fields[] = {
	{ 1, "values", TRANSCODE_MESSAGE, true, false, &key_value, NULL },
};
static const struct transcode_message any_list = { "KeyValueList", FIELDS(any_list_fields) };

static const struct transcode_field any_fields[] = {
	{ 1, "string_value", TRANSCODE_TEXT, false, true, NULL, NULL },
	{ 2, "bool_value", TRANSCODE_BOOL, false, true, NULL, NULL },
	{ 3, "int_value", TRANSCODE_INT64, false, true, NULL, NULL },
	{ 4, "double_value", TRANSCODE_DOUBLE, false, true, NULL, NULL },
	{ 5, "array_value", TRANSCODE_MESSAGE, false, true, &any_array, NULL },
	{ 6, "kvlist_value", TRANSCODE_MESSAGE, false, true, &any_list, NULL },
	{ 7, "bytes_value", TRANSCODE_BYTES, false, true, NULL, NULL },
	{ 8, "string_value_strindex", TRANSCODE_INT32, false, true, NULL, NULL },
};
static const struct transcode_message any = { "AnyValue", FIELDS(any_fields) };

static const struct transcode_field key_value_fields[] = {
	{ 1, "key", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_MESSAGE, false, false, &any, NULL },
	{ 3, "key_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
};
static const struct transcode_message key_value = { "KeyValue", FIELDS(key_value_fields) };

static const struct transcode_field key_value_unit_fields[] = {
	{ 1, "key_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_MESSAGE, false, false, &any, NULL },
	{ 3, "unit_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
};
static const struct transcode_message key_value_unit = { "KeyValueAndUnit",
							 FIELDS(key_value_unit_fields) };

static const struct transcode_field resource_fields[] = {
	{ 1, "attributes", TRANSCODE_MESSAGE, true, false, &key_value, NULL },
};
static const struct transcode_message resource = { "Resource", FIELDS(resource_fields) };

static const struct transcode_field scope_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "version", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "attributes", TRANSCODE_MESSAGE, true, false, &key_value, NULL },
};
static const struct transcode_message scope = { "InstrumentationScope", FIELDS(scope_fields) };

static const struct transcode_field value_type_fields[] = {
	{ 1, "type_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 2, "unit_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
};
static const struct transcode_message value_type = { "ValueType", FIELDS(value_type_fields) };

static const struct transcode_field sample_fields[] = {
	{ 1, "stack_index", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 2, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
	{ 3, "link_index", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 4, "values", TRANSCODE_INT64, true, false, NULL, NULL },
	{ 5, "timestamps_unix_nano", TRANSCODE_FIXED64, true, false, NULL, NULL },
};
static const struct transcode_message sample = { "Sample", FIELDS(sample_fields) };

static const struct transcode_field profile_fields[] = {
	{ 1, "sample_type", TRANSCODE_MESSAGE, false, false, &value_type, NULL },
	{ 2, "samples", TRANSCODE_MESSAGE, true, false, &sample, NULL },
	{ 2, "sample", TRANSCODE_MESSAGE, true, false, &sample, NULL },
	{ 3, "time_unix_nano", TRANSCODE_FIXED64, false, false, NULL, NULL },
	{ 4, "duration_nano", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 5, "period_type", TRANSCODE_MESSAGE, false, false, &value_type, NULL },
	{ 6, "period", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 7, "profile_id", TRANSCODE_HEX, false, false, NULL, NULL },
	{ 11, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
};
static const struct transcode_message profile = { "Profile", FIELDS(profile_fields) };

static const struct transcode_field scope_profiles_fields[] = {
	{ 1, "scope", TRANSCODE_MESSAGE, false, false, &scope, NULL },
	{ 2, "profiles", TRANSCODE_MESSAGE, true, false, &profile, NULL },
};
static const struct transcode_message scope_profiles = { "ScopeProfiles",
							 FIELDS(scope_profiles_fields) };

static const struct transcode_field resource_profiles_fields[] = {
	{ 1, "resource", TRANSCODE_MESSAGE, false, false, &resource, NULL },
	{ 2, "scope_profiles", TRANSCODE_MESSAGE, true, false, &scope_profiles, NULL },
};
static const struct transcode_message resource_profiles = { "ResourceProfiles",
							    FIELDS(resource_profiles_fields) };

static const struct transcode_field mapping_fields[] = {
	{ 1, "memory_start", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 2, "memory_limit", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 3, "file_offset", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 4, "filename_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 5, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
};
static const struct transcode_message mapping = { "Mapping", FIELDS(mapping_fields) };

static const struct transcode_field line_fields[] = {
	{ 1, "function_index", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 2, "line", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 3, "column", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message line = { "Line", FIELDS(line_fields) };

static const struct transcode_field location_fields[] = {
	{ 1, "mapping_index", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 2, "address", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 3, "lines", TRANSCODE_MESSAGE, true, false, &line, NULL },
	{ 3, "line", TRANSCODE_MESSAGE, true, false, &line, NULL },
	{ 4, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
};
static const struct transcode_message location = { "Location", FIELDS(location_fields) };

static const struct transcode_field function_fields[] = {
	{ 1, "name_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 2, "system_name_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 3, "filename_strindex", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 4, "start_line", TRANSCODE_INT64, false, false, NULL, NULL },
};
static const struct transcode_message function = { "Function", FIELDS(function_fields) };

static const struct transcode_field otlp_link_fields[] = {
	{ 1, "trace_id", TRANSCODE_HEX, false, false, NULL, NULL },
	{ 2, "span_id", TRANSCODE_HEX, false, false, NULL, NULL },
};
static const struct transcode_message otlp_link = { "Link", FIELDS(otlp_link_fields) };

static const struct transcode_field stack_fields[] = {
	{ 1, "location_indices", TRANSCODE_INT32, true, false, NULL, NULL },
};
static const struct transcode_message stack = { "Stack", FIELDS(stack_fields) };

static const struct transcode_field dictionary_fields[] = {
	{ 1, "mapping_table", TRANSCODE_MESSAGE, true, false, &mapping, NULL },
	{ 2, "location_table", TRANSCODE_MESSAGE, true, false, &location, NULL },
	{ 3, "function_table", TRANSCODE_MESSAGE, true, false, &function, NULL },
	{ 4, "link_table", TRANSCODE_MESSAGE, true, false, &otlp_link, NULL },
	{ 5, "string_table", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 6, "attribute_table", TRANSCODE_MESSAGE, true, false, &key_value_unit, NULL },
	{ 7, "stack_table", TRANSCODE_MESSAGE, true, false, &stack, NULL },
};
static const struct transcode_message dictionary = { "ProfilesDictionary",
						     FIELDS(dictionary_fields) };

static const struct transcode_field schema_otlp_request_fields[] = {
	{ 1, "resource_profiles", TRANSCODE_MESSAGE, true, false, &resource_profiles, NULL },
	{ 2, "dictionary", TRANSCODE_MESSAGE, false, false, &dictionary, NULL },
};
const struct transcode_message schema_otlp_request = { "ExportProfilesServiceRequest",
						       FIELDS(schema_otlp_request_fields) };

/* Versions 1.5 and 1.7 (codec/profile/otlp_old.c): of 1.5 the tables are in each profile. */

static const struct transcode_field old_sample_fields[] = {
	{ 1, "locations_start_index", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 2, "locations_length", TRANSCODE_INT32, false, false, NULL, NULL },
	{ 3, "value", TRANSCODE_INT64, true, false, NULL, NULL },
	{ 4, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
	{ 5, "link_index", TRANSCODE_INT32, false, true, NULL, NULL },
	{ 6, "timestamps_unix_nano", TRANSCODE_UINT64, true, false, NULL, NULL },
};
static const struct transcode_message old_sample = { "Sample", FIELDS(old_sample_fields) };

static const struct transcode_field old_location_fields[] = {
	{ 1, "mapping_index", TRANSCODE_INT32, false, true, NULL, NULL },
	{ 2, "address", TRANSCODE_UINT64, false, false, NULL, NULL },
	{ 3, "line", TRANSCODE_MESSAGE, true, false, &line, NULL },
	{ 5, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
};
static const struct transcode_message old_location = { "Location", FIELDS(old_location_fields) };

static const struct transcode_field profile_1_5_fields[] = {
	{ 1, "sample_type", TRANSCODE_MESSAGE, true, false, &value_type, NULL },
	{ 2, "sample", TRANSCODE_MESSAGE, true, false, &old_sample, NULL },
	{ 3, "mapping_table", TRANSCODE_MESSAGE, true, false, &mapping, NULL },
	{ 4, "location_table", TRANSCODE_MESSAGE, true, false, &old_location, NULL },
	{ 5, "location_indices", TRANSCODE_INT32, true, false, NULL, NULL },
	{ 6, "function_table", TRANSCODE_MESSAGE, true, false, &function, NULL },
	{ 7, "attribute_table", TRANSCODE_MESSAGE, true, false, &key_value, NULL },
	{ 9, "link_table", TRANSCODE_MESSAGE, true, false, &otlp_link, NULL },
	{ 10, "string_table", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 11, "time_nanos", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 12, "duration_nanos", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 13, "period_type", TRANSCODE_MESSAGE, false, false, &value_type, NULL },
	{ 14, "period", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 17, "profile_id", TRANSCODE_HEX, false, false, NULL, NULL },
	{ 22, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
};
static const struct transcode_message profile_1_5 = { "Profile", FIELDS(profile_1_5_fields) };

static const struct transcode_field profile_1_7_fields[] = {
	{ 1, "sample_type", TRANSCODE_MESSAGE, true, false, &value_type, NULL },
	{ 2, "sample", TRANSCODE_MESSAGE, true, false, &old_sample, NULL },
	{ 3, "location_indices", TRANSCODE_INT32, true, false, NULL, NULL },
	{ 4, "time_nanos", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 5, "duration_nanos", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 6, "period_type", TRANSCODE_MESSAGE, false, false, &value_type, NULL },
	{ 7, "period", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 10, "profile_id", TRANSCODE_HEX, false, false, NULL, NULL },
	{ 14, "attribute_indices", TRANSCODE_INT32, true, false, NULL, NULL },
};
static const struct transcode_message profile_1_7 = { "Profile", FIELDS(profile_1_7_fields) };

static const struct transcode_field dictionary_1_7_fields[] = {
	{ 1, "mapping_table", TRANSCODE_MESSAGE, true, false, &mapping, NULL },
	{ 2, "location_table", TRANSCODE_MESSAGE, true, false, &old_location, NULL },
	{ 3, "function_table", TRANSCODE_MESSAGE, true, false, &function, NULL },
	{ 4, "link_table", TRANSCODE_MESSAGE, true, false, &otlp_link, NULL },
	{ 5, "string_table", TRANSCODE_TEXT, true, false, NULL, NULL },
	{ 6, "attribute_table", TRANSCODE_MESSAGE, true, false, &key_value, NULL },
};
static const struct transcode_message dictionary_1_7 = { "ProfilesDictionary",
							 FIELDS(dictionary_1_7_fields) };

#define OLD(version)                                                                               \
	static const struct transcode_field scope_##version##_fields[] = {                         \
		{ 1, "scope", TRANSCODE_MESSAGE, false, false, &scope, NULL },                     \
		{ 2, "profiles", TRANSCODE_MESSAGE, true, false, &profile_##version, NULL },       \
	};                                                                                         \
	static const struct transcode_message scope_##version = {                                  \
		"ScopeProfiles", FIELDS(scope_##version##_fields)                                  \
	};                                                                                         \
	static const struct transcode_field resource_##version##_fields[] = {                      \
		{ 1, "resource", TRANSCODE_MESSAGE, false, false, &resource, NULL },               \
		{ 2, "scope_profiles", TRANSCODE_MESSAGE, true, false, &scope_##version, NULL },   \
	};                                                                                         \
	static const struct transcode_message resource_##version = {                               \
		"ResourceProfiles", FIELDS(resource_##version##_fields)                            \
	};                                                                                         \
	static const struct transcode_field request_##version##_fields[] = {                       \
		{ 1, "resource_profiles", TRANSCODE_MESSAGE, true, false, &resource_##version,     \
		  NULL },                                                                          \
		{ 2, "dictionary", TRANSCODE_MESSAGE, false, false, &dictionary_1_7, NULL },       \
	};                                                                                         \
	static const struct transcode_message request_##version = {                                \
		"ExportProfilesServiceRequest", FIELDS(request_##version##_fields)                 \
	}
OLD(1_5);
OLD(1_7);

static bool has_key(struct slice json, const char *key)
{
	return memmem(json.data, json.len, key, strlen(key)) != NULL;
}

const struct transcode_message *schema_otlp_of(struct slice json)
{
	if (!has_key(json, "\"locationsLength\"") && !has_key(json, "\"locations_length\""))
		return &schema_otlp_request;
	return has_key(json, "\"dictionary\"") ? &request_1_7 : &request_1_5;
}

static const struct transcode_field partial_success_fields[] = {
	{ 1, "rejected_profiles", TRANSCODE_INT64, false, false, NULL, NULL },
	{ 2, "error_message", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message partial_success = { "ExportProfilesPartialSuccess",
							  FIELDS(partial_success_fields) };

static const struct transcode_field schema_otlp_response_fields[] = {
	{ 1, "partial_success", TRANSCODE_MESSAGE, false, false, &partial_success, NULL },
};
const struct transcode_message schema_otlp_response = { "ExportProfilesServiceResponse",
							FIELDS(schema_otlp_response_fields) };
