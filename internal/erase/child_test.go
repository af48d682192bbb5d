package erase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/badsync"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/weburl"
)

// childDir is the environment variable that makes the test binary a process that crawls, or erases, in
// a directory.
const childDir = "AMBLE_ERASE_CHILD"

// childConfig is what the child does.
type childConfig struct {
	Resolver string
	Seeds    []string
	Names    weburl.Names // of an erasure; empty: it crawls
	KillAt   int          // the sync before which the child kills itself; 0: none
}

const childFile = "child.json"

// options are those of the crawl in a directory.
func options(dir, resolver string) crawl.Options {
	o := crawl.DefaultOptions()
	o.MinFree = 0
	o.DataDir, o.Archive.Dir = filepath.Join(dir, "data"), filepath.Join(dir, "output")
	o.Archive.Formats = []string{archive.FormatJSONL, archive.FormatWARC, archive.FormatLinks, archive.FormatText}
	o.Fetch.UserAgent, o.Fetch.AllowPrivate, o.Fetch.Resolver = "amble-test", true, resolver
	o.Frontier.Politeness.Delay = time.Millisecond
	return o
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := runChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, childFile))
	if err != nil {
		return err
	}
	var c childConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.KillAt > 0 {
		syncs := 0
		if err := badsync.Install(func(badsync.Call, int) bool {
			if syncs++; syncs == c.KillAt {
				self, _ := os.FindProcess(os.Getpid())
				_ = self.Kill()
				select {}
			}
			return false
		}); err != nil {
			return err
		}
	}
	o := options(dir, c.Resolver)
	if c.Names.Name != "" {
		_, err := Run(context.Background(), Options{Crawl: o, Names: c.Names, Output: true, Now: time.Now})
		return err
	}
	e, err := crawl.Open(o, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	var seeds []crawl.Seed
	for _, s := range c.Seeds {
		u, err := weburl.Parse(s)
		if err != nil {
			return err
		}
		seeds = append(seeds, crawl.Seed{URL: u})
	}
	_, err = e.Run(context.Background(), seeds)
	return errors.Join(err, e.Close())
}

// startChild starts a child in a directory. done returns its end.
func startChild(t testing.TB, dir string, c childConfig) (child *exec.Cmd, done chan error) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, childFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	child = exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	done = make(chan error, 1)
	go func() { done <- child.Wait() }()
	return child, done
}
