/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_dialect - how statements are spelt for the ClickHouse that answers.
 *
 * firn writes each statement once, for a ClickHouse of today. What an old one does not know is
 * replaced, word by word, by a table: types, functions, clauses. A statement holds no text of users
 * (ch_add_text spells it in hexadecimal digits), so nothing else is hit. Rows are the same bytes in
 * all dialects.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_DIALECT_H
#define FIRN_SERVER_CLICKHOUSE_CH_DIALECT_H

#include "base/strbuf.h"

struct ch_spelling {
	const char *from;
	const char *to; /* NULL: `from` ends in "(", and goes with all up to where that is closed */
};

struct ch_dialect {
	const struct ch_spelling *spellings; /* the first that fits counts */
	size_t spellings_count;
	/* Of a statement, in its URL; servers refuse settings that they do not know. */
	const char *read_settings, *write_settings;
	bool expires_rows;	  /* by TTL; else firn drops partitions (ch_retention.h) */
	bool waits_for_mutations; /* mutations_sync; else firn looks whether they are done */
};

/* `version` as version() says it: 18.x and 19.x are old. */
const struct ch_dialect *ch_dialect_of(struct slice version);

/* Appends the statement with all replacements. */
void ch_spell(const struct ch_spelling *spellings, size_t count, struct slice sql,
	      struct strbuf *out);
static inline void ch_dialect_spell(const struct ch_dialect *dialect, struct slice sql,
				    struct strbuf *out)
{
	ch_spell(dialect->spellings, dialect->spellings_count, sql, out);
}

#endif
