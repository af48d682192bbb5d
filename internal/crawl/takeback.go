package crawl

import (
	"slices"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// hostLeases are the remote leases that are out, by host.
type hostLeases map[storage.HostID][]*remoteLease

func (h hostLeases) add(x *remoteLease) {
	x.ofHost = len(h[x.at.Host])
	h[x.at.Host] = append(h[x.at.Host], x)
}

func (h hostLeases) remove(x *remoteLease) {
	list := h[x.at.Host]
	last := list[len(list)-1]
	list[x.ofHost], last.ofHost = last, x.ofHost
	list[len(list)-1] = nil
	if h[x.at.Host] = list[:len(list)-1]; len(list) == 1 {
		delete(h, x.at.Host)
	}
}

// takeBack ends the leases of URLs of a host that are deleted, in a crawl whose fetchers decide
// everything, and if all of its URLs are deleted what clients have set for it: nothing from before the
// deletion holds back what comes after it. The error is of reading the host.
func (d *dispatcher) takeBack(id storage.HostID, below uint32) error {
	now := d.o.Now()
	host, err := d.store.HostByID(id)
	if err == nil && below >= host.Tail {
		err = d.setHost(&host, func(q *QueueSettings) { *q = QueueSettings{} }, now)
	}
	for _, x := range slices.Clone(d.remote.byHost[id]) {
		l, loaded := d.f.LeaseOf(x.frontierID)
		if !loaded || x.claimed || x.at.Ordinal >= below {
			continue // it runs out, or its report is being worked on
		}
		res := broken(l, x, x.given, now)
		res.page.Report = frontier.Report{End: now}
		d.complete(res)
	}
	return err
}
