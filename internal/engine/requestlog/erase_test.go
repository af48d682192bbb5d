package requestlog

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// erasable returns a request of a log with few hosts, whose policies name each other.
func erasable(t *rapid.T, n int) *Request {
	hosts := []string{"a.test", "b.test", "www.b.test", "bb.test"}
	host := func(label string) string { return rapid.SampledFrom(hosts).Draw(t, label) }
	u, _ := weburl.Parse(fmt.Sprintf("http://%s/%d", host("host"), rapid.IntRange(0, 9).Draw(t, "path")))
	p := policyOf(fmt.Sprintf("User-agent: *\nDisallow: /%d\n# %s", rapid.IntRange(0, 2).Draw(t, "rule"), host("text")))
	p.Record.FinalURL = "http://" + host("final") + "/robots.txt"
	p.Record.Fetched = began.Add(time.Duration(n) * time.Second).Truncate(time.Millisecond)
	end := began.Add(time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "end")))
	r := &Request{
		URL: u, Address: netip.MustParseAddr("192.0.2.7"), LedgerOffset: uint64(1000 + 50*n), Sent: true, Status: 200,
		Start: end.Add(-time.Second), Decided: end.Add(-time.Second), End: end, Policy: p, Allowed: true,
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		o, _ := weburl.ParseOrigin("http://" + host("for"))
		r.Kind, r.Allowed, r.For = Robots, false, o
	case 1: // of a process that was killed
		*r = Request{URL: u, Address: r.Address, LedgerOffset: r.LedgerOffset, Sent: true, Start: end, Decided: end,
			Allowed: true, Policy: p}
	}
	return r
}

// TestErase erases hosts from logs of random requests, perhaps damaged ones, and compares what is read
// with what was read before.
func TestErase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := must.Get(os.MkdirTemp("", "requests"))(t)
		defer os.RemoveAll(dir)
		n := rapid.IntRange(0, 60).Draw(t, "requests")
		for serial := 1; serial <= 2; serial++ {
			var e encoder
			p := testProcess()
			b := e.header(nil, &p, began, 1<<20)
			synced := 0
			for i := range n {
				switch rapid.IntRange(0, 9).Draw(t, "frame") {
				case 0:
					b = e.lost(b, 3)
				case 1:
					synced = len(b)
					b = e.sync(b, int64(synced), uint64(i))
				}
				if r := erasable(t, i+serial*1000); r.End.IsZero() {
					b = e.open(b, r)
				} else {
					b = e.request(b, r)
				}
			}
			if len(b) > 200 && rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
				b[rapid.IntRange(100, len(b)-1).Draw(t, "at")] ^= 0x55
			}
			must.Do(t, os.WriteFile(path(dir, serial), b, 0o640))
		}
		names := weburl.Names{Name: "b.test", Below: rapid.Bool().Draw(t, "below")}
		before := describeLog(t, dir, &names)
		var counted, erased Erased
		collect := func(to *Erased) func(string, Erased) error {
			return func(_ string, n Erased) error {
				to.Requests, to.Mentions, to.Lost = to.Requests+n.Requests, to.Mentions+n.Mentions, to.Lost+n.Lost
				return nil
			}
		}
		must.Do(t, Erase(dir, names, true, collect(&counted)))
		err := Erase(dir, names, false, collect(&erased))
		must.True(t, err == nil && erased == counted, "%+v were erased, %+v counted: %v", erased, counted, err)
		after := describeLog(t, dir, nil)
		must.True(t, slices.Equal(after, before), "after the erasure:\n%s\nwant:\n%s", after, before)
		for _, text := range unpackedLog(t, dir) {
			must.True(t, !names.In(text), "%s is still named: %q", names.Name, text)
		}
		must.Do(t, Erase(dir, names, false, func(string, Erased) error { return os.ErrExist }),
			"a second erasure finds something")
	})
}

