package arguments

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestIsRegistry(t *testing.T) {
	for host, want := range map[string]bool{
		"com": true, "co.uk": true, "github.io": false, "localhost": false, "a.com": false,
	} {
		assert.Equal(t, isRegistry(host), want, host)
	}
}
