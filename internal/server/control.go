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

// Settings are those of the crawl. Its methods are called by many goroutines at once.
type Settings interface {
	// Settings are all of them as they are in force, secrets hidden.
	Settings() []Setting
	// Change puts others in force while the crawl runs, all of them or, with an error, none. patch is a JSON merge patch (RFC 7396) of the config
	// file; null takes back what an earlier patch said. It returns the keys that are different now. The error is a Rejected where the patch is to blame.
	Change(ctx context.Context, patch []byte) (changed []string, err error)
	// Reload reads the config file again and takes back all patches; what it returns is as with Change.
	Reload(ctx context.Context) (changed []string, err error)
}

// Setting is one setting in force.
type Setting struct {
	Key    string `json:"key" doc:"such as politeness.delay"`
	Value  any    `json:"value" doc:"as it would be written in the config file; of a secret only whether it is set"`
	Source string `json:"source" doc:"default, a line of the file, a variable of the environment, --set, or API"`
	Live   bool   `json:"live" doc:"can be changed while the crawl runs"`
}

// Rejected says what is wrong with settings. None of them took effect.
type Rejected []RejectedSetting

// RejectedSetting is one thing that is wrong.
type RejectedSetting struct {
	Key     string // such as politeness.delay; empty: the settings as a whole
	Message string // what was read, and what is allowed
}

// Error says all of it.
func (r Rejected) Error() string {
	texts := make([]string, len(r))
	for i, s := range r {
		texts[i] = strings.TrimPrefix(s.Key+": "+s.Message, ": ")
	}
	return strings.Join(texts, "; ")
}

// problem names the place of each in the body of the request.
func (r Rejected) problem() huma.StatusError {
	details := make([]error, len(r))
	for i, s := range r {
		details[i] = &huma.ErrorDetail{Message: s.Message, Location: strings.TrimSuffix("body."+s.Key, ".")}
	}
	return huma.NewError(http.StatusUnprocessableEntity, "these settings cannot take effect, so none did", details...)
}

// settingsList is all settings.
type settingsList struct {
	Settings []Setting `json:"settings"`
}

// settingsChange says what a change did.
type settingsChange struct {
	Changed []string `json:"changed" doc:"keys of the settings that are different now"`
}

// settingsPatch is a merge patch of the config file.
type settingsPatch struct {
	Body map[string]any `contentType:"application/merge-patch+json"`
}

func (s *Server) settingsAPI(api huma.API) {
	handle(api, operation("GET", "/config", "config-show", "The settings in force, and where each was given"),
		func(context.Context, *struct{}) (*object[settingsList], error) {
			return answer(settingsList{s.o.Settings.Settings()}, nil)
		})
	change := operation("PATCH", "/config", "config-change", "Change settings while the crawl runs", bodyErrors()...)
	change.Description = "A merge patch (RFC 7396) of the config file, such as {\"crawl\": {\"workers\": 16}}. All of it takes effect, or none. It holds until the crawl ends or the config file is " +
		"read again; null takes back what an earlier patch said. Settings that cannot change are an error that names them."
	handle(api, change, func(ctx context.Context, in *settingsPatch) (*object[settingsChange], error) {
		patch, err := json.Marshal(in.Body)
		if err != nil {
			return nil, errQuery{err}
		}
		return changed(s.o.Settings.Change(ctx, patch))
	})
	reload := operation("POST", "/config/reload", "config-reload", "Read the config file again")
	reload.Description = "As the signal SIGHUP does. What was patched is taken back."
	handle(api, reload, func(ctx context.Context, _ *struct{}) (*object[settingsChange], error) {
		return changed(s.o.Settings.Reload(ctx))
	})
}

func changed(keys []string, err error) (*object[settingsChange], error) {
	if keys == nil {
		keys = []string{}
	}
	return answer(settingsChange{keys}, err)
}

// databaseType is the media type of a copy of the database.
const databaseType = "application/octet-stream"

func (s *Server) backupAPI(api huma.API) {
	op := operation("GET", "/backup", "backup", "A copy of the database as of one moment")
	op.Description = "The crawl goes on meanwhile. It copies the database to a file under data_dir first " +
		"and sends that at any pace; without room for it, the answer has to be taken within a minute " +
		"and at 32 MiB/s behind that, " +
		"or the connection breaks. An answer that is shorter than its Content-Length is no copy. " +
		"One copy at a time, for others 503. The token for reading does not do."
	op.Responses = map[string]*huma.Response{"200": {
		Description: "the database file", Content: map[string]*huma.MediaType{databaseType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}}
	op.Middlewares = huma.Middlewares{func(c huma.Context, next func(huma.Context)) {
		if who, _ := c.Context().Value(roleKey{}).(role); who < roleFull {
			_ = huma.WriteErr(api, c, http.StatusForbidden, "this token may not have that: send server.token")
			return
		}
		next(c)
	}}
	handle(api, op, func(context.Context, *struct{}) (*huma.StreamResponse, error) {
		return s.stream(func(t *stream) error {
			t.kind = databaseType
			_, err := s.crawl.Backup(t.r.Context(), t, func(size int64) {
				t.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
				t.begin()
			})
			return err
		}), nil
	})
}
