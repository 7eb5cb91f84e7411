// SPDX-License-Identifier: Apache-2.0
// The chain of calls of a program in TypeScript, for bun_test: `chains.ts SHAPE SECONDS [GATE]`.
import { readFileSync } from 'node:fs';

enum Step { First = 1, Second = 31 }

interface Order<Item> {
    readonly items: Item[];
}

class Shop<Item extends number> {
    constructor(private readonly order: Order<Item>) {}

    sum(): number {
        let total: number = 0;
        for (const item of this.order.items)
            total += typedLeaf<number>(item as number);
        return total;
    }
}

// Too long for the compilers to inline.
function typedLeaf<Value extends number>(value: Value): number {
    let total: number = value;
    for (let i = 0; i < 4000; i++) {
        total = (total * Step.Second + i + Step.First) ^ (total >>> 1);
        total = (total * Step.Second + i + 8) ^ (total >>> 2);
        total = (total * Step.Second + i + 15) ^ (total >>> 3);
        total = (total * Step.Second + i + 22) ^ (total >>> 4);
        total = (total * Step.Second + i + 29) ^ (total >>> 5);
        total = (total * Step.Second + i + 36) ^ (total >>> 6);
        total = (total * Step.Second + i + 43) ^ (total >>> 7);
        total = (total * Step.Second + i + 50) ^ (total >>> 8);
        total = (total * Step.Second + i + 57) ^ (total >>> 9);
        total = (total * Step.Second + i + 64) ^ (total >>> 10);
        total = (total * Step.Second + i + 71) ^ (total >>> 11);
        total = (total * Step.Second + i + 78) ^ (total >>> 12);
        total = (total * Step.Second + i + 85) ^ (total >>> 13);
        total = (total * Step.Second + i + 92) ^ (total >>> 1);
        total = (total * Step.Second + i + 99) ^ (total >>> 2);
        total = (total * Step.Second + i + 106) ^ (total >>> 3);
    }
    return total;
}

function typed(end: number): void {
    const shop = new Shop<number>({ items: [1, 2, 3] });
    while (process.cpuUsage().user + process.cpuUsage().system < end)
        shop.sum();
}

const [, seconds, gate] = process.argv.slice(2);
if (gate)
    readFileSync(gate);
const used = process.cpuUsage();
typed(used.user + used.system + Number(seconds) * 1e6);
