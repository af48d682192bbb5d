package sweep

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// someTime is that of the sweeps in these tests.
var someTime = time.Unix(1_800_000_000, 0)

// TestMarks holds the names and values of the marks: a later version has to read them.
func TestMarks(t *testing.T) {
	retry := must.Get(NewRetry(nil, Command{Lifted: []string{"fetch.ports"}}, nil, nil))(t)
	source := Source{}
	recheck, drop := source.Recheck(frontier.Recheck{Host: 7, Origin: 2}), NewDrop(7, 300)
	recheck.at.Ordinal, drop.at.Ordinal = 258, 1
	exclusion := source.Exclusion()
	exclusion.at = storage.Position{Host: 3, Ordinal: 9}
	wallAt := frontier.WallBegun{Host: 7, Kind: wall.KindSame, Document: 41, Since: time.Unix(1_800_000_000, 5)}
	for _, c := range []struct {
		sweep       *Sweep
		mark, value string
	}{
		{recheck, "recheck/7/2", "\x00\x00\x01\x02\xff\xff\xff\xff"},
		{drop, "drop/7", "\x00\x00\x00\x01\x00\x00\x01\x2c"},
		{newOffer(7), "offer/7", "\x00\x00\x00\x00\xff\xff\xff\xff"},
		{NewWall(wallAt), "wall/7/7/41/1800000000", "\x00\x00\x00\x00\xff\xff\xff\xff"},
		{(&Adopter{Hosts: []storage.HostID{7}}).Next(), "adopt/7", "\x00\x00\x00\x00\xff\xff\xff\xff"},
		{newHostDeletion(7, 1, 2, 3), "delete/7", "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03"},
		{(&Deletion{Before: 15e8, Host: 2}).All(), "delete-all/1500000000", `{"before":1500000000,"host":2}`},
		{exclusion, "exclude", "3.9"},
		{retry.Begin(4, nil), "retry/4", `{"lifted":["fetch.ports"]}`},
	} {
		assert.True(t, c.sweep.Mark() == c.mark && string(c.sweep.Encode()) == c.value,
			"mark %q holds %q, want %q with %q", c.sweep.Mark(), c.sweep.Encode(), c.mark, c.value)
	}
	assert.Equal(t, CrashMark(7), "crash/7", "the mark of a host with crashed URLs")
}

// TestHostOfMark: each mark that is about a host says so, and no other.
func TestHostOfMark(t *testing.T) {
	for name, want := range map[string]storage.HostID{
		"recheck/7/2": 7, "drop/7": 7, "offer/7": 7, "wall/7/3/41/1800000000": 7, "adopt/7": 7, "delete/7": 7,
		"crash/7":      7,
		"delete-all/7": 0, "retry/7": 0, "exclude": 0, "plan": 0, "drop/x": 0,
	} {
		if host, ok := HostOfMark(name); ok != (want != 0) || ok && host != want {
			t.Errorf("mark %s is about host %d (%t), want %d", name, host, ok, want)
		}
	}
}

// TestPanic: a URL at which the decision of a sweep panics stays as it is.
func TestPanic(t *testing.T) {
	s := &Sweep{decide: func(*storage.Located, time.Time) (storage.Done, bool) { panic("bomb") }}
	_, ok := s.examine(slog.New(slog.DiscardHandler), &storage.Located{}, time.Time{})
	assert.True(t, !ok, "a URL at which a sweep panics is changed")
}

// TestRetryStepIsBounded: however many URLs are selected or not, a step puts back, and looks at, a
// bounded number.
func TestRetryStepIsBounded(t *testing.T) {
	s := testkit.OpenStore(t)
	const hosts, each = 25, 1000
	for h := range hosts {
		var b storage.Batch
		for i := range each {
			u := testkit.Parse(t, fmt.Sprintf("http://h%d.test/%d", h, i))
			b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u)})
			b.Done = append(b.Done,
				storage.Done{Host: storage.HostID(h + 1), Ordinal: uint32(i),
					Outcome: storage.Outcome{State: storage.Failed,
						Reason: storage.ReasonFetch + storage.Reason(fetch.KindTLS)}})
		}
		must.Get(s.Commit(&b))(t)
	}
	for _, c := range []struct {
		selection   Selection
		steps, back int
	}{
		{Selection{}, hosts * each / MostChanged, hosts * each},
		{Selection{Reasons: []storage.Reason{storage.ReasonStatus}},
			(hosts*each + MostInspected - 1) / MostInspected, 0},
		{Selection{Host: "h7.test"}, 1, each},
	} {
		w, err := NewRetry(s, Command{Selection: &c.selection}, nil, nil)
		must.Do(t, err)
		steps, back := 0, 0
		for end := false; !end; steps++ {
			var page []storage.Done
			before := w.inspected.Load()
			page, end, err = w.Walk(t.Context(), s, slog.New(slog.DiscardHandler), someTime)
			must.True(t, err == nil, "%v", err)
			assert.True(t, len(page) <= MostChanged && w.inspected.Load()-before <= MostInspected,
				"a step puts back %d URLs and looks at %d", len(page), w.inspected.Load()-before)
			back += len(page)
		}
		assert.True(t, back == c.back && steps >= c.steps && steps <= c.steps+1,
			"%+v: %d URLs in %d steps, want %d in %d", c.selection, back, steps, c.back, c.steps)
	}
}

