package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"
	bolt "go.etcd.io/bbolt"
)

// processes are the programs that a script started and that run at the same time.
type processes struct {
	mu      sync.Mutex
	running map[string]*process
}

type process struct {
	command        *exec.Cmd
	ended          chan struct{} // closed when it has
	stdout, stderr printed
}

// printed is what a program has printed so far.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write is part of io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// String is all of it.
func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

type processesKey struct{}

// addProcesses prepares a script for start, signal and ends, and lets nothing that it started
// outlive it.
func addProcesses(env *testscript.Env) {
	all := &processes{running: map[string]*process{}}
	env.Values[processesKey{}] = all
	env.Defer(func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, p := range all.running {
			_ = p.command.Process.Kill()
			<-p.ended
		}
	})
}

// start is the script command `start NAME program args...`: the program runs in the background.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME program [args...]")
	}
	all := ts.Value(processesKey{}).(*processes)
	p := &process{command: exec.Command(args[1], args[2:]...), ended: make(chan struct{})}
	p.command.Dir = ts.MkAbs(".")
	p.command.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "GORACE="+ts.Getenv("GORACE"))
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	ts.Check(p.command.Start())
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // its code says it
	}()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.running[args[0]] = p
}

// sendSignal is the script command `signal NAME INT`.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	known := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill, "HUP": syscall.SIGHUP}
	if neg || len(args) != 2 || known[args[1]] == nil {
		ts.Fatalf("usage: signal NAME INT|TERM|KILL|HUP")
	}
	all := ts.Value(processesKey{}).(*processes)
	all.mu.Lock()
	defer all.mu.Unlock()
	ts.Check(all.running[args[0]].command.Process.Signal(known[args[1]]))
}

// ends is the script command `ends NAME CODE`: it waits for the end of a program and writes what it
// printed to the files NAME.stdout and NAME.stderr.
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME CODE")
	}
	all := ts.Value(processesKey{}).(*processes)
	all.mu.Lock()
	p := all.running[args[0]]
	delete(all.running, args[0])
	all.mu.Unlock()
	<-p.ended
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stdout"), []byte(p.stdout.String()), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stderr"), []byte(p.stderr.String()), 0o644))
	if got := strconv.Itoa(p.command.ProcessState.ExitCode()); got != args[1] { // -1: killed
		ts.Fatalf("%s: exit code %s, want %s\n%s%s", args[0], got, args[1], p.stdout.String(), p.stderr.String())
	}
}

// publish is the script command `publish SUBJECT`: it publishes what nobody can read to the NATS server. $SEQUENCE is
// its sequence then.
func publish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: publish SUBJECT")
	}
	nc, err := nats.Connect(ts.Getenv("NATS"))
	ts.Check(err)
	defer nc.Close()
	m, err := nc.Request(args[0], []byte("nonsense"), time.Minute)
	ts.Check(err)
	var ack struct{ Seq uint64 }
	ts.Check(json.Unmarshal(m.Data, &ack))
	ts.Setenv("SEQUENCE", strconv.FormatUint(ack.Seq, 10))
}

// says is the script command `says NAME PATTERN`: it waits until a program that was started has
// printed a line like that to standard error.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: says NAME PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	all := ts.Value(processesKey{}).(*processes)
	all.mu.Lock()
	p := all.running[args[0]]
	all.mu.Unlock()
	ended := false
	for range 6000 { // five minutes: the machine may be busy
		if pattern.MatchString(p.stderr.String()) {
			return
		}
		if ended {
			ts.Fatalf("%s has ended, and said nothing like %s:\n%s", args[0], args[1], p.stderr.String())
		}
		select {
		case <-p.ended: // it has printed all
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	ts.Fatalf("%s says nothing like %s:\n%s", args[0], args[1], p.stderr.String())
}

// eventually is the script command `eventually program args...`: it runs a program again and again
// until it ends with 0.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: eventually program [args...]")
	}
	var err error
	pause := 50 * time.Millisecond
	for range 600 { // ten minutes: the machine may be busy
		if err = ts.Exec(args[0], args[1:]...); err == nil {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Second) // each attempt is some processes
	}
	ts.Fatalf("%v", err)
}

// damage is the script command `damage KIND FILE`: it makes a database, or with flip any file, one
// that has to be refused or reported. FILE may be a pattern that matches one file.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage empty|truncate|newer|count|flip FILE")
	}
	path := ts.MkAbs(args[1])
	if matches, err := filepath.Glob(path); err == nil && len(matches) == 1 {
		path = matches[0]
	}
	switch args[0] {
	case "empty":
		ts.Check(os.Truncate(path, 0))
	case "truncate":
		ts.Check(os.Truncate(path, 3*4096))
	case "newer":
		inMeta(ts, path, func(b *bolt.Bucket) error {
			version := binary.BigEndian.AppendUint32(nil, 99)
			return errors.Join(b.Put([]byte("version"), version), putRow(b, "sums", version))
		})
	case "count":
		inMeta(ts, path, func(b *bolt.Bucket) error {
			row := b.Get([]byte("counters"))
			counters := append([]byte(nil), row[:len(row)-4]...)
			counters[7]++ // hosts
			return putRow(b, "counters", counters)
		})
	case "flip":
		data, err := os.ReadFile(path)
		ts.Check(err)
		data[len(data)/2] ^= 0xff
		ts.Check(os.WriteFile(path, data, 0o644))
	default:
		ts.Fatalf("no such damage: %s", args[0])
	}
}

// putRow puts a row of the bucket meta with its checksum.
func putRow(b *bolt.Bucket, key string, value []byte) error {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum([]byte("meta"), table)^uint32(len(key)), table, append([]byte(key), value...))
	return b.Put([]byte(key), binary.BigEndian.AppendUint32(value, sum))
}

func inMeta(ts *testscript.TestScript, path string, change func(*bolt.Bucket) error) {
	db, err := bolt.Open(path, 0o644, nil)
	ts.Check(err)
	ts.Check(db.Update(func(tx *bolt.Tx) error { return change(tx.Bucket([]byte("meta"))) }))
	ts.Check(db.Close())
}
