//go:build soak

package crawl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestSoakKill kills a crawler 20 times at random moments, again and again for ten
// minutes, or for as long as AMBLE_SOAK says.
func TestSoakKill(t *testing.T) {
	length := 10 * time.Minute
	if text := os.Getenv("AMBLE_SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		must.True(t, err == nil, "%v", err)
	}
	end := time.Now().Add(length)
	for round := 0; time.Now().Before(end) && !t.Failed(); round++ {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			chaos{hosts: 4 + rand.IntN(30), pages: 600, delay: time.Duration(rand.IntN(10)) * time.Millisecond,
				kills: 20, life: time.Second}.run(t)
		})
	}
}

// TestSoakKillRecrawls kills a daemon that recrawls pages 100 times.
func TestSoakKillRecrawls(t *testing.T) { killRecrawls(t, 100) }

// TestSoakParkedWall: a wall that does not end parks its host, which is then probed once a day,
// also after restarts.
func TestSoakParkedWall(t *testing.T) {
	crawlThroughWall(t, 20*time.Hour, 1, 90*time.Second, 10*time.Minute, 30*time.Minute, 2*time.Hour)
}

// TestSoakLeaseModel is TestHeavyLeaseModel with more cases.
func TestSoakLeaseModel(t *testing.T) { checkLeaseModel(t, 300) }

// TestSoakPutModel is TestHeavyPutModel with more cases.
func TestSoakPutModel(t *testing.T) { checkPutModel(t, 300) }

// TestSoakLeaseChaos is TestHeavyLeaseChaos with more seeds.
func TestSoakLeaseChaos(t *testing.T) { checkLeaseChaos(t, 40) }

// TestSoakFetcherChaos is TestFetcherChaos with more hosts and pages.
func TestSoakFetcherChaos(t *testing.T) { checkFetcherChaos(t, 20, 50) }
