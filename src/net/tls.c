/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/whole_file.h"

#define CIPHERS_TLS12 "ECDHE+AESGCM:ECDHE+CHACHA20" /* forward secrecy, authenticated */
#define OPEN_STEP_BYTES 16384u			    /* a TLS record holds no more */
#define PEM_BYTES_MAX ((size_t)4 << 20)
#define KEPT_BYTES 32768u /* of a quiet session's buffer */

struct tls {
	SSL_CTX *context;
	_Atomic unsigned references;
	bool is_server;
	bool http1_only;
	enum tls_client_auth client_auth;
	struct slice *client_names; /* owned */
	size_t client_names_count;
};

struct session {
	struct tls *tls;
	SSL *ssl;
	BIO *from_wire, *to_wire; /* the SSL's */
	struct strbuf plain, wire;
	bool has_ended; /* a farewell was said or an error broke the session */
};

/* Where Linux distributions keep the certificates that are trusted. */
static const char *const system_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",		     /* Debian, Arch, Alpine */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", /* openSUSE */
	"/etc/ssl/cert.pem",
};

/* What OpenSSL last complained about, in its words. */
static const char *reason(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	return text ? text : "unknown reason";
}

static int pem_error(const struct tls_pem *pem, const char *what, struct err *err)
{
	int rc = err_set(err, ERR_INVALID, "%s: not a usable %s (%s)", pem->where, what, reason());

	ERR_clear_error();
	return rc;
}

static BIO *bio_of(const struct tls_pem *pem)
{
	BIO *bio = BIO_new_mem_buf(pem->text.data, (int)pem->text.len);

	if (!bio)
		abort(); /* out of memory: as mem.h */
	return bio;
}

/* An encrypted key asks for no password on the terminal of a daemon. */
static int no_password(char *buffer, int size, int is_writing, void *context)
{
	(void)buffer;
	(void)size;
	(void)is_writing;
	(void)context;
	return -1;
}

int tls_read_pem(const char *path, struct strbuf *out, struct tls_pem *ret, struct err *err)
{
	int rc = whole_file_read(path, PEM_BYTES_MAX, out, err);

	if (!rc && !out->len)
		rc = err_set(err, ERR_INVALID, "%s: the file is empty", path);
	*ret = (struct tls_pem){ strbuf_slice(out), path };
	return rc;
}

static int use_certificate(SSL_CTX *context, const struct tls_pem *pem, struct err *err)
{
	BIO *bio = bio_of(pem);
	X509 *leaf = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	bool ok = leaf && SSL_CTX_use_certificate(context, leaf) == 1;
	X509 *next;

	X509_free(leaf);
	while (ok && (next = PEM_read_bio_X509(bio, NULL, no_password, NULL)))
		ok = SSL_CTX_add0_chain_cert(context, next) == 1;
	BIO_free(bio);
	if (!ok)
		return pem_error(pem, "certificate", err);
	ERR_clear_error(); /* the end of the file */
	return 0;
}

static int use_key(SSL_CTX *context, const struct tls_pem *pem, struct err *err)
{
	BIO *bio = bio_of(pem);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	bool ok = key && SSL_CTX_use_PrivateKey(context, key) == 1;
	int rc = 0;

	if (!key)
		rc = pem_error(pem, "private key without a password", err);
	else if (!ok)
		rc = err_set(err, ERR_INVALID, "%s: this key is not the certificate's (%s)",
			     pem->where, reason());
	ERR_clear_error();
	EVP_PKEY_free(key);
	BIO_free(bio);
	return rc;
}

static int use_identity(SSL_CTX *context, const struct tls_pem *certificate,
			const struct tls_pem *key, struct err *err)
{
	int rc = use_certificate(context, certificate, err);

	return rc ? rc : use_key(context, key, err);
}

/* All certificates of the text become trusted; of a server's clients their names are sent too. */
static int use_authorities(struct tls *tls, const struct tls_pem *pem, struct err *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(tls->context);
	BIO *bio = bio_of(pem);
	X509 *authority;
	size_t count = 0;
	bool ok = true;

	while (ok && (authority = PEM_read_bio_X509(bio, NULL, no_password, NULL))) {
		ok = X509_STORE_add_cert(store, authority) == 1 &&
		     (!tls->is_server || SSL_CTX_add_client_CA(tls->context, authority) == 1);
		X509_free(authority);
		count += ok;
	}
	BIO_free(bio);
	if (!ok || !count)
		return pem_error(pem, "list of authorities", err);
	ERR_clear_error();
	return 0;
}

