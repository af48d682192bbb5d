package crawl

import (
	"context"
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
}

// Added is what became of additions. Each of them is counted once.
type Added struct {
	Added   int `json:"added"`   // new, and on disk
	Known   int `json:"known"`   // there before
	Outside int `json:"outside"` // not in scope, or deeper than crawl.max_depth
	Refused int `json:"refused"` // the host has too many origins
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
	result storage.Result
	err    error
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
		found, outside := e.sift(urls[:n], nil)
		urls = urls[n:]
		sum.Outside += outside
		if len(found) == 0 {
			continue
		}
		result, err := e.commitFound(ctx, d, found)
		if err != nil {
			return sum, err
		}
		sum = sum.Plus(count(len(found), &result))
	}
	return sum, nil
}

// commitFound has discoveries committed and waits for it, as Add does. After an error nobody knows whether they were.
func (e *Engine) commitFound(ctx context.Context, d *desk, found []storage.Found) (storage.Result, error) {
	a := &addition{found: found, answer: make(chan added, 1)}
	select {
	case d.adds <- a:
	case <-d.closed:
		return storage.Result{}, ErrNotRunning
	case <-ctx.Done():
		return storage.Result{}, ctx.Err()
	}
	select {
	case done := <-a.answer:
		return done.result, done.err
	case <-ctx.Done():
		return storage.Result{}, ctx.Err()
	}
}

// count is what a commit of nothing but n discoveries did.
func count(n int, r *storage.Result) Added {
	return Added{Added: r.Added, Refused: r.Refused, Known: n - r.Added - r.Refused}
}

// sift makes discoveries of the additions that are in scope, appended to found.
func (e *Engine) sift(urls []Addition, found []storage.Found) (_ []storage.Found, outside int) {
	scope, now := e.scope.Load(), time.Now()
	for i := range urls {
		a := &urls[i]
		deep := e.o.Frontier.MaxDepth > 0 && a.Depth > e.o.Frontier.MaxDepth
		u, ok := e.admit(scope, a.URL)
		if deep || !ok {
			outside++
			continue
		}
		found = append(found, storage.Found{
			URL: u, Fingerprint: e.store.Fingerprint(u), Depth: a.Depth, Priority: a.Priority, At: now,
		})
	}
	return found, outside
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
	j.addition.answer <- added{result: j.result, err: err}
}
