package erase

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/badsync"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/weburl"
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

// options are those of the crawl in a directory.
func options(dir, resolver string) crawl.Options {
	o := crawl.DefaultOptions()
	o.MinFree = 0
	o.DataDir, o.Archive.Dir = filepath.Join(dir, "data"), filepath.Join(dir, "output")
	o.Archive.Formats = []string{archive.FormatJSONL, warcfiles.Name, archive.FormatLinks, archive.FormatText}
	o.Fetch.UserAgent, o.Fetch.AllowPrivate, o.Fetch.Resolver = "amble-test", true, resolver
	o.Frontier.Politeness.Delay = time.Millisecond
	return o
}

func TestMain(m *testing.M) {
	testkit.BeChild(childDir, runChild)
	os.Exit(m.Run())
}

func runChild(dir string, c childConfig) error {
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
		_, err := Run(context.Background(), Options{Crawl: o, Names: c.Names, Output: true, Now: time.Now,
			Files: outputFiles})
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
func startChild(t testing.TB, dir string, c childConfig) (child *exec.Cmd, done <-chan error) {
	t.Helper()
	testkit.PrepareChild(t, dir, c)
	return testkit.StartChild(t, childDir, dir)
}

// outputFiles are the files that the program erases from.
func outputFiles(dir string, known []archive.Format, names weburl.Names) Files {
	return warcfiles.NewEraser(dir, known, names)
}
