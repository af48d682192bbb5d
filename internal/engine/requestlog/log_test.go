package requestlog

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestRotation: the files stay within their bounds, and the remaining files can be read without the
// deleted ones.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	o := Options{MaxSize: MinSize}
	l := mustOpen(t, dir, o, testProcess())
	policies := []*Policy{policyOf("User-agent: *\nDisallow: /a\n"), policyOf("User-agent: *\nDisallow: /b\n"), nil}
	const n = 25_000
	for i := range n {
		mustAppend(t, l, request(t, i, fmt.Sprintf("http://host%d.test/page/%d", i%50, i), time.Duration(i)*time.Second,
			policies[i%3]))
	}
	files := must.Get(list(dir))(t)
	var total int64
	for _, f := range files {
		total += f.size
	}
	assert.True(t, total <= o.MaxSize && total >= o.MaxSize*3/4, "%d files with %d bytes, want a little less than %d",
		len(files), total, o.MaxSize)
	got, s := readAll(t, dir, Query{})
	must.True(t, s.Requests >= n/4 && len(s.Damaged) == 0, "%+v", s)
	for i, r := range got {
		number := n - len(got) + i
		same(t, r, request(t, number, fmt.Sprintf("http://host%d.test/page/%d", number%50, number),
			time.Duration(number)*time.Second, policies[number%3]))
	}
	assert.AtMost(t, float64(s.Bytes)/float64(s.Requests), 100, "bytes a request")
	since, _ := readAll(t, dir, Query{Since: got[len(got)-10].End})
	if len(since) < 10 || len(since) >= len(got) || !reflect.DeepEqual(since[len(since)-1].URL, got[len(got)-1].URL) {
		t.Errorf("%d requests since the tenth from the end, of %d", len(since), len(got))
	}
	offset := got[len(got)-10].LedgerOffset
	behind, _ := readAll(t, dir, Query{LedgerOffset: offset})
	assert.True(t, len(behind) >= 10 && len(behind) < len(got) && behind[0].LedgerOffset <= offset,
		"%d requests from offset %d on, the first at %d", len(behind), offset, behind[0].LedgerOffset)
}

// TestKeep: files that are too old are deleted, by the next process and while it runs.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	o := Options{MaxSize: MinSize, Keep: 16 * time.Hour}
	p := testProcess()
	p.Began = time.Now()
	l := mustOpen(t, dir, o, p)
	r := request(t, 1, "http://a.test/", 0, nil)
	r.Start, r.End = time.Now(), time.Now()
	mustAppend(t, l, r)
	r.End = r.End.Add(2 * time.Hour) // beyond a sixteenth of Keep: another file
	mustAppend(t, l, r)
	if files, _ := list(dir); len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	old := time.Now().Add(-17 * time.Hour)
	must.Do(t, os.Chtimes(path(dir, 1), old, old))
	mustOpen(t, dir, o, p)
	files, err := list(dir)
	assert.True(t, err == nil && len(files) == 1 && files[0].serial == 2, "left are %+v, %v", files, err)
}

func TestNoLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "requests")
	mustAppend(t, mustOpen(t, dir, Options{}, testProcess()), every(t)...)
	assert.Fails(os.Stat(dir))(t, os.ErrNotExist, "something was written")
	got, s := readAll(t, dir, Query{})
	assert.True(t, len(got) == 0 && s.Files == 0, "%d requests, %+v", len(got), s)
}

func TestValidate(t *testing.T) {
	for _, o := range []Options{{MaxSize: 1}, {MaxSize: -1}, {MaxSize: MinSize, Keep: -1}} {
		assert.True(t, o.Validate() != nil, "%+v is accepted", o)
	}
	must.Do(t, DefaultOptions().Validate())
}

// TestDiskFails: a failed write stops nothing. Records that fit into memory are written later, and
// the others are counted.
func TestDiskFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "requests")
	block := func() {
		must.Do(t, os.WriteFile(dir, nil, 0o644))
	}
	unblock := func() {
		must.Do(t, os.Remove(dir))
	}
	l := mustOpen(t, dir, DefaultOptions(), testProcess())
	p := policyOf("User-agent: *\n")
	block()
	for i := range 100 {
		must.True(t, l.Append(request(t, i, "http://a.test/", time.Duration(i), p)) != nil,
			"a directory that is none takes a file")
	}
	unblock()
	mustAppend(t, l, request(t, 100, "http://a.test/", 100, p))
	if got, s := readAll(t, dir, Query{}); len(got) != 101 || s.Lost != 0 {
		t.Fatalf("%d requests, %+v", len(got), s)
	}
	must.Do(t, os.RemoveAll(dir))
	l = mustOpen(t, dir, DefaultOptions(), testProcess())
	block()
	const many = 20_000
	for i := range many {
		_ = l.Append(request(t, i, "http://a.test/a/path/that/is/not/short", time.Duration(i), p))
		must.True(t, len(l.pending) <= maxPending+1<<10, "%d bytes are held", len(l.pending))
	}
	unblock()
	mustAppend(t, l, request(t, many, "http://a.test/last", many, p))
	got, s := readAll(t, dir, Query{})
	assert.True(t, s.Lost != 0 && s.Lost+uint64(len(got)) == many+1, "%d requests, %d lost, want %d together", len(got),
		s.Lost, many+1)
	same(t, got[len(got)-1], request(t, many, "http://a.test/last", many, p))
}
