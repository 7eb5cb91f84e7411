// SPDX-License-Identifier: Apache-2.0
// Programs with a known chain of calls, for node_test and bun_test: `chains.js SHAPE SECONDS [GATE]`.
//
// Each spends its time in hotLeaf, on the lines marked so; the seconds are of CPU time. hotLeaf is
// too long for the compilers to inline. Runs on Node.js from 14 on.
'use strict';
const fs = require('fs');
const { Worker, isMainThread, workerData } = require('worker_threads');

const [shape, seconds, gate] = isMainThread ? process.argv.slice(2) : workerData;
let end;

function isOver() {
    return process.cpuUsage().user + process.cpuUsage().system > end;
}

function hotLeaf() {
    let total = 1;
    for (let i = 0; i < 4000; i++) { // HOT
        total = (total * 31 + i + 1) ^ (total >>> 1); // HOT
        total = (total * 31 + i + 8) ^ (total >>> 2); // HOT
        total = (total * 31 + i + 15) ^ (total >>> 3); // HOT
        total = (total * 31 + i + 22) ^ (total >>> 4); // HOT
        total = (total * 31 + i + 29) ^ (total >>> 5); // HOT
        total = (total * 31 + i + 36) ^ (total >>> 6); // HOT
        total = (total * 31 + i + 43) ^ (total >>> 7); // HOT
        total = (total * 31 + i + 50) ^ (total >>> 8); // HOT
        total = (total * 31 + i + 57) ^ (total >>> 9); // HOT
        total = (total * 31 + i + 64) ^ (total >>> 10); // HOT
        total = (total * 31 + i + 71) ^ (total >>> 11); // HOT
        total = (total * 31 + i + 78) ^ (total >>> 12); // HOT
        total = (total * 31 + i + 85) ^ (total >>> 13); // HOT
        total = (total * 31 + i + 92) ^ (total >>> 1); // HOT
        total = (total * 31 + i + 99) ^ (total >>> 2); // HOT
        total = (total * 31 + i + 106) ^ (total >>> 3); // HOT
        total = (total * 31 + i + 113) ^ (total >>> 4); // HOT
        total = (total * 31 + i + 120) ^ (total >>> 5); // HOT
        total = (total * 31 + i + 127) ^ (total >>> 6); // HOT
        total = (total * 31 + i + 134) ^ (total >>> 7); // HOT
        total = (total * 31 + i + 141) ^ (total >>> 8); // HOT
        total = (total * 31 + i + 148) ^ (total >>> 9); // HOT
        total = (total * 31 + i + 155) ^ (total >>> 10); // HOT
        total = (total * 31 + i + 162) ^ (total >>> 11); // HOT
    }
    return total;
}

function byKey(a, b) {
    hotLeaf();
    return a - b;
}

// V8's own code in between: a regular expression's replacement, and sorting.
function callbacks() {
    while (!isOver())
        'abc'.replace(/b/g, function replacement() { return String([3, 1, 2].sort(byKey)); });
}

function dive(depth) {
    return 1 + (depth ? dive(depth - 1) : hotLeaf()); // JavaScriptCore drops the frames of tail calls
}

function recursion() {
    while (!isOver())
        dive(300);
}

function* innerGenerator() {
    while (!isOver())
        yield hotLeaf();
}

function* outerGenerator() {
    yield* innerGenerator();
}

function generators() {
    for (const value of outerGenerator())
        if (value === undefined)
            break;
}

async function innerAsync() {
    await null;
    hotLeaf();
}

async function asynchronous() {
    while (!isOver())
        await innerAsync();
}

function thrower() {
    hotLeaf();
    throw new Error('expected');
}

function exceptions() {
    while (!isOver()) {
        try {
            thrower();
        } catch (error) {
            hotLeaf();
        }
    }
}

function inThread() {
    while (!isOver())
        hotLeaf();
}

function threads() {
    for (let i = 0; i < 2; i++)
        new Worker(__filename, { workerData: [shape, seconds] });
}

class Größe {
    static 测量() { hotLeaf(); }
    get method() { return hotLeaf(); }
}

// What functions are called that have no name of their own, or a rare one.
function names() {
    const table = {};
    table.member = function () { Größe.测量(); };
    while (!isOver())
        table.member();
}

function constructors() {
    class Base { constructor() { hotLeaf(); } }
    class Derived extends Base { constructor() { super(); this.last = new Größe().method; } }
    while (!isOver())
        new Derived();
}

// Small enough that the optimizing compilers make one piece of code of all of it.
function tax(amount) {
    let owed = 0;
    for (let i = 0; i < 200; i++) // SMALL
        owed = (owed * 31 + amount + i) % 1000003; // SMALL
    return owed;
}

class Cart {
    price(amount) { return tax(amount) + 1; }
    total(amount) { return this.price(amount) * 2; }
}

function inlined() {
    const cart = new Cart();
    let sum = 0;
    while (!isOver())
        for (let i = 0; i < 2000; i++)
            sum += cart.total(i);
    return sum;
}

function evaluated() {
    eval('while (!isOver()) hotLeaf()');
}

// (func (export "spin") (param i32) (result i32)): counts down to 0 and adds.
const spin = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(
    '0061736d0100000001060160017f017f03020100070801047370696e00000a1e011c01017f034020012000' +
    '6a41076c2101200041016b22000d000b20010b', 'hex'))).exports.spin;

function webAssembly() {
    return spin(200000);
}

function regular() {
    return /(?:a|aa)+c/.test('aaaaaaaaaaaaaaaaaaab');
}

function generated() {
    let sum = 0;
    while (!isOver())
        sum += webAssembly() + regular();
    return sum;
}

const shapes = { callbacks, recursion, generators, asynchronous, exceptions, threads, names, constructors, inlined,
    generated, evaluated };

if (gate)
    fs.readFileSync(gate);
const used = process.cpuUsage();
end = used.user + used.system + seconds * 1e6;
if (isMainThread)
    shapes[shape]();
else
    inThread();
