package arguments

import "testing"

func TestIsRegistry(t *testing.T) {
	for host, want := range map[string]bool{
		"com": true, "co.uk": true, "github.io": false, "localhost": false, "a.com": false,
	} {
		if got := isRegistry(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}
