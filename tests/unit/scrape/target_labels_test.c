/* SPDX-License-Identifier: Apache-2.0 */
/* From a configuration and what was found to what is asked, and under which labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "server/scrape/target.h"
#include "server/scrape/target_list.h"

static struct scrape_config *parse(const char *text)
{
	struct scrape_config *config;
	struct err err;

	if (scrape_config_parse(slice_of(text), "dir/firn.yml", &config, &err))
		fail_msg("%s", err.message);
	return config;
}

static void refused(const char *text, const char *message)
{
	struct scrape_config *config;
	struct err err = { 0 };

	assert_int_equal(scrape_config_parse(slice_of(text), "f.yml", &config, &err), -ERR_INVALID);
	assert_string_equal(err.message, message);
}

static const struct scrape_profile *profile_of(const struct scrape_job *job, const char *name)
{
	for (size_t i = 0; i < job->profiles_count; i++)
		if (slice_is(job->profiles[i].name, name))
			return &job->profiles[i];
	fail_msg("no profile %s", name);
	return NULL;
}

/* Of the first job and an address: "URL {public labels}", or "dropped: REASON". */
static void makes(const char *text, const char *name, const char *address, const char *wanted)
{
	struct scrape_config *config = parse(text);
	const struct scrape_job *job = &config->jobs[0];
	struct found *found = found_new();
	struct scrape_origin origin = { found, NULL, profile_of(job, name) };
	struct scrape_target *target;
	struct target_labels made;
	struct strbuf got = { 0 };

	found_label(found, SLICE_LITERAL("__address__"), slice_of(address));
	found_label(found, SLICE_LITERAL("__meta_kind"), SLICE_LITERAL("k"));
	found_target(found, 0);
	found_seal(found);
	origin.target = found->targets;
	target_labels_make(job, origin.profile, origin.target, &made);
	if (made.reason[0]) {
		strbuf_addf(&got, "dropped: %s", made.reason);
	} else {
		target = target_new(job, &origin, &made);
		strbuf_addf(&got, "%s", target->url);
		for (size_t i = 0; i < target->after.count; i++)
			if (target_labels_is_public(target->after.labels[i].name))
				strbuf_addf(&got, " %.*s=%.*s",
					    SLICE_FMT(target->after.labels[i].name),
					    SLICE_FMT(target->after.labels[i].value));
		target_free(target);
	}
	found_free(found);
	assert_string_equal(strbuf_text(&got), wanted);
	strbuf_free(&got);
	target_labels_free(&made);
	scrape_config_free(config);
}

#define JOB "scrape_configs:\n- job_name: j\n"

static void a_target_is_asked_where_parca_asks(void **state)
{
	(void)state;
	makes(JOB, "memory", "h:1", "http://h:1/debug/pprof/allocs instance=h:1 job=j");
	makes(JOB, "process_cpu", "h:1",
	      "http://h:1/debug/pprof/profile?seconds=10 instance=h:1 job=j");
	makes(JOB "  scrape_interval: 3s\n  scrape_timeout: 2s", "process_cpu", "h:1",
	      "http://h:1/debug/pprof/profile?seconds=1 instance=h:1 job=j");
	makes(JOB
	      "  profiling_config: {path_prefix: /x, pprof_config: {process_cpu: {seconds: 4}}}",
	      "process_cpu", "h:1",
	      "http://h:1/x/debug/pprof/profile?seconds=4 instance=h:1 job=j");
	makes(JOB "  profiling_config: {pprof_config: {own: {path: own}}}", "own", "h:1",
	      "http://h:1/own instance=h:1 job=j");
	makes(JOB "  params: {b: ['1 2', '&'], a: [x]}", "memory", "h:1",
	      "http://h:1/debug/pprof/allocs?a=x&b=1%202&b=%26 instance=h:1 job=j");
}

static void an_address_gets_the_port_of_its_scheme(void **state)
{
	(void)state;
	makes(JOB, "memory", "h", "http://h:80/debug/pprof/allocs instance=h:80 job=j");
	makes(JOB "  scheme: https", "memory", "[::1]",
	      "https://[::1]:443/debug/pprof/allocs instance=[::1]:443 job=j");
	makes(JOB "  normalized_addresses: true", "memory", "h",
	      "http://h/debug/pprof/allocs instance=h job=j");
	makes(JOB, "memory", "h/x", "dropped: \"h/x:80\" is not a valid address: it has a /");
	makes(JOB, "memory", "", "dropped: no address: the label __address__ is empty");
}

static void rules_decide(void **state)
{
	(void)state;
	makes(JOB "  relabel_configs:\n"
		  "  - {source_labels: [__meta_kind], target_label: kind}\n"
		  "  - {source_labels: [__address__], regex: '(.*):.*', target_label: instance}\n"
		  "  - {target_label: __address__, replacement: 'proxy:8080'}\n"
		  "  - {target_label: __scheme__, replacement: https}\n"
		  "  - {target_label: __profile_path__, replacement: /p}\n"
		  "  - {source_labels: [kind], target_label: __param_kind}\n",
	      "memory", "h:1", "https://proxy:8080/p?kind=k instance=h job=j kind=k");
	makes(JOB
	      "  relabel_configs:\n  - {source_labels: [__name__], regex: memory, action: drop}\n",
	      "memory", "h:1",
	      "dropped: relabel_configs line 4: drop source_labels [__name__] regex \"memory\"");
	makes(JOB "  relabel_configs: [{target_label: __scheme__, replacement: ftp}]", "memory",
	      "h:1", "dropped: __scheme__ \"ftp\" is neither http nor https");
	makes(JOB "  relabel_configs: [{target_label: __scrape_interval__, replacement: '0s'}]",
	      "memory", "h:1", "dropped: __scrape_interval__ \"0s\" is not a duration over 0");
}

