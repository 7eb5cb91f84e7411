// SPDX-License-Identifier: Apache-2.0

// Goroutines with chains of their own, defer and recover, maps, allocation and so the collector,
// closures, system calls, and stacks that grow (and so move).
package main

import (
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var sink uint64

//go:noinline
func spin() {
	for i := 0; i < 1000000; i++ {
		sink = sink*6364136223846793005 + 1442695040888963407
	}
}

//go:noinline
func inner(n int) int {
	var local [40]int
	local[n%40] = n
	spin()
	return local[(n+1)%40]
}

//go:noinline
func outer(n int) int {
	return inner(n) + 1
}

//go:noinline
func deferred() {
	spin()
}

//go:noinline
func panics(n int) int {
	defer deferred()
	if n >= 0 {
		panic("on purpose")
	}
	return n
}

//go:noinline
func recovers(n int) (result int) {
	defer func() {
		if recover() != nil {
			result = 1
		}
	}()
	return panics(n)
}

//go:noinline
func grows(n int) int {
	var local [100]int
	if n == 0 {
		spin()
		return 1
	}
	local[n%100] = grows(n - 1)
	return local[n%100] + 1
}

// Much is copied when big wants more room, on the stack of the thread.
//
//go:noinline
func outgrows(n int) byte {
	var local [1 << 18]byte
	local[n] = big(n)
	return local[n&1]
}

//go:noinline
func big(n int) byte {
	var local [1 << 18]byte
	local[n] = byte(n)
	return local[n&1]
}

//go:noinline
func allocates() int {
	words := map[string][]int{}
	for i := 0; i < 2000; i++ {
		key := strconv.Itoa(i % 300)
		words[key] = append(words[key], i)
	}
	keys := make([]string, 0, len(words))
	for key := range words {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(a, b int) bool { return keys[a] < keys[b] })
	return len(strings.Join(keys, ","))
}

//go:noinline
func callsKernel(file int) {
	var bytes [1 << 16]byte
	for i := 0; i < 20; i++ {
		syscall.Read(file, bytes[:])
	}
}

func over(budget time.Duration) bool {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano()+used.Stime.Nano()) >= budget
}

func main() {
	milliseconds := 2000
	if len(os.Args) > 1 {
		milliseconds, _ = strconv.Atoi(os.Args[1])
	}
	budget := time.Duration(milliseconds) * time.Millisecond
	zero, _ := syscall.Open("/dev/zero", syscall.O_RDONLY, 0)
	var workers sync.WaitGroup
	work := []func(){
		func() { sink += uint64(outer(3)) },
		func() { sink += uint64(recovers(1)) },
		func() { sink += uint64(allocates()) },
		func() { callsKernel(zero) },
	}
	for _, item := range work {
		workers.Add(1)
		go func(item func()) {
			defer workers.Done()
			for !over(budget) {
				item()
			}
		}(item)
	}
	for !over(budget) {
		done := make(chan int)
		go func() { done <- grows(60) + int(outgrows(7)) }()
		sink += uint64(<-done)
	}
	workers.Wait()
}
