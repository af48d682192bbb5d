package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// inFile loads body as a config file, with flags and environment on top.
func inFile(t *testing.T, body string, sets, environ []string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	must.Do(t, os.WriteFile(path, []byte(body), 0o644))
	return Load(path, sets, environ)
}

func TestLaterSourcesAreStronger(t *testing.T) {
	const file = "politeness:\n  delay: 2s\ncrawl:\n  seeds: [https://file.example/]\n  workers: 7\n"
	environ := []string{"PATH=/bin", "AMBLE_POLITENESS_DELAY=3s", "AMBLE_CRAWL_SEEDS=https://env.example/",
		"AMBLE_LOG_LEVEL="}
	tests := []struct {
		name    string
		sets    []string
		environ []string
		delay   time.Duration
		seeds   []string
		origin  string
	}{
		{"file", nil, nil, 2 * time.Second, []string{"https://file.example/"}, "config.yaml:2"},
		{"environment", nil, environ, 3 * time.Second, []string{"https://env.example/"}, "AMBLE_POLITENESS_DELAY"},
		{"flag", []string{"politeness.delay=9s", "politeness.delay=4s", "crawl.seeds="}, environ, 4 * time.Second,
			[]string{}, "--set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := must.Get(inFile(t, file, tt.sets, tt.environ))(t)
			assert.Equal(t, c.Politeness.Delay, tt.delay, "politeness.delay")
			assert.Slice(t, c.Crawl.Seeds, tt.seeds, "crawl.seeds")
			assert.True(t, c.Crawl.Workers == 7 && c.Log.Level == "info" && c.Politeness.PerIP == 4,
				"settings that only weaker sources give are lost: %+v", c)
			got := c.Source("politeness.delay").String()
			assert.True(t, strings.HasSuffix(got, tt.origin), "source = %q, want %q", got, tt.origin)
		})
	}
}

func TestEveryTypeFromTheOutside(t *testing.T) {
	sets := []string{
		"crawl.workers=3", "crawl.max_pages=12", "robots.obey=false", "politeness.delay=250ms",
		"politeness.adaptive_factor=1.5", "fetch.max_body=2MiB", "scope.mode=domain",
		`scope.include=['^https://a{1,2}\.example/', b]`, "scope.exclude= x , y ",
	}
	var environ []string
	for _, s := range sets {
		key, value, _ := strings.Cut(s, "=")
		environ = append(environ, "AMBLE_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
	}
	for name, load := range map[string]func() (*Config, error){
		"flags":       func() (*Config, error) { return inFile(t, "", sets, nil) },
		"environment": func() (*Config, error) { return inFile(t, "", nil, environ) },
	} {
		c, err := load()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := Default()
		want.Crawl.Workers, want.Crawl.MaxPages = 3, 12
		want.Robots.Obey = false
		want.Politeness.Delay, want.Politeness.AdaptiveFactor = 250*time.Millisecond, 1.5
		want.Fetch.MaxBody = 2 * MiB
		want.Scope = Scope{Mode: "domain", Include: []string{`^https://a{1,2}\.example/`, "b"},
			Exclude: []string{"x", "y"}}
		want.DataDir = c.DataDir
		for _, s := range settings() {
			assert.Deep(t, s.value(c), s.value(&want), name, s.key)
		}
	}
}

func TestProblemsOutsideTheFile(t *testing.T) {
	tests := []struct {
		name    string
		sets    []string
		environ []string
		want    string
	}{
		{"flag without value", []string{"politeness.delay"}, nil,
			`--set: read "politeness.delay"; want key=value, such as --set politeness.delay=2s`},
		{"flag without key", []string{"=2s"}, nil,
			`--set: read "=2s"; want key=value, such as --set politeness.delay=2s`},
		{"misspelt flag", []string{"politeness.dealy=2s"}, nil,
			`--set: politeness.dealy: unknown key; did you mean politeness.delay?`},
		{"flag names a section", []string{"politeness=2s"}, nil,
			`--set: politeness: is a section, not a setting; did you mean politeness.delay?`},
		{"flag of a wrong type", []string{"politeness.delay=fast"}, nil,
			`--set: politeness.delay: read "fast"; want a duration with its unit, such as 500ms, 2s or 1h30m`},
		{"flag out of range", []string{"crawl.workers=4097"}, nil, `--set: crawl.workers: read 4097; want 0 to 4096`},
		{"flag with a broken list", []string{"crawl.seeds=[a"}, nil,
			`--set: crawl.seeds: read "[a"; want items separated by commas, or a YAML list such as ['a,b', c]`},
		{"flag with a nested list", []string{"crawl.seeds=[[a]]"}, nil,
			`--set: crawl.seeds: read a list as item 1; want a list of plain values`},
		{"misspelt variable", nil, []string{"AMBLE_POLITNESS_DELAY=2s"},
			`AMBLE_POLITNESS_DELAY: is no setting; did you mean AMBLE_POLITENESS_DELAY?`},
		{"strange variable", nil, []string{"AMBLE_COLOUR=blue"},
			`AMBLE_COLOUR: is no setting; use AMBLE_ and the name of a setting in capitals, such as AMBLE_POLITENESS_DELAY, or unset it`},
		{"variable of a wrong type", nil, []string{"AMBLE_ROBOTS_OBEY=no"},
			`AMBLE_ROBOTS_OBEY: robots.obey: read "no"; want true or false`},
		{"secret is not repeated", nil, []string{"AMBLE_SERVER_TOKEN=open sesame"},
			`AMBLE_SERVER_TOKEN: server.token: read a value of 11 bytes; want at most 256 printable ASCII characters without spaces`},
		{"pair from two sources", []string{"politeness.per_host=2"}, []string{"AMBLE_POLITENESS_DELAY=5s"},
			`--set: politeness.per_host: read 2; more than 1 needs politeness.delay: 0s, and it is 5s: a host with a delay gets one request at a time`},
		{"both pairs of one setting", []string{"politeness.per_host=9"}, nil, "--set: politeness.per_host: read 9; " +
			"more than 1 needs politeness.delay: 0s, and it is 1s: a host with a delay gets one request at a time\n" +
			"--set: politeness.per_host: read 9; is more than politeness.per_ip, 4, so it can never be reached; " +
			"want at most that"},
		{"all of them, file first", []string{"log.level=loud"}, []string{"AMBLE_LOG_FORMAT=xml"},
			`AMBLE_LOG_FORMAT: log.format: read "xml"; want one of text, json` + "\n" +
				`--set: log.level: read "loud"; want one of debug, info, warn, error`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := inFile(t, "", tt.sets, tt.environ)
			var problems Errors
			must.True(t, errors.As(err, &problems), "error is %T, want Errors", err)
			assert.Equal(t, problems.Error(), tt.want)
		})
	}
}

