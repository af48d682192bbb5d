package storage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/badsync"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
)

func writeStore(t tester, dir string, file []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, FileName), file, 0o644))
}

// TestMain lets the tests start themselves as a process that writes until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AMBLE_TEST_WRITER"); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Println("error:", err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// crashBatch returns the n-th batch of the writing process: ten new URLs on each of three hosts,
// and outcomes for those of the batch before.
func crashBatch(s *Store, n int) *Batch {
	var b Batch
	for host := range 3 {
		for i := range 10 {
			u := parse(panicker{}, fmt.Sprintf("https://host%d.example/%d/%d", host, n, i))
			b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
			if n > 0 {
				o := Outcome{State: Fetched, At: someTime}
				if i == 0 {
					o.State, o.Due = Retrying, someTime.Add(time.Duration(n)*time.Second)
				}
				b.Done = append(b.Done, Done{Host: HostID(host + 1), Ordinal: uint32(10*(n-1) + i), Outcome: o})
				b.Payloads = append(b.Payloads, crashPayload(HostID(host+1), uint32(10*(n-1)+i)))
			}
		}
	}
	b.Marks = map[string][]byte{"batch": fmt.Append(nil, n)}
	return &b
}

// crashPayload returns the payload of a URL. Those of one host are far apart, so that none is
// evicted.
func crashPayload(host HostID, ordinal uint32) Payload {
	return Payload{Host: host, Digest: uint64(ordinal+1) * 0x9e3779b97f4a7c15, SHA256: [32]byte{byte(ordinal)},
		Ordinal: ordinal, At: someTime}
}

// checkPayloads looks for the payloads of a number of batches.
func checkPayloads(t *testing.T, s *Store, batches int) {
	t.Helper()
	known := uint32(max(10*(batches-1), 0))
	for ordinal := range known {
		want := crashPayload(HostID(ordinal%3+1), ordinal)
		if got, ok, err := s.Payload(want.Host, want.Digest); got != want || !ok || err != nil {
			t.Fatalf("after %d batches, body %d is %+v, %t, %v", batches, ordinal, got, ok, err)
		}
	}
	beyond := crashPayload(1, known)
	_, ok, err := s.Payload(beyond.Host, beyond.Digest)
	must.True(t, !ok && err == nil, "after %d batches, there is the body of a later one, or %v", batches, err)
}

// panicker lets helpers of tests run in the writing process.
type panicker struct{}

func (panicker) Helper()                           {}
func (panicker) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicker) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (panicker) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// writeUntilKilled commits batch after batch and prints the number of each.
func writeUntilKilled(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	mark, err := s.Mark("batch")
	if err != nil {
		return err
	}
	n := 0
	if mark != nil {
		if _, err := fmt.Sscan(string(mark), &n); err != nil {
			return err
		}
		n++
	}
	for ; ; n++ {
		if _, err := s.Commit(crashBatch(s, n)); err != nil {
			return err
		}
		fmt.Println("committed", n)
	}
}

// TestKill kills a writing process at ten random moments. Each time the file opens, is sound, and
// holds all commits that the process printed.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		reported := killAfter(t, dir, rng.IntN(40))
		s := mustOpen(t, dir, Options{})
		checkClean(t, s)
		mark, err := s.Mark("batch")
		batches := -1
		if mark != nil {
			_, err = fmt.Sscan(string(mark), &batches)
		}
		must.True(t, err == nil && batches >= reported && batches <= reported+1,
			"the process reported batch %d, the store has %d, %v", reported, batches, err)
		got, want := s.Counters().URLs, uint64(30*(batches+1))
		must.True(t, got == want, "%d URLs after batch %d, want %d", got, batches, want)
		if got, want := s.Counters().Of(Queued), uint64(30); batches >= 0 && got != want {
			t.Fatalf("%d URLs queued after batch %d, want %d", got, batches, want)
		}
		checkPayloads(t, s, batches+1)
		mustClose(t, s)
	}
}

// killAfter runs the writing process until it has printed a number of commits, kills it, and
// returns the number of the last batch that it printed.
func killAfter(t *testing.T, dir string, commits int) (reported int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AMBLE_TEST_WRITER="+dir)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	reported = -1
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if _, err := fmt.Sscanf(lines.Text(), "committed %d", &reported); err != nil {
			t.Fatalf("the process says %q", lines.Text())
		}
		if n == commits {
			must.Do(t, cmd.Process.Kill())
		}
	}
	err := cmd.Wait()
	must.True(t, err != nil && strings.Contains(err.Error(), "killed"), "the process ended with %v", err)
	return reported
}

