package requestlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/robots"
)

// TestTorn: all whole records of a file that ends early are read, and the rest is reported. In the
// last file the rest may be about to be written.
func TestTorn(t *testing.T) {
	whole := t.TempDir()
	want := every(t)
	mustAppend(t, mustOpen(t, whole, DefaultOptions(), testProcess()), want...)
	text := must.Get(os.ReadFile(path(whole, 1)))(t)
	dir := t.TempDir()
	seen := 0
	for n := len(text); n >= 0; n-- {
		must.Do(t, os.WriteFile(path(dir, 1), text[:n], 0o644))
		got, s := readAll(t, dir, Query{})
		must.True(t, len(s.Damaged) == 0 && s.Bytes+s.Unfinished == int64(n), "cut at %d: %+v", n, s)
		if n == len(text) {
			seen = len(want)
		}
		must.True(t, len(got) <= seen, "cut at %d: %d requests, %d in a longer file", n, len(got), seen)
		seen = len(got)
		for i := range got {
			same(t, got[i], want[i])
		}
	}
	assert.Equal(t, seen, 0, "requests in an empty file")
	damaged := bytes.Clone(text)
	damaged[len(damaged)-20] ^= 1
	for serial, b := range [][]byte{damaged, text[:len(text)-3], text} {
		must.Do(t, os.WriteFile(path(dir, serial+1), b, 0o644))
	}
	got, s := readAll(t, dir, Query{})
	assert.True(t, len(got) == 3*len(want)-2 && len(s.Damaged) == 2 && s.Damaged[0].Bytes != 0 &&
		s.Damaged[1].Bytes != 0, "%d requests, %+v", len(got), s)
}

// TestReaderEnds: an error of the caller ends the reading.
func TestReaderEnds(t *testing.T) {
	dir := t.TempDir()
	mustAppend(t, mustOpen(t, dir, DefaultOptions(), testProcess()), every(t)...)
	enough, n := errors.New("enough"), 0
	_, err := Read(dir, Query{}, func(*Request) error { n++; return enough })
	assert.True(t, errors.Is(err, enough) && n == 1, "%d calls, %v", n, err)
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	l := mustOpen(f, dir, DefaultOptions(), testProcess())
	mustAppend(f, l, every(f)...)
	text := must.Get(os.ReadFile(path(dir, 1)))(f)
	f.Add(text)
	f.Add(text[:len(text)/2])
	frame := appendFrame(nil, []byte{frameLost, 3})
	f.Add(append(bytes.Clone(text), frame...))
	f.Fuzz(func(t *testing.T, b []byte) {
		must.Do(t, os.WriteFile(path(dir, 1), fixChecksums(b), 0o644))
		must.Get(Read(dir, Query{}, func(r *Request) error {
			must.True(t, !r.URL.IsZero() && r.Process != nil, "%+v", r)
			if p := r.Policy; p != nil {
				body, kept := p.Body()
				must.True(t, !kept || len(body) <= robots.MaxBody, "body of %d bytes", len(body))
			}
			_, _ = r.EndedAt().Sub(r.StartedAt())
			return nil
		}))(t)
	})
}

// fixChecksums corrects the checksums of the frames of a text, so that their content is read.
func fixChecksums(b []byte) []byte {
	var fixed []byte
	for {
		n, width := binary.Uvarint(b)
		if width <= 0 || n == 0 || n > maxPayload || uint64(len(b)-width) < n+checksumBytes {
			return append(fixed, b...)
		}
		fixed = appendFrame(fixed, b[width:][:n])
		b = b[width+int(n)+checksumBytes:]
	}
}

// TestClock: a step of the wall clock changes the wall clock times and not the time between two
// requests.
func TestClock(t *testing.T) {
	dir := t.TempDir()
	p := testProcess()
	p.Began = time.Now()
	l := mustOpen(t, dir, DefaultOptions(), p)
	first := request(t, 1, "http://a.test/a", 0, nil)
	first.End = time.Now()
	first.Start = first.End.Add(-time.Millisecond)
	mustAppend(t, l, first)
	stepped := p
	stepped.Uptime += time.Hour
	stepped.Began = p.Began.Add(-2 * time.Hour).Round(0)
	second := *first
	second.Start, second.End = stepped.Began.Add(time.Second), stepped.Began.Add(2*time.Second)
	mustAppend(t, mustOpen(t, dir, DefaultOptions(), stepped), &second)
	rebooted := stepped
	rebooted.Boot = "boot-b"
	mustAppend(t, mustOpen(t, dir, DefaultOptions(), rebooted), &second)
	got, _ := readAll(t, dir, Query{})
	gap, exact := got[1].StartedAt().Sub(got[0].EndedAt())
	if want := time.Hour + time.Second; !exact || (gap-want).Abs() > time.Second {
		t.Errorf("%v (exact: %t) by the clock of the system, want %v", gap, exact, want)
	}
	assert.AtMost(t, got[1].Start.Sub(got[0].End), 0, "the wall clock shows")
	if gap, exact := got[2].StartedAt().Sub(got[1].EndedAt()); exact || gap != -time.Second {
		t.Errorf("%v (exact: %t) over a start of the system, want -1s by the wall clock", gap, exact)
	}
}

// TestOpenRequests: a request from the start ledger of a killed process comes with the start of the
// next process as its latest end.
func TestOpenRequests(t *testing.T) {
	dir := t.TempDir()
	p := testProcess()
	p.Began = began.Add(time.Hour)
	v := robots.VersionOf([]byte("x"))
	policy := policyOf("User-agent: *\nDisallow: /x\n")
	want := &Request{URL: mustURL(t, "http://a.test/open"), Address: netip.MustParseAddr("192.0.2.7"), LedgerOffset: 7,
		Sent: true, Start: began.Add(3 * time.Second),
		Decided: began.Add(3 * time.Second), Delay: -time.Millisecond, Line: 12, Allowed: true,
		Policy: &Policy{Version: v}}
	known := *want
	known.Policy, known.LedgerOffset = policy, 8
	mustAppend(t, mustOpen(t, dir, DefaultOptions(), p), want, &known)
	got, _ := readAll(t, dir, Query{})
	must.True(t, len(got) == 2 && got[0].End.IsZero(), "%+v", got)
	assert.True(t, got[0].EndedAt().Wall.Equal(p.Began), "it ended by %v, want the start of the process, %v",
		got[0].EndedAt().Wall, p.Began)
	same(t, got[0], want)
	same(t, got[1], &known)
}
