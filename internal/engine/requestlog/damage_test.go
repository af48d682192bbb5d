package requestlog

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// damagedFile is a file of the log that was damaged.
type damagedFile struct {
	requests []*Request
	ends     []int // where the frame of each ends
	at       int   // where the damage begins
	file     []byte
}

func anyDamage() *rapid.Generator[damagedFile] {
	return rapid.Custom(func(t *rapid.T) (d damagedFile) {
		p := testProcess()
		e := &encoder{}
		d.file = e.header(nil, &p, began, 1<<20)
		begin := len(d.file)
		policies := []*Policy{nil, policyOf("User-agent: *\n"), policyOf("User-agent: *\nDisallow: /a\n")}
		for i := range rapid.IntRange(1, 60).Draw(t, "requests") {
			switch rapid.IntRange(0, 19).Draw(t, "before") {
			case 0, 1, 2:
				d.file = e.sync(d.file, int64(len(d.file)), uint64(i))
			case 3:
				d.file = e.lost(d.file, 0)
			}
			u := must.Get(weburl.Parse(fmt.Sprintf("http://h%d.test/%d", rapid.IntRange(0, 5).Draw(t, "host"), i)))(t)
			end := began.Add(time.Duration(i) * time.Second)
			r := &Request{
				URL: u, LedgerOffset: uint64(i), Sent: true, Status: 200,
				Policy: policies[rapid.IntRange(0, 2).Draw(t, "policy")],
				Start:  end.Add(-time.Millisecond), Decided: end.Add(-time.Millisecond), End: end,
			}
			d.requests, d.file = append(d.requests, r), e.request(d.file, r)
			d.ends = append(d.ends, len(d.file))
		}
		d.at = rapid.IntRange(begin, len(d.file)-1).Draw(t, "at")
		d.harm(t, d.at+rapid.IntRange(1, min(300, len(d.file)-d.at)).Draw(t, "length"))
		return d
	})
}

// harm changes bytes from d.at on.
func (d *damagedFile) harm(t *rapid.T, end int) {
	switch rapid.IntRange(0, 3).Draw(t, "damage") {
	case 0:
		clear(d.file[d.at:end])
	case 1:
		d.file[d.at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	case 2:
		copy(d.file[d.at:end], rapid.SliceOfN(rapid.Byte(), end-d.at, end-d.at).Draw(t, "bytes"))
	case 3: // a part is missing: the offsets behind it have changed
		d.file = append(d.file[:d.at:d.at], d.file[end:]...)
	}
}

// TestAnyDamage: whatever happens to a file, the requests that are read are right, all requests
// before the damage are read, and missing ones are reported.
func TestAnyDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDamage().Draw(t, "file")
		got, s := readBytes(t, d.file)
		missing, known := 0, true
		for _, x := range s.Damaged {
			missing += int(max(x.Requests, 0))
			known = known && x.Requests >= 0
			must.True(t, x.Bytes > 0 && x.Offset+x.Bytes <= int64(len(d.file)) && s.Unfinished <= 0,
				"%+v of a file of %d bytes", s, len(d.file))
		}
		cut := len(s.Damaged) == 0 // nothing, or the whole end of the file, which leaves no trace
		lost := len(d.requests) - len(got)
		must.True(t, (!known || cut || lost == missing) && (!cut || lost <= 0 || len(d.file) < d.ends[len(d.ends)-1]),
			"%d of %d requests, %+v", len(got), len(d.requests), s)
		for i, r := range got {
			want := d.requests[r.LedgerOffset]
			must.True(t, r.URL == want.URL && r.End.Equal(want.End) && r.Start.Equal(want.Start) &&
				(r.Policy == nil) == (want.Policy == nil) &&
				(r.Policy == nil || r.Policy.Version == want.Policy.Version), "read %+v\nwritten %+v", r, want)
			must.True(t, d.ends[i] > d.at || r.LedgerOffset == uint64(i),
				"request %d, before the damage, is missing: %+v", i, s)
		}
	})
}

// TestGoesOn: behind damage the log can be read again, within a file of its usual size, also in the
// newest one. Missing requests are counted.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, DefaultOptions(), testProcess())
	p := policyOf("User-agent: *\n")
	const n = 10_000
	for i := range n {
		mustAppend(t, l, request(t, i, fmt.Sprintf("http://h%d.test/a/path/%d", i%7, i), time.Duration(i)*time.Second,
			p))
	}
	whole := must.Get(os.ReadFile(path(dir, 1)))(t)
	for name, harm := range map[string]func(b []byte) []byte{
		"a bit":          func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"a page of zero": func(b []byte) []byte { clear(b[len(b)/2:][:4096]); return b },
		"a long frame":   func(b []byte) []byte { copy(b[len(b)/2:], "\xff\xff\x0f"); return b },
		"two places":     func(b []byte) []byte { clear(b[len(b)/3:][:10]); clear(b[len(b)*2/3:][:10]); return b },
		"near the end":   func(b []byte) []byte { clear(b[len(b)-10_000:][:10]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			must.Do(t, os.WriteFile(path(dir, 1), harm(bytes.Clone(whole)), 0o644))
			got, s := readAll(t, dir, Query{})
			missing := int64(0)
			for _, d := range s.Damaged {
				assert.True(t, (d.Requests > 0 || name == "near the end") && d.Bytes <= syncEvery+4096 &&
					d.File == path(dir, 1), "%+v", d)
				missing += d.Requests
			}
			lost := n - len(got)
			assert.True(t, lost != 0 && lost <= 2*2000 && len(s.Damaged) != 0 &&
				(name == "near the end" || int64(lost) == missing), "%d of %d requests, %+v", len(got), n, s)
			for _, r := range got {
				i := int(r.LedgerOffset-1000) / 50
				same(t, r, request(t, i, fmt.Sprintf("http://h%d.test/a/path/%d", i%7, i),
					time.Duration(i)*time.Second, p))
			}
		})
	}
}
