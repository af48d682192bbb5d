package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"amble": main,
		"crashes": func() {
			abortOnCrash()
			panic("as it should")
		},
	})
}

// TestScripts runs amble as a user would: one script for each command, failures and exit codes included. $WEB is a web server on
// loopback.
func TestScripts(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	web := httptest.NewServer(newScriptWeb())
	t.Cleanup(web.Close) // the scripts run in parallel, behind the end of this function
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("WEB", web.URL)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would keep each process for a second
			addProcesses(env)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "start": start, "signal": sendSignal, "ends": ends, "says": says, "eventually": eventually, "damage": damage,
		},
	})
}

// newScriptWeb serves the robots.txt files that the scripts ask for over HTTP, and a few pages to crawl.
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
