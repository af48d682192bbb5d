package storage

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// TestImpossibleBatches: an impossible batch is refused as a whole. What is before the impossible
// item is not in the store either, and the store goes on.
func TestImpossibleBatches(t *testing.T) {
	tests := []struct {
		name  string
		batch Batch
		want  string
	}{
		{"outcome of a URL that is not there",
			Batch{Done: []Done{{Host: 1, Ordinal: 10, Outcome: Outcome{State: Fetched}}}}, "outcome for URL 10"},
		{"outcome of an origin that is not there",
			Batch{Done: []Done{{Host: 1, Origin: 1, Outcome: Outcome{State: Fetched}}}},
			"outcome for URL 0 of origin 1"},
		{"outcome of a host that is not there", Batch{Done: []Done{{Host: 9, Outcome: Outcome{State: Fetched}}}},
			"no such host"},
		{"outcome queued", Batch{Done: []Done{{Host: 1, Outcome: Outcome{State: Queued}}}}, "queued is not an outcome"},
		{"outcome of an unknown state", Batch{Done: []Done{{Host: 1, Outcome: Outcome{State: 7}}}}, "state(7)"},
		{"update of no host", Batch{Hosts: []HostUpdate{{Host: NoHost}}}, "no such host"},
		{"politeness too long", Batch{Hosts: []HostUpdate{{Host: 1, Politeness: make([]byte, 256)}}}, "256 bytes"},
		{"cursor beyond", Batch{Hosts: []HostUpdate{{Host: 1, Cursors: []Cursor{{0, 11}}}}}, "cursor 11"},
		{"cursor of an unknown origin", Batch{Hosts: []HostUpdate{{Host: 1, Cursors: []Cursor{{1, 0}}}}}, "origin 1"},
		{"host name too long", Batch{Ensure: []string{strings.Repeat("n", 256)}}, "host name of 256 bytes"},
		{"host without a name", Batch{Ensure: []string{""}}, "host name of 0 bytes"},
		{"mark without a name", Batch{Marks: map[string][]byte{"": {1}}}, "mark"},
	}
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("known.example", 0, 10)...)})
	before := s.Counters()
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := test.batch
			b.Found = found(t, s, numbered("known.example", 0, 100)...)
			b.Found = append(b.Found, found(t, s, numbered(fmt.Sprintf("new%d.example", i), 0, 100)...)...)
			if b.Done != nil && b.Done[0].Ordinal == 10 {
				b.Found = nil // which would make it possible
			}
			if b.Hosts != nil && b.Hosts[0].Cursors != nil {
				b.Found = nil
			}
			if _, err := s.Commit(&b); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("commit says %v, want something with %q", err, test.want)
			}
			assert.Equal(t, s.Counters(), before, "counters")
			assert.Fails(s.HostByName(fmt.Sprintf("new%d.example", i)))(t, ErrNotFound, "the new host")
		})
	}
	r := mustCommit(t, s, &Batch{Found: found(t, s, "https://new0.example/"), Ensure: []string{"new1.example"}})
	assert.True(t, r.Added == 1 && r.Hosts[0].Host == 2 && r.Ensured["new1.example"] == 3,
		"ids of failed commits were used up: %+v", r)
}

// TestRefused: discoveries that the store refuses do not stop the others.
func TestRefused(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	b := Batch{Found: found(t, s, "https://host.example/")}
	b.Found = append(b.Found,
		Found{}, // no URL
		Found{URL: weburl.Origin{Scheme: "http", Host: strings.Repeat("h", 256), Port: 80}.URL("/")},
	)
	for port := range 40 {
		b.Found = append(b.Found, found(t, s, fmt.Sprintf("http://host.example:%d/", 9000+port))...)
	}
	r := mustCommit(t, s, &b)
	assert.True(t, r.Added == 32 && r.Refused == 2+9, "%d added, %d refused; want 32 and 11", r.Added, r.Refused)
	if r := mustCommit(t, s, &b); r.Added != 0 || r.Refused != 2+9 {
		t.Errorf("the second time %d added, %d refused", r.Added, r.Refused)
	}
}

// TestOutcomeInTheSameBatch: a host and its URLs may be new in the batch that brings their
// outcomes.
func TestOutcomeInTheSameBatch(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	b := Batch{Found: found(t, s, numbered("host.example", 0, 70)...)}
	for n := range uint32(70) {
		b.Done = append(b.Done, Done{Host: 1, Ordinal: n, Outcome: Outcome{State: Failed, Reason: ReasonStatus,
			Status: 404, At: someTime}})
	}
	b.Hosts = []HostUpdate{{Host: 1, Requests: 70, Cursors: []Cursor{{0, 70}}}}
	mustCommit(t, s, &b)
	c := s.Counters()
	assert.True(t, c.Of(Failed) == 70 && c.Of(Queued) == 0, "counters are %+v", c)
}

