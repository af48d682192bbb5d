package warcfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// erasable writes pages of several hosts, in all formats, some of them equal. All files are complete,
// but for one of each format that was set aside with a torn end.
func erasable(t testing.TB, o archive.Options) {
	t.Helper()
	w := must.Get(archive.OpenOn(o, nil, unsyncedDisk{}))(t)
	e := newEncoder(t, o)
	for n := range 60 {
		host := []string{"a.test", "b.test", "www.b.test", "bb.test"}[n%7%4]
		url := fmt.Sprintf("http://%s/%d", host, n)
		v := &archive.Visit{
			Page:     &archive.Page{URL: url, Status: 200, FetchedAt: startOfTime, Via: "http://b.test/"},
			Exchange: exchangeOf(url, strings.Repeat(host, n), n),
			Links:    []archive.Link{{To: "http://b.test/", Text: "B"}, {To: "http://a.test/"}},
			Text:     &archive.Text{Title: "T", Text: "text of " + host},
		}
		if n > 40 { // the same content as before
			original := exchangeOf(fmt.Sprintf("http://%s/%d", host, n-28), strings.Repeat(host, n-28), n-28)
			v.Exchange.Response = original.Response
			v.Exchange.Original = &archive.Original{URL: original.URL, At: original.At,
				Payload: digest.Of([]byte(strings.Repeat(host, n-28)))}
		}
		mustWrite(t, w, mustEncode(t, e, v))
	}
	must.Get(w.Finish())(t)
	must.Do(t, w.Committed())
	w.Close()
	for _, file := range filesOf(t, o.Dir) {
		if strings.Contains(file, "-000001") && !strings.HasSuffix(file, indexExtension) {
			content := readFile(t, filepath.Join(o.Dir, file))
			writeFile(t, filepath.Join(o.Dir, file+archive.SuffixUnmarked), content[:len(content)-3])
		}
	}
}

func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	names := must.Get(archive.OSDisk{}.List(dir))(t)
	slices.Sort(names)
	return names
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

func writeFile(t testing.TB, path string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path, content, 0o640))
}

// pieces returns all records, as they are stored, and all lines of a directory in their order, by
// file, without those of a set of hosts. Torn ends are left out if names are given.
func pieces(t testing.TB, dir string, without weburl.Names) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for _, file := range filesOf(t, dir) {
		f, name, ok := NewEraser("", known(), weburl.Names{}).formatOf(file)
		if !ok {
			continue
		}
		content := readFile(t, filepath.Join(dir, file))
		all[file] = []string{}
		if f != Name {
			text, _ := io.ReadAll(mustUnpack(t, content, name)) // the end may be torn
			for line := range strings.Lines(string(text)) {
				_, from, isLink := strings.Cut(line, `"from":"`)
				if !isLink {
					_, from, _ = strings.Cut(line, `"url":"`)
				}
				from, _, _ = strings.Cut(from, `"`)
				if strings.HasSuffix(line, "\n") && !without.HasURL(from) {
					all[file] = append(all[file], line)
				}
			}
			continue
		}
		for r := warc.NewReader(bytes.NewReader(content)); ; {
			rec, err := r.Next()
			if err == nil {
				err = r.Skip()
			}
			if err != nil {
				break
			}
			if !without.HasURL(rec.Header.Get(warc.FieldTargetURI)) {
				all[file] = append(all[file], string(content[rec.Offset:r.Offset()]))
			}
		}
	}
	return all
}

func mustUnpack(t testing.TB, content []byte, name string) io.Reader {
	t.Helper()
	r, _, err := archive.Unpack(bytes.NewReader(content), name)
	must.Do(t, err)
	return r
}

// eraseAll erases from all files of a directory, and returns what went from each.
func eraseAll(e *Eraser) (map[string]archive.ErasedFile, error) {
	gone := make(map[string]archive.ErasedFile)
	if err := e.Recover(); err != nil {
		return gone, err
	}
	files, err := e.Files()
	if err != nil {
		return gone, err
	}
	for _, file := range files {
		counted, err := e.Count(context.Background(), file)
		if err == nil {
			err = e.Erase(context.Background(), file, func(n archive.ErasedFile) error {
				gone[file] = n
				return nil
			})
		}
		if err != nil {
			return gone, err
		}
		if !maps.Equal(counted.Records, gone[file].Records) {
			return gone, fmt.Errorf("%s: %v were counted, %v erased", file, counted, gone[file])
		}
	}
	return gone, nil
}

// TestErase: what stays in the files are the records of other hosts, byte for byte, and the files are
// valid. No record is of the host, in whatever form its name is written.
func TestErase(t *testing.T) { eachCompression(t, testErase) }

