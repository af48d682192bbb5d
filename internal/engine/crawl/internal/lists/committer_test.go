package lists

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
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
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

func (r *recordedCommits) commit(_ context.Context, a Rows) (Added, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batches = append(r.batches, slices.Clone(a.Found)); len(r.batches) == r.fail {
		return Added{}, errCommit
	}
	return Added{Results: make([]storage.InsertResult, len(a.Found)), Changed: r.changed, Took: r.took}, nil
}

func (r *recordedCommits) all() []storage.Found { return slices.Concat(r.batches...) }

// testSorter returns a sorter whose runs are in files, and what holds its memory and files.
func testSorter(t *testing.T, o hostsort.Options) (*hostsort.Sorter, *hostsort.Workspace) {
	t.Helper()
	pool := must.Get(spool.Open(spool.Options{Dir: t.TempDir(), Above: spool.HeadBytes}))(t)
	room := hostsort.NewWorkspace(pool, o)
	return room.NewSorter(false), room
}

// TestHeavyHostOrder: a list of any length is committed once, host by host, in the order of the list
// within a host, in batches of bounded size; memory and files are given back.
func TestHeavyHostOrder(t *testing.T) {
	t.Parallel()
	const urls, hosts = 60_000, 400
	sorter, room := testSorter(t, hostsort.Options{Memory: 256 << 10, Disk: 1 << 30})
	commits := &recordedCommits{changed: 1 << 20, took: time.Millisecond}
	h := Committer{Store: noFingerprints{}, Sorter: sorter, Commit: commits.commit}
	for n := range urls {
		u := testkit.Parse(t, fmt.Sprintf("https://h%d.test:8443/%d", rand.IntN(hosts), n))
		must.Do(t, h.Take(&Item{Found: storage.Found{URL: u, Depth: 7}, Index: n}))
	}
	_, disk := room.Held()
	assert.True(t, disk != 0, "nothing is on disk")
	base := storage.Found{ViaHost: 3, ViaOrdinal: 4, At: time.Unix(1e9, 0)}
	counted, largest := 0, 0
	err := h.CommitAll(t.Context(), base, func(p *Batch) {
		largest = max(largest, len(p.Found))
		for i := range p.Found {
			if f := &p.Found[i]; f.URL.RequestURI() != fmt.Sprint("/", p.Indexes[i]) || f.Depth != 7 ||
				f.ViaHost != 3 || f.ViaOrdinal != 4 || f.At != base.At || f.Fingerprint != uint64(len(f.URL.String())) {
				t.Fatalf("%+v has the index %d", f, p.Indexes[i])
			}
		}
		counted += len(p.Found)
	})
	assert.True(t, err == nil && counted == urls && largest <= 20_000, "%d URLs, %d in one batch, %v", counted, largest,
		err)
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
		must.True(t, !left[this.Host()], "%s comes in two parts", this.Host())
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
	h := Committer{Store: noFingerprints{}, Sorter: sorter, Commit: commits.commit}
	for n := range 6_000 {
		u := testkit.Parse(t, fmt.Sprintf("https://a.test/%d/%s", n, strings.Repeat("x", 1900)))
		must.Do(t, h.Take(&Item{Found: storage.Found{URL: u}}))
	}
	must.Do(t, h.CommitAll(t.Context(), storage.Found{}, func(*Batch) {}))
	for _, p := range commits.batches {
		assert.AtMost(t, len(p)*1900, batchBytes, "bytes in one commit")
	}
}

