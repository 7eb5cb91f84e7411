/* SPDX-License-Identifier: Apache-2.0 */
/* tree_checks - what holds of every tree, and a tree as a picture of a width shows it, as text. */
#ifndef TESTS_UNIT_QUERY_TREE_CHECKS_H
#define TESTS_UNIT_QUERY_TREE_CHECKS_H

#include "server/query/query.h"

/* Totals are a node's own value and its children's; parents come first. Fails the test. */
void tree_checks_nodes(const struct tree *tree);

/* Siblings follow one another by falling totals, then names, and no function comes twice. */
void tree_checks_siblings(const struct tree *tree);

/* Without what is narrower than half a pixel. */
void tree_checks_draw(const struct tree *tree, uint32_t width_px, struct strbuf *out);

#endif
