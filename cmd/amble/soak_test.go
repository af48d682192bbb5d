//go:build soak

package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestSoakChaos kills the program 20 times at random moments while it crawls hosts with a crawl
// delay of a second, again and again for ten minutes, or for as long as AMBLE_SOAK says.
func TestSoakChaos(t *testing.T) {
	length := 10 * time.Minute
	if text := os.Getenv("AMBLE_SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		must.True(t, err == nil, "%v", err)
	}
	end := time.Now().Add(length)
	for round := 0; time.Now().Before(end) && !t.Failed(); round++ {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			c := &chaos{hosts: 20, pages: 40, delay: time.Second, kills: 20, life: 4 * time.Second}
			c.run(t)
		})
	}
}
