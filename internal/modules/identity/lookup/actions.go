package lookup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/politeness"
)

// do carries out an action of a site that has proven itself, and returns what was done.
func (l *Lookup) do(ctx context.Context, v *visitor, action, text string, client netip.Prefix) (string, error) {
	wish := Asked{At: l.o.Now().UTC(), Host: v.host, Action: action, Proof: v.proof, Client: client.Addr().String()}
	before := l.wishes.of(v.host)
	done := ""
	switch action {
	case ActionSlow:
		var err error
		if wish.Delay, err = l.delay(v, text); err != nil {
			return "", err
		}
		if before.slow != nil {
			wish.Before = before.slow.Before
		} else if v.story.Politeness.DelayReason == politeness.ReasonSetDelay.String() {
			wish.Before = v.story.Politeness.Delay
		}
		done = fmt.Sprintf("From now on at least %s pass between two requests.", seconds(wish.Delay))
	case ActionStop, ActionErase:
		wish.Closed = v.story.OptOut != "" && (before.stop == nil || before.stop.Closed)
		done = "Nothing is requested of this host any more."
		if action == ActionErase {
			done += " The operator of the crawler has been told to erase what is kept of it."
		}
	case ActionUsual, ActionResume:
		if action == ActionUsual && before.slow == nil || action == ActionResume && before.stop == nil {
			return "That was not asked for here, so there is nothing to take back.", nil
		}
		done = "What was asked for here is taken back."
	default:
		return "", &refusal{http.StatusUnprocessableEntity, "This page has no such action."}
	}
	// It is written first: what takes effect can always be taken back.
	if err := l.wishes.add(wish); err != nil {
		return "", err
	}
	l.o.Log.Warn("the operator of a site asked for something", "host", v.host, "action", action, "seconds", wish.Delay,
		"proof", v.proof, "client", wish.Client)
	return done, apply(ctx, v.crawl, &wish, before)
}

// apply makes the crawl follow a wish. before is what was in force until then.
func apply(ctx context.Context, c Crawl, wish *Asked, before wishes) error {
	switch wish.Action {
	case ActionSlow:
		return c.SetDelay(ctx, wish.Host, duration(wish.Delay))
	case ActionUsual:
		return c.SetDelay(ctx, wish.Host, duration(before.slow.Before))
	case ActionResume:
		if before.stop.Closed {
			return nil
		}
		err := c.RemoveOptOut(ctx, optout.ScopeHost, wish.Host)
		if errors.Is(err, inspect.ErrUnknown) {
			return nil // the operator of the crawler was faster
		}
		return err
	}
	if wish.Closed {
		return nil // an opt-out of others stays as it is
	}
	reason := "asked for by the site"
	if wish.Action == ActionErase {
		reason += ", which also wants to be erased: amble erase " + wish.Host
	}
	return c.AddOptOut(ctx, optout.Entry{
		Scope: optout.ScopeHost, Value: wish.Host, Reason: reason, By: "the site, by " + wish.Proof, At: wish.At,
	})
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// delay reads a delay that a site asks for: it can only become longer.
func (l *Lookup) delay(v *visitor, text string) (float64, error) {
	d, err := strconv.ParseFloat(text, 64)
	least := v.story.Politeness.Delay
	if err != nil || !(d > least) || d > maxDelay.Seconds() {
		return 0, &refusal{http.StatusUnprocessableEntity, fmt.Sprintf("Write a number of seconds of more than %s, "+
			"the delay in force, and at most %s.", seconds(least), seconds(maxDelay.Seconds()))}
	}
	return d, nil
}
