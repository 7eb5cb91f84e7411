/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_labels - the snapshot of labels that Pyroscope's Java agent sends beside a flight recording:
 * events have the number of a context, and the snapshot says which labels that stands for. Source:
 * the protobuf LabelsSnapshot of github.com/grafana/jfr-parser.
 *
 *     LabelsSnapshot{ map<int64, Context> contexts = 1; map<int64, string> strings = 2; }
 *     Context{ map<int64, int64> labels = 1; }, of numbers of strings
 *
 * Texts are borrowed from the bytes. The budget pays until it is freed.
 */
#ifndef FIRN_CODEC_PROFILE_JFR_LABELS_H
#define FIRN_CODEC_PROFILE_JFR_LABELS_H

#include "base/err.h"
#include "base/slice.h"

struct budget;
struct jfr_labels;

/* ERR_INVALID names field and offset. */
MUST_USE int jfr_labels_decode(struct slice bytes, struct budget *budget, struct jfr_labels **ret,
			       struct err *err);
void jfr_labels_free(struct jfr_labels *labels); /* accepts NULL */

/* The string of a number; empty: it is not there. Of NULL as well. */
struct slice jfr_labels_text(const struct jfr_labels *labels, int64_t number);

/* The next label of a context, from *at = 0 on; false: that was all. Of NULL there are none. */
bool jfr_labels_next(const struct jfr_labels *labels, int64_t context, size_t *at,
		     struct slice *ret_name, struct slice *ret_value);

#endif
