// SPDX-License-Identifier: Apache-2.0

// A program whose profiles are scraped: it works in main.work, and serves net/http/pprof.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"time"
)

var sink []byte

//go:noinline
func work(until time.Time) (sum uint64) {
	for i := uint64(1); ; i++ {
		sum += i * i
		if i%(1<<16) == 0 {
			sink = make([]byte, 1<<12)
			if time.Now().After(until) {
				return
			}
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	go func() { panic(http.Serve(listener, nil)) }()
	for { // leaves room for others
		work(time.Now().Add(20 * time.Millisecond))
		time.Sleep(20 * time.Millisecond)
	}
}
