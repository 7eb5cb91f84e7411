/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri_answer - messages of the container runtime interface (kubernetes/cri-api,
 * pkg/apis/runtime/v1/api.proto) that say which container and pod an id is:
 *
 *   ListContainers   -> the container: name, image, labels, and the id of its pod's sandbox
 *   ContainerStatus  -> the image's name, where the list has only its digest
 *   ListPodSandbox   -> the pod: name, namespace, uid, labels, annotations
 *
 * as meta labels of Kubernetes: namespace, pod_name, pod_uid, pod_container_{id,name,image},
 * pod_{label,labelpresent,annotation,annotationpresent}_*, and containerd's.
 *
 * Answers may list anything: only entries with the wanted id count.
 */
#ifndef FIRN_AGENT_IDENTIFY_CRI_ANSWER_H
#define FIRN_AGENT_IDENTIFY_CRI_ANSWER_H

#include "agent/identify/meta_labels.h"

/* Requests of both lists, with a filter by id; and of ContainerStatus. */
void cri_put_list_request(struct strbuf *out, struct slice id);
void cri_put_status_request(struct strbuf *out, struct slice id);

/*
 * 1: it is there, 0: it is not, ERR_INVALID: no such message. *ret_sandbox is appended the id of
 * the pod's sandbox, *ret_image the name of the image, which may be a digest.
 */
int cri_read_container(struct slice message, struct slice id, struct meta_labels *ret,
		       struct strbuf *ret_sandbox, struct strbuf *ret_image, struct err *err);
int cri_read_status(struct slice message, struct strbuf *ret_image, struct err *err);
int cri_read_sandbox(struct slice message, struct slice id, struct meta_labels *ret,
		     struct err *err);

#endif
