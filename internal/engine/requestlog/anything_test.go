package requestlog

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// anyDuration draws a duration, often an extreme one.
func anyDuration() *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, -1, time.Second, maxDuration - 1, maxDuration, maxDuration + 1,
			math.MaxInt64, math.MinInt64}),
		rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }),
	)
}

// anyTime draws an instant, often near the start of the process, sometimes one that no clock shows.
func anyTime() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		switch rapid.IntRange(0, 5).Draw(t, "era") {
		case 0:
			return time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)
		case 1:
			return time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		}
		return began.Add(time.Duration(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "after")))
	})
}

func anyURL() *rapid.Generator[weburl.URL] {
	return rapid.Custom(func(t *rapid.T) weburl.URL {
		host := rapid.SampledFrom([]string{"a.test", "b.test:8443", "[2001:db8::1]",
			strings.Repeat("a23456789.", 25) + "test"}).Draw(t, "host")
		text := rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme") + "://" + host + "/"
		if n := weburl.MaxLength - len(text); rapid.Bool().Draw(t, "longest") {
			text += strings.Repeat("x", n)
		} else {
			text += rapid.StringMatching(`[a-z]{0,9}(\?[a-z=&%]{0,9})?`).Draw(t, "path")
		}
		u, err := weburl.Parse(text)
		if err != nil {
			t.Skip(err)
		}
		return u
	})
}

func anyPolicy() *rapid.Generator[*Policy] {
	return rapid.Custom(func(t *rapid.T) *Policy {
		if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
			return nil
		}
		p := policyOf(strings.Repeat("# text\n", rapid.SampledFrom([]int{0, 1, 2, 2000}).Draw(t, "lines")))
		p.Record.Class = robots.Class(rapid.IntRange(0, int(robots.ClassUnreachable)).Draw(t, "class"))
		p.Record.Status = rapid.SampledFrom([]int{0, 200, 999}).Draw(t, "status")
		p.Record.Expires = anyTime().Draw(t, "expires").Truncate(time.Millisecond)
		return p
	})
}

func anyRequest() *rapid.Generator[*Request] {
	return rapid.Custom(func(t *rapid.T) *Request {
		octet := func(name string) byte { return rapid.Byte().Draw(t, name) }
		address := []netip.Addr{{}, netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("::ffff:192.0.2.7"),
			netip.MustParseAddr("fe80::1%eth0")}
		r := &Request{
			Kind: Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind")), Method: Method(octet("method")),
			URL:     anyURL().Draw(t, "url"),
			Address: rapid.SampledFrom(address).Draw(t, "address"), LedgerOffset: rapid.Uint64().Draw(t, "place"),
			Again: rapid.Bool().Draw(t, "again"),
			Start: anyTime().Draw(t, "start"), Decided: anyTime().Draw(t, "decided"),
			Sent:    rapid.Bool().Draw(t, "sent"),
			Status:  rapid.OneOf(rapid.IntRange(-1, 1200), rapid.Int()).Draw(t, "status"),
			Failure: fetch.Kind(octet("failure")),
			Bytes:   rapid.Uint64().Draw(t, "bytes"), RetryAfter: anyDuration().Draw(t, "retry after"),
			Delay:       anyDuration().Draw(t, "delay"),
			DelayReason: politeness.Reason(octet("delay reason")), Reason: politeness.Reason(octet("reason")),
			Policy: anyPolicy().Draw(t, "policy"), Allowed: rapid.Bool().Draw(t, "allowed"),
			Line: rapid.Int().Draw(t, "line"), Fetcher: rapid.SampledFrom([]string{"", "farm-1"}).Draw(t, "fetcher"),
			Lease: rapid.SampledFrom([]string{"", "ID"}).Draw(t, "lease"),
		}
		if rapid.Bool().Draw(t, "for another") {
			r.For = anyURL().Draw(t, "for").Origin()
		}
		if rapid.IntRange(0, 3).Draw(t, "open") > 0 {
			r.End = anyTime().Draw(t, "end")
		}
		return r
	})
}

