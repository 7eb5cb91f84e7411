/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service - which service a series is of: one rule, whoever sent it (docs/labels.md).
 *
 * It is the value of the first label that the series has of a fixed list, from what names a service
 * (service_name, OpenTelemetry's service.name, Prometheus' job) over what it runs in (a workload, a
 * container, a systemd service) to the program's name. "unknown_service", as OpenTelemetry's
 * libraries call what nobody has named, gives way to any later one. A series without any is of
 * "unknown_service".
 *
 * Nothing of this is stored. Whoever matches, groups or lists by the label service_name asks here,
 * so that the rule holds for everything that was ever stored. Pure functions; thread-safe.
 */
#ifndef FIRN_MODEL_SERVICE_H
#define FIRN_MODEL_SERVICE_H

#include "model/tables.h"

#define SERVICE_LABEL "service_name"
#define SERVICE_UNKNOWN "unknown_service"

struct service {
	struct slice name;  /* never empty; borrowed, or a constant */
	struct slice label; /* that says it; "": none does */
	bool is_named;	    /* somebody gave the name, which says more than what program it is */
	uint32_t rank;	    /* of the label in the list; the lowest counts */
};

/* Of a series' labels, not of those that rows carry. */
struct service service_of(const struct tables_view *view, uint32_t label_set);

/* The same of labels that are not in tables: what none says yet, and one label after the other. */
struct service service_begin(void);
void service_consider(struct service *service, struct slice label, struct slice value);

/* tables_label_value, but that each series has a service_name. */
struct slice service_label_value(const struct tables_view *view, uint32_t label_set,
				 struct slice name);

/* True of "unknown_service" and, of programs that add what they are, "unknown_service:java". */
bool service_is_unknown(struct slice name);

#endif
