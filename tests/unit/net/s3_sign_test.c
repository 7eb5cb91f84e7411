/* SPDX-License-Identifier: Apache-2.0 */
/* s3_sign: the vectors of AWS' test suite of Signature Version 4 and the examples of S3's manual.
 */
#include "net/s3/s3_sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct s3_scope suite = { { "AKIDEXAMPLE", 11 },
				       { "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 40 },
				       "us-east-1",
				       "service" };
static const struct s3_scope manual = { { "AKIAIOSFODNN7EXAMPLE", 20 },
					{ "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", 40 },
					"us-east-1",
					"s3" };

static void expect(const struct s3_scope *scope, const struct s3_unsigned *request,
		   const char *time, const char *signature)
{
	struct strbuf out = { 0 };
	struct strbuf end = { 0 };

	s3_sign(scope, request, time, &out);
	strbuf_addf(&end, ", Signature=%s", signature);
	if (!slice_ends_with(strbuf_slice(&out), strbuf_slice(&end)))
		fail_msg("%s %.*s: %s, not %s", request->method, SLICE_FMT(request->path), out.data,
			 signature);
	strbuf_free(&out);
	strbuf_free(&end);
}

/* Of aws-sig-v4-test-suite; each is named as there. */
static void suite_vectors_are_met(void **state)
{
	static const struct {
		const char *name, *method, *path, *query, *signature;
	} vectors[] = {
		{ "get-vanilla", "GET", "/", "",
		  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
		{ "get-vanilla-query-order-key-case", "GET", "/", "Param1=value1&Param2=value2",
		  "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
		{ "get-utf8", "GET", "/%E1%88%B4", "",
		  "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },
		{ "post-vanilla", "POST", "/", "",
		  "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
	};
	const struct s3_header headers[] = {
		{ "host", SLICE_LITERAL("example.amazonaws.com") },
		{ "x-amz-date", SLICE_LITERAL("20150830T123600Z") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		const struct s3_unsigned request = { vectors[i].method,
						     slice_of(vectors[i].path),
						     slice_of(vectors[i].query),
						     headers,
						     2,
						     EMPTY };

		expect(&suite, &request, "20150830T123600Z", vectors[i].signature);
	}
}

static void blanks_of_values_are_trimmed(void **state)
{
	const struct s3_header headers[] = {
		{ "host", SLICE_LITERAL("example.amazonaws.com") },
		{ "my-header1", SLICE_LITERAL(" value1") },
		{ "my-header2", SLICE_LITERAL(" \"a   b   c\"") },
		{ "x-amz-date", SLICE_LITERAL("20150830T123600Z") },
	};
	const struct s3_unsigned request = { "GET", SLICE_LITERAL("/"), { 0 }, headers, 4, EMPTY };

	(void)state; /* get-header-value-trim */
	expect(&suite, &request, "20150830T123600Z",
	       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

static void examples_of_the_manual_are_met(void **state)
{
	const struct slice host = SLICE_LITERAL("examplebucket.s3.amazonaws.com");
	const struct slice date = SLICE_LITERAL("20130524T000000Z");
	const struct s3_header get[] = { { "host", host },
					 { "range", SLICE_LITERAL("bytes=0-9") },
					 { "x-amz-content-sha256", SLICE_LITERAL(EMPTY) },
					 { "x-amz-date", date } };
	const struct s3_header plain[] = { get[0], get[2], get[3] };
	char hash[S3_SIGN_HASH_BYTES];
	struct strbuf path = { 0 };
	struct s3_unsigned request = { "GET", SLICE_LITERAL("/test.txt"), { 0 }, get, 4, EMPTY };

	(void)state;
	expect(&manual, &request, date.data,
	       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
	request = (struct s3_unsigned){
		"GET", SLICE_LITERAL("/"), SLICE_LITERAL("lifecycle="), plain, 3, EMPTY
	};
	expect(&manual, &request, date.data,
	       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	request.query = SLICE_LITERAL("max-keys=2&prefix=J");
	expect(&manual, &request, date.data,
	       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
	s3_sign_hash(SLICE_LITERAL("Welcome to Amazon S3."), hash);
	strbuf_add_for_uri(&path, SLICE_LITERAL("/test$file.text"), "/");
	const struct s3_header put[] = { { "date", SLICE_LITERAL("Fri, 24 May 2013 00:00:00 GMT") },
					 { "host", host },
					 { "x-amz-content-sha256", slice_of(hash) },
					 { "x-amz-date", date },
					 { "x-amz-storage-class",
					   SLICE_LITERAL("REDUCED_REDUNDANCY") } };
	request = (struct s3_unsigned){ "PUT", strbuf_slice(&path), { 0 }, put, 5, hash };
	expect(&manual, &request, date.data,
	       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
	strbuf_free(&path);
}

static void times_are_written_in_utc(void **state)
{
	char text[S3_SIGN_TIME_BYTES];

	(void)state;
	s3_sign_time(1369353600 * CLOCK_NS_PER_S, text);
	assert_string_equal(text, "20130524T000000Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suite_vectors_are_met),
		cmocka_unit_test(blanks_of_values_are_trimmed),
		cmocka_unit_test(examples_of_the_manual_are_met),
		cmocka_unit_test(times_are_written_in_utc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
