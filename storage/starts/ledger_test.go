package starts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/badsync"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

func writeLedger(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o644))
	return dir
}

func TestReadUncommitted(t *testing.T) {
	const (
		header = "amble-starts-1 1000 boot-a\n"
		first  = "1790000000000 192.0.2.1 a.example 1500\n"
		second = "1790000001000 - [2001:db8::1] -1\n"
		third  = "1790000002000 192.0.2.1 a.example 500\n"
		all    = uint64(len(first) + len(second) + len(third))
	)
	unknown := time.Duration(-1) * time.Millisecond
	everybody := map[string]time.Duration{"a.example": 1500 * time.Millisecond, "[2001:db8::1]": unknown}
	tests := []struct {
		name      string
		file      string
		committed uint64
		boot      string
		everyone  bool
		hosts     map[string]time.Duration
		end       uint64
	}{
		{"nothing committed", header + first + second + third, 1000, "boot-a", false, everybody, 1000 + all},
		{"all committed", header + first + second + third, 1000 + all, "boot-a", false, nil, 1000 + all},
		{"mark in the middle", header + first + second + third, 1000 + uint64(len(first)+len(second)), "boot-a", false,
			map[string]time.Duration{"a.example": 500 * time.Millisecond}, 1000 + all},
		{"the largest delay counts, whatever the order", header + third + first, 1000, "boot-a", false,
			map[string]time.Duration{"a.example": 1500 * time.Millisecond}, 1000 + uint64(len(third)+len(first))},
		{"torn last line", header + first + third[:20], 1000, "boot-a", false,
			map[string]time.Duration{"a.example": 1500 * time.Millisecond}, 1000 + uint64(len(first)) + 20},
		{"another boot", header + first, 1000, "boot-b", true,
			map[string]time.Duration{"a.example": 1500 * time.Millisecond}, 1000 + uint64(len(first))},
		{"boot not known now", header + first, 1000, "", true,
			map[string]time.Duration{"a.example": 1500 * time.Millisecond}, 1000 + uint64(len(first))},
		{"boot not known then", "amble-starts-1 1000 -\n" + first, 1000, "", true,
			map[string]time.Duration{"a.example": 1500 * time.Millisecond}, 1000 + uint64(len(first))},
		{"trimmed beyond the mark", header + first, 999, "boot-a", true, nil, 1000 + uint64(len(first))},
		{"a new database with an old ledger", header + first, 0, "boot-a", true, nil,
			1000 + uint64(len(first))},
		{"cut before the mark", header + first, 5000, "boot-a", true, nil, 5000},
		{"mark inside a line", header + first + third, 1000 + uint64(len(first)) + 25, "boot-a", true, nil,
			1000 + uint64(len(first)+len(third))},
		{"more than a note", header + "1 - a.example 5 note more\n", 1000, "boot-a", true, nil, 1026},
		{"header only", header, 1000, "boot-a", false, nil, 1000},
		{"header without a line end", strings.TrimSpace(header), 1000, "boot-a", false, nil, 1000},
		{"empty", "", 0, "boot-a", true, nil, 0},
		{"garbage", "\x00\x01\x02 garbage\n" + first, 7, "boot-a", true, nil, uint64(len(first))},
		{"garbage without an end", strings.Repeat("x", 200_000), 7, "boot-a", true, nil, 200_000 - 64<<10},
		{"offset out of range", "amble-starts-1 99999999999999999999 boot-a\n" + first, 7, "boot-a", true, nil,
			uint64(len(first))},
		{"a line that is not ours", header + first + "oops\n" + third, 1000, "boot-a", true,
			map[string]time.Duration{"a.example": 1500 * time.Millisecond},
			1000 + uint64(len(first)+len("oops\n")+len(third))},
		{"a delay that is no number", header + "1 - a.example soon\n", 1000, "boot-a", true, nil, 1019},
		{"a delay too large", header + "1 - a.example 9223372036854775807\n", 1000, "boot-a", true, nil, 1034},
		{"a delay too small", header + "1 - a.example -9223372036854775807\n", 1000, "boot-a", true, nil, 1035},
		{"an endless line", header + strings.Repeat("x", 200_000) + "\n", 1000, "boot-a", true, nil, 201_001},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			uncommitted, err := Read(writeLedger(t, test.file), test.committed, test.boot, nil)
			assert.True(t, err == nil && uncommitted.Everyone == test.everyone &&
				maps.Equal(uncommitted.Hosts, test.hosts) && uncommitted.End == test.end,
				"uncommitted requests are %+v, %v, want everyone %t, hosts %v, end %d", uncommitted, err, test.everyone,
				test.hosts, test.end)
		})
	}
}

