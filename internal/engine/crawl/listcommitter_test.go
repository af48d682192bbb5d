package crawl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// noFingerprints is a store whose fingerprints nobody compares.
type noFingerprints struct{}

func (noFingerprints) Fingerprint(u weburl.URL) uint64 { return uint64(len(u.String())) }

// recordedCommits keep what is committed. Several goroutines may commit.
type recordedCommits struct {
	mu      sync.Mutex
	batches [][]storage.Found
	fail    int           // the number of the commit that fails; 0: none does
	changed int64         // of each
	took    time.Duration // each
}

var errCommit = errors.New("the commit failed")

func (r *recordedCommits) commit(_ context.Context, a *addition) (added, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batches = append(r.batches, slices.Clone(a.found)); len(r.batches) == r.fail {
		return added{}, errCommit
	}
	return added{results: make([]storage.InsertResult, len(a.found)), changed: r.changed, took: r.took}, nil
}

func (r *recordedCommits) all() []storage.Found { return slices.Concat(r.batches...) }

// testSorter returns a sorter whose runs are in files, and what holds its memory and files.
func testSorter(t *testing.T, o hostsort.Options) (*hostsort.Sorter, *hostsort.Room) {
	t.Helper()
	pool := must.Get(spool.Open(spool.Options{Dir: t.TempDir(), Above: spool.HeadBytes}))(t)
	room := hostsort.NewRoom(pool, o)
	return room.NewSorter(false), room
}

// TestHeavyHostOrder: a list of any length is committed once, host by host, in the order of the list
// within a host, in batches of bounded size; memory and files are given back.
func TestHeavyHostOrder(t *testing.T) {
	t.Parallel()
	const urls, hosts = 60_000, 400
	sorter, room := testSorter(t, hostsort.Options{Memory: 256 << 10, Disk: 1 << 30})
	commits := &recordedCommits{changed: 1 << 20, took: time.Millisecond}
	h := listCommitter{store: noFingerprints{}, sorter: sorter, commit: commits.commit}
	for n := range urls {
		u := mustParse(fmt.Sprintf("https://h%d.test:8443/%d", rand.IntN(hosts), n))
		must.Do(t, h.take(&listItem{Found: storage.Found{URL: u, Depth: 7}, index: n}))
	}
	if _, disk := room.Held(); disk == 0 {
		t.Error("nothing is on disk")
	}
	base := storage.Found{ViaHost: 3, ViaOrdinal: 4, At: time.Unix(1e9, 0)}
	counted, largest := 0, 0
	err := h.commitAll(t.Context(), base, func(p *hostBatch) {
		largest = max(largest, len(p.found))
		for i := range p.found {
			if f := &p.found[i]; f.URL.RequestURI() != fmt.Sprint("/", p.indexes[i]) || f.Depth != 7 ||
				f.ViaHost != 3 || f.ViaOrdinal != 4 || f.At != base.At || f.Fingerprint != uint64(len(f.URL.String())) {
				t.Fatalf("%+v has the index %d", f, p.indexes[i])
			}
		}
		counted += len(p.found)
	})
	if err != nil || counted != urls || largest > 20_000 {
		t.Errorf("%d URLs, %d in one batch, %v", counted, largest, err)
	}
	all := commits.all()
	left := make(map[string]bool)
	for i := 1; i < len(all); i++ {
		before, this := all[i-1].URL, all[i].URL
		switch {
		case before.Host() != this.Host():
			left[before.Host()] = true
		case pathNumber(t, before) >= pathNumber(t, this):
			t.Fatalf("%s comes after %s", this, before)
		}
		if left[this.Host()] {
			t.Fatalf("%s comes in two parts", this.Host())
		}
	}
	if memory, disk := room.Held(); memory != 0 || disk != 0 {
		t.Errorf("%d bytes of memory and %d of disk space are held", memory, disk)
	}
}

// pathNumber returns the number that is the path of a URL.
func pathNumber(t *testing.T, u weburl.URL) int {
	t.Helper()
	return must.Get(strconv.Atoi(u.RequestURI()[1:]))(t)
}

// TestHostOrderOfLongURLs: a batch is bounded in bytes too.
func TestHostOrderOfLongURLs(t *testing.T) {
	t.Parallel()
	sorter, _ := testSorter(t, hostsort.Options{Memory: 64 << 20})
	commits := &recordedCommits{}
	h := listCommitter{store: noFingerprints{}, sorter: sorter, commit: commits.commit}
	for n := range 6_000 {
		u := mustParse(fmt.Sprintf("https://a.test/%d/%s", n, strings.Repeat("x", 1900)))
		must.Do(t, h.take(&listItem{Found: storage.Found{URL: u}}))
	}
	must.Do(t, h.commitAll(t.Context(), storage.Found{}, func(*hostBatch) {}))
	for _, p := range commits.batches {
		if size := len(p) * 1900; size > hostBatchBytes {
			t.Errorf("%d bytes in one commit", size)
		}
	}
}

