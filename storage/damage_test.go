package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/badsync"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
)

// smallStore returns the bytes of a closed store of some hundred URLs, cut to their least length.
func smallStore(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	for i := range 3 {
		mustCommit(t, s, &Batch{Found: found(t, s, numbered(fmt.Sprintf("host%d.example", i), 0, 200)...)})
	}
	mustClose(t, s)
	b := readFile(t, filepath.Join(dir, FileName))
	need := must.Get(boltSize(bytes.NewReader(b)))(t)
	return b[:need]
}

// foreignDatabase returns a bbolt file that is not a database of amble.
func foreignDatabase(t *testing.T, o *bolt.Options, bucket, key string, value []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign.db")
	db, err := bolt.Open(path, 0o600, o)
	must.Do(t, err)
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte(bucket))
		return errors.Join(err, b.Put([]byte(key), value))
	})
	err = errors.Join(err, db.Close())
	must.True(t, err == nil, "%v", err)
	return readFile(t, path)
}

// patched returns a copy of a file with other bytes at an offset.
func patched(b []byte, at int, with []byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], with)
	return b
}

// reseal corrects the sums of both meta pages.
func reseal(b []byte) []byte {
	page := int(binary.LittleEndian.Uint32(b[boltfile.MetaOffset+8:]))
	for _, at := range []int{boltfile.MetaOffset, page + boltfile.MetaOffset} {
		binary.LittleEndian.PutUint64(b[at+56:], boltfile.MetaSum(b[at:at+56]))
	}
	return b
}

func TestOpenRefuses(t *testing.T) {
	good := smallStore(t)
	page := os.Getpagesize()
	garbage := bytes.Repeat([]byte{0xa5}, len(good))
	farAway := reseal(patched(patched(good, boltfile.MetaOffset+16, []byte{0, 0, 0, 1}), page+boltfile.MetaOffset+16,
		[]byte{0, 0, 0, 1}))
	tests := []struct {
		name string
		file []byte
		want error
	}{
		{"cut in the first meta page", good[:40], ErrNotDatabase},
		{"cut behind the first meta page", good[:page], ErrTruncated},
		{"cut behind both meta pages", good[:2*page], ErrTruncated},
		{"cut in the middle", good[:len(good)/2], ErrTruncated},
		{"cut in the last page", good[:len(good)-1], ErrTruncated},
		{"one byte", good[:1], ErrNotDatabase},
		{"text", []byte(strings.Repeat("this is a log file\n", 4000)), ErrNotDatabase},
		{"zeros", make([]byte, 64<<10), ErrNotDatabase},
		{"half written: metas missing", patched(good, 0, make([]byte, 2*page)), ErrNotDatabase},
		{"all but the metas is garbage", patched(garbage, 0, good[:2*page]), ErrCorrupt},
		{"a root page beyond the file", farAway, ErrCorrupt},
		{"another program's", foreignDatabase(t, nil, "widgets", "a", nil), ErrNotDatabase},
		{"another program's, without a free list", foreignDatabase(t, &bolt.Options{NoFreelistSync: true}, "widgets",
			"a", nil), ErrNotDatabase},
		{"no version", foreignDatabase(t, nil, "meta", "a", nil), ErrNotDatabase},
		{"version 0", foreignDatabase(t, nil, "meta", "version", []byte{0, 0, 0, 0}), ErrNotDatabase},
		{"newer", foreignDatabase(t, nil, "meta", "version", []byte{0, 0, 0, Version + 1}), ErrNewer},
		{"no key", foreignDatabase(t, nil, "meta", "version", []byte{0, 0, 0, Version}), ErrCorrupt},
	}
	for _, test := range tests {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read-only %t", test.name, readOnly), func(t *testing.T) {
				refuses(t, test.file, Options{ReadOnly: readOnly}, test.want)
			})
		}
	}
}

// refuses opens a file and expects an error that names it, and its bytes unchanged.
func refuses(t *testing.T, file []byte, o Options, want error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	must.Do(t, os.WriteFile(path, file, 0o644))
	s, err := Open(dir, o)
	if err == nil {
		mustClose(t, s)
	}
	assert.True(t, errors.Is(err, want) && strings.Contains(err.Error(), path) && !strings.Contains(err.Error(), "\n"),
		"open says %v, want one line with the path: %v", err, want)
	assert.True(t, bytes.Equal(readFile(t, path), file), "the file was changed")
}

func TestOpenOneMetaDamaged(t *testing.T) {
	good, page := smallStore(t), os.Getpagesize()
	for at := range 2 {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, FileName), patched(good, at*page+boltfile.MetaOffset+40,
			[]byte{1, 2, 3}), 0o644))
		s := mustOpen(t, dir, Options{})
		checkClean(t, s) // the state of the last commit or of the one before
		n := s.Counters().URLs
		assert.True(t, n == 600 || n == 400, "with meta page %d damaged there are %d URLs", at, n)
		mustClose(t, s)
	}
}

func TestOpenEmptyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	must.Do(t, os.WriteFile(path, nil, 0o644))
	assert.Fails(Open(dir, Options{ReadOnly: true}))(t, ErrNotDatabase, "read-only open of an empty file")
	mustClose(t, mustOpen(t, dir, Options{})) // as a crash right after the creation leaves it
}

func TestOpenMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	assert.Fails(Open(dir, Options{ReadOnly: true}))(t, fs.ErrNotExist, "read-only open of nothing")
	assert.Fails(os.Stat(dir))(t, fs.ErrNotExist, "a read-only open made a directory")
	mustClose(t, mustOpen(t, dir, Options{}))
}

func TestOpenNotAFile(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, FileName), 0o755))
	assert.Fails(Open(dir, Options{}))(t, ErrNotDatabase, "open of a directory")
}

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	before := readFile(t, s.Path())
	for _, o := range []Options{{}, {ReadOnly: true}} {
		assert.Fails(Open(dir, o))(t, ErrInUse, "second open with", o)
	}
	assert.True(t, bytes.Equal(readFile(t, s.Path()), before), "a refused open changed the file")
	mustClose(t, s)
	a, b := mustOpen(t, dir, Options{ReadOnly: true}), mustOpen(t, dir, Options{ReadOnly: true})
	assert.Fails(Open(dir, Options{}))(t, ErrInUse, "open for writing while there are readers")
	assert.Fails(a.Commit(&Batch{Seeds: []SeedRow{{"x", []byte{}}}}))(t, nil, "a read-only store took a commit")
	mustClose(t, a)
	mustClose(t, b)
}

func TestOpenReadOnlyDirectory(t *testing.T) {
	file := smallStore(t)
	dir := t.TempDir()
	thaw := func() {}
	if os.Geteuid() == 0 {
		thaw = badsync.MountTmpfs(t, dir, "size=8m") // permissions do not stop root
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, FileName), file, 0o444))
	if os.Geteuid() == 0 {
		badsync.RemountReadOnly(t, dir)
	} else if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer thaw()
	if _, err := Open(dir, Options{}); !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		t.Errorf("open in a read-only directory: %v", err)
	}
	s := mustOpen(t, dir, Options{ReadOnly: true})
	assert.Equal(t, s.Counters().URLs, 600, "read-only store URLs")
	checkClean(t, s)
	mustClose(t, s)
}
