package crawl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// commitDebt writes down what an earlier process owes, and to whom, and what it died of.
func (e *Engine) commitDebt(debt *storage.Debt, left uncommitted) error {
	owed, err := e.store.Mark(markOwed)
	if err != nil {
		return err
	}
	if err := e.owedSince.UnmarshalBinary(owed); len(owed) > 0 && err != nil {
		return fmt.Errorf("mark %s: %w", markOwed, err)
	}
	e.owedSince = earlier(e.owedSince, e.opened)
	b := storage.Batch{Marks: map[string][]byte{
		storage.MarkLedger: storage.EncodePlace(debt.End), markUnsaid: e.requests.unsaid.encode(),
		MarkOutput: encodeMarks(e.marks),
	}}
	if debt.Everyone {
		e.owedSince = e.opened
		if b.Marks[markOwed], err = e.opened.MarshalBinary(); err != nil {
			return err
		}
	}
	creditors := slices.AppendSeq(slices.Collect(maps.Keys(debt.Hosts)), maps.Keys(debt.Waits))
	slices.Sort(creditors)
	for _, name := range slices.Compact(creditors) {
		h, err := e.store.HostByName(name)
		if errors.Is(err, storage.ErrNotFound) {
			continue // a host is on disk before it is asked: this ledger knew another database
		}
		if err == nil {
			err = e.owe(&b, &h, debt)
		}
		if err != nil {
			return err
		}
	}
	if len(creditors) > 0 {
		e.log.Info("requests of the last run have no outcome", "hosts", len(debt.Hosts), "waits", len(debt.Waits))
	}
	items, err := e.takeDeaths(&b, debt, left)
	if err == nil {
		err = e.commitItems(&b, items)
	}
	for _, item := range items {
		err = errors.Join(err, item.Close())
	}
	return err
}

// commitItems commits a batch with what the output has of it.
func (e *Engine) commitItems(b *storage.Batch, items []*archive.Item) error {
	marks, err := e.write(items)
	if err != nil {
		return err
	}
	if len(items) > 0 {
		b.Marks[MarkOutput] = encodeMarks(marks)
	}
	if _, err = e.store.Commit(b); err == nil { // else the next start cuts the output where its marks are
		e.marks = marks
	}
	return err
}

// owe puts what a host is owed into a batch: a delay for a request whose end is not known, and the wait that it asked for in an
// answer that was not committed.
func (e *Engine) owe(b *storage.Batch, h *storage.Host, debt *storage.Debt) error {
	known, asked := debt.Hosts[h.Name]
	wait, waits := debt.Waits[h.Name]
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	polite := politeness.NewHost(e.force.Load().politeness(h.Name), state, e.opened)
	if asked {
		delay := max(known, polite.Delay(e.opened))
		if known < 0 { // no robots.txt was read that could have asked for more
			delay = max(delay, frontier.RestartDelay)
		}
		polite.Owe(e.opened, delay, politeness.ReasonRestart)
	}
	if waits {
		left := min(wait.At.Add(wait.Wait).Sub(e.opened), wait.Wait) // no longer than it was, if the clock was set back
		polite.Owe(e.opened, left, politeness.ReasonRetryAfter)
	}
	encoded, err := polite.State(e.opened).AppendBinary(nil)
	b.Hosts = append(b.Hosts, storage.HostUpdate{Host: h.ID, Politeness: encoded})
	return err
}

// earlier returns a, or b where a lies behind it: a clock that was set back
// does not prolong a debt.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// noteWait writes a Retry-After into the ledger: it must hold even if this process ends before the answer is committed.
func (r *run) noteWait(l *frontier.Lease, report *frontier.Report) {
	if !report.Sent || report.RetryAfter <= l.Delay {
		return
	}
	err := r.ledger.AppendWait(storage.Wait{Host: l.HostName, At: report.End, Wait: report.RetryAfter})
	if err != nil && !errors.Is(err, storage.ErrNoSpace) { // on a full disk nothing is asked before the commit
		r.fail(err)
	}
}
