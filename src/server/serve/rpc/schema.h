/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema - the messages of the calls that are also spoken in JSON, as tables for codec/transcode.
 *
 * Field numbers and names: parca/query/v1alpha1/query.proto of Parca; querier/v1/querier.proto and
 * types/v1/types.proto of Pyroscope.
 */
#ifndef FIRN_SERVER_SERVE_RPC_SCHEMA_H
#define FIRN_SERVER_SERVE_RPC_SCHEMA_H

#include "codec/wire/transcode.h"

/* parca.query.v1alpha1 */
extern const struct transcode_message schema_parca_types_request, schema_parca_types_response,
	schema_parca_labels_request, schema_parca_labels_response, schema_parca_values_request,
	schema_parca_values_response, schema_parca_range_request, schema_parca_range_response,
	schema_parca_query_request, schema_parca_query_response, schema_parca_has_data_request,
	schema_parca_has_data_response, schema_parca_series_request, schema_parca_series_response,
	schema_parca_share_request, schema_parca_share_response;

/* parca.profilestore.v1alpha1, parca.telemetry.v1alpha1 */
extern const struct transcode_message schema_parca_raw_request, schema_parca_arrow_request,
	schema_parca_agents, schema_parca_panic, schema_parca_empty;

/* querier.v1 */
extern const struct transcode_message schema_pyro_types_request, schema_pyro_types_response,
	schema_pyro_names_request, schema_pyro_values_request, schema_pyro_names_response,
	schema_pyro_series_request, schema_pyro_series_response, schema_pyro_select_series_request,
	schema_pyro_select_series_response, schema_pyro_stacks_request, schema_pyro_stacks_response,
	schema_pyro_profile_request, schema_pyro_profile, schema_pyro_diff_request,
	schema_pyro_diff_response, schema_pyro_stats_request, schema_pyro_stats_response,
	schema_pyro_span_request, schema_pyro_heatmap_request, schema_pyro_heatmap_response,
	schema_pyro_analyze_request, schema_pyro_analyze_response, schema_pyro_flags_request,
	schema_pyro_flags_response, schema_pyro_settings_request, schema_pyro_settings_response,
	schema_pyro_set_request, schema_pyro_set_response, schema_pyro_delete_request,
	schema_pyro_delete_response;

/* push.v1 */
extern const struct transcode_message schema_pyro_push_request, schema_pyro_push_response;

/* grpc.health.v1 (health.c) */
extern const struct transcode_message schema_health_request, schema_health_response;

#endif
