//go:build !core

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

// Fetchers is [crawl.Engine.Fetchers] of the running crawl.
func (c *Client) Fetchers(ctx context.Context) ([]remote.Fetcher, error) {
	var list fetcherList
	err := c.Command(ctx, http.MethodGet, "/fetchers", nil, &list)
	return list.Fetchers, err
}

// SetCutOff is [crawl.Engine.CutOff] or [crawl.Engine.Admit] of the running crawl.
func (c *Client) SetCutOff(ctx context.Context, fetcher string, on bool) error {
	method := http.MethodPost
	if on {
		method = http.MethodDelete
	}
	return c.Command(ctx, method, "/fetchers/"+fetcher, nil, nil)
}

// AddOptOut is [crawl.Engine.AddOptOut] of the running crawl.
func (c *Client) AddOptOut(ctx context.Context, e optout.Entry) error {
	in := optOutRequest{}
	in.Body.Scope, in.Body.Value, in.Body.Reason, in.Body.By, in.Body.Until = e.Scope, e.Value, e.Reason, e.By, e.Until
	return c.Command(ctx, http.MethodPost, "/optouts", in.Body, nil)
}

// RemoveOptOut is [crawl.Engine.RemoveOptOut] of the running crawl.
func (c *Client) RemoveOptOut(ctx context.Context, scope optout.Scope, value string) error {
	v := url.Values{"scope": {string(scope)}, "value": {value}}
	return c.Command(ctx, http.MethodDelete, "/optouts?"+v.Encode(), nil, nil)
}

// OptOuts is [crawl.Engine.OptOuts] of the running crawl.
func (c *Client) OptOuts(ctx context.Context) ([]crawl.OptOut, error) {
	var list optOutList
	err := c.Object(ctx, BasePath+"/optouts", nil, &list)
	if err == nil && list.OptOuts == nil {
		err = errors.New("the running crawl has no list of opt-outs")
	}
	if err == nil && list.Incomplete != nil {
		err = list.Incomplete
	}
	return list.OptOuts, err
}

// Retry is [crawl.Engine.Retry] of the running crawl, or [crawl.Engine.CountRetries] for a dry run.
func (c *Client) Retry(ctx context.Context, q Retry, each func(sweep.Retried) error) (sweep.Retried, error) {
	var last RetryReport
	encoded, err := json.Marshal(q)
	if err == nil {
		path := "/api/v1/urls/retry"
		if q.Drops {
			path = "/api/v1/urls/drop"
		}
		err = eachReport(ctx, c, path, nil, bytes.NewReader(encoded), func(r *RetryReport) error {
			last = *r
			return each(r.Retried)
		})
	}
	return last.Retried, c.ended(err, last.Error, last.Done)
}

// ChangeSeeds is [crawl.Engine.ChangeSeeds] of the running crawl, in as few requests as can be.
func (c *Client) ChangeSeeds(ctx context.Context, w crawl.SeedWish) (crawl.SeedCounts, error) {
	return SendSeeds(&w, func(method string, v url.Values, body []byte) (*http.Response, error) {
		return c.send(ctx, method, BasePath+"/seeds", v, bytes.NewReader(body))
	})
}

// SendSeeds sends a wish in as few requests as can be.
func SendSeeds(
	w *crawl.SeedWish, send func(method string, v url.Values, body []byte) (*http.Response, error),
) (sum crawl.SeedCounts, err error) {
	change := func(method string, v url.Values, body []byte) error {
		more, err := decode[crawl.SeedCounts](send(method, v, body))
		sum.Added, sum.Changed = sum.Added+more.Added, sum.Changed+more.Changed
		sum.Known, sum.Removed = sum.Known+more.Known, sum.Removed+more.Removed
		if err != nil {
			return fmt.Errorf("change seeds: %w", err)
		}
		return nil
	}
	var list []byte
	for i := range w.Add {
		s := &w.Add[i]
		e := NewSeedEntry(s)
		if e.Source, e.Settings = "", false; s.Bare {
			e.URL = strings.TrimPrefix(e.URL, "https://")
		}
		line, err := json.Marshal(&e)
		if err != nil {
			return sum, err
		}
		list = append(append(list, line...), '\n')
		if last := i == len(w.Add)-1; last || len(list) > maxSeedList/2 || w.Add[i+1].Settings != s.Settings {
			v := url.Values{}
			if s.Settings {
				v.Set("settings", "true")
			}
			if err := change(http.MethodPost, v, list); err != nil {
				return sum, err
			}
			list = list[:0]
		}
	}
	var names []string
	for i, size := 0, 0; i < len(w.Remove); i++ {
		names = append(names, w.Remove[i].String())
		size += len(url.QueryEscape(names[len(names)-1]))
		if len(names) == mostRemoved || size > mostSeedNames || i == len(w.Remove)-1 {
			if err := change(http.MethodDelete, url.Values{"url": names}, nil); err != nil {
				return sum, err
			}
			names, size = nil, 0
		}
	}
	return sum, nil
}

// Seeds returns the seeds of the running crawl.
func (c *Client) Seeds(ctx context.Context) (all []SeedEntry, err error) {
	_, err = EachLine(ctx, c, BasePath+"/seeds", nil, func(e *SeedEntry) error {
		all = append(all, *e)
		return nil
	})
	return all, err
}

// later is the error of a command that is durable and not carried out everywhere; nil: it is.
func (m *Incomplete) later() error {
	if m == nil {
		return nil
	}
	return fmt.Errorf("the command is recorded, and will be carried out where it is not yet: %w", m)
}