// TestPowerCut makes the files that a power cut in the middle of a commit can leave: any of its
// pages written, half written or missing, and the meta page missing or half written. Each opens at
// the commit before.
func TestPowerCut(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{NoSync: true})
	defer func() { mustClose(t, s) }()
	page := s.db.PageSize()
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 12 {
		before := readFile(t, s.Path())
		mustCommit(t, s, crashBatch(s, n))
		after := readFile(t, s.Path())
		for _, torn := range []bool{false, true} {
			cut := tear(rng, before, after, page)
			if torn { // half of the boltfile.Newest meta page
				for at := range 2 {
					copy(cut[at*page+boltfile.MetaOffset:][:boltfile.MetaSize/2], after[at*page+boltfile.MetaOffset:])
				}
			}
			copied := t.TempDir()
			writeStore(t, copied, cut)
			reopened := mustOpen(t, copied, Options{NoSync: true})
			checkClean(t, reopened)
			got, want := reopened.Counters().URLs, uint64(30*n)
			must.True(t, got == want, "cut in batch %d: %d URLs, want %d", n, got, want)
			checkPayloads(t, reopened, n)
			mustCommit(t, reopened, crashBatch(reopened, n))
			checkClean(t, reopened)
			mustClose(t, reopened)
		}
	}
}

// tear takes each page but the metas from one of two images of the file, or half of it from each.
func tear(rng *rand.Rand, before, after []byte, page int) []byte {
	cut := append(bytes.Clone(before), make([]byte, len(after)-len(before))...)
	for at := 2 * page; at < len(after); at += page {
		if n := rng.IntN(3) * page / 2; n > 0 {
			copy(cut[at:at+n], after[at:])
		}
	}
	return cut
}

// fill commits batches until one fails, and returns how many are committed.
func fill(t *testing.T, s *Store, from int) (n int, err error) {
	t.Helper()
	for n = from; n < from+100_000; n++ {
		if _, err := s.Commit(crashBatch(s, n)); err != nil {
			return n, err
		}
	}
	t.Fatal("the store never became full")
	return n, nil
}

// fullThenRoom fills a store until a commit fails for lack of space, twice, and checks that nothing
// is lost; then it makes room and checks that the store goes on.
func fullThenRoom(t *testing.T, s *Store, room func() *Store) {
	t.Helper()
	n, err := fill(t, s, 0)
	for range 2 {
		must.True(t, errors.Is(err, ErrNoSpace), "commit to a full store: %v", err)
		checkClean(t, s)
		got, want := s.Counters().URLs, uint64(30*n)
		must.True(t, got == want, "%d URLs, want %d", got, want)
		_, err = s.Commit(crashBatch(s, n))
	}
	must.True(t, n >= 5, "only %d batches fitted", n)
	s = room()
	for end := n + 50; n < end; n++ {
		mustCommit(t, s, crashBatch(s, n))
	}
	checkClean(t, s)
	got, want := s.Counters().URLs, uint64(30*n)
	must.True(t, got == want, "with room again: %d URLs, want %d", got, want)
	mustClose(t, s)
}

func TestMaxBytes(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{MaxBytes: 17 << 20, NoSync: true})
	ballast := weburl.Origin{Scheme: "http", Host: "ballast.example", Port: 80} // the file grows by 16 MiB at least
	mustCommit(t, s, &Batch{Policies: []Policy{{Origin: ballast, Record: make([]byte, 15<<20)}}})
	fullThenRoom(t, s, func() *Store {
		mustClose(t, s)
		return mustOpen(t, dir, Options{MaxBytes: 40 << 20, NoSync: true})
	})
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	defer badsync.MountTmpfs(t, dir, "size=3m")()
	ballast := filepath.Join(dir, "ballast")
	must.Do(t, os.WriteFile(ballast, make([]byte, 2<<20), 0o644))
	s := mustOpen(t, dir, Options{})
	fullThenRoom(t, s, func() *Store {
		must.Do(t, os.Remove(ballast))
		return s // the same: a crawl goes on without a restart
	})
}

// TestFullDiskAtCreation: nothing is left that a later open would refuse.
func TestFullDiskAtCreation(t *testing.T) {
	for free := range 8 {
		t.Run(fmt.Sprintf("pages free=%d", free), func(t *testing.T) {
			dir := t.TempDir()
			defer badsync.MountTmpfs(t, dir, "size=64k")()
			ballast := filepath.Join(dir, "ballast")
			for n := 16 - free; ; n-- {
				if os.WriteFile(ballast, make([]byte, n<<12), 0o644) == nil {
					break
				}
			}
			s, err := Open(dir, Options{})
			if err == nil {
				mustClose(t, s)
			} else if !errors.Is(err, ErrNoSpace) {
				t.Fatalf("open on a full disk: %v", err)
			}
			must.Do(t, os.Remove(ballast))
			mustClose(t, mustOpen(t, dir, Options{}))
		})
	}
}
