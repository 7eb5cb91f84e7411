/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_answer - what `GET /containers/<id>/json` of Docker's Engine API
 * (docs.docker.com/engine/api, v1.24 on; Podman answers it, too) says about a container, as meta
 * labels:
 *
 *   __meta_docker_container_{id,name,image,label_*,labelpresent_*}
 *
 * and, where Kubernetes runs its containers in Docker, those of cri_answer.h by the labels that it
 * sets (io.kubernetes.*).
 */
#ifndef FIRN_AGENT_IDENTIFY_ENGINE_ANSWER_H
#define FIRN_AGENT_IDENTIFY_ENGINE_ANSWER_H

#include "agent/identify/meta_labels.h"

/* ERR_INVALID when it is no such answer, or one about another container than `id`. */
int engine_answer_read(struct slice json, struct slice id, struct meta_labels *ret,
		       struct err *err);

#endif
