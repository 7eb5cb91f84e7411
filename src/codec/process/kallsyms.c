/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/process/kallsyms.h"

#define ADDRESS_DIGITS_MAX 16

static bool parse_address(struct slice text, uint64_t *ret)
{
	uint64_t value = 0;

	if (text.len == 0 || text.len > ADDRESS_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*ret = value;
	return true;
}

/* "[ext4]" -> "ext4"; an absent module is fine, a malformed one is not. */
static bool parse_module(struct slice text, struct slice *ret)
{
	*ret = (struct slice){ 0 };
	if (!text.len)
		return true;
	if (text.len < 3 || text.data[0] != '[' || text.data[text.len - 1] != ']')
		return false;
	*ret = slice_from(text.data + 1, text.len - 2);
	return true;
}

int kallsyms_parse_line(struct slice line, struct kallsyms_line *ret, struct err *err)
{
	struct kallsyms_line symbol = { 0 };
	struct slice rest, module, address = slice_cut(line, ' ', &rest);
	struct slice type = slice_cut(rest, ' ', &rest);

	symbol.name = slice_cut(rest, '\t', &module);
	if (!parse_address(address, &symbol.address) || type.len != 1 || !symbol.name.len ||
	    !parse_module(module, &symbol.module))
		return err_set(err, ERR_INVALID, "parse kernel symbol line \"%.*s\": malformed",
			       SLICE_FMT(line));
	symbol.type = type.data[0];
	*ret = symbol;
	return 0;
}
