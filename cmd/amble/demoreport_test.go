//go:build !core

package main

import (
	"runtime/debug"
	"testing"
)

// TestCommandOf: the program that go run deletes is not named.
func TestCommandOf(t *testing.T) {
	const path = "example.org/amble/cmd/amble"
	devel, released := &debug.BuildInfo{Path: path, Main: debug.Module{Version: "(devel)"}},
		&debug.BuildInfo{Path: path, Main: debug.Module{Version: "v1.2.3"}}
	for _, tt := range []struct {
		file string
		info *debug.BuildInfo
		want string
	}{
		{"./bin/amble", devel, "./bin/amble"},
		{"/usr/local/bin/amble", nil, "/usr/local/bin/amble"},
		{"/tmp/go-build123/b001/exe/amble", devel, "go run " + path},
		{"/tmp/go-build123/b001/exe/amble", released, "go run " + path + "@v1.2.3"},
		{"/tmp/go-build123/b001/exe/amble", nil, "/tmp/go-build123/b001/exe/amble"},
	} {
		if got := commandOf(tt.file, tt.info); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.file, got, tt.want)
		}
	}
}
