package wall

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestGolden holds the bytes of version 2.
func TestGolden(t *testing.T) {
	var s State
	golden := func(name, want string) {
		t.Helper()
		b, _ := s.AppendBinary(nil)
		got := hex.EncodeToString(b)
		assert.True(t, got == want, "%s: %s instead of %s", name, got, want)
		back, err := DecodeState(b)
		assert.True(t, err == nil && back == s, "%s: %+v instead of %+v, %v", name, back, s, err)
	}
	golden("nothing", "")
	for n := range 20 {
		s.Observe(second(n), page(n, 3))
	}
	golden("pages", goldenPages)
	for n := 20; n < 30; n++ {
		s.Observe(second(n), refusal(403, n, 3))
	}
	golden("wall", goldenWall)
	for _, c := range []struct {
		name, want string
		kind       Kind
		answer     Answer
	}{
		{"redirects", goldenRedirects, KindRedirect, Answer{Status: 302, Place: 7}},
		{"empty pages", goldenEmpty, KindEmpty, Answer{Status: 200, HTML: true}},
	} {
		s = State{}
		for n := range 20 {
			s.Observe(second(n), page(n, 3))
		}
		for n := 20; n < 40 && !s.Walled(); n++ {
			a := at(c.answer, n, 3)
			a.Digest = 0
			s.Observe(second(n), a)
		}
		v := s.Verdict()
		assert.True(t, v.Kind == c.kind && v.Stand == Walled, "%s: %+v", c.name, v)
		golden(c.name, c.want)
	}
}

// TestVersion1: a document of version 1 is that of a digest, whether its number is odd or not: a probe that meets it
// again ends no wall, and no other short page is taken for it.
func TestVersion1(t *testing.T) {
	const digest = 1 << 16 // whose sum was 1 in version 1
	same := func(n int) Answer {
		a := page(n, 3)
		a.Length, a.Digest, a.Shape = 500, digest, 8
		return a
	}
	var s State
	for n := range 10 {
		s.Observe(second(n), page(n, 3))
	}
	for n := 10; n < 40; n++ {
		s.Observe(second(n), same(n))
	}
	if v := s.Verdict(); v.Stand != Walled || v.Kind != KindSame || fold64(digest)&1 == 0 {
		t.Fatalf("%+v, document %d", v, fold64(digest))
	}
	s.document = fold64(digest)
	s.gate = 0
	old, _ := s.AppendBinary(nil)
	documents := 2 + 3 + 18 + 10 // version, parts, history, sections, documents
	old = slices.Delete(old, documents, documents+2)
	old[0] = 1
	s, err := DecodeState(old)
	if err != nil || IsDocument(s.Document(), 77, 500) || !IsDocument(s.Document(), digest, 500) {
		t.Fatalf("document %d, %v", s.Document(), err)
	}
	if s.Observe(second(100), same(100)); !s.Walled() {
		t.Error("the same document ends the wall")
	}
	if s.Observe(second(200), page(200, 3)); s.Walled() {
		t.Error("a page does not end the wall")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{"00", "01", "03", "0300", "0101ff0100", "010100000900", "018000"} {
		b, _ := hex.DecodeString(text)
		if s, err := DecodeState(b); err == nil && text != "018000" || err != nil && !errors.Is(err, ErrState) {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

// TestRoundTrip encodes and decodes states that a host can have.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		for i := range rapid.IntRange(0, 60).Draw(t, "responses") {
			a := page(i, 5)
			a.Status = rapid.SampledFrom([]int{200, 200, 403, 429, 503, 404, 401}).Draw(t, "status")
			a.Length = rapid.SampledFrom([]int64{0, 500, 20_000}).Draw(t, "length")
			a.Digest = rapid.Uint64Range(1, 4).Draw(t, "digest")
			a.Shape, a.Mark.Tier = a.Digest, Tier(rapid.IntRange(0, 4).Draw(t, "tier"))
			s.Observe(second(40*i), a)
			b, err := s.AppendBinary([]byte("x"))
			back, failure := DecodeState(b[1:])
			must.True(t, err == nil && failure == nil && back == s && len(b)-1 <= MaxStateBytes,
				"%x: %+v instead of %+v, %v, %v", b, back, s, err, failure)
		}
	})
}

func FuzzDecodeState(f *testing.F) {
	for _, text := range []string{goldenPages, goldenWall} {
		b, _ := hex.DecodeString(text)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			must.True(t, errors.Is(err, ErrState), "%v", err)
			return
		}
		again, _ := s.AppendBinary(nil)
		if back, err := DecodeState(again); err != nil || back != s {
			t.Fatalf("%x is %+v, and again %x is %+v, %v", b, s, again, back, err)
		}
		for n := range 20 { // any state takes any response
			s.Observe(second(n), refusal(403, n, 2))
			s.Verdict()
		}
	})
}

const (
	goldenPages     = "0203140008a19da72aa0f0a19da72aa0f0000000000000"
	goldenRedirects = "02f7140008a19da72aa0f0a19da72aa0f000000000000000070000000000000009000068e77815000340a72aa19d" +
		"a0" +
		"f0040302012e090909080900b47b68e7781d00"
	goldenEmpty = "02f7140008a19da72aa0f0a19da72aa0f000000000000000020000000000000009000068e77815000340a72aa19d" +
		"a0" +
		"f004030200c8090909090900b47b68e7781d00"
	goldenWall = "02f3140008a19da72aa0f0a19da72aa0f000000000000068e77814000340a0f0a72aa19d0303030193090909010900b47b68e7781d00"
)
