// SPDX-License-Identifier: Apache-2.0

// A chain of functions, a sort with a comparator, panics that are caught, and a thread.

use std::hint::black_box;

#[inline(never)]
#[no_mangle]
fn spin() {
    let mut x = 1u64;
    for _ in 0..600_000 {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    black_box(x);
}

#[inline(never)]
#[no_mangle]
fn inner(n: usize) -> usize {
    let local = black_box([n; 30]);
    spin();
    black_box(local[n % 30])
}

#[inline(never)]
#[no_mangle]
fn outer(n: usize) -> usize {
    black_box(inner(n)) + 1
}

#[inline(never)]
#[no_mangle]
fn compare(a: &u32, b: &u32) -> std::cmp::Ordering {
    black_box(a).cmp(black_box(b))
}

#[inline(never)]
#[no_mangle]
fn sorts() {
    let mut numbers: Vec<u32> = (0..5000u32).map(|i| i.wrapping_mul(2654435761)).collect();
    numbers.sort_by(compare);
    black_box(numbers.len());
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        spin();
        black_box(());
    }
}

#[inline(never)]
#[no_mangle]
fn panics(n: usize) -> usize {
    let _guard = Guard;
    if black_box(n) > 0 {
        std::panic::panic_any(n);
    }
    n
}

#[inline(never)]
#[no_mangle]
fn catches() {
    black_box(std::panic::catch_unwind(|| panics(1)).is_err());
}

#[inline(never)]
#[no_mangle]
fn in_thread() {
    for _ in 0..5 {
        outer(2);
    }
    black_box(());
}

// CPU time of all threads, in clock ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn main() {
    let budget = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2000u64);
    std::panic::set_hook(Box::new(|_| ()));
    while ticks() * 10 < budget {
        black_box(outer(1));
        sorts();
        catches();
        std::thread::spawn(|| {
            in_thread();
            black_box(());
        })
        .join()
        .unwrap();
    }
}
