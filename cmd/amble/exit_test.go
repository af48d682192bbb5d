package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

// TestExitCodes: damage of the database has a code of its own in whatever command it is found, so that nobody starts it
// again and again.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("no"), console.ExitProblem},
		{fmt.Errorf("read: %w", storage.ErrCorrupt), console.ExitDamaged},
		{fmt.Errorf("read: %w", storage.ErrTruncated), console.ExitDamaged},
		{console.Exit(console.ExitProblem, storage.ErrNotDatabase), console.ExitDamaged},
		{console.Exit(console.ExitInUse, storage.ErrCorrupt), console.ExitInUse},
		{config.Errors{}, console.ExitUsage},
		{console.Usagef("no"), console.ExitUsage},
	} {
		assert.Equal(t, exitCode(c.err), c.code, c.err, "exit code")
	}
}
