// SPDX-License-Identifier: Apache-2.0
/* label_words - descriptions of the labels of firn's own agent (docs/labels.md), for lists of labels. */
export const LABEL_WORDS: Readonly<Record<string, string>> = {
	app: "what Kubernetes calls the application",
	cgroup: "control group of the process",
	comm: "program",
	container: "name of the container",
	container_id: "container",
	cpu: "number of the CPU",
	environment: "production, staging, ...",
	executable: "file of the program",
	image: "image of the container",
	namespace: "Kubernetes namespace",
	node: "host",
	pid: "process",
	pod: "Kubernetes pod",
	service_name: "service",
	thread_id: "thread",
	thread_name: "name of the thread",
	vcs_revision: "revision of its source",
	version: "version of the program",
	workload: "deployment, daemon set, ...",
};
