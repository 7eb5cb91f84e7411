/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_otlp - tables to an OTLP ExportProfilesServiceRequest (opentelemetry-proto 1.10,
 * profiles/v1development). One ResourceProfiles per series (its labels are the resource's
 * attributes), one Profile per report and column, one dictionary for all.
 */
#ifndef FIRN_AGENT_EXPORT_ENCODE_OTLP_H
#define FIRN_AGENT_EXPORT_ENCODE_OTLP_H

#include "base/strbuf.h"
#include "model/tables.h"

/* Appends to out. Samples whose times are known are sent as times, which count one each.
 * Profile.profile_id is 16 bytes made of the report's batch id and start time. */
void encode_otlp(const struct tables_view *view, struct strbuf *out);

#endif
