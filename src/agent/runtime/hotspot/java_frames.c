/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/hotspot/java_frames.h"

#include "base/order/bisect.h"

#define NO_BCI UINT32_MAX

static struct java_frame frame_of(const struct java_code *code, const struct java_scope *at)
{
	const struct java_method *method = &code->methods[at->method];

	/* before the first bytecode */
	return (struct java_frame){ method,
				    java_method_line(method, at->bci == NO_BCI ? 0 : at->bci) };
}

/* Without a scope: the compiled method alone. Of too many, those inside of it are missing. */
static size_t read_chain(const struct java_code *code, uint32_t scope,
			 struct java_frame ret[JAVA_INLINED_MAX])
{
	const struct java_scope *scopes = code->scopes;
	size_t count = 0;

	for (; scope != JAVA_NO_SCOPE; scope = scopes[scope].outer) {
		bool is_last = scopes[scope].outer == JAVA_NO_SCOPE;

		if (count < JAVA_INLINED_MAX - 2 || is_last)
			ret[count++] = frame_of(code, &scopes[scope]);
		else if (count == JAVA_INLINED_MAX - 2)
			ret[count++] = (struct java_frame){ NULL, 0 };
	}
	if (!count)
		ret[count++] = (struct java_frame){ code->methods, 0 };
	return count;
}

static size_t compiled_frames(const struct java_code *code, uint32_t position,
			      struct java_frame ret[JAVA_INLINED_MAX])
{
	const struct java_place *places = code->places;
	size_t next = bisect(0, code->places_count, i, places[i].last < position);
	uint32_t scope = JAVA_NO_SCOPE;

	if (next < code->places_count)
		scope = places[next].scope;
	else if (next)
		scope = places[next - 1].scope;
	return read_chain(code, scope, ret);
}

size_t java_frames_at(const struct java_code *code, uint32_t position,
		      struct java_frame ret[JAVA_INLINED_MAX])
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