// describeLog reads a log, as it should be without names if they are given.
func describeLog(t *rapid.T, dir string, without *weburl.Names) (lines []string) {
	must.Get(Read(dir, Query{}, func(r *Request) error {
		c := *r
		var body []byte
		record := ""
		if c.Policy != nil {
			body, _ = c.Policy.Body()
			record = c.Policy.Record.FinalURL
		}
		if without != nil {
			if without.Has(c.URL.Host()) {
				return nil
			}
			if without.Has(c.For.Host) {
				c.For, c.Policy, body, record = weburl.Origin{}, nil, nil, ""
			}
			if without.In(body) {
				body = nil
			}
			if without.HasURL(record) {
				record = ""
			}
		}
		version := ""
		if c.Policy != nil {
			version = c.Policy.Version.String() + c.Policy.Record.Fetched.String()
		}
		lines = append(lines, fmt.Sprint(stored(Request{URL: c.URL, Kind: c.Kind, For: c.For, Status: c.Status,
			Address: c.Address, LedgerOffset: c.LedgerOffset, Line: c.Line, Allowed: c.Allowed}), string(body), record,
			version, c.starts.Wall.UnixNano(), c.starts.since, c.ends.Wall.UnixNano(), c.ends.since,
			c.Process.Began.UnixNano()))
		return nil
	}))(t)
	return lines
}

// unpackedLog returns the bytes of all files, and the bodies in them.
func unpackedLog(t *rapid.T, dir string) (texts [][]byte) {
	files := must.Get(list(dir))(t)
	for _, f := range files {
		b := must.Get(os.ReadFile(path(dir, f.serial)))(t)
		texts = append(texts, b)
		d := newFileDecoder(make(map[string]int))
		for r := newFrames("", bytes.NewReader(b)); ; {
			payload, err := r.next()
			if err != nil || !d.frame(payload) {
				break
			}
			for _, body := range d.bodies {
				if text, ok := unpack(body.packed, body.size); ok {
					texts = append(texts, text)
				}
			}
		}
	}
	return texts
}

// TestEraseKeepsOthers: a file that names no erased host is not written again, and the age of the
// others stays, because it decides when they are deleted.
func TestEraseKeepsOthers(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, DefaultOptions(), testProcess())
	mustAppend(t, l, request(t, 1, "http://a.test/", time.Second, policyOf("a")))
	must.Do(t, l.Close())
	old := began.Add(-time.Hour)
	before, err := os.ReadFile(path(dir, 1))
	must.Do(t, os.Chtimes(path(dir, 1), old, old))
	none := func(string, Erased) error { return os.ErrExist }
	must.Do(t, Erase(dir, weburl.Names{Name: "test.a"}, false, none))
	after, err2 := os.ReadFile(path(dir, 1))
	assert.True(t, err == nil && err2 == nil && bytes.Equal(before, after), "the file has changed")
	if err := os.WriteFile(path(dir, 1)+suffixErase, before, 0o640); err != nil { // an interrupted erasure
		t.Fatal(err)
	}
	must.Do(t, Erase(dir, weburl.Names{Name: "a.test"}, false, func(string, Erased) error { return nil }))
	info, err := os.Stat(path(dir, 1))
	assert.True(t, err == nil && info.ModTime().Equal(old), "written %v, was %v: %v", info.ModTime(), old, err)
	left, _ := os.ReadDir(dir)
	assert.True(t, len(left) == 1, "%d files", len(left))
	all, s := readAll(t, dir, Query{})
	assert.True(t, len(all) == 0 && len(s.Damaged) == 0, "%d requests, %+v", len(all), s)
	// A file without a header cannot be read at all.
	must.Do(t, os.WriteFile(path(dir, 2), []byte("http://a.test/"), 0o640))
	must.Do(t, Erase(dir, weburl.Names{Name: "a.test"}, false, func(string, Erased) error { return nil }))
	if files, err := list(dir); err != nil || len(files) != 1 {
		t.Errorf("%v: %v", files, err)
	}
	must.Do(t, Erase(dir+"/none", weburl.Names{Name: "a.test"}, false, none))
}
