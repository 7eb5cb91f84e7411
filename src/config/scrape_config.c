/* SPDX-License-Identifier: Apache-2.0 */
#include "config/scrape_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/whole_file.h"

#define ARENA_BYTES_MAX ((size_t)64 << 20)
#define JOBS_MAX 10000u

/* Under `global` and the file's top: what is Prometheus' and means nothing here is ignored. */
#define GLOBAL(name, kind, member) FIELD_AT(name, kind, struct scrape_config, member)
static const struct field global_fields[] = {
	GLOBAL("scrape_interval", FIELD_DURATION, interval_ns),
	GLOBAL("scrape_timeout", FIELD_DURATION, timeout_ns),
	GLOBAL("external_labels", FIELD_PAIRS, external_labels),
	GLOBAL("body_size_limit", FIELD_SIZE, body_bytes_max),
	{ "evaluation_interval", FIELD_IGNORED, 0, NULL, NULL },
	{ "query_log_file", FIELD_IGNORED, 0, NULL, NULL },
	{ "scrape_protocols", FIELD_IGNORED, 0, NULL, NULL },
	{ 0 },
};

/* profiling_config */

#define PROFILE(name, kind, member) FIELD_AT(name, kind, struct scrape_profile, member)
static int take_seconds(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
			struct err *err)
{
	struct slice text;
	uint64_t seconds;
	int rc = document_text(reader->document, value, &text, err);

	if (rc)
		return rc;
	if (!slice_parse_u64(text, &seconds) || !seconds || seconds > 3600)
		return document_error(reader->document, value, err,
				      "expected a number of seconds from 1 to 3600");
	*(int64_t *)into = (int64_t)seconds;
	return 0;
}

static const struct field sample_type_fields[] = {
	FIELD_AT("type", FIELD_TEXT, struct scrape_sample_type, type),
	FIELD_AT("unit", FIELD_TEXT, struct scrape_sample_type, unit),
	{ 0 },
};

static int take_sample_type(struct fields_reader *reader, struct scrape_profile *profile,
			    const struct yaml_node_s *value, struct err *err)
{
	struct scrape_sample_type *kept =
		fields_add(reader, &profile->kept, sizeof(*kept), &profile->kept_count, value, err);
	int rc;

	if (!kept)
		return -ERR_INVALID;
	rc = fields_read(reader, value, sample_type_fields, kept, err);
	if (!rc && (!kept->type.len || !kept->unit.len))
		rc = document_error(reader->document, value, err,
				    "keep_sample_type: a \"type\" and its \"unit\" are wanted");
	return rc;
}

struct sample_type_reading {
	struct fields_reader *reader;
	struct scrape_profile *profile;
};

static int take_one_sample_type(void *context, const struct yaml_node_s *value, struct err *err)
{
	struct sample_type_reading *reading = context;

	return take_sample_type(reading->reader, reading->profile, value, err);
}

static int take_sample_types(struct fields_reader *reader, const struct yaml_node_s *value,
			     void *into, struct err *err)
{
	struct sample_type_reading reading = { reader, into };

	reading.profile->kept_count = 0; /* what the profile had by default goes */
	return document_each_item(reader->document, value, take_one_sample_type, &reading, err);
}

static const struct field profile_fields[] = {
	PROFILE("enabled", FIELD_BOOL, enabled),
	PROFILE("path", FIELD_TEXT, path),
	PROFILE("delta", FIELD_BOOL, delta),
	{ "seconds", FIELD_OTHER, offsetof(struct scrape_profile, seconds), NULL, take_seconds },
	{ "keep_sample_type", FIELD_OTHER, 0, NULL, take_sample_types },
	{ 0 },
};

