package queue

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

var epoch = time.Unix(1_800_000_000, 0)

// newURL is a URL that was never fetched.
func newURL(ordinal uint32) storage.Head {
	return storage.Head{Entry: storage.Entry{Ordinal: ordinal, RequestURI: "/"}}
}

// dueURL is a URL of a priority that became due some seconds after the epoch.
func dueURL(ordinal uint32, priority int8, after int) storage.Head {
	return storage.Head{
		Entry: storage.Entry{Ordinal: ordinal, RequestURI: "/", Priority: priority},
		Last:  storage.Outcome{State: storage.Retrying, Due: epoch.Add(time.Duration(after) * time.Second)},
	}
}

func ordinals(list []storage.Head) (all []uint32) {
	for i := range list {
		all = append(all, list[i].Ordinal)
	}
	return all
}

// takeAll takes the new and due URLs in their order.
func takeAll(q *Queue, newFirst bool) (taken []uint32) {
	for q.Len(New)+q.Len(Due) > 0 {
		head, _ := q.Take(newFirst)
		taken = append(taken, head.Ordinal)
	}
	return taken
}

func TestOrder(t *testing.T) {
	for newFirst, want := range map[bool][]uint32{
		false: {6, 7, 5, 4, 10, 11, 3, 8},
		true:  {6, 7, 10, 11, 5, 4, 3, 8},
	} {
		q := Make(2, 10)
		q.Load(&storage.Heads{
			Next: 20, Queued: []storage.Head{newURL(10), newURL(11)},
			Due: []storage.Head{
				dueURL(3, -1, 0), dueURL(4, 0, 9), dueURL(5, 0, 8), dueURL(7, 5, 9), dueURL(6, 5, 9), dueURL(8, -2, 0),
			},
		}, nil, 12, 12)
		priority, ok := q.First()
		assert.True(t, priority == 5 && ok, "the first URL has priority %d, %t", priority, ok)
		got := takeAll(&q, newFirst)
		assert.True(t, slices.Equal(got, want), "new URLs first %t: took %v, want %v", newFirst, got, want)
		if _, ok := q.First(); ok {
			t.Error("an empty queue has a first URL")
		}
	}
}

func TestBefore(t *testing.T) {
	load := func(heads storage.Heads) *Queue {
		q := Make(0, 0)
		q.Load(&heads, nil, 12, 12)
		return &q
	}
	inOrder := []*Queue{
		load(storage.Heads{Due: []storage.Head{dueURL(9, 2, 9)}}),
		load(storage.Heads{Due: []storage.Head{dueURL(8, 0, 1)}}),
		load(storage.Heads{Due: []storage.Head{dueURL(1, 0, 2)}}),
		load(storage.Heads{Next: 3, Queued: []storage.Head{newURL(2)}}),
		load(storage.Heads{Next: 4, Queued: []storage.Head{newURL(3)}}),
		load(storage.Heads{Due: []storage.Head{dueURL(0, -1, 0)}}),
	}
	check := func(newFirst bool) {
		for i, a := range inOrder {
			for j, b := range inOrder {
				assert.True(t, i == j || a.Before(b, newFirst) == (i < j),
					"new URLs first %t: queue %d before queue %d: %t", newFirst, i, j, !(i < j))
			}
		}
	}
	check(false)
	inOrder = []*Queue{inOrder[0], inOrder[3], inOrder[4], inOrder[1], inOrder[2], inOrder[5]}
	check(true)
}