func testErase(t *testing.T, records archive.Compression) {
	for i, compression := range []string{archive.CompressNone, archive.CompressGzip, archive.CompressZstd} {
		names := weburl.Names{Name: "b.test", Below: i > 0}
		o := allOptions(t)
		o.Records, o.Compress, o.MaxFileBytes = records, compression, 12_000
		erasable(t, o)
		want := pieces(t, o.Dir, names)
		captured := verify(t, o.Dir)
		gone := must.Get(eraseAll(NewEraser(o.Dir, known(), names)))(t)
		got := pieces(t, o.Dir, weburl.Names{})
		must.True(t, maps.EqualFunc(got, want, slices.Equal), "%s: what stays differs", compression)
		if after := verify(t, o.Dir); after.Captures >= captured.Captures || after.Captures == 0 {
			t.Errorf("%d captures of %d", after.Captures, captured.Captures)
		}
		left := captures(t, o.Dir)
		assert.True(t, !slices.ContainsFunc(left, names.HasURL) &&
			slices.ContainsFunc(left, weburl.Names{Name: "bb.test"}.HasURL), "captures are left of %q", left)
		for _, file := range filesOf(t, o.Dir) {
			if names.Below && strings.HasSuffix(file, indexExtension) && strings.Contains(string(readFile(t,
				filepath.Join(o.Dir, file))), "test,b)") {
				t.Errorf("index %s still has the host", file)
			}
		}
		assert.True(t, len(gone) != 0, "nothing is counted")
		again, err := eraseAll(NewEraser(o.Dir, known(), names))
		assert.True(t, err == nil && len(again) == 0, "erased again: %v, %v", again, err)
	}
}

// killed is a disk whose process dies at an operation: the panic leaves no time to tidy up.
type killed struct {
	archive.OSDisk
	left *int
}

var errKilled = errors.New("killed")

func (k killed) step() {
	if *k.left--; *k.left == 0 {
		panic(errKilled)
	}
}

func (k killed) Create(path string) (archive.File, error) {
	k.step()
	f, err := k.OSDisk.Create(path)
	return unsynced{f}, err
}
func (k killed) Rename(from, to string) error {
	k.step()
	err := k.OSDisk.Rename(from, to)
	k.step()
	return err
}
func (k killed) Remove(path string) error {
	k.step()
	err := k.OSDisk.Remove(path)
	k.step()
	return err
}
func (k killed) SyncDir(string) error { k.step(); return nil }

// TestEraseKilled kills an erasure before and after each change of the directory. Then each file is
// the old or the new one; and the next erasure, which may be killed too, ends it.
func TestEraseKilled(t *testing.T) {
	o := allOptions(t)
	o.MaxFileBytes, o.Formats, o.Compress = 1<<20, []string{archive.FormatJSONL, Name}, archive.CompressNone
	erasable(t, o)
	names := weburl.Names{Name: "b.test", Below: true}
	before, want := pieces(t, o.Dir, weburl.Names{}), pieces(t, o.Dir, names)
	original := make(map[string][]byte)
	for _, file := range filesOf(t, o.Dir) {
		original[file] = readFile(t, filepath.Join(o.Dir, file))
	}
	for step := 1; ; step++ {
		dir := t.TempDir()
		for file, content := range original {
			writeFile(t, filepath.Join(dir, file), content)
		}
		ended := eraseUntil(t, dir, names, step)
		for file, got := range pieces(t, dir, weburl.Names{}) {
			must.True(t, slices.Equal(got, want[file]) || slices.Equal(got, before[file]),
				"step %d: %s is neither the old nor the new one", step, file)
		}
		openAll(t, dir)
		eraseUntil(t, dir, names, step/2+1)
		must.Do(t, NewEraser(dir, known(), names).Recover())
		verify(t, dir) // also if nobody erases the rest
		must.Get(eraseAll(NewEraser(dir, known(), names)))(t)
		got := pieces(t, dir, weburl.Names{})
		must.True(t, maps.EqualFunc(got, want, slices.Equal), "step %d: what stays differs", step)
		verify(t, dir)
		if files := filesOf(t, dir); len(files) != len(original) {
			t.Fatalf("step %d: %d files of %d: %q", step, len(files), len(original), files)
		}
		if ended {
			return
		}
	}
}

