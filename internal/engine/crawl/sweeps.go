package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// sweepQueue is the sweeps that are not done. The dispatcher owns it. It commits what the sweeper
// finds.
type sweepQueue struct {
	source   sweep.Source
	adopter  *sweep.Adopter      // nil: there is no recrawl plan
	toSweep  chan<- *sweep.Sweep // unbuffered; used in the select of the dispatcher's loop only
	steps    <-chan *sweep.Step
	waiting  []*sweep.Sweep
	isActive bool   // the sweeper has one
	retries  uint64 // the number of the last retry
	encoder  *archive.Encoder
	later    []*sweep.Sweep // retries that begin when the step that the sweeper has is on disk
	// Only one exclusion goes on at a time. What begins meanwhile follows it, so that many changes, one after the
	// other, do not have it begin again and again.
	excludes, excludesAgain bool
}

// isEmpty reports whether there are no sweeps, other than adoptions that have not begun.
func (q *sweepQueue) isEmpty() bool { return !q.isActive && len(q.waiting) == 0 }

// add begins a sweep, on disk too.
func (q *sweepQueue) add(s *sweep.Sweep, to *batch) {
	q.waiting = append(q.waiting, s)
	to.setMark(s.Mark(), s.Encode())
}

// addRetry begins a retry, on disk too. It starts when the outcomes that it may put back are on disk: those that
// gather, and those of a step that the sweeper has.
func (q *sweepQueue) addRetry(r *sweep.Retry, to *batch) {
	q.retries++
	s := r.Begin(q.retries, q.source.Log)
	to.setMark(s.Mark(), s.Encode())
	if q.isActive {
		q.later = append(q.later, s)
	} else {
		to.begun = append(to.begun, s)
	}
}

// addRecheck begins a recheck, on disk too.
func (q *sweepQueue) addRecheck(r frontier.Recheck, to *batch) { q.add(q.source.Recheck(r), to) }

// exclude begins an exclusion, on disk too; while one goes on, another one follows. After a restart it begins again.
func (q *sweepQueue) exclude(to *batch) {
	x := q.source.Exclusion()
	if q.excludes {
		q.excludesAgain = true
		to.setMark(x.Mark(), x.Encode())
		return
	}
	q.excludes = true
	q.add(x, to)
}

// next returns the channel and the sweep to offer to the sweeper.
func (q *sweepQueue) next() (chan<- *sweep.Sweep, *sweep.Sweep) {
	if q.isEmpty() && q.adopter != nil {
		if s := q.adopter.Next(); s != nil {
			q.waiting = append(q.waiting, s)
		}
	}
	if q.isActive || len(q.waiting) == 0 {
		return nil, nil
	}
	return q.toSweep, q.waiting[0]
}

// handedOver takes note that the sweeper has the first sweep.
func (q *sweepQueue) handedOver() { q.waiting, q.isActive = q.waiting[1:], true }

// take adds a step of a sweep to the next batch. Other sweeps have their turn before its next step.
// While another sweep waits that has the same mark, the mark is that one's. If nothing was found
// the mark stays: to look once more costs less than a commit.
func (q *sweepQueue) take(p *sweep.Step, to *batch) error {
	s := p.Sweep
	q.isActive = false
	to.begun, q.later = append(to.begun, q.later...), nil
	if p.Err != nil {
		return fmt.Errorf("change URLs (%s): %w", s.Mark(), p.Err)
	}
	to.rows.Done = append(to.rows.Done, p.Done...)
	to.rows.Purges = append(to.rows.Purges, p.Purges...)
	to.rows.Payloads = append(to.rows.Payloads, p.Payloads...)
	to.size += len(p.Done) + len(p.Purges)*purgeSize
	s.Took(p)
	isLast := !slices.ContainsFunc(q.waiting, func(other *sweep.Sweep) bool { return other.Mark() == s.Mark() })
	if p.End {
		to.swept = append(to.swept, s)
	} else {
		q.waiting = append(q.waiting, s)
	}
	if s.Mark() == sweep.MarkExclude {
		isLast = !q.excludesAgain // else its mark is that of the one that follows
		if q.excludes = !p.End; p.End && q.excludesAgain {
			q.excludesAgain = false
			q.exclude(to)
		}
	}
	switch {
	case isLast && p.End:
		to.setMark(s.Mark(), nil)
	case isLast && len(p.Done)+len(p.Purges)+len(p.Begins) > 0:
		to.setMark(s.Mark(), s.Encode())
	}
	return nil
}

// purgeSize is what a purge counts in the size of a batch.
const purgeSize = 500

// restore goes on with the sweeps that an earlier process did not finish, and begins those of
// settings that have become more generous. It returns all of them.
func (q *sweepQueue) restore(lifts []sweep.Lift) (sweeps []*sweep.Sweep, err error) {
	if q.waiting, err = q.source.Unfinished(lifts); err != nil {
		return nil, err
	}
	q.excludes = slices.ContainsFunc(q.waiting, func(s *sweep.Sweep) bool { return s.Mark() == sweep.MarkExclude })
	q.retries, err = sweep.LastRetry(q.source.Store)
	return q.waiting, err
}

// offerCrashes queues the URLs again at which another version crashed.
func (q *sweepQueue) offerCrashes(version string, to *batch) error {
	offers, err := q.source.Offers(version)
	for name, s := range offers {
		q.add(s, to)
		to.setMark(name, nil)
	}
	return err
}

// takeStep takes the step of a sweep.
func (ld *lender) takeStep(p *sweep.Step) {
	ld.fail(errors.Join(ld.sweeps.take(p, ld.pending), ld.sweeps.supersede(p, ld.pending)))
	for _, s := range p.Begins {
		ld.delete(s)
	}
	if ld.plan != nil {
		ld.pending.forgotten = append(ld.pending.forgotten, p.Forgotten...)
		for _, page := range p.Forgotten {
			ld.plan.Forget(page.History, page.Importance)
			ld.f.OffPlan(page.At, len(p.Purges) > 0)
		}
	}
}

