/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_access_config - how to make requests to another server, as in Prometheus' configuration:
 * basic_auth, authorization, bearer_token, oauth2, tls_config, proxy_url, follow_redirects. Plain
 * data in the reader's arena; files are read when they are used, so that they may change.
 */
#ifndef FIRN_CONFIG_HTTP_ACCESS_CONFIG_H
#define FIRN_CONFIG_HTTP_ACCESS_CONFIG_H

#include "config/fields.h"

struct http_tls_config {
	struct slice ca, ca_file, cert, cert_file, key, key_file, server_name;
	bool insecure_skip_verify;
};

/* Client credentials (RFC 6749, section 4.4) for getting a token. */
struct http_oauth2_config {
	struct slice client_id, client_secret, client_secret_file, token_url, proxy_url;
	struct field_texts scopes;
	struct field_pairs endpoint_params;
	struct http_tls_config tls;
};

struct http_access_config {
	struct {
		struct slice username, username_file, password, password_file;
	} basic;
	struct {
		struct slice type, credentials, credentials_file;
	} authorization;
	struct slice bearer_token, bearer_token_file;
	struct http_oauth2_config oauth2; /* unused without a token_url */
	struct http_tls_config tls;
	struct slice proxy_url;
	bool follow_redirects;
};

#define HTTP_ACCESS_CONFIG_DEFAULT                                                                 \
	{                                                                                          \
		.follow_redirects = true                                                           \
	}

extern const struct field http_access_config_basic[], http_access_config_authorization[],
	http_access_config_tls[], http_access_config_oauth2[];

/* The rows of a struct that has `member` of this type. */
#define HTTP_ACCESS_CONFIG_FIELDS(type, member)                                                    \
	{ "basic_auth", FIELD_MAP, offsetof(type, member.basic), http_access_config_basic, NULL }, \
		{ "authorization", FIELD_MAP, offsetof(type, member.authorization),                \
		  http_access_config_authorization, NULL },                                        \
		{ "bearer_token", FIELD_TEXT, offsetof(type, member.bearer_token), NULL, NULL },   \
		{ "bearer_token_file", FIELD_PATH, offsetof(type, member.bearer_token_file), NULL, \
		  NULL },                                                                          \
		{ "tls_config", FIELD_MAP, offsetof(type, member.tls), http_access_config_tls,     \
		  NULL },                                                                          \
		{ "enable_http2", FIELD_IGNORED, 0, NULL, NULL },                                  \
		{ "proxy_url", FIELD_TEXT, offsetof(type, member.proxy_url), NULL, NULL },         \
		{ "proxy_connect_header", FIELD_REFUSED, 0, NULL, NULL },                          \
		{ "no_proxy", FIELD_REFUSED, 0, NULL, NULL },                                      \
		{ "proxy_from_environment", FIELD_REFUSED, 0, NULL, NULL },                        \
		{ "oauth2", FIELD_MAP, offsetof(type, member.oauth2), http_access_config_oauth2,   \
		  NULL },                                                                          \
	{                                                                                          \
		"follow_redirects", FIELD_BOOL, offsetof(type, member.follow_redirects), NULL,     \
			NULL                                                                       \
	}

/* Fails if keys contradict each other; `at` is the map, for the error. */
int http_access_config_check(const struct fields_reader *reader,
			     const struct http_access_config *access, const struct yaml_node_s *at,
			     struct err *err);

#endif
