package remote

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/starts"
)

// TestHistory: what is left of a lease, in whatever order a process was killed, says whether it is out, whether its
// request has to be in the request log, and never both.
func TestHistory(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	lease := func(id string, left time.Duration) Record {
		r := Record{ID: id, Fetcher: "f", URL: "http://a.test/", Given: now.Add(-time.Minute)}
		r.Deadline = now.Add(left)
		return r
	}
	line := func(kind string, r Record) starts.Start { return starts.Start{Note: r.Note(kind), At: r.Given} }
	out, over := lease("A", time.Minute), lease("A", -time.Second)
	next := lease("B", time.Minute)
	given, longer, end := line(NoteLease, out), line(NoteLease, lease("A", time.Hour)), line(NoteEnd, out)
	for name, x := range map[string]struct {
		marks             []Record
		lines             []starts.Start
		logged            string
		fetched, answered bool
		out, ended        string // ids
	}{
		"out":                           {lines: []starts.Start{given}, out: "A"},
		"only a mark is left":           {marks: []Record{out}, out: "A"},
		"ran out":                       {lines: []starts.Start{line(NoteLease, over)}, ended: "A"},
		"extended, its mark ran out":    {marks: []Record{over}, lines: []starts.Start{longer}, out: "A"},
		"given back":                    {lines: []starts.Start{given, end}},
		"given back, with a mark":       {marks: []Record{out}, lines: []starts.Start{end}},
		"reported":                      {lines: []starts.Start{given, line(NoteReport, out)}},
		"logged, and killed then":       {lines: []starts.Start{given}, logged: "A", ended: "A"},
		"logged and ended":              {lines: []starts.Start{given, end}, logged: "A", ended: "A"},
		"leased again":                  {lines: []starts.Start{end, line(NoteAgain, next)}, out: "B"},
		"the end of an earlier lease":   {lines: []starts.Start{line(NoteLease, next), end}, out: "B"},
		"the request of an earlier one": {lines: []starts.Start{line(NoteLease, next)}, logged: "A", out: "B"},
		"fetched by amble since":        {marks: []Record{out}, fetched: true},
		"has an outcome since":          {marks: []Record{out}, answered: true},
	} {
		h := NewHistory()
		for _, r := range x.marks {
			must.Do(t, h.AddMark(Mark+r.ID, r.Encode()))
		}
		for i, s := range x.lines {
			reported, ok := h.AddLine(s, uint64(i))
			assert.True(t, ok && (reported != nil) == strings.HasPrefix(s.Note, NoteReport), "%s: %q is read as %v, %v",
				name, s.Note, reported, ok)
		}
		if x.fetched {
			h.AddFetch(out.URL)
		}
		if x.logged != "" {
			h.AddLogged(&requestlog.Request{Lease: x.logged})
		}
		left, ended, err := h.Settle(now, func(weburl.URL, time.Time) (bool, error) { return !x.answered, nil })
		ids := [2][]string{}
		for _, r := range left {
			ids[0] = append(ids[0], r.ID)
		}
		for _, q := range ended {
			ids[1] = append(ids[1], q.Lease)
		}
		for i, want := range []string{x.out, x.ended} {
			if err != nil || want == "" && len(ids[i]) > 0 || want != "" && !slices.Equal(ids[i], []string{want}) {
				t.Errorf("%s: out and ended are %q, %v, want %q and %q", name, ids, err, x.out, x.ended)
			}
		}
	}
}
