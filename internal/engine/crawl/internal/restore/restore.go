// Package restore takes in the hosts of a store when a crawl starts. There may be millions.
package restore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// Store has the hosts.
type Store interface {
	ReadHosts(p *storage.HostPage, from storage.HostID, most int) (next storage.HostID, err error)
}

// ahead is how many hosts a page has.
const ahead = 2000

// Hosts gives the frontier every host of the store, and calls each for it. While it takes in a page of hosts, one
// goroutine reads the next page. It has ended when Hosts returns; guard calls what it does.
func Hosts(
	ctx context.Context, s Store, f *frontier.Frontier, now func() time.Time, guard func(func() error) error,
	each func(*storage.Host),
) error {
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	var failed error
	defer reading.Wait()
	defer stop()
	full, free := make(chan *storage.HostPage, 2), make(chan *storage.HostPage, 2)
	free <- new(storage.HostPage)
	free <- new(storage.HostPage)
	reading.Go(func() { failed = guard(func() error { return readAll(ctx, s, free, full) }) })
	for p := range full {
		at := now()
		for i := range p.Hosts {
			h := &p.Hosts[i]
			if err := f.Restore(h, at); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			each(h)
		}
		free <- p
	}
	reading.Wait()
	return failed
}

// readAll reads the hosts of the store into pages that are free.
func readAll(ctx context.Context, s Store, free <-chan *storage.HostPage, full chan<- *storage.HostPage) (err error) {
	defer close(full)
	for next := storage.HostID(1); next != storage.NoHost; {
		select {
		case p := <-free:
			if next, err = s.ReadHosts(p, next, ahead); err != nil {
				return err
			}
			full <- p
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
