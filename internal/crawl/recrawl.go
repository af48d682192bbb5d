package crawl

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/storage"
)

// MarkPlan is the name of the store's mark with what the recrawl plan has learned.
const MarkPlan = "plan"

// newPlan makes the recrawl plan and has the store consult it about news of known URLs.
func newPlan(o *Options) error {
	if o.Renew == nil {
		return nil
	}
	plan, err := revisit.New(*o.Renew)
	if err != nil {
		return err
	}
	o.Frontier.Renew = plan
	o.Storage.Notice = func(n storage.Noticed) (time.Time, [8]byte, bool) {
		site, err := revisit.DecodeSite(n.Site)
		if err != nil || n.Last.Reason == storage.ReasonCrash {
			return time.Time{}, [8]byte{}, false
		}
		page := revisit.Page{Host: n.Host, RequestURI: n.URI, Claimed: n.Claimed}
		before := revisit.Memory{At: n.Last.At, Due: n.Last.Due, History: n.Last.History}
		news := revisit.News{Modified: n.Modified, Read: n.At}
		news.Gone, news.TimesGone = n.Last.State == storage.Failed, int(n.Last.Attempts)
		m, ok := plan.Notice(&page, before, &site, news)
		return m.Due, m.History, ok
	}
	return nil
}

// restorePlan takes over what the plan had learned when it was last committed.
func (e *Engine) restorePlan() error {
	e.plan, _ = e.o.Frontier.Renew.(*revisit.Plan)
	if e.plan == nil {
		return nil
	}
	encoded, err := e.store.Mark(MarkPlan)
	if err != nil {
		return err
	}
	if err := e.plan.Restore(encoded); err != nil {
		return fmt.Errorf("mark %s: %w", MarkPlan, err)
	}
	return nil
}

// markPlan adds what the plan has learned to a batch, which has the outcomes that it learned it from.
func (d *dispatcher) markPlan(b *batch) {
	if d.plan != nil {
		encoded, _ := d.plan.AppendBinary(nil) // its error is always nil
		b.setMark(MarkPlan, encoded)
	}
}
