// The lock of go-zookeeper, in the version of Debian's package golang-github-samuel-go-zookeeper-dev.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

// patience is how long the program waits for what must happen.
const patience = 1500 * time.Millisecond

type quiet struct{}

func (quiet) Printf(string, ...interface{}) {}

func fail(what string) {
	fmt.Println("broken:", what)
	os.Exit(1)
}

func connect() *zk.Conn {
	connection, events, err := zk.Connect([]string{os.Getenv("MINIKEEPER_CONNECT")}, 5*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		fail(err.Error())
	}
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	return connection
}

// acquire acquires a lock, again if that has failed.
func acquire(lock *zk.Lock) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		done := make(chan error, 1)
		go func() { done <- lock.Lock() }()
		select {
		case err := <-done:
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				fail("Lock fails for 10 s: " + err.Error())
			}
			time.Sleep(10 * time.Millisecond)
		case <-time.After(patience):
			fail("Lock does not return, and nobody holds the lock")
		}
	}
}

// release releases a lock, again if that has failed, unless it was released.
func release(lock *zk.Lock) {
	for try := 0; try < 100; try++ {
		err := lock.Unlock()
		if err == nil || err == zk.ErrNotLocked || err == zk.ErrNoNode {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fail("Unlock fails 100 times")
}

// alone acquires and releases a lock that nobody else wants, twice.
func alone() {
	lock := zk.NewLock(connect(), "/lock", zk.WorldACL(zk.PermAll))
	acquire(lock)
	release(lock)
	acquire(zk.NewLock(connect(), "/lock", zk.WorldACL(zk.PermAll)))
}

// again uses one lock twice, as a program that holds it now and then does.
func again() {
	lock := zk.NewLock(connect(), "/lock", zk.WorldACL(zk.PermAll))
	for i := 0; i < 2; i++ {
		acquire(lock)
		release(lock)
	}
}

func main() {
	map[string]func(){"alone": alone, "again": again}[os.Args[1]]()
}
