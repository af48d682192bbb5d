package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestHeavyCore: the program without its modules crawls, goes on after an end, serves its dashboard, and refuses
// settings of modules instead of ignoring them.
func TestHeavyCore(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "amble")
	out, err := exec.Command("go", "build", "-tags", "core", "-o", program, ".").CombinedOutput()
	must.True(t, err == nil, "%v\n%s", err, out)
	const pages = 12
	routes := testweb.Routes{}
	for i := range pages {
		routes[fmt.Sprintf("/%d", i)] = testweb.Page("page", fmt.Sprintf("/%d", (i+1)%pages))
	}
	web := must.Get(testweb.New(testweb.Config{Sites: []testweb.Site{{Host: "a.test", Handler: routes}}}))(t)
	defer web.Close()
	data := t.TempDir()
	amble := func(sets ...string) *exec.Cmd {
		args := []string{"run", "--set", "data_dir=" + data, "--set", "fetch.resolver=" + web.ResolverAddr(),
			"--set", "fetch.allow_private=true", "--set", "politeness.delay=1ms", "--set",
			"politeness.adaptive_factor=0",
			"--set", "fetch.contact=https://example.org/bot", "--set", "identity.url=https://bot.example.org"}
		for _, s := range sets {
			args = append(args, "--set", s)
		}
		return exec.CommandContext(t.Context(), program, append(args, web.URL("a.test", "/0"))...)
	}
	for _, sets := range [][]string{{"crawl.max_pages=5", "server.listen="}, {"server.listen="}} {
		out, err := amble(sets...).CombinedOutput()
		must.True(t, err == nil, "%v\n%s", err, out)
	}
	n := len(web.Requests().Pages())
	assert.True(t, n == pages, "%d pages were requested in two runs, want each of %d once", n, pages)
	for set, name := range map[string]string{"cluster.urls=nats://127.0.0.1:1": "cluster",
		"urlfrontier.listen=127.0.0.1:0": "urlfrontier", "identity.sign=always": "identity",
		"extract.rules=[{pattern: x, links: [a]}]": "extract.rules", "audit.keep=1h": "audit.keep"} {
		out, err := amble(set).CombinedOutput()
		code, is := err.(*exec.ExitError)
		assert.True(t, is && code.ExitCode() == console.ExitUsage && bytes.Contains(out, []byte(name)), "%s: %v\n%s",
			set, err, out)
	}
	checkDashboard(t, amble("crawl.exit_when_done=false", "server.listen=127.0.0.1:0"), data)
}

// checkDashboard starts a crawl, and looks whether its dashboard is there.
func checkDashboard(t *testing.T, daemon *exec.Cmd, data string) {
	t.Helper()
	var out bytes.Buffer
	daemon.Stderr = &out
	must.Do(t, daemon.Start())
	defer func() {
		_ = daemon.Process.Signal(os.Interrupt)
		err := daemon.Wait()
		assert.True(t, err == nil, "%v\n%s", err, out.String())
	}()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for ctx.Err() == nil {
		_, running, err := server.FetchStatus(ctx, data, "")
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		resp := must.Get(http.Get("http://" + running.Address + "/"))(t)
		page, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(page), "<title>") {
			t.Errorf("%v, %s:\n%.300s", err, resp.Status, page)
		}
		return
	}
	t.Errorf("there is no API:\n%s", out.String())
}