static const struct scrape_profile defaults[] = {
	{ SLICE_LITERAL("memory"), SLICE_LITERAL("/debug/pprof/allocs"), true, false, 0, NULL, 0 },
	{ SLICE_LITERAL("block"), SLICE_LITERAL("/debug/pprof/block"), true, false, 0, NULL, 0 },
	{ SLICE_LITERAL("goroutine"), SLICE_LITERAL("/debug/pprof/goroutine"), true, false, 0, NULL,
	  0 },
	{ SLICE_LITERAL("mutex"), SLICE_LITERAL("/debug/pprof/mutex"), true, false, 0, NULL, 0 },
	{ SLICE_LITERAL("process_cpu"), SLICE_LITERAL("/debug/pprof/profile"), true, true, 0, NULL,
	  0 },
};
#define DEFAULTS_COUNT (sizeof(defaults) / sizeof(defaults[0]))

static struct scrape_profile *find_profile(struct scrape_job *job, struct slice name)
{
	for (size_t i = 0; i < job->profiles_count; i++)
		if (slice_equal(job->profiles[i].name, name))
			return &job->profiles[i];
	return NULL;
}

struct profile_reading {
	struct fields_reader *reader;
	struct scrape_job *job;
};

static int take_profile(void *context, struct slice name, const struct yaml_node_s *value,
			struct err *err)
{
	struct profile_reading *reading = context;
	struct scrape_profile *profile = find_profile(reading->job, name);
	int rc;

	if (!profile) {
		profile = fields_add(reading->reader, &reading->job->profiles, sizeof(*profile),
				     &reading->job->profiles_count, value, err);
		if (!profile)
			return -ERR_INVALID;
		*profile = (struct scrape_profile){ .enabled = true };
		profile->name = arena_copy(reading->reader->arena, name);
	}
	rc = fields_read(reading->reader, value, profile_fields, profile, err);
	if (!rc && profile->enabled && !profile->path.len)
		rc = document_error(reading->reader->document, value, err,
				    "\"path\" is missing for \"%.*s\"", SLICE_FMT(name));
	return rc;
}

static int take_profiles(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
			 struct err *err)
{
	struct profile_reading reading = { reader, into };

	return document_each_pair(reader->document, value, take_profile, &reading, err);
}

static const struct field profiling_fields[] = {
	{ "pprof_config", FIELD_OTHER, 0, NULL, take_profiles },
	FIELD_AT("path_prefix", FIELD_TEXT, struct scrape_job, path_prefix),
	{ 0 },
};

/* one job */

static int take_relabel(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
			struct err *err)
{
	return relabel_read(reader->document, value, into, err);
}

struct param_reading {
	struct fields_reader *reader;
	struct scrape_job *job;
};

static int take_param(void *context, struct slice name, const struct yaml_node_s *value,
		      struct err *err)
{
	struct param_reading *reading = context;
	struct scrape_param *param =
		fields_add(reading->reader, &reading->job->params, sizeof(*param),
			   &reading->job->params_count, value, err);

	if (!param)
		return -ERR_INVALID;
	param->name = arena_copy(reading->reader->arena, name);
	return fields_texts(reading->reader, value, &param->values, err);
}

static int take_params(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
		       struct err *err)
{
	struct param_reading reading = { reader, into };

	return document_each_pair(reader->document, value, take_param, &reading, err);
}

#define JOB(name, kind, member) FIELD_AT(name, kind, struct scrape_job, member)
#define TAKE_DISCOVERY(name, kind)                                                                 \
	static int name(struct fields_reader *reader, const struct yaml_node_s *value, void *into, \
			struct err *err)                                                           \
	{                                                                                          \
		return discovery_config_takes[kind](reader, value, into, err);                     \
	}
TAKE_DISCOVERY(take_static, DISCOVERY_STATIC)
TAKE_DISCOVERY(take_file, DISCOVERY_FILE)
TAKE_DISCOVERY(take_http, DISCOVERY_HTTP)
TAKE_DISCOVERY(take_docker, DISCOVERY_DOCKER)
TAKE_DISCOVERY(take_kubernetes, DISCOVERY_KUBERNETES)
TAKE_DISCOVERY(take_dns, DISCOVERY_DNS)
TAKE_DISCOVERY(take_consul, DISCOVERY_CONSUL)

