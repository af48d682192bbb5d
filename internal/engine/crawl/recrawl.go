package crawl

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/stamp"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// newPlan makes the recrawl plan and has the store consult it about news of known URLs.
func newPlan(o *Options) error {
	if o.Recrawl == nil {
		return nil
	}
	plan, err := recrawl.New(*o.Recrawl)
	if err != nil {
		return err
	}
	if o.RecrawlBudget != nil {
		plan.SetBudget(max(o.RecrawlBudget(), recrawl.LeastBudget))
	}
	o.Frontier.Recrawl = plan
	o.Storage.Notice = func(n storage.Noticed) (time.Time, [8]byte, bool) {
		site, err := recrawl.DecodeSite(n.Site)
		if err != nil || n.Last.Reason == storage.ReasonCrash {
			return time.Time{}, [8]byte{}, false
		}
		page := recrawl.Page{Host: n.Host, RequestURI: n.URI, Claimed: n.Claimed}
		before := recrawl.Memory{At: n.Last.At, Due: n.Last.Due, History: n.Last.History}
		news := recrawl.News{Modified: n.Modified, Read: n.At}
		news.Gone, news.TimesGone = n.Last.State == storage.Failed, int(n.Last.Attempts)
		m, ok := plan.Notice(&page, before, &site, news)
		return m.Due, m.History, ok
	}
	return nil
}

// restorePlan takes over what the plan had learned when it was last committed.
func (e *Engine) restorePlan() error {
	e.plan, _ = e.o.Frontier.Recrawl.(*recrawl.Plan)
	if e.plan == nil {
		return nil
	}
	encoded, err := e.store.Mark(marks.Plan)
	if err != nil {
		return err
	}
	if err := e.plan.Restore(encoded); err != nil {
		return fmt.Errorf("mark %s: %w", marks.Plan, err)
	}
	return nil
}

// followBudget takes over the part of the budget that the shard has now.
func (pm *permits) followBudget() {
	if pm.plan == nil || pm.o.RecrawlBudget == nil {
		return
	}
	if budget := max(pm.o.RecrawlBudget(), recrawl.LeastBudget); budget != pm.plan.Budget() {
		pm.plan.SetBudget(budget)
		pm.f.BudgetChanged(pm.o.Now())
	}
}

// markPlan adds what the plan has learned to a batch, which has the outcomes that it learned it from.
func (pm *permits) markPlan(b *batch) {
	if pm.plan != nil {
		encoded, _ := pm.plan.AppendBinary(nil) // its error is always nil
		b.setMark(marks.Plan, encoded)
	}
}

// stamps returns what makes the stamps of pages; nil: none is recrawled, or the output has what is read out of each.
func (o *Options) stamps() *stamp.Maker {
	needs, e := o.Archive.Needs(), o.Extract
	if o.Recrawl == nil || needs.Text || needs.Links || len(e.Rules) > 0 && !o.Archive.IsNone() {
		return nil
	}
	e.Rules = nil // nobody takes what they find
	return stamp.NewMaker(o.URLs, o.Traps, o.MaxDomainHosts, o.SessionNames, o.NoFollow, o.Sitemaps, e, o.Requisites,
		o.Frontier.Tokens, o.Frontier.MaxDepth, o.Frontier.MaxRedirects)
}
