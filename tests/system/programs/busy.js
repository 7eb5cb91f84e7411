// SPDX-License-Identifier: Apache-2.0
// Computes until it is killed; the name that it gives itself is its argument.
"use strict";
process.title = process.argv[2];

function heavyLoop(n) {
	let sum = 0;
	for (let i = 0; i < n; i++) { // too long to be inlined
		sum += Math.sqrt(i + 0) % 7 + Math.sqrt(i + 1) % 7 + Math.sqrt(i + 2) % 7 + Math.sqrt(i + 3) % 7;
		sum += Math.sqrt(i + 4) % 7 + Math.sqrt(i + 5) % 7 + Math.sqrt(i + 6) % 7 + Math.sqrt(i + 7) % 7;
		sum += Math.sqrt(i + 8) % 7 + Math.sqrt(i + 9) % 7 + Math.sqrt(i + 10) % 7 + Math.sqrt(i + 11) % 7;
		sum += Math.sqrt(i + 12) % 7 + Math.sqrt(i + 13) % 7 + Math.sqrt(i + 14) % 7 + Math.sqrt(i + 15) % 7;
		sum += Math.sqrt(i + 16) % 7 + Math.sqrt(i + 17) % 7 + Math.sqrt(i + 18) % 7 + Math.sqrt(i + 19) % 7;
		sum += Math.sqrt(i + 20) % 7 + Math.sqrt(i + 21) % 7 + Math.sqrt(i + 22) % 7 + Math.sqrt(i + 23) % 7;
		sum += Math.sqrt(i + 24) % 7 + Math.sqrt(i + 25) % 7 + Math.sqrt(i + 26) % 7 + Math.sqrt(i + 27) % 7;
		sum += Math.sqrt(i + 28) % 7 + Math.sqrt(i + 29) % 7 + Math.sqrt(i + 30) % 7 + Math.sqrt(i + 31) % 7;
		sum += Math.sqrt(i + 32) % 7 + Math.sqrt(i + 33) % 7 + Math.sqrt(i + 34) % 7 + Math.sqrt(i + 35) % 7;
		sum += Math.sqrt(i + 36) % 7 + Math.sqrt(i + 37) % 7 + Math.sqrt(i + 38) % 7 + Math.sqrt(i + 39) % 7;
		sum += Math.sqrt(i + 40) % 7 + Math.sqrt(i + 41) % 7 + Math.sqrt(i + 42) % 7 + Math.sqrt(i + 43) % 7;
		sum += Math.sqrt(i + 44) % 7 + Math.sqrt(i + 45) % 7 + Math.sqrt(i + 46) % 7 + Math.sqrt(i + 47) % 7;
	}
	return sum;
}

class Server {
	serveRequest(n) {
		return heavyLoop(n) + heavyLoop(n / 2);
	}
}

const server = new Server();
for (let sum = 0; sum >= 0; ) sum += server.serveRequest(10000);
