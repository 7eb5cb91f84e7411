/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/libraries.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "codec/wire/json.h"

#define NOT_KNOWN "NOASSERTION" /* SPDX's word */
#define PUBLIC_DOMAIN "LicenseRef-public-domain"

void libraries_list(struct strbuf *out)
{
	strbuf_addf(out, "compiler: %s\nlinked: %s\ncontains:\n", __VERSION__, libraries_linkage);
	for (size_t i = 0; i < libraries_count; i++) {
		const struct library *library = &libraries[i];

		strbuf_addf(out, "  %-21s %-44s %s\n", library->name,
			    library->version ? library->version : "version unknown",
			    library->package);
	}
}

/* "SPDXRef-" and the package's name, of which identifiers take letters, digits, '.' and '-'. */
static void put_id(struct json *json, const char *key, const char *package)
{
	struct strbuf id = { 0 };

	strbuf_add_text(&id, "SPDXRef-");
	for (const char *at = package; *at; at++)
		strbuf_add_byte(&id, strchr("+@/_", *at) ? '-' : *at);
	json_member_string(json, key, strbuf_slice(&id));
	strbuf_free(&id);
}

static void put_package(struct json *json, const struct library *library)
{
	json_open_object(json);
	put_id(json, "SPDXID", library->package);
	json_member_text(json, "name", library->package);
	json_member_text(json, "versionInfo", library->version ? library->version : NOT_KNOWN);
	json_member_text(json, "summary", library->name);
	json_member_text(json, "downloadLocation", library->downloaded);
	json_member_bool(json, "filesAnalyzed", false);
	json_member_text(json, "licenseConcluded", library->licence);
	json_member_text(json, "licenseDeclared", library->licence);
	json_member_text(json, "copyrightText", NOT_KNOWN);
	if (library->purl) {
		json_member_array(json, "externalRefs");
		json_open_object(json);
		json_member_text(json, "referenceCategory", "PACKAGE-MANAGER");
		json_member_text(json, "referenceType", "purl");
		json_member_text(json, "referenceLocator", library->purl);
		json_close_object(json);
		json_close_array(json);
	}
	json_close_object(json);
}

static void put_packages(struct json *json)
{
	const struct library own = { .name = "continuous profiling for everything you run",
				     .version = FIRN_VERSION,
				     .package = "firn",
				     .licence = "Apache-2.0",
				     .downloaded = NOT_KNOWN };

	json_member_array(json, "packages");
	put_package(json, &own);
	for (size_t i = 0; i < libraries_count; i++)
		put_package(json, &libraries[i]);
	json_close_array(json);
}

static void put_relationships(struct json *json)
{
	bool is_static = !strcmp(libraries_linkage, "statically");

	json_member_array(json, "relationships");
	json_open_object(json);
	json_member_text(json, "spdxElementId", "SPDXRef-DOCUMENT");
	json_member_text(json, "relationshipType", "DESCRIBES");
	json_member_text(json, "relatedSpdxElement", "SPDXRef-firn");
	json_close_object(json);
	for (size_t i = 0; i < libraries_count; i++) {
		bool is_npm = strstr(libraries[i].purl, "pkg:npm/") == libraries[i].purl;

		json_open_object(json);
		json_member_text(json, "spdxElementId", "SPDXRef-firn");
		json_member_text(json, "relationshipType",
				 is_npm	     ? "CONTAINS"
				 : is_static ? "STATIC_LINK"
					     : "DYNAMIC_LINK");
		put_id(json, "relatedSpdxElement", libraries[i].package);
		json_close_object(json);
	}
	json_close_array(json);
}

static void put_public_domain(struct json *json)
{
	json_member_array(json, "hasExtractedLicensingInfos");
	json_open_object(json);
	json_member_text(json, "licenseId", PUBLIC_DOMAIN);
	json_member_text(json, "name", "public domain");
	json_member_text(json, "extractedText", "liblzma is in the public domain.");
	json_close_object(json);
	json_close_array(json);
}

/* The document's name in the world: of the same build the same. */
static void put_namespace(struct json *json)
{
	struct strbuf text = { 0 };
	uint64_t hash;

	libraries_list(&text);
	hash = hash_stable(text.data, text.len, 0);
	strbuf_clear(&text);
	strbuf_addf(&text, "urn:firn:sbom:" FIRN_VERSION ":%016" PRIx64, hash);
	json_member_string(json, "documentNamespace", strbuf_slice(&text));
	strbuf_free(&text);
}

static void put_creation(struct json *json)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32];

	gmtime_r(&now, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	json_member_object(json, "creationInfo");
	json_member_text(json, "created", text);
	json_member_array(json, "creators");
	json_put_text(json, "Tool: firn-" FIRN_VERSION);
	json_close_array(json);
	json_close_object(json);
}

void libraries_sbom(struct strbuf *out)
{
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	json_member_text(&json, "spdxVersion", "SPDX-2.3");
	json_member_text(&json, "dataLicense", "CC0-1.0");
	json_member_text(&json, "SPDXID", "SPDXRef-DOCUMENT");
	json_member_text(&json, "name", "firn-" FIRN_VERSION);
	put_namespace(&json);
	put_creation(&json);
	put_packages(&json);
	put_public_domain(&json);
	put_relationships(&json);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
}