// openAll opens every capture that the indexes name: no index is that of another file.
func openAll(t testing.TB, dir string) {
	t.Helper()
	c := must.Get(OpenCollection(dir, known()))(t)
	if err := c.Captures(context.Background(), "", func(e *warc.Entry) error {
		if e.Mime == warc.MimeRevisit { // its original may be in a file that has no index at the moment
			return nil
		}
		s, err := c.Open(context.Background(), *e)
		if err != nil {
			return err
		}
		return s.Close()
	}); err != nil {
		t.Fatal(err)
	}
}

// eraseUntil erases until a number of steps; true: it has ended before.
func eraseUntil(t *testing.T, dir string, names weburl.Names, steps int) (ended bool) {
	defer func() {
		if cause := recover(); cause != nil && cause != errKilled {
			panic(cause)
		}
	}()
	e := NewEraser(dir, known(), names)
	e.disk = killed{left: &steps}
	must.Get(eraseAll(e))(t)
	return true
}

// TestEraseUnreadable: a file that is damaged stays as it is.
func TestEraseUnreadable(t *testing.T) {
	o := allOptions(t)
	o.MaxFileBytes = 1 << 20
	erasable(t, o)
	for _, file := range filesOf(t, o.Dir) {
		path := filepath.Join(o.Dir, file)
		_, name, ok := NewEraser("", known(), weburl.Names{}).formatOf(file)
		if !ok || name != file {
			continue
		}
		content := readFile(t, path)
		content[len(content)/2] ^= 0x10
		writeFile(t, path, content)
		err := NewEraser(o.Dir, known(), weburl.Names{Name: "b.test"}).Erase(context.Background(), file,
			func(archive.ErasedFile) error { return nil })
		assert.True(t, errors.Is(err, archive.ErrUnreadable) && bytes.Equal(readFile(t, path), content), "%s: %v",
			file, err)
	}
	index := "old-20261120121415-000001-host" + indexExtension // its file was moved away
	lines := []string{"test,a)/ 20261120121415 {\"url\":\"http://a.test/?b.test\",\"offset\":\"0\",\"length\":\"1\"}\n",
		"test,b)/ 20261120121415 {\"url\":\"http://b.test/\",\"offset\":\"0\",\"length\":\"1\"}\n"}
	writeFile(t, filepath.Join(o.Dir, index), []byte(strings.Join(lines, "")))
	if files, err := NewEraser(o.Dir, known(), weburl.Names{Name: "b.test"}).Files(); err != nil ||
		!slices.Contains(files, index) {
		t.Errorf("%q: %v", files, err)
	}
	err := NewEraser(o.Dir, known(), weburl.Names{Name: "b.test"}).Erase(context.Background(), index,
		func(archive.ErasedFile) error { return nil })
	got := readFile(t, filepath.Join(o.Dir, index))
	assert.True(t, err == nil && string(got) == lines[0], "%s: %v", got, err)
	open := filepath.Join(o.Dir, "pages-000009.jsonl"+archive.SuffixOpen)
	writeFile(t, open, nil)
	if err := NewEraser(o.Dir, known(), weburl.Names{Name: "b.test"}).Erase(context.Background(), filepath.Base(open),
		nil); err == nil {
		t.Error("a file that is being written is changed")
	}
}

// TestEraseReferring: a revisit record of another host without its original is of no use, and names
// it. It goes with its request and its metadata.
func TestEraseReferring(t *testing.T) {
	o := allOptions(t)
	o.Formats, o.MaxFileBytes = []string{Name}, 1<<20
	w := must.Get(archive.OpenOn(o, nil, unsyncedDisk{}))(t)
	e := newEncoder(t, o)
	original, again, other := exchangeOf("http://b.test/1", "body", 1), exchangeOf("http://a.test/copy", "body", 2),
		exchangeOf("http://a.test/", "other", 3)
	again.Original = &archive.Original{URL: original.URL, At: original.At, Payload: digest.Of([]byte("body"))}
	for _, x := range []*archive.Exchange{original, again, other} {
		mustWrite(t, w, mustEncode(t, e, &archive.Visit{Exchange: x}))
	}
	must.Get(w.Finish())(t)
	must.Do(t, w.Committed())
	w.Close()
	gone, err := eraseAll(NewEraser(o.Dir, known(), weburl.Names{Name: "b.test"}))
	must.True(t, err == nil && len(gone) == 1, "%v %v", gone, err)
	for _, file := range gone {
		if want := map[string]int{"response": 1, "revisit": 1, "request": 2,
			"metadata": 2}; !maps.Equal(file.Records, want) {
			t.Errorf("%v went, want %v", file.Records, want)
		}
	}
	v := verify(t, o.Dir)
	assert.True(t, v.Captures == 1 && v.Records == 4, "what is left is %+v", v)
}