static void use_system_authorities(SSL_CTX *context)
{
	const char *file = getenv(X509_get_default_cert_file_env());
	size_t count = sizeof(system_bundles) / sizeof(system_bundles[0]);

	for (size_t i = 0; !file && i < count; i++)
		if (!access(system_bundles[i], R_OK))
			file = system_bundles[i];
	if (!file || SSL_CTX_load_verify_file(context, file) != 1)
		SSL_CTX_set_default_verify_paths(context);
	ERR_clear_error();
}

static int protocol_of(enum tls_version version)
{
	static const int protocols[] = {
		[TLS_VERSION_DEFAULT] = 0,
		[TLS_VERSION_12] = TLS1_2_VERSION,
		[TLS_VERSION_13] = TLS1_3_VERSION,
	};

	return protocols[version];
}

static struct tls *new_tls(const SSL_METHOD *method)
{
	struct tls *tls = mem_new(struct tls);

	tls->context = SSL_CTX_new(method);
	if (!tls->context)
		abort();
	atomic_init(&tls->references, 1);
	SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(tls->context, CIPHERS_TLS12);
	SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
						  SSL_OP_CIPHER_SERVER_PREFERENCE |
						  SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
					       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return tls;
}

struct tls *tls_ref(struct tls *tls)
{
	atomic_fetch_add(&tls->references, 1);
	return tls;
}

void tls_unref(struct tls *tls)
{
	if (!tls || atomic_fetch_sub(&tls->references, 1) > 1)
		return;
	for (size_t i = 0; i < tls->client_names_count; i++)
		free((void *)(uintptr_t)tls->client_names[i].data);
	free(tls->client_names);
	SSL_CTX_free(tls->context);
	free(tls);
}

