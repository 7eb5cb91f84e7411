// SPDX-License-Identifier: Apache-2.0
/* agent_command - the command line that starts an agent that sends to this page's server. */

/* Without TLS only where the page itself came without. */
export function agentCommand({ protocol, host, port }: { protocol: string; host: string; port: string }): string {
	const isTls = protocol === "https:";
	const address = isTls && !port ? `${host}:443` : host;
	return `sudo firn agent --remote-store-address ${address}${isTls ? "" : " --remote-store-insecure"}`;
}
