/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_list - the targets that files and servers of Prometheus' discovery name:
 * [{"targets": ["HOST:PORT"], "labels": {"NAME": "VALUE"}}], as JSON or YAML.
 */
#ifndef FIRN_SERVER_SCRAPE_TARGET_LIST_H
#define FIRN_SERVER_SCRAPE_TARGET_LIST_H

#include "base/strbuf.h"
#include "server/scrape/found.h"

/*
 * Adds them all to `into`, each with the label `name` = `where` besides. ERR_INVALID says what is
 * wrong and where; then some may have been added.
 */
int target_list_read_json(struct slice text, const char *name, const char *where,
			  struct found *into, struct err *err);
int target_list_read_yaml(struct slice text, const char *name, const char *where,
			  struct found *into, struct err *err);

#endif
