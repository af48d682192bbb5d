package crawl

import (
	"bytes"
	"context"
	"runtime/debug"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// fetchRobots serves a Robots lease: one request, judged by the state machine.
func (w *worker) fetchRobots(ctx context.Context, res *result) {
	job, u := res.lease.Robots, res.lease.URL
	etag, modified := w.robotsValidators(job, u)
	resp, failure, report := w.request(ctx, res, fetch.Request{
		URL: u, Address: res.lease.Address, ETag: etag, LastModified: modified,
		MaxBody: robots.MaxBody + 1, AnyType: true, CutAtBounds: true,
	})
	defer closePartial(failure)
	res.robots.Report = report
	if !report.Sent || report.Broken {
		return
	}
	if w.outputRobots(ctx, res, resp, failure); res.robots.Broken {
		return
	}
	w.tryPlain(res, failure)
	out := w.robotsOutcome(res, resp, failure)
	out.Body = bytes.Clone(out.Body)
	if job.IsQuery() {
		res.robots.Outcome = out
		return
	}
	w.judgeRobots(res, out)
}

// tryPlain makes discoveries of the http forms of seeds that were given as hosts, if https was never reached there and
// cannot be.
func (j *judging) tryPlain(res *result, failure *fetch.Error) {
	job := res.lease.Robots
	if failure == nil || job.IsQuery() || job.Hops > 0 || job.Previous.Copy != robots.ClassNone {
		return
	}
	switch failure.Kind {
	case fetch.KindRefused, fetch.KindConnectTimeout, fetch.KindUnreachable, fetch.KindTLS, fetch.KindTLSTimeout,
		fetch.KindReset, fetch.KindClosed:
	default:
		return
	}
	res.found, res.scopeSeeds = seedbook.Plain(j.scope().Seeds(), job.Origin, j.store.Fingerprint, res.robots.End)
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
	res.robots.Record, res.robots.Packed, res.robots.Rules = record, robots.Pack(record.Body), rules
	w.keepHistory(job, &record, res)
	w.takeAnnounced(job, sitemaps, res)
	w.announceDeclared(job, &record, rules, res)
	w.tally.Robots.Add(1)
	w.log.Debug("robots", "origin", job.Origin.String(), "class", record.Class.String(), "status", record.Status)
}

// keepHistory keeps the version of a robots.txt that another one replaces. Nobody else fetches the
// robots.txt of the origin meanwhile.
func (j *judging) keepHistory(job *frontier.RobotsJob, record *robots.Record, res *result) {
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
		res.history = &storage.Policy{Origin: job.Origin, Record: encoded}
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

// robotsQueries are the requests for robots.txt files that cross shards, and the jobs of visits. The dispatcher owns
// it.
type robotsQueries struct {
	start   func(frontier.RobotsQuery) // to another shard, in a goroutine of its own
	last    uint64
	waiting map[uint64]chan<- frontier.RobotsAnswer // jobs from outside; each channel holds one
}

// FetchRobots makes a request for another shard, when the limits of the host allow it. The outcome has what
// the request has brought. The errors are those of Control. Any goroutine may call it.
func (c *commands) FetchRobots(ctx context.Context, q RobotsQuery) (robots.Outcome, error) {
	out, err := c.serve(ctx, q.URL, frontier.RobotsJob{Origin: q.Origin, Previous: robots.Record{
		Copy: robots.ClassFound, FinalURL: q.URL.String(), ETag: q.ETag, LastModified: q.LastModified,
	}})
	return out.Outcome, err
}

// serve has the frontier do a job from outside, and waits for its answer.
func (c *commands) serve(
	ctx context.Context, u weburl.URL, job frontier.RobotsJob,
) (out frontier.RobotsAnswer, err error) {
	m, answer := c.mailbox.Load(), make(chan frontier.RobotsAnswer, 1)
	if err := m.call(ctx, func(d *dispatcher) { d.serveJob(u, job, answer) }); err != nil {
		return out, err
	}
	select {
	case out = <-answer:
		return out, nil
	case <-m.closed:
		return out, ErrNotRunning
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// serveJob begins a job from outside.
func (g *gathering) serveJob(u weburl.URL, job frontier.RobotsJob, answer chan<- frontier.RobotsAnswer) {
	if !g.o.owns(u.Host()) {
		answer <- frontier.RobotsAnswer{Outcome: robots.Outcome{URL: u.String(), Failure: robots.FailureConnect}}
		return
	}
	r := &g.robotsQueries
	r.last++
	r.waiting[r.last] = answer
	g.f.Serve(r.last, u, job, g.o.Now())
	g.collect()
}

// crossShards hands over what the frontier has for other shards, and for the owners of visits.
func (g *gathering) crossShards() {
	for _, q := range g.f.TakeQueries() {
		g.robotsQueries.start(q)
	}
	for _, a := range g.f.TakeAnswers() {
		g.robotsQueries.waiting[a.ID] <- a
		delete(g.robotsQueries.waiting, a.ID)
	}
}

// queryRobots has another shard make the next request of a robots job, and judges what that brings. It
// returns false if the crawl ends meanwhile.
func (w *worker) queryRobots(ctx context.Context, q *frontier.RobotsQuery) (res *result, ok bool) {
	res = &result{lease: frontier.Lease{Kind: frontier.Robots, Host: q.Job.Owner, URL: q.URL, Robots: &q.Job}}
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(ctx, res, cause, debug.Stack())
			ok = true
		}
	}()
	query := RobotsQuery{URL: q.URL, Origin: q.Job.Origin}
	query.ETag, query.LastModified = w.robotsValidators(&q.Job, q.URL)
	out, err := w.o.Cluster.FetchRobots(ctx, query)
	if err != nil {
		return nil, false
	}
	out.URL = q.URL.String()
	res.robots.Sent, res.robots.End = true, w.o.Now()
	w.judgeRobots(res, out)
	return res, true
}

// completeQuery takes what another shard has brought for a robots job.
func (g *gathering) completeQuery(id uint64, res *result) {
	g.fail(g.f.CompleteQuery(id, res.robots))
	g.pending.add(res)
	g.collect()
}
