package crawl

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/storage"
)

// smallRoom makes imports sort on disk, and end their windows early.
func smallRoom(t *testing.T, dir string) *hostsort.Workspace {
	t.Helper()
	pool := must.Get(spool.Open(spool.Options{Dir: t.TempDir(), Above: spool.HeadBytes}))(t)
	small := hostsort.NewWorkspace(pool, hostsort.Options{Memory: 192 << 10, Disk: 1 << 20})
	t.Cleanup(func() {
		memory, disk := small.Held()
		assert.True(t, memory == 0 && disk == 0, "%d bytes of memory and %d of disk space are held", memory, disk)
		left, err := os.ReadDir(filepath.Join(dir, "spool"))
		assert.True(t, err == nil && len(left) <= 0, "files are left: %v, %v", left, err)
	})
	return small
}

// randomList makes additions with duplicates, some of them out of scope or too deep.
func randomList(n int, seed uint64) (list []Addition) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range n {
		a := Addition{
			URL:   mustParse(fmt.Sprintf("http://h%d.test/%d", random.IntN(60), random.IntN(n/40))),
			Depth: uint16(random.IntN(3)), Priority: int8(random.IntN(3) - 1),
		}
		switch random.IntN(30) {
		case 0:
			a.URL = mustParse(fmt.Sprintf("http://outside.example/%d", random.IntN(n)))
		case 1:
			a.Depth = 100
		case 2:
			a.URL = mustParse(
				fmt.Sprintf("https://h%d.test:8443/%s", random.IntN(60), strings.Repeat("x", random.IntN(1500))))
		}
		list = append(list, a)
	}
	return list
}

// importModel is what imports should do: a set of the URLs in the store.
type importModel map[string]bool

func isOutside(a *Addition) bool { return a.Depth == 100 || a.URL.Host() == "outside.example" }

// add returns the result of an addition.
func (m importModel) add(a *Addition) InsertResult {
	switch u := a.URL.String(); {
	case isOutside(a):
		return InsertOutside
	case m[u]:
		return InsertKnown
	default:
		m[u] = true
		return InsertAdded
	}
}

// importList imports a list in windows as large as they may be. It returns the results by line.
func importList(t *testing.T, i Import, list []Addition) (results []InsertResult, windows int) {
	t.Helper()
	commit := func() {
		assert.NoError(t, i.Commit(t.Context()))
		results = append(results, i.Results()...)
		windows++
	}
	for _, a := range list {
		if err := i.Add(a); err != nil {
			t.Error(err)
			break
		}
		if i.Full() {
			commit()
		}
	}
	commit()
	assert.NoError(t, i.Close())
	return results, windows
}

func importOptions(t *testing.T, dir string) Options {
	o := DefaultOptions()
	o.DataDir, o.Archive.Dir, o.MinFree = dir, t.TempDir(), 0
	o.Fetch.UserAgent, o.Fetch.AllowPrivate = "amble-test", true
	o.Mode, o.Frontier.MaxDepth, o.Storage.NoSync = frontier.ModeDomain, 10, true
	return o
}

func importSeeds(t *testing.T) (seeds []Seed) {
	for h := range 60 {
		seeds = append(seeds, seed(t, fmt.Sprintf("http://h%d.test/seed", h)))
	}
	return seeds
}

// TestHeavyImportLikeAMap: the results of lists, one after the other, are those of a plain set, line by
// line; in windows with and without results.
func TestHeavyImportLikeAMap(t *testing.T) {
	t.Parallel()
	o := importOptions(t, t.TempDir())
	i := must.Get(OpenImporter(o, importSeeds(t)))(t)
	i.room = smallRoom(t, o.DataDir)
	model := make(importModel)
	for round := range 3 {
		list := randomList(12_000, uint64(round))
		var want Added
		wanted := make([]InsertResult, len(list))
		for n := range list {
			wanted[n] = model.add(&list[n])
			want.Count(wanted[n])
		}
		keeps := round%2 == 0
		l := i.NewImport(ImportOptions{Results: keeps})
		results, windows := importList(t, l, list)
		if l.Sum() != want || (windows > 1) != keeps { // without results there is room on the disk
			t.Errorf("round %d: %+v in %d windows, want %+v", round, l.Sum(), windows, want)
		}
		must.True(t, (!keeps || len(results) == len(list)) && (keeps || len(results) == 0),
			"round %d: %d results of %d lines", round, len(results), len(list))
		for n := range results {
			must.True(t, results[n] == wanted[n], "round %d: line %d is %s, want %s", round, n, results[n], wanted[n])
		}
	}
	must.Do(t, i.Close())
	checkImported(t, o.DataDir, model)
}

// checkImported compares the store with the model.
func checkImported(t *testing.T, dir string, model importModel) {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	for u := range model {
		_, _, err := s.Lookup(mustParse(u))
		must.True(t, err == nil, "%s: %v", u, err)
	}
	assert.Equal(t, s.Counters().URLs, uint64(len(model)), "URLs in the store", len(model))
	assert.NoError(t, s.Check(t.Context(), func(f storage.Finding) { t.Error(f.Text) }))
}

