/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service - the service of a series: one rule for all senders (docs/labels.md).
 *
 * The service is the value of the first label in a fixed list that the series has. The list goes
 * from labels that name a service (service_name, OpenTelemetry's service.name, Prometheus' job)
 * over what it runs in (a workload, a container, a systemd service) to the program's name.
 * OpenTelemetry's libraries send "unknown_service" if nobody has set a name; that value gives way
 * to any later label. A series without any of the labels belongs to "unknown_service".
 *
 * Nothing of this is stored. All code that matches, groups or lists by the label service_name uses
 * this module, so that the rule also holds for older profiles. Pure functions; thread-safe.
 */
#ifndef FIRN_MODEL_SERVICE_H
#define FIRN_MODEL_SERVICE_H

#include "model/tables.h"

#define SERVICE_LABEL "service_name"
#define SERVICE_UNKNOWN "unknown_service"

struct service {
	struct slice name;  /* never empty; borrowed, or a constant */
	struct slice label; /* the label that it comes from; "": none */
	bool is_named;	    /* true: a chosen name; false: merely that of the program */
	uint32_t rank;	    /* of the label in the list; the lowest wins */
};

/* From the labels of a series, not from sample labels. */
struct service service_of(const struct tables_view *view, uint32_t label_set);

/* The same for labels outside of tables: begin without any, then add one label after the other. */
struct service service_begin(void);
void service_consider(struct service *service, struct slice label, struct slice value);

/* Like tables_label_value, except that each series has a service_name. */
struct slice service_label_value(const struct tables_view *view, uint32_t label_set,
				 struct slice name);

/* True for "unknown_service", also with the program's name: "unknown_service:java". */
bool service_is_unknown(struct slice name);

#endif
