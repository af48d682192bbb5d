package shards

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/clusterapi"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// call sends a request to the API of a node and returns the response. While servers or nodes do not answer in
// time, it sends it again; a command it sends once, unless it is refused: then it may have been done in part, and
// what the next answer counts is only the rest.
func (p *process) call(method, path, body string) (status int, text string, trailer http.Header) {
	p.w.t.Helper()
	p.w.eventually(method+" "+path, func() error {
		if status, text, trailer = p.callOnce(method, path, body); status == http.StatusServiceUnavailable ||
			method == "GET" && strings.Contains(text, `"incomplete":`) {
			p.refused.CompareAndSwap(false, method != "GET")
			return errors.New(text)
		}
		return nil
	})
	return status, text, trailer
}

// callOnce sends a request and returns the response, whatever it is.
func (p *process) callOnce(method, path, body string) (status int, text string, trailer http.Header) {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(p.w.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+p.api.Address()+path, strings.NewReader(body))
	must.Do(p.w.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	must.Do(p.w.t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must.Do(p.w.t, err, method, path, "after", len(content), "bytes")
	return response.StatusCode, string(content), response.Trailer
}

// object is call for a response of one object.
func object[T any](p *process, method, path, body string) (value T) {
	p.w.t.Helper()
	status, text, _ := p.call(method, path, body)
	if err := json.Unmarshal([]byte(text), &value); status != http.StatusOK || err != nil {
		p.w.t.Fatalf("%s %s: %d %s, %v", method, path, status, text, err)
	}
	return value
}

// threeNodes starts three nodes with an API, and waits until each has a shard and all are crawled.
func threeNodes(w *world) []*process {
	w.t.Helper()
	w.api = true
	for i := range 3 {
		w.start(fmt.Sprintf("node%d", i), w.t.TempDir())
	}
	w.eventually("the nodes own all shards", func() error {
		sum := 0
		for _, p := range w.nodes {
			sum += len(p.owned())
		}
		if s := object[server.CrawlStatus](w.nodes[0], "GET", "/api/v1/status", ""); sum < shards ||
			s.Incomplete != nil {
			return fmt.Errorf("%d shards are owned, %+v", sum, s.Incomplete)
		}
		return nil
	})
	return w.nodes
}

// ownerOf returns the node that owns the shard of a host, and one that does not.
func (w *world) ownerOf(host string) (owner, other *process) {
	w.t.Helper()
	for _, p := range w.nodes {
		if slices.Contains(p.owned(), shardOf(host)) {
			owner = p
		} else {
			other = p
		}
	}
	must.True(w.t, owner != nil && other != nil, "%v", "nobody owns "+host)
	return owner, other
}

// TestAPI: any node answers for all shards.
func TestAPI(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, time.Millisecond, longTTL)
	nodes := threeNodes(w)
	w.crawled(want)

	t.Run("status", func(t *testing.T) { // the sums of all nodes, on each
		w.eventually("all pages are counted", func() error {
			for _, p := range nodes {
				s := object[server.CrawlStatus](p, "GET", "/api/v1/status", "")
				if s.Incomplete != nil || s.URLs["fetched"] != len(want) || s.Hosts != hosts || s.State != "running" {
					return fmt.Errorf("%s: %v, %d hosts, %s, %+v", p.name, s.URLs, s.Hosts, s.State, s.Incomplete)
				}
			}
			return nil
		})
	})
	t.Run("add", func(t *testing.T) { // lines are answered in their order, by whom they belong to
		var list strings.Builder
		for i := range 2 * hosts {
			fmt.Fprintln(&list, w.web.URL(host(i%hosts), "/added"))
		}
		fmt.Fprintln(&list, "no URL\nhttp://elsewhere.example/")
		_, text, _ := nodes[0].call("POST", "/api/v1/urls?each=true", list.String())
		reports := bufio.NewScanner(strings.NewReader(text))
		var last server.AddReport
		var answers []server.Answer
		for reports.Scan() {
			last = server.AddReport{}
			must.Do(t, json.Unmarshal(reports.Bytes(), &last))
			answers = append(answers, last.Answers...)
		}
		must.True(t, last.Done && last.Added.Added == hosts && last.Known == hosts && last.Bad == 1 &&
			last.Outside == 1 && len(answers) == 2*hosts+2, "%s", text)
		for i, a := range answers {
			assert.True(t, a.Line == i+1 && (i >= 2*hosts || a.Result == [...]string{"added", "known"}[i/hosts]),
				"answer %d: %+v", i, a)
		}
		known := object[inspect.URLStory](nodes[1], "GET", "/api/v1/url?url="+w.web.URL(host(3), "/added"), "")
		assert.Not(t, known.State, inspect.StateUnknown, known)
	})
	t.Run("hosts", func(t *testing.T) { // pages are those of one list
		for _, sort := range []string{"name", "waiting", "urls", "next", "found"} {
			whole := object[inspect.HostPage](nodes[0], "GET", "/api/v1/hosts?sort="+sort, "")
			must.True(t, len(whole.Hosts) == hosts && whole.Next == "" && (sort == "name" || whole.Matching == hosts),
				"%s: %+v", sort, whole)
			if sort != "name" {
				continue
			}
			var names []string
			for after, pages := "", 0; pages <= hosts; pages++ {
				page := object[inspect.HostPage](nodes[pages%3], "GET", "/api/v1/hosts?limit=3&sort="+sort+
					"&after="+after, "")
				for i := range page.Hosts {
					names = append(names, page.Hosts[i].Host)
				}
				if after = page.Next; after == "" {
					break
				}
			}
			assert.True(t, len(names) == hosts && slices.IsSorted(names) &&
				len(slices.Compact(slices.Clone(names))) == hosts, "by %s: %v", sort, names)
		}
	})
	t.Run("urls", func(t *testing.T) {
		seen := make(map[string]int)
		for from, pages := "", 0; pages < len(want); pages++ {
			page := object[inspect.URLPage](nodes[pages%3], "GET",
				"/api/v1/urls?limit=100&state=fetched&from="+from, "")
			for i := range page.URLs {
				seen[page.URLs[i].URL]++
			}
			if from = page.Next; from == "" {
				break
			}
		}
		_, lines, trailer := nodes[1].call("GET", "/api/v1/export?state=fetched", "")
		if len(seen) < len(want) || strings.Count(lines, "\n") != len(seen) || trailer.Get("Amble-Next") != "" {
			t.Errorf("%d URLs in pages, %d in the export", len(seen), strings.Count(lines, "\n"))
		}
		n := 0
		for from := ""; n <= len(seen); {
			_, lines, trailer := nodes[2].call("GET", "/api/v1/export?state=fetched&limit=150&from="+from, "")
			n += strings.Count(lines, "\n")
			if from = trailer.Get("Amble-Next"); from == "" {
				break
			}
		}
		assert.Equal(t, n, len(seen), "URLs in limited exports in all")
		_, lines, trailer = nodes[0].call("GET", "/api/v1/export/hosts", "")
		assert.True(t, strings.Count(lines, "\n") == hosts && trailer.Get("Amble-Matching") == fmt.Sprint(hosts),
			"%d hosts, %v", strings.Count(lines, "\n"), trailer)
	})
	t.Run("commands", func(t *testing.T) { // of a host, at its owner; of all, everywhere
		owner, other := w.ownerOf(host(2))
		if status, text, _ := other.call("POST", "/api/v1/hosts/"+host(2)+"/pause", ""); status != http.StatusOK {
			t.Fatal(text)
		}
		h := object[inspect.HostStory](owner, "GET", "/api/v1/hosts/"+host(2), "")
		assert.True(t, h.Politeness.Paused, "%+v", h.Politeness)
		if status, text, _ := other.call("POST", "/api/v1/hosts/unknown.test/pause",
			""); status != http.StatusNotFound {
			t.Error(status, text)
		}
		_, text, _ := other.call("POST", "/api/v1/urls/retry", `{"states":["denied"]}`)
		assert.True(t, strings.Contains(text, `"done":true`) &&
			(other.refused.Load() || strings.Contains(text, fmt.Sprintf(`"back":%d`, 3*hosts-1))), "%v", text)
		drop := func(body string) (dropped int) {
			_, text, _ := other.call("POST", "/api/v1/urls/drop", body)
			_, number, _ := strings.Cut(text[strings.LastIndex(text, `{"looked"`):], `"dropped":`)
			_, _ = fmt.Sscanf(number, "%d", &dropped)
			assert.Contains(t, text, `"done":true`)
			return dropped
		}
		n := drop(`{"states":["fetched"],"dry_run":true}`)
		assert.True(t, n >= hosts || other.refused.Load(), "%d pages of all hosts can be left out", n)
		chosen := []string{w.web.URL(host(3), "/added"), w.web.URL(host(4), "/added"), w.web.URL(host(5), "/added")}
		body := `{"urls":["` + strings.Join(chosen, `","`) + `"]}`
		if n := drop(body); n != len(chosen) && !other.refused.Load() {
			t.Errorf("%d of %d URLs are left out", n, len(chosen))
		}
		for i, u := range chosen {
			got := object[inspect.URLStory](nodes[i%len(nodes)], "GET", "/api/v1/url?url="+u, "")
			assert.True(t, got.State == storage.Excluded.String() &&
				got.Reason == inspect.ReasonName(storage.ReasonOperator), "a URL that was left out: %+v", got.URL)
		}
		if n := drop(body); n != 0 {
			t.Errorf("%d URLs are left out once more", n)
		}
		if status, text, _ := other.call("POST", "/api/v1/optouts",
			`{"scope":"domain","value":"ring5.test"}`); status != http.StatusOK {
			t.Error(text)
		}
		for _, p := range nodes {
			_, text, _ := p.call("GET", "/api/v1/optouts", "")
			assert.True(t, strings.Count(text, "ring5.test") == 1, "%s: %s", p.name, text)
		}
		added := object[crawl.SeedCounts](other, "POST", "/api/v1/seeds", `{"url":"http://new.test/","tags":["late"]}`)
		assert.True(t, added.Added == 1 || other.refused.Load(), "%+v", added)
		for _, p := range nodes {
			const row = `{"url":"http://new.test/","tags":["late"],"source":"command"}`
			w.eventually("the new seed is known at "+p.name, func() error {
				if _, text, _ := p.call("GET", "/api/v1/seeds", ""); !strings.Contains(text, row) {
					return errors.New(text)
				}
				return nil
			})
		}
		for _, want := range []int{http.StatusOK, http.StatusNotFound} {
			status, text, _ := other.call("DELETE", "/api/v1/seeds?url=http://new.test/", "")
			assert.True(t, status == want || other.refused.Load(), "%v %v", status, text)
		}
		d := object[struct {
			Deleted int
			Done    bool
		}](other, "POST", "/api/v1/urls/delete", `{"all":true}`)
		assert.True(t, (d.Deleted >= len(want) || other.refused.Load()) && d.Done, "%+v", d)
		w.eventually("no page is left", func() error {
			if s := object[server.CrawlStatus](other, "GET", "/api/v1/status", ""); s.URLs["fetched"] > 0 {
				return fmt.Errorf("%v", s.URLs)
			}
			return nil
		})
	})
	t.Run("audit", func(t *testing.T) { // the requests of all nodes
		_, lines, trailer := nodes[1].call("GET", "/api/v1/audit", "")
		requests := len(w.web.Requests())
		if n := strings.Count(lines, "\n"); n < requests || trailer.Get("Amble-Violations") != "0" ||
			trailer.Get("Amble-Damaged") != "0" || trailer.Get("Amble-Incomplete") != "" {
			t.Errorf("%d lines for %d requests, %v", n, requests, trailer)
		}
		_, lines, _ = nodes[2].call("GET", "/api/v1/audit?host="+host(2), "")
		n := strings.Count(lines, "\n")
		assert.True(t, n >= 2*depth && strings.Count(lines, host(2)) >= n, "%s", lines)
	})
	t.Run("cluster", func(t *testing.T) { // nodes, shards, metrics
		v := object[clusterapi.ClusterView](nodes[1], "GET", "/api/v1/cluster", "")
		assert.True(t, len(v.Nodes) == 3 && len(v.Shards) == shards && v.WithoutOwner == 0 && v.Here != nil &&
			v.Here.Node == "node1" && v.Here.Member && !(v.Here.Trust <= 0), "%+v, %+v", v, v.Here)
		records := uint64(0)
		for i, s := range v.Shards {
			if records += s.LogRecords; s.Shard != i || s.Owner == "" || s.Epoch == 0 {
				t.Errorf("%+v", s)
			}
		}
		assert.Not(t, records, 0, "the logs have no records")
		w.eventually("the metrics are whole", func() error { // the servers' part is absent while they do not answer
			_, text, _ := nodes[1].call("GET", "/metrics", "")
			for _, line := range []string{
				"amble_cluster_shards_without_owner 0\n", `amble_cluster_members{state="live"} 3`,
				"amble_cluster_trust_seconds ", "amble_cluster_refused_publishes_total 0\n",
				"amble_cluster_log_records ", "amble_cluster_connected 1\n",
				fmt.Sprintf("amble_cluster_shards_owned %d\n", len(nodes[1].owned())), `amble_urls{state="fetched"}`,
			} {
				if !strings.Contains(text, line) {
					return fmt.Errorf("%q is not in the metrics", line)
				}
			}
			return alertsIn(t, text)
		})
	})
	t.Run("refused", func(t *testing.T) {
		for _, q := range [][2]string{{"POST", "/api/v1/leases"}, {"GET", "/api/v1/backup"},
			{"POST", "/api/v1/crawl/drain"}} {
			status, text, _ := nodes[0].call(q[0], q[1], "")
			assert.True(t, status == http.StatusNotImplemented, "%v %v %v", q, status, text)
		}
		for _, path := range []string{"/api/v1/hosts?limit=0", "/api/v1/hosts?state=x", "/api/v1/hosts?after=x",
			"/api/v1/urls?from=x",
			"/api/v1/urls?from=99.1.1", "/api/v1/export?limit=-1", "/api/v1/url?url=", "/api/v1/robots?origin=x"} {
			status, text, _ := nodes[0].call("GET", path, "")
			assert.True(t, status == http.StatusUnprocessableEntity, "%v %v %v", path, status, text)
		}
	})
}

// TestHeavyPauseHolds: a pause reaches the shards of a node that is cut off too, when others take them over. The
// answer names the node.
func TestHeavyPauseHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Millisecond, shortTTL)
	threeNodes(w)
	victim := w.victim(nil)
	var other *process
	for _, p := range w.nodes {
		if p != victim {
			other = p
		}
	}
	lost := victim.owned()
	victim.proxy.Cut() // the command is there before its shards have other owners
	if p := object[server.CrawlStatus](other, "POST", "/api/v1/crawl/pause", ""); p.Incomplete == nil ||
		!slices.Contains(p.Incomplete.Nodes, victim.name) || len(p.Incomplete.Why) == 0 {
		t.Errorf("%+v, %s owned %v", p.Incomplete, victim.name, lost)
	}
	w.eventually("the shards have new owners", func() error {
		if s := object[server.CrawlStatus](other, "GET", "/api/v1/status", ""); s.Incomplete != nil ||
			s.State != "paused" || s.InFlight > 0 {
			return fmt.Errorf("%s, %+v", s.State, s.Incomplete)
		}
		return nil
	})
	before := len(w.web.Requests())
	victim.proxy.Mend()
	victim.takes(1)
	assert.Equal(t, len(w.web.Requests()), before, "requests while the crawl is paused")
	assert.Equal(t, object[server.CrawlStatus](victim, "POST", "/api/v1/crawl/resume", "").State, "running")
	w.crawled(ringPages())
}

