package shards

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
)

// TestHeavyImportWhileNodesDie: a node dies while it takes a list of URLs of all shards. Those that it has answered
// for are requested. The same list, sent to another node, adds what is missing, and then nothing any more.
func TestHeavyImportWhileNodesDie(t *testing.T) {
	t.Parallel()
	const each = 100
	g := newGrowing(hosts, 1)
	g.ended = true // it has only what is imported
	web := serve(t, g.sites)
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), time.Millisecond, shortTTL)
	nodes := threeNodes(w)
	var list []string
	for i := range each {
		for _, host := range web.Sites() {
			list = append(list, fmt.Sprintf("%s/added/%d", host, i))
		}
	}
	answered := nodes[0].importUntilDeath(list)
	t.Logf("%d of %d URLs had an answer from the node that died", len(answered), len(list))
	w.eventually("the acknowledged URLs", func() error { return w.haveRequested(answered) })

	for try := range 2 {
		report := lastReport(t, nodes[1], w.urls(list))
		assert.True(t, report.Added.Added+report.Known == len(list) && report.Bad+report.Outside <= 0, "%+v", report)
		added := len(list) - len(answered)
		assert.True(t, (try != 0 || report.Added.Added <= added) && (try != 1 || report.Added.Added <= 0),
			"%d URLs are added by list %d, %d were not acknowledged", report.Added.Added, try+2, added)
	}
	w.eventually("all URLs", func() error { return w.haveRequested(list) })
	log := web.Requests()
	repeats := log.Repeats()
	w.eventually("pages requested twice were lost by a node", func() error { // one that stalls says so later
		for _, page := range list {
			_, path, _ := strings.Cut(page, "/")
			if repeats[page] > 1 && !slices.ContainsFunc(log.Path("/"+path), w.losses.isLost) {
				return fmt.Errorf("%s was requested %d times", page, repeats[page])
			}
		}
		return nil
	})
}

// importUntilDeath sends pages to a node: half of them, and when these have an answer, the others. The node
// dies while it adds those. It returns the pages with an answer.
func (p *process) importUntilDeath(list []string) (answered []string) {
	t := p.w.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body, lines := io.Pipe()
	send := func(list []string) { // the list does not end, so its part is added after a pause
		_, _ = io.WriteString(lines, p.w.urls(list)) // the node may be dead
	}
	go send(list[:len(list)/2])
	r := must.Get(http.NewRequestWithContext(ctx, "POST", "http://"+p.api.Address()+"/api/v1/urls?each=true", body))(t)
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	response := must.Get(transport.RoundTrip(r))(t)
	defer response.Body.Close()
	defer body.Close()
	reports, dies := bufio.NewScanner(response.Body), false
	reports.Buffer(nil, 16<<20)
	for reports.Scan() {
		var report server.AddReport
		if json.Unmarshal(reports.Bytes(), &report) != nil {
			break // it is cut
		}
		for _, a := range report.Answers {
			if a.Result == "added" || a.Result == "known" {
				answered = append(answered, list[a.Line-1])
			}
		}
		if !dies && len(answered) >= len(list)/2 {
			dies = true
			go func() {
				send(list[len(list)/2:])
				time.Sleep(time.Second + time.Duration(rand.IntN(150))*time.Millisecond) // anywhere in the commit
				p.proxy.Cut()
				p.cancel()
			}()
		}
	}
	p.kill()
	must.True(t, len(answered) >= len(list)/2, "%d URLs had an answer", len(answered))
	return answered
}

// urls returns the URLs of pages, one a line.
func (w *world) urls(pages []string) string {
	var all strings.Builder
	for _, page := range pages {
		host, path, _ := strings.Cut(page, "/")
		fmt.Fprintln(&all, w.web.URL(host, "/"+path))
	}
	return all.String()
}

// haveRequested returns nil if all pages were requested.
func (w *world) haveRequested(want []string) error {
	got := pages(w.web)
	for i, page := range want {
		if _, found := slices.BinarySearch(got, page); !found {
			return fmt.Errorf("%s, number %d, is missing", page, i)
		}
	}
	return nil
}

// lastReport sends a list to a node until it is taken to its end, and returns the last report.
func lastReport(t *testing.T, p *process, list string) (last server.AddReport) {
	t.Helper()
	p.w.eventually("the list is taken", func() error {
		status, text, _ := p.call("POST", "/api/v1/urls", list)
		last = server.AddReport{}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		err := json.Unmarshal([]byte(lines[len(lines)-1]), &last)
		must.True(t, status == http.StatusOK && err == nil, "%d %s, %v", status, text, err)
		if !last.Done {
			return errors.New(last.Error)
		}
		return nil
	})
	return last
}
