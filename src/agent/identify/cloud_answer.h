/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloud_answer - what the metadata services of clouds say of the instance that asks, as meta
 * labels:
 *
 *   __meta_cloud_{provider,instance_id,instance_type,zone,region}
 *
 *   aws     the instance identity document, JSON (EC2 user guide, "Instance identity documents")
 *   gce     single texts; zone and type are "projects/N/zones/Z", "projects/N/machineTypes/T"
 *   azure   compute of the instance, JSON (api-version 2021-02-01)
 *
 * Only values that names of instances, types and zones can be are taken: letters, digits, "-_.".
 */
#ifndef FIRN_AGENT_IDENTIFY_CLOUD_ANSWER_H
#define FIRN_AGENT_IDENTIFY_CLOUD_ANSWER_H

#include "agent/identify/meta_labels.h"

#define CLOUD_META "__meta_cloud_"

/* ERR_INVALID when it is no such answer; then nothing was added. */
int cloud_read_aws(struct slice json, struct meta_labels *ret, struct err *err);
int cloud_read_azure(struct slice json, struct meta_labels *ret, struct err *err);
int cloud_read_gce(struct slice id, struct slice type, struct slice zone, struct meta_labels *ret,
		   struct err *err);

#endif
