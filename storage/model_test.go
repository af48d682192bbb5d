package storage

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// TestAgainstModel drives a store and plain maps with the same random batches, with failing ones
// and restarts between them, and compares all that can be read.
func TestAgainstModel(t *testing.T) {
	tries(t, 40)
	againstModel(t)
}

func againstModel(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		weaken := rapid.IntRange(0, len(weakenings())-1).Draw(t, "fingerprint")
		d := &driver{model: newModel(), weaken: weakenings()[weaken]}
		var err error
		d.dir, err = os.MkdirTemp(dir, "")
		must.True(t, err == nil, "%v", err)
		defer os.RemoveAll(d.dir)
		d.open(t)
		defer func() { d.store.Close() }()
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 8:
				d.erase(t)
			case 0:
				d.fail(t)
			case 1:
				d.reopen(t)
			case 2:
				if rapid.IntRange(0, 1).Draw(t, "age") == 1 && !d.model.isNewer() {
					age(t, d.store)
					d.model.age()
				}
			default:
				d.commit(t)
			}
		}
		d.reopen(t)
	})
}

// weakenings make fingerprints collide in several ways; the first is nil.
func weakenings() []func(uint64) uint64 {
	return []func(uint64) uint64{
		nil,
		func(fp uint64) uint64 { return fp >> 62 << 62 },
		func(fp uint64) uint64 { return fp | 0xfffffffffffffff8 },
		func(fp uint64) uint64 { return fp & 511 },
		func(fp uint64) uint64 { return 1<<64 - 1 },
	}
}

// driver holds a store and the model it is compared with.
type driver struct {
	dir    string
	weaken func(uint64) uint64
	store  *Store
	model  *model
}

func (d *driver) open(t *rapid.T) {
	o := Options{NoSync: true, MapBytes: 1 << 24}
	if rapid.Bool().Draw(t, "limits") {
		o.MaxHostURLs, o.MaxQueries, o.MaxSameDigest = 200, 4, 3
	}
	d.store = mustOpen(t, d.dir, o)
	d.model.limits = o.limits()
	d.store.weaken = d.weaken
}

func (d *driver) reopen(t *rapid.T) {
	mustClose(t, d.store)
	d.open(t)
	checkClean(t, d.store)
	d.compare(t)
}

// batch draws a batch. The library shrinks its size; its contents come from a seed.
func (d *driver) batch(t *rapid.T) (*rand.Rand, Batch) {
	size := rapid.IntRange(0, 250).Draw(t, "size")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	return rng, d.model.randomBatch(rng, size, d.store.Fingerprint)
}

func (d *driver) commit(t *rapid.T) {
	_, b := d.batch(t)
	got := mustCommit(t, d.store, &b)
	want := d.model.apply(&b)
	slices.SortFunc(want.Hosts, func(a, b HostChange) int { return int(a.Host) - int(b.Host) })
	must.True(t, (len(got.Hosts)+len(want.Hosts) <= 0 || slices.Equal(got.Hosts, want.Hosts)) &&
		len(got.Set) == len(want.Set) && got.Added == want.Added && got.Refused == want.Refused &&
		got.Trapped == want.Trapped && reflect.DeepEqual(got.Ensured, want.Ensured), "commit says %+v, want %+v", got,
		want)
	if rapid.IntRange(0, 3).Draw(t, "compare") == 0 {
		d.compare(t)
	}
}

// fail commits a batch with one impossible item: nothing of it may remain.
func (d *driver) fail(t *rapid.T) {
	rng, b := d.batch(t)
	beyond := HostID(len(d.model.hosts) + 1000)
	switch rng.IntN(6) {
	case 0:
		b.Done = append(b.Done, Done{Host: beyond, Outcome: Outcome{State: Fetched}})
	case 1:
		b.Hosts = append(b.Hosts, HostUpdate{Host: beyond})
	case 2:
		b.Ensure = append(b.Ensure, strings.Repeat("x", 256))
	case 3:
		b.Marks = map[string][]byte{"": {1}}
	case 4:
		b.Payloads = append(b.Payloads, Payload{Host: beyond})
	case 5:
		b.Ensure = append(b.Ensure, hostName(0))
		b.Payloads = append(b.Payloads, Payload{Host: 1, Ordinal: 1 << 30})
	}
	_, err := d.store.Commit(&b)
	must.True(t, err != nil && !errors.Is(err, ErrNoSpace), "commit of an impossible batch: %v", err)
	d.compare(t)
}

