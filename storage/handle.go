package storage

import (
	"os"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// handle is the open file. bbolt remembers which transaction allocated a page for as long as the page is used and the file open: about a byte for each
// URL that is added, without an end. So the file is opened anew from time to time.
type handle struct {
	exchange    sync.RWMutex // read transactions share it; who exchanges db has it alone
	db          *bolt.DB
	file        *os.File // db's, which holds the lock
	options     bolt.Options
	changed     int64 // bytes of the pages that commits changed since the file was opened
	reopenAfter int64 // so many
}

// reopenAfter is how much commits may change until the file is opened anew: for the pages of so much bbolt's memory takes 30 MiB at most. The commit that comes next
// takes some milliseconds longer, as the system maps its pages anew.
const reopenAfter = 4 << 30

// openHandle has bbolt open a path, by way of file where that is not nil.
func openHandle(path string, o bolt.Options, file *os.File) (*handle, error) {
	h := &handle{file: file, options: o, reopenAfter: reopenAfter}
	o.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		if h.file == nil {
			h.file, err = os.OpenFile(name, flag, mode)
		}
		return h.file, err
	}
	var err error
	h.db, err = bolt.Open(path, 0o640, &o)
	return h, err
}

// view makes a read transaction. One may be made within another.
func (h *handle) view(f func(*bolt.Tx) error) error {
	h.exchange.RLock()
	defer h.exchange.RUnlock()
	return h.db.View(f)
}

// reopen opens the file anew if that is due and nobody reads; else a later call does it. The file is locked all the while, since the new handle has the
// same open file as the old one. Where it cannot be opened twice, the old handle goes on; the error says that another
// process took the file meanwhile. The committer calls it: no commit comes between the opening and the exchange.
func (h *handle) reopen() error {
	if h.changed < h.reopenAfter || !h.unread() {
		return nil
	}
	file, err := duplicate(h.file)
	if err != nil {
		return nil // the old handle does as well, but for its memory
	}
	var fresh *handle
	err = guard(func() (err error) {
		fresh, err = openHandle(h.db.Path(), h.options, file)
		return err
	})
	if err != nil {
		_ = file.Close()
		if err := lock(h.file); err != nil { // bbolt gives the lock back when it fails
			return err
		}
		h.changed = 0 // it is tried again as much later
		return nil
	}
	old := handle{db: fresh.db, file: fresh.file}
	if h.exchange.TryLock() { // who still read what commits by way of the new handle overwrite would read nonsense
		old.db, old.file = h.db, h.file
		h.db, h.file, h.changed = fresh.db, fresh.file, 0
		h.exchange.Unlock()
	}
	_ = old.file.Close() // before bbolt can, which would give back the lock that both have
	_ = old.db.Close()   // it says that it could not unlock the file
	return nil
}

// unread reports whether nobody reads at the moment: during a backup it would be in vain to open the file for each commit.
func (h *handle) unread() bool {
	if !h.exchange.TryLock() {
		return false
	}
	h.exchange.Unlock()
	return true
}
