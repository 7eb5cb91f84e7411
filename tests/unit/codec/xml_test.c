/* SPDX-License-Identifier: Apache-2.0 */
/* xml: elements and texts in order; what is cut, nested too deeply or no element is refused. */
#include "codec/wire/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* "<a" "=text" ">a" for each piece, or "!" at an error. */
static void read_all(const char *document, struct strbuf *out)
{
	static const char marks[] = { [XML_OPEN] = '<', [XML_TEXT] = '=', [XML_CLOSE] = '>' };
	struct xml_reader reader;
	struct xml_piece piece = { 0 };
	struct err err;

	xml_begin(&reader, slice_of(document));
	for (;;) {
		if (xml_next(&reader, &piece, &err)) {
			strbuf_add_byte(out, '!');
			return;
		}
		if (piece.kind == XML_END)
			return;
		strbuf_add_byte(out, marks[piece.kind]);
		if (piece.kind == XML_TEXT) {
			if (xml_add_text(piece.text, out, &err))
				strbuf_add_byte(out, '!');
		} else {
			strbuf_add_slice(out, piece.text);
		}
	}
}

static void expect(const char *document, const char *pieces)
{
	struct strbuf out = { 0 };

	read_all(document, &out);
	if (strcmp(strbuf_text(&out), pieces) != 0)
		fail_msg("%s: %s, not %s", document, strbuf_text(&out), pieces);
	strbuf_free(&out);
}

static void pieces_come_in_order(void **state)
{
	(void)state;
	expect("<a/>", "<a>a");
	expect("<?xml version=\"1.0\"?>\n<!-- > --><a x='>' y=\"/\"><n:b>t</n:b></a>\n",
	       "<a<b=t>b>a");
	expect("<a>1<b />2</a>", "<a=1<b>b=2>a");
	expect("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x20ac;&#x1F600;</a>",
	       "<a=<&>\"'A\xe2\x82\xac\xf0\x9f\x98\x80>a");
}

static void what_is_no_document_is_refused(void **state)
{
	(void)state;
	expect("", "!");
	expect("text", "!");
	expect("<a>", "<a!");
	expect("<a", "!");
	expect("<a></b>", "<a!");
	expect("</a>", "!");
	expect("<a/><b/>", "<a>a!");
	expect("<a/>x", "<a>a!");
	expect("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "!");
	expect("<a b=\"></a>", "!");
	expect("<a <b/></a>", "!");
	expect("<a>&nbsp;</a>", "<a=!>a");
	expect("<a>&#0;</a>", "<a=!>a");
	expect("<a>&#xD800;</a>", "<a=!>a");
	expect("<a>& </a>", "<a=!>a");
	expect("<!-- ", "!");
}

static void depth_is_bounded(void **state)
{
	struct strbuf document = { 0 }, out = { 0 };

	(void)state;
	for (int i = 0; i < 100000; i++)
		strbuf_add_text(&document, "<a>");
	read_all(strbuf_text(&document), &out);
	assert_int_equal(out.len, 2 * XML_DEPTH_MAX + 1);
	strbuf_free(&document);
	strbuf_free(&out);
}

static void escaped_text_comes_back(void **state)
{
	struct strbuf escaped = { 0 }, back = { 0 };
	struct err err;

	(void)state;
	xml_escape(SLICE_LITERAL("\"a<b>&amp;\""), &escaped);
	assert_string_equal(escaped.data, "\"a&lt;b&gt;&amp;amp;\"");
	assert_int_equal(xml_add_text(strbuf_slice(&escaped), &back, &err), 0);
	assert_string_equal(back.data, "\"a<b>&amp;\"");
	strbuf_free(&escaped);
	strbuf_free(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_come_in_order),
		cmocka_unit_test(what_is_no_document_is_refused),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(escaped_text_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
