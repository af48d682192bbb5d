package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the scripts wait for delays most of the time
	testscript.Main(m, map[string]func(){
		"amble": main,
		"crashes": func() {
			abortOnCrash()
			panic("as it should")
		},
	})
}

// besideRun are the scripts in which something else happens while a crawl runs: commands, signals,
// imports, a cluster. They need the race detector.
var besideRun = []string{"cluster_run", "daemon", "import_running", "run_signals"}

// TestScripts runs amble as a user would, with what happens while a crawl runs.
func TestScripts(t *testing.T) {
	runScripts(t, func(name string) bool { return slices.Contains(besideRun, name) })
}

// TestHeavyScripts runs all other scripts: one for each command, failures and exit codes included.
func TestHeavyScripts(t *testing.T) {
	runScripts(t, func(name string) bool { return !slices.Contains(besideRun, name) })
}

// runScripts runs the wanted ones of the scripts. $WEB is a web server on loopback, and $NATS a
// NATS server.
func runScripts(t *testing.T, wanted func(name string) bool) {
	const suffix = ".txtar"
	files := must.Get(filepath.Glob("testdata/script/*" + suffix))(t)
	files = slices.DeleteFunc(files, func(file string) bool {
		return !wanted(strings.TrimSuffix(filepath.Base(file), suffix))
	})
	must.True(t, len(files) >= len(besideRun), "%d scripts", len(files))
	t.Cleanup(func() { goleak.VerifyNone(t) })
	web := httptest.NewServer(newScriptWeb())
	t.Cleanup(web.Close) // the scripts run in parallel, behind the end of this function
	nats := natstest.Start(t, natsconn.Names{Cluster: "scripts"}, 1, nil)
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("WEB", web.URL)
			env.Setenv("NATS", "nats://"+nats.Addresses()[0])
			env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would keep each process for a second
			addProcesses(env)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "start": start, "signal": sendSignal, "ends": ends, "says": says,
			"eventually": eventually, "damage": damage, "publish": publish,
		},
	})
}

// newScriptWeb serves the robots.txt files that the scripts fetch over HTTP, and a few pages to
// crawl.
func newScriptWeb() http.Handler {
	mux := http.NewServeMux()
	addScriptPages(mux)
	text := func(path string, status int, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(status)
			io.WriteString(w, body)
		})
	}
	text("/robots.txt", http.StatusOK, "User-agent: amble\nDisallow: /private\n")
	text("/missing/robots.txt", http.StatusNotFound, "no such page")
	text("/broken/robots.txt", http.StatusServiceUnavailable, "later")
	mux.Handle("/moved/robots.txt", http.RedirectHandler("/robots.txt", http.StatusMovedPermanently))
	mux.HandleFunc("/agent/robots.txt", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "User-agent: amble\nDisallow: /"+r.Header.Get("User-Agent")+"\n")
	})
	return mux
}

// exits is the script command `exits CODE program args...`: it runs a program and fails unless it
// ends with exactly that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// addScriptPages adds the pages that the scripts crawl. /robots.txt disallows /private.
func addScriptPages(mux *http.ServeMux) {
	page := func(path string, links ...string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<!DOCTYPE html><title>"+path+"</title>")
			for _, l := range links {
				fmt.Fprintf(w, "<a href=%q>link</a>", l)
			}
		})
	}
	page("/crawl/{$}", "a", "b", "/private/c", "missing")
	page("/crawl/a", "/crawl/", "http://outside.test/")
	page("/crawl/b", "a")
	page("/private/c")
	page("/other")
	page("/many/", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	page("/hanging", "/hang")
	made := map[string]string{ // with what they are made of
		"/made/{$}": "<link rel=stylesheet href=s.css><img src=i.png><img src=moved.png><img src=/private/no.png>" +
			"<img src=gone.png><a href=whole>next</a>",
		"/made/kept": "<img src=kept.png>", "/made/whole": "<link rel=stylesheet href=s.css><img src=i.png>",
		"/made/s.css": "a { background: url(b.png) }", "/made/i.png": "i", "/made/b.png": "b", "/made/there.png": "t",
	}
	for path, content := range made {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", cmp.Or(mime.TypeByExtension(filepath.Ext(path)), "text/html"))
			io.WriteString(w, content)
		})
	}
	mux.HandleFunc("/made/far", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, port, _ := strings.Cut(r.Host, ":")
		fmt.Fprintf(w, "<img src=http://localhost:%s/made/i.png><img src=http://localhost:%s/made/b.png>"+
			"<img src=http://opted.example/o.png><img src=http://excluded.example/e.png>", port, port)
	})
	mux.HandleFunc("/made/kept.png", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Robots-Tag", "noarchive")
	})
	mux.Handle("/made/moved.png", http.RedirectHandler("there.png", http.StatusFound))
	mux.HandleFunc("/stated/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Usage", "train-ai=n, search=y")
	})
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>agent %s, from %s</title>", r.UserAgent(), r.Header.Get("From"))
	})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

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
	web := testweb.Serve(t, testweb.Config{Sites: sites})
	p := &program{t: t, web: web, dir: t.TempDir()}
	var seeds []string
	for _, host := range web.Sites() {
		seeds = append(seeds, web.URL(host, "/"))
	}
	all := map[string]map[string]any{
		"crawl":      {"seeds": seeds, "give_up_after": "2s"},
		"politeness": {"delay": "1ms", "ip_rate": 0},
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
	must.Do(t, err)
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
	var out, messages bytes.Buffer
	command := p.amble(arguments...)
	command.Stdout, command.Stderr = &out, &messages
	_ = command.Run() // the code says it
	if got := command.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("amble %q: exit code %d, want %d\n%s%s", arguments, got, code, out.String(), messages.String())
	}
	return out.String(), messages.String()
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

// TestAllOutputIsPlain: whatever a command prints passes the writer that escapes.
func TestAllOutputIsPlain(t *testing.T) {
	var out, errors bytes.Buffer
	run([]string{"robots", "check", "--robots", "/nowhere" + strange, strange}, strings.NewReader(""), &out, &errors)
	run([]string{strange}, strings.NewReader(""), &out, &errors)
	run([]string{"robots", "check", "--agent", "x", "--robots", "/dev/null", "http://a.test/" + strange},
		strings.NewReader(""), &out, &errors)
	for _, text := range []string{out.String(), errors.String()} {
		assert.True(t, isPlainText(text) && text != "", "%q", text)
	}
}

// strange is text that would change what a terminal shows.
const strange = "\x1b[2J\x1b]0;title\a\u202e\x9b31m\r"

// isPlainText reports whether a terminal shows a text as it is.
func isPlainText(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && c != '\t' && !unicode.IsPrint(c) })
}
