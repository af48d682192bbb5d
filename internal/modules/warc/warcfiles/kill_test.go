package warcfiles

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// commitFile replaces the database: a batch is committed by renaming a file.
type commitFile struct {
	Lines int            // committed so far
	Marks []archive.Mark // that go with them
}

func (c *commitFile) load(path string) error {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, c)
}

func (c commitFile) store(path string) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// TestMain lets the test kill a process of its own: with AMBLE_ARCHIVE_DIR set, the program writes
// there until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AMBLE_ARCHIVE_DIR"); dir != "" {
		fmt.Fprintln(os.Stderr, writeForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func writeForever(dir string) error {
	var c commitFile
	path := filepath.Join(dir, "commit")
	if err := c.load(path); err != nil {
		return err
	}
	o, err := killOptions(dir)
	if err != nil {
		return err
	}
	w, err := archive.Open(o, c.Marks)
	if err != nil {
		return err
	}
	e, err := archive.NewEncoder(o, nil)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for size := 1; ; size = size*7%501 + 1 {
		for n := range size {
			item, err := e.Encode(&archive.Visit{Exchange: exchangeOf(killURL(c.Lines+n), "body", 0)})
			if err == nil {
				err = w.Append(item, startOfTime)
			}
			if err != nil {
				return err
			}
		}
		marks, err := batch(e, w, lines(c.Lines, size))
		if err != nil {
			return err
		}
		c.Lines, c.Marks = c.Lines+size, marks
		if err := c.store(path); err != nil {
			return err
		}
		if size == 1 {
			fmt.Println("committed")
		}
	}
}

// killOptions are those of the process that is killed: lines, and records with a dictionary.
func killOptions(dir string) (archive.Options, error) {
	o := archive.DefaultOptions()
	o.Known = []archive.Format{rawFormat(), Format()}
	o.Dir, o.Formats = filepath.Join(dir, "output"), []string{archive.FormatJSONL, Name}
	o.MaxFileBytes = 20_000
	o.Records, o.DictionaryFile = archive.Compression{Format: warc.FormatZstd, Level: 1}, "../testdata/dictionary"
	return o, o.Load()
}

func killURL(n int) string { return fmt.Sprintf("http://h.test/%09d", n) }

func TestKilledProcessLeavesWhatIsCommitted(t *testing.T) {
	dir := t.TempDir()
	o := must.Get(killOptions(dir))(t)
	var c commitFile
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "AMBLE_ARCHIVE_DIR="+dir)
		cmd.Stderr = os.Stderr
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		says := bufio.NewScanner(out)
		assert.True(t, says.Scan() && (round != 0 || says.Scan()), "the writer did not begin, or commit")
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()

		must.Do(t, c.load(filepath.Join(dir, "commit")))
		mustOpen(t, o, c.Marks).Close()
		if got := output(t, o.Dir); !slices.Equal(got, lines(0, c.Lines)) {
			t.Fatalf("%d lines were committed, the files hold %d", c.Lines, len(got))
		}
		if got := captures(t, o.Dir); len(got) != c.Lines || !slices.IsSorted(got) ||
			len(got) > 0 && got[len(got)-1] != killURL(c.Lines-1) {
			t.Fatalf("%d records were committed, the files hold %d", c.Lines, len(got))
		}
	}
	assert.True(t, c.Lines != 0, "nothing was committed")
}