// TestImportsAtOnce imports overlapping lists into a running crawl at the same time: each URL is
// added by one of them.
func TestImportsAtOnce(t *testing.T) {
	t.Parallel()
	o := importOptions(t, t.TempDir())
	o.Fetch.Resolver = "127.0.0.1:1" // nothing is fetched
	e := must.Get(Open(o, testLog(t)))(t)
	e.o.ExitWhenDone = false
	e.shared.room = smallRoom(t, o.DataDir)
	var seeds []string
	for _, s := range importSeeds(t) {
		seeds = append(seeds, s.URL.String())
	}
	stop := runDaemon(t, e, seeds...)
	model := make(importModel)
	for _, s := range seeds {
		model[s] = true
	}
	lists := make([][]Addition, 5)
	var want Added
	for i := range lists {
		lists[i] = randomList(1_500, uint64(i/2)) // some are the same
		for n := range lists[i] {
			want.Count(model.add(&lists[i][n]))
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all Added
	added := make(map[string]int)
	for _, list := range lists {
		wg.Go(func() {
			i, err := e.NewImport(ImportOptions{Results: true})
			if err != nil {
				t.Error(err)
				return
			}
			results, _ := importList(t, i, list)
			mu.Lock()
			defer mu.Unlock()
			all = all.Plus(i.Sum())
			for n, r := range results {
				assert.True(t, (r == InsertOutside) == isOutside(&list[n]), "%s at depth %d is %s", list[n].URL,
					list[n].Depth, r)
				if r == InsertAdded {
					added[list[n].URL.String()]++
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, all, want)
	for u, n := range added {
		assert.Equal(t, n, 1, u, "is added times")
	}
	stop()
	checkImported(t, o.DataDir, model)
}

// TestImportIsInterrupted: what is counted before the context ends is in the store, and nothing is
// held.
func TestImportIsInterrupted(t *testing.T) {
	t.Parallel()
	o := importOptions(t, t.TempDir())
	o.Mode = frontier.ModeAny
	i, err := OpenImporter(o, nil)
	must.Do(t, err)
	i.room = smallRoom(t, o.DataDir)
	ctx, interrupt := context.WithCancel(t.Context())
	commits := 0
	l := i.newImport(ImportOptions{}, func(ctx context.Context, rows lists.Rows) (lists.Added, error) {
		if commits++; commits == 2 {
			interrupt()
		}
		return i.commitRows(ctx, rows)
	})
	for n := range 12_000 {
		must.Do(t, l.Add(Addition{URL: mustParse(fmt.Sprintf("http://h%d.test/%d", n%200, n))}))
	}
	err = l.Commit(ctx)
	sum := l.Sum()
	assert.True(t, err != nil && strings.HasSuffix(err.Error(), context.Canceled.Error()) && sum.Added != 0 &&
		sum.Added != 12_000, "%+v, %v", sum, err)
	assert.Equal(t, i.store.Counters().URLs, uint64(sum.Added), "URLs in the store", sum.Added, "counted")
	must.Do(t, i.Close())
}

// importChild is the environment variable that makes the test binary an import that can be killed:
// it imports importedURLs into the directory that it names, and prints how many are on disk after
// each window.
const (
	importChild  = "AMBLE_IMPORT_CHILD"
	importedURLs = 200_000
	importWindow = 25_000
)

func runImportChild(dir string) int {
	if err := importAsChild(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func importAsChild(dir string) error {
	o := DefaultOptions()
	o.DataDir, o.Archive.Dir, o.MinFree = filepath.Join(dir, "data"), dir, 0
	o.Fetch.UserAgent, o.Mode = "amble-test", frontier.ModeAny
	i, err := OpenImporter(o, nil)
	if err != nil {
		return err
	}
	l := i.NewImport(ImportOptions{})
	for n := range importedURLs {
		if err := l.Add(Addition{URL: mustParse(fmt.Sprintf("http://h%d.test/%d", n*7919%997, n))}); err != nil {
			return err
		}
		if (n+1)%importWindow == 0 {
			if err := l.Commit(context.Background()); err != nil {
				return err
			}
			s := l.Sum()
			fmt.Println(s.Added + s.Known)
		}
	}
	return i.Close()
}

// TestHeavyKillImport kills an import at random moments and begins it again: what it reported is in the
// store, no file is left, and in the end each URL is there once. In real time: processes are
// killed.
func TestHeavyKillImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe := must.Get(os.Executable())(t)
	for kills := 0; ; kills++ {
		child := exec.Command(exe)
		child.Env = append(os.Environ(), importChild+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		must.Do(t, err)
		if kills < 3 {
			killer := time.AfterFunc(rand.N(500*time.Millisecond), func() { _ = child.Process.Kill() })
			defer killer.Stop()
		}
		reported := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			reported = must.Get(strconv.Atoi(lines.Text()))(t)
		}
		ended := child.Wait()
		must.True(t, ended == nil || kills < 3, "%v", ended)
		if left, err := filepath.Glob(filepath.Join(dir, "data", "spool", "*")); err != nil || len(left) > 1 {
			t.Errorf("files are left: %v, %v", left, err) // one, if it was killed before the file lost its name
		}
		if _, err := os.Stat(filepath.Join(dir, "data", storage.FileName)); err != nil {
			continue // killed before there was a store
		}
		s := must.Get(storage.Open(filepath.Join(dir, "data"), storage.Options{}))(t)
		urls := s.Counters().URLs
		must.Do(t, s.Close())
		must.True(t, urls >= uint64(reported), "%d URLs are in the store, %d were reported", urls, reported)
		if ended == nil {
			assert.Equal(t, urls, importedURLs, "URLs are in the store")
			left, err := filepath.Glob(filepath.Join(dir, "data", "spool", "*"))
			assert.True(t, err == nil && len(left) <= 0, "files are left: %v, %v", left, err)
			return
		}
	}
}
