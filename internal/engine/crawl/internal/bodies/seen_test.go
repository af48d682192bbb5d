package bodies

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestSeenForgetsNoRecentBody: whatever Seen has forgotten, it never says of a response that it was told of that there
// was none; and of few others that there was one.
func TestSeenForgetsNoRecentBody(t *testing.T) {
	type response struct {
		key Key
		at  time.Time
	}
	random, start := rand.New(rand.NewPCG(1, 2)), time.Unix(1_800_000_000, 0)
	s := NewSeen(start)
	var told []response
	for i := range 5 * mostBodies / 2 {
		after := time.Duration(i)*time.Millisecond + time.Duration(random.IntN(5000))
		r := response{Key{1, random.Uint64()}, start.Add(after)}
		s.Add(r.key, r.at)
		told = append(told, r)
	}
	forgotten := 0
	for _, r := range told {
		must.True(t, s.MayHave(r.key, r.at.Truncate(time.Second)), "a response of %s is unknown", r.at)
		if !s.MayHave(r.key, told[len(told)-1].at) {
			forgotten++
		}
	}
	assert.Not(t, forgotten, 0, "nothing was ever forgotten")
	wrong := 0
	for range 10_000 {
		if s.MayHave(Key{1, random.Uint64()}, told[len(told)-1].at) {
			wrong++
		}
	}
	assert.AtMost(t, wrong, 2500, "of 10,000 bodies that no response had may have come")
	assert.True(t, s.MayHave(Key{1, 1}, start), "a response at the beginning, or before, may have had any body")
}