static void a_timeout_is_long_enough(void **state)
{
	struct scrape_config *config =
		parse("global: {scrape_interval: 1m}\n" JOB "- job_name: k\n  scrape_timeout: 7s\n"
		      "- job_name: l\n  scrape_interval: 500ms\n");

	(void)state;
	assert_int_equal(config->jobs[0].timeout_ns, 63 * CLOCK_NS_PER_S);
	assert_int_equal(profile_of(&config->jobs[1], "process_cpu")->seconds, 6);
	assert_int_equal(profile_of(&config->jobs[2], "process_cpu")->seconds, 1);
	assert_true(config->jobs[2].timeout_ns > CLOCK_NS_PER_S);
	scrape_config_free(config);
}

static void paths_are_relative_to_the_file(void **state)
{
	struct scrape_config *config =
		parse(JOB "  tls_config: {ca_file: ca.pem}\n"
			  "  basic_auth: {username: a, password_file: /etc/p}\n"
			  "  file_sd_configs: [{files: ['x/*.json', /y.yml]}]\n");
	const struct scrape_job *job = &config->jobs[0];

	(void)state;
	assert_string_equal(job->access.tls.ca_file.data, "dir/ca.pem");
	assert_string_equal(job->access.basic.password_file.data, "/etc/p");
	assert_string_equal(job->discoveries.items[0].files.items[0].data, "dir/x/*.json");
	assert_string_equal(job->discoveries.items[0].files.items[1].data, "/y.yml");
	scrape_config_free(config);
}

static void mistakes_are_told_with_their_line(void **state)
{
	(void)state;
	refused(JOB "  scrape_intervall: 1s",
		"f.yml:3: unknown key \"scrape_intervall\"; is \"scrape_interval\" meant?");
	refused(JOB "  nomad_sd_configs: []", "f.yml:3: \"nomad_sd_configs\" is not supported");
	refused(JOB "  scheme: ftp", "f.yml:2: \"scheme\" is neither http nor https");
	refused(JOB "  file_sd_configs: [{files: [a.txt]}]",
		"f.yml:3: \"a.txt\" ends in none of .json, .yml, .yaml");
	refused(JOB "  http_sd_configs: [{url: lister}]",
		"f.yml:3: http_sd_configs: \"url\" has to begin with http:// or https://");
	refused(JOB "  static_configs: [{targets: [a], labels: {a-b: c}}]",
		"f.yml:3: static_configs: \"labels\" has an invalid label name");
	refused(JOB "  bearer_token: a\n  basic_auth: {username: b}",
		"f.yml:2: at most one of basic_auth, authorization, bearer_token, "
		"bearer_token_file and oauth2 goes");
	refused(JOB "  oauth2: {client_id: a, token_url: 'http://t'}",
		"f.yml:2: oauth2: one of client_secret and client_secret_file goes");
	refused(JOB "  oauth2: {client_id: a, client_secret: b, token_url: t}",
		"f.yml:2: oauth2: \"token_url\" has to begin with http:// or https://");
	refused(JOB "  proxy_url: socks5://p", "f.yml:2: proxy_url: it has to begin with http://");
	refused(JOB "  profiling_config: {pprof_config: {memory: {keep_sample_type: [{type: a}]}}}",
		"f.yml:3: keep_sample_type: a \"type\" and its \"unit\" are wanted");
	refused("scrape_configs:\n- scheme: http", "f.yml:2: \"job_name\" is missing");
	refused("scrape_configs:\n- job_name: a\n  job_name: b",
		"f.yml:3: \"job_name\" is given twice");
	refused(JOB "  profiling_config: {pprof_config: {own: {delta: true}}}",
		"f.yml:3: \"path\" is missing for \"own\"");
}

static void a_list_that_is_too_long_is_cut(void **state)
{
	struct strbuf text = { 0 };
	struct found *found = found_new();
	struct err err;

	(void)state;
	strbuf_add_text(&text, "[{\"targets\":[\"a\"");
	for (size_t i = 0; i < FOUND_TARGETS_MAX; i++)
		strbuf_add_text(&text, ",\"a\"");
	strbuf_add_text(&text, "]}]");
	assert_int_equal(target_list_read_json(strbuf_slice(&text), "__meta_url", "u", found, &err),
			 0);
	assert_int_equal(found->count, FOUND_TARGETS_MAX);
	assert_true(found->is_cut);
	found_free(found);
	strbuf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_is_asked_where_parca_asks),
		cmocka_unit_test(an_address_gets_the_port_of_its_scheme),
		cmocka_unit_test(rules_decide),
		cmocka_unit_test(a_timeout_is_long_enough),
		cmocka_unit_test(paths_are_relative_to_the_file),
		cmocka_unit_test(mistakes_are_told_with_their_line),
		cmocka_unit_test(a_list_that_is_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
