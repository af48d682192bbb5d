package storage

import (
	"context"
	"os"
	"path/filepath"

	"github.com/amble-crawler/amble/storage/internal/boltfile"
	"github.com/amble-crawler/amble/storage/internal/rowfile"
)

// Finding is a defect that Check found.
type Finding struct{ Text string }

// checkWalk reports the pages that bbolt could not follow, and the rows without their checksums.
func checkWalk(w *boltfile.Walk, summed bool, report func(Finding)) (damaged bool, err error) {
	w.Leaves = boltfile.Everything
	w.Report = func(bucket, text string) {
		damaged = true
		report(Finding{pageText(bucket, text)})
	}
	w.Row = func(bucket string, k, v []byte) {
		if !summed || rowfile.HasNoSum([]byte(bucket), k) {
			return
		}
		if _, ok := rowfile.WithoutSum(rowfile.SumSeed([]byte(bucket)), k, v); !ok {
			damaged = true
			report(Finding{damagedRow([]byte(bucket), k).Error()})
		}
	}
	err = w.Run()
	return damaged, err
}

// CheckDamaged reports all damage of the database in a directory that Open refuses with ErrCorrupt, by
// reading its pages and not by following them.
func CheckDamaged(ctx context.Context, dir string, report func(Finding)) error {
	f, m, err := openPages(filepath.Join(dir, FileName))
	if err != nil {
		return err
	}
	defer f.Close()
	w := boltfile.Walk{Ctx: ctx, File: f, Meta: m}
	_, err = checkWalk(&w, hasSums(f, m), report)
	return err
}

// hasSums reports whether rows of a damaged file have checksums: one of them has, wherever it is.
func hasSums(f *os.File, m boltfile.Meta) (summed bool) {
	look := func(k, v []byte) {
		_, _, ok := bucketOf(k, v)
		summed = summed || ok
	}
	w := boltfile.Walk{
		Ctx: context.Background(), File: f, Meta: m, Leaves: boltfile.Everything, Report: func(string, string) {},
		Row: func(_ string, k, v []byte) { look(k, v) },
	}
	_ = w.Run() // the context does not end
	for id := uint64(2); id < m.Pages && !summed; id++ {
		w.EachRow(id, look)
	}
	return summed
}

// bucketOf returns the bucket of a row, by its checksum, and its value.
func bucketOf(k, v []byte) (name, value []byte, ok bool) {
	for _, name := range buckets() {
		if value, ok := rowfile.WithoutSum(rowfile.SumSeed(name), k, v); ok {
			return name, value, true
		}
	}
	return nil, nil, false
}
