// Package load reads the queues of hosts and the robots rules that are stored for them.
package load

import (
	"log/slog"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Result is what the Loader brings of one host. If Err is not nil, Load has the id of the host only.
type Result struct {
	Load frontier.Load
	Err  error
}

// Store is what a Loader reads.
type Store interface {
	RulesStore
	Heads(storage.HeadsRequest) (storage.Heads, error)
}

// Loader reads queue heads and robots records, so that the dispatcher does not wait for the disk.
type Loader struct {
	Store    Store
	Log      *slog.Logger
	Rules    *Rules
	Forgiven Forgiveness
	Requests <-chan []frontier.LoadRequest
	Loads    chan<- *Result
}

// Run reads what the frontier wants until there is no more.
func (l *Loader) Run() {
	for requests := range l.Requests {
		for i := range requests {
			r := &Result{}
			r.Load.Host.ID = requests[i].Host
			r.Err = l.read(&requests[i], &r.Load)
			l.Loads <- r
		}
	}
}

// read reads the queues of one host that have something, and the robots records that are not known
// yet.
func (l *Loader) read(want *frontier.LoadRequest, to *frontier.Load) error {
	host, err := l.Store.HostByID(want.Host)
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
func (l *Loader) readQueue(
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
	to.Heads, err = l.Store.Heads(request)
	if err != nil || q.Known {
		return err
	}
	return l.ReadRobots(to, from.Origin)
}

// ReadRobots reads the robots record of an origin, and compiles its rules. A record that cannot be
// read, or compiled, is as none.
func (l *Loader) ReadRobots(to *frontier.QueueLoad, origin weburl.Origin) error {
	encoded, err := l.Store.Policy(origin)
	if err != nil || len(encoded) == 0 {
		return err
	}
	if to.Record, err = robots.DecodeRecord(encoded); err != nil {
		l.Log.Warn("a stored robots policy cannot be read; it is fetched again", "origin", origin.String(),
			"error", err)
		to.Record = robots.Record{}
		return nil
	}
	if l.Forgiven.has(&to.Record) {
		if to.Record = to.Record.Forget(); to.Record.Class == robots.ClassNone {
			return nil
		}
	}
	if to.Rules, err = l.Rules.Compile(&to.Record); err != nil {
		l.Log.Error("a stored robots.txt cannot be compiled; it is fetched again", "origin", origin.String(),
			"error", err)
		to.Record = robots.Record{}
	}
	return nil
}
