package crawl

import (
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/storage"
)

const (
	// markCrash is the prefix of the marks that hold, for a host with crashed URLs, the version of
	// amble that crashed last.
	markCrash = "crash/"
	// markOffer is the prefix of the marks that hold how far the crashed URLs of a host have been
	// queued again for another version.
	markOffer = "offer/"
)

// crashMark returns the name of the mark of a host.
func crashMark(host storage.HostID) string { return fmt.Sprintf("%s%d", markCrash, host) }

// noteCrash stores the version that crashed at a URL of a host, in the commit of the URL's outcome.
func (r *run) noteCrash(host storage.HostID) { r.pending.setMark(crashMark(host), []byte(r.o.Version)) }

// openCrashes queues the URLs again at which another version crashed.
func (r *run) openCrashes() error {
	marks, err := r.store.Marks(markCrash)
	if err != nil {
		return err
	}
	for name, version := range marks {
		if string(version) == r.o.Version {
			continue
		}
		c, err := r.openOffer(markOffer + strings.TrimPrefix(name, markCrash))
		if err != nil {
			return fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		r.addSweep(c)
		r.pending.setMark(name, nil)
	}
	return nil
}

// openOffer returns the sweep of a mark. It makes the crashed URLs of a host due at once.
func (r *run) openOffer(name string) (*sweep, error) {
	c := &sweep{mark: name, when: storage.In(storage.Failed), below: unbounded}
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, markOffer), "%d", &c.host); err != nil {
		return nil, err
	}
	c.decide = func(h *storage.Head, now time.Time) (storage.Outcome, bool) {
		o := h.Last
		o.State, o.Attempts, o.At, o.Due = storage.Retrying, 0, now, now
		return o, h.Last.Reason == storage.ReasonCrash
	}
	return c, nil
}