// TestHostOrderFails: when a commit fails, nothing behind it is committed or counted, and all
// memory and files are given back. The next list goes on.
func TestHostOrderFails(t *testing.T) {
	t.Parallel()
	sorter, room := testSorter(t, hostsort.Options{Disk: 1 << 30})
	commits := &recordedCommits{fail: 3}
	h := listCommitter{store: noFingerprints{}, sorter: sorter, commit: commits.commit}
	give := func() (committed int, err error) {
		for n := range 25_000 {
			u := mustParse(fmt.Sprintf("https://h%d.test/%d", n%100, n))
			must.Do(t, h.take(&listItem{Found: storage.Found{URL: u}}))
		}
		err = h.commitAll(t.Context(), storage.Found{}, func(p *hostBatch) { committed += len(p.found) })
		if memory, disk := room.Held(); memory != 0 || disk != 0 {
			t.Errorf("%d bytes of memory and %d of disk space are held", memory, disk)
		}
		return committed, err
	}
	n, err := give()
	if !errors.Is(err, errCommit) || n != len(commits.batches[0])+len(commits.batches[1]) || len(commits.batches) != 3 {
		t.Errorf("%d commits, %d URLs counted, %v", len(commits.batches), n, err)
	}
	if n, err := give(); err != nil || n != 25_000 {
		t.Errorf("%d URLs of the next list, %v", n, err)
	}
}

// TestHostOrderPutsBackOnce: a URL that a list names in two batches is put back by the first of them.
func TestHostOrderPutsBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sorter, _ := testSorter(t, hostsort.Options{Memory: 1 << 20})
		var back atomic.Bool
		h := listCommitter{store: noFingerprints{}, sorter: sorter}
		h.commit = func(_ context.Context, a *addition) (added, error) {
			time.Sleep(time.Millisecond) // of virtual time: the next batch would look too early
			back.Store(back.Load() || len(a.again) > 0)
			return added{results: make([]storage.InsertResult, len(a.found))}, nil
		}
		h.retrieve = func(weburl.URL, time.Time) (storage.Done, bool, error) {
			return storage.Done{Host: 1}, !back.Load(), nil
		}
		u := mustParse("http://a.test/")
		lines := 3 * h.size.Items()
		for n := range lines {
			must.Do(t, h.take(&listItem{Found: storage.Found{URL: u}, index: n, again: true}))
		}
		batches, puts, found := 0, 0, 0
		err := h.commitAll(t.Context(), storage.Found{}, func(b *hostBatch) {
			batches, puts, found = batches+1, puts+len(b.back), found+len(b.indexes)
		})
		if err != nil || batches < 3 || puts != 1 || found != lines-1 {
			t.Errorf("%d batches put it back %d times, and found it %d times; %v", batches, puts, found, err)
		}
	})
}

// TestListItem: what is encoded is decoded as it was.
func TestListItem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		origin := weburl.Origin{
			Scheme: rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme"),
			Host:   rapid.SampledFrom([]string{"a.test", "192.0.2.1", "[2001:db8::1]"}).Draw(t, "host"),
			Port:   rapid.SampledFrom([]uint16{80, 443, 1, 8080, 65535}).Draw(t, "port"),
		}
		want := listItem{
			Found: storage.Found{
				URL:       origin.URL("/" + rapid.StringMatching("[a-z/]{0,300}").Draw(t, "path")),
				Depth:     rapid.Uint16().Draw(t, "depth"),
				Priority:  rapid.Int8().Draw(t, "priority"),
				Frequency: storage.Frequency(rapid.IntRange(0, 7).Draw(t, "frequency")),
				Sitemap:   rapid.Bool().Draw(t, "sitemap"),
				Listed:    rapid.Bool().Draw(t, "listed"),
				Stripped:  rapid.SampledFrom([]string{"", "/x"}).Draw(t, "stripped"),
			},
			index: rapid.IntRange(0, maxWindow).Draw(t, "index"),
			again: rapid.Bool().Draw(t, "again"),
		}
		if rapid.Bool().Draw(t, "has a time") {
			want.Modified = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "time"), 0)
		}
		if rapid.Bool().Draw(t, "is put") {
			date := func(name string) time.Time { return storage.FromSeconds(rapid.Uint32().Draw(t, name)) }
			want.put = &Imported{Known: rapid.Bool().Draw(t, "known"), Created: date("created"), Due: date("due"),
				Metadata: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "metadata")}
		}
		var got listItem
		if err := got.decode(origin.Host, want.append(nil)); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	})
}

// FuzzListItem decodes anything.
func FuzzListItem(f *testing.F) {
	found := storage.Found{URL: mustParse("https://a.test:1/x"), Stripped: "/y", Modified: time.Unix(1, 0)}
	f.Add((&listItem{Found: found}).append(nil))
	f.Add([]byte{0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var l, again listItem
		if l.decode("a.test", b) != nil {
			return
		}
		if err := again.decode("a.test", l.append(nil)); err != nil || !reflect.DeepEqual(again, l) {
			t.Fatalf("%+v, %v, at first %+v", again, err, l)
		}
	})
}
