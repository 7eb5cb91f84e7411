/* SPDX-License-Identifier: Apache-2.0 */
/* answer_scraped - what is scraped, in the shape that Prometheus' /api/v1/targets has. */
#ifndef FIRN_SERVER_SERVE_API_ANSWER_SCRAPED_H
#define FIRN_SERVER_SERVE_API_ANSWER_SCRAPED_H

#include "codec/wire/json.h"

struct scrape;

/*
 * Writes the members "status" and "data" (activeTargets, droppedTargets, droppedTargetCounts,
 * discoveryErrors). `state` is "active", "dropped" or any other text for both. `scrape` may be
 * NULL.
 */
void answer_scraped_put(struct json *json, struct scrape *scrape, struct slice state);

#endif
