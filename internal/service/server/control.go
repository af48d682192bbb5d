package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

// Control is what an operator can do with a crawl. When a method returns, changes that must survive
// a restart are on disk.
type Control interface {
	Pause(context.Context) error
	Resume(context.Context) error
	Drain(context.Context, bool) error
	Stop(context.Context) error
	Control(ctx context.Context, host string, o frontier.Command) error
	AddOptOut(context.Context, optout.Entry) error
	RemoveOptOut(ctx context.Context, scope optout.Scope, value string) error
	OptOuts() ([]crawl.OptOut, error)
	ChangeSeeds(context.Context, crawl.SeedWish) (crawl.SeedCounts, error)
	Seeds() ([]crawl.Seed, error)
}

// crawlState is the state of the crawl after a command.
type crawlState struct {
	State string `json:"state" doc:"as in the status; requests in flight may still be ending"`
	// Incomplete are the nodes that have not followed yet. They will: the order is durable.
	Incomplete *Incomplete `json:"incomplete,omitempty" doc:"in a cluster: nodes that do not follow yet; they will"`
}

func controlAPI(s *Server, api huma.API) {
	command := func(name, summary, description, whole string, do func(context.Context) (*Incomplete, error)) {
		op := Operation("POST", "/crawl/"+name, "crawl-"+name, summary)
		if op.Description = description; whole != "" {
			op = s.onlyWhole(op, whole)
		}
		Handle(api, op, func(ctx context.Context, _ *struct{}) (*Object[crawlState], error) {
			ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
			defer cancel()
			lacking, err := do(ctx)
			return answer(crawlState{State: s.status(ctx).State, Incomplete: lacking}, err)
		})
	}
	command("pause", "Pause the crawl", "No request begins. Requests in flight may end. A pause survives the end of "+
		"the process.", "", func(ctx context.Context) (*Incomplete, error) {
		if d := s.divided(ctx); d != nil {
			return d.SetPaused(ctx, true)
		}
		return nil, s.crawl(ctx).Pause(ctx)
	})
	command("resume", "End a pause, or a drain", "", "", func(ctx context.Context) (*Incomplete, error) {
		if d := s.divided(ctx); d != nil {
			return d.SetPaused(ctx, false)
		}
		if err := s.crawl(ctx).Drain(ctx, false); err != nil {
			return nil, err
		}
		return nil, s.crawl(ctx).Resume(ctx)
	})
	command("drain", "End when all is done",
		"Takes no more URLs from outside, crawls everything that is known and the "+
			"links found there, and ends then. It leaves out hosts that cannot be fetched from within "+
			"crawl.give_up_after. With crawl.exit_when_done a crawl always ends like this. Resume undoes it.",
		"a cluster has no end yet: pause it, or stop its nodes with SIGTERM",
		func(ctx context.Context) (*Incomplete, error) { return nil, s.crawl(ctx).Drain(ctx, true) })
	command("stop", "End now", "As the signal SIGTERM does: no request begins, requests in flight have "+
		"crawl.shutdown_grace to end, everything is committed and the process ends. "+
		"The next run continues the crawl.", "this would stop one node of a cluster: send SIGTERM to the process",
		func(ctx context.Context) (*Incomplete, error) { return nil, s.crawl(ctx).Stop(ctx) })
	hostControlAPI(s, api)
}

// hostPause is the request for a pause.
type hostPause struct {
	HostPath
	Body *struct {
		Until   time.Time `json:"until,omitzero" doc:"the end of the pause, in the future; without until and seconds it lasts until it is resumed"`
		Seconds float64   `json:"seconds,omitempty" exclusiveMinimum:"0" maximum:"1e9" doc:"the length of the pause, in place of until"`
	}
}

// hostDelay is the request for a delay.
type hostDelay struct {
	HostPath
	Body struct {
		Seconds float64 `json:"seconds" minimum:"0" maximum:"604800" doc:"in place of politeness.delay; 0 removes it. A longer crawl delay stays in force"`
	}
}

// hostDone is the result of a command for a host.
type hostDone struct {
	Host    string `json:"host"`
	Dropped int    `json:"dropped,omitempty" doc:"URLs that were waiting; they are excluded in the background"`
}

// durable says when a command has taken effect.
const durable = "It is on disk when the response is sent, and survives restarts."