// compare compares everything that can be read with the model.
func (d *driver) compare(t tester) {
	t.Helper()
	m, s := d.model, d.store
	if got, want := s.Counters(), m.counters(); got != want {
		t.Fatalf("counters are %+v, want %+v", got, want)
	}
	var walked []string
	if err := s.Hosts(func(h *Host) error { walked = append(walked, h.Name); return nil }); err != nil ||
		!slices.Equal(walked, m.names) {
		t.Fatalf("walk over hosts: %q, %v, want %q", walked, err, m.names)
	}
	for i, h := range m.hosts {
		got, err := s.HostByName(h.name)
		want := h.host(HostID(i + 1))
		must.True(t, err == nil && reflect.DeepEqual(got, want), "host is %+v, %v, want %+v", got, err, want)
		if got, err := s.Traps(HostID(i + 1)); err != nil || len(got)+len(h.traps) > 0 &&
			!reflect.DeepEqual(got, h.traps) {
			t.Fatalf("traps of %s are %+v, %v, want %+v", h.name, got, err, h.traps)
		}
		d.compareURLs(t, HostID(i+1), h)
		d.compareHeads(t, HostID(i+1), h)
		d.comparePayloads(t, HostID(i+1), h)
	}
	for o, record := range m.policies {
		got, err := s.Policy(o)
		must.True(t, err == nil && string(got) == record, "policy of %s is %q, %v, want %q", o, got, err, record)
	}
	marks, err := s.Marks("mark")
	if err != nil || len(marks) != len(m.marks) {
		t.Fatalf("marks are %q, %v, want %q", marks, err, m.marks)
	}
	for name, mark := range m.marks {
		if got, err := s.Mark(name); err != nil || string(got) != mark || string(marks[name]) != mark {
			t.Fatalf("mark %s is %q, %v, want %q", name, got, err, mark)
		}
	}
	seeds, err := s.Seeds()
	got := make(map[string]string)
	for _, seed := range seeds {
		got[seed.URL] = string(seed.Value)
	}
	if err != nil || !maps.Equal(got, m.seeds) {
		t.Fatalf("seeds: %q, %v, want %v", got, err, m.seeds)
	}
}

func (d *driver) compareURLs(t tester, id HostID, h *modelHost) {
	var got []Head
	for next := h.first; next < uint32(len(h.urls)); {
		var err error
		next, err = d.store.URLs(id, next, 50, func(h Head) { got = append(got, h) })
		must.True(t, err == nil, "URLs: %v", err)
	}
	if !slices.Equal(got, h.live()) {
		t.Fatalf("URLs of %s are\n%+v, want\n%+v", h.name, got, h.live())
	}
	for _, u := range got {
		m, err := d.store.Metadata(id, u.Ordinal)
		if encoded, _ := m.Encode(); err != nil || string(encoded) != h.metadata[u.Ordinal] {
			t.Fatalf("metadata of URL %d of %s are %v, %v", u.Ordinal, h.name, m, err)
		}
	}
	if h.first > 0 {
		_, err := d.store.URL(id, h.first-1)
		must.True(t, errors.Is(err, ErrNotFound), "a deleted URL of %s: %v", h.name, err)
	}
	for i := 0; i < len(got); i += 7 {
		u := h.origins[got[i].Origin].URL(got[i].RequestURI)
		head, host, err := d.store.LookupSession(u, got[i].identity())
		must.True(t, err == nil && head == got[i] && host.ID == id, "lookup of %s: %+v, %v", u, head, err)
		if text, err := d.store.URL(id, got[i].Ordinal); err != nil || text != u {
			t.Fatalf("URL %d is %s, %v, want %s", i, text, err, u)
		}
	}
	absent := weburl.Origin{Scheme: "http", Host: h.name, Port: 80}.URL("/absent")
	_, _, err := d.store.Lookup(absent)
	must.True(t, errors.Is(err, ErrNotFound), "lookup of %s: %v", absent, err)
}

func (d *driver) compareHeads(t tester, id HostID, h *modelHost) {
	for o := range h.origins {
		for _, limit := range []int{1, 5, 1000} {
			q := HeadsRequest{Host: id, Origin: uint8(o), From: h.cursors[o], Queued: limit, Due: limit,
				Recrawls: limit, Now: someTime.Add(30 * time.Second)}
			got, err := d.store.Heads(q)
			got.NextDue = 0 // see TestNextDue
			if want := h.heads(q); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("heads of %s for %+v are\n%+v, %v, want\n%+v", h.name, q, got, err, want)
			}
		}
	}
}

