package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// lookup is the lease for a name on its way through a goroutine of its own, with what comes of it.
type lookup struct {
	ctx    context.Context
	lease  uint64
	host   string
	every  bool // the addresses of both families are wanted
	report frontier.ResolveReport
}

// apply ends the lease.
func (l *lookup) apply(d *dispatcher) {
	d.flights.lookups--
	d.share.endLookup()
	if err := d.f.CompleteResolve(l.lease, l.report); err != nil {
		d.fail(fmt.Errorf("complete the lookup of %s: %w", l.host, err))
	}
	d.collect()
}

// lookUpNames begins the lookups that are due, each in a goroutine of its own: name servers take
// longest to say that there is no such name, and no worker waits for that.
func (pm *permits) lookUpNames() {
	for pm.f.WantsNames() && !pm.isPaused() && pm.share.beginLookup() {
		l, ok := pm.f.NextName(pm.o.Now())
		if !ok {
			pm.share.endLookup()
			return
		}
		pm.flights.lookups++
		pm.flights.startLookup(&lookup{ctx: pm.flights.naming, lease: l.ID, host: l.HostName, every: l.Every})
	}
}

// lookUp does the work of a lookup. A panic becomes its report.
func (w *worker) lookUp(l *lookup) {
	defer func() { w.results <- l }()
	defer func() {
		if cause := recover(); cause != nil {
			w.lookupCrashed(l, cause, debug.Stack())
		}
	}()
	answer, err := w.client.Resolve(l.ctx, l.host, l.every)
	l.report = resolveReport(answer, err)
	l.report.End = w.o.Now()
	var failure *fetch.Error
	if errors.As(err, &failure) {
		level := slog.LevelDebug
		if w.tally.NameFailed(failure.Kind) {
			level = slog.LevelInfo
		}
		w.log.Log(l.ctx, level, "cannot resolve", "host", l.host, "error", failure)
	}
}

// lookupCrashed makes the report of a lookup that ended in a panic.
func (w *worker) lookupCrashed(l *lookup, cause any, stack []byte) {
	w.tally.Crash()
	w.keepCrash(crashes.Crash{Host: l.host, Cause: cause, Stack: stack})
	l.report = frontier.ResolveReport{End: w.o.Now(), Reason: storage.ReasonCrash}
}

// resolveReport returns the result of a lookup as the frontier takes it.
func resolveReport(answer fetch.Resolution, err error) frontier.ResolveReport {
	report := frontier.ResolveReport{Addresses: answer.Addrs, Aliases: answer.Aliases, TTL: answer.TTL}
	var failure *fetch.Error
	if !errors.As(err, &failure) {
		return report
	}
	report.Addresses = nil
	report.Aborted = failure.Kind == fetch.KindCanceled
	report.Final = failure.Kind == fetch.KindBlockedAddress
	report.Absent = failure.Kind == fetch.KindDNSNotFound && !answer.Remembered
	report.Reason = reasonOf(failure.Kind)
	return report
}

// knownName is frontier.Options.Known.
func (e *Engine) knownName(name string, every bool) (frontier.ResolveReport, bool) {
	answer, err, known := e.shared.client.Known(name, every)
	return resolveReport(answer, err), known
}
