/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/diff: one tree with the values of two selections. */
#include "server/query/render.h"
#include "server/serve/question.h"

static int answer(struct serve *serve, const struct net_request *request,
		  struct net_response *response, struct question *question, struct err *err)
{
	struct question base;
	struct tree *tree = NULL;
	int rc = question_read_base(serve, request, &base, err);

	if (rc)
		return rc;
	question->params.nodes_only = true;
	rc = question_diff(&base, question, &tree, err);
	if (!rc) {
		response->content_type = "application/json";
		render_json(tree, &response->body);
	}
	tree_free(tree);
	question_end(&base);
	return rc;
}

void answer_diff(void *context, const struct net_request *request, struct net_response *response)
{
	struct question question;
	struct err err;
	int rc = question_read(context, request, QUESTION_TYPE_NEEDED, &question, &err);

	if (!rc) {
		rc = answer(context, request, response, &question, &err);
		question_end(&question);
	}
	if (rc)
		net_response_error(request, response, &err);
}
