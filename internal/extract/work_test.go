package extract

import (
	"os"
	"strconv"
	"testing"
)

// What a child of TestSoakWorkIsLinear reads: a family, and how many units of it.
const (
	workFamily = "AMBLE_WORK_FAMILY"
	workUnits  = "AMBLE_WORK_UNITS"
)

// TestWorkChild is the child: a test of its own only when it is asked to be one.
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
