// Package optouts reads and writes the opt-outs of a crawl: those of its settings, and those that commands recorded.
package optouts

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/storage"
)

// Reader reads marks.
type Reader interface {
	Marks(prefix string) (map[string][]byte, error)
}

// Commanded reads the opt-outs that commands recorded, by mark.
func Commanded(s Reader) (map[string]optout.Entry, error) {
	found, err := s.Marks(marks.OptOuts)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]optout.Entry, len(found))
	for name, value := range found {
		var e optout.Entry
		if err := json.Unmarshal(value, &e); err != nil {
			return nil, fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		entries[name] = e
	}
	return entries, nil
}

// List makes a list of configured and commanded opt-outs.
func List(configured []optout.Entry, commanded ...map[string]optout.Entry) *optout.List {
	entries := append([]optout.Entry(nil), configured...)
	for _, list := range commanded {
		for _, e := range list {
			entries = append(entries, e)
		}
	}
	return optout.NewList(entries...)
}

// Encode is the value of a mark.
func Encode(e optout.Entry) []byte {
	b, _ := json.Marshal(e) // of texts and times
	return b
}

// ErrUnknown says that no command recorded an opt-out. It is inspect.ErrUnknown.
func ErrUnknown(e optout.Entry) error {
	return fmt.Errorf("opt-out of %s %s that a command recorded: %w", e.Scope, e.Value, inspect.ErrUnknown)
}

// OptOut is an opt-out for people.
type OptOut struct {
	optout.Entry
	InForce bool   `json:"in_force"` // it has not ended
	Source  string `json:"source"`   // command, or consent.optout
}

// All lists them by scope and value.
func All(s Reader, configured []optout.Entry, shared map[string]optout.Entry, now time.Time) ([]OptOut, error) {
	commanded, err := Commanded(s)
	if err != nil {
		return nil, err
	}
	maps.Copy(commanded, shared)
	list := []OptOut{}
	for _, e := range List(configured, commanded).All() {
		source := "consent.optout"
		if _, is := commanded[marks.OptOut(e.Scope, e.Value)]; is {
			source = "command"
		}
		list = append(list, OptOut{Entry: e, InForce: e.InForce(now), Source: source})
	}
	return list, nil
}

// OfHost returns the opt-out that covers all of a host or its address, for people; empty: there is
// none. A nil scope is that of a crawl that has not begun.
func OfHost(scope *frontier.Scope, host, address string) string {
	if scope == nil {
		return ""
	}
	e, is := scope.OptOuts().Host(host, time.Time{})
	if addr, err := netip.ParseAddr(address); !is && err == nil {
		e, is = scope.OptOuts().Addr(addr, time.Time{})
	}
	if !is {
		return ""
	}
	return e.String()
}
