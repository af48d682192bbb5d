package crawl

import (
	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/crawl/internal/load"
	"github.com/amble-crawler/amble/storage"
)

// loadQueue is what the frontier wants to have read. Its requests have successive numbers, so that those
// who need what was there at an instant know when it is read. The dispatcher owns it.
type loadQueue struct {
	toLoad  chan<- []frontier.LoadRequest // unbuffered; used in the select of the dispatcher's loop only
	loaded  <-chan *load.Result           // holds one
	waiting []frontier.LoadRequest
	active  int // with the loader

	numbers map[storage.HostID]uint64 // of the hosts whose request is not answered; one each
	ended   []bool                    // for each number from first on: it is answered
	first   uint64                    // the number of the oldest request that is not answered
	last    storage.HostID            // whose answer came last, until forget; NoHost: none
	number  uint64                    // of that answer
}

// next returns the channel and the requests to offer to the loader.
func (q *loadQueue) next() (chan<- []frontier.LoadRequest, []frontier.LoadRequest) {
	if len(q.waiting) == 0 {
		return nil, nil
	}
	return q.toLoad, q.waiting
}

// handedOver takes note that the loader has all requests.
func (q *loadQueue) handedOver() { q.active, q.waiting = q.active+len(q.waiting), nil }

// isEmpty reports whether the frontier waits for nothing.
func (q *loadQueue) isEmpty() bool { return q.active+len(q.waiting) == 0 }

// add adds requests. One for the host whose answer has just come keeps its number if readsOn reports
// that the host needs this request as well.
func (q *loadQueue) add(requests []frontier.LoadRequest, readsOn func(storage.HostID) bool) {
	if q.numbers == nil {
		q.numbers, q.last = make(map[storage.HostID]uint64), storage.NoHost
	}
	for i := range requests {
		id := requests[i].Host
		if id == q.last && readsOn(id) {
			q.numbers[id], q.ended[q.number-q.first] = q.number, false
			continue
		}
		q.numbers[id] = q.first + uint64(len(q.ended))
		q.ended = append(q.ended, false)
	}
	q.waiting = append(q.waiting, requests...)
}

// came takes note of an answer. The caller then adds what follows from it, and calls forget.
func (q *loadQueue) came(id storage.HostID) {
	q.active--
	q.last, q.number = id, q.numbers[id]
	q.ended[q.number-q.first] = true
	delete(q.numbers, id)
}

// forget drops the numbers of the oldest requests that are answered.
func (q *loadQueue) forget() {
	q.last = storage.NoHost
	n := 0
	for n < len(q.ended) && q.ended[n] {
		n++
	}
	q.ended, q.first = q.ended[n:], q.first+uint64(n)
}

// mark returns a number that no request has yet.
func (q *loadQueue) mark() uint64 { return q.first + uint64(len(q.ended)) }

// haveCome reports whether all requests from before a mark are answered, or that of a host alone.
func (q *loadQueue) haveCome(mark uint64, id storage.HostID) bool {
	if id == storage.NoHost {
		return q.first >= mark
	}
	number, wanted := q.numbers[id]
	return !wanted || number >= mark
}

// readsOn reports whether a host that has just been read is not through with what was put before that.
func (d *dispatcher) readsOn(id storage.HostID) bool { return d.f.ReadsPuts(id) }
