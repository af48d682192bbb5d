package crawl

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// decided are the values of the settings that decide about URLs, by setting, as the store keeps them. They are compared with those in force
// at the start of a run and when settings change during one. Where one has become more generous, a retry puts back the URLs whose reason may
// be gone with that. Values that a store of an earlier version did not keep lift nothing.
type decided map[string]string

// markDecided is the name of their mark: one JSON object.
const markDecided = "decided"

// values are those in force.
func values(lifts []lift) decided {
	d := make(decided, len(lifts))
	for i := range lifts {
		d[lifts[i].setting] = lifts[i].value
	}
	return d
}

// lifted are the settings that have become more generous since, and decide about URLs in states that there are; and the failures of robots.txt
// files that all which have become so may end.
func (d decided) lifted(lifts []lift, c storage.Counters) (settings []string, failures []robots.Failure) {
	for i := range lifts {
		l := &lifts[i]
		before, known := d[l.setting]
		if !known || before == l.value || l.looser != nil && !l.looser(before, l.value) {
			continue
		}
		failures = append(failures, liftedRobots(l.setting)...)
		if c.Any(l.states) {
			settings = append(settings, l.setting)
		}
	}
	return settings, failures
}

func (d decided) encode() []byte {
	b, _ := json.Marshal(d) // of texts
	return b
}

// reconsider begins, on disk, a retry for what settings have lifted since they were kept. The dispatcher will find it there.
func (e *Engine) reconsider(ctx context.Context) error {
	encoded, err := e.store.Mark(markDecided)
	if err != nil {
		return err
	}
	if len(encoded) > 0 {
		if err := json.Unmarshal(encoded, &e.decided); err != nil {
			return fmt.Errorf("mark %s: %w: %w", markDecided, storage.ErrCorrupt, err)
		}
	}
	lifts := e.lifts()
	now := values(lifts)
	if maps.Equal(e.decided, now) {
		return nil
	}
	var lifted []string
	lifted, e.forgiven = e.decided.lifted(lifts, e.store.Counters())
	b := storage.Batch{Marks: map[string][]byte{markDecided: now.encode()}}
	if len(lifted) > 0 {
		last, err := e.lastRetry()
		if err != nil {
			return err
		}
		b.Marks[retryMark(last+1)] = (&retry{order: retryOrder{Lifted: lifted}}).encode()
		e.logLifted(lifted)
	}
	if _, err := e.commitSeeds(ctx, &b); err != nil {
		return fmt.Errorf("keep the settings that decide about URLs: %w", err)
	}
	e.decided = now
	return nil
}

// reconsiderLive is reconsider for settings that change while the crawl runs.
func (r *run) reconsiderLive() {
	lifts := r.lifts()
	now := values(lifts)
	if maps.Equal(r.decided, now) {
		return
	}
	lifted, _ := r.decided.lifted(lifts, r.store.Counters()) // none that can change now is about robots.txt files
	r.decided = now
	r.pending.setMark(markDecided, now.encode())
	if len(lifted) == 0 {
		return
	}
	r.logLifted(lifted)
	if w, err := newRetry(r.store, retryOrder{Lifted: lifted}, lifts); err != nil {
		r.fail(err)
	} else {
		r.addRetry(w)
	}
}

// forgives reports whether a robots.txt that could not be had is asked for again at once: since it failed, settings that may be why have become
// more generous. That is known to the process that finds it out; to any other the file is asked for in its time, within an hour.
func (e *Engine) forgives(r *robots.Record) bool {
	return r.Class == robots.ClassUnreachable && slices.Contains(e.forgiven, r.Failure) && r.FirstUnreachable.Before(e.opened)
}

func (e *Engine) logLifted(settings []string) {
	e.log.Info("settings are more generous than before: URLs that they had left out are looked at again", "settings", settings)
}
