package robots

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func testRecord(class Class, body string) Record {
	return Record{Class: class, Copy: class, Body: []byte(body), Fetched: time.UnixMilli(1_790_000_000_123).UTC()}
}

func TestReplaces(t *testing.T) {
	known, failed := testRecord(ClassFound, "Disallow: /a"), testRecord(ClassFound, "Disallow: /a")
	failed.Class, failed.Failures = ClassUnreachable, 1
	for _, tt := range []struct {
		name        string
		next, known Record
		want        bool
	}{
		{"first", known, Record{}, false},
		{"same", known, known, false},
		{"unreachable", failed, known, false},
		{"back as it was", known, failed, false},
		{"another file", testRecord(ClassFound, "Disallow: /b"), known, true},
		{"another file after failures", testRecord(ClassFound, "Disallow: /b"), failed, true},
		{"gone", testRecord(ClassUnavailable, ""), known, true},
		{"there", known, testRecord(ClassUnavailable, ""), true},
		{"still gone", testRecord(ClassUnavailable, ""), testRecord(ClassUnavailable, ""), false},
	} {
		assert.Equal(t, tt.next.Replaces(tt.known), tt.want, tt.name)
	}
}

func TestHistory(t *testing.T) {
	now := time.UnixMilli(1_790_000_100_456).UTC()
	var p History
	for i := range 3 * MaxHistory {
		p = p.With(testRecord(ClassFound, "Disallow: /"+strconv.Itoa(i)), now.Add(time.Duration(i)*time.Hour))
	}
	if len(p) != MaxHistory || string(p[0].Body) != "Disallow: /23" || string(p[MaxHistory-1].Body) != "Disallow: /16" {
		t.Fatalf("%d versions, %q to %q", len(p), p[0].Body, p[len(p)-1].Body)
	}
	p = p.With(testRecord(ClassUnavailable, ""), now)
	long := testRecord(ClassFound, strings.Repeat("Disallow: /a\n", MaxHistoryBody/13+1))
	p = p.With(long, now)
	if v := p[0]; v.Body != nil || v.Size != len(long.Body) || v.Version != VersionOf(long.Body) {
		t.Errorf("a long one: %d octets of %d, %s", len(v.Body), v.Size, v.Version)
	}
	v := p[1]
	assert.True(t, v.Version.IsZero() && v.Class == ClassUnavailable && v.Replaced.Equal(now) &&
		v.Confirmed.Equal(long.Fetched), "none: %+v", v)
	b := must.Get(p.AppendBinary(nil))(t)
	p[1].Body = nil // nothing, and an empty file, are the same
	again, err := DecodeHistory(b)
	assert.True(t, err == nil && reflect.DeepEqual(again, p), "read as %+v, %v; want %+v", again, err, p)
	for n := range b[:len(b)-1] {
		_, err := DecodeHistory(b[:n+1])
		must.True(t, errors.Is(err, ErrRecord), "the first %d bytes: %v", n+1, err)
	}
}

// The largest history can be read again.
func TestLongHistory(t *testing.T) {
	var p History
	noise := rand.NewChaCha8([32]byte{})
	for range MaxHistory {
		body := make([]byte, MaxHistoryBody)
		_, _ = noise.Read(body)
		p = p.With(testRecord(ClassFound, string(body)), time.UnixMilli(1))
	}
	b := must.Get(p.AppendBinary(nil))(t)
	again, err := DecodeHistory(b)
	assert.True(t, err == nil && len(again) == MaxHistory && bytes.Equal(again[7].Body, p[7].Body),
		"%d of %d versions in %d bytes: %v", len(again), len(p), len(b), err)
}

func FuzzDecodeHistory(f *testing.F) {
	p := History{}.With(testRecord(ClassFound, "Disallow: /"), time.UnixMilli(5))
	b := must.Get(p.With(testRecord(ClassUnavailable, ""), time.UnixMilli(9)).AppendBinary(nil))(f)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodeHistory(b)
		if err != nil {
			assert.Is(t, err, ErrRecord)
			return
		}
		encoded := must.Get(p.AppendBinary(nil))(t)
		if again, err := DecodeHistory(encoded); err != nil || len(again) != len(p) {
			t.Errorf("%+v is read again as %+v, %v", p, again, err)
		}
	})
}
