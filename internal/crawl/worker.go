package crawl

import (
	"context"
	"errors"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/warc"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// result is what a worker brings back for a lease.
type result struct {
	lease   frontier.Lease
	flight  // of a request
	resolve frontier.ResolveReport
	robots  frontier.RobotsReport
	page    frontier.PageReport
	simhash uint64 // of the text of a page; 0: none
	found   []storage.Found
	refused []storage.Refused
	join    weburl.URL       // where a seed's redirect led out of the scope
	visit   archive.Visit    // on its way into item
	item    *archive.Item    // of the output; nil: none
	body    warc.Digest      // of the decoded body; zero: nobody asked
	payload *storage.Payload // that the item brings; nil: none
	past    *storage.Policy  // the versions of a robots.txt before the one that came; nil: as they were
	request requestlog.Request
}

// work is a worker: one request at a time until there are no more leases.
func (r *run) work() {
	for res := range r.leases {
		switch res.lease.Kind {
		case frontier.Robots:
			r.fetchRobots(res.ctx, res)
		case frontier.Page:
			r.fetchPage(res.ctx, res)
		}
		r.results <- res
	}
}

// request makes the request of a lease and says what politeness has to know.
func (r *run) request(ctx context.Context, res *result, req fetch.Request) (*fetch.Response, *fetch.Error, frontier.Report) {
	req.Progress = &res.progress
	resp, err := r.client.Do(ctx, req)
	if err == nil {
		r.tally.answered(resp.Status, resp.Body.Size())
		r.observe(answerOf(&res.lease, resp))
		wait := retryAfter(resp)
		res.noteRequest(resp, nil, wait)
		return resp, nil, frontier.Report{
			Sent: true, End: resp.End, Duration: resp.End.Sub(resp.Start) - resp.Throttled,
			Signal: signalOf(resp.Status), Cause: storage.StatusCause(resp.Status), RetryAfter: wait, RetryAfterText: resp.Header.Get("Retry-After"),
			Bytes: uint64(resp.Body.Size()),
		}
	}
	var failure *fetch.Error
	if !errors.As(err, &failure) {
		now := r.now()
		failure = &fetch.Error{Op: "request", URL: req.URL.String(), Start: now, End: now, Err: err}
	}
	r.tally.failed(failure.Kind, failure.Sent)
	r.tally.answers.fail(failure.Kind)
	r.observe(failureOf(&res.lease, failure))
	res.noteRequest(nil, failure, 0)
	return nil, failure, frontier.Report{
		Sent: failure.Sent || failure.Kind != fetch.KindCanceled, Broken: failure.Kind == fetch.KindCanceled || failure.Kind == fetch.KindLostOnReuse,
		End: failure.End, Duration: failure.End.Sub(failure.Start) - failure.Throttled,
		Signal: failureSignal(failure.Kind), Cause: storage.ReasonCause(reasonOf(failure.Kind)),
	}
}

// signalOf says what a status tells about the pace.
func signalOf(status int) politeness.Signal {
	switch {
	case status == 429 || status == 503:
		return politeness.SignalThrottled
	case status >= 500:
		return politeness.SignalServerError
	}
	return politeness.SignalOK
}

// failureSignal says what a failure tells about the host: those that are our
// own say nothing.
func failureSignal(k fetch.Kind) politeness.Signal {
	switch k {
	case fetch.KindCanceled, fetch.KindLocal, fetch.KindBlockedAddress, fetch.KindUnsupported, fetch.KindLostOnReuse:
		return politeness.SignalAborted
	case fetch.KindHeaderTooLarge, fetch.KindBadResponse, fetch.KindBadEncoding, fetch.KindTypeNotWanted:
		return politeness.SignalOK
	}
	return politeness.SignalUnreachable
}

// retryAfter reads Retry-After where it means what it says: with 429, 503 and
// the redirects (RFC 9110 section 10.2.3).
func retryAfter(resp *fetch.Response) time.Duration {
	if resp.Status != 429 && resp.Status != 503 && resp.Status/100 != 3 {
		return 0
	}
	d, _ := politeness.ParseRetryAfter(resp.Header.Get("Retry-After"), resp.End)
	return d
}

// reasonOf is how the store names a kind of failure.
func reasonOf(k fetch.Kind) storage.Reason { return storage.ReasonFetch + storage.Reason(k) }
