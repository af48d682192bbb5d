package load

import (
	"testing"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

// What was requested before a mark has come when it is answered, in whatever order, and when the host that
// goes on to be read is through.
func TestQueueMarks(t *testing.T) {
	var q Queue
	readsOn := false
	add := func(hosts ...storage.HostID) {
		var requests []frontier.LoadRequest
		for _, id := range hosts {
			requests = append(requests, frontier.LoadRequest{Host: id})
		}
		q.Add(requests, func(storage.HostID) bool { return readsOn })
		q.HandedOver()
	}
	come := func(id storage.HostID, next ...storage.HostID) {
		q.Came(id)
		add(next...)
		q.Forget()
	}
	add(1, 2, 3)
	mark := q.Mark()
	add(4)
	assert.True(t, !q.HaveCome(mark, storage.NoHost) && !q.HaveCome(mark, 2) && q.HaveCome(mark, 4) &&
		q.HaveCome(mark, 5), "before any answer")
	come(3)
	come(1, 1) // its next request is another one
	assert.True(t, !q.HaveCome(mark, storage.NoHost) && q.HaveCome(mark, 1) && q.HaveCome(mark, 3),
		"while host 2 is being read")
	readsOn = true
	come(2, 2)
	assert.True(t, !q.HaveCome(mark, storage.NoHost) && !q.HaveCome(mark, 2), "host 2 is read on, and counts as read")
	come(2)
	assert.True(t, q.HaveCome(mark, storage.NoHost) && q.HaveCome(mark, 2) && !q.IsEmpty(),
		"all from before the mark have come")
	come(4)
	come(1)
	assert.True(t, q.IsEmpty() && len(q.ended) == 0 && len(q.numbers) == 0 && q.HaveCome(q.Mark(), storage.NoHost),
		"at the end: %+v", q)
}
