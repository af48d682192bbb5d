package work

import (
	"bytes"
	"context"
	"runtime/debug"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// fetchRobots serves a Robots lease: one request, judged by the state machine.
func (w *Worker) fetchRobots(ctx context.Context, res *Result) {
	job, u := res.Lease.Robots, res.Lease.URL
	etag, modified := w.robotsValidators(job, u)
	resp, failure, report := w.request(ctx, res, fetch.Request{
		URL: u, Address: res.Lease.Address, ETag: etag, LastModified: modified,
		MaxBody: robots.MaxBody + 1, AnyType: true, CutAtBounds: true,
	})
	defer closePartial(failure)
	res.Robots.Report = report
	if !report.Sent || report.Broken {
		return
	}
	if w.outputRobots(ctx, res, resp, failure); res.Robots.Broken {
		return
	}
	w.tryPlain(res, failure)
	out := w.robotsOutcome(res, resp, failure)
	out.Body = bytes.Clone(out.Body)
	if job.IsQuery() {
		res.Robots.Outcome = out
		return
	}
	w.judgeRobots(res, out)
}

// robotsValidators returns the validators of the copy of a robots.txt. An archive is to have each version
// whole.
func (w *Worker) robotsValidators(job *frontier.RobotsJob, u weburl.URL) (etag, modified string) {
	if w.o.Fetch.Capture {
		return "", ""
	}
	return job.Previous.Validators(u.String())
}

// judgeRobots decides what the request of a robots job has come to.
func (w *Worker) judgeRobots(res *Result, out robots.Outcome) {
	job := res.Lease.Robots
	out.Redirects, out.Jitter, out.HostAnswers = job.Hops, w.o.Frontier.Jitter(), job.HostAnswers
	record, action := w.o.Frontier.Robots.Next(job.Previous, out, res.Robots.End)
	if action.Kind == robots.ActionRedirect {
		target, err := weburl.Parse(action.URL)
		if err == nil && (w.o.FetchRobots != nil || w.o.Owns(target.Host())) {
			res.Robots.Redirect = target
			return
		}
		out.Failure = robots.FailureProtocol
		if err == nil { // only the owner of that host may make requests to it
			out.Failure = robots.FailureConnect
		}
		record, _ = w.o.Frontier.Robots.Next(job.Previous, out, res.Robots.End)
	}
	rules, sitemaps := record.Read(w.o.Frontier.Tokens...)
	res.Robots.Record, res.Robots.Packed, res.Robots.Rules = record, robots.Pack(record.Body), rules
	w.keepHistory(job, &record, res)
	w.takeAnnounced(job, sitemaps, res)
	w.announceDeclared(job, &record, rules, res)
	w.tally.Robots.Add(1)
	w.log.Debug("robots", "origin", job.Origin.String(), "class", record.Class.String(), "status", record.Status)
}

// keepHistory keeps the version of a robots.txt that another one replaces. Nobody else fetches the
// robots.txt of the origin meanwhile.
func (j *judging) keepHistory(job *frontier.RobotsJob, record *robots.Record, res *Result) {
	if !record.Replaces(job.Previous) {
		return
	}
	encoded, err := j.store.RobotsHistory(job.Origin)
	var history robots.History
	if err == nil {
		history, err = robots.DecodeHistory(encoded)
	}
	if err != nil {
		j.log.Warn("the earlier versions of a robots.txt cannot be read, and are forgotten",
			"origin", job.Origin.String(), "error", err)
	}
	if encoded, err = history.With(job.Previous, record.Fetched).AppendBinary(nil); err == nil {
		res.History = &storage.Policy{Origin: job.Origin, Record: encoded}
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

// RobotsQuery is a request that one shard wants of another: to where a robots.txt redirects.
type RobotsQuery struct {
	URL          weburl.URL    // of a host of the other shard
	Origin       weburl.Origin // whose rules are wanted
	ETag         string        // validators; empty: there is none
	LastModified string
}

// QueryRobots has another shard make the next request of a robots job, and judges what that brings. It
// returns false if the crawl ends meanwhile.
func (w *Worker) QueryRobots(ctx context.Context, q *frontier.RobotsQuery) (res *Result, ok bool) {
	res = &Result{Lease: frontier.Lease{Kind: frontier.Robots, Host: q.Job.Owner, URL: q.URL, Robots: &q.Job}}
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(ctx, res, cause, debug.Stack())
			ok = true
		}
	}()
	query := RobotsQuery{URL: q.URL, Origin: q.Job.Origin}
	query.ETag, query.LastModified = w.robotsValidators(&q.Job, q.URL)
	out, err := w.o.FetchRobots(ctx, query)
	if err != nil {
		return nil, false
	}
	out.URL = q.URL.String()
	res.Robots.Sent, res.Robots.End = true, w.o.Now()
	w.judgeRobots(res, out)
	return res, true
}
