// Package restore takes in the hosts of a store when a crawl starts. There may be millions.
package restore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/domains"
	"github.com/amble-crawler/amble/storage"
)

// Store has the hosts.
type Store interface {
	ReadHosts(p *storage.HostPage, from storage.HostID, most int) (next storage.HostID, err error)
}

// ahead is how many hosts a page has.
const ahead = 2000

// page is a page of hosts, or why it cannot be read.
type page struct {
	storage.HostPage
	err error
}

// Hosts gives the frontier every host of the store, and calls each for it. While it takes in a page of hosts, one
// goroutine reads the next page, and one counts hosts by domain. Both have ended when it returns.
func Hosts(
	ctx context.Context, s Store, f *frontier.Frontier, d *domains.Hosts, now func() time.Time,
	each func(*storage.Host),
) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	names := make(chan []string, 1)
	var counting sync.WaitGroup
	counting.Go(func() { count(d, names) })
	defer counting.Wait()
	defer close(names)
	read, free := make(chan *page), make(chan *page, 2)
	free <- new(page)
	free <- new(page)
	go readAll(ctx, s, free, read)
	for p := range read {
		if err == nil {
			err = take(p, f, now(), names, each)
		}
		if err != nil {
			stop()
		}
		free <- p
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// readAll reads the hosts of the store into pages that are free.
func readAll(ctx context.Context, s Store, free <-chan *page, read chan<- *page) {
	defer close(read)
	for next := storage.HostID(1); next != storage.NoHost && ctx.Err() == nil; {
		p := <-free
		next, p.err = s.ReadHosts(&p.HostPage, next, ahead)
		read <- p
	}
}

// take gives a page of hosts to the frontier.
func take(p *page, f *frontier.Frontier, now time.Time, names chan<- []string, each func(*storage.Host)) error {
	if p.err != nil {
		return p.err
	}
	known := make([]string, len(p.Hosts))
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if err := f.Restore(h, now); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		known[i] = h.Name
		each(h)
	}
	names <- known
	return nil
}

// count counts hosts by domain.
func count(d *domains.Hosts, names <-chan []string) {
	for known := range names {
		for _, host := range known {
			d.Restore(host)
		}
	}
}