// TestDueMoves follows the earliest due time through changes, one of them to the same instant.
func TestDueMoves(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("host.example", 0, 3)...)})
	at := uint32(someTime.Unix())
	steps := []struct {
		ordinal  uint32
		due      time.Duration // 0: none
		count    uint32
		earliest uint32
	}{
		{0, 50 * time.Second, 1, at + 50},
		{0, 50 * time.Second, 1, at + 50},
		{1, 20*time.Second + 1, 2, at + 21}, // rounded up
		{1, 21 * time.Second, 2, at + 21},
		{1, 90 * time.Second, 2, at + 50},
		{0, 0, 1, at + 90},
		{1, 0, 0, 0},
		{1, 0, 0, 0},
	}
	for i, step := range steps {
		o := Outcome{State: Retrying, At: someTime}
		if step.due != 0 {
			o.Due = someTime.Add(step.due)
		}
		r := mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Ordinal: step.ordinal, Outcome: o}}})
		got := r.Hosts[0]
		assert.True(t, got.Due == step.count && got.NextDue == step.earliest,
			"step %d: %d due, the first at %d; want %d and %d", i, got.Due, got.NextDue, step.count, step.earliest)
		checkClean(t, s)
	}
}

// TestNeverDueEarly: Heads does not return a URL before its due time.
func TestNeverDueEarly(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, &Batch{Found: found(t, s, "https://host.example/")})
	due := someTime.Add(300 * time.Millisecond)
	mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Outcome: Outcome{State: Retrying, At: someTime, Due: due}}}})
	for _, test := range []struct {
		now  time.Time
		want int
	}{{due.Add(-time.Millisecond), 0}, {due.Add(time.Second), 1}} {
		h, err := s.Heads(HeadsRequest{Host: 1, Due: 5, Now: test.now})
		assert.True(t, err == nil && len(h.Due) == test.want, "at %v: %d due, %v, want %d", test.now, len(h.Due), err,
			test.want)
	}
}

func TestHeadsBeyond(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("host.example", 0, 20)...)})
	for _, from := range []uint32{20, 21, 1<<32 - 1} {
		h, err := s.Heads(HeadsRequest{Host: 1, From: from, Queued: 5, Due: 5, Now: someTime})
		assert.True(t, err == nil && reflect.DeepEqual(h, (Heads{Next: from, Tail: 20})), "heads from %d: %+v, %v",
			from, h, err)
	}
	h, err := s.Heads(HeadsRequest{Host: 1, Origin: 5, Queued: 5, Due: 5, Now: someTime})
	assert.True(t, err == nil && len(h.Queued)+len(h.Due) <= 0 && h.Next == 20, "heads of an unknown origin: %+v, %v",
		h, err)
	assert.Fails(s.Heads(HeadsRequest{Host: 2}))(t, ErrNotFound, "heads of an unknown host")
}

// TestLargeBatch commits many URLs of one host at once, some of them long, all twice.
func TestLargeBatch(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	const n = 20_000
	var b Batch
	for i := range 2 * n {
		pad := strings.Repeat("p", i%n%50*40)
		u := weburl.Origin{Scheme: "https", Host: "host.example", Port: 443}.URL(fmt.Sprintf("/%d?%s", i%n, pad))
		b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
	}
	assert.Equal(t, mustCommit(t, s, &b).Added, n, "added")
}

// TestValidators: ETag and Last-Modified are read as they were sent.
func TestValidators(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, &Batch{Found: found(t, s, "https://host.example/")})
	for _, text := range []string{
		"", "Mon, 02 Jan 2006 15:04:05 GMT", "Mon, 2 Jan 2006 15:04:05 GMT", "Tue, 02 Jan 2006 15:04:05 GMT",
		"Thu, 01 Jan 1970 00:00:00 GMT",
		"Wed, 31 Dec 1969 23:59:59 GMT", "Sun, 07 Feb 2106 06:28:15 GMT", "Sun, 07 Feb 2106 06:28:16 GMT",
		"Monday, 02-Jan-06 15:04:05 GMT", strings.Repeat("m", 255),
	} {
		want := Outcome{State: Fetched, At: someTime, Modified: text, ETag: `W/"x"`}
		mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Outcome: want}}})
		head, _, err := s.Lookup(parse(t, "https://host.example/"))
		assert.True(t, err == nil && head.Last == want, "%q comes back as %q, %v", text, head.Last.Modified, err)
	}
	long := Outcome{State: Fetched, At: someTime, Modified: strings.Repeat("m", 256), ETag: strings.Repeat("e", 256)}
	mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Outcome: long}}})
	head, _, err := s.Lookup(parse(t, "https://host.example/"))
	assert.True(t, err == nil && head.Last.Modified == "" && head.Last.ETag == "",
		"validators too long to keep: %+v, %v", head.Last, err)
}

func TestStateNames(t *testing.T) {
	for s := range State(numStates) {
		assert.Returns(ParseState(s.String()))(t, s, "comes back as")
	}
	_, err := ParseState("state(7)")
	assert.True(t, err != nil && State(7).String() == "state(7)", "an unknown state: %v, %s", err, State(7))
}

// TestCommitLetsGo: nothing of a transaction stays in memory after it, committed or not.
func TestCommitLetsGo(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, &Batch{Found: found(t, s, "https://host.example/")})
	assert.Equal(t, s.writer.transaction, (transaction{}), "the buckets of a committed transaction are kept")
	if _, err := s.Commit(&Batch{Done: []Done{{Host: 7}}}); err == nil || s.writer.transaction != (transaction{}) {
		t.Errorf("the buckets of a transaction that failed are kept: %v", err)
	}
}
