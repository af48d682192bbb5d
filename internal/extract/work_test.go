package extract

import (
	"os"
	"strconv"
	"testing"
)

// A child of TestSoakWorkIsLinear reads a family, and how many units of it, from these.
const (
	workFamily = "AMBLE_WORK_FAMILY"
	workUnits  = "AMBLE_WORK_UNITS"
)

// TestWorkChild is the child. It does nothing when it runs as a test of its own.
func TestWorkChild(t *testing.T) {
	f, wanted := families()[os.Getenv(workFamily)]
	if !wanted {
		t.Skip("for TestSoakWorkIsLinear")
	}
	n, err := strconv.Atoi(os.Getenv(workUnits))
	if err != nil {
		t.Fatal(err)
	}
	f.read(t, f.text(n))
}
