package crawl

import (
	"context"
	"errors"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
)

// lookUpNames begins the lookups that are due, each in a goroutine of its own: name servers take
// longest to say that there is no such name, and no worker waits for that.
func (r *run) lookUpNames() {
	for !r.paused() {
		l, ok := r.f.NextName(r.now())
		if !ok {
			return
		}
		r.lookups++
		r.running.Go(func() {
			res := &result{lease: l}
			res.ctx = r.naming
			r.serve(res)
			r.results <- res
		})
	}
}

// lookUp asks for the addresses of a host.
func (r *run) lookUp(ctx context.Context, res *result) {
	answer, err := r.client.Resolve(ctx, res.lease.HostName)
	res.resolve = resolveReport(answer, err)
	res.resolve.End = r.now()
	var failure *fetch.Error
	if errors.As(err, &failure) {
		r.tally.answers.fail(failure.Kind)
		r.log.Debug("cannot resolve", "host", res.lease.HostName, "error", failure)
	}
}

// resolveReport is an answer about a name in the words of the frontier.
func resolveReport(answer fetch.Resolution, err error) frontier.ResolveReport {
	report := frontier.ResolveReport{Addresses: answer.Addrs, TTL: answer.TTL}
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
func (e *Engine) knownName(name string) (frontier.ResolveReport, bool) {
	answer, err, known := e.client.Known(name)
	return resolveReport(answer, err), known
}
