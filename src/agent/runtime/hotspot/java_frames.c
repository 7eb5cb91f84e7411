/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/hotspot/java_frames.h"

#include <string.h>

#include "base/order/bisect.h"

#define NO_BCI UINT32_MAX

struct chain {
	struct java_frame frames[JAVA_INLINED_MAX]; /* innermost first */
	size_t count;
};

/* Without a scope: the compiled method alone. */
static void read_chain(const struct java_code *code, uint32_t scope, struct chain *ret)
{
	ret->count = 0;
	for (; scope != JAVA_NO_SCOPE && ret->count < JAVA_INLINED_MAX;
	     scope = code->scopes[scope].outer) {
		const struct java_scope *at = &code->scopes[scope];
		const struct java_method *method = &code->methods[at->method];

		/* before the first bytecode */
		ret->frames[ret->count++] = (struct java_frame){
			method, java_method_line(method, at->bci == NO_BCI ? 0 : at->bci)
		};
	}
	if (!ret->count)
		ret->frames[ret->count++] = (struct java_frame){ code->methods, 0 };
}

static size_t count_of(const struct chain *chain, const struct java_method *method)
{
	size_t count = 0;

	for (size_t i = 0; i < chain->count; i++)
		count += chain->frames[i].method == method;
	return count;
}

/* Whether a method of the first stands in itself, there or in the other, and not as often. */
static bool differs_in_recursion(const struct chain *chain, const struct chain *other)
{
	for (size_t i = 0; i < chain->count; i++) {
		size_t count = count_of(chain, chain->frames[i].method);
		size_t others = count_of(other, chain->frames[i].method);

		if (count != others && (count > 1 || others > 1))
			return true;
	}
	return false;
}

/* What both have, as the first has it, with a mark in the place of the rest. */
static size_t take_common(const struct chain *chain, const struct chain *other,
			  struct java_frame ret[JAVA_FRAMES_MAX])
{
	size_t least = other->count < chain->count ? other->count : chain->count;
	size_t inner = 0, outer = 0;

	while (inner < least && other->frames[inner].method == chain->frames[inner].method)
		inner++;
	while (inner + outer < least && other->frames[other->count - 1 - outer].method ==
						chain->frames[chain->count - 1 - outer].method)
		outer++;
	memcpy(ret, chain->frames, inner * sizeof(*ret));
	ret[inner] = (struct java_frame){ 0 };
	memcpy(ret + inner + 1, chain->frames + chain->count - outer, outer * sizeof(*ret));
	return inner + 1 + outer;
}

static size_t compiled_frames(const struct java_code *code, uint32_t position,
			      struct java_frame ret[JAVA_FRAMES_MAX])
{
	const struct java_place *places = code->places;
	size_t next = bisect(0, code->places_count, i, places[i].last < position);
	uint32_t last = next ? places[next - 1].scope : JAVA_NO_SCOPE, scope = last;
	struct chain chain, other;

	if (next < code->places_count)
		scope = places[next].scope;
	read_chain(code, scope, &chain);
	/* A call is the byte before where it returns to. */
	if (next == code->places_count || position + 1 < places[next].first) {
		/* Before the first record, and behind the last, the other side is the method. */
		read_chain(code, next < code->places_count ? last : JAVA_NO_SCOPE, &other);
		if (differs_in_recursion(&chain, &other) || differs_in_recursion(&other, &chain))
			return take_common(&chain, &other, ret);
	}
	memcpy(ret, chain.frames, chain.count * sizeof(*ret));
	return chain.count;
}

size_t java_frames_at(const struct java_code *code, uint32_t position,
		      struct java_frame ret[JAVA_FRAMES_MAX])
{
	if (!code->methods_count)
		return 0;
	if (!code->is_interpreted && position != UINT32_MAX)
		return compiled_frames(code, position, ret);
	ret[0] = (struct java_frame){ code->methods,
				      position <= UINT16_MAX
					      ? java_method_line(code->methods, position)
					      : 0 };
	return 1;
}
