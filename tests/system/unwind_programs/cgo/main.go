// SPDX-License-Identifier: Apache-2.0

// Go calls C (on the thread's own stack), which calls Go again.
package main

/*
#include <stdint.h>
static volatile uint64_t c_sink;
void goBack(void);

__attribute__((noipa)) static void c_inner(void)
{
	for (int i = 0; i < 300000; i++)
		c_sink = c_sink * 6364136223846793005ull + 1442695040888963407ull;
}

__attribute__((noipa)) static void c_outer(void)
{
	c_inner();
	goBack();
	__asm__ volatile("" ::: "memory");
}

static inline void c_start(void)
{
	c_outer();
	__asm__ volatile("" ::: "memory");
}
*/
import "C"

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

var sink uint64

//go:noinline
func spin() {
	for i := 0; i < 300000; i++ {
		sink = sink*6364136223846793005 + 1442695040888963407
	}
}

//export goBack
func goBack() {
	spin()
}

//go:noinline
func callsC() {
	C.c_start()
	sink++
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
	for !over(time.Duration(milliseconds) * time.Millisecond) {
		callsC()
	}
}
