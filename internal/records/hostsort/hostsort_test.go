package hostsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// testRoom returns a room whose runs are always in files.
func testRoom(t *testing.T, o Options) (*Workspace, string) {
	t.Helper()
	dir := t.TempDir()
	pool := must.Get(spool.Open(spool.Options{Dir: dir, Above: spool.HeadBytes}))(t)
	return NewWorkspace(pool, o), dir
}

// wantEmpty fails unless nothing is held and no file is left.
func wantEmpty(t *testing.T, r *Workspace, dir string) {
	t.Helper()
	if memory, disk := r.Held(); memory != 0 || disk != 0 || r.pool.Files() != 0 || r.pool.Held() != 0 {
		t.Errorf("%d bytes of memory, %d of disk space, %d files and %d bytes of the spool are held", memory, disk,
			r.pool.Files(), r.pool.Held())
	}
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) == 0, "files are left: %v, %v", left, err)
}

// entry is a record of a test with its host.
type entry struct{ host, text string }

// sortPlainly is what a Sorter should do.
func sortPlainly(all []entry) []entry {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b entry) int {
		return strings.Compare(weburl.ReverseHost(a.host), weburl.ReverseHost(b.host))
	})
	return all
}

// take reads all records of a sorter.
func take(t *testing.T, s *Sorter) (all []entry) {
	t.Helper()
	sorted := must.Get(s.Sorted())(t)
	for {
		host, record, err := sorted.Next()
		if err == io.EOF {
			return all
		}
		must.Do(t, err)
		all = append(all, entry{host, string(record)})
	}
}

func mustAdd(t *testing.T, s *Sorter, e entry) {
	t.Helper()
	must.Do(t, s.Add(e.host, []byte(e.text)))
}

func mustReset(t *testing.T, s *Sorter) {
	t.Helper()
	must.Do(t, s.Reset())
}

// TestSorter compares sorters with a plain sort: in memory and in runs, of few and of many hosts, of
// short and of long records, used more than once.
func TestSorter(t *testing.T) {
	for _, test := range []struct {
		hosts, records, longest int
		memory                  int64
		runs                    bool
	}{
		{1, 0, 10, 1 << 20, false},
		{1, 5_000, 40, 1 << 30, false},
		{300, 20_000, 40, 0, true},
		{20_000, 20_000, 40, 1 << 20, true},
		{50, 300, MaxRecord, 1 << 20, true},
		{3, 40_000, 60, 256 << 10, true},
	} {
		t.Run(fmt.Sprintf("%d of %d", test.records, test.hosts), func(t *testing.T) {
			room, dir := testRoom(t, Options{Memory: test.memory, Disk: 1 << 30})
			s := room.NewSorter(false)
			for round := range 2 {
				random := rand.New(rand.NewPCG(uint64(round), uint64(test.hosts)))
				var all []entry
				for n := range test.records {
					e := entry{host: fmt.Sprintf("h%d.test", random.IntN(test.hosts)), text: fmt.Sprint(n, " ")}
					e.text += strings.Repeat("x", random.IntN(test.longest-len(e.text)))
					all = append(all, e)
					mustAdd(t, s, e)
					if memory, disk := room.Held(); memory > test.memory || disk > 1<<30 {
						t.Fatalf("%d bytes of memory and %d of disk space are held", memory, disk)
					}
				}
				assert.Slice(t, take(t, s), sortPlainly(all), "round", round, "records in another order than")
				assert.True(t, !s.Full() && (len(s.runs) > 0) == test.runs, "%d runs, full: %t", len(s.runs), s.Full())
				mustReset(t, s)
				wantEmpty(t, room, dir)
			}
		})
	}
}

// TestFull: a sorter that can have neither memory nor disk space says that it is full, takes what
// comes all the same, and loses nothing.
func TestFull(t *testing.T) {
	full := errors.New("no room")
	for name, test := range map[string]struct {
		inMemory bool
		o        Options
		runs     int
	}{
		"in memory only":     {true, Options{Memory: 1 << 20, Disk: 1 << 30}, 0},
		"no disk space":      {false, Options{Memory: 1 << 20}, 0},
		"disk space for one": {false, Options{Memory: 1 << 20, Disk: 3 << 19}, 1},
		"a full disk":        {false, Options{Memory: 1 << 20, Disk: 1 << 30, Check: func() error { return full }}, 0},
		"many runs":          {false, Options{Memory: 0, Disk: 1 << 30}, maxRuns},
	} {
		t.Run(name, func(t *testing.T) {
			room, dir := testRoom(t, test.o)
			s := room.NewSorter(test.inMemory)
			var all []entry
			for n := 0; !s.Full() || n%100 != 0; n++ {
				e := entry{fmt.Sprintf("h%d.test", n*7919%101), fmt.Sprint(n)}
				all = append(all, e)
				mustAdd(t, s, e)
			}
			assert.Equal(t, len(s.runs), test.runs, "runs")
			assert.Slice(t, take(t, s), sortPlainly(all), "records are lost or in another order")
			mustReset(t, s)
			wantEmpty(t, room, dir)
		})
	}
}