// TestRetryMark holds the form of the mark: a later version has to read it.
func TestRetryMark(t *testing.T) {
	w := Command{Host: 12, Ordinal: 340, Back: 7, Selection: &Selection{
		States: storage.In(storage.Failed, storage.Excluded), Reasons: []storage.Reason{66, 1}, Host: "a.test",
		Pattern: regexp.MustCompile(`\.pdf$`),
	}}
	const want = `{"selection":{"states":40,"reasons":[66,1],"host":"a.test","pattern":"\\.pdf$"},"host":12,"ordinal":340,"back":7}`
	assert.Equal(t, string(w.Encode()), want, "the mark")
	ofSeed := &Selection{Contains: "/a"}
	must.Do(t, ofSeed.OfSeed("http://a.test/", "news"))
	w = Command{Selection: ofSeed}
	text := w.Encode()
	assert.Equal(t, string(text), `{"selection":{"contains":"/a","seed":"http://a.test/","tag":"news"}}`, "the mark is",
		text)
	var again Command
	if err := json.Unmarshal(text, &again); err != nil || again.Selection.PagesOf != ofSeed.PagesOf {
		t.Errorf("%s comes back as %+v (%v)", text, again.Selection, err)
	}
	w = Command{Lifted: []string{"fetch.ports"}}
	assert.Equal(t, string(w.Encode()), `{"lifted":["fetch.ports"]}`, "the mark")
}

// TestWallIsRestored: the mark of a sweep brings the same sweep back.
func TestWallIsRestored(t *testing.T) {
	since := time.Unix(1_800_000_000, 0)
	s := NewWall(frontier.WallBegun{Host: 7, Kind: wall.KindSame, Since: since.Add(time.Second / 2), Document: 42})
	s.at.Ordinal = 99
	again, err := openWall(s.mark, s.Encode())
	must.True(t, err == nil && again.mark == s.mark && again.host == 7 && again.at == s.at && again.below == s.below,
		"%+v comes back as %+v (%v)", s, again, err)
	assert.Fails(openWall("wall/x", s.Encode()))(t, nil, "a mark without a host is read")
	var digest uint64 // that of the document
	for wall.DocumentOf(digest) != 42 {
		digest++
	}
	for _, test := range []struct {
		last storage.Outcome
		want bool
	}{
		{storage.Outcome{State: storage.Fetched, Status: 200, At: since, Digest: digest, Bytes: 100, ETag: "x"}, true},
		{storage.Outcome{State: storage.Fetched, Status: 200, At: since, Digest: digest + 2, Bytes: 100}, false},
		{storage.Outcome{State: storage.Fetched, Status: 200, At: since.Add(-time.Second), Digest: digest}, false},
		{storage.Outcome{State: storage.Failed, Status: 404, At: since, Digest: digest}, false},
		{storage.Outcome{State: storage.Retrying, Reason: storage.ReasonWall, Status: 200, At: since, Digest: digest},
			false},
	} {
		host := &storage.Host{Queues: make([]storage.Queue, 1)}
		d, ok := again.decide(&storage.Located{Host: host, Head: storage.Head{Last: test.last}}, since)
		assert.True(t, ok == test.want &&
			(!ok || d.Outcome.State == storage.Retrying && d.Outcome.ETag == "" && d.Outcome.Due.Equal(since)),
			"%+v: %+v, %t", test.last, d, ok)
		assert.Equal(t, len(again.superseded) != 0, test.want, test.last, "lines are superseded")
		again.superseded = nil
	}
}

// TestSecondRecheckReadsTooEarly: a second recheck that reads the denied URLs before what the first
// found is on disk must not request them once more.
func TestSecondRecheckReadsTooEarly(t *testing.T) {
	s := testkit.OpenStore(t)
	commit := func(b storage.Batch) {
		t.Helper()
		must.Get(s.Commit(&b))(t)
	}
	u := testkit.Parse(t, "http://a.test/x")
	commit(storage.Batch{Found: []storage.Found{{URL: u, Fingerprint: s.Fingerprint(u)}}})
	commit(storage.Batch{Done: []storage.Done{{Host: 1, Outcome: storage.Outcome{State: storage.Denied}}}})
	all := frontier.Recheck{Host: 1, Rules: robots.Compile(nil, "amble")}
	step := func() []storage.Done {
		done, end, err := newRecheck(nil, all).Walk(t.Context(), s, slog.New(slog.DiscardHandler), someTime)
		must.True(t, len(done) == 1 && end && err == nil, "a recheck finds %d URLs, want one; end %t, %v", len(done),
			end, err)
		return done
	}
	first, second := step(), step()
	commit(storage.Batch{Done: first})
	commit(storage.Batch{Done: []storage.Done{{Host: 1, Outcome: storage.Outcome{State: storage.Fetched}}}})
	commit(storage.Batch{Done: second})
	if head, _, err := s.Lookup(u); err != nil || head.Last.State != storage.Fetched || !head.Last.Due.IsZero() {
		t.Errorf("the URL is %s, due %v (%v), want fetched", head.Last.State, head.Last.Due, err)
	}
}
