//go:build unix

package fetch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// childPort is the environment variable that makes TestDescriptorsInChild do something: the port of
// a server.
const childPort = "AMBLE_TEST_PORT"

// When no file can be opened any more, idle connections are closed first. If that is not enough,
// the error says which resource is missing. The test runs in a process of its own.
func TestDescriptorsRunOut(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, keepAlive(&requests))
	child := exec.Command(os.Args[0], "-test.run=^TestDescriptorsInChild$", "-test.v")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childPort, s.port()))
	out, err := child.CombinedOutput()
	assert.True(t, err == nil && strings.Contains(string(out), "the child is done"), "%v: %s", err, out)
}

func TestDescriptorsInChild(t *testing.T) {
	port := os.Getenv(childPort)
	if port == "" {
		t.Skip("is a part of TestDescriptorsRunOut")
	}
	open := func() int {
		list := must.Get(os.ReadDir("/dev/fd"))(t)
		return len(list)
	}
	c := newClient(t, quick())
	request := func(n int) error {
		_, err := c.Do(context.Background(), Request{URL: parseURL(t, fmt.Sprintf("http://h%d.test:%s/", n, port)),
			Address: loopback})
		return err
	}
	must.Do(t, request(0))
	limit := syscall.Rlimit{Cur: uint64(open() + 10), Max: uint64(open() + 10)}
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	for n := range 50 {
		if err := request(n); err != nil {
			t.Fatalf("request %d, with %d idle connections: %v", n, c.pool.len(), err)
		}
	}
	var held []*os.File
	for {
		f, err := os.Open("/dev/null")
		if err != nil && c.CloseIdle() {
			continue
		}
		if err != nil {
			break
		}
		held = append(held, f)
	}
	e := wantKind(t, request(99), KindLocal)
	assert.True(t, !e.Sent && e.Op == "connect" && strings.Contains(e.Error(), "ulimit -n"), "%v", e)
	_, err := newClient(t, quick(func(o *Options) { o.Resolver = "127.0.0.1:9" })).Resolve(context.Background(),
		"a.test", false)
	assert.Contains(t, wantKind(t, err, KindLocal).Error(), "ulimit -n")
	for _, f := range held {
		_ = f.Close()
	}
	t.Log("the child is done")
}