/* What Prometheus' configuration has besides, so that nobody thinks that he mistyped it. */
#define REFUSED(name)                                                                              \
	{                                                                                          \
		name, FIELD_REFUSED, 0, NULL, NULL                                                 \
	}
#define FOUND_BY(name, take)                                                                       \
	{                                                                                          \
		name, FIELD_OTHER, offsetof(struct scrape_job, discoveries), NULL, take            \
	}
static const struct field job_fields[] = {
	JOB("job_name", FIELD_TEXT, name),
	JOB("scrape_interval", FIELD_DURATION, interval_ns),
	JOB("scrape_timeout", FIELD_DURATION, timeout_ns),
	JOB("scheme", FIELD_TEXT, scheme),
	JOB("normalized_addresses", FIELD_BOOL, keeps_addresses),
	JOB("body_size_limit", FIELD_SIZE, body_bytes_max),
	{ "params", FIELD_OTHER, 0, NULL, take_params },
	{ "profiling_config", FIELD_MAP, 0, profiling_fields, NULL },
	{ "relabel_configs", FIELD_OTHER, offsetof(struct scrape_job, relabel), NULL,
	  take_relabel },
	FOUND_BY("static_configs", take_static),
	FOUND_BY("file_sd_configs", take_file),
	FOUND_BY("http_sd_configs", take_http),
	FOUND_BY("docker_sd_configs", take_docker),
	FOUND_BY("kubernetes_sd_configs", take_kubernetes),
	FOUND_BY("dns_sd_configs", take_dns),
	FOUND_BY("consul_sd_configs", take_consul),
	REFUSED("dockerswarm_sd_configs"),
	REFUSED("azure_sd_configs"),
	REFUSED("digitalocean_sd_configs"),
	REFUSED("ec2_sd_configs"),
	REFUSED("eureka_sd_configs"),
	REFUSED("gce_sd_configs"),
	REFUSED("hetzner_sd_configs"),
	REFUSED("ionos_sd_configs"),
	REFUSED("kuma_sd_configs"),
	REFUSED("lightsail_sd_configs"),
	REFUSED("linode_sd_configs"),
	REFUSED("marathon_sd_configs"),
	REFUSED("nerve_sd_configs"),
	REFUSED("nomad_sd_configs"),
	REFUSED("openstack_sd_configs"),
	REFUSED("ovhcloud_sd_configs"),
	REFUSED("puppetdb_sd_configs"),
	REFUSED("scaleway_sd_configs"),
	REFUSED("serverset_sd_configs"),
	REFUSED("stackit_sd_configs"),
	REFUSED("triton_sd_configs"),
	REFUSED("uyuni_sd_configs"),
	REFUSED("vultr_sd_configs"),
	REFUSED("metrics_path"),
	REFUSED("metric_relabel_configs"),
	REFUSED("honor_labels"),
	REFUSED("honor_timestamps"),
	REFUSED("sample_limit"),
	REFUSED("label_limit"),
	REFUSED("target_limit"),
	HTTP_ACCESS_CONFIG_FIELDS(struct scrape_job, access),
	{ 0 },
};

/*
 * How long a delta profile lasts: as its "seconds" say, else the interval, or what the timeout
 * leaves of it. 0: too short for any.
 */
static int64_t seconds_of(const struct scrape_job *job, const struct scrape_profile *profile)
{
	int64_t seconds = job->interval_ns / CLOCK_NS_PER_S;
	int64_t room = job->timeout_ns / CLOCK_NS_PER_S - (job->timeout_ns % CLOCK_NS_PER_S == 0);

	if (profile->seconds)
		return profile->seconds <= room ? profile->seconds : 0;
	if (!seconds)
		seconds = 1;
	return seconds < room ? seconds : room;
}

