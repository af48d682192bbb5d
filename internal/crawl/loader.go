package crawl

import (
	"log/slog"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// load is what the loader brings.
type load struct {
	load frontier.Load
	err  error
}

// loaderStore is what the loader reads.
type loaderStore interface {
	rulesStore
	Heads(storage.HeadsRequest) (storage.Heads, error)
}

// loader reads queue heads and robots records, so that the dispatcher does not wait for the disk.
type loader struct {
	store    loaderStore
	log      *slog.Logger
	rules    *rulesReader
	forgiven forgiveness
	requests <-chan []frontier.LoadRequest
	loads    chan<- *load
}

// run reads what the frontier wants until there is no more.
func (l *loader) run() {
	for requests := range l.requests {
		for i := range requests {
			r := &load{}
			r.load.Host.ID = requests[i].Host
			r.err = l.read(&requests[i], &r.load)
			l.loads <- r
		}
	}
}

// read reads the queues of one host that have something, and the robots records that are not known
// yet.
func (l *loader) read(want *frontier.LoadRequest, to *frontier.Load) error {
	host, err := l.store.HostByID(want.Host)
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
		if err := l.readQueue(want, &to.Queues[i], &host, i, q); err != nil {
			return err
		}
	}
	return nil
}

// readQueue reads the i-th queue of a host.
func (l *loader) readQueue(
	want *frontier.LoadRequest, to *frontier.QueueLoad, host *storage.Host, i int, q frontier.QueueRequest,
) (err error) {
	from := &host.Queues[i]
	to.Heads.Next = q.From
	request := storage.HeadsRequest{
		Host: host.ID, Origin: uint8(i), From: q.From, Queued: q.Max, Due: want.Due, Recrawls: want.Recrawls,
		Now: want.Now,
	}
	if from.Queued+from.Due == 0 {
		request.From = max(q.From, host.Tail)
		to.Heads.Next = request.From
		if from.Recrawls == 0 || want.Recrawls == 0 {
			return nil
		}
	}
	to.Heads, err = l.store.Heads(request)
	if err != nil || q.Known {
		return err
	}
	return l.readRobots(to, from.Origin)
}

// readRobots reads the robots record of an origin, and compiles its rules.
func (l *loader) readRobots(to *frontier.QueueLoad, origin weburl.Origin) error {
	encoded, err := l.store.Policy(origin)
	if err != nil || len(encoded) == 0 {
		return err
	}
	if to.Record, err = robots.DecodeRecord(encoded); err != nil {
		l.log.Warn("a stored robots policy cannot be read; it is fetched again", "origin", origin.String(),
			"error", err)
		to.Record = robots.Record{}
		return nil
	}
	if l.forgiven.has(&to.Record) {
		if to.Record = to.Record.Forget(); to.Record.Class == robots.ClassNone {
			return nil
		}
	}
	if to.Rules, err = l.rules.compile(&to.Record); err != nil {
		l.log.Error("a stored robots.txt cannot be compiled; it is fetched again", "origin", origin.String(),
			"error", err)
		to.Record = robots.Record{}
	}
	return nil
}