// A process that meant to end is told from one that did not, and that from the end of the machine.
func TestReadUncommittedOfADeath(t *testing.T) {
	const (
		header = "amble-starts-1 0 boot\n"
		first  = "1790000000000 192.0.2.1 a.example 1500\n"
		wait   = "wait 1790000001000 a.example 60000\n"
		end    = "end 1790000002000\n"
	)
	for _, test := range []struct {
		name, file, boot string
		died, ended      bool
	}{
		{"killed", header + first, "boot", true, false},
		{"killed before the first request", header, "boot", true, false},
		{"killed while it wrote a line", header + first + "17900", "boot", true, false},
		{"ended", header + first + end, "boot", false, true},
		{"ended without a request", header + end, "boot", false, true},
		{"killed while it ended", header + first + end + wait + wait, "boot", false, true},
		{"killed while it wrote a wait at its end", header + first + end + wait[:9], "boot", false, true},
		{"killed while it wrote its end", header + first + end[:5], "boot", true, false},
		{"no end", header + first + "end soon\n", "boot", true, false},
		{"killed with the machine", header + first, "other", false, false},
		{"ended, and then the machine", header + first + end, "other", false, true},
		{"a system that names no boots", "amble-starts-1 0 -\n" + first, "", true, false},
		{"a long ledger", header + strings.Repeat(first, 5000) + end, "boot", false, true},
		{"no ledger", "garbage\n", "boot", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			uncommitted, err := Read(writeLedger(t, test.file), 0, test.boot, nil)
			assert.True(t, err == nil && uncommitted.Died == test.died && uncommitted.Ended == test.ended,
				"died %v, ended %v, %v; want %v, %v", uncommitted.Died, uncommitted.Ended, err, test.died, test.ended)
			assert.True(t, !strings.Contains(test.file, end) || uncommitted.Everyone == (test.boot == "other"),
				"every host is held: %v", uncommitted.Everyone)
		})
	}
}

func TestLedgerAppendEnd(t *testing.T) {
	dir := t.TempDir()
	l := mustLedger(t, dir, 100)
	must.Get(l.Append(start(1)))(t)
	must.Do(t, l.AppendEnd(someTime))
	must.Do(t, l.AppendWait(Wait{Host: "a.example", At: someTime, Wait: time.Minute}))
	var starts int
	uncommitted, err := Read(dir, 100, "boot", func(uint64, Start) { starts++ })
	assert.True(t, err == nil && uncommitted.Ended && !uncommitted.Died && !uncommitted.Everyone && starts == 1 &&
		len(uncommitted.Waits) == 1 && uncommitted.End == l.Offset(), "%+v, %v, %d requests", uncommitted, err, starts)
}

func TestReadUncommittedWithoutLedger(t *testing.T) {
	for _, committed := range []uint64{0, 10} {
		uncommitted, err := Read(t.TempDir(), committed, "boot", nil)
		assert.True(t, err == nil && uncommitted.Everyone == (committed > 0) && uncommitted.End == committed,
			"committed %d: %+v, %v", committed, uncommitted, err)
	}
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, FileName), 0o755))
	if uncommitted, err := Read(dir, 5, "boot", nil); err == nil && !uncommitted.Everyone {
		t.Errorf("a directory with the ledger's name holds no host: %+v", uncommitted)
	}
}

