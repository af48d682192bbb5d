package storage

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
)

// TestFlips: whatever one byte of a database becomes, each command has the right answer or says that the
// database is damaged. Every byte is flipped by TestSoakFlips.
func TestFlips(t *testing.T) { flipBytes(t, 61, 0x10) }

// flipBytes flips bits of one byte in each step of a small database, and does with the file what the
// commands do.
func flipBytes(t *testing.T, step int, bits byte) {
	s := goldenStore(t)
	for range 2 { // either of the two last commits is whole without the meta page of the other
		mustCommit(t, s, &Batch{Marks: map[string][]byte{"mark": {0}}})
	}
	var want bytes.Buffer
	must.Do(t, s.WriteRows(&want))
	good := readFile(t, s.Path())
	need := must.Get(boltSize(bytes.NewReader(good)))(t)
	good = good[:need]
	dir := memoryDir(t)
	damaged := 0
	for at := step / 2; at < len(good); at += step {
		bad := patched(good, at, []byte{good[at] ^ bits})
		for _, do := range []func(string) ([]byte, error){readRows, checkFile, commitAndCopy} {
			must.Do(t, os.WriteFile(filepath.Join(dir, FileName), bad, 0o644))
			got, err := do(dir)
			switch {
			case isDamaged(err):
				damaged++
			case err != nil:
				t.Fatalf("byte %d: %v", at, err)
			case got != nil && !bytes.Equal(got, want.Bytes()):
				t.Fatalf("byte %d: the answer is another one", at)
			}
		}
	}
	assert.True(t, damaged >= len(good)/step/4, "%d times the damage of %d bytes was seen", damaged, len(good)/step)
}

// memoryDir returns a directory in memory where the system has one: a test that makes a hundred thousand files durable
// would wait for the disk alone.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "amble")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		assert.NoError(t, os.RemoveAll(dir))
	})
	return dir
}

func isDamaged(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrNotDatabase) ||
		errors.Is(err, ErrNewer)
}

// readRows reads all rows, as an export does.
func readRows(dir string) ([]byte, error) {
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	var rows bytes.Buffer
	err = s.WriteRows(&rows)
	return rows.Bytes(), errors.Join(err, s.Close())
}

// checkFile checks the file, and returns an error for a finding.
func checkFile(dir string) ([]byte, error) {
	var found error
	report := func(f Finding) { found = errors.Join(ErrCorrupt, errors.New(f.Text)) }
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		if errors.Is(err, ErrCorrupt) {
			err = errors.Join(err, CheckDamaged(context.Background(), dir, report))
		}
		return nil, err
	}
	return nil, errors.Join(s.Check(context.Background(), report), found, s.Close())
}

// commitAndCopy opens the file as a run does, commits and makes a copy.
func commitAndCopy(dir string) ([]byte, error) {
	s, err := Open(dir, Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	err = errors.Join(s.Hosts(func(*Host) error { return nil }))
	if err == nil {
		_, err = s.Commit(&Batch{Ensure: []string{"added.example"}, Marks: map[string][]byte{"mark": {1}}})
	}
	if err == nil {
		err = s.copyTo(filepath.Join(dir, "copy.db"), s.Path())
		err = errors.Join(err, os.Remove(filepath.Join(dir, "copy.db")))
	}
	return nil, errors.Join(err, s.Close())
}

// TestDamagedFreelist: a file at which bbolt itself fails to open does not stay locked.
func TestDamagedFreelist(t *testing.T) {
	good := smallStore(t)
	m := boltfile.Newest(boltfile.Metas(bytes.NewReader(good)))
	bad := patched(good, int(m.Freelist)*int(m.PageSize)+8, []byte{0xff})
	dir := t.TempDir()
	for range 2 {
		must.Do(t, os.WriteFile(filepath.Join(dir, FileName), bad, 0o644))
		assert.Fails(commitAndCopy(dir))(t, ErrCorrupt)
	}
}
