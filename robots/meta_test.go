package robots

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// metaVector is one case of the records other than rules.
type metaVector struct {
	ID           string                     `json:"id"`
	Level        string                     `json:"level"`
	Why          string                     `json:"why"`
	Robots       string                     `json:"robots"`
	Agent        string                     `json:"agent"`
	Base         string                     `json:"base"`
	CrawlDelay   *float64                   `json:"crawl_delay_s"`
	Sitemaps     []string                   `json:"sitemaps"`
	RequestRate  *metaRate                  `json:"request_rate"`
	VisitTime    []string                   `json:"visit_time"`
	ContentUsage []string                   `json:"content_usage"`
	Signals      []string                   `json:"content_signal"`
	Hosts        []string                   `json:"host"`
	Fields       map[string]json.RawMessage `json:"-"` // the fields that the vector has
}

type metaRate struct {
	Requests int      `json:"requests"`
	Seconds  float64  `json:"seconds"`
	Window   []string `json:"window"`
}

func (v *metaVector) UnmarshalJSON(b []byte) error {
	type bare metaVector
	if err := json.Unmarshal(b, (*bare)(v)); err != nil {
		return err
	}
	return json.Unmarshal(b, &v.Fields)
}

// metaGot is what the engine returns for the fields of a meta vector, in the form of the vectors.
func metaGot(v metaVector) map[string]any {
	f := Parse([]byte(v.Robots))
	p := f.Policy(v.Agent)
	got := map[string]any{
		"crawl_delay_s": p.CrawlDelay, "sitemaps": f.Sitemaps(v.Base), "request_rate": (*metaRate)(nil),
		"visit_time":    []string(nil),
		"content_usage": values(p.ContentUsage), "content_signal": values(p.ContentSignals), "host": f.Hosts(),
	}
	if r := p.RequestRate; r != nil {
		rate := &metaRate{Requests: r.Requests, Seconds: r.Seconds}
		if r.Window != nil {
			rate.Window = []string{r.Window.From, r.Window.To}
		}
		got["request_rate"] = rate
	}
	if len(p.VisitTimes) > 0 {
		got["visit_time"] = []string{p.VisitTimes[0].From, p.VisitTimes[0].To}
	}
	return got
}

func values(preferences []Usage) []string {
	var all []string
	for _, p := range preferences {
		all = append(all, strings.TrimPrefix(p.String(), p.Kind.String()+": "))
	}
	return all
}

func checkMeta(t *testing.T, vectors []metaVector) {
	for _, v := range vectors {
		got := metaGot(v)
		for field, same := range map[string]bool{
			"crawl_delay_s":  sameNumber(got["crawl_delay_s"].(*float64), v.CrawlDelay),
			"sitemaps":       slices.Equal(got["sitemaps"].([]string), v.Sitemaps),
			"request_rate":   sameJSON(got["request_rate"], v.RequestRate),
			"visit_time":     slices.Equal(got["visit_time"].([]string), v.VisitTime),
			"content_usage":  slices.Equal(got["content_usage"].([]string), v.ContentUsage),
			"content_signal": slices.Equal(got["content_signal"].([]string), v.Signals),
			"host":           slices.Equal(got["host"].([]string), v.Hosts),
		} {
			want, has := v.Fields[field]
			if !has || same {
				continue
			}
			text, _ := json.Marshal(got[field])
			if v.Level == "QUIRK" || v.Level == "AMBIGUOUS" {
				t.Logf("%s %s: %s is %s, not %s (%s)", v.ID, v.Level, field, text, want, v.Why)
				continue
			}
			t.Errorf("%s %s: %s is %s, want %s (%s)\n%q", v.ID, v.Level, field, text, want, v.Why, v.Robots)
		}
	}
}

func sameNumber(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return math.Abs(*a-*b) <= 1e-9*math.Abs(*b)
}

func sameJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestMetaVectors(t *testing.T) {
	checkMeta(t, readLines[metaVector](t, filepath.Join("testdata", "meta.jsonl")))
}

func TestSharedMetaVectors(t *testing.T) {
	file := filepath.Join("..", "..", "shared", "robots", "meta-vectors.jsonl")
	if _, err := os.Stat(file); err == nil {
		checkMeta(t, readLines[metaVector](t, file))
	}
}
