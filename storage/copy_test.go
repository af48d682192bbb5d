package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestBackup: a copy is of one moment, and complete, though commits go on while it is written.
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
	must.True(t, err == nil && n == int64(copied.Len()) && n == announced, "%d bytes of %d, %d were announced: %v", n,
		copied.Len(), announced, err)
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, FileName), copied.Bytes(), 0o600))
	c := mustOpen(t, dir, Options{ReadOnly: true})
	defer mustClose(t, c)
	checkClean(t, c)
	assert.Equal(t, c.Counters().URLs, 5000, "the copy URLs")
	full := errors.New("full")
	into := writerFunc(func([]byte) (int, error) { return 0, full })
	assert.Fails(s.Backup(func(int64) (io.Writer, error) { return into, nil }))(t, nil,
		"a copy that cannot be written is no error")
	assert.Fails(s.Backup(func(int64) (io.Writer, error) { return nil, full }))(t, full, "a copy that nobody takes")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestCompactKeepsEveryRow rewrites a database and compares counters, URLs and the findings of
// Check before and after.
func TestCompactKeepsEveryRow(t *testing.T) {
	dir := t.TempDir()
	s := must.Get(Open(dir, Options{}))(t)
	g := &benchURLs{hosts: 50}
	var b Batch
	for range 5 {
		fillBatch(s, g, 2000, &b)
		must.Get(s.Commit(&b))(t)
	}
	want, first := s.Counters(), b.Found[0].URL
	full := must.Get(s.Stats(context.Background()))(t)
	wasFree := full.FreePages
	if _, _, err := Compact(dir); err == nil {
		t.Error("a database in use was compacted")
	}
	must.Do(t, s.Close())
	before, after, err := Compact(dir)
	must.Do(t, err)
	assert.AtMost(t, after, before, "the file grew from bytes")
	s = must.Get(Open(dir, Options{}))(t)
	defer s.Close()
	assert.Equal(t, s.Counters(), want, "counters")
	if _, _, err := s.Lookup(first); err != nil {
		t.Error(err)
	}
	must.Do(t, s.Check(context.Background(), func(f Finding) { t.Error(f.Text) }))
	st := must.Get(s.Stats(context.Background()))(t)
	rows := make(map[string]int)
	for _, bucket := range st.Buckets {
		rows[bucket.Name] = bucket.Rows
	}
	// Every page is either in use or free, so the buckets and the free pages make up the file.
	var used int64
	for _, bucket := range st.Buckets {
		used += bucket.Bytes
	}
	assert.Equal(t, used+int64(st.FreePages+overheadPages)*int64(st.PageSize), st.FileBytes, used, "bytes in use and",
		st.FreePages, "free pages make the file")
	assert.True(t, wasFree > st.FreePages, "%d pages were free, and %d are after compaction", wasFree, st.FreePages)
	assert.True(t, rows["host"] == 50 && rows["url"] != 0 && rows["seen"] != 0 && st.FileBytes == after,
		"statistics are %+v", st)
}

// TestOpenNoticesAReplacedFile opens a file that was replaced while Open waited for the lock, as
// Compact does.
func TestOpenNoticesAReplacedFile(t *testing.T) {
	dir := t.TempDir()
	s := must.Get(Open(dir, Options{}))(t)
	defer s.Close()
	old := must.Get(os.Open(s.Path()))(t)
	defer old.Close()
	assert.NoError(t, s.checkPath(old), "the file in place")
	must.Do(t, s.copyTo(s.Path()+".compact", s.Path()))
	must.Do(t, os.Rename(s.Path()+".compact", s.Path()))
	assert.Is(t, s.checkPath(old), ErrInUse, "a replaced file")
}
