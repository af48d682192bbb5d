package testkit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// ChildFile has, in the directory of a child, what it does.
const ChildFile = "child.json"

// BeChild makes the test binary a child, a process of its own that can be killed, if the environment
// variable env names a directory: it calls run with that and with what PrepareChild has put there, and
// ends the process. TestMain calls it first.
func BeChild[C any](env string, run func(dir string, c C) error) {
	dir := os.Getenv(env)
	if dir == "" {
		return
	}
	go endWithParent(os.Getppid())
	var c C
	text, err := os.ReadFile(filepath.Join(dir, ChildFile))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil {
		err = run(dir, c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// endWithParent ends the process when its parent has ended, however that came.
func endWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}

// PrepareChild writes what a child in a directory does.
func PrepareChild(t testing.TB, dir string, c any) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ChildFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Child returns a child in a directory that has not started.
func Child(t testing.TB, env, dir string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(program)
	child.Env = append(os.Environ(), env+"="+dir)
	child.Stderr = os.Stderr
	return child
}

// StartChild starts a child, which ends with the test at the latest. done gets the result of its Wait.
func StartChild(t testing.TB, env, dir string) (child *exec.Cmd, done <-chan error) {
	t.Helper()
	child = Child(t, env, dir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	c := make(chan error, 1)
	go func() { c <- child.Wait() }()
	return child, c
}
