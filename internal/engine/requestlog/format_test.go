package requestlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// every returns one request of each kind.
func every(t testing.TB) []*Request {
	p, q := policyOf("User-agent: *\nCrawl-delay: 1\nAllow: /\n"), policyOf(strings.Repeat("# long\n", 4000))
	robotsFile := request(t, 0, "http://a.test/robots.txt", time.Second, p)
	robotsFile.Kind, robotsFile.Allowed, robotsFile.Line = Robots, false, 0
	foreign := request(t, 3, "https://b.test:8443/elsewhere/robots.txt", 5*time.Second, nil)
	foreign.Kind, foreign.For, foreign.Status, foreign.Allowed, foreign.Line = Robots,
		weburl.Origin{Scheme: "http", Host: "a.test", Port: 80}, 301, false, 0
	failed := request(t, 4, "http://[2001:db8::1]/x?y=ü", 6*time.Second, q)
	failed.Status, failed.Failure, failed.Sent, failed.Bytes, failed.Again = 0, fetch.KindRefused, false, 0, true
	failed.Address = netip.MustParseAddr("2001:db8::1")
	busy := request(t, 1, "http://a.test/b", 4*time.Second, p)
	busy.Status, busy.RetryAfter = 429, 90*time.Second
	return []*Request{robotsFile, request(t, 2, "http://a.test/a?b=c", 3*time.Second, p), busy, foreign, failed}
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "requests")
	want := every(t)
	mustAppend(t, mustOpen(t, dir, DefaultOptions(), testProcess()), want...)
	got, s := readAll(t, dir, Query{})
	must.True(t, len(got) == len(want) && s.Requests == uint64(len(want)) && s.Files == 1 && s.Lost == 0 &&
		len(s.Damaged) == 0, "%d requests, %+v", len(got), s)
	for i := range want {
		same(t, got[i], want[i])
		p := got[i].Process
		assert.True(t, p.Boot == "boot-a" && p.Agent == testProcess().Agent &&
			reflect.DeepEqual(p.Tokens, []string{"amble"}) && p.Obey && p.Began.Equal(began), "process is %+v", p)
	}
	assert.Equal(t, got[1].Policy.Version.String(), want[1].Policy.Version.String(), "version", got[1].Policy.Version)
}

// TestPackedBefore: the log is the same whether the body of a policy came packed or not.
func TestPackedBefore(t *testing.T) {
	written := func(packed bool) []byte {
		dir := t.TempDir()
		for _, body := range []string{"", "#", strings.Repeat("Disallow: /private/\n", 200)} {
			p := policyOf(body)
			if packed {
				p.Packed = robots.Pack(p.Record.Body)
			}
			mustAppend(t, mustOpen(t, dir, DefaultOptions(), testProcess()),
				request(t, 1, "http://a.test/", time.Second, p))
		}
		files, err := list(dir)
		must.True(t, err == nil && len(files) == 3, "%d files (%v)", len(files), err)
		var all []byte
		for _, f := range files {
			b := must.Get(os.ReadFile(path(dir, f.serial)))(t)
			all = append(all, b...)
		}
		return all
	}
	assert.True(t, bytes.Equal(written(true), written(false)), "other bytes")
}

// TestBodiesWithoutRoom: a hostile number of long files does not displace the requests, and missing
// bodies are known to be missing.
func TestBodiesWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	o := Options{MaxSize: MinSize}
	l := mustOpen(t, dir, o, testProcess())
	noise := make([]byte, 20_000)
	seed := uint64(1)
	var want []*Request
	for i := range 6 {
		for j := range noise {
			seed = seed*6364136223846793005 + 1442695040888963407
			noise[j] = byte(seed >> 56)
		}
		want = append(want, request(t, i, "http://a.test/", time.Duration(i)*time.Second, policyOf(string(noise))))
	}
	mustAppend(t, l, want...)
	kept := 0
	_, err := Read(dir, Query{}, func(r *Request) error {
		body, ok := r.Policy.Body()
		if ok {
			kept++
		}
		if ok != (body != nil) || ok && robots.VersionOf(body) != r.Policy.Version || r.Policy.Version.IsZero() {
			t.Errorf("body of %d bytes, kept: %t, version %s", len(body), ok, r.Policy.Version)
		}
		return nil
	})
	assert.True(t, err == nil && kept == 1, "%d bodies were kept, %v; want one in half of a file of 64 KiB", kept, err)
}

// TestEmptyBody: a robots.txt without content is a file all the same.
func TestEmptyBody(t *testing.T) {
	dir := t.TempDir()
	mustAppend(t, mustOpen(t, dir, DefaultOptions(), testProcess()), request(t, 1, "http://a.test/", time.Second,
		policyOf("")))
	n := 0
	_, err := Read(dir, Query{}, func(r *Request) error {
		n++
		if body, kept := r.Policy.Body(); !kept || len(body) != 0 || r.Policy.Version.IsZero() {
			t.Errorf("%q, kept: %t, version %s", body, kept, r.Policy.Version)
		}
		return nil
	})
	assert.True(t, err == nil && n == 1, "%d requests, %v", n, err)
}