// TestHeavyCommandsWait: an opt-out, a deletion and settings reach the shards of a node that is cut off too, when
// others take them over. The answers name what does not follow yet.
func TestHeavyCommandsWait(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, time.Millisecond, shortTTL)
	w.alter = func(o *Options) { o.Settings = new(delays).of(&o.Crawl) }
	nodes := threeNodes(w)
	w.crawled(want)
	for i, p := range nodes {
		p.node.engines.o.Settings.(*delays).node.Store(nodes[i].node)
	}
	victim := w.victim(nil)
	other := nodes[(slices.Index(nodes, victim)+1)%3]
	lost := slices.IndexFunc(want, func(page string) bool {
		h, _, deep := strings.Cut(page, "/own/")
		return deep && h != host(5) && slices.Contains(victim.owned(), shardOf(h))
	})
	victim.proxy.Cut()
	lostHost, path, _ := strings.Cut(want[lost], "/")
	d := crawl.Deletion{Host: lostHost, Before: time.Now().Add(time.Second)} // the whole crawl may take less
	must.Do(t, other.node.AddDeletion(t.Context(), d, []cluster.Shard{shardOf(lostHost)}))
	o := object[server.CrawlStatus](other, "POST", "/api/v1/optouts", `{"scope":"domain","value":"ring5.test"}`)
	assert.True(t, o.Incomplete != nil && slices.Contains(o.Incomplete.Nodes, victim.name), "an opt-out: %+v",
		o.Incomplete)
	sequence := must.Get(other.node.SetSettings(t.Context(), false,
		func([]byte) ([]byte, error) { return []byte(`{"delay":"7s"}`), nil }))(t)
	must.Do(t, other.node.WaitForDesired(t.Context(), sequence))
	w.eventually("the shards have new owners, and follow", func() error {
		if s := object[server.CrawlStatus](other, "GET", "/api/v1/status", ""); s.OptOuts != 1 {
			return fmt.Errorf("%d opt-outs", s.OptOuts)
		}
		u := object[inspect.URLStory](other, "GET", "/api/v1/url?url="+w.web.URL(lostHost, "/"+path), "")
		if again := requestsTo(w, want[lost]); u.Known && again < 2 {
			return fmt.Errorf("%s is known: %d requests", want[lost], again)
		}
		for i := range hosts {
			if h := object[inspect.HostStory](other, "GET", "/api/v1/hosts/"+host(i), ""); h.Politeness.Delay != 7 {
				return fmt.Errorf("%s: %+v", host(i), h.Politeness)
			}
		}
		if now, _, _ := other.node.engines.desired.latest(); len(now.Deletions) > 0 || len(now.OptOuts) != 1 {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
	_, text, _ := other.call("GET", "/api/v1/optouts", "")
	assert.True(t, strings.Count(text, "ring5.test") == 1, "%v", text)
	victim.proxy.Mend() // it has missed all of it
	w.eventually("the node follows when it is back", func() error {
		return victim.node.WaitForDesired(t.Context(), sequence)
	})
	victim.takes(1)
	const ring5 = "/api/v1/optouts?scope=domain&value=ring5.test"
	if status, text, _ := victim.call("DELETE", ring5, ""); status != http.StatusOK {
		t.Error(status, text)
	}
	if status, text, _ := other.call("DELETE", ring5, ""); status != http.StatusNotFound {
		t.Error(status, text)
	}
}

// requestsTo returns how often a page was requested.
func requestsTo(w *world, page string) (n int) {
	for _, q := range w.web.Requests().Pages() {
		if q.Host+q.Path == page {
			n++
		}
	}
	return n
}

// delays are settings with a delay.
type delays struct {
	options crawl.Options
	node    atomic.Pointer[Node]
}

func (d *delays) of(o *crawl.Options) *delays {
	d.options = *o
	return d
}

// Apply implements Settings.
func (d *delays) Apply(ctx context.Context, shared map[string]any, patch []byte) (err error) {
	var to struct{ Delay string }
	to.Delay, _ = shared["politeness.delay"].(string)
	live := d.options.Live()
	if len(patch) > 0 {
		err = json.Unmarshal(patch, &to)
	}
	if err == nil {
		live.Politeness.Delay, err = time.ParseDuration(to.Delay)
	}
	if err != nil {
		return err
	}
	return d.node.Load().Change(ctx, live)
}

// Shared implements Settings.
func (d *delays) Shared() map[string]any {
	return map[string]any{"politeness.delay": d.options.Frontier.Politeness.Delay.String()}
}

// TestSharedPoliteness: a node whose file has a shorter delay than the cluster keeps that of the cluster, and says
// so; the servers see no gap that is shorter.
func TestSharedPoliteness(t *testing.T) {
	t.Parallel()
	const delay = 30 * time.Millisecond
	w := newWorld(t, delay, shortTTL)
	w.alter = func(o *Options) {
		if len(w.nodes) > 0 {
			o.Crawl.Frontier.Politeness.Delay = time.Millisecond
		}
		o.Settings = new(delays).of(&o.Crawl)
	}
	threeNodes(w)
	want := ringPages()
	w.crawled(want)
	for i, p := range w.nodes {
		var followed []string
		err := untilUp(t.Context(), func() (err error) {
			followed, err = p.node.Agree(t.Context())
			return err
		})
		assert.True(t, err == nil && (len(followed) > 0) == (i > 0), "node %d follows in %q: %v", i, followed, err)
	}
	js := w.erases().js
	w.eventually("the nodes say so", func() error {
		s, err := membership.ReadSurvey(t.Context(), js, names)
		if err != nil {
			return err
		}
		for i, m := range s.Members {
			says := slices.ContainsFunc(m.Notes, func(n string) bool { return strings.Contains(n, "politeness.delay") })
			if says != (i > 0) {
				return fmt.Errorf("%s says %q", m.Node, m.Notes)
			}
		}
		return nil
	})
	w.leaveRest()
	w.check(want) // the delay of each host
}

// alertsIn returns which series of an alert of docs/CLUSTER.md is not in the metrics of a node.
func alertsIn(t *testing.T, metrics string) error {
	t.Helper()
	page := must.Get(os.ReadFile("../../../docs/CLUSTER.md"))(t)
	_, alerts, _ := strings.Cut(string(page), "\n## Alerts\n")
	alerts, _, _ = strings.Cut(alerts, "\n## ")
	found := regexp.MustCompile(`amble_[a-z_]+(\{[^}]*\})?`).FindAllString(alerts, -1)
	must.True(t, len(found) >= 9, "only %d series were found", len(found))
	for _, series := range found {
		if !strings.Contains(metrics, "\n"+series+" ") && !strings.Contains(metrics, "\n"+series+"{") {
			return fmt.Errorf("%s is not in the metrics", series)
		}
	}
	return nil
}
