package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

const docs = "../../../docs"

// TestDocumentation: the tables and drawings of the documentation match the results in it.
func TestDocumentation(t *testing.T) {
	r := must.Get(readResults(filepath.Join(docs, filepath.FromSlash(resultsFile))))(t)
	read := func(name string) string {
		b := must.Get(os.ReadFile(filepath.Join(docs, filepath.FromSlash(name))))(t)
		return string(b)
	}
	page := read(document)
	assert.True(t, strings.Contains(page, tablesIn+r.tables()+tablesTo) && strings.Contains(page, r.Command),
		"%s does not have the tables of %s, or not the command that made them", document, resultsFile)
	for which := range webs {
		assert.Equal(t, read(drawingOf(which)), r.drawing(which), drawingOf(which), "is not what the results draw")
	}
}

// TestTargets checks the results against the scheduler's targets, with the limits of hosts in
// force.
func TestTargets(t *testing.T) {
	r := must.Get(readResults(filepath.Join(docs, filepath.FromSlash(resultsFile))))(t)
	for _, target := range []struct{ budget, fresh, penalty float64 }{{100, 0.72, 0.43}, {300, 0.84, 0.21}} {
		got := r.of(webs[0].name, target.budget, ours)
		for seed, s := range got.Seeds {
			assert.True(t, !(s.Freshness < target.fresh) && !(s.Penalty >= target.penalty),
				"%g a day, seed %d: %+v, want a freshness of %g and a penalty under %g", target.budget,
				got.First+uint64(seed), s, target.fresh, target.penalty)
		}
		assert.AtLeast(t, got.mean().Freshness/r.best(webs[0].name, target.budget), 0.95, target.budget,
			"a day of the best possible")
	}
}

// TestSmallRun crawls a web for some weeks with two policies: the learned one is better, and the
// same seed gives the same run.
func TestSmallRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	scores := map[string]Score{}
	for _, p := range policies() {
		if p.Name != "uniform" && p.Name != ours {
			continue
		}
		s, err := run(0, 1, p, 100, 40, 20)
		must.Do(t, err, p.Name)
		assert.AtMost(t, s.Visits, 105, p.Name, "makes visits a day of 100")
		scores[p.Name] = s
	}
	if a, b := scores[ours], scores["uniform"]; a.Freshness < b.Freshness+0.05 || a.Penalty > 0.7*b.Penalty {
		t.Errorf("harmonic %+v, uniform %+v", a, b)
	}
	again, err := run(0, 1, policies()[0], 100, 40, 20)
	assert.True(t, err == nil && again == scores["uniform"], "a run of the same seed scores %+v, not %+v (%v)", again,
		scores["uniform"], err)
}

// TestConcurrentRuns: runs at the same time have the results of runs one after the other.
func TestConcurrentRuns(t *testing.T) {
	var r Results
	uniform := policies()[0]
	must.Do(t, r.run(webs[0].name, []policy{uniform}, Seeds{1, 2}, 4, 1, 1))
	got := r.Results[1].Seeds[1]
	assert.Returns(run(0, 2, uniform, budgets[1], 1, 1))(t, got, "at the same time as others, alone")
}

// TestPagesChangeAtTheirRates counts the changes of pages over a long time.
func TestPagesChangeAtTheirRates(t *testing.T) {
	for which, w := range webs {
		for _, k := range w.kinds {
			expected, seen := 0.0, 0.0
			for _, p := range newWeb(which, 3)[:400] {
				if p.kind != k || p.rate > 5 {
					continue
				}
				const days = 1000
				for p.next < days {
					seen++
					p.next = p.after(p.next)
				}
				expected += p.rate * days
			}
			assert.True(t, (k != never || !(seen > 0)) && (k == never || !(math.Abs(seen/expected-1) > 0.1)),
				"web %s: %.0f changes of pages of kind %d, expected %.0f", w.name, seen, k, expected)
		}
	}
}

// TestScore computes the score of the copy of one page.
func TestScore(t *testing.T) {
	p := &page{kind: periodic, rate: 0.1, weight: 1, from: warmUp, next: warmUp + 10}
	p.fetched(warmUp)
	p.fetched(warmUp + 12) // two days out of date
	p.until(warmUp + 40)   // changes at 20, 30 and 40: fresh until 20
	assert.True(t, p.fresh == 18 && p.penalty == 2+10+10*1.5 && p.outdated == 2*1+20*10,
		"fresh for %g days, penalty %g, outdated %g", p.fresh, p.penalty, p.outdated)
}