// TestHostOrderFails: when a commit fails, nothing behind it is committed or counted, and all
// memory and files are given back. The next list goes on.
func TestHostOrderFails(t *testing.T) {
	t.Parallel()
	sorter, room := testSorter(t, hostsort.Options{Disk: 1 << 30})
	commits := &recordedCommits{fail: 3}
	h := Committer{Store: noFingerprints{}, Sorter: sorter, Commit: commits.commit}
	give := func() (committed int, err error) {
		for n := range 25_000 {
			u := testkit.Parse(t, fmt.Sprintf("https://h%d.test/%d", n%100, n))
			must.Do(t, h.Take(&Item{Found: storage.Found{URL: u}}))
		}
		err = h.CommitAll(t.Context(), storage.Found{}, func(p *Batch) { committed += len(p.Found) })
		memory, disk := room.Held()
		assert.True(t, memory == 0 && disk == 0, "%d bytes of memory and %d of disk space are held", memory, disk)
		return committed, err
	}
	n, err := give()
	assert.True(t, errors.Is(err, errCommit) && n == len(commits.batches[0])+len(commits.batches[1]) &&
		len(commits.batches) == 3, "%d commits, %d URLs counted, %v", len(commits.batches), n, err)
	assert.Returns(give())(t, 25_000, "URLs of the next list")
}

// TestHostOrderPutsBackOnce: a URL that a list names in two batches is put back by the first of them.
func TestHostOrderPutsBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sorter, _ := testSorter(t, hostsort.Options{Memory: 1 << 20})
		var back atomic.Bool
		h := Committer{Store: noFingerprints{}, Sorter: sorter}
		h.Commit = func(_ context.Context, a Rows) (Added, error) {
			time.Sleep(time.Millisecond) // of virtual time: the next batch would look too early
			back.Store(back.Load() || len(a.Again) > 0)
			return Added{Results: make([]storage.InsertResult, len(a.Found))}, nil
		}
		h.Retrieve = func(weburl.URL, time.Time) (storage.Done, bool, error) {
			return storage.Done{Host: 1}, !back.Load(), nil
		}
		u := testkit.Parse(t, "http://a.test/")
		lines := 3 * h.size.Items()
		for n := range lines {
			must.Do(t, h.Take(&Item{Found: storage.Found{URL: u}, Index: n, Again: true}))
		}
		batches, puts, found := 0, 0, 0
		err := h.CommitAll(t.Context(), storage.Found{}, func(b *Batch) {
			batches, puts, found = batches+1, puts+len(b.Back), found+len(b.Indexes)
		})
		assert.True(t, err == nil && batches >= 3 && puts == 1 && found == lines-1,
			"%d batches put it back %d times, and found it %d times; %v", batches, puts, found, err)
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
		want := Item{
			Found: storage.Found{
				URL:       origin.URL("/" + rapid.StringMatching("[a-z/]{0,300}").Draw(t, "path")),
				Depth:     rapid.Uint16().Draw(t, "depth"),
				Priority:  rapid.Int8().Draw(t, "priority"),
				Frequency: storage.Frequency(rapid.IntRange(0, 7).Draw(t, "frequency")),
				Sitemap:   rapid.Bool().Draw(t, "sitemap"),
				Listed:    rapid.Bool().Draw(t, "listed"),
				Stripped:  rapid.SampledFrom([]string{"", "/x"}).Draw(t, "stripped"),
			},
			Index: rapid.IntRange(0, maxWindow).Draw(t, "index"),
			Again: rapid.Bool().Draw(t, "again"),
		}
		if rapid.Bool().Draw(t, "has a time") {
			want.Modified = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "time"), 0)
		}
		if rapid.Bool().Draw(t, "is put") {
			date := func(name string) time.Time { return storage.FromSeconds(rapid.Uint32().Draw(t, name)) }
			want.Put = &Imported{Known: rapid.Bool().Draw(t, "known"), Created: date("created"), Due: date("due"),
				Metadata: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "metadata")}
		}
		var got Item
		err := got.decode(origin.Host, want.append(nil))
		must.True(t, err == nil && reflect.DeepEqual(got, want), "%+v, %v, want %+v", got, err, want)
	})
}

// FuzzListItem decodes anything.
func FuzzListItem(f *testing.F) {
	found := storage.Found{URL: testkit.Parse(f, "https://a.test:1/x"), Stripped: "/y", Modified: time.Unix(1, 0)}
	f.Add((&Item{Found: found}).append(nil))
	f.Add([]byte{0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var l, again Item
		if l.decode("a.test", b) != nil {
			return
		}
		err := again.decode("a.test", l.append(nil))
		must.True(t, err == nil && reflect.DeepEqual(again, l), "%+v, %v, at first %+v", again, err, l)
	})
}
