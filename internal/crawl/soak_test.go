//go:build soak

package crawl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// TestSoakKill kills a crawler 20 times at random moments, with hosts that ask for a
// second between requests and with hosts that do not, again and again for ten
// minutes, or for as long as AMBLE_SOAK says.
func TestSoakKill(t *testing.T) {
	length := 10 * time.Minute
	if text := os.Getenv("AMBLE_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(length)
	for round := 0; time.Now().Before(end) && !t.Failed(); round++ {
		t.Run(fmt.Sprint("slow hosts ", round), func(t *testing.T) {
			chaos{hosts: 20, pages: 40, crawlDelay: time.Second, delay: 20 * time.Millisecond, kills: 20, life: 4 * time.Second}.run(t)
		})
		t.Run(fmt.Sprint("quick hosts ", round), func(t *testing.T) {
			chaos{hosts: 4 + rand.IntN(30), pages: 600, delay: time.Duration(rand.IntN(10)) * time.Millisecond, kills: 20, life: time.Second}.run(t)
		})
	}
}
