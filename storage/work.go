package storage

// work is one item of a batch: its host, its kind and its index among the items of its kind, in 32,
// 3 and 29 bits. The order of these numbers is the order in which the items are applied.
type work uint64

func newWork(host HostID, kind, index int) work { return work(host)<<32 | work(kind)<<29 | work(index) }
func (i work) host() HostID                     { return HostID(i >> 32) }
func (i work) kind() int                        { return int(i >> 29 & 7) }
func (i work) index() int                       { return int(i & (1<<29 - 1)) }

// The kinds, in the order in which they are applied to a host: the outcome of a page decides
// whether its links are accepted.
const (
	workNew = iota // the index is that among the new hosts of the transaction
	workDone
	workFound
	workRefused
	workUpdate
	workPayload
	workPurge
)
