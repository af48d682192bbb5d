package load

import (
	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// Queue is what the frontier wants to have read. Its requests have successive numbers, so that those
// who need what was there at an instant know when it is read. The dispatcher owns it.
type Queue struct {
	Loaded  <-chan *Result // what the Loader brings; it holds one
	toLoad  chan<- []frontier.LoadRequest
	waiting []frontier.LoadRequest
	active  int // with the loader

	numbers map[storage.HostID]uint64 // of the hosts whose request is not answered; one each
	ended   []bool                    // for each number from first on: it is answered
	first   uint64                    // the number of the oldest request that is not answered
	last    storage.HostID            // whose answer came last, until Forget; NoHost: none
	number  uint64                    // of that answer
}

// NewQueue returns an empty queue with the other ends of a Loader's channels. toLoad is unbuffered.
func NewQueue(toLoad chan<- []frontier.LoadRequest, loaded <-chan *Result) Queue {
	return Queue{toLoad: toLoad, Loaded: loaded}
}

// Next returns the channel and the requests to offer to the Loader, for the select of the dispatcher's
// loop; nil: there are none.
func (q *Queue) Next() (chan<- []frontier.LoadRequest, []frontier.LoadRequest) {
	if len(q.waiting) == 0 {
		return nil, nil
	}
	return q.toLoad, q.waiting
}

// HandedOver takes note that the loader has all requests.
func (q *Queue) HandedOver() { q.active, q.waiting = q.active+len(q.waiting), nil }

// Active returns how many requests the Loader has.
func (q *Queue) Active() int { return q.active }

// Close ends the Loader, which has no request.
func (q *Queue) Close() { close(q.toLoad) }

// IsEmpty reports whether the frontier waits for nothing.
func (q *Queue) IsEmpty() bool { return q.active+len(q.waiting) == 0 }

// Add adds requests. One for the host whose answer has just come keeps its number if readsOn reports
// that the host needs this request as well.
func (q *Queue) Add(requests []frontier.LoadRequest, readsOn func(storage.HostID) bool) {
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

// Came takes note of an answer. The caller then adds what follows from it, and calls Forget.
func (q *Queue) Came(id storage.HostID) {
	q.active--
	q.last, q.number = id, q.numbers[id]
	q.ended[q.number-q.first] = true
	delete(q.numbers, id)
}

// Forget drops the numbers of the oldest requests that are answered.
func (q *Queue) Forget() {
	q.last = storage.NoHost
	n := 0
	for n < len(q.ended) && q.ended[n] {
		n++
	}
	q.ended, q.first = q.ended[n:], q.first+uint64(n)
}

// Mark returns a number that no request has yet.
func (q *Queue) Mark() uint64 { return q.first + uint64(len(q.ended)) }

// HaveCome reports whether all requests from before a mark are answered, or that of a host alone.
func (q *Queue) HaveCome(mark uint64, id storage.HostID) bool {
	if id == storage.NoHost {
		return q.first >= mark
	}
	number, wanted := q.numbers[id]
	return !wanted || number >= mark
}
