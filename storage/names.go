package storage

import (
	"errors"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/weburl"
)

// namesPerRead bounds how long a walk over the names holds a read transaction.
const namesPerRead = 5000

// Names calls f for the names of hosts in the order of the words from the right, so that the hosts of a domain stand together, until f
// returns an error; ErrStop is not passed on. under is a domain: only it and the hosts below it are visited; empty: all. It begins behind
// the name after; empty: at the first. It reads in short transactions.
func (s *Store) Names(under, after string, f func(name string, id HostID) error) error {
	w := nameWalk{domain: weburl.ReverseHost(under), last: weburl.ReverseHost(after)}
	for w.more = true; w.more; {
		page, err := w.read(s)
		if err != nil {
			return err
		}
		for i := range page {
			if err := f(weburl.ReverseHost(page[i].reversed), page[i].id); err != nil {
				if errors.Is(err, ErrStop) {
					return nil
				}
				return err
			}
		}
	}
	return nil
}

// nameWalk is one walk over reversed names.
type nameWalk struct {
	domain string // reversed; empty: all
	last   string // visited
	more   bool
}

type named struct {
	reversed string
	id       HostID
}

func (w *nameWalk) read(s *Store) (page []named, err error) {
	w.more = false
	err = s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketName).Cursor()
		k, v := c.Seek([]byte(max(w.domain, w.last)))
		if w.last != "" && string(k) == w.last {
			k, v = c.Next()
		}
		for k != nil {
			name := string(k)
			switch {
			case len(page) == namesPerRead:
				w.more = true
				return nil
			case w.domain == "" || name == w.domain || strings.HasPrefix(name, w.domain+"."):
				page = append(page, named{name, hostOfKey(v)})
				k, v = c.Next()
				w.last = name
			case name < w.domain+".": // such as that of example-shop.org, between example.org and www.example.org
				k, v = c.Seek([]byte(w.domain + "."))
			default:
				return nil
			}
		}
		return nil
	})
	return page, err
}
