/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xml - reads the XML of data interchange (S3's answers): elements and text, one piece at a time.
 *
 * Nothing is copied; names and texts are slices of the document. Bounded: XML_DEPTH_MAX elements
 * within each other, each byte is looked at once. What such documents do not need is refused:
 * document types (and so entities of their own), bytes before or behind the one root element.
 * Attributes are passed over, comments and processing instructions too.
 */
#ifndef FIRN_CODEC_WIRE_XML_H
#define FIRN_CODEC_WIRE_XML_H

#include "base/strbuf.h"

#define XML_DEPTH_MAX 16

enum xml_kind {
	XML_END,   /* of the document */
	XML_OPEN,  /* <name ...>; text is the name without its prefix */
	XML_TEXT,  /* between two tags, as it stands: xml_add_text decodes it */
	XML_CLOSE, /* </name>, or the end of <name/>; text is the name */
};

struct xml_piece {
	enum xml_kind kind;
	struct slice text;
};

struct xml_reader {
	struct slice document;
	size_t at;
	struct slice open[XML_DEPTH_MAX]; /* names with their prefixes */
	size_t depth;
	bool closes_next; /* <name/> was read: its end is due */
	bool is_begun;	  /* the root element was opened */
};

void xml_begin(struct xml_reader *reader, struct slice document);

/* ERR_INVALID with the offset when the document is cut or malformed. Nothing more after that. */
MUST_USE int xml_next(struct xml_reader *reader, struct xml_piece *ret, struct err *err);

/* Appends the text with the five entities and numbered characters decoded; ERR_INVALID. */
MUST_USE int xml_add_text(struct slice text, struct strbuf *out, struct err *err);

/* Appends text so that it can stand between tags. */
void xml_escape(struct slice text, struct strbuf *out);

#endif