// stored returns a request as the log keeps it, without its times.
func stored(r Request) string {
	var body []byte
	version := robots.Version{}
	if p := r.Policy; p != nil {
		version = p.Version
		if p.Packed == nil {
			body = p.Record.Body
		} else if b, kept := p.Body(); kept {
			body = b
		}
	}
	if r.End.IsZero() {
		r = Request{Kind: r.Kind, URL: r.URL, Address: r.Address, LedgerOffset: r.LedgerOffset, Again: r.Again,
			Delay:   r.Delay,
			Allowed: r.Allowed, Line: r.Line, Fetcher: r.Fetcher, Lease: r.Lease, Sent: true, Status: -1}
		r.Delay = clamp(r.Delay, -maxDuration, maxDuration)
	}
	if r.Status > 0 {
		r.Failure = 0
	}
	return fmt.Sprint(r.Kind, r.Method, r.URL, r.For, r.Address.WithZone(""), r.LedgerOffset, r.Again, r.Sent,
		clamp(r.Status, 0, maxStatus), r.Failure, r.Bytes,
		clamp(r.RetryAfter, 0, maxDuration), clamp(r.Delay, min(r.Delay, 0), maxDuration), byte(r.DelayReason),
		byte(r.Reason), r.Allowed,
		clamp(r.Line, 0, maxNumber), r.Fetcher, r.Lease, version, len(body))
}

// TestAnything: a request with any values in its fields is written so that it, and the frames
// behind it, can be read.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := testProcess()
		p.Began = anyTime().Draw(t, "began")
		p.Uptime = anyDuration().Draw(t, "uptime")
		p.Agent = strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 20_000}).Draw(t, "agent"))
		p.Tokens = rapid.SliceOfN(rapid.StringN(0, 5, 5), 0, 200).Draw(t, "tokens")
		var file []byte
		e := &encoder{}
		file = e.header(file, &p, anyTime().Draw(t, "now"), 1<<20)
		requests := rapid.SliceOfN(anyRequest(), 1, 10).Draw(t, "requests")
		for i, r := range requests {
			if rapid.Bool().Draw(t, "sync") {
				file = e.sync(file, int64(len(file)), uint64(i))
			}
			if r.End.IsZero() {
				file = e.open(file, r)
			} else {
				file = e.request(file, r)
			}
		}
		got, s := readBytes(t, file)
		must.True(t, len(got) == len(requests) && len(s.Damaged) == 0 && s.Unfinished == 0 && int(s.Bytes) == len(file),
			"%d of %d requests, %+v", len(got), len(requests), s)
		for i, r := range requests {
			want := *r
			if !r.End.IsZero() { // else negative: no robots.txt had been read
				want.Delay = max(r.Delay, 0)
			}
			must.True(t, stored(*got[i]) == stored(want), "read    %s\nwritten %s", stored(*got[i]), stored(want))
			if d := r.End.Sub(p.Began).Abs(); !r.End.IsZero() && d < maxDuration && p.Began.Year() > 2000 &&
				p.Began.Year() < 2100 {
				diff := got[i].End.Sub(r.End).Abs()
				must.True(t, diff <= time.Microsecond, "the end is %v away", diff)
			}
		}
	})
}

// readBytes reads a file of the log that is in memory, as if another followed it.
func readBytes(t *rapid.T, file []byte) (got []*Request, s Summary) {
	t.Helper()
	must.Do(t, s.read(newFrames("file", bytes.NewReader(file)), false, make(map[string]int), func(r *Request) error {
		c := *r
		got = append(got, &c)
		return nil
	}))
	return got, s
}

// TestLongestBody: a robots.txt of the greatest readable length fits into a frame, even if it
// cannot be compressed.
func TestLongestBody(t *testing.T) {
	dir := t.TempDir()
	noise := make([]byte, robots.MaxBody)
	for seed, i := uint64(1), 0; i < len(noise); i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
		noise[i] = byte(seed >> 56)
	}
	mustAppend(t, mustOpen(t, dir, DefaultOptions(), testProcess()),
		request(t, 0, "http://a.test/", time.Second, policyOf(string(noise))))
	got, s := readAll(t, dir, Query{})
	assert.True(t, len(got) == 1 && len(s.Damaged) == 0 && bytes.Equal(got[0].Policy.Record.Body, noise),
		"%d requests, %+v", len(got), s)
}
