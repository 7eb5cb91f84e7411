/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyro_name - parses the series of a request to /ingest: `name=app.name{key=value,...}`, times, and
 * the type from the name's suffix if the body has none.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_PYRO_NAME_H
#define FIRN_SERVER_SERVE_INTAKE_PYRO_NAME_H

#include "server/ingest/ingest.h"

#define PYRO_LABELS_MAX 128

/* The type and unit of samples in a format that does not tell them. */
struct pyro_name_type {
	const char *suffix; /* of the app's name */
	const char *name, *type, *unit, *period_type, *period_unit;
	bool is_time; /* values are samples at a rate: they become nanoseconds */
};

struct pyro_name {
	struct slice app;		   /* without the suffix, if that was one of a type */
	const struct pyro_name_type *type; /* never NULL: CPU time when nothing says more */
	struct ingest_label labels[PYRO_LABELS_MAX];
	size_t labels_count; /* service_name among them */
};

/*
 * `text` is the parameter, decoded, and must outlive *ret. `units` may be empty. `has_types`: the
 * body says its types, and the app's name is kept as it is. Labels that begin with "__", which
 * would make a series per process, are left out. ERR_INVALID says what is wrong with the name.
 */
MUST_USE int pyro_name_parse(struct slice text, struct slice units, bool has_types,
			     struct pyro_name *ret, struct err *err);

/* Digits that are s, ms, us or ns by their number; 0 for anything else. */
int64_t pyro_name_time_ns(struct slice text);

#endif
