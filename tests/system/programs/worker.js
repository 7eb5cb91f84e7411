// SPDX-License-Identifier: Apache-2.0
// A worker whose chain of calls is known, for workerd_test. The leaf is too long to be inlined.
function hotLeaf(total) {
    for (let i = 0; i < 4000; i++) {
        total = (total * 31 + i + 1) ^ (total >>> 1);
        total = (total * 31 + i + 8) ^ (total >>> 2);
        total = (total * 31 + i + 15) ^ (total >>> 3);
        total = (total * 31 + i + 22) ^ (total >>> 4);
        total = (total * 31 + i + 29) ^ (total >>> 5);
        total = (total * 31 + i + 36) ^ (total >>> 6);
        total = (total * 31 + i + 43) ^ (total >>> 7);
        total = (total * 31 + i + 50) ^ (total >>> 8);
        total = (total * 31 + i + 57) ^ (total >>> 9);
        total = (total * 31 + i + 64) ^ (total >>> 10);
        total = (total * 31 + i + 71) ^ (total >>> 11);
        total = (total * 31 + i + 78) ^ (total >>> 12);
        total = (total * 31 + i + 85) ^ (total >>> 13);
        total = (total * 31 + i + 92) ^ (total >>> 1);
        total = (total * 31 + i + 99) ^ (total >>> 2);
        total = (total * 31 + i + 106) ^ (total >>> 3);
        total = (total * 31 + i + 113) ^ (total >>> 4);
        total = (total * 31 + i + 120) ^ (total >>> 5);
        total = (total * 31 + i + 127) ^ (total >>> 6);
        total = (total * 31 + i + 134) ^ (total >>> 7);
    }
    return total;
}

function byKey(a, b) {
    hotLeaf(a);
    return a - b;
}

class Größe {
    测量(count) {
        let sum = 0;
        for (let i = 0; i < count; i++)
            sum += [3, 1, 2].sort(byKey)[0];
        return sum;
    }
}

async function later(count) {
    await null;
    return new Größe().测量(count);
}

export default {
    async fetch(request) {
        return new Response(String(await later(Number(new URL(request.url).searchParams.get('count')))));
    },
};
