package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Packages installs packages of npm for a test, and returns the directory in which node_modules is. It skips where npm,
// its packages or Chromium cannot be had.
func Packages(ctx context.Context, t *testing.T, names ...string) (dir string) {
	t.Helper()
	_, noChromium := exec.LookPath("chromium")
	if _, noNpm := exec.LookPath("npm"); noChromium != nil || noNpm != nil {
		t.Skip("there is no chromium or no npm on this machine: apt-get install chromium nodejs npm")
	}
	dir = t.TempDir()
	install := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--silent",
		"--prefix", dir}, names...)...)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("the npm packages cannot be had: %v\n%s", err, out)
	}
	return dir
}

// Axe is the package of axe-core, and AxeScript its script below node_modules.
const (
	Axe       = "axe-core@4.10.3"
	AxeScript = "axe-core/axe.min.js"
)

// JudgePages has pages, by their names, judged by axe-core in Chromium, at the widths of a phone and of a desk, and by
// html-validate. It skips where npm, its packages or Chromium cannot be had.
func JudgePages(t *testing.T, pages map[string][]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	j := pageJudge{t: t, ctx: ctx, dir: Packages(ctx, t, Axe, "html-validate@9.5.5")}
	for name, page := range pages {
		j.validate(name, page)
		j.axe(name, page)
	}
}

type pageJudge struct {
	t   *testing.T
	ctx context.Context // of one test
	dir string
}

func (j *pageJudge) write(file string, content []byte) (path string) {
	j.t.Helper()
	path = filepath.Join(j.dir, file)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		j.t.Fatal(err)
	}
	return path
}

// validate checks a page by html-validate.
func (j *pageJudge) validate(name string, page []byte) {
	j.t.Helper()
	j.write(".htmlvalidate.json", []byte(`{"root":true,"extends":["html-validate:standard"]}`))
	command := exec.CommandContext(j.ctx, filepath.Join(j.dir, "node_modules/.bin/html-validate"),
		j.write("page.html", page))
	command.Dir = j.dir
	if out, err := command.CombinedOutput(); err != nil {
		j.t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// axe checks a page by axe-core, which runs in it.
func (j *pageJudge) axe(name string, page []byte) {
	j.t.Helper()
	axe, err := os.ReadFile(filepath.Join(j.dir, "node_modules", AxeScript))
	if err != nil {
		j.t.Fatal(err)
	}
	const script = `axe.run().then(r => { document.body.textContent = "RESULT" + JSON.stringify({
		passes: r.passes.length,
		found: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.failureSummary).join(" "))}) + "END" })`
	judged := j.write("judged.html", bytes.Replace(page, []byte("</body>"),
		[]byte("<script>"+string(axe)+"</script><script>"+script+"</script></body>"), 1))
	for _, width := range []string{"390", "1400"} {
		dom, err := exec.CommandContext(j.ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu",
			"--user-data-dir="+filepath.Join(j.dir, "profile"), "--window-size="+width+",900",
			"--virtual-time-budget=20000", "--dump-dom", "file://"+judged).Output()
		if err != nil {
			j.t.Fatalf("%s: chromium: %v", name, err)
		}
		m := regexp.MustCompile(`(?s)RESULT(\{.*\})END`).FindSubmatch(dom)
		if m == nil {
			j.t.Fatalf("%s: axe has no result:\n%.500s", name, dom)
		}
		var result struct {
			Passes int
			Found  []string
		}
		if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), &result); err != nil {
			j.t.Fatalf("%s: %v:\n%s", name, err, m[1])
		}
		if len(result.Found) > 0 || result.Passes == 0 {
			j.t.Errorf("%s at %s px: %d passes, violations:\n%s", name, width, result.Passes,
				strings.Join(result.Found, "\n"))
		}
	}
}