static int finish_profiles(struct fields_reader *reader, struct scrape_job *job,
			   const struct yaml_node_s *at, struct err *err)
{
	for (size_t i = 0; i < job->profiles_count; i++) {
		struct scrape_profile *profile = &job->profiles[i];
		struct strbuf path = { 0 };
		int64_t seconds;

		strbuf_add_slice(&path, job->path_prefix);
		strbuf_add_slice(&path, profile->path);
		profile->path =
			arena_copy(reader->arena, (struct slice){ strbuf_text(&path), path.len });
		strbuf_free(&path);
		if (!profile->enabled || !profile->delta)
			continue;
		seconds = seconds_of(job, profile);
		if (seconds < 1)
			return document_error(
				reader->document, at, err,
				"job \"%.*s\": scrape_timeout has to be more than the %lld s that "
				"the profile \"%.*s\" takes (delta: true)",
				SLICE_FMT(job->name),
				(long long)(profile->seconds ? profile->seconds : 1),
				SLICE_FMT(profile->name));
		profile->seconds = seconds;
	}
	return 0;
}

/* Time enough for the longest profile, if nothing else is said. */
static void choose_timeout(const struct scrape_config *config, struct scrape_job *job)
{
	if (!job->timeout_ns)
		job->timeout_ns = config->timeout_ns;
	if (job->timeout_ns)
		return;
	job->timeout_ns = job->interval_ns;
	for (size_t i = 0; i < job->profiles_count; i++) {
		const struct scrape_profile *profile = &job->profiles[i];
		int64_t wait_ns =
			profile->seconds ? profile->seconds * CLOCK_NS_PER_S : job->interval_ns;

		if (profile->enabled && profile->delta &&
		    job->timeout_ns < wait_ns + SCRAPE_CONFIG_MARGIN_NS)
			job->timeout_ns = wait_ns + SCRAPE_CONFIG_MARGIN_NS;
	}
}

static int finish_job(struct fields_reader *reader, const struct scrape_config *config,
		      struct scrape_job *job, const struct yaml_node_s *at, struct err *err)
{
	if (!job->name.len)
		return document_error(reader->document, at, err, "\"job_name\" is missing");
	for (size_t i = 0; i + 1 < config->jobs_count; i++)
		if (slice_equal(config->jobs[i].name, job->name))
			return document_error(reader->document, at, err,
					      "two jobs are named \"%.*s\"", SLICE_FMT(job->name));
	if (!slice_is(job->scheme, "http") && !slice_is(job->scheme, "https"))
		return document_error(reader->document, at, err,
				      "\"scheme\" is neither http nor https");
	if (!job->interval_ns)
		job->interval_ns = config->interval_ns;
	choose_timeout(config, job);
	if (finish_profiles(reader, job, at, err))
		return -ERR_INVALID;
	return http_access_config_check(reader, &job->access, at, err);
}

struct jobs_reading {
	struct fields_reader *reader;
	struct scrape_config *config;
};

static int take_job(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct jobs_reading *reading = context;
	struct scrape_config *config = reading->config;
	struct scrape_job *job;
	int rc;

	if (config->jobs_count == JOBS_MAX)
		return document_error(reading->reader->document, item, err, "more than %u jobs",
				      JOBS_MAX);
	job = fields_add(reading->reader, &config->jobs, sizeof(*job), &config->jobs_count, item,
			 err);
	if (!job)
		return -ERR_INVALID;
	*job = (struct scrape_job){ .line = document_line(item),
				    .scheme = SLICE_LITERAL("http"),
				    .body_bytes_max = config->body_bytes_max,
				    .access = HTTP_ACCESS_CONFIG_DEFAULT };
	for (size_t i = 0; i < DEFAULTS_COUNT; i++) {
		struct scrape_profile *profile =
			fields_add(reading->reader, &job->profiles, sizeof(*profile),
				   &job->profiles_count, item, err);

		if (!profile)
			return -ERR_INVALID;
		*profile = defaults[i];
	}
	rc = fields_read(reading->reader, item, job_fields, job, err);
	return rc ? rc : finish_job(reading->reader, config, job, item, err);
}

