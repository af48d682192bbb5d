package storage

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// BENCH_STORE names a directory in which the benchmarks keep their filled stores and find them again, because filling one of
// 50 million URLs takes longer than what is measured on it. Without it each benchmark fills its own, in a temporary directory.
func benchKept() string { return os.Getenv("BENCH_STORE") }

// madeStore fills a store and returns its directory. One that is kept gets its name when it is complete, in the place of an
// earlier one: what an interrupted benchmark leaves has another name.
func madeStore(b *testing.B, name string, fill func(dir string)) string {
	if benchKept() == "" {
		dir := b.TempDir()
		fill(dir)
		return dir
	}
	dir := filepath.Join(benchKept(), name)
	part := dir + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755)); err != nil {
		b.Fatal(err)
	}
	fill(part)
	if err := errors.Join(os.RemoveAll(dir), os.Rename(part, dir)); err != nil {
		b.Fatal(err)
	}
	return dir
}

// keptStore returns the directory of a store that is kept, or fills one.
func keptStore(b *testing.B, name string, fill func(dir string)) string {
	if benchKept() != "" {
		dir := filepath.Join(benchKept(), name)
		if _, err := os.Stat(dir); err == nil {
			b.Logf("uses %s", dir)
			return dir
		}
	}
	return madeStore(b, name, fill)
}

// changeable returns the directory of a store that the benchmark may change: a copy of one that is kept.
func changeable(b *testing.B, dir, file string) string {
	if benchKept() == "" {
		return dir
	}
	own := b.TempDir()
	if err := copyFile(filepath.Join(own, file), filepath.Join(dir, file)); err != nil {
		b.Fatal(err)
	}
	return own
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close(), in.Close())
}
