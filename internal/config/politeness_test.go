package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/politeness"
)

// The lists of the file reach the frontier with everything that is in force for each item.
func TestOverridesAndRangesReachTheFrontier(t *testing.T) {
	c := must.Get(Load("testdata/overrides.good.yaml", nil, nil))(t)
	o := c.FrontierOptions()
	first, second, third := politeness.DefaultOptions(), politeness.DefaultOptions(), politeness.DefaultOptions()
	first.Bandwidth, second.Bandwidth, third.Bandwidth = 20<<10, 0, 100<<10
	first.Delay, first.Setting = 5*time.Second, "politeness.overrides, item 1"
	second.Delay, second.PerHost, second.Setting = 0, 4, "politeness.overrides, item 2"
	first.AdaptiveFactor, third.AdaptiveFactor = 1, 1
	first.IPRate, second.IPRate, third.IPRate = ipRate, ipRate, ipRate
	third.Paused, third.Setting = true, "politeness.overrides, item 3"
	want := []frontier.Override{
		{Hosts: []string{"*.example.com", "xn--bcher-kva.example"}, Politeness: first, HostBudget: 100},
		{Hosts: []string{"www.example.com"}, Politeness: second},
		{Hosts: []string{"[2001:db8::1]", "192.0.2.1"}, Politeness: third},
	}
	assert.Deep(t, o.Overrides, want, "overrides")
	ranges := []frontier.Range{
		{Network: netip.MustParsePrefix("192.0.2.0/24"), Shared: true,
			Limit: politeness.LimitOptions{InFlight: 8, Rate: 2}},
		{Network: netip.MustParsePrefix("2001:db8::/32"),
			Limit: politeness.LimitOptions{InFlight: 4, Delay: time.Second, Rate: ipRate}},
		{Network: netip.MustParsePrefix("198.51.100.7/32"), Limit: politeness.LimitOptions{InFlight: 4}},
	}
	assert.Deep(t, o.Ranges, ranges, "ranges")
	assert.Equal(t, o.Domain, (politeness.LimitOptions{InFlight: 2, Delay: 500 * time.Millisecond}), "domain")
	must.Do(t, o.Validate())
}

// A list may be given on the command line too, and what is shown can be read again.
func TestListsOfItemsAsText(t *testing.T) {
	const text = `[{hosts: ["*.example.com", a.example], delay: 1m30s, pause: true}]`
	c := must.Get(inFile(t, "", []string{"politeness.overrides=" + text}, nil))(t)
	var b strings.Builder
	must.Do(t, c.Show(&b))
	again, err := inFile(t, b.String(), nil, nil)
	assert.True(t, err == nil && reflect.DeepEqual(again.Politeness, c.Politeness) &&
		len(again.Politeness.Overrides) == 1, "came back as %+v (%v)", again, err)
	if _, err := inFile(t, "", []string{"politeness.overrides=a.example"}, nil); err == nil ||
		!strings.Contains(err.Error(), "want a YAML list in one line, such as [{hosts: ...}]") {
		t.Errorf("a name alone: %v", err)
	}
}

// The hours of an override replace those of all hosts, and an empty list ends them.
func TestHoursReachTheFrontier(t *testing.T) {
	c := must.Get(inFile(t, `politeness:
  hours: ["mon-fri 22:00-06:00", "sat,sun"]
  time_zone: Europe/Berlin
  overrides:
    - {hosts: [a.example], delay: 2s}
    - {hosts: [b.example], hours: [12:00-13:00]}
    - {hosts: [c.example], hours: []}
`, nil, nil))(t)
	o := c.FrontierOptions()
	hours := func(setting string, items ...string) *politeness.Hours {
		return must.Get(politeness.NewHours("Europe/Berlin", items, setting))(t)
	}
	all := hours("politeness.hours", "mon-fri 22:00-06:00", "sat,sun")
	want := []*politeness.Hours{all, hours("politeness.overrides, item 2", "12:00-13:00"), nil}
	assert.Deep(t, o.Politeness.Hours, all, "hours")
	for i := range want {
		assert.Deep(t, o.Overrides[i].Politeness.Hours, want[i], "item", i+1)
	}
}

// Groups reach the frontier with canonical names.
func TestGroupsReachTheFrontier(t *testing.T) {
	c := must.Get(inFile(t, `politeness:
  groups:
    - {name: shops, hosts: ["*.Shop.example", Bücher.example], cname: ["*.cdn.example"], per_group: 4, delay: 500ms}
`, nil, nil))(t)
	want := []frontier.Group{{Name: "shops", Hosts: []string{"*.shop.example", "xn--bcher-kva.example"},
		CNAMEs: []string{"*.cdn.example"}, Limit: politeness.LimitOptions{InFlight: 4, Delay: 500 * time.Millisecond}}}
	o := c.FrontierOptions()
	assert.True(t, reflect.DeepEqual(o.Groups, want) && o.Validate() == nil, "groups %+v, want %+v", o.Groups, want)
}

// Hosts with a delay have an adaptive delay by default, and others none: a file that sets a delay of
// 0 and several requests at a time is as valid as ever. What a file sets counts everywhere.
func TestAdaptiveDefault(t *testing.T) {
	const overrides = "  overrides: [{hosts: [a.example], delay: 0s, per_host: 4}, {hosts: [b.example], delay: 2s}, " +
		"{hosts: [c.example], per_host: 1}]\n"
	for _, c := range []struct {
		text string
		want [4]float64 // of all hosts, and of the overrides
	}{
		{overrides, [4]float64{1, 0, 1, 1}},
		{"  delay: 0s\n  per_host: 4\n" + overrides, [4]float64{0, 0, 1, 0}},
		{"  delay: 100ms\n" + overrides, [4]float64{1, 0, 1, 1}},
		{"  adaptive_factor: 0\n" + overrides, [4]float64{0, 0, 0, 0}},
		{"  adaptive_factor: 3\n  overrides: [{hosts: [a.example], delay: 0s}, {hosts: [b.example]}, " +
			"{hosts: [c.example], adaptive_factor: 0}]\n", [4]float64{3, 3, 3, 0}},
	} {
		loaded, err := inFile(t, "politeness:\n"+c.text, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		o := loaded.FrontierOptions()
		got := [4]float64{o.Politeness.AdaptiveFactor}
		for i := range o.Overrides {
			got[i+1] = o.Overrides[i].Politeness.AdaptiveFactor
		}
		assert.Equal(t, got, c.want, c.text, "factors")
		var b strings.Builder
		must.Do(t, loaded.Show(&b))
		if again, err := inFile(t, b.String(), nil, nil); err != nil ||
			!reflect.DeepEqual(again.Politeness, loaded.Politeness) {
			t.Errorf("%s: what is shown comes back as %+v (%v)", c.text, again, err)
		}
	}
}
