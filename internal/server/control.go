package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
)

// Control is what the operator can do with a crawl. What is said to be done is on disk where it has to survive a restart.
type Control interface {
	Pause(context.Context) error
	Resume(context.Context) error
	Drain(context.Context, bool) error
	Stop(context.Context) error
	Control(ctx context.Context, host string, o frontier.Order) error
	DropQueue(ctx context.Context, host string) (waiting int, err error)
}

// crawlState is how the crawl is after an order about it.
type crawlState struct {
	State string `json:"state" doc:"as the status has it; what is in flight may still be ending"`
}

func (s *Server) controlAPI(api huma.API) {
	for _, c := range []struct {
		name, summary, description string
		do                         func(context.Context) error
	}{
		{"pause", "Let no request begin", "What is under way is let finish. A pause survives the end of the process.", s.crawl.Pause},
		{"resume", "End a pause, or a drain", "", s.resume},
		{"drain", "End when all is done", "Takes no more URLs from outside, goes on with all that is known and what that leads to, and ends then, hosts left out that cannot be asked within " +
			"crawl.give_up_after. A crawl whose settings say so ends like this by itself. Resume takes it back.", func(ctx context.Context) error { return s.crawl.Drain(ctx, true) }},
		{"stop", "End now", "As the signal SIGTERM does: no request begins any more, what is under way may end within crawl.shutdown_grace, all is committed and the process ends. " +
			"The next run goes on where this one was.", s.crawl.Stop},
	} {
		op := operation("POST", "/crawl/"+c.name, "crawl-"+c.name, c.summary)
		op.Description = c.description
		handle(api, op, func(ctx context.Context, _ *struct{}) (*object[crawlState], error) {
			err := c.do(ctx)
			return answer(crawlState{s.crawl.Status().State}, err)
		})
	}
	s.hostControlAPI(api)
}

// resume takes back a pause and a drain.
func (s *Server) resume(ctx context.Context) error {
	if err := s.crawl.Drain(ctx, false); err != nil {
		return err
	}
	return s.crawl.Resume(ctx)
}

// hostPause asks for a pause.
type hostPause struct {
	HostPath
	Body *struct {
		Until   time.Time `json:"until,omitzero" nullable:"true" doc:"when it ends, an instant to come; missing, with seconds missing too: it lasts until it is resumed"`
		Seconds float64   `json:"seconds,omitempty" nullable:"true" exclusiveMinimum:"0" maximum:"1e9" doc:"how long it lasts, in place of until"`
	}
}

// hostDelay asks for a delay.
type hostDelay struct {
	HostPath
	Body struct {
		Seconds float64 `json:"seconds" minimum:"0" maximum:"604800" doc:"between two requests, in place of politeness.delay; 0: that counts again. What the host itself asks for is never undercut"`
	}
}

// hostDone says what an order about a host did.
type hostDone struct {
	Host    string `json:"host"`
	Dropped int    `json:"dropped,omitempty" doc:"URLs that were waiting, and are now to be excluded, in the background"`
}

func (s *Server) hostControlAPI(api huma.API) {
	op := func(name, summary, description string) huma.Operation {
		o := operation("POST", "/hosts/{host}/"+name, "hosts-"+name, summary, append(bodyErrors(), http.StatusNotFound)...)
		o.Description = description
		return o
	}
	const durable = "It is on disk when the answer comes, and survives restarts."
	handle(api, op("pause", "Ask nothing of a host for a while", durable), func(ctx context.Context, in *hostPause) (*object[hostDone], error) {
		o := frontier.Order{Kind: frontier.OrderPause}
		switch {
		case in.Body == nil:
		case in.Body.Seconds > 0:
			o.Until = s.o.Now().Add(time.Duration(in.Body.Seconds * float64(time.Second)))
		case !in.Body.Until.IsZero() && !in.Body.Until.After(s.o.Now()):
			return nil, errQuery{fmt.Errorf("until is %s, which is over: name an instant to come", in.Body.Until.Format(time.RFC3339))}
		default:
			o.Until = in.Body.Until
		}
		return s.control(ctx, in.Host, o)
	})
	handle(api, op("resume", "End the pause of a host", durable), func(ctx context.Context, in *HostPath) (*object[hostDone], error) {
		return s.control(ctx, in.Host, frontier.Order{Kind: frontier.OrderResume})
	})
	handle(api, op("delay", "Set the delay of a host", durable), func(ctx context.Context, in *hostDelay) (*object[hostDone], error) {
		return s.control(ctx, in.Host, frontier.Order{Kind: frontier.OrderDelay, Delay: time.Duration(in.Body.Seconds * float64(time.Second))})
	})
	handle(api, op("forget", "Forget what was learned of a host", "Back-off and errors, and how long its robots.txt is good: that is asked for again. What is owed to it stays. "+durable),
		func(ctx context.Context, in *HostPath) (*object[hostDone], error) {
			return s.control(ctx, in.Host, frontier.Order{Kind: frontier.OrderForget})
		})
	handle(api, op("drop", "Drop the queue of a host", "The URLs of it that wait now become excluded, in the background. What is found later is queued as ever. "+durable),
		func(ctx context.Context, in *HostPath) (*object[hostDone], error) {
			n, err := s.crawl.DropQueue(ctx, inspect.CanonicalHost(in.Host))
			return answer(hostDone{in.Host, n}, err)
		})
}

func (s *Server) control(ctx context.Context, host string, o frontier.Order) (*object[hostDone], error) {
	return answer(hostDone{Host: host}, s.crawl.Control(ctx, inspect.CanonicalHost(host), o))
}
