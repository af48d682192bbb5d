package work

import (
	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// A seed that was given as a host begins with its https form. If https was never reached there and cannot be, the http
// form is discovered. Once that one is answered, the https form fails: it would hold up the end of a run.

// tryPlain makes discoveries of the http forms of seeds whose robots.txt could not be requested by https.
func (j *judging) tryPlain(res *Result, failure *fetch.Error) {
	job := res.Lease.Robots
	if failure == nil || job.IsQuery() || job.Hops > 0 || job.Previous.Copy != robots.ClassNone {
		return
	}
	switch failure.Kind {
	case fetch.KindRefused, fetch.KindConnectTimeout, fetch.KindUnreachable, fetch.KindTLS, fetch.KindTLSTimeout,
		fetch.KindReset, fetch.KindClosed:
	default:
		return
	}
	set := j.scope().Seeds()
	res.Found, res.ScopeSeeds = seedbook.Plain(set, job.Origin, j.store.Fingerprint, res.Robots.End)
	answered := storage.In(storage.Fetched, storage.Failed, storage.Denied)
	for _, bare := range set.BareOf(job.Origin) {
		plain, _ := bare.Plain() // of an http origin zero, which the store does not know
		if head, _, err := j.store.Lookup(plain); err == nil && answered.Has(head.Last.State) {
			j.giveUpSecure(res, bare.URL, failure.Kind)
		}
	}
}

// replaceSecure gives up the https form of a seed whose http form was answered, unless that leads back to it.
func (j *judging) replaceSecure(res *Result, page *archive.Page) {
	m := res.seed
	if m == nil || !m.Bare || page.Status == 0 || res.Page.Outcome.State == storage.Retrying ||
		page.Redirect == page.Seed {
		return
	}
	bare := j.scope().Seeds().Get(m.Root).Seed()
	encoded, err := j.store.Policy(bare.URL.Origin())
	record, wrong := robots.DecodeRecord(encoded)
	plain, _ := bare.Plain()
	if plain != res.Lease.URL || err != nil || wrong != nil || record.Copy != robots.ClassNone {
		return
	}
	switch record.Failure {
	case robots.FailureTLS:
		j.giveUpSecure(res, bare.URL, fetch.KindTLS)
	case robots.FailureConnect, robots.FailureTimeout:
		j.giveUpSecure(res, bare.URL, fetch.KindUnreachable)
	}
}

// giveUpSecure has the https form of a seed fail, if it waits.
func (j *judging) giveUpSecure(res *Result, secure weburl.URL, why fetch.Kind) {
	head, host, err := j.store.Lookup(secure)
	if waits := frontier.DropMatters(); err == nil && waits.Has(head.Last.State) {
		o := storage.Outcome{State: storage.Failed, Reason: reasonOf(why), Note: "http stands in for it", At: j.o.Now()}
		res.Others = append(res.Others, storage.Done{
			Host: host.ID, Ordinal: head.Ordinal, Origin: head.Origin, Priority: head.Priority, When: waits, Outcome: o,
		})
	}
}
