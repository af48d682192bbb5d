package shards

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/clusterapi"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// clusterSeed is what a seed of the cluster should have.
type clusterSeed struct {
	tag      string
	settings bool
}

// seedsAt returns the seeds by a node.
func seedsAt(p *process) map[string]clusterSeed {
	p.w.t.Helper()
	all := make(map[string]clusterSeed)
	_, text, _ := p.call("GET", "/api/v1/seeds", "")
	for line := range strings.Lines(text) {
		var e server.SeedEntry
		must.Do(p.w.t, json.Unmarshal([]byte(line), &e))
		all[e.URL] = clusterSeed{strings.Join(e.Tags, ","), e.Settings}
	}
	return all
}

// TestSeedsOfACluster adds, removes and reloads seeds at random nodes, and kills some nodes or lets them leave. All
// nodes have the seeds of a plain map, whatever their files say, and in the end each seed was fetched.
func TestSeedsOfACluster(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(36, 1))
	var sites []testweb.Site
	for _, host := range inShards(shards) {
		sites = append(sites, testweb.Site{Host: host, Handler: testweb.Routes{
			"/a": testweb.Page("a"), "/b": testweb.Page("b"), "/c": testweb.Page("c"),
		}})
	}
	web := serve(t, sites)
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), time.Millisecond, shortTTL)
	w.api = true
	model := make(map[string]clusterSeed)
	tagged := func(tag string, settings bool) crawl.Seed { // a page of the web
		s := seed(t, web, sites[random.IntN(len(sites))].Host)
		s.URL = s.URL.Origin().URL([]string{"/a", "/b", "/c"}[random.IntN(3)])
		s.Tags, s.Settings = []string{tag}, settings
		return s
	}
	w.seeds = []crawl.Seed{tagged("first", true), tagged("first", true)} // of the first file
	for _, s := range w.seeds {
		model[s.URL.String()] = clusterSeed{"first", true}
	}
	var pair []*process
	for i := range 2 {
		pair = append(pair, w.start(fmt.Sprint("node", i), t.TempDir()))
	}
	file := w.seeds
	for step := range 16 {
		p := pair[random.IntN(len(pair))]
		switch random.IntN(6) {
		case 0, 1:
			s := tagged(fmt.Sprint("command", step), false)
			p.call("POST", "/api/v1/seeds", fmt.Sprintf(`{"url":%q,"tags":[%q]}`, s.URL, s.Tags[0]))
			model[s.URL.String()] = clusterSeed{s.Tags[0], model[s.URL.String()].settings}
		case 2:
			for u := range model {
				p.call("DELETE", "/api/v1/seeds?"+url.Values{"url": {u}}.Encode(), "")
				delete(model, u)
				break
			}
		case 3, 4:
			file = nil
			for n := range 1 + random.IntN(4) {
				file = append(file, tagged(fmt.Sprintf("file%d.%d", step, n), true))
			}
			w.reload(p, file)
			maps.DeleteFunc(model, func(_ string, s clusterSeed) bool { return s.settings })
			for _, s := range slices.Backward(file) { // the first of a URL counts
				model[s.URL.String()] = clusterSeed{s.Tags[0], true}
			}
		case 5:
			if random.IntN(2) == 0 {
				p.kill()
			} else {
				p.leave()
			}
			w.seeds = file // it may have been read again meanwhile
			pair = slices.DeleteFunc(pair, func(q *process) bool { return q == p })
			pair = append(pair, w.start(fmt.Sprint("node", step+2), t.TempDir()))
		}
		for _, p := range pair {
			w.eventually(fmt.Sprintf("step %d: the seeds at %s", step, p.name), func() error {
				if got := seedsAt(p); !maps.Equal(got, model) {
					return fmt.Errorf("they are %v, want %v", got, model)
				}
				return nil
			})
		}
	}
	w.eventually("all seeds are requested", func() error {
		requested := make(map[string]bool)
		for _, page := range pages(web) {
			requested[page] = true
		}
		for u := range model {
			at, err := url.Parse(u)
			if err != nil || !requested[at.Hostname()+at.Path] {
				return fmt.Errorf("%s is not, of %v", u, requested)
			}
		}
		return nil
	})
}

// reload has the seeds of a file be those of the settings, as a node does that reads its own again.
func (w *world) reload(p *process, file []crawl.Seed) {
	w.eventually("the seeds are read again", func() error {
		_, err := clusterapi.ReloadSeeds(w.t.Context(), clusterapi.New(p.node, p.dir, time.Now),
			crawl.SeedWish{Add: file, Settings: true})
		return err
	})
}
