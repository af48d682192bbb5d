//go:build cluster

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestClusterScripts runs the scripts that start several nodes, which take too long for every change.
func TestClusterScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cluster",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}
