// Package delivery is what gives the output away while a crawl runs, and what is left of it at its end.
package delivery

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Delivery gives output away. Start, its stop and End are called one after the other; Trouble by anybody.
type Delivery interface {
	Start() (stop func())
	End(ctx context.Context, stopped bool) error // stopped: the crawl is not done, and what is left stays
	Trouble() (text string, is bool)             // why the first of what waits is not taken
}

// Handle is a delivery that may not have begun. Any goroutine may call its methods.
type Handle struct{ started atomic.Pointer[Delivery] }

// Start begins a delivery.
func (r *Handle) Start(d Delivery) (stop func()) {
	r.started.Store(&d)
	return d.Start()
}

// End ends it.
func (r *Handle) End(ctx context.Context, stopped bool) error {
	if d := r.started.Load(); d != nil {
		return (*d).End(ctx, stopped)
	}
	return nil
}

// Trouble is its Trouble.
func (r *Handle) Trouble() (text string, is bool) {
	if d := r.started.Load(); d != nil {
		return (*d).Trouble()
	}
	return "", false
}

// Trouble returns what says the trouble of the first delivery that has one.
func Trouble(all ...*Handle) func() (text string, is bool) {
	return func() (text string, is bool) {
		for _, r := range all {
			if text, is = r.Trouble(); is {
				break
			}
		}
		return text, is
	}
}

// Dirs returns what lists the directories of the output: that of the settings, which a node of a cluster has not, and
// those of the crawls and shards that the process has had.
func Dirs(dataDir, output string, inCluster bool) func() []string {
	return func() (dirs []string) {
		if !inCluster {
			dirs = append(dirs, output)
		}
		for _, of := range []string{"crawls", "shards"} {
			entries, _ := os.ReadDir(filepath.Join(dataDir, of)) // without it there are none
			for _, e := range entries {
				if e.IsDir() { // the shards have a file besides
					dirs = append(dirs, filepath.Join(dataDir, of, e.Name(), "output"))
				}
			}
		}
		return dirs
	}
}