func mustLedger(t *testing.T, dir string, base uint64) *Ledger {
	t.Helper()
	l := must.Get(Open(dir, "boot", base))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func start(n int) Start {
	return Start{Host: fmt.Sprintf("host%d.example", n), Address: "192.0.2.1", At: someTime,
		Delay: time.Duration(n) * time.Millisecond}
}

func TestLedgerAppend(t *testing.T) {
	dir := t.TempDir()
	l := mustLedger(t, dir, 100)
	var offsets []uint64
	for n := range 5 {
		before := l.Offset()
		offset, err := l.Append(start(n))
		must.True(t, err == nil && offset == before && offset < l.Offset(),
			"append: offset %d, %v; %d before, %d after", offset, err, before, l.Offset())
		offsets = append(offsets, offset)
	}
	must.Get(l.Append(Start{Host: "unknown.example", At: someTime, Delay: -time.Hour}))(t)
	must.Get(l.Append(Start{Host: "precise.example", At: someTime, Delay: time.Millisecond + 1}))(t)
	uncommitted, err := Read(dir, offsets[3], "boot", nil)
	want := map[string]time.Duration{
		"host3.example": 3 * time.Millisecond, "host4.example": 4 * time.Millisecond,
		"unknown.example": -time.Millisecond, "precise.example": 2 * time.Millisecond, // never rounded down
	}
	if err != nil || uncommitted.Everyone || !maps.Equal(uncommitted.Hosts, want) || uncommitted.End != l.Offset() {
		t.Errorf("uncommitted requests are %+v, %v, want %v and end %d", uncommitted, err, want, l.Offset())
	}
	next := mustLedger(t, dir, uncommitted.End)
	assert.Equal(t, next.Offset(), uncommitted.End, "the next ledger begins at")
	if uncommitted, err := Read(dir, uncommitted.End, "boot", nil); err != nil || uncommitted.Everyone ||
		len(uncommitted.Hosts) > 0 {
		t.Errorf("a new ledger has uncommitted requests %+v, %v", uncommitted, err)
	}
}

// TestReadUncommittedEach: every line is read as it was written, from the committed offset on, also
// after a restart of the machine.
func TestReadUncommittedEach(t *testing.T) {
	dir := t.TempDir()
	l := mustLedger(t, dir, 700)
	want := map[uint64]Start{}
	var first uint64
	for n := range 4 {
		s := start(n)
		s.At = time.UnixMilli(1_790_000_000_000 + int64(n))
		switch n {
		case 1:
			s.Address = ""
		case 2:
			s.Note = "p,3,http://host2.example/a?b=c"
		}
		offset := must.Get(l.Append(s))(t)
		if n == 0 {
			continue
		} else if n == 1 {
			first = offset
		}
		want[offset] = s
	}
	for _, boot := range []string{"boot", "another"} {
		got := map[uint64]Start{}
		_, err := Read(dir, first, boot, func(offset uint64, s Start) { got[offset] = s })
		assert.True(t, err == nil && maps.Equal(got, want), "%s: %v, %v, want %v", boot, got, err, want)
	}
}

// TestLedgerTrim appends with a window of requests in flight: none of them is ever lost, offsets go
// on, and the file stays small.
func TestLedgerTrim(t *testing.T) {
	const window = 300
	dir := t.TempDir()
	l := mustLedger(t, dir, 0)
	var open []uint64
	largest := int64(0)
	for n := range 300_000 {
		offset := must.Get(l.Append(start(n)))(t)
		if open = append(open, offset); len(open) > window {
			open = open[1:]
		}
		if n%1000 != 0 {
			continue
		}
		must.Do(t, l.Trim(open[0]))
		largest = max(largest, l.size)
		if n%50_000 == 0 && n > 0 {
			uncommitted, err := Read(dir, open[0], "boot", nil)
			must.True(t, err == nil && !uncommitted.Everyone && len(uncommitted.Hosts) == window &&
				uncommitted.End == l.Offset(),
				"after %d requests %d hosts have uncommitted ones (everyone: %t), %v, want %d", n,
				len(uncommitted.Hosts), uncommitted.Everyone, err, window)
		}
	}
	assert.True(t, l.base != 0 && largest <= ledgerRotate+1<<20,
		"the file begins at offset %d and became %d bytes large", l.base, largest)
	assert.AtLeast(t, l.Offset(), 10<<20, "offset it went back")
}

func TestLedgerTrimKeepsWhatIsOpen(t *testing.T) {
	dir := t.TempDir()
	l := mustLedger(t, dir, 50)
	first, err := l.Append(start(0))
	for n := 1; err == nil && l.size < ledgerRotate+1000; n++ {
		_, err = l.Append(start(n))
	}
	must.Do(t, err)
	for _, committed := range []uint64{0, 49, first, l.Offset() + 1, 1<<64 - 1} {
		err := l.Trim(committed)
		assert.True(t, err == nil && l.base == 50, "trim at offset %d: %v, base %d", committed, err, l.base)
	}
	end := l.Offset()
	if err := l.Trim(end); err != nil || l.base != end || l.Offset() != end {
		t.Errorf("trim of all: %v, base %d, offset %d, want %d", err, l.base, l.Offset(), end)
	}
}

func TestLedgerAppendFails(t *testing.T) {
	dir := t.TempDir()
	defer badsync.MountTmpfs(t, dir, "size=64k")()
	ballast := filepath.Join(dir, "ballast")
	err := os.WriteFile(ballast, make([]byte, 32<<10), 0o644)
	l := mustLedger(t, dir, 0)
	n := 0
	for ; err == nil; n++ {
		_, err = l.Append(start(n))
	}
	must.True(t, errors.Is(err, storage.ErrNoSpace), "append on a full disk: %v", err)
	whole := readFile(t, filepath.Join(dir, FileName))
	if !bytes.HasSuffix(whole, []byte("\n")) || bytes.Count(whole, []byte("\n")) != n {
		t.Errorf("%d lines after %d appends (the last one failed); the file ends in %q",
			bytes.Count(whole, []byte("\n")), n, whole[len(whole)-10:])
	}
	assert.Is(t, l.begin(l.Offset(), make([]byte, 64<<10)), storage.ErrNoSpace, "a new file on a full disk")
	assert.True(t, bytes.Equal(readFile(t, filepath.Join(dir, FileName)), whole),
		"a failed change of files changed the ledger")
	must.Do(t, os.Remove(ballast))
	must.Do(t, l.begin(l.Offset(), nil))
	if _, err := l.Append(start(n)); err != nil {
		t.Errorf("append with room again: %v", err)
	}
}

// TestLedgerWaits: waits are between the requests and are read with them.
func TestLedgerWaits(t *testing.T) {
	dir := t.TempDir()
	l := mustLedger(t, dir, 100)
	at := someTime.Truncate(time.Millisecond)
	for _, w := range []Wait{
		{"a.example", at, time.Hour}, {"a.example", at.Add(time.Minute), time.Second}, // the one that ends last counts
		{"b.example", at, time.Millisecond + 1}, {"c.example", at, math.MaxInt64},
	} {
		must.Get(l.Append(start(1)))(t)
		must.Do(t, l.AppendWait(w))
	}
	var offsets []uint64
	uncommitted, err := Read(dir, 100, "boot",
		func(offset uint64, s Start) { offsets = append(offsets, offset) })
	must.True(t, err == nil && !uncommitted.Everyone && len(uncommitted.Hosts) == 1 && uncommitted.End == l.Offset(),
		"uncommitted requests %+v, %v", uncommitted, err)
	for host, want := range map[string]time.Duration{
		"a.example": time.Hour, "b.example": 2 * time.Millisecond,
		"c.example": math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		if got := uncommitted.Waits[host]; got.Wait < want || got.Wait-want > time.Millisecond || !got.At.Equal(at) {
			t.Errorf("%s: %+v, want %v", host, got, want)
		}
	}
	must.True(t, len(offsets) == 4, "%d requests were read", len(offsets))
	for _, offset := range offsets { // each offset is where the ledger can be read from
		rest, err := Read(dir, offset, "boot", nil)
		assert.True(t, err == nil && !rest.Everyone, "from offset %d: %+v, %v", offset, rest, err)
	}
}

func TestLedgerWaitsThatAreNone(t *testing.T) {
	const header = "amble-starts-1 0 boot\n"
	for _, line := range []string{"wait 1 a.example\n", "wait x a.example 5\n", "wait 1 a.example -5\n",
		"wait 1 a.example 0\n", "wait 1 a.example 5 more\n"} {
		uncommitted, err := Read(writeLedger(t, header+line), 0, "boot", nil)
		assert.True(t, err == nil && uncommitted.Everyone && len(uncommitted.Waits) == 0, "%q: %+v, %v; want everyone",
			line, uncommitted, err)
	}
	torn := writeLedger(t, header+"wait 1 a.example 5")
	uncommitted, err := Read(torn, 0, "boot", nil)
	assert.True(t, err == nil && !uncommitted.Everyone && len(uncommitted.Waits) <= 0, "a torn line: %+v, %v",
		uncommitted, err)
	must.Get(os.Stat(filepath.Join(torn, FileName)))(t)
}

// TestWaitEndsNoSooner: a wait that is read never ends before the one that was written, though
// fractions of a millisecond are lost.
func TestWaitEndsNoSooner(t *testing.T) {
	for _, nanoseconds := range []int64{0, 1, 14_781, 500_000, 999_999} {
		for _, wait := range []time.Duration{time.Second, time.Second + 1, time.Second + 999_999} {
			dir := t.TempDir()
			at := someTime.Add(time.Duration(nanoseconds))
			must.Do(t, mustLedger(t, dir, 0).AppendWait(Wait{Host: "a.example", At: at, Wait: wait}))
			uncommitted, err := Read(dir, 0, "boot", nil)
			got := uncommitted.Waits["a.example"]
			if late := got.At.Add(got.Wait).Sub(at.Add(wait)); err != nil || late < 0 || late > 2*time.Millisecond {
				t.Errorf("a wait of %v from %d ns on ends %v late, %v", wait, nanoseconds, late, err)
			}
		}
	}
}

// TestGroup: the lines of a group are in the file from Flush on, at the offsets that they were given; a group that
// cannot be written leaves the file as it is.
func TestGroup(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, "boot", 100)
	must.Do(t, err)
	defer l.Close()
	offsets := []uint64{l.Add(start(1)), l.Add(start(2))}
	var read []uint64
	each := func(offset uint64, _ Start) { read = append(read, offset) }
	if _, err := Read(dir, 0, "boot", each); err != nil || len(read) > 0 {
		t.Errorf("before the group is written the file has %d lines: %v", len(read), err)
	}
	must.Do(t, l.Flush())
	if _, err := Read(dir, 100, "boot", each); err != nil || !slices.Equal(read, offsets) {
		t.Errorf("lines at %d, want %d: %v", read, offsets, err)
	}
	before := l.Offset()
	l.Add(start(3))
	file := l.f
	if l.f, err = os.Open(filepath.Join(dir, FileName)); err != nil { // which cannot be written
		t.Fatal(err)
	}
	if err := l.Flush(); err == nil || l.Offset() != before {
		t.Errorf("a group that cannot be written: %v, offset %d, was %d", err, l.Offset(), before)
	}
	_ = l.f.Close()
	l.f = file
	assert.Returns(l.Append(start(4)))(t, before, "the next line is at")
}
