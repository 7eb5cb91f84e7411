/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_config - the file of `firn agent --config-path` (docs/labels.md), YAML:
 *
 *   relabel_configs    Prometheus' rules over what is known of a process; `drop` leaves it out
 *   include_env_vars   names of environment variables that rules may ask for (`__meta_env_var_...`)
 *   profiling_cpu_sampling_frequency   samples per second and CPU
 *   debuginfo_upload   `exclude`: files, by path, whose symbols are sent to no one
 *   external_labels    NAME: VALUE that every series has, unless a rule gave it another value
 *
 * Immutable after loading: any thread may apply it, each to labels of its own.
 */
#ifndef FIRN_AGENT_IDENTIFY_AGENT_CONFIG_H
#define FIRN_AGENT_IDENTIFY_AGENT_CONFIG_H

#include "base/err.h"
#include "base/strbuf.h"
#include "config/rule_labels.h"

struct agent_config;

/* ERR_INVALID "FILE:LINE: ..."; unknown keys are errors. */
int agent_config_load(const char *path, struct agent_config **ret, struct err *err);
int agent_config_parse(struct slice text, const char *where, struct agent_config **ret,
		       struct err *err);
void agent_config_free(struct agent_config *config); /* accepts NULL */

/* True if the file has a key of such a file at its top level; false also when it cannot be read. */
bool agent_config_is_meant(const char *path);

size_t agent_config_rules(const struct agent_config *config);
/* They live as long as the configuration. */
const struct slice *agent_config_variables(const struct agent_config *config, size_t *ret_count);
/* 0 = the file does not say. */
unsigned agent_config_frequency(const struct agent_config *config);

/* Whether symbols of the file at this path stay on this host. */
bool agent_config_keeps_symbols(const struct agent_config *config, const char *path);

size_t agent_config_external_labels(const struct agent_config *config);

/*
 * Labels and meta labels of a process become its final labels: none begins with "__" any more.
 * False: a rule leaves the process out, and the labels are what that rule saw.
 */
bool agent_config_apply(const struct agent_config *config, struct rule_labels *labels);

/*
 * The same, and appends a line, after `prefix`, for each rule that changed a label or leaves the
 * process out.
 */
bool agent_config_explain(const struct agent_config *config, struct rule_labels *labels,
			  const char *prefix, struct strbuf *out);

#endif
