package wall

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var start = time.Unix(1_760_000_000, 0)

// page and refusal are responses to the n-th request, in one of some sections.
func page(n, sections int) Answer {
	a := Answer{Status: 200, HTML: true, Length: 20_000, Took: 100 * time.Millisecond}
	return at(a, n, sections)
}

func refusal(status, n, sections int) Answer {
	return at(Answer{Status: status, HTML: true, Length: 500, Took: 100 * time.Millisecond}, n, sections)
}

func at(a Answer, n, sections int) Answer {
	target := fmt.Sprintf("/s%d/%d", n%sections, n)
	a.Section, a.Top = Sections(target)
	a.URL, a.Digest = hash(target), hash(target)
	return a
}

func second(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

// TestProbes follows a wall from its beginning over probes that fail to the one that ends it.
func TestProbes(t *testing.T) {
	var s State
	n := 0
	observe := func(a Answer) Verdict { n++; return s.Observe(second(n), a) }
	for range 30 {
		v := observe(page(n, 3))
		must.True(t, v.Stand == Open && v.Sign == SignPage, "a page: %+v", v)
	}
	first := second(n + 1)
	var v Verdict
	for v.Stand != Begins {
		v = observe(refusal(403, n, 3))
		must.True(t, v.Stand != Open && n <= 41, "refusal %d: %+v", n, v)
	}
	assert.True(t, v.Since.Equal(first) && v.Kind == KindRefusal && v.Refused == n-30 && v.Judged == v.Refused &&
		v.Status == 403, "the wall begins: %+v", v)
	late := page(n, 3)
	late.Took = 5 * time.Second
	v = observe(late)
	assert.True(t, v.Stand == Walled && v.Probes == 0, "a page that was in flight: %+v", v)
	for probe := 1; probe <= ParkAfter; probe++ {
		n += 60 << probe
		v = observe(refusal(503, n, 3))
		assert.True(t, v.Stand == Walled && v.Probes == probe-1, "an outage: %+v", v)
		if v = observe(refusal(403, n, 3)); v.Stand != Walled || v.Probes != probe || v.Park != (probe == ParkAfter) {
			t.Errorf("probe %d: %+v", probe, v)
		}
		n++ // later than a second after the probe
	}
	n += 86_400
	v = observe(page(n, 3))
	assert.True(t, v.Stand == Ends && v.Kind == KindRefusal && v.Since.Equal(first), "a page: %+v", v)
	v = s.Verdict()
	assert.True(t, v.Stand == Open, "behind the end: %+v", v)
	again := 0
	for v.Stand != Begins {
		v = observe(refusal(403, n, 3))
		again++
	}
	assert.True(t, again <= 6, "the wall is there again after %d refusals", again)
}

// TestSections holds that a section which never answered makes no wall, and one that did does.
func TestSections(t *testing.T) {
	closed := func(n int) Answer {
		a := refusal(403, n, 1)
		a.Section, a.Top = Sections(fmt.Sprintf("/closed/%d/x", n%5))
		return a
	}
	var s State
	for n := range 400 {
		a := page(n, 3)
		if n >= 40 {
			a = closed(n)
		}
		v := s.Observe(second(n), a)
		must.True(t, v.Stand != Begins, "response %d: %+v", n, v)
	}
	assert.True(t, s.Exhausted(closed(0).Section, closed(0).Top) && !s.Exhausted(page(0, 3).Section, page(0, 3).Top),
		"the closed section is not the one that says nothing")
	for n, target := range map[string][2]string{
		"/":                    {"", ""},
		"/page":                {"", ""},
		"/?id=1":               {"", ""},
		"/news/1":              {"news", "news"},
		"/news/2026/1":         {"news/2026", "news"},
		"/news/2026/08/1?x=/y": {"news/2026", "news"},
		"/show.php?id=1":       {"show.php", "show.php"},
		"/forum/show.php?id=1": {"forum/show.php", "forum"},
	} {
		section, top := Sections(n)
		same := func(name string) (uint16, uint16) { return Sections("/" + name + "/") }
		wantSection, _ := same(target[0])
		_, wantTop := same(target[1])
		if target[0] == "" {
			wantSection, wantTop = rootSection, rootSection
		}
		assert.True(t, section == wantSection && top == wantTop, "%s: %d, %d instead of %d, %d", n, section, top,
			wantSection, wantTop)
	}
}

// TestHealthy: a host that refuses one in five at most, never more than four in a row, has no wall.
func TestHealthy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		statuses := []int{401, 402, 403, 406, 407, 429, 451}
		one := rapid.SampledFrom(statuses).Draw(t, "status")
		sections := rapid.IntRange(1, 12).Draw(t, "sections")
		n := rapid.IntRange(1, 300).Draw(t, "responses")
		var s State
		refused, row := 0, 0
		for i := range n {
			a := page(i, sections)
			if 5*(refused+1) <= i && row < 4 && rapid.Bool().Draw(t, "refuse") {
				a = refusal(one, i, sections)
				refused++
				row++
			} else {
				row = 0
			}
			v := s.Observe(start.Add(time.Duration(i)*time.Minute), a)
			must.True(t, v.Stand < Begins, "response %d: %+v", i, v)
		}
	})
}

