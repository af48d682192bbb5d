//go:build real

package identity

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestRealPage: the bot page is valid, and axe finds nothing in it.
func TestRealPage(t *testing.T) {
	page := must.Get(testProfile(t).Page(PathLookup))(t)
	testkit.JudgePages(t, map[string][]byte{"bot page": page})
}

// TestRealAnubis: the parser of Anubis reads the entry for its policy file, and has the name and the addresses from it.
// ANUBIS_SOURCE names a clone of its repository; without one it comes from the module proxy.
func TestRealAnubis(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, arguments ...string) (string, error) {
		command := exec.Command(name, arguments...)
		command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod")
		out, err := command.CombinedOutput()
		return string(out), err
	}
	const reader = `package main

import (
	"fmt"
	"os"

	"github.com/TecharoHQ/anubis/lib/config"
)

func main() {
	f, err := os.Open(os.Args[1])
	if err == nil {
		var c *config.Config
		if c, err = config.Load(f, os.Args[1]); err == nil {
			for _, b := range c.Bots {
				fmt.Println(b.Name, *b.UserAgentRegex, b.Action, b.RemoteAddr)
			}
			return
		}
	}
	fmt.Println(err)
	os.Exit(1)
}
`
	p := testProfile(t)
	mod := "module reader\n\ngo 1.26\n\nrequire github.com/TecharoHQ/anubis v1.25.0\n"
	if source := os.Getenv("ANUBIS_SOURCE"); source != "" {
		mod += "\nreplace github.com/TecharoHQ/anubis => " + source + "\n"
	}
	for name, text := range map[string]string{"go.mod": mod, "main.go": reader,
		"policy.yaml": "bots:\n" + p.Emit("anubis")} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if out, err := run("go", "mod", "tidy"); err != nil {
		t.Skipf("Anubis cannot be had; ANUBIS_SOURCE may name a clone of it: %v\n%s", err, out)
	}
	out, err := run("go", "run", ".", "policy.yaml")
	want := `amble ^amble/1\.0 \(\+https://bot\.amble\.test/\)$ ALLOW [192.0.2.7/32 198.51.100.0/24 2001:db8::/48]`
	assert.True(t, err == nil && strings.TrimSpace(out) == want, "%v\n%s\nwant %s", err, out, want)
}