// TestManyContexts: more hosts than the encoder remembers are not mixed up.
func TestManyContexts(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, DefaultOptions(), testProcess())
	p := policyOf("User-agent: *\n")
	const n = maxContexts + 100
	for i := range n {
		mustAppend(t, l, request(t, i, fmt.Sprintf("http://h%d.test/", i), time.Duration(i), p))
	}
	mustAppend(t, l, request(t, n, "http://h0.test/", n, p))
	got, s := readAll(t, dir, Query{})
	must.True(t, len(got) == n+1 && s.Lost == 0, "%d requests, %+v", len(got), s)
	for i, r := range got {
		same(t, r, request(t, i, fmt.Sprintf("http://h%d.test/", i%n), time.Duration(i), p))
	}
}

// goldenRequests returns the requests of the golden files.
func goldenRequests(t *testing.T) []*Request {
	open := request(t, 5, "http://a.test/open", 7*time.Second, policyOf("User-agent: *\n"))
	open.End = time.Time{}
	return append(every(t), open)
}

// checkGolden compares the first file of a log with a golden one.
func checkGolden(t *testing.T, dir, name string) {
	t.Helper()
	text := must.Get(os.ReadFile(path(dir, 1)))(t)
	golden := filepath.Join("testdata", name)
	if os.Getenv("AMBLE_GOLDEN") != "" {
		must.Do(t, os.WriteFile(golden, text, 0o644))
	}
	want := must.Get(os.ReadFile(golden))(t)
	assert.True(t, bytes.Equal(text, want), "the format has changed: it needs a new version. Got\n%q\nwant\n%q", text,
		want)
}

// TestGolden keeps the format stable: files on disk must stay readable.
func TestGolden(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, DefaultOptions(), testProcess())
	mustAppend(t, l, goldenRequests(t)...)
	l.synced = -syncEvery
	mustAppend(t, l, request(t, 6, "http://a.test/last", 9*time.Second, nil))
	checkGolden(t, dir, "requests-2.golden")
}

// TestVersion1: files of the previous version are read.
func TestVersion1(t *testing.T) {
	dir := t.TempDir()
	text := must.Get(os.ReadFile(filepath.Join("testdata", "requests-1.golden")))(t)
	must.Do(t, os.WriteFile(path(dir, 1), text, 0o644))
	got, s := readAll(t, dir, Query{})
	want := goldenRequests(t)
	must.True(t, len(got) == len(want) && len(s.Damaged) == 0 && s.Unfinished == 0, "%d requests, %+v", len(got), s)
	for i := range want {
		if want[i].End.IsZero() { // they are not stored completely
			want[i].Status, want[i].Bytes, want[i].DelayReason, want[i].Reason = 0, 0, 0, 0
			want[i].Start, want[i].Decided = got[i].Start, got[i].Decided
		}
		same(t, got[i], want[i])
	}
}

// TestUnboundedNumbers: earlier versions wrote numbers that they refused to read, such as a
// Retry-After of 99999999999999999999 seconds. They are read as their bound, and the frames behind
// them are read.
func TestUnboundedNumbers(t *testing.T) {
	dir := t.TempDir()
	text := must.Get(os.ReadFile(filepath.Join("testdata", "requests-1.golden")))(t)
	payload := []byte{frameRequest}
	// to the delay
	for _, n := range []uint64{flagRetryAfter | flagSent, 0, 0, 0, 0, math.MaxUint64, math.MaxInt64, 1 << 62} {
		payload = binary.AppendUvarint(payload, n)
	}
	payload = append(payload, 0, 0, 0) // reasons, method
	for _, n := range []uint64{429, 10, math.MaxInt64, 2} {
		payload = binary.AppendUvarint(payload, n)
	}
	payload = append(payload, "/x"...)
	text = appendFrame(appendFrame(text, payload), payload)
	must.Do(t, os.WriteFile(path(dir, 1), text, 0o644))
	got, s := readAll(t, dir, Query{})
	if n := len(goldenRequests(t)); len(got) != n+2 || len(s.Damaged) != 0 || s.Unfinished != 0 {
		t.Fatalf("%d requests, want %d and 2: %+v", len(got), n, s)
	}
	r := got[len(got)-1]
	assert.True(t, r.RetryAfter == maxDuration && r.Delay == maxDuration && r.Status == 429 &&
		r.URL.String() == "http://a.test/x", "%+v", r)
}

// TestGoldenFetcher keeps the format of the requests of fetchers stable, with the ids of leases and as it
// was before there were some: those that have ended, and those that were broken off.
func TestGoldenFetcher(t *testing.T) {
	for name, leases := range map[string][2]string{
		"requests-fetcher.golden": {}, "requests-lease.golden": {"LEASE1", "LEASE2"},
	} {
		dir := t.TempDir()
		l := mustOpen(t, dir, DefaultOptions(), testProcess())
		open := request(t, 2, "http://a.test/b", 4*time.Second, nil)
		open.End, open.Fetcher, open.Lease = time.Time{}, "farm-2", leases[1]
		done := request(t, 1, "http://a.test/a", 3*time.Second, policyOf("User-agent: *\n"))
		done.Fetcher, done.Lease = "farm-1", leases[0]
		mustAppend(t, l, done, open)
		checkGolden(t, dir, name)
		got, _ := readAll(t, dir, Query{})
		assert.True(t, len(got) == 2 && got[0].Fetcher == "farm-1" && got[1].Fetcher == "farm-2" &&
			got[0].Lease == leases[0] && got[1].Lease == leases[1], "%s: read %+v", name, got)
	}
}