// Load leaves out what the queue has and what is busy, and keeps no more than it may.
func TestLoad(t *testing.T) {
	recrawls := func(from, n uint32) (list []storage.Head) {
		for o := from; o < from+n; o++ {
			list = append(list, storage.Head{Entry: storage.Entry{Ordinal: o},
				Last: storage.Outcome{State: storage.Fetched, Due: epoch}})
		}
		return list
	}
	busy := Ordinals{1, 21}
	q := Make(0, 0)
	q.Load(&storage.Heads{Next: 1, Due: []storage.Head{dueURL(1, 0, 1), dueURL(2, 0, 2), dueURL(3, 0, 3)},
		Recrawls: recrawls(20, 3)}, busy, 4, 5)
	if q.Len(Due) != 2 || q.Len(Recrawl) != 2 || q.Low(4, 1) || q.LowRecrawls(4) {
		t.Errorf("%d due, %d to recrawl, low: %t, %t", q.Len(Due), q.Len(Recrawl), q.Low(4, 1), q.LowRecrawls(4))
	}
	assert.True(t, q.Low(4, 2), "an ordinal is not read yet, and the queue is not low")
	// What was to be recrawled was put back into the queue and became due.
	due := []storage.Head{dueURL(2, 0, 2), dueURL(4, 0, 4), dueURL(5, 0, 5), dueURL(20, 0, 0), dueURL(6, 0, 6)}
	q.Load(&storage.Heads{Next: 1, Due: due, Recrawls: recrawls(20, 5)}, busy, 4, 5)
	assert.True(t, q.Len(Due) == 4 && q.Len(Recrawl) == 3, "%d due, %d to recrawl", q.Len(Due), q.Len(Recrawl))
	got, want := takeAll(&q, false), []uint32{20, 2, 3, 4}
	assert.True(t, slices.Equal(got, want), "took %v, want %v", got, want)
	var taken []uint32
	for q.Len(Recrawl) > 0 {
		taken = append(taken, q.TakeRecrawl().Ordinal)
	}
	if want := []uint32{22, 23, 24}; !slices.Equal(taken, want) {
		t.Errorf("took the recrawls %v, want %v", taken, want)
	}
	assert.True(t, q.Low(4, 1) && q.LowRecrawls(4), "there are more on disk, and the queue is not low")
	// An older answer of the store does not move the queue back.
	q.Load(&storage.Heads{Next: 0, Queued: []storage.Head{newURL(0)}}, busy, 4, 5)
	if q.ReadTo() != 1 || q.Len(New) != 0 || q.Low(4, 1) {
		t.Errorf("read to %d, %d new, low: %t", q.ReadTo(), q.Len(New), q.Low(4, 1))
	}
}

func TestReturn(t *testing.T) {
	q := Make(0, 0)
	q.Load(&storage.Heads{
		Next: 4, Queued: []storage.Head{newURL(0), newURL(1), newURL(3)}, Due: []storage.Head{dueURL(2, 1, 0)},
		Recrawls: []storage.Head{dueURL(8, 0, 1), dueURL(9, 0, 2)},
	}, nil, 12, 12)
	first, k := q.Take(false)
	second, l := q.Take(false)
	recrawl := q.TakeRecrawl()
	if k != Due || l != New || q.Cursor() != 0 {
		t.Errorf("took kinds %d and %d; the cursor is at %d", k, l, q.Cursor())
	}
	due, ok := q.RecrawlDue()
	assert.True(t, ok && due.Equal(epoch.Add(2*time.Second)), "the next page to recrawl was due %v, %t", due, ok)
	q.Return(second, l)
	q.Return(first, k)
	q.Return(recrawl, Recrawl)
	got, want := takeAll(&q, false), []uint32{2, 0, 1, 3}
	assert.True(t, slices.Equal(got, want), "took %v, want %v", got, want)
	assert.Equal(t, q.TakeRecrawl().Ordinal, 8, "took the recrawl")
}

func TestDropBelow(t *testing.T) {
	q := Make(0, 0)
	stays := dueURL(4, 0, 0)
	stays.Last.State = storage.Fetched
	q.Load(&storage.Heads{
		Next: 10, Queued: []storage.Head{newURL(1), newURL(5), newURL(6)}, Due: []storage.Head{dueURL(3, 0, 0), stays,
			dueURL(7, 0, 0)},
	}, nil, 12, 12)
	dropped := q.DropBelow(6, func(last *storage.Outcome) bool { return last.State == storage.Fetched })
	got, want := ordinals(dropped), []uint32{1, 5, 3}
	assert.True(t, slices.Equal(got, want), "dropped %v, want %v", got, want)
	assert.Equal(t, q.Cursor(), 6, "the cursor is at")
	if got, want := takeAll(&q, false), []uint32{4, 7, 6}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}

