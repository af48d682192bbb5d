package crawl

import (
	"testing"

	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestManyExclusions begins an exclusion before each step of one that goes on: it comes to its end all the same, and
// one more follows. A restart at any time begins again.
func TestManyExclusions(t *testing.T) {
	var q sweepQueue
	b := new(batch)
	begin := func() {
		q.exclude(b)
		got := string(b.rows.Marks[sweep.MarkExclude])
		must.True(t, got == (storage.Position{}).String(), "the mark is %q", got)
	}
	step := func(end bool) *sweep.Sweep {
		t.Helper()
		must.True(t, len(q.waiting) == 1, "%d sweeps wait", len(q.waiting))
		s := q.waiting[0]
		q.handedOver()
		begin()
		must.Do(t, q.take(&sweep.Step{Sweep: s, End: end, Done: make([]storage.Done, 1)}, b))
		begin()
		return s
	}
	begin()
	first := step(false)
	assert.Equal(t, step(false), first, "the sweep began again")
	assert.Equal(t, step(true), first, "another sweep ended")
	assert.Not(t, step(false), first, "no sweep follows")
	s := q.waiting[0]
	q.handedOver()
	err := q.take(&sweep.Step{Sweep: s, End: true}, b)
	must.True(t, err == nil && len(q.waiting) == 1, "%d sweeps wait: %v", len(q.waiting), err)
	s = q.waiting[0]
	q.handedOver()
	if err := q.take(&sweep.Step{Sweep: s, End: true}, b); err != nil || !q.isEmpty() ||
		b.rows.Marks[sweep.MarkExclude] != nil {
		t.Errorf("%d sweeps wait, the mark is %q: %v", len(q.waiting), b.rows.Marks[sweep.MarkExclude], err)
	}
}
