package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

// optOutRequest is the request to record an opt-out.
type optOutRequest struct {
	Body struct {
		Scope  optout.Scope `json:"scope" enum:"host,domain,range,prefix" doc:"what it covers"`
		Value  string       `json:"value" minLength:"1" doc:"host name, domain, addresses such as 192.0.2.0/24, or URL prefix"`
		Reason string       `json:"reason,omitempty" maxLength:"1024" doc:"who wished it and how, for people"`
		By     string       `json:"by,omitempty" maxLength:"256" doc:"who records it"`
		Until  time.Time    `json:"until,omitzero" doc:"when it ends; absent: never"`
	}
}

// optOutName names an opt-out.
type optOutName struct {
	Scope optout.Scope `query:"scope" required:"true" enum:"host,domain,range,prefix"`
	Value string       `query:"value" required:"true" minLength:"1"`
}

// optOutList is all opt-outs.
type optOutList struct {
	OptOuts    []crawl.OptOut     `json:"opt_outs"`
	Incomplete *Incomplete        `json:"incomplete,omitempty"`
	known      map[[2]string]bool // scopes and values, while lists are added up
}

// Begin implements Merged.
func (l *optOutList) Begin() { l.OptOuts, l.known = []crawl.OptOut{}, make(map[[2]string]bool) }

// Add implements Merged. All shards have the same, unless a command has not reached one.
func (l *optOutList) Add(more *optOutList) {
	for _, o := range more.OptOuts {
		if key := [2]string{string(o.Scope), o.Value}; !l.known[key] {
			l.known[key] = true
			l.OptOuts = append(l.OptOuts, o)
		}
	}
}

// Lacks implements Merged.
func (l *optOutList) Lacks(m *Incomplete) { l.Incomplete = m }

// optOutDone is an opt-out after a command.
type optOutDone struct {
	optout.Entry
	Incomplete *Incomplete `json:"incomplete,omitempty" doc:"in a cluster: nodes that do not follow yet; they will"`
}

func optOutAPI(s *Server, api huma.API) {
	list := Operation("GET", "/optouts", "optouts-list", "The opt-outs, in force or ended")
	Handle(api, list, ofAll(s, AnswerTimeout, func(ctx context.Context, _ *struct{}) (*Object[optOutList], error) {
		entries, err := s.crawl(ctx).OptOuts()
		return answer(optOutList{OptOuts: entries}, err)
	}))
	add := Operation("POST", "/optouts", "optouts-add", "Record an opt-out", bodyErrors()...)
	add.Description = "Nothing that it covers is requested from now on, robots.txt files included; a request in " +
		"flight may end. It is on disk when the response is sent, and survives restarts. One of the same scope and " +
		"value is replaced."
	Handle(api, add, func(ctx context.Context, in *optOutRequest) (*Object[optOutDone], error) {
		b := &in.Body
		e, err := optout.New(optout.Entry{
			Scope: b.Scope, Value: b.Value, Reason: b.Reason, By: b.By, At: s.o.Now(), Until: b.Until,
		})
		if err != nil {
			return nil, errQuery{err}
		}
		if d := s.divided(ctx); d != nil {
			return answer(setOptOut(ctx, d, e, false))
		}
		return answer(optOutDone{Entry: e}, s.crawl(ctx).AddOptOut(ctx, e))
	})
	remove := Operation("DELETE", "/optouts", "optouts-remove", "Remove an opt-out", http.StatusNotFound)
	remove.Description =
		"One that a command recorded. URLs that it excluded go back into their queues in the background."
	Handle(api, remove, func(ctx context.Context, in *optOutName) (*Object[optOutDone], error) {
		e, err := optout.New(optout.Entry{Scope: in.Scope, Value: in.Value})
		if err != nil {
			return nil, errQuery{err}
		}
		if d := s.divided(ctx); d != nil {
			return answer(setOptOut(ctx, d, e, true))
		}
		return answer(optOutDone{Entry: e}, s.crawl(ctx).RemoveOptOut(ctx, e.Scope, e.Value))
	})
}

// setOptOut records or removes an opt-out of all shards.
func setOptOut(ctx context.Context, d Division, e optout.Entry, remove bool) (done optOutDone, err error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	found, lacking, err := d.SetOptOut(ctx, e, remove)
	if err == nil && remove {
		err = removeFromShards(ctx, d, e, found)
	}
	if err != nil {
		return done, err
	}
	return optOutDone{e, lacking}, nil
}

// removeFromShards removes an opt-out that shards have of the machine that a cluster was made of. found says
// that the cluster had it too.
func removeFromShards(ctx context.Context, d Division, e optout.Entry, found bool) error {
	r := asked(ctx)
	removed, failed, wrong := Gather(ctx, allShards(d), func(ctx context.Context, shard int) (bool, error) {
		_, err := decode[optout.Entry](AskShard(ctx, d, shard, r))
		var no *refused
		if errors.As(err, &no) && no.status == http.StatusNotFound {
			return false, nil
		}
		return err == nil, err
	})
	for _, here := range removed {
		found = found || here
	}
	switch {
	case wrong != nil:
		return wrong
	case len(failed) > 0:
		return wholly(MissingShards(failed), nil)
	case !found:
		return fmt.Errorf("opt-out of %s %s that a command recorded: %w", e.Scope, e.Value, inspect.ErrUnknown)
	}
	return nil
}
