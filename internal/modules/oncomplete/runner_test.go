//go:build unix

package oncomplete

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

const childDir = "AMBLE_TEST_ON_COMPLETE"

// TestMain lets the test binary be the process that gets killed.
func TestMain(m *testing.M) {
	testkit.BeChild(childDir, func(dir, command string) error {
		r, err := newRunner(dir, command)
		if err != nil {
			return err
		}
		r.Run(context.Background())
		return nil
	})
	goleak.VerifyTestMain(m)
}

// newRunner returns a runner for the files of a directory that does not wait for long.
func newRunner(dir, command string) (*Runner, error) {
	r, err := New(Options{
		Command: command, Timeout: time.Minute, Formats: archive.Pages(),
		Dirs:    func() []string { return []string{filepath.Join(dir, "out"), filepath.Join(dir, "shards/7/output")} },
		Journal: filepath.Join(dir, JournalFile), Log: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		r.first, r.look = time.Millisecond, time.Millisecond
	}
	return r, err
}

// logs is a command that writes what it was given.
func logs(dir string) string {
	return fmt.Sprintf(`test "$1" = "$AMBLE_FILE" && echo "$AMBLE_NAME $AMBLE_SHA256 $AMBLE_SIZE" >> %s/taken`, dir)
}

// taken returns how often each line was written.
func taken(t *testing.T, dir string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "taken"))
	must.True(t, err == nil || os.IsNotExist(err), "%v", err)
	lines := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// put writes a file, and returns the line that the command writes of it.
func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
	part := filepath.Join(dir, "part")
	must.Do(t, os.WriteFile(part, []byte(text), 0o600))
	must.Do(t, os.Rename(part, filepath.Join(dir, name)))
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s %s %d", filepath.Base(name), hex.EncodeToString(sum[:]), len(text))
}

func finish(t *testing.T, dir, command string) error {
	t.Helper()
	r, err := newRunner(dir, command)
	must.Do(t, err)
	err = r.Finish(t.Context())
	_, is := r.Trouble()
	assert.True(t, is == (err != nil), "after the error %v there is trouble: %v", err, is)
	assert.NoError(t, r.End(t.Context(), true))
	return err
}

// TestFinishedFiles: each finished file is given to the command once, those of all directories, and again when an
// erasure has changed it. Others are not.
func TestFinishedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := map[string]int{
		put(t, dir, "out/pages-000001.jsonl", "one"):                  1,
		put(t, dir, "shards/7/output/pages-000007.jsonl.gz", "seven"): 1,
	}
	put(t, dir, "out/pages-000002.jsonl.open", "not yet")
	put(t, dir, "out/pages-000003.jsonl.unmarked", "set aside")
	put(t, dir, "out/notes.txt", "somebody's")
	put(t, dir, "other/pages-000001.jsonl", "elsewhere")
	for range 2 {
		must.Do(t, finish(t, dir, logs(dir)))
		got := taken(t, dir)
		must.True(t, fmt.Sprint(got) == fmt.Sprint(want), "the command took %v, want %v", got, want)
	}
	want[put(t, dir, "out/pages-000001.jsonl", "two")]++
	must.Do(t, os.Remove(filepath.Join(dir, "shards/7/output/pages-000007.jsonl.gz")))
	must.Do(t, finish(t, dir, logs(dir)))
	assert.Equal(t, fmt.Sprint(taken(t, dir)), fmt.Sprint(want), "after an erasure the command took", want)
	journal, err := os.ReadFile(filepath.Join(dir, JournalFile))
	assert.True(t, err == nil && !strings.Contains(string(journal), "000007"),
		"the journal has a file that is gone: %s (%v)", journal, err)
}

// TestFailures: a command that fails is tried again; one that goes on failing is reported with its last words, and one
// that hangs ends with all that it has started.
func TestFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := put(t, dir, "out/pages-000001.jsonl", "one")
	err := finish(t, dir, `echo "the bucket is full"; exit 3`)
	assert.True(t, err != nil && strings.Contains(err.Error(), "1 finished") &&
		strings.Contains(err.Error(), "exit status 3: the bucket is full"), "the error of a command that fails is %v",
		err)
	r := must.Get(newRunner(dir, `sleep 1000 & sleep 1000`))(t)
	r.o.Timeout = 10 * time.Millisecond
	if err := r.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "within 10ms") {
		t.Errorf("the error of a command that hangs is %v", err)
	}
	must.Do(t, r.End(t.Context(), true))
	third := fmt.Sprintf(`echo >> %s/tries; test $(wc -l < %s/tries) -ge 3 && %s`, dir, dir, logs(dir))
	assert.NoError(t, finish(t, dir, third), "a command that succeeds at the third attempt")
	got := taken(t, dir)
	assert.True(t, got[line] == 1 && len(got) == 1, "the command took %v", got)
}

// TestOneFails: a file that is never taken holds up no other.
func TestOneFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "out/pages-000001.jsonl", "one")
	for _, name := range []string{"2", "3"} {
		put(t, dir, "out/pages-00000"+name+".jsonl", name)
	}
	r := must.Get(newRunner(dir, `case $AMBLE_NAME in *1.jsonl) exit 1;; esac; `+logs(dir)))(t)
	stop := r.Start()
	testkit.Until(t, "the others are taken", func() bool { return len(taken(t, dir)) == 2 })
	stop()
	must.Do(t, r.End(t.Context(), true))
}

// TestKills: a process that is killed at any moment loses no file, and repeats have the same name and checksum.
func TestKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.PrepareChild(t, dir, logs(dir))
	want := make(map[string]bool)
	for round := range 8 {
		child := testkit.Child(t, childDir, dir)
		must.Do(t, child.Start())
		for i := range 5 {
			n := 5*round + i + 1
			want[put(t, dir, fmt.Sprintf("out/pages-%06d.jsonl", n), strings.Repeat("x", n))] = true
		}
		before := len(taken(t, dir))
		testkit.Until(t, "some files", func() bool { return len(taken(t, dir)) > before+rand.IntN(4) })
		must.Do(t, child.Process.Kill())
		_ = child.Wait() // it was killed
	}
	must.Do(t, finish(t, dir, logs(dir)))
	got := taken(t, dir)
	for line := range want {
		assert.Not(t, got[line], 0, "lost", line)
		delete(got, line)
	}
	assert.AtMost(t, len(got), 0, "the command took what there never was", got)
}
