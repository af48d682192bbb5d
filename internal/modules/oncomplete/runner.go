//go:build !core

package oncomplete

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
)

// Options say what is run, and for which files.
type Options struct {
	Command string          // of a shell
	Timeout time.Duration   // after which the command is killed with all that it started, and counts as failed
	Dirs    func() []string // the directories of the output, as of now
	Formats []archive.Format
	Except  string // the name of a format whose files are not meant
	Journal string // its path
	Log     *slog.Logger
}

// The bounds of waiting, and of what is kept of the words of a command.
const (
	lookEvery  = 5 * time.Second
	firstWait  = time.Second // after a failure; it doubles with each
	longestWay = 10 * time.Minute
	lastTries  = 3 // of one file, when the crawl is done
	mostOutput = 2 << 10
)

// Runner runs the command. Start, its stop and End are called one after the other; Trouble by anybody.
type Runner struct {
	o       Options
	journal *journal
	first   time.Duration // the wait after the first of several failures
	look    time.Duration // between two looks for files
	mu      sync.Mutex
	trouble string // why the first file that waits was not taken; empty: none waits for another try
}

// New returns a runner. The error is that of the journal.
func New(o Options) (*Runner, error) {
	j, err := openJournal(o.Journal)
	if err != nil {
		return nil, err
	}
	return &Runner{o: o, journal: j, first: firstWait, look: lookEvery}, nil
}

// Trouble says which file the command does not take, and why; false: there is none.
func (r *Runner) Trouble() (text string, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trouble, r.trouble != ""
}

func (r *Runner) setTrouble(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = text
}

// Start runs Run in a goroutine until stop is called, which waits for its end.
func (r *Runner) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.Run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// End is Finish, unless the crawl was stopped before it was done, and closes the journal.
func (r *Runner) End(ctx context.Context, stopped bool) (err error) {
	if !stopped {
		err = r.Finish(ctx)
	}
	return errors.Join(err, r.journal.file.Close())
}

// Run gives finished files to the command until ctx ends. After a failure it waits, longer with each, and begins with
// the file behind: one that is never taken holds up no other.
func (r *Runner) Run(ctx context.Context) {
	failures := 0
	for {
		failed, files, from := false, r.waiting(), failures
		for i := range files {
			file := files[(from+i)%len(files)]
			if ctx.Err() != nil {
				return
			}
			if failed = r.take(ctx, file) != nil; failed {
				failures++
				break // it may be the place that is full
			}
			failures = 0
		}
		wait := r.look
		if failed {
			wait = r.backoff(failures)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Finish gives the files to the command that the end of the crawl has finished, each a few times. The error says how
// many it has not taken: the next run goes on with them.
func (r *Runner) Finish(ctx context.Context) error {
	left, last := 0, error(nil)
	for _, file := range r.waiting() {
		err := r.take(ctx, file)
		for try := 1; err != nil && try < lastTries && ctx.Err() == nil; try++ {
			select {
			case <-ctx.Done():
			case <-time.After(r.backoff(try)):
				err = r.take(ctx, file)
			}
		}
		if err != nil {
			left, last = left+1, err
		}
	}
	if left > 0 {
		files := "1 finished file"
		if left > 1 {
			files = fmt.Sprintf("%d finished files", left)
		}
		return fmt.Errorf("output.on_complete has not taken %s; the next run takes up what is left: %w", files, last)
	}
	return nil
}

// backoff is how long to wait after so many failures in a row.
func (r *Runner) backoff(failures int) time.Duration {
	return min(r.first<<min(failures-1, 16), longestWay)
}

// waiting returns the finished files that the command has not taken, in the order of their names.
func (r *Runner) waiting() (files []string) {
	for _, dir := range r.o.Dirs() {
		if absolute, err := filepath.Abs(dir); err == nil {
			dir = absolute
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.o.Log.Warn("cannot look for finished files of the output", "directory", dir, "error", err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if info, err := e.Info(); err == nil && r.isFinished(e.Name()) && !r.journal.has(path, info) {
				files = append(files, path)
			}
		}
	}
	return files
}

// isFinished reports whether a name is that of a finished file of the output.
func (r *Runner) isFinished(name string) bool {
	return slices.ContainsFunc(r.o.Formats, func(f archive.Format) bool {
		_, _, suffix, ok := f.Naming().Parse(name)
		return ok && suffix == "" && f.Name() != r.o.Except
	})
}

// take gives a file to the command.
func (r *Runner) take(ctx context.Context, file string) error {
	d, err := describe(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody took it away
	}
	if err == nil {
		if err = r.run(ctx, &d); err == nil {
			err = r.journal.add(d)
		}
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		r.setTrouble("output.on_complete, " + filepath.Base(file) + ": " + err.Error())
		r.o.Log.Warn("output.on_complete has not taken a file; it is tried again", "file", file, "error", err)
		return err
	}
	r.setTrouble("")
	r.o.Log.Info("output.on_complete has taken a file", "file", file, "bytes", d.Size, "sha256", d.SHA256)
	return nil
}

// describe reads a file.
func describe(path string) (d done, err error) {
	f, err := os.Open(path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return d, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%s changes", path)
	}
	return done{path, n, info.ModTime().UnixNano(), hex.EncodeToString(sum.Sum(nil))}, err
}

// run runs the command for a file.
func (r *Runner) run(ctx context.Context, d *done) error {
	limited, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	words := &tail{most: mostOutput}
	c := exec.CommandContext(limited, "/bin/sh", "-c", r.o.Command, "amble", d.File)
	c.Env = append(os.Environ(), "AMBLE_FILE="+d.File, "AMBLE_NAME="+filepath.Base(d.File), "AMBLE_SHA256="+d.SHA256,
		"AMBLE_SIZE="+strconv.FormatInt(d.Size, 10))
	c.Stdout, c.Stderr, c.WaitDelay = words, words, time.Second
	killAll(c)
	err := c.Run()
	switch {
	case err == nil:
		return nil
	case limited.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("it did not end within %v (output.on_complete_timeout)", r.o.Timeout)
	}
	if said := strings.TrimSpace(words.String()); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// tail keeps the end of what is written.
type tail struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	_, _ = t.Buffer.Write(b[max(len(b)-t.most, 0):])
	if over := t.Len() - t.most; over > 0 {
		t.Next(over)
	}
	return len(b), nil
}