// Kubernetes gives every container variables about every service, so a service called amble must
// not stop amble. Nor must the variable of a fetcher that runs beside it.
func TestVariablesOfOthersAreNoMistake(t *testing.T) {
	environ := []string{
		"AMBLE_FETCH_TOKEN=for-fetchers",
		"AMBLE_SERVICE_HOST=10.0.0.1", "AMBLE_SERVICE_PORT=8377", "AMBLE_SERVICE_PORT_HTTP=8377",
		"AMBLE_PORT=tcp://10.0.0.1:8377",
		"AMBLE_PORT_8377_TCP=tcp://10.0.0.1:8377", "AMBLE_PORT_8377_TCP_ADDR=10.0.0.1",
		"AMBLE_API_SERVICE_HOST=10.0.0.1",
	}
	must.Get(inFile(t, "", nil, environ))(t)
}

func TestMissingFile(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Load("nowhere.yaml", nil, nil)
	assert.True(t, err != nil && strings.HasPrefix(err.Error(), "nowhere.yaml: no such file; "),
		"Load of a missing file: %v", err)
	_, err = Load(".", nil, nil)
	assert.True(t, err != nil && strings.HasPrefix(err.Error(), ".: cannot be read: "), "Load of a directory: %v", err)
}

func TestFileInTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile(DefaultFile, []byte("crawl:\n  workers: 9\n"), 0o644))
	c := must.Get(Load("", nil, nil))(t)
	assert.True(t, c.Crawl.Workers == 9 && c.File() == DefaultFile && c.DataDir == "data",
		"workers %d, file %q, data_dir %q", c.Crawl.Workers, c.File(), c.DataDir)
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "amble.yaml")
	body := "data_dir: db\ncrawl:\n  seeds_file: ../seeds.txt\noutput:\n  dir: /srv/pages\n" +
		"archive:\n  dedupe: old/a.cdxj\n"
	must.Do(t, os.WriteFile(path, []byte(body), 0o644))
	c := must.Get(Load(path, nil, nil))(t)
	got := []string{c.DataDir, c.Crawl.SeedsFile, c.Output.Dir, c.Archive.Dedupe}
	want := []string{filepath.Join(dir, "db"), filepath.Join(filepath.Dir(dir), "seeds.txt"), "/srv/pages",
		filepath.Join(dir, "old", "a.cdxj")}
	assert.Slice(t, got, want, "paths")
	const server = "http://localhost:8080/news/cdx"
	c = must.Get(Load(path, []string{"archive.dedupe=" + server}, nil))(t)
	assert.True(t, c.Archive.Dedupe == server, "the URL of an index became %q", c.Archive.Dedupe)
}

func TestFileOfUnreasonableSize(t *testing.T) {
	_, err := inFile(t, strings.Repeat("#", int(maxFileSize)+1), nil, nil)
	assert.True(t, err != nil && strings.Contains(err.Error(), "larger than 16MiB"), "a file of 16 MiB and a byte: %v",
		err)
}

func FuzzLoad(f *testing.F) {
	for _, body := range []string{"", "crawl:\n  workers: 5\n", "a: &a [*a]\n", "? {a: b}\n: c\n", "crawl: *x",
		"crawl: &c {seeds: [*c]}", "\tx", "a: !!binary x", "%YAML 1.1\n--- ~"} {
		f.Add(body, "politeness.delay=1s", "AMBLE_LOG_LEVEL=info")
	}
	f.Add("", "crawl.seeds=[&a [*a]]", "AMBLE_CRAWL_SEEDS=[a,]")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, body, set, variable string) {
		path := filepath.Join(dir, "config.yaml")
		must.Do(t, os.WriteFile(path, []byte(body), 0o644))
		c, err := Load(path, []string{set}, []string{variable})
		var problems Errors
		must.True(t, err == nil || errors.As(err, &problems) && len(problems) != 0 && c == nil, "Load = %v, %#v", c,
			err)
		for _, p := range problems {
			line := p.String()
			assert.True(t, !strings.ContainsAny(line, "\n\r"), "a problem of more than one line: %q", line)
		}
	})
}
