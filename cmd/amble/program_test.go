package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/amble-crawler/amble/internal/testweb"
)

// program is the real program with a web to crawl, in a directory of its own.
type program struct {
	t   testing.TB
	web *testweb.Web
	dir string
}

// newProgram starts the web and writes a config file: the sites are the seeds, and settings come on
// top, by section and name.
func newProgram(t testing.TB, sites []testweb.Site, settings map[string]map[string]any) *program {
	t.Helper()
	web, err := testweb.New(testweb.Config{Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &program{t: t, web: web, dir: t.TempDir()}
	var seeds []string
	for _, host := range web.Sites() {
		seeds = append(seeds, web.URL(host, "/"))
	}
	all := map[string]map[string]any{
		"crawl":      {"seeds": seeds, "give_up_after": "2s"},
		"politeness": {"delay": "1ms"},
		"fetch":      {"allow_private": true, "resolver": web.ResolverAddr(), "contact": "bot@one.example"},
		"storage":    {"min_free": 0},
		"server":     {"listen": ""},
		"log":        {"level": "warn"},
	}
	for section, values := range settings {
		if all[section] == nil {
			all[section] = make(map[string]any)
		}
		maps.Copy(all[section], values)
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(p.path("config.yaml"), text, 0o600) // JSON is YAML
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) path(parts ...string) string {
	return filepath.Join(append([]string{p.dir}, parts...)...)
}

// amble is a command of the real program: the test binary is one that has main under this name.
func (p *program) amble(arguments ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], append(arguments, "-c", p.path("config.yaml"))...)
	command.Args[0], command.Dir = "amble", p.dir
	command.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "GORACE=atexit_sleep_ms=0")
	return command
}

// exits runs a command that has to end with a code, and returns what it printed.
func (p *program) exits(code int, arguments ...string) (stdout, stderr string) {
	p.t.Helper()
	var out, said bytes.Buffer
	command := p.amble(arguments...)
	command.Stdout, command.Stderr = &out, &said
	_ = command.Run() // the code says it
	if got := command.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("amble %q: exit code %d, want %d\n%s%s", arguments, got, code, out.String(), said.String())
	}
	return out.String(), said.String()
}

// waitFor answers when a channel is closed.
func waitFor(leave <-chan struct{}) http.Handler {
	page := testweb.Page("at last")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-leave:
			page.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}
