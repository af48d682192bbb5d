//go:build !core

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestUnit: the systemd unit bounds what a fault can take of the machine, and no restart follows an exit that a restart
// does not help with.
func TestUnit(t *testing.T) {
	unit := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(
		read(t, "../../docs/service/amble.service"), -1) {
		unit[m[1]] = m[2]
	}
	for _, bound := range []string{"MemoryMax", "TasksMax", "LimitNOFILE", "TimeoutStopSec", "WatchdogSec"} {
		value := unit[bound]
		assert.True(t, value != "" && value != "infinity", "%s is %q", bound, value)
	}
	codes := strings.Fields(unit["RestartPreventExitStatus"])
	for _, code := range []int{console.ExitUsage, console.ExitInUse, console.ExitNoSeed, console.ExitRefused,
		console.ExitDamaged} {
		assert.True(t, slices.Contains(codes, fmt.Sprint(code)), "exit code %d restarts", code)
	}
}
