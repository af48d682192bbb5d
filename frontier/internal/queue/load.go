package queue

import (
	"slices"

	"github.com/amble-crawler/amble/storage"
)

// Low reports whether new or due URLs should be loaded: a quarter of most are left at the most, and
// there are more on disk. New URLs have ordinals below tail.
func (q *Queue) Low(most int, tail uint32) bool {
	return len(q.fresh.list) <= most/4 && q.next < tail || len(q.due) <= most/4 && q.moreDue
}

// LowRecrawls reports the same of the pages to recrawl.
func (q *Queue) LowRecrawls(most int) bool { return len(q.recrawls) <= most/4 && q.moreRecrawls }

// Load takes in what was read of the queue, and leaves out URLs that it has and those in busy. It
// keeps at most most due URLs and pages to recrawl each. wanted is how many of each were requested:
// fewer mean that there are no more.
func (q *Queue) Load(got *storage.Heads, busy Ordinals, most, wanted int) {
	if got.Next > q.next {
		q.fresh.insert(q.withoutBusy(got.Queued, busy)...)
		q.next = got.Next
	}
	q.loadRecrawls(got.Recrawls, busy, most, wanted)
	q.loadDue(got.Due, busy, most, wanted)
}

// withoutBusy leaves out new URLs that are leased since before they were loaded: an earlier process
// gave them to a remote fetcher. They count as taken.
func (q *Queue) withoutBusy(got []storage.Head, busy Ordinals) []storage.Head {
	if len(busy) == 0 {
		return got
	}
	return slices.DeleteFunc(got, func(head storage.Head) bool {
		is := busy.Has(head.Ordinal)
		if is {
			q.inFlight.Add(head.Ordinal)
		}
		return is
	})
}

func (q *Queue) loadDue(got []storage.Head, busy Ordinals, most, wanted int) {
	q.moreDue = len(got) >= wanted
	have := ordinalsOf(q.due)
	for _, head := range got {
		if busy.Has(head.Ordinal) || have[head.Ordinal] {
			continue
		}
		q.addDue(head)
		// It became due in another way than by the recrawl plan.
		q.recrawls = slices.DeleteFunc(q.recrawls, func(r storage.Head) bool { return r.Ordinal == head.Ordinal })
	}
	if len(q.due) > most {
		clear(q.due[most:])
		q.due, q.moreDue = q.due[:most], true
	}
}

func (q *Queue) loadRecrawls(got []storage.Head, busy Ordinals, most, wanted int) {
	q.moreRecrawls = len(got) >= wanted
	have := ordinalsOf(q.recrawls)
	for _, head := range got {
		if busy.Has(head.Ordinal) || have[head.Ordinal] {
			continue
		}
		if len(q.recrawls) >= most {
			q.moreRecrawls = true
			return
		}
		q.recrawls = append(q.recrawls, head)
	}
}

func ordinalsOf(list []storage.Head) map[uint32]bool {
	have := make(map[uint32]bool, len(list))
	for i := range list {
		have[list[i].Ordinal] = true
	}
	return have
}
