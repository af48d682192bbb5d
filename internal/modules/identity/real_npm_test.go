//go:build real

package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestRealVerifiers: verifiers of another language, from npm, accept what is signed, and refuse it for another
// authority.
func TestRealVerifiers(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm on this machine: apt-get install nodejs npm")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", dir,
		"web-bot-auth@0.1.3", "http-message-sig@0.3.0")
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("the npm packages cannot be had: %v\n%s", err, out)
	}
	script := must.Get(os.ReadFile("testdata/verify.mjs"))(t)
	name := filepath.Join(dir, "verify.mjs")
	must.Do(t, os.WriteFile(name, script, 0o600))
	s, k := newTestSigner(t, SignAlways, time.Now, "old.test")
	asked := testkit.Parse(t, "https://asks.test/")
	s.Answered(asked, true, 403, fields("Accept-Signature", `sig1=("@authority");nonce="abc";tag="web-bot-auth"`))
	var input bytes.Buffer
	var want []string
	for _, c := range []struct {
		signed, sent string
		ok           bool
	}{
		{"https://a.test/x?y", "https://a.test/x?y", true},
		{"https://a.test:8443/", "https://a.test:8443/", true},
		{"https://asks.test/", "https://asks.test/", true},
		{"https://old.test/", "https://old.test/", true},
		{"https://a.test/", "https://b.test/", false},
		{"https://old.test/", "https://b.test/", false},
	} {
		var list [][2]string
		for _, f := range s.Sign(testkit.Parse(t, c.signed)) {
			list = append(list, [2]string{f.Name, f.Value})
		}
		line := must.Get(json.Marshal(map[string]any{"url": c.sent, "fields": list, "jwk": k.publicJWK(),
			"bare": strings.Contains(c.signed, "old.test")}))(t)
		input.Write(append(line, '\n'))
		want = append(want, map[bool]string{true: "ok", false: "no"}[c.ok])
	}
	node := exec.CommandContext(ctx, "node", name)
	node.Stdin = &input
	out, err := node.CombinedOutput()
	must.Do(t, err, out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	must.True(t, len(lines) == len(want), "%d lines, want %d:\n%s", len(lines), len(want), out)
	for i, line := range lines {
		assert.True(t, strings.HasPrefix(line, want[i]), "request %d: %s, want %s", i, line, want[i])
	}
	t.Logf("%s", out)
}
