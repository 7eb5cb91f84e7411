/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/kubernetes/kubeconfig.h"

#include "base/strbuf.h"
#include "base/whole_file.h"
#include "codec/wire/base64.h"

/* A key that is wanted of a map, and where its value goes: one of the three. */
struct row {
	const char *key;
	struct slice *text;
	bool *flag;
	const struct yaml_node_s **node;
};

struct map {
	struct document *document;
	const struct row *rows; /* a row without a key ends them */
};

static int take_pair(void *context, struct slice key, const struct yaml_node_s *value,
		     struct err *err)
{
	const struct map *map = context;

	for (const struct row *row = map->rows; row->key; row++) {
		if (!slice_is(key, row->key))
			continue;
		if (row->text)
			return document_text(map->document, value, row->text, err);
		if (row->flag)
			return document_bool(map->document, value, row->flag, err);
		*row->node = value;
	}
	return 0;
}

static int read_map(struct document *document, const struct yaml_node_s *value,
		    const struct row *rows, struct err *err)
{
	struct map map = { document, rows };

	return value ? document_each_pair(document, value, take_pair, &map, err) : 0;
}

/* In a list of {name: NAME, KIND: {..}}. */
struct search {
	struct document *document;
	const char *kind;
	struct slice name;
	bool is_found;
	const struct yaml_node_s *found;
};

static int look_at(void *context, const struct yaml_node_s *item, struct err *err)
{
	struct search *search = context;
	const struct yaml_node_s *value = NULL;
	struct slice name = { "", 0 };
	const struct row rows[] = { { "name", &name, NULL, NULL },
				    { search->kind, NULL, NULL, &value },
				    { 0 } };
	int rc = read_map(search->document, item, rows, err);

	if (!rc && !search->is_found && slice_equal(name, search->name)) {
		search->is_found = true;
		search->found = value;
	}
	return rc;
}

static int find(struct document *document, const struct yaml_node_s *list, const char *kind,
		struct slice name, const struct yaml_node_s **ret, struct err *err)
{
	struct search search = { .document = document, .kind = kind, .name = name };
	int rc = list ? document_each_item(document, list, look_at, &search, err) : 0;

	if (!rc && !search.is_found)
		return document_error(document, list ? list : document_root(document), err,
				      "there is no %s \"%.*s\"", kind, SLICE_FMT(name));
	*ret = search.found;
	return rc;
}

/* Relative paths begin at the file. */
static void resolve(struct kubeconfig *config, const char *path, struct slice *file)
{
	const char *end = strrchr(path, '/');
	struct strbuf text = { 0 };

	if (!file->len || file->data[0] == '/' || !end)
		return;
	strbuf_add(&text, path, (size_t)(end + 1 - path));
	strbuf_add_slice(&text, *file);
	*file = arena_copy(&config->arena, strbuf_slice(&text));
	strbuf_free(&text);
}

/* What stands in the file itself goes before what it names. */
static int take_data(struct kubeconfig *config, const struct yaml_node_s *at, const char *key,
		     struct slice data, struct slice *text, struct slice *file, struct err *err)
{
	struct strbuf decoded = { 0 };
	int rc = 0;

	if (!data.len)
		return 0;
	if (base64_decode(data, &decoded)) {
		*text = arena_copy(&config->arena, strbuf_slice(&decoded));
		*file = (struct slice){ "", 0 };
	} else {
		rc = document_error(config->document, at, err, "\"%s\" is no base64", key);
	}
	strbuf_wipe(&decoded);
	return rc;
}

static int read_cluster(struct kubeconfig *config, const struct yaml_node_s *cluster,
			const char *path, struct err *err)
{
	struct http_tls_config *tls = &config->access.tls;
	struct slice ca = { "", 0 };
	const struct row rows[] = { { "server", &config->server, NULL, NULL },
				    { "certificate-authority", &tls->ca_file, NULL, NULL },
				    { "certificate-authority-data", &ca, NULL, NULL },
				    { "insecure-skip-tls-verify", NULL, &tls->insecure_skip_verify,
				      NULL },
				    { "tls-server-name", &tls->server_name, NULL, NULL },
				    { "proxy-url", &config->access.proxy_url, NULL, NULL },
				    { 0 } };
	int rc = read_map(config->document, cluster, rows, err);

	if (!rc && !slice_starts_with(config->server, SLICE_LITERAL("http://")) &&
	    !slice_starts_with(config->server, SLICE_LITERAL("https://")))
		return document_error(config->document,
				      cluster ? cluster : document_root(config->document), err,
				      "\"server\" has to begin with http:// or https://");
	resolve(config, path, &tls->ca_file);
	return rc ? rc
		  : take_data(config, cluster, "certificate-authority-data", ca, &tls->ca,
			      &tls->ca_file, err);
}

