/* SPDX-License-Identifier: Apache-2.0 */
/* schema - messages of parca.profilestore.v1alpha1 and parca.telemetry.v1alpha1. */
#include "server/serve/rpc/schema.h"

#define FIELDS(array) array, sizeof(array) / sizeof((array)[0])

const struct transcode_message schema_parca_empty = { "Empty", NULL, 0 };

static const struct transcode_field label_fields[] = {
	{ 1, "name", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "value", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_message label = { "Label", FIELDS(label_fields) };

static const struct transcode_field label_set_fields[] = {
	{ 1, "labels", TRANSCODE_MESSAGE, true, false, &label, NULL },
};
static const struct transcode_message label_set = { "LabelSet", FIELDS(label_set_fields) };

static const struct transcode_field raw_sample_fields[] = {
	{ 1, "raw_profile", TRANSCODE_BYTES, false, false, NULL, NULL },
};
static const struct transcode_message raw_sample = { "RawSample", FIELDS(raw_sample_fields) };

static const struct transcode_field raw_series_fields[] = {
	{ 1, "labels", TRANSCODE_MESSAGE, false, false, &label_set, NULL },
	{ 2, "samples", TRANSCODE_MESSAGE, true, false, &raw_sample, NULL },
};
static const struct transcode_message raw_series = { "RawProfileSeries",
						     FIELDS(raw_series_fields) };

static const struct transcode_field raw_request_fields[] = {
	{ 1, "tenant", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "series", TRANSCODE_MESSAGE, true, false, &raw_series, NULL },
	{ 3, "normalized", TRANSCODE_BOOL, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_raw_request = { "WriteRawRequest",
							    FIELDS(raw_request_fields) };

static const struct transcode_field arrow_request_fields[] = {
	{ 1, "ipc_buffer", TRANSCODE_BYTES, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_arrow_request = { "WriteArrowRequest",
							      FIELDS(arrow_request_fields) };

static const struct transcode_field agent_fields[] = {
	{ 1, "id", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 2, "last_error", TRANSCODE_TEXT, false, false, NULL, NULL },
	{ 3, "last_push", TRANSCODE_TIMESTAMP, false, false, NULL, NULL },
};
static const struct transcode_message agent = { "Agent", FIELDS(agent_fields) };

static const struct transcode_field agents_fields[] = {
	{ 1, "agents", TRANSCODE_MESSAGE, true, false, &agent, NULL },
};
const struct transcode_message schema_parca_agents = { "AgentsResponse", FIELDS(agents_fields) };

static const struct transcode_field panic_fields[] = {
	{ 1, "stderr", TRANSCODE_TEXT, false, false, NULL, NULL },
};
const struct transcode_message schema_parca_panic = { "ReportPanicRequest", FIELDS(panic_fields) };
