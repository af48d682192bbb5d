//go:build !core

package audit

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// judge matches pages with the robots package again.
type judge struct {
	o        robots.Options
	process  *requestlog.Process // of the file that is being read
	versions map[robots.Version]*requestlog.Policy
	before   map[robots.Version]*requestlog.Policy // of the file before
	// absent holds the origins whose last known state is that there was no robots.txt.
	absent   map[weburl.Origin]*requestlog.Policy
	replaced map[weburl.Origin]*replaced
	compiled map[*requestlog.Policy]*compiled
	bytes    int
}

// replaced is the last good robots.txt of an origin, and how many responses without one came since.
type replaced struct {
	fetched   time.Time
	responses int
}

// compiled are the rules of a policy.
type compiled struct {
	rules  *robots.Rules
	record robots.Record
	delay  string // the line with the longest delay
}

// maxCompiled bounds the bytes of rules that are kept for more requests.
const maxCompiled = 64 << 20

func newJudge(o robots.Options) *judge {
	return &judge{
		o: o, versions: make(map[robots.Version]*requestlog.Policy), absent: make(map[weburl.Origin]*requestlog.Policy),
		replaced: make(map[weburl.Origin]*replaced),
		compiled: make(map[*requestlog.Policy]*compiled),
	}
}

// enter records the robots.txt of a request. Each file of the log has a Process of its own.
func (j *judge) enter(q *requestlog.Request) {
	if q.Process != j.process {
		j.process = q.Process
		j.before, j.versions = j.versions, make(map[robots.Version]*requestlog.Policy)
		clear(j.compiled)
		j.bytes = 0
	}
	if q.Policy == nil || q.Policy.Record.Class == robots.ClassNone {
		return
	}
	j.versions[q.Policy.Version] = q.Policy
	if q.Kind == requestlog.Robots {
		j.noteResponse(rulesOf(q), q.Policy)
	}
	if allows := q.Kind == requestlog.Page && q.Allowed ||
		q.Policy.Record.Class == robots.ClassUnavailable; allows && q.Policy.Version.IsZero() {
		j.absent[rulesOf(q)] = q.Policy
	} else {
		delete(j.absent, rulesOf(q))
	}
}

// noteResponse takes note of what a request for the robots.txt of an origin came to.
func (j *judge) noteResponse(origin weburl.Origin, p *requestlog.Policy) {
	r, last := &p.Record, j.replaced[origin]
	switch {
	case r.Class == robots.ClassFound && hasRecords(p):
		j.replaced[origin] = &replaced{fetched: r.Fetched}
	case r.Status == 404 || r.Status == 410:
		delete(j.replaced, origin)
	case last != nil && (r.Class != robots.ClassUnreachable || r.Failure == robots.FailureUnconfirmed):
		last.responses++
	}
}

// hasRecords reports whether a policy is a robots.txt with a record.
func hasRecords(p *requestlog.Policy) bool {
	if p.Version.IsZero() {
		return false
	}
	body, kept := p.Body()
	return kept && robots.ContentOf(body) == robots.ContentFile
}

// rulesOf returns the origin whose rules a request is for.
func rulesOf(q *requestlog.Request) weburl.Origin {
	if q.For != (weburl.Origin{}) {
		return q.For
	}
	return q.URL.Origin()
}

// decisionGrain is the precision of the stored times of a robots.txt.
const decisionGrain = time.Millisecond

// rules judges a page. A page whose robots.txt makes amble panic is unproven; the others are
// judged.
func (j *judge) rules(q *requestlog.Request, f *Finding) {
	defer func() {
		if recover() != nil {
			f.Unproven = q.Kind == requestlog.Page
		}
	}()
	p := q.Policy
	if p == nil && q.End.IsZero() { // the start ledger names no robots.txt if there was none
		p = j.absent[q.URL.Origin()]
	}
	if p == nil {
		if q.Kind == requestlog.Page && !q.End.IsZero() {
			f.violated(NoVerdict, "no robots.txt allowed it")
		}
		f.Unproven = q.Kind == requestlog.Page && q.End.IsZero()
		return
	}
	if p.Record.Class == robots.ClassNone {
		if p = j.policyOf(p.Version); p == nil {
			f.Unproven = q.Kind == requestlog.Page
			return
		}
	}
	if last := j.replaced[q.URL.Origin()]; q.Kind == requestlog.Page && p.Version.IsZero() && last != nil &&
		last.responses == 1 {
		f.violated(NotInForce,
			fmt.Sprintf("one response without a robots.txt does not end the rules of the file that was "+
				"fetched at %s", last.fetched.UTC().Format(time.RFC3339)))
	}
	f.class = p.Record.Class.String()
	c := j.compile(p)
	if c == nil {
		f.Unproven = q.Kind == requestlog.Page
		return
	}
	pace := c.rules.Pace()
	f.DelayLine, f.DelayText = pace.Line, c.delay
	if q.Kind != requestlog.Page {
		return
	}
	f.visits = pace.Visits
	f.Verdict = c.rules.Match(q.URL.RequestURI())
	if f.Verdict.Line > 0 {
		f.Rule = robots.LineText(c.record.Body, f.Verdict.Line)
	}
	if !f.Verdict.Allowed {
		f.violated(Disallowed, fmt.Sprintf("line %d of its robots.txt: %s%s", f.Verdict.Line, f.Rule, disobedient(q)))
	}
	if q.End.IsZero() {
		return
	}
	if pace.Delay > q.Delay {
		f.violated(SlowDelay, fmt.Sprintf("line %d of its robots.txt demands %v between requests; the delay in force "+
			"was %v", pace.Line, pace.Delay, q.Delay))
	}
	if s := j.o.Decide(c.record, q.Delay, q.Decided.Add(-decisionGrain)); s.Kind != robots.DecisionMatch {
		f.violated(NotInForce, fmt.Sprintf("its robots.txt, fetched at %s, had to be fetched again first%s",
			c.record.Fetched.UTC().Format(time.RFC3339), disobedient(q)))
	}
}

func disobedient(q *requestlog.Request) string {
	if q.Process.Obey {
		return ""
	}
	return " (robots.obey was false)"
}

// policyOf returns the policy that a request without an end names by its version. Its process had
// that in this or the last file.
func (j *judge) policyOf(v robots.Version) *requestlog.Policy {
	if p := j.versions[v]; p != nil {
		return p
	}
	return j.before[v]
}

// compile returns the rules of a policy, or nil if the log lacks its body.
func (j *judge) compile(p *requestlog.Policy) *compiled {
	if c, known := j.compiled[p]; known {
		return c
	}
	c := &compiled{record: p.Record}
	if !p.Version.IsZero() {
		body, kept := p.Body()
		if !kept || robots.VersionOf(body) != p.Version {
			j.compiled[p] = nil
			return nil
		}
		c.record.Body = body
	}
	c.rules = c.record.Rules(j.process.Tokens...)
	if line := c.rules.Pace().Line; line > 0 {
		c.delay = robots.LineText(c.record.Body, line)
	}
	size := c.rules.Size() + len(c.record.Body)
	if j.bytes += size; j.bytes > maxCompiled {
		clear(j.compiled)
		j.bytes = size
	}
	j.compiled[p] = c
	return c
}
