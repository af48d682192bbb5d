package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
)

func TestFindGroup(t *testing.T) {
	g := newGroups([]Group{
		{Name: "wide", Hosts: []string{"*.example.com"}},
		{Name: "near", Hosts: []string{"*.b.example.com", "one.example"}, CNAMEs: []string{"edge.cdn.example"}},
		{Name: "cdn", CNAMEs: []string{"*.cdn.example"}},
	})
	for _, c := range []struct {
		name    string
		aliases []string
		want    string
	}{
		{"example.com", nil, ""}, {"a.example.com", nil, "wide"}, {"x.b.example.com", nil, "near"},
		{"b.example.com", nil, "wide"}, {"one.example", nil, "near"}, {"two.example", nil, ""},
		{"two.example", []string{"x.example", "a.cdn.example"}, "cdn"},
		{"two.example", []string{"edge.cdn.example", "a.cdn.example"}, "near"},
		{"a.example.com", []string{"a.cdn.example"}, "wide"}, {"a.cdn.example", nil, ""},
	} {
		assert.Equal(t, g.name(g.find(c.name, c.aliases)), c.want, c.name, "an alias of", c.aliases)
	}
}

// together returns the most requests to some hosts that were in flight at a time, and the shortest
// time from the end of one to the start of the next.
func (w *world) together(in func(host string) bool) (most int, gap time.Duration) {
	type event struct {
		at    time.Time
		start int
	}
	var events []event
	for _, r := range w.log {
		if in(r.host) {
			events = append(events, event{r.start, 1}, event{r.end, -1})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.start - b.start
	})
	gap = time.Hour
	now, ended := 0, time.Time{}
	for _, e := range events {
		if now += e.start; e.start < 0 {
			ended = e.at
		} else if !ended.IsZero() {
			gap = min(gap, e.at.Sub(ended))
		}
		most = max(most, now)
	}
	return most, gap
}

// TestGroups: hosts of a group, found by name or by what their CNAME records lead to, keep its
// limits together although each has an address of its own, and take turns. Limits of domains and
// addresses hold as well.
func TestGroups(t *testing.T) {
	const hosts = 12
	inGroup := func(name string) bool { return name < "h6.test" && len(name) == len("h0.test") } // h0 to h5
	for _, c := range []struct {
		name    string
		aliases bool
		limit   politeness.LimitOptions
		domain  politeness.LimitOptions
		most    int
		gap     time.Duration
	}{
		{"in flight", false, politeness.LimitOptions{InFlight: 2}, politeness.LimitOptions{}, 2, 0},
		{"in flight, by alias", true, politeness.LimitOptions{InFlight: 2}, politeness.LimitOptions{}, 2, 0},
		{"delay", false, politeness.LimitOptions{Delay: 3 * time.Second}, politeness.LimitOptions{}, 1,
			3 * time.Second},
		{"delay, by alias", true, politeness.LimitOptions{Delay: 3 * time.Second}, politeness.LimitOptions{}, 1,
			3 * time.Second},
		{"delay, with limits of domains", true, politeness.LimitOptions{Delay: 3 * time.Second},
			politeness.LimitOptions{Delay: 2 * time.Second}, 1, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			o.Politeness.Delay, o.Domain = 100*time.Millisecond, c.domain
			o.Groups = []Group{{Name: "shops", Limit: c.limit}}
			m := newMemory()
			for i := range hosts {
				name := fmt.Sprintf("h%d.test", i)
				m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 1000)
				if inGroup(name) && !c.aliases {
					o.Groups[0].Hosts = append(o.Groups[0].Hosts, name)
				}
			}
			o.Groups[0].CNAMEs = []string{"*.cdn.example"}
			w := newWorld(t, o, m)
			w.resolve = func(l Lease) ResolveReport {
				r := ResolveReport{Addresses: []netip.Addr{addressAt(int(l.Host))}, TTL: time.Minute}
				if inGroup(l.HostName) && c.aliases {
					r.Aliases = []string{l.HostName + ".edge.example", "x.cdn.example"}
				}
				return r
			}
			w.open()
			w.run(5 * time.Minute)
			w.checkManners()
			most, gap := w.together(inGroup)
			assert.True(t, most == c.most && gap >= c.gap,
				"%d requests at a time, %v from one to the next, want %d, %v", most, gap, c.most, c.gap)
			others, _ := w.together(func(name string) bool { return !inGroup(name) })
			assert.True(t, others >= 3, "of other hosts there were %d requests at a time", others)
			served := w.served()
			for i := range 6 {
				n, first := served[fmt.Sprintf("h%d.test", i)], served["h0.test"]
				assert.True(t, n != 0 && n >= first/2 && n <= 2*first,
					"h%d.test was served %d times, h0.test %d times", i, n, first)
			}
			v, _ := w.f.View(1)
			assert.True(t, v.Group == "shops", "%s is in group %q", v.Name, v.Group)
			waits := false
			w.f.Waiting(w.now, func(v View) { waits = waits || v.Polite.Source.Name == "group shops" })
			assert.True(t, waits, "no host says that it waits for its group")
			checkInvariants(t, w.f)
		})
	}
}
