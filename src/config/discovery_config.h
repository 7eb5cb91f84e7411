/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery_config - the sources of a job's targets: static_configs, file_sd_configs,
 * http_sd_configs, docker_sd_configs, kubernetes_sd_configs, dns_sd_configs and consul_sd_configs
 * of Prometheus' configuration, with its defaults. Plain data in the reader's arena.
 */
#ifndef FIRN_CONFIG_DISCOVERY_CONFIG_H
#define FIRN_CONFIG_DISCOVERY_CONFIG_H

#include "base/clock.h"
#include "config/http_access_config.h"

enum discovery_kind {
	DISCOVERY_STATIC,
	DISCOVERY_FILE,
	DISCOVERY_HTTP,
	DISCOVERY_DOCKER,
	DISCOVERY_KUBERNETES,
	DISCOVERY_DNS,
	DISCOVERY_CONSUL,
	DISCOVERY_KINDS,
};

struct discovery_filter {
	struct slice name;
	struct field_texts values;
};

enum discovery_role {
	DISCOVERY_ROLE_POD,
	DISCOVERY_ROLE_NODE,
	DISCOVERY_ROLE_SERVICE,
	DISCOVERY_ROLE_ENDPOINTS,
	DISCOVERY_ROLE_SLICE, /* endpointslice */
	DISCOVERY_ROLE_INGRESS,
	DISCOVERY_ROLES,
};

enum discovery_record {
	DISCOVERY_RECORD_SRV,
	DISCOVERY_RECORD_A,
	DISCOVERY_RECORD_AAAA,
	DISCOVERY_RECORD_MX,
	DISCOVERY_RECORD_NS,
	DISCOVERY_RECORDS,
};

struct discovery_selector {
	struct slice role, label, field;
};

struct discovery_config {
	enum discovery_kind kind;
	size_t line;
	int64_t refresh_ns;
	struct http_access_config access;

	struct field_texts targets; /* static */
	struct field_pairs labels;

	struct field_texts files; /* file: paths; * in the last part */
	struct slice url;	  /* http */

	struct slice host; /* docker: unix:///PATH, tcp://, http:// or https:// */
	struct slice host_networking_host;
	uint64_t port; /* dns, too */
	bool match_first_network;
	struct discovery_filter *filters;
	size_t filters_count;

	enum discovery_role role; /* kubernetes */
	struct slice role_text, api_server, kubeconfig_file;
	struct {
		struct field_texts names;
		bool own_namespace;
	} namespaces;
	struct discovery_selector *selectors; /* of the resources that the role needs */
	size_t selectors_count;
	struct {
		bool node;
	} attach_metadata;

	struct {
		struct field_texts names;
		struct slice record_text;
		enum discovery_record record;
	} dns;

	struct {
		struct slice server; /* HOST:PORT */
		struct slice scheme, path_prefix, token, username, password;
		struct slice datacenter, namespace_name, partition, tag_separator;
		struct slice filter, health_filter; /* of the catalogue, and of instances */
		bool allow_stale;
		struct field_texts services, tags;
		struct field_pairs node_meta;
	} consul;
};

struct discovery_configs {
	struct discovery_config *items;
	size_t count;
};

/* static_configs, file_sd_configs, ...: one field_take_f each, into a struct discovery_configs. */
extern field_take_f *const discovery_config_takes[DISCOVERY_KINDS];
extern const char *const discovery_config_names[DISCOVERY_KINDS];

#endif