// TestRoomIsShared: sorters share the memory, and each can sort without any of it.
func TestRoomIsShared(t *testing.T) {
	const memory = 1 << 20
	room, dir := testRoom(t, Options{Memory: memory, Disk: 1 << 30})
	sorters := make([]*Sorter, 5)
	all := make([][]entry, len(sorters))
	for i := range sorters {
		sorters[i] = room.NewSorter(false)
	}
	for n := range 100_000 {
		i := n * 31 % 7 % len(sorters)
		e := entry{fmt.Sprintf("h%d.test", n%57), fmt.Sprint(i, " ", n)}
		all[i] = append(all[i], e)
		mustAdd(t, sorters[i], e)
		held, _ := room.Held()
		must.True(t, held <= memory, "%d bytes are held", held)
	}
	for i, s := range sorters {
		if got := take(t, s); !slices.Equal(got, sortPlainly(all[i])) {
			t.Errorf("sorter %d: %d of %d records, or another order", i, len(got), len(all[i]))
		}
		mustReset(t, s)
	}
	wantEmpty(t, room, dir)
}

// TestNoDirectory: the error of a run that cannot be written says what was to be done, and nothing
// is held after it.
func TestNoDirectory(t *testing.T) {
	room, dir := testRoom(t, Options{Disk: 1 << 30})
	must.Do(t, os.RemoveAll(dir))
	s := room.NewSorter(false)
	var err error
	for n := 0; err == nil && n < 100_000; n++ {
		err = s.Add("a.test", []byte(fmt.Sprint(n)))
	}
	assert.True(t, errors.Is(err, os.ErrNotExist) && strings.HasPrefix(err.Error(), "sort by host: "),
		"the error is %v", err)
	mustReset(t, s)
	if memory, disk := room.Held(); memory != 0 || disk != 0 || room.pool.Files() != 0 {
		t.Errorf("%d bytes of memory, %d of disk space and %d files are held", memory, disk, room.pool.Files())
	}
}

// TestRecordTooLong: a record that no run could hold is refused.
func TestRecordTooLong(t *testing.T) {
	room, _ := testRoom(t, DefaultOptions())
	s := room.NewSorter(false)
	assert.True(t, s.Add("a.test", make([]byte, MaxRecord+1)) != nil, "a record that is too long is taken")
	mustAdd(t, s, entry{"a.test", strings.Repeat("x", MaxRecord)})
	got := take(t, s)
	assert.True(t, len(got) == 1 && len(got[0].text) == MaxRecord, "%d records", len(got))
	mustReset(t, s)
}

// TestDamagedRun: a run that does not hold what was written is an error, not a shorter list.
func TestDamagedRun(t *testing.T) {
	t.Run("half of it", func(t *testing.T) { readDamaged(t, func(b []byte) []byte { return b[:len(b)/2] }) })
	t.Run("none of it", func(t *testing.T) { readDamaged(t, func(b []byte) []byte { return nil }) })
}

func readDamaged(t *testing.T, damage func([]byte) []byte) {
	t.Helper()
	room, _ := testRoom(t, Options{Disk: 1 << 30})
	s := room.NewSorter(false)
	for n := 0; len(s.runs) == 0; n++ {
		mustAdd(t, s, entry{fmt.Sprintf("h%d.test", n%50), fmt.Sprint(n)})
	}
	w := room.pool.NewWriter(0)
	all, err := io.ReadAll(s.runs[0].NewReader())
	if err == nil {
		_, err = w.Write(damage(all))
	}
	must.Do(t, errors.Join(err, s.runs[0].Close()))
	s.runs[0] = w.Content()
	sorted, err := s.Sorted()
	for err == nil {
		_, _, err = sorted.Next()
	}
	assert.Is(t, err, errDamaged, "the error")
	mustReset(t, s)
}

// readRun reads a run to its end or its first error.
func readRun(b []byte, each func(host string, record []byte)) error {
	r := newRunReader(bytes.NewReader(b))
	for {
		host, count, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for range count {
			record, err := r.record()
			if err != nil {
				return err
			}
			each(host, record)
		}
	}
}

// FuzzRun reads anything as a run. What is read without an error is written again and read as the
// same.
func FuzzRun(f *testing.F) {
	run := []byte("\x06test.a\x02\x03one\x03two\x06test.b\x01\x00")
	f.Add(run)
	f.Add(run[:10])
	f.Add(binary.AppendUvarint(nil, 1<<62))
	f.Add([]byte{1, 'a', 0xff, 0xff, 0xff, 0xff, 0x7f, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var first []entry
		if readRun(b, func(host string, record []byte) { first = append(first, entry{host, string(record)}) }) != nil {
			return
		}
		w := newRunWriter(nil)
		for i := 0; i < len(first); {
			end := i
			for end < len(first) && first[end].host == first[i].host {
				end++
			}
			w.group(first[i].host, end-i)
			for ; i < end; i++ {
				w.record([]byte(first[i].text))
			}
		}
		c := must.Get(w.content())(t)
		written, _ := c.Bytes()
		var again []entry
		if err := readRun(written, func(host string, record []byte) {
			again = append(again, entry{host, string(record)})
		}); err != nil || !slices.Equal(first, again) {
			t.Fatalf("%v: %q, at first %q", err, again, first)
		}
	})
}

// TestNoSpaceError: a disk that is full when a run is written makes the sorter full.
func TestNoSpaceError(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT, &spool.Error{Err: &os.PathError{Err: syscall.ENOSPC}}} {
		assert.True(t, isFullDisk(err), "%v does not count as a full disk", err)
	}
	assert.True(t, !isFullDisk(os.ErrPermission), "a file that may not be written counts as a full disk")
}
