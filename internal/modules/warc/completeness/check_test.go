package completeness

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestExplained: what is stored is said by the files, and why the rest is not by the crawl, if it knows.
func TestExplained(t *testing.T) {
	const there, away, gone, none = image, moved, sheet, target
	files := stored{archived(t, []capture{
		{there, "200 OK", ""}, {away, "302 Found\r\nLocation: /i.png", ""}, {gone, "404 Not Found", ""},
	})}
	for _, test := range []struct {
		name, url  string
		crawl      RequisiteState // empty: it says nothing
		state, why string
	}{
		{"stored", there, fetched(), "fetched", ""},
		{"stored, and failed since", there, RequisiteState{State: "failed", Reason: "reset"}, "fetched", ""},
		{"not known", none, RequisiteState{}, "", ReasonNotStored},
		{"never taken", none, RequisiteState{State: "unknown", Reason: "scope"}, "unknown", "scope"},
		{"forbidden", none, RequisiteState{State: "denied", Reason: "robots"}, "denied", "robots"},
		{"waiting", none, RequisiteState{State: "queued"}, "queued", ""},
		{"fetched, and its file is lost", none, fetched(), "", ReasonNotStored},
		{"redirected, and its file is lost", none, RequisiteState{State: "redirected"}, "", ReasonNotStored},
		{"fetched, and not to be stored", none, RequisiteState{State: "fetched", Reason: "usage"}, "fetched", "usage"},
		{"failed", gone, RequisiteState{State: "retrying"}, "retrying", ""},
		{"failed, and erased", gone, RequisiteState{State: "unknown", Reason: ReasonNotTaken}, "failed", "status 404"},
		{"leads on", away, RequisiteState{State: "redirected"}, "redirected", ""},
		{"leads on, and failed since", away, RequisiteState{State: "failed", Reason: "reset",
			At: start().Add(time.Minute)}, "redirected", ""},
		{"leads on and on", away, RequisiteState{State: "failed", Reason: "redirects",
			At: start().Add(time.Second)}, "failed", "redirects"},
		{"leads out", away, RequisiteState{State: "redirected", Reason: "opt_out"}, "redirected", "opt_out"},
	} {
		crawl := known{test.url: test.crawl}
		states, err := explained{files, crawl}.States(t.Context(), []string{test.url})
		s := states[test.url]
		assert.True(t, err == nil && s.State == test.state && s.Reason == test.why, "%s: %+v, %v", test.name, s, err)
	}
}

// lost is a crawl that does not answer.
type lost struct{}

func (lost) States(context.Context, []string) (map[string]RequisiteState, error) {
	return nil, errors.New("no answer")
}

// TestIsOf: an archive whose pages a crawl does not know is that of another one.
func TestIsOf(t *testing.T) {
	d := new(Docs)
	d.take(told(site, 10, 200, "text/html", "requisite="+image))
	must.Do(t, d.isOf(t.Context(), known{site: fetched()}))
	err := d.isOf(t.Context(), known{site: {State: "unknown"}})
	assert.True(t, err != nil && strings.Contains(err.Error(), "another crawl"), "of a crawl without the page: %v", err)
	err = d.isOf(t.Context(), lost{})
	assert.True(t, err != nil, "of a crawl that does not answer nothing is said")
}
