package load

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Forgiveness says which robots.txt files that could not be fetched are fetched again at once:
// since they failed, settings that may be why have become more generous. Only the process that
// finds that out knows; any other fetches such a file in its time, within an hour.
type Forgiveness struct {
	Failures []robots.Failure
	Before   time.Time // failures since then are not forgiven
}

func (f *Forgiveness) has(r *robots.Record) bool {
	return r.Class == robots.ClassUnreachable && slices.Contains(f.Failures, r.Failure) &&
		r.FirstUnreachable.Before(f.Before)
}

// RulesStore is where robots records are.
type RulesStore interface {
	HostByID(storage.HostID) (storage.Host, error)
	Policy(weburl.Origin) ([]byte, error)
}

// Rules compiles stored robots.txt files. It is safe for concurrent use.
type Rules struct {
	Store  RulesStore
	Log    *slog.Logger
	Tokens []string
}

// Compile compiles a stored robots.txt. The error is a panic, which costs the file and not the
// crawl.
func (r *Rules) Compile(record *robots.Record) (rules *robots.Rules, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("amble failed: %v\n%s", cause, debug.Stack())
		}
	}()
	return record.Rules(r.Tokens...), nil
}

// Stored returns the rules of the robots record that the store has of an origin.
func (r *Rules) Stored(id storage.HostID, origin uint8) (*robots.Rules, error) {
	host, err := r.Store.HostByID(id)
	if err != nil {
		return nil, err
	}
	if int(origin) >= len(host.Queues) {
		return nil, fmt.Errorf("host %s: %w", host.Name, storage.ErrCorrupt)
	}
	of := host.Queues[origin].Origin
	encoded, err := r.Store.Policy(of)
	if err != nil {
		return nil, err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return nil, err
	}
	rules, err := r.Compile(&record)
	if err != nil { // what is denied stays denied until another version of the file has come
		r.Log.Error("a stored robots.txt cannot be compiled", "origin", of.String(), "error", err)
		return robots.Record{}.Rules(), nil
	}
	return rules, nil
}
