// SPDX-License-Identifier: Apache-2.0
// Talks the container runtime interface for tests/system/containers_test, over gRPC that is not ours.
//
//   cri.mjs pod SOCKET POD.json           runs a pod with one container; prints {sandbox, container}
//   cri.mjs remove SOCKET SANDBOX         ends it
//   cri.mjs serve SOCKET ANSWERS.json     answers as a runtime does: ids -> {pod, namespace, name, image}
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const here = path.dirname(fileURLToPath(import.meta.url));
const file = path.join(here, "..", "system", "proto", "cri.proto");
const { RuntimeService } = grpc.loadPackageDefinition(loader.loadSync(file, { keepCase: true })).runtime.v1;
const [what, socket, operand] = process.argv.slice(2);

function call(client, method, request) {
  return new Promise((resolve, reject) => {
    const done = (error, reply) => (error ? reject(error) : resolve(reply));
    client[method](request, { deadline: Date.now() + 60000 }, done);
  });
}

async function runPod(client, pod) {
  const config = {
    metadata: { name: pod.pod, uid: pod.uid, namespace: pod.namespace, attempt: 0 },
    log_directory: "/tmp",
    labels: pod.labels,
    annotations: pod.annotations,
    linux: { cgroup_parent: pod.cgroup_parent, security_context: { namespace_options: { network: 2 } } },
  };
  const { pod_sandbox_id: sandbox } = await call(client, "RunPodSandbox", { config });
  const container = {
    metadata: { name: pod.name, attempt: 0 },
    image: { image: pod.image },
    command: pod.command,
    labels: { "io.kubernetes.container.name": pod.name },
  };
  const request = { pod_sandbox_id: sandbox, config: container, sandbox_config: config };
  const made = await call(client, "CreateContainer", request);
  await call(client, "StartContainer", made);
  console.log(JSON.stringify({ sandbox, container: made.container_id }));
}

async function remove(client, sandbox) {
  await call(client, "StopPodSandbox", { pod_sandbox_id: sandbox });
  await call(client, "RemovePodSandbox", { pod_sandbox_id: sandbox });
}

function serve(answers) {
  const server = new grpc.Server();
  const known = (call) => answers[call.request.filter?.id];
  server.addService(RuntimeService.service, {
    ListContainers: (call, done) => {
      const it = known(call);
      const id = call.request.filter?.id;
      const container = it && { id, pod_sandbox_id: id, metadata: { name: it.name }, image: { image: it.image } };
      done(null, { containers: it ? [container] : [] });
    },
    ListPodSandbox: (call, done) => {
      const it = known(call);
      const id = call.request.filter?.id;
      const metadata = it && { name: it.pod, namespace: it.namespace, uid: "u" };
      done(null, { items: it ? [{ id, metadata, labels: it.labels ?? {} }] : [] });
    },
  });
  server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    console.log("ready");
  });
}

if (what === "serve") {
  serve(JSON.parse(fs.readFileSync(operand, "utf8")));
} else {
  const client = new RuntimeService(`unix:${socket}`, grpc.credentials.createInsecure());
  if (what === "pod") await runPod(client, JSON.parse(fs.readFileSync(operand, "utf8")));
  else await remove(client, operand);
  client.close();
}
