package crawl

import (
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/storage"
)

const (
	// markCrash begins the names of the marks that say under which version of amble URLs of a host crashed last.
	markCrash = "crash/"
	// markOffer begins the names of the marks that say how far these URLs have been offered to another version.
	markOffer = "offer/"
)

// crashMark is the name of the mark of a host.
func crashMark(host storage.HostID) string { return fmt.Sprintf("%s%d", markCrash, host) }

// noteCrash takes note, with the outcome of the URL, of the version that a URL of a host crashed under.
func (r *run) noteCrash(host storage.HostID) { r.pending.setMark(crashMark(host), []byte(r.o.Version)) }

// openCrashes offers the URLs again that crashed under another version.
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

// openOffer is the sweep of a mark: it makes the URLs of a host due at once that crashed.
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