static int take_jobs(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
		     struct err *err)
{
	struct jobs_reading reading = { reader, into };

	return document_each_item(reader->document, value, take_job, &reading, err);
}

static int note_storage(struct fields_reader *reader, const struct yaml_node_s *value, void *into,
			struct err *err)
{
	(void)reader;
	(void)value;
	(void)err;
	*(bool *)into = true;
	return 0;
}

/* `global` may stand below the jobs that it is for: it is read first. */
static const struct field first_fields[] = {
	{ "global", FIELD_MAP, 0, global_fields, NULL },
	{ "scrape_configs", FIELD_IGNORED, 0, NULL, NULL },
	{ "object_storage", FIELD_OTHER, offsetof(struct scrape_config, has_object_storage), NULL,
	  note_storage },
	{ "debug_info", FIELD_IGNORED, 0, NULL, NULL }, /* of Parca before 0.13 */
	{ 0 },
};
static const struct field second_fields[] = {
	{ "global", FIELD_IGNORED, 0, NULL, NULL },
	{ "scrape_configs", FIELD_OTHER, 0, NULL, take_jobs },
	{ "object_storage", FIELD_IGNORED, 0, NULL, NULL },
	{ "debug_info", FIELD_IGNORED, 0, NULL, NULL },
	{ 0 },
};

static int read_document(struct fields_reader *reader, struct scrape_config *config,
			 struct err *err)
{
	const struct yaml_node_s *root = document_root(reader->document);
	int rc;

	if (!root)
		return 0;
	rc = fields_read(reader, root, first_fields, config, err);
	for (size_t i = 0; !rc && i < config->external_labels.count; i++)
		if (!rule_labels_is_name(config->external_labels.items[i].name))
			rc = document_error(reader->document, root, err,
					    "external_labels: \"%.*s\" is not a label name",
					    SLICE_FMT(config->external_labels.items[i].name));
	return rc ? rc : fields_read(reader, root, second_fields, config, err);
}

int scrape_config_parse(struct slice text, const char *path, struct scrape_config **ret,
			struct err *err)
{
	const char *slash = strrchr(path, '/');
	struct scrape_config *config;
	struct fields_reader reader;
	int rc = document_parse(text, path, &reader.document, err);

	if (rc)
		return rc;
	config = mem_new(struct scrape_config);
	arena_init(&config->arena, ARENA_BYTES_MAX);
	config->path = mem_strndup(path, strlen(path));
	config->interval_ns = SCRAPE_CONFIG_INTERVAL_NS;
	config->body_bytes_max = SCRAPE_CONFIG_BODY_BYTES;
	reader.arena = &config->arena;
	reader.directory = slice_from(config->path, slash ? (size_t)(slash - path) + 1 : 0);
	rc = read_document(&reader, config, err);
	if (!rc && config->arena.over_budget)
		rc = err_set(err, ERR_LIMIT, "%s: the file says too much", path);
	document_free(reader.document);
	if (rc)
		scrape_config_free(config);
	else
		*ret = config;
	return rc;
}

int scrape_config_load(const char *path, struct scrape_config **ret, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = whole_file_read(path, DOCUMENT_BYTES_MAX, &text, err);

	if (!rc)
		rc = scrape_config_parse(strbuf_slice(&text), path, ret, err);
	strbuf_wipe(&text);
	return rc;
}

void scrape_config_free(struct scrape_config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->jobs_count; i++)
		relabel_free(config->jobs[i].relabel);
	free(config->path);
	arena_free(&config->arena);
	free(config);
}

bool scrape_config_is_meant(const char *path)
{
	static const char *const keys[] = { "scrape_configs", "global", "object_storage", NULL };

	return document_file_has_key(path, keys);
}
