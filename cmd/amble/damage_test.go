package main

import (
	"encoding/binary"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
	bolt "go.etcd.io/bbolt"
)

// damage is the script command `damage KIND FILE`: it makes a database, or with flip any file, one that has to be refused or reported. FILE may be a pattern
// that matches one file.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage truncate|newer|count|flip FILE")
	}
	path := ts.MkAbs(args[1])
	if matches, err := filepath.Glob(path); err == nil && len(matches) == 1 {
		path = matches[0]
	}
	switch args[0] {
	case "truncate":
		ts.Check(os.Truncate(path, 3*4096))
	case "newer":
		inMeta(ts, path, func(b *bolt.Bucket) error { return b.Put([]byte("version"), binary.BigEndian.AppendUint32(nil, 99)) })
	case "count":
		inMeta(ts, path, func(b *bolt.Bucket) error {
			counters := append([]byte(nil), b.Get([]byte("counters"))...)
			counters[7]++ // hosts
			return b.Put([]byte("counters"), counters)
		})
	case "flip":
		data, err := os.ReadFile(path)
		ts.Check(err)
		data[len(data)/2] ^= 0xff
		ts.Check(os.WriteFile(path, data, 0o644))
	default:
		ts.Fatalf("no such damage: %s", args[0])
	}
}

func inMeta(ts *testscript.TestScript, path string, change func(*bolt.Bucket) error) {
	db, err := bolt.Open(path, 0o644, nil)
	ts.Check(err)
	ts.Check(db.Update(func(tx *bolt.Tx) error { return change(tx.Bucket([]byte("meta"))) }))
	ts.Check(db.Close())
}
