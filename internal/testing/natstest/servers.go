// Package natstest runs NATS servers inside tests: one or several, which can be stopped and started
// again, and proxies that cut their connections.
package natstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// patience is for a machine that is busy: no verdict depends on it.
const patience = time.Minute

// Servers are NATS servers of one process, each with a directory of its own.
type Servers struct {
	t         testing.TB
	options   []natsconn.ServerOptions
	running   []*natsconn.Server
	processes []*exec.Cmd // instead of running, if the servers are processes
}

// Start starts so many servers that belong together, and stops them at the end of the test. alter,
// unless nil, changes the options of each.
func Start(t testing.TB, names natsconn.Names, count int, alter func(i int, o *natsconn.ServerOptions)) *Servers {
	t.Helper()
	s := &Servers{t: t, running: make([]*natsconn.Server, count)}
	s.start(names, count, alter)
	return s
}

// StartProcesses is [Start] with a process for each server, which [Servers.Stop] kills by SIGKILL. The
// TestMain of the package calls [RunServer] first.
func StartProcesses(t testing.TB, names natsconn.Names, count int,
	alter func(i int, o *natsconn.ServerOptions)) *Servers {
	t.Helper()
	s := &Servers{t: t, running: make([]*natsconn.Server, count), processes: make([]*exec.Cmd, count)}
	s.start(names, count, alter)
	return s
}

func (s *Servers) start(names natsconn.Names, count int, alter func(i int, o *natsconn.ServerOptions)) {
	t := s.t
	t.Helper()
	addresses := freeAddresses(t, 2*count)
	for i := range count {
		o := natsconn.ServerOptions{Node: fmt.Sprintf("server%d", i), Names: names, Listen: addresses[2*i],
			Directory: t.TempDir()}
		if count > 1 {
			o.ListenRoutes = addresses[2*i+1]
			for j := range count {
				o.Routes = append(o.Routes, addresses[2*j+1])
			}
		}
		if alter != nil {
			alter(i, &o)
		}
		s.options = append(s.options, o)
	}
	t.Cleanup(func() {
		for i := range s.running {
			s.Stop(i)
		}
	})
	for i := range count {
		s.Start(i)
	}
}

// serverEnv is the variable with the options of a server that is a process.
const serverEnv = "AMBLE_TEST_NATS_SERVER"

// RunServer runs a server until it is killed, if this process was started for that.
func RunServer() {
	text := os.Getenv(serverEnv)
	if text == "" {
		return
	}
	var o natsconn.ServerOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	if _, err := natsconn.Start(o, patience); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
	os.Exit(0)
}

// startProcess starts a server as a process.
func (s *Servers) startProcess(i int) {
	s.t.Helper()
	text, err := json.Marshal(s.options[i])
	if err != nil {
		s.t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	c := exec.Command(program)
	c.Env, c.Stderr = append(os.Environ(), serverEnv+"="+string(text)), os.Stderr
	if _, err := c.StdinPipe(); err != nil { // stays open until the end of this process
		s.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.processes[i] = c
}

// freeAddresses returns addresses of this machine at which nothing listens.
func freeAddresses(t testing.TB, count int) (addresses []string) {
	t.Helper()
	for range count {
		l, err := net.Listen("tcp", net.JoinHostPort(testkit.Loopback(t).String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

// Start starts a server that does not run. A process may take connections only later.
func (s *Servers) Start(i int) {
	s.t.Helper()
	if s.processes != nil {
		s.startProcess(i)
		return
	}
	var err error
	if s.running[i], err = natsconn.Start(s.options[i], patience); err != nil {
		s.t.Fatal(err)
	}
}

// Stop stops a server, if it runs. What it has acknowledged stays in its directory.
func (s *Servers) Stop(i int) {
	if s.processes != nil {
		if c := s.processes[i]; c != nil {
			_ = c.Process.Kill()
			_ = c.Wait()
			s.processes[i] = nil
		}
		return
	}
	if s.running[i] != nil {
		s.running[i].Stop()
		s.running[i] = nil
	}
}

// Leader returns the number of the server that leads the stream of the registers, or -1.
func (s *Servers) Leader() int {
	for i, r := range s.running {
		if r != nil && r.Leads() {
			return i
		}
	}
	return -1
}

// Server returns a server that runs, or nil.
func (s *Servers) Server(i int) *natsconn.Server { return s.running[i] }

// Addresses returns where the servers listen, whether they run or not.
func (s *Servers) Addresses() (addresses []string) {
	for _, o := range s.options {
		addresses = append(addresses, o.Listen)
	}
	return addresses
}

// URLs returns the addresses as clients want them.
func (s *Servers) URLs() (urls []string) {
	for _, a := range s.Addresses() {
		urls = append(urls, "nats://"+a)
	}
	return urls
}

// Directory returns where a server keeps its files.
func (s *Servers) Directory(i int) string { return s.options[i].Directory }

// Connect connects to servers until the end of the test. A connection that a slow machine does not make in time is no
// fault.
func Connect(t testing.TB, o natsconn.Options) (nc *nats.Conn, js jetstream.JetStream) {
	t.Helper()
	testkit.Eventually(t, "a connection", func() (err error) {
		if nc, js, err = natsconn.Connect(o); err != nil && !errors.Is(err, natsconn.ErrDown) {
			t.Fatal(err)
		}
		return err
	})
	t.Cleanup(nc.Close)
	return nc, js
}
