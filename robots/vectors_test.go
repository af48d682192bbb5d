package robots

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// vector is one line of a vector file.
type vector struct {
	ID        string `json:"id"`
	Level     string `json:"level"`
	Robots    string `json:"robots"`
	RobotsB64 string `json:"robots_b64"`
	Agent     string `json:"agent"`
	URL       string `json:"url"`
	Expect    string `json:"expect"`
	Why       string `json:"why"`
}

func (v vector) body(t *testing.T) []byte {
	if v.RobotsB64 == "" {
		return []byte(v.Robots)
	}
	b, err := base64.StdEncoding.DecodeString(v.RobotsB64)
	must.Do(t, err, v.ID)
	return b
}

// readLines returns the JSON objects of a file of JSON lines. What is cut off at its ends is no
// object and is left out.
func readLines[T any](t *testing.T, file string) []T {
	f := must.Get(os.Open(file))(t)
	defer f.Close()
	var all []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var v T
		if json.Unmarshal(s.Bytes(), &v) == nil {
			all = append(all, v)
		}
	}
	must.Do(t, s.Err())
	return all
}

func TestSharedVectors(t *testing.T) {
	for _, name := range []string{"vectors.jsonl", "vectors-fuzz.jsonl"} {
		file := filepath.Join("..", "..", "shared", "robots", name)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		checkVectors(t, readLines[vector](t, file))
	}
}

func checkVectors(t *testing.T, vectors []vector) {
	for _, v := range vectors {
		got := "disallow"
		if Compile(v.body(t), v.Agent).MatchURL(v.URL).Allowed {
			got = "allow"
		}
		if got == v.Expect {
			continue
		}
		if v.Level == "QUIRK" || v.Level == "AMBIGUOUS" {
			t.Logf("%s %s: %s, not %s (%s)", v.ID, v.Level, got, v.Expect, v.Why)
			continue
		}
		t.Errorf("%s %s: %s, want %s (%s)\n%q\n%s", v.ID, v.Level, got, v.Expect, v.Why, v.Robots, v.URL)
	}
}

func TestVectors(t *testing.T) {
	vectors := readLines[vector](t, filepath.Join("testdata", "vectors.jsonl"))
	must.True(t, len(vectors) >= 300, "%d vectors", len(vectors))
	seen := map[string]bool{}
	for _, v := range vectors {
		assert.True(t, !seen[v.ID] && v.Level != "" && v.Why != "" && (v.Expect == "allow" || v.Expect == "disallow"),
			"bad vector %+v", v)
		seen[v.ID] = true
	}
	checkVectors(t, vectors)
}