func TestHasSeed(t *testing.T) {
	seed, due := newURL(1), dueURL(2, 3, 0)
	seed.Seed, due.Seed = true, true
	for _, heads := range []storage.Heads{{Next: 2, Queued: []storage.Head{newURL(0), seed}},
		{Due: []storage.Head{due}}} {
		q := Make(0, 0)
		assert.True(t, !q.HasSeed(), "an empty queue has a seed")
		if q.Load(&heads, nil, 12, 12); !q.HasSeed() {
			t.Errorf("%+v has no seed", heads)
		}
	}
}

// TestCursor holds the cursor to its promise, whatever is loaded, taken, returned and done: no new
// URL without an outcome lies before it, and none that has one lies at it.
func TestCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tail = 60
		q := Make(0, 0)
		taken, done := map[uint32]storage.Head{}, map[uint32]bool{}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				heads := storage.Heads{Next: min(q.ReadTo()+uint32(rapid.IntRange(1, 5).Draw(t, "n")), tail)}
				for o := q.ReadTo(); o < heads.Next; o++ {
					heads.Queued = append(heads.Queued, newURL(o))
				}
				q.Load(&heads, nil, 12, 12)
			case 1:
				if q.Len(New) > 0 {
					head, _ := q.Take(rapid.Bool().Draw(t, "new first"))
					taken[head.Ordinal] = head
				}
			case 2:
				below := uint32(rapid.IntRange(0, tail).Draw(t, "below"))
				for _, head := range q.DropBelow(below, func(*storage.Outcome) bool { return false }) {
					done[head.Ordinal] = true
				}
			default:
				if len(taken) == 0 {
					continue
				}
				o := rapid.SampledFrom(slices.Sorted(maps.Keys(taken))).Draw(t, "ordinal")
				if rapid.Bool().Draw(t, "returned") {
					q.Return(taken[o], New)
				} else {
					done[o] = true
					q.Done(o)
				}
				delete(taken, o)
			}
			want := uint32(0)
			for done[want] {
				want++
			}
			if want = min(want, q.ReadTo()); q.Cursor() != want {
				t.Fatalf("the cursor is at %d, want %d", q.Cursor(), want)
			}
		}
	})
}

// TestTakePreferred: preferred URLs come before others of the first priority, in their order, and the
// cursor stays before what was passed over.
func TestTakePreferred(t *testing.T) {
	q := Make(2, 10)
	queued := []storage.Head{newURL(10), newURL(11), newURL(12), newURL(13)}
	for i, uri := range []string{"/a/long", "/b", "/a", "/b/2"} {
		queued[i].RequestURI = uri
	}
	due := []storage.Head{dueURL(3, 0, 0), dueURL(4, 0, 9), dueURL(5, 5, 9)}
	for i := range due {
		due[i].RequestURI, due[i].Last.At = "/b", epoch
	}
	q.Load(&storage.Heads{Next: 20, Queued: queued, Due: due}, nil, 12, 12)
	prefers := func(uri string, last time.Time) bool { return uri[:2] == "/b" && last.IsZero() }
	var taken []uint32
	for q.Len(New)+q.Len(Due) > 0 {
		head, k := q.TakePreferred(prefers)
		assert.True(t, k != New || head.RequestURI == queued[head.Ordinal-10].RequestURI, "%d has the text %s",
			head.Ordinal, head.RequestURI)
		if taken = append(taken, head.Ordinal); len(taken) == 3 {
			q.Done(11)
			q.Done(13)
			assert.Equal(t, q.Cursor(), 10, "the cursor is at")
		}
	}
	want := []uint32{5, 11, 13, 3, 4, 10, 12}
	assert.True(t, slices.Equal(taken, want), "took %v, want %v", taken, want)
}

func TestDropRecrawlsBelow(t *testing.T) {
	q := Make(0, 0)
	q.Load(&storage.Heads{Next: 9, Queued: []storage.Head{newURL(1)},
		Recrawls: []storage.Head{dueURL(7, 0, 0), dueURL(3, 0, 0),
			dueURL(5, 0, 0)}}, nil, 12, 12)
	got, want := ordinals(q.DropRecrawlsBelow(6)), []uint32{3, 5}
	assert.True(t, slices.Equal(got, want), "dropped %v, want %v", got, want)
	if got := q.DropRecrawlsBelow(100); len(got) != 1 || got[0].Ordinal != 7 || len(takeAll(&q, false)) != 1 {
		t.Errorf("left were %v", got)
	}
}
