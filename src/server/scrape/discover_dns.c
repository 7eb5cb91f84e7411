/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_dns - dns_sd_configs: the records of names, asked of the servers of /etc/resolv.conf,
 * with its search list. A name that no server answers for keeps the targets that it had; one that
 * does not exist has none.
 */
#include <netdb.h>
#include <resolv.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/scrape/discovery.h"
#include "server/scrape/dns_answer.h"

#define ANSWER_BYTES 65535
#define SERVER_SECONDS 1 /* that one has, once: the thread cannot be stopped meanwhile */
#define PAUSE_FAILED_NS (5 * CLOCK_NS_PER_S)

struct asking {
	struct discovery *discovery;
	struct __res_state resolver;
	unsigned char *answer;
};

/* 0 with the answer's length, also when there is no such name (0 bytes), or what is wrong. */
static int ask(struct asking *asking, const char *name, size_t *ret_bytes, struct err *err)
{
	unsigned type = dns_answer_type(asking->discovery->config->dns.record);
	int bytes = res_nquery(&asking->resolver, name, ns_c_in, (int)type, asking->answer,
			       ANSWER_BYTES);

	*ret_bytes = bytes > 0 ? (size_t)bytes : 0;
	if (bytes >= 0 || asking->resolver.res_h_errno == NO_DATA)
		return 0;
	return err_set(err,
		       asking->resolver.res_h_errno == HOST_NOT_FOUND ? ERR_NOT_FOUND
								      : ERR_UNAVAILABLE,
		       "DNS: \"%.200s\": %s", name, hstrerror(asking->resolver.res_h_errno));
}

static unsigned dots_in(struct slice name)
{
	unsigned dots = 0;

	for (size_t i = 0; i < name.len; i++)
		dots += name.data[i] == '.';
	return dots;
}

/*
 * The name as it is and with each domain of the search list, in the order that resolv.conf(5)
 * says, until one exists. None exists: 0 bytes; but not when a server did not answer for one.
 */
static int search(struct asking *asking, struct slice name, size_t *ret_bytes, struct err *err)
{
	bool is_rooted = slice_ends_with(name, SLICE_LITERAL("."));
	bool is_first = is_rooted || dots_in(name) >= asking->resolver.ndots;
	struct strbuf text = { 0 };
	struct err failure;
	int rc = -ERR_NOT_FOUND, unanswered = 0;

	for (int i = is_first ? -1 : 0; rc; i++) {
		const char *domain = i < 0 || is_rooted ? NULL : asking->resolver.dnsrch[i];
		bool is_last = i >= 0 && !domain;

		if ((is_last && is_first) || i > MAXDNSRCH ||
		    atomic_load(&asking->discovery->stops))
			break;
		strbuf_clear(&text);
		strbuf_add_slice(&text, name);
		if (domain)
			strbuf_addf(&text, ".%s", domain);
		rc = ask(asking, strbuf_text(&text), ret_bytes, &failure);
		if (rc == -ERR_UNAVAILABLE) {
			unanswered = rc;
			*err = failure;
		}
		if (is_last)
			break;
	}
	strbuf_free(&text);
	if (!rc)
		return 0;
	*ret_bytes = 0;
	return unanswered;
}

static int look_up(struct asking *asking, struct slice name, struct found *into, struct err *err)
{
	size_t bytes = 0;
	int rc = search(asking, name, &bytes, err);

	if (rc || !bytes)
		return rc;
	return dns_answer_read(slice_from((const char *)asking->answer, bytes),
			       asking->discovery->config, name, into, err);
}

/* Each name's targets, old or new, in `of`; false: some are old, and err says why. */
static bool look_up_all(struct asking *asking, struct found **of, struct err *err)
{
	const struct discovery_config *config = asking->discovery->config;
	bool is_good = true;

	/* The file may have changed. */
	if (res_ninit(&asking->resolver)) {
		err_set(err, ERR_IO, "DNS: /etc/resolv.conf cannot be read");
		return false;
	}
	asking->resolver.retrans = SERVER_SECONDS;
	asking->resolver.retry = 1;
	for (size_t i = 0; i < config->dns.names.count; i++) {
		struct found *found = discovery_new_found(asking->discovery);

		if (atomic_load(&asking->discovery->stops) ||
		    look_up(asking, config->dns.names.items[i], found, err)) {
			is_good = false;
			found_free(found);
			continue;
		}
		if (found->is_refused) { /* what was known of it stays */
			discovery_memory_fail(err);
			is_good = false;
			found_free(found);
			continue;
		}
		found_free(of[i]);
		found_seal(found);
		of[i] = found;
	}
	res_nclose(&asking->resolver);
	return is_good;
}

static void publish(struct discovery *discovery, struct found *const *of)
{
	struct found *all = discovery_new_found(discovery);

	for (size_t i = 0; i < discovery->config->dns.names.count; i++)
		if (of[i])
			found_add_all(all, of[i]);
	discovery_publish(discovery, all);
}

void discover_dns(struct discovery *discovery)
{
	struct asking asking = { .discovery = discovery, .answer = mem_calloc(ANSWER_BYTES, 1) };
	size_t count = discovery->config->dns.names.count;
	struct found **of = mem_new_array(struct found *, count);
	bool is_good, is_known = false;
	struct err err;

	do {
		is_good = look_up_all(&asking, of, &err);
		for (size_t i = 0; i < count; i++)
			is_known |= of[i] != NULL;
		if (is_known)
			publish(discovery, of);
		if (!is_good)
			discovery_fail(discovery, &err);
	} while (discovery_sleep(discovery,
				 is_known ? discovery->config->refresh_ns : PAUSE_FAILED_NS));
	for (size_t i = 0; i < count; i++)
		found_free(of[i]);
	free(of);
	free(asking.answer);
}
