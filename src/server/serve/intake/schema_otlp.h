/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_otlp - the messages of OTLP Profiles as tables for codec/transcode. The numbers are those
 * of 1.10; in JSON fields have names, so that this reads 1.8 and 1.9 too. Ids are hex, by OTLP's
 * rule, not base64.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_SCHEMA_OTLP_H
#define FIRN_SERVER_SERVE_INTAKE_SCHEMA_OTLP_H

#include "codec/wire/transcode.h"

/* That of a request's version: samples of 1.5 and 1.7 alone say how many places they have. */
const struct transcode_message *schema_otlp_of(struct slice json);

extern const struct transcode_message schema_otlp_request, schema_otlp_response;

#endif
