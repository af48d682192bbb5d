package storage

import (
	"bytes"
	"errors"
	"fmt"
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
	n, err := s.Backup(w)
	if err != nil || n != int64(copied.Len()) {
		t.Fatalf("%d bytes of %d, %v", n, copied.Len(), err)
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
	if _, err := s.Backup(writerFunc(func([]byte) (int, error) { return 0, errors.New("full") })); err == nil {
		t.Error("a copy that cannot be written is no error")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
