package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A copy is of one moment, and whole, though commits go on while it is written.
func TestBackup(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	add := func(from, n int) {
		var b Batch
		for i := range n {
			u := parse(t, fmt.Sprintf("http://h%d.test/%d", i%50, from+i))
			b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
		}
		mustCommit(t, s, &b)
	}
	add(0, 5000)
	var copied bytes.Buffer
	w := writerFunc(func(p []byte) (int, error) {
		add(5000+copied.Len(), 50)
		return copied.Write(p)
	})
	announced := int64(0)
	n, err := s.Backup(func(size int64) (io.Writer, error) {
		announced = size
		return w, nil
	})
	if err != nil || n != int64(copied.Len()) || n != announced {
		t.Fatalf("%d bytes of %d, %d were announced: %v", n, copied.Len(), announced, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustOpen(t, dir, Options{ReadOnly: true})
	defer mustClose(t, c)
	checkClean(t, c)
	if c.Counters().URLs != 5000 {
		t.Errorf("the copy has %d URLs", c.Counters().URLs)
	}
	full := errors.New("full")
	into := writerFunc(func([]byte) (int, error) { return 0, full })
	if _, err := s.Backup(func(int64) (io.Writer, error) { return into, nil }); err == nil {
		t.Error("a copy that cannot be written is no error")
	}
	if _, err := s.Backup(func(int64) (io.Writer, error) { return nil, full }); !errors.Is(err, full) {
		t.Errorf("a copy that nobody takes: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