// hostCommand describes a command for a host.
func hostCommand(name, summary, description string) huma.Operation {
	o := Operation("POST", "/hosts/{host}/"+name, "hosts-"+name, summary, append(bodyErrors(), http.StatusNotFound)...)
	o.Description = description
	return o
}

func hostControlAPI(s *Server, api huma.API) {
	Handle(api, hostCommand("pause", "Pause a host", durable),
		ofOwner(s, (*hostPause).host, func(ctx context.Context, in *hostPause) (*Object[hostDone], error) {
			o := frontier.Command{Kind: frontier.CommandPause}
			switch {
			case in.Body == nil:
			case in.Body.Seconds > 0:
				o.Until = s.o.Now().Add(time.Duration(in.Body.Seconds * float64(time.Second)))
			case !in.Body.Until.IsZero() && !in.Body.Until.After(s.o.Now()):
				return nil, errQuery{fmt.Errorf("until is %s, which is over: want an instant in the future",
					in.Body.Until.Format(time.RFC3339))}
			default:
				o.Until = in.Body.Until
			}
			return s.control(ctx, in.Host, o)
		}))
	Handle(api, hostCommand("resume", "End the pause of a host", durable),
		ofOwner(s, (*HostPath).host, func(ctx context.Context, in *HostPath) (*Object[hostDone], error) {
			return s.control(ctx, in.Host, frontier.Command{Kind: frontier.CommandResume})
		}))
	Handle(api, hostCommand("delay", "Set the delay of a host", durable),
		ofOwner(s, (*hostDelay).host, func(ctx context.Context, in *hostDelay) (*Object[hostDone], error) {
			return s.control(ctx, in.Host, frontier.Command{Kind: frontier.CommandDelay,
				Delay: time.Duration(in.Body.Seconds * float64(time.Second))})
		}))
	Handle(api, hostCommand("forget", "Forget what was learned about a host", "Drops its backoff and its errors, and "+
		"fetches its robots.txt again. Its restart hold stays. "+durable),
		ofOwner(s, (*HostPath).host, func(ctx context.Context, in *HostPath) (*Object[hostDone], error) {
			return s.control(ctx, in.Host, frontier.Command{Kind: frontier.CommandForget})
		}))
}

func (s *Server) control(ctx context.Context, host string, o frontier.Command) (*Object[hostDone], error) {
	return answer(hostDone{Host: host}, s.crawl(ctx).Control(ctx, inspect.CanonicalHost(host), o))
}

// Settings are the settings of the crawl. Its methods are called by many goroutines at once.
type Settings interface {
	// Settings returns all settings in force, with secrets hidden.
	Settings() []Setting
	// Change changes settings while the crawl runs, those of all nodes of a cluster: all of them or,
	// with an error, none. patch is a JSON merge patch (RFC 7396) of the config file; null undoes an
	// earlier patch. Change returns the keys whose values changed. The error is a Rejected if the
	// patch is invalid.
	Change(ctx context.Context, patch []byte) (changed []string, err error)
	// Reload reads the config file and the seeds again. What Change has set stays, unless undo says so. The error is
	// that of Change, or says why the seeds are not changed.
	Reload(ctx context.Context, undo bool) (SettingsChange, error)
}

// Setting is one setting in force.
type Setting struct {
	Key    string `json:"key" doc:"such as politeness.delay"`
	Value  any    `json:"value" doc:"as in the config file; of a secret only whether it is set"`
	Source string `json:"source" doc:"default, a line of the file, an environment variable, --set, or API"`
	Live   bool   `json:"live" doc:"can be changed while the crawl runs"`
}

// Rejected lists the problems of settings. None of them took effect.
type Rejected []RejectedSetting

// RejectedSetting is one problem.
type RejectedSetting struct {
	Key     string // such as politeness.delay; empty: the settings as a whole
	Message string // what was read, and what is allowed
}

// Error lists all problems.
func (r Rejected) Error() string {
	texts := make([]string, len(r))
	for i, s := range r {
		texts[i] = strings.TrimPrefix(s.Key+": "+s.Message, ": ")
	}
	return strings.Join(texts, "; ")
}

// problem locates each problem in the body of the request.
func (r Rejected) problem() huma.StatusError {
	details := make([]error, len(r))
	for i, s := range r {
		details[i] = &huma.ErrorDetail{Message: s.Message, Location: strings.TrimSuffix("body."+s.Key, ".")}
	}
	return huma.NewError(http.StatusUnprocessableEntity, "these settings are invalid, so none took effect", details...)
}

