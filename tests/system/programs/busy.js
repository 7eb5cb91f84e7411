// SPDX-License-Identifier: Apache-2.0
// Computes until it is killed; the name that it gives itself is its argument.
"use strict";
process.title = process.argv[2];

function heavyLoop(n) {
	let sum = 0;
	for (let i = 0; i < n; i++) sum += Math.sqrt(i) % 7;
	return sum;
}

class Server {
	serveRequest(n) {
		return heavyLoop(n) + heavyLoop(n / 2);
	}
}

const server = new Server();
for (let sum = 0; sum >= 0; ) sum += server.serveRequest(100000);
