package crawl

import (
	"bytes"
	"context"
	"net/http"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// fetchRobots serves a Robots lease: one request, judged by the state machine.
func (w *worker) fetchRobots(ctx context.Context, res *result) {
	job, u := res.lease.Robots, res.lease.URL
	etag, modified := w.robotsValidators(job, u)
	resp, failure, report := w.request(ctx, res, fetch.Request{
		URL: u, Address: res.lease.Address, ETag: etag, LastModified: modified,
		MaxBody: robots.MaxBody + 1, AnyType: true,
	})
	defer closePartial(failure)
	res.robots.Report = report
	if !report.Sent || report.Broken {
		return
	}
	if w.outputRobots(ctx, res, resp, failure); res.robots.Broken {
		return
	}
	out := w.robotsOutcome(u, resp, failure)
	out.Body = bytes.Clone(out.Body)
	if job.IsQuery() {
		res.robots.Outcome = out
		return
	}
	w.judgeRobots(res, out)
}

// robotsValidators returns the validators of the copy of a robots.txt. An archive is to have each version
// whole.
func (w *worker) robotsValidators(job *frontier.RobotsJob, u weburl.URL) (etag, modified string) {
	if w.o.capturesExchanges() {
		return "", ""
	}
	return job.Previous.Validators(u.String())
}

// judgeRobots decides what the request of a robots job has come to.
func (w *worker) judgeRobots(res *result, out robots.Outcome) {
	job := res.lease.Robots
	out.Redirects, out.Jitter, out.HostAnswers = job.Hops, w.o.Frontier.Jitter(), job.HostAnswers
	record, action := w.o.Frontier.Robots.Next(job.Previous, out, res.robots.End)
	if action.Kind == robots.ActionRedirect {
		target, err := weburl.Parse(action.URL)
		if err == nil && (w.o.Cluster != nil || w.o.owns(target.Host())) {
			res.robots.Redirect = target
			return
		}
		out.Failure = robots.FailureProtocol
		if err == nil { // only the owner of that host may make requests to it
			out.Failure = robots.FailureConnect
		}
		record, _ = w.o.Frontier.Robots.Next(job.Previous, out, res.robots.End)
	}
	rules, sitemaps := record.Read(w.o.Frontier.Tokens...)
	res.robots.Record, res.robots.Rules = record, rules
	w.keepHistory(job, &record, res)
	w.takeAnnounced(job, sitemaps, res)
	w.announceTDM(job, &record, res)
	w.tally.Robots.Add(1)
	w.log.Debug("robots", "origin", job.Origin.String(), "class", record.Class.String(), "status", record.Status)
}

// keepHistory keeps the version of a robots.txt that another one replaces. Nobody else fetches the
// robots.txt of the origin meanwhile.
func (w *worker) keepHistory(job *frontier.RobotsJob, record *robots.Record, res *result) {
	if !record.Replaces(job.Previous) {
		return
	}
	encoded, err := w.store.RobotsHistory(job.Origin)
	var history robots.History
	if err == nil {
		history, err = robots.DecodeHistory(encoded)
	}
	if err != nil {
		w.log.Warn("the earlier versions of a robots.txt cannot be read, and are forgotten",
			"origin", job.Origin.String(), "error", err)
	}
	if encoded, err = history.With(job.Previous, record.Fetched).AppendBinary(nil); err == nil {
		res.history = &storage.Policy{Origin: job.Origin, Record: encoded}
	}
}

func robotsHeader(h http.Header) robots.Header {
	return robots.Header{
		ContentType: h.Get("Content-Type"), Location: h.Get("Location"), RetryAfter: h.Get("Retry-After"),
		CacheControl: h.Get("Cache-Control"), Expires: h.Get("Expires"), Date: h.Get("Date"), Age: h.Get("Age"),
		ETag: h.Get("ETag"), LastModified: h.Get("Last-Modified"),
	}
}

// robotsFailure returns the name that package robots has for a kind of failure.
func robotsFailure(k fetch.Kind) robots.Failure {
	switch k {
	case fetch.KindDNSNotFound, fetch.KindDNSFailure, fetch.KindDNSTimeout:
		return robots.FailureDNS
	case fetch.KindTLS, fetch.KindCertificate:
		return robots.FailureTLS
	case fetch.KindConnectTimeout, fetch.KindTLSTimeout, fetch.KindHeaderTimeout, fetch.KindBodyTimeout,
		fetch.KindTooSlow:
		return robots.FailureTimeout
	case fetch.KindIncompleteBody, fetch.KindBadEncoding:
		return robots.FailureTransfer
	case fetch.KindBlockedAddress:
		return robots.FailureBlocked
	case fetch.KindBadResponse, fetch.KindHeaderTooLarge, fetch.KindUnsupported:
		return robots.FailureProtocol
	}
	return robots.FailureConnect
}