// recallPages puts pages back on the plan that a batch was to take off it, and that had another outcome by then.
func (pm *permits) recallPages(b *batch) {
	for _, page := range b.forgotten {
		if slices.Contains(b.result.Unmet, page.At) {
			pm.plan.Recall(page.History, page.Importance)
			pm.markPlan(pm.pending)
		}
	}
}

// restoreSweeps goes on with the sweeps of an earlier process, and tells the frontier of those that
// take URLs out of a queue.
func (x *exclusions) restoreSweeps() error {
	sweeps, err := x.sweeps.restore(x.settings.lifts())
	if err != nil {
		return err
	}
	for _, s := range sweeps {
		switch {
		case s.Host() == storage.NoHost:
		case s.Deletes():
			x.f.Delete(s.Host(), s.Below(), x.o.Now())
		case s.Drops():
			x.f.Drop(s.Host(), s.Below(), x.o.Now())
		}
	}
	return x.sweeps.offerCrashes(x.o.Version, x.pending)
}

// delete begins to delete URLs of a host.
func (ld *lender) delete(s *sweep.Sweep) {
	ld.sweeps.add(s, ld.pending)
	ld.f.Delete(s.Host(), s.Below(), ld.o.Now())
	if ld.o.IgnoreRobots {
		ld.fail(ld.takeBack(s.Host(), s.Below()))
	}
}

// addWalls begins the sweeps of walls that have begun. Their marks are in the next commit, which holds
// the wall too. They start when it is on disk, because it may hold outcomes that they put back.
func (g *gathering) addWalls(walls []frontier.WallBegun) {
	for _, w := range walls {
		s := sweep.NewWall(w)
		g.pending.setMark(s.Mark(), s.Encode())
		g.pending.begun = append(g.pending.begun, s)
		g.log.Info("a host has put up a wall; it is probed once in each period of its backoff", "host", w.Name,
			"kind", w.Kind.String(), "maker", inspect.KnownMarks().Name(w.Maker), "since", w.Since)
	}
}

// keptSettings are the settings in force that decide about URLs, and those that the store keeps. The
// engine owns them before a run, then the dispatcher.
type keptSettings struct {
	o     *Options
	live  *atomic.Pointer[inForce]
	scope *atomic.Pointer[frontier.Scope]
	rules sweep.StoredRules
	mark  func(string) ([]byte, error)
	kept  sweep.Kept
}

// lifts returns all lifts for the options in force.
func (k *keptSettings) lifts() []sweep.Lift {
	live := k.live.Load()
	s := sweep.Settings{
		Fetch: &k.o.Fetch, Frontier: &k.o.Frontier, Mode: k.o.Mode, Include: live.Include, Exclude: live.Exclude,
		Consent: live.Consent, MazePages: k.o.Traps.MazePages, Scope: k.scope.Load(), Rules: k.rules, Mark: k.mark,
	}
	return s.Lifts()
}

// reconsider begins, on disk, a retry of what settings have lifted since they were kept; the
// dispatcher finds it there. It returns the settings as they
// are kept now, and the failures of robots.txt files that may be gone.
func (e *Engine) reconsider(ctx context.Context) (*keptSettings, []robots.Failure, error) {
	k := &keptSettings{o: &e.o, live: &e.live, scope: &e.scope, rules: e.rulesReader().Stored, mark: e.store.Mark}
	encoded, err := e.store.Mark(sweep.MarkSettings)
	if err == nil {
		err = k.kept.Restore(encoded)
	}
	if err != nil {
		return nil, nil, err
	}
	mark, lifted, forgiven := k.kept.Update(k.lifts(), e.store.Counters())
	if mark == nil || e.o.OnlyVisits {
		return k, nil, nil
	}
	b := storage.Batch{Marks: map[string][]byte{sweep.MarkSettings: mark}}
	if len(lifted) > 0 {
		last, err := sweep.LastRetry(e.store)
		if err != nil {
			return nil, nil, err
		}
		b.Marks[sweep.RetryMark(last+1)] = sweep.Command{Lifted: lifted}.Encode()
		logLifted(e.log, lifted)
	}
	if _, err := e.commitAtStart(ctx, &b); err != nil {
		return nil, nil, fmt.Errorf("keep the settings that decide about URLs: %w", err)
	}
	return k, forgiven, nil
}

// reconsider is Engine.reconsider for settings that change while the crawl runs.
func (x *exclusions) reconsider() {
	lifts := x.settings.lifts()
	// No setting that can change now is about robots.txt files.
	mark, lifted, _ := x.settings.kept.Update(lifts, x.counters())
	if mark == nil {
		return
	}
	x.pending.setMark(sweep.MarkSettings, mark)
	if len(lifted) == 0 {
		return
	}
	logLifted(x.log, lifted)
	if r, err := sweep.NewRetry(x.store, sweep.Command{Lifted: lifted}, lifts, nil); err != nil {
		x.fail(err)
	} else {
		x.sweeps.addRetry(r, x.pending)
	}
}

// counters returns at least 1 for a state that URLs may be in, those of outcomes that are not committed included.
func (g *gathering) counters() storage.Counters {
	g.collect()
	c := g.store.Counters()
	if g.committing || len(g.pending.rows.Done) > 0 {
		for state := range c.States {
			c.States[state]++
		}
	}
	return c
}

func logLifted(log *slog.Logger, settings []string) {
	log.Info("settings are more generous than before: URLs that they had left out are looked at again",
		"settings", settings)
}
