//go:build !core

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// task is a section of docs/HOWTO.md. Its comment says in which directory the commands run (empty, one with a crawl
// that ended, one with a crawl that runs), which program beside amble they need, and what they print.
type task struct {
	title, state, needs, commands string
	says                          *regexp.Regexp
}

// readTasks reads docs/HOWTO.md.
func readTasks(t *testing.T) (tasks []task) {
	t.Helper()
	page := must.Get(os.ReadFile("../../docs/HOWTO.md"))(t)
	comment := regexp.MustCompile(`^<!-- (empty|crawled|running)(?:; needs: (\w+))?; says: (.+) -->$`)
	for _, section := range strings.Split(string(page), "\n### ")[1:] {
		lines := strings.Split(section, "\n")
		x := task{title: lines[0]}
		for _, line := range lines {
			if m := comment.FindStringSubmatch(line); m != nil {
				x.state, x.needs, x.says = m[1], m[2], regexp.MustCompile(m[3])
			}
		}
		_, block, _ := strings.Cut(section, "\n```sh\n")
		x.commands, _, _ = strings.Cut(block, "\n```")
		assert.True(t, x.says != nil && x.commands != "" && strings.Count(section, "\n```sh\n") == 1,
			"%q: want one comment and one block of commands", x.title)
		tasks = append(tasks, x)
	}
	must.True(t, len(tasks) >= 30, "%d tasks", len(tasks))
	return tasks
}

// howtoSites are the sites of the page.
func howtoSites() []testweb.Site {
	return []testweb.Site{
		{Host: "example.com", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /private\n"),
			"/":           testweb.Page("Example", "/docs/", "/private/x", "/missing", "/old"),
			"/docs/":      testweb.Page("Docs", "/docs/a", "/docs/b"),
			"/docs/a":     testweb.Page("A", "/"), "/docs/b": testweb.Page("B"), "/private/x": testweb.Page("X"),
			"/old": testweb.Redirect(301, "/docs/"),
		}},
		{Host: "shop.example.com", Handler: testweb.Routes{
			"/": testweb.Content("text/html", []byte(`<title>Shop</title><b class=price>9</b>`))}},
	}
}

// fetchedAll is what the status says when the pages of howtoSites are fetched.
var fetchedAll = regexp.MustCompile(`fetched +5 `)

// TestHeavyHowto: the commands of each task do what the task says, as a user would type them.
func TestHeavyHowto(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	for _, x := range readTasks(t) {
		t.Run(x.title, func(t *testing.T) {
			t.Parallel()
			if x.needs != "" {
				if _, err := exec.LookPath(x.needs); err != nil {
					t.Skip("no " + x.needs)
				}
			}
			p := newProgram(t, howtoSites(), map[string]map[string]any{
				"server": {"listen": "127.0.0.1:0"}, "crawl": {"exit_when_done": x.state != "running"}})
			switch x.state {
			case "empty":
				must.Do(t, os.Remove(p.path("config.yaml")))
			case "crawled":
				p.exits(0, "run")
			case "running":
				run := p.amble("run")
				must.Do(t, run.Start())
				defer func() { _, _ = run.Process.Kill(), run.Wait() }()
				testkit.Until(t, "the pages", func() bool {
					out, err := p.amble("status").Output()
					return err == nil && fetchedAll.Match(out)
				})
			}
			p.types(x)
		})
	}
}

// types runs the commands of a task in the directory of the program. Its sites are those of the web, its waits short.
func (p *program) types(x task) {
	p.t.Helper()
	bin := p.t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err == nil { // the test binary is amble under this name
		err = os.Symlink(self, filepath.Join(bin, "amble"))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	commands := x.commands
	for _, host := range p.web.Sites() {
		commands = strings.ReplaceAll(commands, "https://"+host+"/", p.web.URL(host, "/"))
	}
	script := exec.Command("sh", "-e", "-c", commands)
	script.Dir = p.dir
	script.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "PATH="+bin+string(os.PathListSeparator)+
		os.Getenv("PATH"), "AMBLE_FETCH_RESOLVER="+p.web.ResolverAddr(), "AMBLE_FETCH_ALLOW_PRIVATE=true",
		"AMBLE_FETCH_CONTACT=bot@one.example", "AMBLE_POLITENESS_DELAY=1ms", "AMBLE_POLITENESS_IP_RATE=0",
		"AMBLE_STORAGE_MIN_FREE=0", "AMBLE_SERVER_LISTEN=127.0.0.1:0", "AMBLE_CRAWL_GIVE_UP_AFTER=2s")
	out, err := script.CombinedOutput()
	if err != nil || !x.says.Match(out) {
		p.t.Errorf("%v, and nothing like %s is in what it printed:\n%s\n%s", err, x.says, commands, out)
	}
}
