package frontier

import (
	"bytes"

	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Recheck asks for the denied URLs of an origin to be put to its new rules.
type Recheck struct {
	Host   storage.HostID
	Origin uint8 // index into the host's origins
	Rules  *robots.Rules
}

// TakeRechecks hands over the rechecks since the last call. Their owner walks the
// host's URLs and commits those that the rules now allow as Retrying and due.
func (f *Frontier) TakeRechecks() []Recheck {
	r := f.rechecks
	f.rechecks = nil
	return r
}

// rulesChanged reports whether an answer says something else than the one
// before. Where there was none, nothing was denied.
func rulesChanged(before, after *robots.Record) bool {
	if before.Copy == robots.ClassNone || after.Class == robots.ClassUnreachable {
		return false
	}
	return before.Copy != after.Copy || !bytes.Equal(before.Body, after.Body)
}
