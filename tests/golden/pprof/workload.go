package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var sink [][]byte
var mu sync.Mutex

//go:noinline
func spin(n int) int {
	total := 0
	for i := 0; i < n; i++ {
		total += i * i % 7
	}
	return total
}

func square(n int) int { return spin(n) + 1 }

func allocate() {
	for i := 0; i < 2000; i++ {
		sink = append(sink, make([]byte, 16<<10))
	}
}

func contend(done *sync.WaitGroup) {
	defer done.Done()
	for i := 0; i < 50; i++ {
		mu.Lock()
		time.Sleep(200 * time.Microsecond)
		mu.Unlock()
	}
}

func write(name string) {
	f, err := os.Create("go_" + name + ".pb.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if err := pprof.Lookup(name).WriteTo(f, 0); err != nil {
		panic(err)
	}
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	f, err := os.Create("go_cpu.pb.gz")
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(f)
	pprof.Do(context.Background(), pprof.Labels("request", "checkout", "région", "Zürich"), func(context.Context) {
		for start := time.Now(); time.Since(start) < time.Second; {
			square(1000000)
		}
	})
	pprof.StopCPUProfile()
	f.Close()

	allocate()
	var done sync.WaitGroup
	for i := 0; i < 4; i++ {
		done.Add(1)
		go contend(&done)
	}
	done.Wait()
	runtime.GC()
	for _, name := range []string{"heap", "mutex", "block", "goroutine"} {
		write(name)
	}
}
