package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// maxDenied is how many denied URLs the report names, each of another host.
const maxDenied = 5

// writeDenied names some URLs that robots.txt kept the crawler from, each with the line that did.
func (r *demoReport) writeDenied(b *strings.Builder) error {
	n := r.out.since("denied")
	if n == 0 {
		return nil
	}
	store, err := storage.Open(r.config.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	rows, err := r.denied(store)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	fmt.Fprintf(b, "%s not asked for, because robots.txt says so. Some of them, and the line that decides:\n", were(n, "URL"))
	writeTable(b, rows)
	return nil
}

func (r *demoReport) denied(store *storage.Store) (rows [][]string, err error) {
	named := map[string]bool{}
	for _, never := range r.facts.Never {
		if named[never.Host] || len(rows) == maxDenied {
			continue
		}
		u, err := weburl.Parse(r.web.URL(never.Host, never.Path))
		if err != nil {
			return nil, err
		}
		head, _, err := store.Lookup(u)
		if errors.Is(err, storage.ErrNotFound) || err == nil && head.Last.State != storage.Denied {
			continue
		}
		if err != nil {
			return nil, err
		}
		line, err := robotsLine(store, u.Origin(), int(head.Last.Line))
		if err != nil {
			return nil, err
		}
		named[never.Host] = true
		rows = append(rows, []string{never.String(), line})
	}
	return rows, nil
}

// robotsLine is a line of the robots.txt that is kept of an origin.
func robotsLine(store *storage.Store, origin weburl.Origin, line int) (string, error) {
	encoded, err := store.Policy(origin)
	if err != nil {
		return "", err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return "", fmt.Errorf("robots.txt of %s: %w", origin, err)
	}
	return fmt.Sprintf("line %d: %s", line, printable(strings.TrimSpace(robots.LineText(record.Body, line)))), nil
}
