/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/uri.h"

#include <string.h>
#include <strings.h>

static bool starts_with_scheme(struct slice target, struct slice scheme)
{
	return target.len > scheme.len && !strncasecmp(target.data, scheme.data, scheme.len);
}

bool uri_authority(struct slice target, struct slice *ret)
{
	size_t len = 0;

	if (!starts_with_scheme(target, SLICE_LITERAL("http://")) &&
	    !starts_with_scheme(target, SLICE_LITERAL("https://")))
		return false;
	target = slice_tail(target, slice_find_byte(target, '/') + 2);
	while (len < target.len && !strchr("/?#", target.data[len]))
		len++;
	*ret = (struct slice){ target.data, len };
	return true;
}

bool uri_split(struct slice target, struct slice *ret_path, struct slice *ret_query)
{
	struct slice path, fragment, authority;

	target = slice_cut(target, '#', &fragment);
	if (uri_authority(target, &authority)) {
		target = slice_tail(target, (size_t)(authority.data - target.data) + authority.len);
		if (!target.len)
			target = SLICE_LITERAL("/");
	}
	if (!target.len || target.data[0] != '/')
		return false;
	path = slice_cut(target, '?', ret_query);
	*ret_path = path;
	return true;
}

int uri_escaped_byte(struct slice text, size_t at)
{
	int high, low;

	if (text.len - at < 3 || text.data[at] != '%')
		return -1;
	high = slice_hex_digit(text.data[at + 1]);
	low = slice_hex_digit(text.data[at + 2]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

bool uri_decode(struct slice text, bool plus_is_blank, struct strbuf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c == '%') {
			int escaped = uri_escaped_byte(text, i);

			if (escaped <= 0)
				return false;
			c = (char)escaped;
			i += 2;
		} else if (c == '+' && plus_is_blank) {
			c = ' ';
		}
		strbuf_add_byte(out, c);
	}
	return true;
}

bool uri_is_decodable(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] != '%')
			continue;
		if (uri_escaped_byte(text, i) <= 0)
			return false;
		i += 2;
	}
	return true;
}