static int read_user(struct kubeconfig *config, const struct yaml_node_s *user, const char *path,
		     struct err *err)
{
	struct http_access_config *access = &config->access;
	struct http_tls_config *tls = &access->tls;
	struct slice cert = { "", 0 }, key = { "", 0 };
	const struct yaml_node_s *program = NULL;
	const struct row rows[] = { { "client-certificate", &tls->cert_file, NULL, NULL },
				    { "client-certificate-data", &cert, NULL, NULL },
				    { "client-key", &tls->key_file, NULL, NULL },
				    { "client-key-data", &key, NULL, NULL },
				    { "token", &access->bearer_token, NULL, NULL },
				    { "tokenFile", &access->bearer_token_file, NULL, NULL },
				    { "username", &access->basic.username, NULL, NULL },
				    { "password", &access->basic.password, NULL, NULL },
				    { "exec", NULL, NULL, &program },
				    { "auth-provider", NULL, NULL, &program },
				    { 0 } };
	int rc = read_map(config->document, user, rows, err);

	resolve(config, path, &tls->cert_file);
	resolve(config, path, &tls->key_file);
	resolve(config, path, &access->bearer_token_file);
	if (access->bearer_token_file.len)
		access->bearer_token = (struct slice){ "", 0 }; /* as kubectl does */
	if (!rc)
		rc = take_data(config, user, "client-certificate-data", cert, &tls->cert,
			       &tls->cert_file, err);
	if (!rc)
		rc = take_data(config, user, "client-key-data", key, &tls->key, &tls->key_file,
			       err);
	if (!rc && program && !access->bearer_token.len && !access->bearer_token_file.len &&
	    !tls->cert.len && !tls->cert_file.len && !access->basic.username.len)
		return document_error(config->document, program, err,
				      "programs that print credentials (exec, auth-provider) are "
				      "not run: give the user a token, a tokenFile or a "
				      "client-certificate");
	return rc;
}

static int check(const struct kubeconfig *config, struct err *err)
{
	const struct fields_reader reader = { .document = config->document };

	return http_access_config_check(&reader, &config->access, document_root(config->document),
					err);
}

int kubeconfig_parse(struct slice text, const char *path, struct kubeconfig *ret, struct err *err)
{
	struct slice current = { "", 0 }, cluster_name = { "", 0 }, user_name = { "", 0 };
	const struct yaml_node_s *clusters = NULL, *users = NULL, *contexts = NULL;
	const struct yaml_node_s *context = NULL, *cluster = NULL, *user = NULL;
	const struct row rows[] = { { "current-context", &current, NULL, NULL },
				    { "clusters", NULL, NULL, &clusters },
				    { "users", NULL, NULL, &users },
				    { "contexts", NULL, NULL, &contexts },
				    { 0 } };
	const struct row context_rows[] = { { "cluster", &cluster_name, NULL, NULL },
					    { "user", &user_name, NULL, NULL },
					    { 0 } };
	int rc;

	*ret = (struct kubeconfig){ .access = HTTP_ACCESS_CONFIG_DEFAULT };
	arena_init(&ret->arena, 0);
	rc = document_parse(text, path, &ret->document, err);
	if (!rc && !document_root(ret->document))
		return err_set(err, ERR_INVALID, "%s: it is empty", path);
	if (!rc)
		rc = read_map(ret->document, document_root(ret->document), rows, err);
	if (!rc && !current.len)
		return document_error(ret->document, document_root(ret->document), err,
				      "\"current-context\" is missing");
	if (!rc)
		rc = find(ret->document, contexts, "context", current, &context, err);
	if (!rc)
		rc = read_map(ret->document, context, context_rows, err);
	if (!rc)
		rc = find(ret->document, clusters, "cluster", cluster_name, &cluster, err);
	if (!rc)
		rc = read_cluster(ret, cluster, path, err);
	if (!rc && user_name.len)
		rc = find(ret->document, users, "user", user_name, &user, err);
	if (!rc)
		rc = read_user(ret, user, path, err);
	return rc ? rc : check(ret, err);
}

int kubeconfig_read(const char *path, struct kubeconfig *ret, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = whole_file_read(path, KUBECONFIG_BYTES_MAX, &text, err);

	*ret = (struct kubeconfig){ .document = NULL };
	if (!rc)
		rc = kubeconfig_parse(strbuf_slice(&text), path, ret, err);
	strbuf_wipe(&text);
	return rc;
}

void kubeconfig_free(struct kubeconfig *config)
{
	document_free(config->document);
	arena_free(&config->arena);
	*config = (struct kubeconfig){ .document = NULL };
}