/* RFC 7301: the first of our protocols that the client has too; without one, none is agreed on. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
			   const unsigned char *offered, unsigned int offered_len, void *context)
{
	static const unsigned char ours[] = "\x02h2\x08http/1.1";
	const struct tls *tls = context;
	size_t skip = tls->http1_only ? 3 : 0;

	(void)ssl;
	if (SSL_select_next_proto((unsigned char **)(uintptr_t)ret, ret_len, ours + skip,
				  (unsigned int)(sizeof(ours) - 1 - skip), offered,
				  offered_len) == OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_NOACK;
}

static bool names_one_of(X509 *certificate, const struct tls *tls)
{
	for (size_t i = 0; i < tls->client_names_count; i++) {
		struct slice name = tls->client_names[i];

		if (X509_check_host(certificate, name.data, name.len,
				    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1 ||
		    X509_check_email(certificate, name.data, name.len, 0) == 1 ||
		    X509_check_ip_asc(certificate, name.data, 0) == 1)
			return true;
	}
	return !tls->client_names_count;
}

/* Called for each certificate of a client's chain, the leaf last (depth 0). */
static int check_client(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	if (tls->client_auth < TLS_CLIENT_VERIFY_IF_GIVEN)
		return 1; /* whoever it is */
	if (!ok || X509_STORE_CTX_get_error_depth(store) > 0)
		return ok;
	if (names_one_of(X509_STORE_CTX_get_current_cert(store), tls))
		return 1;
	X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

static int verify_mode(enum tls_client_auth auth)
{
	static const int modes[] = {
		[TLS_CLIENT_NONE] = SSL_VERIFY_NONE,
		[TLS_CLIENT_REQUEST] = SSL_VERIFY_PEER,
		[TLS_CLIENT_REQUIRE_ANY] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
		[TLS_CLIENT_VERIFY_IF_GIVEN] = SSL_VERIFY_PEER,
		[TLS_CLIENT_REQUIRE_AND_VERIFY] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
	};

	return modes[auth];
}

static void copy_client_names(struct tls *tls, const struct tls_server_options *options)
{
	tls->client_names = mem_new_array(struct slice, options->client_names_count + 1);
	for (size_t i = 0; i < options->client_names_count; i++) {
		struct slice name = options->client_names[i];

		tls->client_names[i] = slice_from(mem_strndup(name.data, name.len), name.len);
	}
	tls->client_names_count = options->client_names_count;
}

int tls_server_new(const struct tls_server_options *options, struct tls **ret, struct err *err)
{
	static const unsigned char session_id[] = "firn";
	struct tls *tls = new_tls(TLS_server_method());
	int rc = 0;

	tls->is_server = true;
	tls->http1_only = options->http1_only;
	tls->client_auth = options->client_auth;
	copy_client_names(tls, options);
	SSL_CTX_set_app_data(tls->context, tls);
	SSL_CTX_set_session_id_context(tls->context, session_id, sizeof(session_id) - 1);
	SSL_CTX_set_alpn_select_cb(tls->context, choose_protocol, tls);
	SSL_CTX_set_verify(tls->context, verify_mode(options->client_auth), check_client);
	if (options->min_version)
		SSL_CTX_set_min_proto_version(tls->context, protocol_of(options->min_version));
	SSL_CTX_set_max_proto_version(tls->context, protocol_of(options->max_version));
	rc = use_identity(tls->context, &options->certificate, &options->key, err);
	if (!rc && options->client_ca.text.len)
		rc = use_authorities(tls, &options->client_ca, err);
	if (rc) {
		tls_unref(tls);
		return rc;
	}
	*ret = tls;
	return 0;
}

int tls_client_new(const struct tls_client_options *options, struct tls **ret, struct err *err)
{
	struct tls *tls = new_tls(TLS_client_method());
	int rc = 0;

	tls->http1_only = options->http1_only;
	SSL_CTX_set_verify(tls->context,
			   options->trusts_everyone ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	if (options->ca.text.len)
		rc = use_authorities(tls, &options->ca, err);
	else
		use_system_authorities(tls->context);
	if (!rc && options->certificate.text.len)
		rc = use_identity(tls->context, &options->certificate, &options->key, err);
	if (rc) {
		tls_unref(tls);
		return rc;
	}
	*ret = tls;
	return 0;
}

/* Why the session cannot go on. */
static int session_error(struct session *session, struct err *err)
{
	long verdict = SSL_get_verify_result(session->ssl);
	int rc;

	session->has_ended = true;
	if (verdict != X509_V_OK && !session->tls->is_server)
		rc = err_set(err, ERR_DENIED, "TLS: the certificate is not trusted: %s",
			     X509_verify_cert_error_string(verdict));
	else
		rc = err_set(err, ERR_UNAVAILABLE, "TLS: %s", reason());
	ERR_clear_error();
	return rc;
}

/* True if a call that returned `result` only waits for more bytes. */
static bool is_waiting(const struct session *session, int result)
{
	int error = SSL_get_error(session->ssl, result);

	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static int agreed_on_http2(struct session *session, struct err *err)
{
	const unsigned char *protocol;
	unsigned int len;

	if (session->tls->is_server || session->tls->http1_only)
		return 0;
	SSL_get0_alpn_selected(session->ssl, &protocol, &len);
	if (slice_is(slice_from(protocol, len), "h2"))
		return 0;
	session->has_ended = true;
	return err_set(err, ERR_UNAVAILABLE, "TLS: the server does not offer HTTP/2");
}

/* Goes on with the handshake. 1: it is over; 0: more bytes are needed. */
static int shake_hands(struct session *session, struct err *err)
{
	int result;

	if (SSL_is_init_finished(session->ssl))
		return 1;
	ERR_clear_error();
	result = SSL_do_handshake(session->ssl);
	if (result != 1)
		return is_waiting(session, result) ? 0 : session_error(session, err);
	result = agreed_on_http2(session, err);
	return result ? result : 1;
}

/* Decrypts all that is there. */
static int read_plain(struct session *session, struct err *err)
{
	int len;

	do {
		char *to = strbuf_reserve(&session->plain, OPEN_STEP_BYTES);

		ERR_clear_error();
		len = SSL_read(session->ssl, to, OPEN_STEP_BYTES);
		if (len > 0)
			session->plain.len += (size_t)len;
	} while (len > 0);
	if (is_waiting(session, len) ||
	    SSL_get_error(session->ssl, len) ==
		    SSL_ERROR_ZERO_RETURN) /* the socket's end follows */
		return 0;
	return session_error(session, err);
}

static int session_open(struct net_transport *transport, struct slice wire, struct slice *ret_plain,
			struct err *err)
{
	struct session *session = transport->session;
	int rc;

	*ret_plain = (struct slice){ 0 };
	strbuf_clear(&session->plain);
	if (session->has_ended)
		return err_set(err, ERR_UNAVAILABLE, "TLS: the session has ended");
	if (BIO_write(session->from_wire, wire.data, (int)wire.len) != (int)wire.len)
		abort();
	rc = shake_hands(session, err);
	if (rc > 0)
		rc = read_plain(session, err);
	if (!rc)
		*ret_plain = strbuf_slice(&session->plain);
	return rc;
}

/* What OpenSSL has for the wire. */
static struct slice take_wire(struct session *session)
{
	size_t len = BIO_ctrl_pending(session->to_wire);

	strbuf_clear(&session->wire);
	if (!len) {
		if (session->wire.capacity > KEPT_BYTES)
			strbuf_free(&session->wire);
		return (struct slice){ 0 };
	}
	if (BIO_read(session->to_wire, strbuf_reserve(&session->wire, len), (int)len) != (int)len)
		abort();
	session->wire.len = len;
	return strbuf_slice(&session->wire);
}

static int session_seal(struct net_transport *transport, struct slice plain, struct slice *ret_wire,
			struct err *err)
{
	struct session *session = transport->session;

	if (!session->has_ended && !session->tls->is_server &&
	    !SSL_is_init_finished(session->ssl)) {
		int rc = shake_hands(session, err); /* the client speaks first */

		if (rc < 0)
			return rc;
	}
	while (plain.len && !session->has_ended) {
		int step = plain.len < INT32_MAX ? (int)plain.len : INT32_MAX;
		int sent;

		ERR_clear_error();
		sent = SSL_write(session->ssl, plain.data, step);
		if (sent <= 0)
			return session_error(session, err);
		plain = slice_tail(plain, (size_t)sent);
	}
	*ret_wire = take_wire(session);
	return 0;
}

static void session_end(struct net_transport *transport, struct slice *ret_wire)
{
	struct session *session = transport->session;

	if (!session->has_ended && SSL_is_init_finished(session->ssl))
		SSL_shutdown(session->ssl);
	ERR_clear_error();
	session->has_ended = true;
	*ret_wire = take_wire(session);
}

static void session_free(struct net_transport *transport)
{
	struct session *session = transport->session;

	SSL_free(session->ssl);
	strbuf_free(&session->plain);
	strbuf_free(&session->wire);
	tls_unref(session->tls);
	free(session);
}

static const struct net_transport_ops session_ops = {
	.open = session_open,
	.seal = session_seal,
	.end = session_end,
	.free = session_free,
};

static struct session *new_session(struct tls *tls, struct net_transport *ret)
{
	struct session *session = mem_new(struct session);

	session->tls = tls_ref(tls);
	session->ssl = SSL_new(tls->context);
	session->from_wire = BIO_new(BIO_s_mem());
	session->to_wire = BIO_new(BIO_s_mem());
	if (!session->ssl || !session->from_wire || !session->to_wire)
		abort();
	BIO_set_mem_eof_return(session->from_wire, -1); /* empty means: more will come */
	SSL_set_bio(session->ssl, session->from_wire, session->to_wire);
	*ret = (struct net_transport){ &session_ops, session };
	return session;
}

void tls_accept(struct tls *tls, struct net_transport *ret)
{
	SSL_set_accept_state(new_session(tls, ret)->ssl);
}

int tls_connect(struct tls *tls, const char *host, struct net_transport *ret, struct err *err)
{
	static const unsigned char http2[] = "\x02h2", http1[] = "\x08http/1.1";
	struct session *session = new_session(tls, ret);
	X509_VERIFY_PARAM *rules = SSL_get0_param(session->ssl);
	bool is_address = X509_VERIFY_PARAM_set1_ip_asc(rules, host) == 1;

	SSL_set_connect_state(session->ssl);
	if (tls->http1_only)
		SSL_set_alpn_protos(session->ssl, http1, sizeof(http1) - 1);
	else
		SSL_set_alpn_protos(session->ssl, http2, sizeof(http2) - 1);
	ERR_clear_error();
	if (!is_address && (SSL_set1_host(session->ssl, host) != 1 ||
			    SSL_set_tlsext_host_name(session->ssl, host) != 1)) {
		net_transport_free(ret);
		*ret = (struct net_transport){ 0 };
		return err_set(err, ERR_INVALID, "TLS: \"%s\" cannot be the name of a host", host);
	}
	return 0;
}

bool tls_is_established(const struct net_transport *transport)
{
	const struct session *session = transport->session;

	return !transport->ops || SSL_is_init_finished(session->ssl);
}