// settingsList is all settings.
type settingsList struct {
	Settings []Setting `json:"settings"`
}

// SettingsChange is the result of a change.
type SettingsChange struct {
	Changed []string `json:"changed" doc:"keys of the settings that changed"`
	// Of a reload:
	Kept     []string          `json:"kept,omitempty" doc:"keys that a patch sets in place of the file"`
	Seeds    *crawl.SeedCounts `json:"seeds,omitempty" doc:"what became of the seeds of the settings"`
	BadSeeds []string          `json:"bad_seeds,omitempty" doc:"left out, and why: no seed is removed then"`
	// Incomplete are the nodes that have not followed, and why.
	Incomplete *Incomplete `json:"incomplete,omitempty" doc:"in a cluster: nodes that do not have the change, and why"`
}

// settingsPatch is a merge patch of the config file.
type settingsPatch struct {
	Body map[string]any `contentType:"application/merge-patch+json"`
}

func settingsAPI(s *Server, api huma.API) {
	Handle(api, Operation("GET", "/config", "config-show", "The settings in force, and the source of each"),
		func(context.Context, *struct{}) (*Object[settingsList], error) {
			return answer(settingsList{s.o.Settings.Settings()}, nil)
		})
	change := Operation("PATCH", "/config", "config-change", "Change settings while the crawl runs", bodyErrors()...)
	change.Description = "A merge patch (RFC 7396) of the config file, such as {\"crawl\": {\"workers\": 16}}. All " +
		"of it takes effect, or none. It holds until the crawl ends; null undoes an earlier patch. Settings " +
		"that cannot change are an error that lists them."
	Handle(api, change, func(ctx context.Context, in *settingsPatch) (*Object[SettingsChange], error) {
		patch, err := json.Marshal(in.Body)
		if err != nil {
			return nil, errQuery{err}
		}
		keys, err := s.o.Settings.Change(ctx, patch)
		return s.changed(ctx, SettingsChange{Changed: keys}, err)
	})
	reload := Operation("POST", "/config/reload", "config-reload", "Read the config file again")
	reload.Description = "As the signal SIGHUP does, with crawl.seeds and crawl.seeds_file. Seeds that the settings " +
		"do not name any more are removed, others stay. Patches stay in force."
	Handle(api, reload, func(ctx context.Context, in *struct {
		Undo bool `query:"undo" doc:"true: undo all patches"`
	}) (*Object[SettingsChange], error) {
		done, err := s.o.Settings.Reload(ctx, in.Undo)
		return s.changed(ctx, done, err)
	})
}

// changed answers a change. In a cluster it waits until all nodes have it.
func (s *Server) changed(ctx context.Context, done SettingsChange, err error) (*Object[SettingsChange], error) {
	if done.Changed == nil {
		done.Changed = []string{}
	}
	if err == nil && s.o.Division != nil {
		done.Incomplete = s.o.Division.Followed(ctx)
	}
	return answer(done, err)
}

// databaseType is the media type of a copy of the database.
const databaseType = "application/octet-stream"

func backupAPI(s *Server, api huma.API) {
	op := s.onlyWhole(Operation("GET", "/backup", "backup", "A copy of the database as of one moment"),
		"a cluster has no single database: its shards keep snapshots on the NATS servers")
	op.Description = "The crawl continues meanwhile. It copies the database to a file under data_dir first " +
		"and sends that at any pace. If there is no room for it, the response must be read within a minute " +
		"plus the time it takes at 32 MiB/s, " +
		"or the connection breaks. A response that is shorter than its Content-Length is no copy. " +
		"One copy at a time, others get 503. The token for reading is not enough."
	op.Responses = map[string]*huma.Response{"200": {
		Description: "the database file",
		Content: map[string]*huma.MediaType{
			databaseType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}}
	op.Middlewares = append(op.Middlewares, func(c huma.Context, next func(huma.Context)) {
		if who, _ := c.Context().Value(roleKey{}).(role); who < roleFull {
			_ = huma.WriteErr(api, c, http.StatusForbidden, "this token is for reading only: send server.token")
			return
		}
		next(c)
	})
	Handle(api, op, func(context.Context, *struct{}) (*huma.StreamResponse, error) {
		return s.stream(func(t *Stream) error {
			t.kind = databaseType
			_, err := s.crawl(t.r.Context()).Backup(t.r.Context(), t, func(size int64) {
				t.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
				t.Begin()
			})
			return err
		}), nil
	})
}
