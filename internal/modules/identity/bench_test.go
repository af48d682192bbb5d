package identity

import (
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// BenchmarkSign: what a request costs besides a bare signature of Ed25519: one to an origin that has a signature, and
// the first one to an origin.
func BenchmarkSign(b *testing.B) {
	now := time.Now()
	b.Run("bare", func(b *testing.B) {
		_, k := testKeyring(b, now)
		text := make([]byte, 250)
		for b.Loop() {
			ed25519.Sign(k.private, text)
		}
	})
	urls := make([]weburl.URL, 60)
	for i := range urls {
		urls[i] = testkit.Parse(b, fmt.Sprintf("https://host%d.test/a/page", i))
	}
	b.Run("kept", func(b *testing.B) {
		s, _ := newTestSigner(b, SignAlways, func() time.Time { return now })
		for i := 0; b.Loop(); i++ {
			u := urls[i%len(urls)]
			s.Answered(u, len(s.Sign(u)) > 0, 200, nil)
		}
	})
	b.Run("first", func(b *testing.B) {
		at := now
		s, _ := newTestSigner(b, SignAlways, func() time.Time { return at })
		for b.Loop() {
			at = at.Add(renewal)
			s.Sign(urls[0])
		}
	})
}
