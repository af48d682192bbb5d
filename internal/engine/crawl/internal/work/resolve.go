package work

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// Resolve looks a name up, every with the addresses of both families. A panic becomes its report.
func (w *Worker) Resolve(ctx context.Context, host string, every bool) (report frontier.ResolveReport) {
	defer func() {
		if cause := recover(); cause != nil {
			w.tally.Crash()
			w.keepCrash(crashes.Crash{Host: host, Cause: cause, Stack: debug.Stack()})
			report = frontier.ResolveReport{End: w.o.Now(), Reason: storage.ReasonCrash}
		}
	}()
	answer, err := w.client.Resolve(ctx, host, every)
	report = ResolveReport(answer, err)
	report.End = w.o.Now()
	var failure *fetch.Error
	if errors.As(err, &failure) {
		level := slog.LevelDebug
		if w.tally.NameFailed(failure.Kind) {
			level = slog.LevelInfo
		}
		w.log.Log(ctx, level, "cannot resolve", "host", host, "error", failure)
	}
	return report
}

// ResolveReport returns the result of a lookup as the frontier takes it.
func ResolveReport(answer fetch.Resolution, err error) frontier.ResolveReport {
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