// TestPureWall: a host that only refuses from some point on is seen within ten requests, whatever
// it answered before within the bounds of a healthy host.
func TestPureWall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.SampledFrom([]int{402, 403, 406, 407, 429, 451}).Draw(t, "status")
		sections := rapid.IntRange(1, 4).Draw(t, "sections")
		before := rapid.OneOf(rapid.Just(0), rapid.IntRange(sections, 200)).Draw(t, "before")
		usual := rapid.IntRange(8, 50).Draw(t, "one refusal in")
		var s State
		n := 0
		for ; n < before; n++ {
			a := page(n, sections)
			if n%usual == usual-1 {
				a = refusal(403, n, sections)
			}
			s.Observe(start.Add(time.Duration(n)*time.Minute), a)
		}
		for into := 1; ; into++ {
			if v := s.Observe(start.Add(time.Duration(n)*time.Minute), refusal(one, n, sections)); v.Stand == Begins {
				return
			}
			if n++; into == 10 {
				t.Fatalf("not seen after %d refusals: %+v", into, s)
			}
		}
	})
}

// TestArrival: responses of requests that were in flight when a wall began come in any order. The
// pages among them change the number of refusals that it takes by one at most.
func TestArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flight := rapid.IntRange(1, 8).Draw(t, "in flight")
		var s State
		for n := range 50 {
			s.Observe(second(n), page(n, 3))
		}
		var mixed []Answer
		for i := range flight - 1 {
			a := page(100+i, 3)
			a.Took = time.Minute // it started before the wall
			mixed = append(mixed, a)
		}
		for i := range 12 {
			mixed = append(mixed, refusal(403, 200+i, 3))
		}
		mixed = rapid.Permutation(mixed).Draw(t, "arrival")
		refused := 0
		for i, a := range mixed {
			if a.Status == 403 {
				refused++
			}
			if v := s.Observe(second(60).Add(time.Duration(i)*100*time.Millisecond), a); v.Stand == Begins {
				must.True(t, refused >= 8 && refused <= 10, "seen after %d refusals", refused)
				return
			}
		}
		t.Fatal("not seen")
	})
}

func TestSize(t *testing.T) {
	size := unsafe.Sizeof(State{})
	assert.True(t, size <= 72, "a state takes %d bytes", size)
}

// TestFromSame: a document under URLs that were found on it is no evidence, wherever these URLs are
// among others. The same document under other URLs is seen as a wall as soon as without them.
func TestFromSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		n := 0
		observe := func(a Answer) Verdict { n++; return s.Observe(second(n), a) }
		short := func() Answer { return refusal(200, n, 5) }
		same := func(fromSame bool) Answer {
			a := short()
			a.Digest, a.FromSame = 7, fromSame
			return a
		}
		for range fewDocuments {
			observe(short())
		}
		for range rapid.IntRange(0, 60).Draw(t, "before") {
			a := same(true)
			if rapid.IntRange(0, 3).Draw(t, "page") == 0 {
				a = short()
			}
			v := observe(a)
			must.True(t, v.Stand == Open, "response %d: %+v", n, v)
		}
		if s.returns > 0 {
			return // the document is usual at this host
		}
		for count := 1; ; count++ {
			if v := observe(same(false)); v.Stand == Begins {
				return
			}
			must.True(t, count != 11, "not seen after %d documents: %+v", count, s)
			v := s.Verdict()
			must.True(t, v.Refused <= count, "%d documents count as %d", count, v.Refused)
			must.True(t, !rapid.Bool().Draw(t, "follow") || observe(same(true)).Stand != Begins,
				"a URL that was found on the document is evidence")
		}
	})
}

// TestIsOf: documents are the same by their digests, and by their lengths if they have keys in them.
func TestIsOf(t *testing.T) {
	stub := Answer{Length: 900, Digest: 1, Mark: Mark{Tier: TierStub}}
	for _, test := range []struct {
		a              Answer
		digest, length uint64
		want           bool
	}{
		{Answer{Length: 900, Digest: 1}, 1, 900, true},
		{Answer{Length: 900, Digest: 1}, 2, 900, false},
		{Answer{Length: 900, Digest: 1}, 0, 0, false},
		{stub, 2, 900, true}, {stub, 2, 963, true}, {stub, 2, 837, true}, {stub, 2, 964, false}, {stub, 2, 836, false},
		{Answer{Length: 10, Mark: stub.Mark}, 0, 0, false}, {stub, 2, 1 << 63, false},
	} {
		assert.Equal(t, test.a.IsOf(test.digest, test.length), test.want, test.a, "is of a page with", test.digest,
			"and", test.length, "bytes")
	}
}
