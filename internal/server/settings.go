package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

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