func (d *driver) comparePayloads(t tester, id HostID, h *modelHost) {
	for n := range uint64(modelDigests) {
		want, known := h.payloads[modelDigest(n)]
		got, ok, err := d.store.Payload(id, modelDigest(n))
		if ok && !known && h.older[modelDigest(n)] && got.Ordinal >= h.first {
			continue
		}
		if got != want || ok != known || err != nil {
			t.Fatalf("body %d of %s is %+v, %t, %v, want %+v, %t", n, h.name, got, ok, err, want, known)
		}
	}
}

// modelDigests is the number of bodies: more than fit in a row, and so far apart that none is
// evicted.
const modelDigests = 200

func modelDigest(n uint64) uint64 { return (n + 1) * 0x9e3779b97f4a7c15 }

// randomBatch makes a batch that fits what the model holds.
func (m *model) randomBatch(rng *rand.Rand, size int, fingerprint func(weburl.URL) uint64) Batch {
	var b Batch
	for range size {
		u := randomURL(rng)
		bare, _, session := strings.Cut(u.RequestURI(), ";sid=")
		f := Found{
			URL: u, Fingerprint: fingerprint(u.Origin().URL(bare)), Depth: uint16(rng.IntN(300)),
			Seed:    rng.IntN(4) == 0,
			ViaHost: HostID(rng.IntN(4)), At: someTime.Add(time.Duration(rng.IntN(9)) * time.Second),
		}
		if session {
			f.Stripped = bare
		}
		if f.ViaHost != NoHost {
			f.ViaOrdinal = rng.Uint32() >> rng.IntN(32)
			f.From = SeedRef{ID: SeedID{byte(rng.IntN(3)), 1}, Outside: uint8(rng.IntN(3))}
		}
		if rng.IntN(3) == 0 {
			f.Redirects, f.Priority = uint8(rng.IntN(128)), int8(rng.IntN(256)-128)
		}
		if rng.IntN(4) == 0 {
			f.Sitemap, f.Frequency = rng.IntN(2) == 0, Frequency(rng.IntN(8))
		}
		if rng.IntN(5) == 0 {
			m := Metadata{"key": {strings.Repeat("v", rng.IntN(300))}, "": {"1", ""}}
			f.Metadata, _ = m.Encode()
		}
		if rng.IntN(5) == 0 {
			f.Outcome = &Outcome{State: Fetched, At: someTime}
			if rng.IntN(2) == 0 {
				f.Outcome.State, f.Outcome.Due = Retrying, someTime.Add(time.Duration(rng.IntN(60))*time.Second)
			}
		}
		b.Found = append(b.Found, f)
	}
	for i, h := range m.hosts {
		if rng.IntN(2) == 0 {
			m.randomWork(rng, HostID(i+1), h, size, &b)
		}
	}
	for i := range b.Found {
		if f := &b.Found[i]; rng.IntN(2) == 0 && len(b.Done) > 0 {
			d := &b.Done[rng.IntN(len(b.Done))]
			f.ViaHost, f.ViaOrdinal = d.Host, d.Ordinal
		}
	}
	for range rng.IntN(4) {
		u := randomURL(rng)
		b.Refused = append(b.Refused, Refused{Host: u.Host(), Reason: Trap(1 + rng.IntN(9)), URL: u})
	}
	if rng.IntN(4) == 0 {
		b.Ensure = []string{hostName(rng.IntN(12)), hostName(0)}
		seed := SeedRow{URL: randomURL(rng).String()}
		b.Seeds = []SeedRow{seed, {randomURL(rng).String(), []byte("tags"[:rng.IntN(5)])}}
		b.Policies = []Policy{{randomURL(rng).Origin(), []byte{byte(size), 1}}}
		b.Marks = map[string][]byte{fmt.Sprint("mark", rng.IntN(3)): {byte(size)}, fmt.Sprint("mark", rng.IntN(3)): nil}
	}
	return b
}

