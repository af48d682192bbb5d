package crawl

import (
	"errors"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/storage"
)

// job is what one transaction is to commit. It belongs to the dispatcher until
// it is handed over, then to the committer until it comes back.
type job struct {
	batch storage.Batch
	items []*archive.Item // of the output
	bytes int64           // in them
	place uint64          // in the ledger; requests before it are settled
	pages int             // fetched
	size  int

	swept    []*sweep  // whose last page is in it
	drops    []*drop   // that begin with it
	orders   []*order  // that are part of it
	addition *addition // what the batch consists of; nil: the crawl's own work

	result storage.Result
	took   time.Duration // the commit
	err    error
}

func newJob() *job { return &job{} }

// maxReused bounds the room that a job is used again with, in items of each kind.
const maxReused = 8_192

// reuse empties a job that is committed, for the next one. It keeps its room.
func (j *job) reuse() *job {
	return &job{
		batch: storage.Batch{Found: emptied(j.batch.Found), Done: emptied(j.batch.Done), Hosts: emptied(j.batch.Hosts)},
		items: emptied(j.items),
	}
}

func emptied[T any](s []T) []T {
	if cap(s) > maxReused {
		return nil
	}
	clear(s)
	return s[:0]
}

// merge adds what the frontier gathered.
func (j *job) merge(b storage.Batch) {
	j.batch.Done = append(j.batch.Done, b.Done...)
	j.batch.Hosts = append(j.batch.Hosts, b.Hosts...)
	j.batch.Policies = append(j.batch.Policies, b.Policies...)
	j.batch.Ensure = append(j.batch.Ensure, b.Ensure...)
	j.batch.Join = append(j.batch.Join, b.Join...)
	j.size += len(b.Done) + len(b.Hosts)
}

// add adds what a page brought.
func (j *job) add(r *result) {
	if r.item != nil {
		j.items = append(j.items, r.item)
		j.bytes += r.item.Size()
	}
	if r.payload != nil {
		j.batch.Payloads = append(j.batch.Payloads, *r.payload)
	}
	if r.past != nil {
		j.batch.Past = append(j.batch.Past, *r.past)
	}
	j.batch.Found = append(j.batch.Found, r.found...)
	j.batch.Refused = append(j.batch.Refused, r.refused...)
	j.size += len(r.found) + len(r.refused)
}

// setMark sets a mark of the batch; nil removes it.
func (j *job) setMark(name string, value []byte) {
	if j.batch.Marks == nil {
		j.batch.Marks = make(map[string][]byte)
	}
	j.batch.Marks[name] = value
}

func (j *job) empty() bool { return j.batch.Empty() && len(j.items) == 0 }

// close gives back what the items of output hold, when they are committed or given up.
func (j *job) close() error {
	var errs []error
	for _, item := range j.items {
		errs = append(errs, item.Close())
	}
	j.items, j.bytes = emptied(j.items), 0
	return errors.Join(errs...)
}
