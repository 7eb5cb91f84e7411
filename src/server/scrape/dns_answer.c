/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/dns_answer.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <resolv.h>

#define META "__meta_dns_"
#define SRV_PORT_AT 4 /* after priority and weight */
#define SRV_NAME_AT 6
#define MX_NAME_AT 2

unsigned dns_answer_type(enum discovery_record record)
{
	static const unsigned types[DISCOVERY_RECORDS] = { [DISCOVERY_RECORD_SRV] = ns_t_srv,
							   [DISCOVERY_RECORD_A] = ns_t_a,
							   [DISCOVERY_RECORD_AAAA] = ns_t_aaaa,
							   [DISCOVERY_RECORD_MX] = ns_t_mx,
							   [DISCOVERY_RECORD_NS] = ns_t_ns };

	return types[record];
}

static void add_address(struct found *into, const char *host, unsigned port)
{
	found_labelf(into, "__address__", strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

/* A name in the record's data, without its last dot. False: it is none. */
static bool take_name(const ns_msg *message, const ns_rr *record, unsigned at,
		      char ret[static NS_MAXDNAME])
{
	const unsigned char *data = ns_rr_rdata(*record);

	return ns_rr_rdlen(*record) > at &&
	       dn_expand(ns_msg_base(*message), data + ns_rr_rdlen(*record), data + at, ret,
			 NS_MAXDNAME) > 0;
}

static bool add_named(const ns_msg *message, const ns_rr *record, unsigned at, const char *label,
		      unsigned port, struct found *into)
{
	char host[NS_MAXDNAME];

	if (!take_name(message, record, at, host))
		return false;
	found_labelf(into, label, "%s.", host);
	add_address(into, host, port);
	return true;
}

static bool add_number(const ns_rr *record, int family, unsigned bytes, unsigned port,
		       struct found *into)
{
	char text[INET6_ADDRSTRLEN];

	if (ns_rr_rdlen(*record) != bytes ||
	    !inet_ntop(family, ns_rr_rdata(*record), text, sizeof(text)))
		return false;
	add_address(into, text, port);
	return true;
}

static bool add_record(const ns_msg *message, const ns_rr *record,
		       const struct discovery_config *config, struct found *into)
{
	unsigned port = (unsigned)config->port;

	switch (config->dns.record) {
	case DISCOVERY_RECORD_A:
		return add_number(record, AF_INET, NS_INADDRSZ, port, into);
	case DISCOVERY_RECORD_AAAA:
		return add_number(record, AF_INET6, NS_IN6ADDRSZ, port, into);
	case DISCOVERY_RECORD_MX:
		return add_named(message, record, MX_NAME_AT, META "mx_record_target", port, into);
	case DISCOVERY_RECORD_NS:
		return add_named(message, record, 0, META "ns_record_target", port, into);
	case DISCOVERY_RECORD_SRV:
	default:
		if (ns_rr_rdlen(*record) <= SRV_NAME_AT)
			return false;
		port = ns_get16(ns_rr_rdata(*record) + SRV_PORT_AT);
		found_labelf(into, META "srv_record_port", "%u", port);
		return add_named(message, record, SRV_NAME_AT, META "srv_record_target", port,
				 into);
	}
}

int dns_answer_read(struct slice message, const struct discovery_config *config, struct slice name,
		    struct found *into, struct err *err)
{
	ns_msg parsed;

	if (message.len > NS_MAXMSG ||
	    ns_initparse((const unsigned char *)message.data, (int)message.len, &parsed) < 0)
		return err_set(err, ERR_INVALID, "DNS' answer for \"%.*s\" is no message",
			       SLICE_FMT(name));
	for (int i = 0; i < ns_msg_count(parsed, ns_s_an); i++) {
		ns_rr record;

		if (ns_parserr(&parsed, ns_s_an, i, &record) < 0)
			return err_set(err, ERR_INVALID,
				       "DNS' answer for \"%.*s\": record %d is damaged",
				       SLICE_FMT(name), i);
		if (ns_rr_type(record) != dns_answer_type(config->dns.record))
			continue; /* names that stand for others */
		found_label(into, SLICE_LITERAL(META "name"), name);
		if (!add_record(&parsed, &record, config, into)) {
			found_forget(into, 0);
			return err_set(err, ERR_INVALID,
				       "DNS' answer for \"%.*s\": the data of record %d is damaged",
				       SLICE_FMT(name), i);
		}
		found_target(into, 0);
	}
	return 0;
}
