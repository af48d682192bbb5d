// Package gates keeps the limits of hosts over all engines of a process. A process with one engine has none.
package gates

import (
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// Gates are those of all engines of a process. They are safe for concurrent use.
type Gates interface {
	// Add returns the gate of one more engine. wake is called when something is woken.
	Add(wake func()) Gate
	// Granted says that what this process has of a limit that others share may have changed.
	Granted(k frontier.LimitKey)
}

// Gate is that of one engine's frontier.
type Gate interface {
	frontier.Gate
	// TakeWoken returns the hosts whose requests may be admitted now.
	TakeWoken() []storage.HostID
	// Leave ends the part of an engine. With reopen the next process has to open its crawl.
	Leave(reopen bool, now time.Time)
	// MustReopen reports whether a call of Leave has said that the next process has to open the crawl.
	MustReopen() bool
	// Delete has the engine, whose part has ended, count as if it had never been there.
	Delete(now time.Time)
}
