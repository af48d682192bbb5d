package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Addition is a URL that somebody gives to a crawl, as if a page had led there.
type Addition struct {
	URL      weburl.URL
	Depth    uint16 // links from a seed
	Priority int8
	Again    bool // one that is known and was given up, denied or excluded is put back into its queue
	Fate     Fate // set by Add
}

// Fate is what became of an Addition.
type Fate uint8

// The fates.
const (
	FateNone    Fate = iota // Add did not come to it
	FateAdded               // it is new, and on disk
	FateKnown               // it was there before
	FateOutside             // it is not in scope, or deeper than crawl.max_depth
	FateRefused             // the host has too many origins, or the URL leads into a trap
	FateAgain               // it was there before, and is put back into its queue
)

// String names it, as Added does.
func (f Fate) String() string {
	return [...]string{"", "added", "known", "outside", "refused", "again"}[f]
}

// Added is what became of additions. Each of them is counted once.
type Added struct {
	Added   int `json:"added"`           // new, and on disk
	Known   int `json:"known"`           // there before
	Outside int `json:"outside"`         // not in scope, or deeper than crawl.max_depth
	Refused int `json:"refused"`         // the host has too many origins, or they lead into traps
	Again   int `json:"again,omitempty"` // there before, and put back into their queues
}

// Plus is the sum.
func (a Added) Plus(b Added) Added {
	return Added{a.Added + b.Added, a.Known + b.Known, a.Outside + b.Outside, a.Refused + b.Refused, a.Again + b.Again}
}

// MaxAdditions is how many additions go into one commit.
const MaxAdditions = 5000

// addition is a group of discoveries on its way through the dispatcher.
type addition struct {
	found  []storage.Found
	again  []storage.Done // known URLs that are put back
	answer chan added     // holds one
}

type added struct {
	fates []storage.Fate
	err   error
}

// Add gives URLs to the running crawl, and returns when they are on disk. Any goroutine may call it. The error is ErrNotRunning, ErrDraining, that
// of the context, or why they could not be committed; what was counted till then is committed all the same.
func (e *Engine) Add(ctx context.Context, urls []Addition) (sum Added, err error) {
	d := e.desk.Load()
	switch {
	case d == nil:
		return sum, ErrNotRunning
	case e.refusing.Load():
		return sum, ErrDraining
	}
	for len(urls) > 0 {
		n := min(len(urls), MaxAdditions)
		group := urls[:n]
		urls = urls[n:]
		a, err := e.sift(group, nil)
		if err != nil {
			return sum, err
		}
		fates, err := e.commitAddition(ctx, d, &a)
		sum = sum.Plus(settle(group, fates, err == nil))
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// settle tells each addition what became of it, given whether they were committed and the fates of those that were new or known, and counts them.
func settle(group []Addition, fates []storage.Fate, committed bool) (sum Added) {
	for i := range group {
		a := &group[i]
		switch {
		case a.Fate == FateOutside:
			sum.Outside++
			continue
		case !committed:
			a.Fate = FateNone
			continue
		case a.Fate == FateAgain:
			sum.Again++
			continue
		case fates[0] == storage.FateAdded:
			a.Fate, sum.Added = FateAdded, sum.Added+1
		case fates[0] == storage.FateKnown:
			a.Fate, sum.Known = FateKnown, sum.Known+1
		default:
			a.Fate, sum.Refused = FateRefused, sum.Refused+1
		}
		fates = fates[1:]
	}
	return sum
}

// commitAddition has an addition committed and waits for it, as Add does; it returns what became of each discovery. After an error nobody
// knows whether it was.
func (e *Engine) commitAddition(ctx context.Context, d *desk, a *addition) ([]storage.Fate, error) {
	if len(a.found)+len(a.again) == 0 {
		return nil, nil
	}
	a.answer = make(chan added, 1)
	select {
	case d.adds <- a:
	case <-d.closed:
		return nil, ErrNotRunning
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case done := <-a.answer:
		if done.err != nil {
			return nil, done.err
		}
		return done.fates, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sift makes discoveries of the additions that are in scope, in the memory of found, and marks the others. Known URLs that are to be put back
// are no discoveries.
func (e *Engine) sift(urls []Addition, found []storage.Found) (sifted addition, err error) {
	scope, now := e.scope.Load(), e.now()
	sifted.found = found
	taken := make(map[storage.Position]bool) // of those put back: a list may name one twice
	for i := range urls {
		a := &urls[i]
		deep := e.o.Frontier.MaxDepth > 0 && a.Depth > e.o.Frontier.MaxDepth
		u, ok := e.admit(scope, a.URL)
		if a.Fate = FateNone; deep || !ok {
			a.Fate = FateOutside
			continue
		}
		if a.Again {
			known, again, err := e.again(u, now)
			if err != nil {
				return sifted, err
			}
			if at := (storage.Position{Host: known.Host, Ordinal: known.Ordinal}); again && !taken[at] {
				taken[at] = true
				a.Fate, sifted.again = FateAgain, append(sifted.again, known)
				continue
			}
		}
		sifted.found = append(sifted.found, storage.Found{
			URL: u, Fingerprint: e.store.Fingerprint(u), Depth: a.Depth, Priority: a.Priority, At: now,
		})
	}
	return sifted, nil
}

// again is what puts a URL back that was given up, denied or excluded; false: it is not known, or in another state.
func (e *Engine) again(u weburl.URL, now time.Time) (storage.Done, bool, error) {
	head, host, err := e.store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Done{}, false, nil
	}
	if err != nil || !storage.In(storage.Failed, storage.Denied, storage.Excluded).Has(head.Last.State) {
		return storage.Done{}, false, err
	}
	return putBack(host.ID, &head, now), true, nil
}

// additions is where the next addition comes from; nil while one waits for its commit.
func (r *run) additions() <-chan *addition {
	if r.adding != nil {
		return nil
	}
	return r.desk.adds
}

// additionJob is the addition that waits, as a commit of its own, so that its result is counted apart; nil if it is not its turn.
// The crawl's own work and additions take turns.
func (r *run) additionJob() *job {
	if r.adding == nil || r.addedLast && !r.pending.empty() {
		return nil
	}
	j := newJob()
	j.addition, j.batch.Found, j.batch.Done, j.place = r.adding, r.adding.found, r.adding.again, r.settled
	j.batch.Fates = make([]storage.Fate, len(j.batch.Found))
	return j
}

// closeDesk turns away whoever comes now, and the addition that no commit has taken.
func (r *run) closeDesk() {
	close(r.desk.closed)
	if r.adding != nil {
		r.adding.answer <- added{err: ErrNotRunning}
		r.adding = nil
	}
}

// answerAddition tells what a commit did.
func (j *job) answerAddition() {
	if j.addition == nil {
		return
	}
	err := j.err
	if err != nil {
		err = fmt.Errorf("commit the URLs: %w", err)
	}
	j.addition.answer <- added{fates: j.batch.Fates, err: err}
}
