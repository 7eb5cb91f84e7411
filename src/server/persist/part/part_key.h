/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_key - which partition a series belongs to: (tenant, service) within its group.
 *
 * Tenant is the reserved label `__tenant__`. Service is the first of the labels `service_name`,
 * `container`, `systemd_unit`, `executable` and `comm` that is not empty. This rule is part of the
 * file format; model/service.h has the rule for the label that queries see. Pure functions.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_KEY_H
#define FIRN_SERVER_PERSIST_PART_PART_KEY_H

#include "model/selector.h"

#define PART_KEY_TENANT "__tenant__"

/* The key of a partition; together with the group it is unique in a part. */
struct part_key {
	struct slice tenant;  /* "" = the only one */
	struct slice service; /* "" when no label says */
};

/* Texts of the view. *ret_label (may be NULL) is the name of the label that says the service. */
struct part_key part_key_of(const struct tables_view *view, uint32_t label_set,
			    struct slice *ret_label);

int part_key_compare(const struct part_key *a, const struct part_key *b);

/*
 * True if a series of the partition, or rows of it, may match. `label` is the label from which all
 * its series have their service, or "" if they differ. The key says nothing about labels that rows
 * carry.
 */
bool part_key_may_match(const struct part_key *key, struct slice label, const struct slice *of_rows,
			size_t of_rows_count, const struct selector *selector);

#endif
