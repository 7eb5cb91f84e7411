/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/engine.h"

#include <assert.h>

int64_t engine_idle_max_ns(const struct engine *engine)
{
	int64_t most_ns = engine->host->idle_timeout_ns;

	if (!engine->is_proven && most_ns > ENGINE_FIRST_REQUEST_NS)
		most_ns = ENGINE_FIRST_REQUEST_NS;
	return most_ns;
}

bool engine_submit(struct engine *engine, struct exchange *exchange)
{
	exchange->phase = EXCHANGE_RUNNING;
	exchange->engine = engine;
	if (engine->host->submit(engine->host, exchange))
		return true;
	exchange->engine = NULL;
	exchange_refuse(exchange, REFUSAL_QUEUE, NULL);
	return false;
}

void engine_abandon(struct exchange *exchange)
{
	atomic_store(&exchange->is_abandoned, true);
	atomic_store(&exchange->cancelled, true);
}

void engine_take_back(struct exchange *exchange)
{
	assert(exchange->phase == EXCHANGE_RUNNING);
	exchange->phase = exchange->wants_more ? EXCHANGE_BODY : EXCHANGE_ANSWER;
}
