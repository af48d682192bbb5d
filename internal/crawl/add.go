package crawl

import (
	"context"
	"fmt"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Addition is a URL that somebody gives to a crawl, as if a page had led there.
type Addition struct {
	URL      weburl.URL
	Depth    uint16 // links from a seed
	Priority int8
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
)

// String names it, as Added does.
func (f Fate) String() string { return [...]string{"", "added", "known", "outside", "refused"}[f] }

// Added is what became of additions. Each of them is counted once.
type Added struct {
	Added   int `json:"added"`   // new, and on disk
	Known   int `json:"known"`   // there before
	Outside int `json:"outside"` // not in scope, or deeper than crawl.max_depth
	Refused int `json:"refused"` // the host has too many origins, or they lead into traps
}

// Plus is the sum.
func (a Added) Plus(b Added) Added {
	return Added{a.Added + b.Added, a.Known + b.Known, a.Outside + b.Outside, a.Refused + b.Refused}
}

// MaxAdditions is how many additions go into one commit.
const MaxAdditions = 5000

// addition is a group of discoveries on its way through the dispatcher.
type addition struct {
	found  []storage.Found
	answer chan added // holds one
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
		found := e.sift(group, nil)
		fates, err := e.commitFound(ctx, d, found)
		sum = sum.Plus(settle(group, fates))
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// settle tells each addition what became of it, given the fates of those that were in scope, and counts them.
func settle(group []Addition, fates []storage.Fate) (sum Added) {
	for i := range group {
		a := &group[i]
		switch {
		case a.Fate == FateOutside:
			sum.Outside++
			continue
		case len(fates) == 0:
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

// commitFound has discoveries committed and waits for it, as Add does; it returns what became of each. After an error nobody knows whether
// they were.
func (e *Engine) commitFound(ctx context.Context, d *desk, found []storage.Found) ([]storage.Fate, error) {
	if len(found) == 0 {
		return nil, nil
	}
	a := &addition{found: found, answer: make(chan added, 1)}
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

// sift makes discoveries of the additions that are in scope, appended to found, and marks the others.
func (e *Engine) sift(urls []Addition, found []storage.Found) []storage.Found {
	scope, now := e.scope.Load(), e.now()
	for i := range urls {
		a := &urls[i]
		deep := e.o.Frontier.MaxDepth > 0 && a.Depth > e.o.Frontier.MaxDepth
		u, ok := e.admit(scope, a.URL)
		if a.Fate = FateNone; deep || !ok {
			a.Fate = FateOutside
			continue
		}
		found = append(found, storage.Found{
			URL: u, Fingerprint: e.store.Fingerprint(u), Depth: a.Depth, Priority: a.Priority, At: now,
		})
	}
	return found
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
	j.addition, j.batch.Found, j.place = r.adding, r.adding.found, r.settled
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
