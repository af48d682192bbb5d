package config

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"os"
)

const reference = "../../config.yaml"

// TestReferenceEqualsDefaults holds the shipped config.yaml equal to Default, in both directions.
func TestReferenceEqualsDefaults(t *testing.T) {
	c, err := Load(reference, nil, nil)
	if err != nil {
		t.Fatalf("the shipped config.yaml has problems:\n%v", err)
	}
	fresh := Default()
	fresh.file = reference
	fresh.resolvePaths()
	for _, s := range settings() {
		if got := c.origins[s.key]; got.Line == 0 {
			t.Errorf("%s is not in config.yaml", s.key)
		}
		if got, want := s.value(c), s.value(&fresh); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: config.yaml says %v, the default is %v", s.key, got, want)
		}
	}
	// A key in the file that is no setting is an error of Load, so the other direction has been checked too.
}

func TestReferenceHasACommentForEverySetting(t *testing.T) {
	body, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(reference, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(body), "\n")
	commented := regexp.MustCompile(`^\s*[a-z0-9_]+: \S.*\s# \S.{10,}`)
	for _, s := range settings() {
		if line := lines[c.origins[s.key].Line-1]; !commented.MatchString(line) {
			t.Errorf("%s: want `key: default # comment` on one line, got %q", s.key, line)
		}
	}
}

func TestDefaultsPassTheirOwnCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := Load("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	for _, s := range settings() {
		if got := s.value(c); !reflect.DeepEqual(got, s.value(&want)) {
			t.Errorf("%s = %#v without any source, want the default %#v", s.key, got, s.value(&want))
		}
	}
	if c.File() != "" {
		t.Errorf("File() = %q where there is none", c.File())
	}
}

func TestEverySettingHasAUniqueVariable(t *testing.T) {
	seen := map[string]string{}
	for _, s := range settings() {
		if s.key == "" || strings.HasSuffix(s.key, ".") {
			t.Errorf("field %v has no mapstructure tag", s.index)
		}
		if other, twice := seen[s.variable()]; twice {
			t.Errorf("%s and %s are both %s in the environment", s.key, other, s.variable())
		}
		seen[s.variable()] = s.key
	}
}

func TestOutputDir(t *testing.T) {
	c := Default()
	c.DataDir = "/var/lib/amble"
	if got := c.OutputDir(); got != "/var/lib/amble/output" {
		t.Errorf("OutputDir() = %q", got)
	}
	c.Output.Dir = "/srv/pages"
	if got := c.OutputDir(); got != "/srv/pages" {
		t.Errorf("OutputDir() = %q", got)
	}
}
