package crawl

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// load is what the loader brings.
type load struct {
	load frontier.Load
	err  error
}

// loadAll is the loader: it reads what the frontier wants next.
func (r *run) loadAll() {
	for wants := range r.toLoad {
		for i := range wants {
			l := &load{}
			l.load.Host.ID = wants[i].Host
			l.err = r.load(&wants[i], &l.load)
			r.loaded <- l
		}
	}
}

// load reads the queues of one host that have something, and the robots records
// that are not known yet.
func (r *run) load(want *frontier.LoadRequest, to *frontier.Load) error {
	host, err := r.store.HostByID(want.Host)
	if err != nil {
		return err
	}
	to.Host, to.At = host, want.Now
	to.Queues = make([]frontier.QueueLoad, len(host.Queues))
	for i := range host.Queues {
		q := frontier.QueueRequest{From: host.Queues[i].Cursor, Max: want.Max}
		if i < len(want.Queues) {
			q = want.Queues[i]
		}
		if err := r.loadQueue(want, &to.Queues[i], &host, i, q, to.At); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) loadQueue(want *frontier.LoadRequest, to *frontier.QueueLoad, host *storage.Host, i int, q frontier.QueueRequest, now time.Time) (err error) {
	from := &host.Queues[i]
	to.Heads.Next = q.From
	request := storage.HeadsRequest{Host: host.ID, Origin: uint8(i), From: q.From, Queued: q.Max, Due: want.Due, Renewals: want.Renewals, Now: now}
	if from.Queued+from.Due == 0 {
		request.From = max(q.From, host.Tail)
		to.Heads.Next = request.From
		if from.Renewals == 0 || want.Renewals == 0 {
			return nil
		}
	}
	to.Heads, err = r.store.Heads(request)
	if err != nil || q.Known {
		return err
	}
	return r.loadPolicy(to, from)
}

func (r *run) loadPolicy(to *frontier.QueueLoad, from *storage.Queue) error {
	encoded, err := r.store.Policy(from.Origin)
	if err != nil || len(encoded) == 0 {
		return err
	}
	if to.Record, err = robots.DecodeRecord(encoded); err != nil {
		r.log.Warn("a stored robots policy cannot be read; it is fetched again", "origin", from.Origin.String(), "error", err)
		to.Record = robots.Record{}
		return nil
	}
	if r.forgives(&to.Record) {
		if to.Record = to.Record.Forget(); to.Record.Class == robots.ClassNone {
			return nil
		}
	}
	if to.Rules, err = r.rules(&to.Record); err != nil {
		r.log.Error("a stored robots.txt cannot be compiled; it is fetched again", "origin", from.Origin.String(),
			"error", err)
		to.Record = robots.Record{}
	}
	return nil
}

// rules compiles a stored robots.txt. The error is a panic, which costs the file and not the crawl.
func (e *Engine) rules(record *robots.Record) (rules *robots.Rules, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("amble failed: %v\n%s", cause, debug.Stack())
		}
	}()
	return record.Rules(e.o.Frontier.Tokens...), nil
}