// randomWork makes outcomes and an update of one host.
func (m *model) randomWork(rng *rand.Rand, id HostID, h *modelHost, size int, b *Batch) {
	for range rng.IntN(size/2 + 1) {
		if len(h.urls) == 0 {
			break
		}
		u := &h.urls[rng.IntN(len(h.urls))]
		b.Done = append(b.Done, Done{
			Host: id, Ordinal: u.Ordinal, Origin: u.Origin, Priority: u.Priority,
			When: States(rng.IntN(1<<numStates) >> rng.IntN(12)), Outcome: randomOutcome(rng),
		})
	}
	for range rng.IntN(40) {
		if len(h.urls) == 0 {
			break
		}
		b.Payloads = append(b.Payloads, Payload{
			Host: id, Digest: modelDigest(rng.Uint64N(modelDigests)), SHA256: [32]byte{31: byte(rng.IntN(256))},
			Ordinal: rng.Uint32N(uint32(len(h.urls))),
			At:      someTime.Add(time.Duration(rng.IntN(60)) * time.Second),
		})
	}
	if len(h.urls) > 0 && rng.IntN(6) == 0 {
		p := Purge{Host: id, Below: rng.Uint32N(uint32(len(h.urls)) + 20)}
		if rng.IntN(2) == 0 {
			p.From = rng.Uint64() >> rng.IntN(64)
			p.To = p.From | rng.Uint64()
		}
		b.Purges = append(b.Purges, p)
	}
	u := HostUpdate{Host: id, Requests: rng.Uint32N(10), Bytes: rng.Uint64N(1e6)}
	if rng.IntN(2) == 0 {
		u.Politeness = []byte(strings.Repeat("p", rng.IntN(256)))
	}
	if rng.IntN(2) == 0 {
		u.Site = []byte(strings.Repeat("s", rng.IntN(256)))
	}
	if rng.IntN(2) == 0 {
		u.Wall = []byte(strings.Repeat("w", rng.IntN(256)))
	}
	for o := range h.origins {
		if next := h.firstQueued(uint8(o)); rng.IntN(2) == 0 {
			u.Cursors = append(u.Cursors, Cursor{uint8(o), next})
		}
	}
	b.Hosts = append(b.Hosts, u)
}

func randomOutcome(rng *rand.Rand) Outcome {
	o := Outcome{State: State(1 + rng.IntN(numStates-1)), Reason: Reason(rng.IntN(256)), Attempts: uint8(rng.IntN(9)),
		At: someTime}
	if rng.IntN(2) == 0 {
		o.Due = someTime.Add(time.Duration(rng.IntN(60)) * time.Second)
	}
	if rng.IntN(2) == 0 {
		o.Status, o.Bytes, o.Digest = 200, rng.Uint64()>>rng.IntN(64), rng.Uint64()
		o.Modified = someTime.UTC().Format(httpDate)
	}
	if rng.IntN(4) == 0 {
		o.State, o.Digest = Fetched, 1+rng.Uint64N(12)
	}
	if rng.IntN(4) == 0 {
		o.Line, o.ETag, o.Modified, o.History = rng.Uint32(), strings.Repeat("e", rng.IntN(256)), "yesterday",
			[8]byte{1}
	}
	if rng.IntN(3) == 0 {
		o.Simhash = rng.Uint64()
	}
	if rng.IntN(5) == 0 {
		o.Note = strings.Repeat("n", rng.IntN(256))
	}
	return o
}

func hostName(n int) string {
	if n == 0 {
		return "[2001:db8::1]"
	}
	return fmt.Sprintf("host%d.example", n)
}

// randomURL draws from a set that is small enough for URLs to repeat, with long ones, and with one
// host that has more origins than it may.
func randomURL(rng *rand.Rand) weburl.URL {
	o := weburl.Origin{Scheme: "https", Host: hostName(min(rng.IntN(5), rng.IntN(5))), Port: 443}
	switch rng.IntN(6) {
	case 0:
		o.Scheme, o.Port = "http", 80
	case 1:
		o.Port = uint16(8000 + rng.IntN(45))
	}
	uri := fmt.Sprintf("/%d", rng.IntN(600))
	switch rng.IntN(8) {
	case 0:
		uri = fmt.Sprintf("/q%d?%d", min(rng.IntN(30), rng.IntN(30)), rng.IntN(100))
	case 1:
		uri += fmt.Sprintf(";sid=%d", rng.IntN(3))
	}
	if rng.IntN(20) == 0 && !strings.ContainsAny(uri, "?;") {
		uri += "?" + strings.Repeat("q", rng.IntN(1950))
	}
	return o.URL(uri)
}
