package storage

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What hosts asked for stands between the requests, and is found by who reads the ledger.
func TestLedgerWaits(t *testing.T) {
	dir := t.TempDir()
	l := mustLedger(t, dir, 100)
	at := someTime.Truncate(time.Millisecond)
	for _, w := range []Wait{
		{"a.example", at, time.Hour}, {"a.example", at.Add(time.Minute), time.Second}, // the one that ends last counts
		{"b.example", at, time.Millisecond + 1}, {"c.example", at, math.MaxInt64},
	} {
		if _, err := l.Append(start(1)); err != nil {
			t.Fatal(err)
		}
		if err := l.AppendWait(w); err != nil {
			t.Fatal(err)
		}
	}
	var places []uint64
	debt, err := ReadDebt(dir, 100, "boot", func(place uint64, s Start) { places = append(places, place) })
	if err != nil || debt.Everyone || len(debt.Hosts) != 1 || debt.End != l.Place() {
		t.Fatalf("debt %+v, %v", debt, err)
	}
	for host, want := range map[string]time.Duration{
		"a.example": time.Hour, "b.example": 2 * time.Millisecond, "c.example": math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		if got := debt.Waits[host]; got.Wait < want || got.Wait-want > time.Millisecond || !got.At.Equal(at) {
			t.Errorf("%s: %+v, want %v", host, got, want)
		}
	}
	if len(places) != 4 {
		t.Fatalf("%d requests were read", len(places))
	}
	for _, place := range places { // each place is where the ledger can be read from
		if rest, err := ReadDebt(dir, place, "boot", nil); err != nil || rest.Everyone {
			t.Errorf("from place %d: %+v, %v", place, rest, err)
		}
	}
}

func TestLedgerWaitsThatAreNone(t *testing.T) {
	const header = "amble-starts-1 0 boot\n"
	for _, line := range []string{"wait 1 a.example\n", "wait x a.example 5\n", "wait 1 a.example -5\n", "wait 1 a.example 0\n", "wait 1 a.example 5 more\n"} {
		debt, err := ReadDebt(writeLedger(t, header+line), 0, "boot", nil)
		if err != nil || !debt.Everyone || len(debt.Waits) > 0 {
			t.Errorf("%q: %+v, %v; want everyone", line, debt, err)
		}
	}
	torn := writeLedger(t, header+"wait 1 a.example 5")
	if debt, err := ReadDebt(torn, 0, "boot", nil); err != nil || debt.Everyone || len(debt.Waits) > 0 {
		t.Errorf("a torn line: %+v, %v", debt, err)
	}
	if _, err := os.Stat(filepath.Join(torn, LedgerName)); err != nil {
		t.Error(err)
	}
}

// TestWaitEndsNoSooner: what is read back never ends before what was written, whatever is lost below a millisecond.
func TestWaitEndsNoSooner(t *testing.T) {
	for _, nanoseconds := range []int64{0, 1, 14_781, 500_000, 999_999} {
		for _, wait := range []time.Duration{time.Second, time.Second + 1, time.Second + 999_999} {
			dir := t.TempDir()
			at := someTime.Add(time.Duration(nanoseconds))
			if err := mustLedger(t, dir, 0).AppendWait(Wait{Host: "a.example", At: at, Wait: wait}); err != nil {
				t.Fatal(err)
			}
			debt, err := ReadDebt(dir, 0, "boot", nil)
			got := debt.Waits["a.example"]
			if late := got.At.Add(got.Wait).Sub(at.Add(wait)); err != nil || late < 0 || late > 2*time.Millisecond {
				t.Errorf("a wait of %v from %d ns on ends %v late, %v", wait, nanoseconds, late, err)
			}
		}
	}
}
