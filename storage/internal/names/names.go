// Package names gives hosts their ids. The index of names is written once for each commit, in the order of its keys.
package names

import (
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Index is the index of names as a transaction sees it.
type Index interface {
	// Find returns the id of a key. If it has none, found is false, and next is the first key behind it, nil if there
	// is none.
	Find(key []byte) (id uint32, found bool, next []byte)
}

// Host is a host that gets an id.
type Host struct {
	Name, Key string // the key is that in the index
	ID        uint32
}

// Names gives ids to the hosts of one transaction after the other, for one goroutine. It remembers some that it has
// looked up before.
type Names struct {
	ids     map[string]uint32
	added   []Host // by this transaction
	taken   int    // as many of them were returned by New
	inOrder int    // as many of them have no older name between them and the one before
	last    Host   // looked up last
	next    string // the first key of the index behind last; empty: not known
}

// maxIDs bounds how many ids are remembered. Then all are forgotten.
const maxIDs = 1 << 16

// endOfIndex is behind all keys.
const endOfIndex = "\xff"

// Begin begins a transaction.
func (n *Names) Begin() {
	if n.ids == nil || len(n.ids) > maxIDs {
		n.ids = make(map[string]uint32)
	}
	n.added, n.taken, n.inOrder, n.last, n.next = n.added[:0], 0, 0, Host{}, ""
}

// Forget forgets the ids that the transaction has given out, which has failed.
func (n *Names) Forget() {
	for i := range n.added {
		delete(n.ids, n.added[i].Name)
	}
}

// Valid reports whether a row can hold a host's name.
func Valid(name string) bool { return len(name) > 0 && len(name) <= 255 }

// Known returns the id of a host, 0 if it has none.
func (n *Names) Known(name string, in Index) uint32 {
	id, ok := n.ids[name]
	if !ok && Valid(name) {
		id, _, _ = in.Find([]byte(weburl.ReverseHost(name)))
	}
	return id
}

// ID returns the id of a host. A new one gets the id given: Added has it from now on, and it is to be added to the
// index.
func (n *Names) ID(name string, in Index, fresh uint32) (id uint32, isNew bool) {
	if name == n.last.Name {
		return n.last.ID, false
	}
	if id, ok := n.ids[name]; ok {
		return id, false
	}
	name = strings.Clone(name) // so that the URL that contains it can be freed
	h := Host{name, weburl.ReverseHost(name), fresh}
	if h.Key > n.last.Key && h.Key < n.next { // the index has nothing between the last one and this one
		n.inOrder++
	} else {
		id, found, next := in.Find([]byte(h.Key))
		if found {
			n.ids[name] = id
			return id, false
		}
		if n.next = string(next); next == nil {
			n.next = endOfIndex
		}
	}
	n.ids[name], n.last = fresh, h
	n.added = append(n.added, h)
	return fresh, true
}

// Added returns the hosts that got an id, in that order. They are valid until Begin.
func (n *Names) Added() []Host { return n.added }

// New returns those that came since the last call, in the order of their keys. They are added to the index next.
func (n *Names) New() []Host {
	hosts := n.added[n.taken:]
	n.taken = len(n.added)
	byKey := func(a, b Host) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(hosts, byKey) {
		hosts = slices.Clone(hosts)
		slices.SortFunc(hosts, byKey)
	}
	return hosts
}

// InOrder reports whether most of the hosts added follow each other in the index.
func (n *Names) InOrder() bool { return 2*n.inOrder > len(n.added) }
