package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
)

// rule answers an operation about the whole crawl on a node of a cluster.
type rule func(s *Server, w http.ResponseWriter, r *http.Request)

// rules returns what the operations do on a node of a cluster, by their ids. An operation without a rule
// answers for the cluster by itself, or for this node.
func rules() map[string]rule {
	byPath := byHost(func(r *http.Request, _ []byte) (string, error) { return r.PathValue("host"), nil })
	return map[string]rule{
		"crawl-pause":   func(s *Server, w http.ResponseWriter, r *http.Request) { s.pauseAll(w, r, true) },
		"crawl-resume":  func(s *Server, w http.ResponseWriter, r *http.Request) { s.pauseAll(w, r, false) },
		"crawl-drain":   refusedWith("a cluster has no end yet: pause it, or stop its nodes with SIGTERM"),
		"crawl-stop":    refusedWith("this would stop one node of a cluster: send SIGTERM to the process"),
		"crawl-history": (*Server).historyOfAll,

		"hosts-list": (*Server).listAllHosts, "hosts-one": byPath,
		"hosts-pause": byPath, "hosts-resume": byPath, "hosts-delay": byPath, "hosts-forget": byPath, "hosts-drop": byPath,

		"urls-list":   (*Server).listAllURLs,
		"urls-one":    byHost(byURL("url")),
		"urls-delete": (*Server).deleteFromAll, "urls-retry": (*Server).retryAll,
		"robots-text": byHost(byURL("origin")), "robots-check": (*Server).checkAllRobots,

		"export-urls": (*Server).exportAllURLs, "export-hosts": (*Server).exportAllHosts,
		"plan-show": (*Server).planAll,

		"optouts-list": (*Server).listAllOptOuts,

		"backup": refusedWith("a cluster has no single database: its shards keep snapshots on the NATS servers"),
		"audit":  (*Server).auditAll,

		"leases-take": noFetchers(), "leases-extend": noFetchers(), "leases-extend-all": noFetchers(),
		"check-urls": noFetchers(), "leases-report": noFetchers(), "leases-report-all": noFetchers(),
		"fetchers-list": noFetchers(), "fetchers-cut-off": noFetchers(), "fetchers-admit": noFetchers(),
	}
}

// noFetchers refuses what is for fetchers outside of amble.
func noFetchers() rule {
	return refusedWith("remote fetchers cannot be used in a cluster yet: its nodes fetch all pages")
}

// refusedWith refuses an operation that a cluster does not have.
func refusedWith(why string) rule {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusNotImplemented, why)
	}
}

// readBody reads the body of a request that is not a list.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, huma.NewError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody))
	case err != nil:
		return nil, errQuery{fmt.Errorf("read the body: %w", err)}
	case len(body) == 0:
		return nil, nil
	}
	return body, nil
}

// byURL finds the host of a URL in the query.
func byURL(name string) func(*http.Request, []byte) (string, error) {
	return func(r *http.Request, _ []byte) (string, error) {
		u, err := weburl.Parse(r.URL.Query().Get(name))
		if err != nil {
			return "", errQuery{fmt.Errorf("%s: %w", name, err)}
		}
		return u.Host(), nil
	}
}

// byHost passes an operation about a host on to the owner of its shard.
func byHost(hostOf func(r *http.Request, body []byte) (string, error)) rule {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r)
		var host string
		if err == nil {
			host, err = hostOf(r, body)
		}
		if err != nil {
			writeError(w, err)
			return
		}
		s.passOn(w, r, s.shardOf(host), partOf(r, body))
	}
}

// passOn answers with the response of a shard.
func (s *Server) passOn(w http.ResponseWriter, r *http.Request, shard cluster.Shard, p part) {
	limit := commandTimeout
	if r.Method == http.MethodGet {
		limit = 2 * answerTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	response, err := s.toShard(ctx, shard, &p)
	if err != nil {
		writeError(w, err)
		return
	}
	defer response.Body.Close()
	t := s.newStream(w, r)
	t.kind = response.Header.Get("Content-Type")
	_, err = io.Copy(t, response.Body)
	t.end(err)
}

// hostOfBody returns the host in a body, or nothing.
func hostOfBody(body []byte) string {
	var of struct{ Host string }
	if json.Unmarshal(body, &of) != nil { // the shard says what is wrong
		return ""
	}
	return of.Host
}

// pauseAll pauses all shards, or resumes them, and waits until all nodes do so.
func (s *Server) pauseAll(w http.ResponseWriter, r *http.Request, paused bool) {
	ctx, cancel := context.WithTimeout(r.Context(), commandTimeout)
	defer cancel()
	sequence, err := s.o.Cluster.SetPaused(ctx, paused)
	if err != nil {
		writeError(w, err)
		return
	}
	lacking := s.awaitNodes(ctx, sequence)
	writeObject(w, crawlState{State: s.clusterStatus(ctx).State, Incomplete: lacking}, nil)
}

// awaitNodes waits until all nodes have the desired state with a sequence, and says which do not yet.
func (s *Server) awaitNodes(ctx context.Context, sequence uint64) *Incomplete {
	_, failed, wrong := fromNodes[struct{}](ctx, s, desiredTimeout,
		part{method: http.MethodGet, url: pathOf("/desired/" + strconv.FormatUint(sequence, 10))})
	switch {
	case wrong != nil:
		return &Incomplete{Shards: []int{}, Why: []string{wrong.Error()}}
	case len(failed) > 0:
		return s.unknown(s.ownedBy(failed), failed)
	}
	return nil
}

// desiredTimeout is how long nodes may take to follow a command before the response says so.
const desiredTimeout = 5 * time.Second

// ownedBy returns the shards of nodes other than some.
func (s *Server) ownedBy(but map[string]error) map[int]bool {
	others := make(map[int]bool)
	for shard, st := range s.o.Cluster.Status().Shards {
		if _, failed := but[st.Owner]; !failed {
			others[shard] = true // one that nobody owns follows when it has an owner
		}
	}
	return others
}

// deleteFromAll deletes URLs of a host, or of all. Shards that do not answer do it when they can.
func (s *Server) deleteFromAll(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	o := crawl.Deletion{Before: s.o.Now()}
	shards := s.allShards()
	if host := hostOfBody(body); host != "" {
		o.Host = inspect.CanonicalHost(host)
		shards = []cluster.Shard{s.shardOf(host)}
	}
	var wanted struct{ Before time.Time }
	if json.Unmarshal(body, &wanted) == nil && !wanted.Before.IsZero() && wanted.Before.Before(o.Before) {
		o.Before = wanted.Before
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandTimeout)
	defer cancel()
	p := partOf(r, body)
	parts, failed, err := gather(ctx, shards, func(ctx context.Context, shard cluster.Shard) (deleted, error) {
		return decode[deleted](s.toShard(ctx, shard, &p))
	})
	sum := deleted{Done: len(failed) == 0, Incomplete: missing(failed)}
	for _, d := range parts {
		sum.Deleted, sum.Done = sum.Deleted+d.Deleted, sum.Done && d.Done
	}
	if err == nil && len(failed) > 0 {
		late := keysOf(failed)
		slices.Sort(late)
		if err = s.o.Cluster.AddDeletion(r.Context(), o, late); err != nil {
			err = wholly(sum.Incomplete, nil)
		}
	}
	writeObject(w, sum, err)
}

// wholly is the error of a command that has to reach all shards.
func wholly(lacking *Incomplete, err error) error {
	if err == nil && lacking != nil {
		return fmt.Errorf("the command was carried out where it could be; give it again: %w", lacking)
	}
	return err
}

// listAllOptOuts lists the opt-outs of all shards. All have the same, unless a command has not reached
// one.
func (s *Server) listAllOptOuts(w http.ResponseWriter, r *http.Request) {
	all, err := s.optOutsOfAll(r.Context(), partOf(r, nil))
	writeObject(w, all, err)
}

func (s *Server) optOutsOfAll(ctx context.Context, p part) (optOutList, error) {
	parts, lacking, err := fromShards[optOutList](ctx, s, answerTimeout, p)
	all := optOutList{Incomplete: lacking, OptOuts: []crawl.OptOut{}}
	known := make(map[[2]string]bool)
	for _, shard := range s.allShards() {
		for _, o := range parts[shard].OptOuts {
			if key := [2]string{string(o.Scope), o.Value}; !known[key] {
				known[key] = true
				all.OptOuts = append(all.OptOuts, o)
			}
		}
	}
	return all, err
}

// checkAllRobots has each shard check its URLs.
func (s *Server) checkAllRobots(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	byShard := make(map[cluster.Shard]url.Values)
	shards := make([]cluster.Shard, 0, len(query["url"]))
	for _, text := range query["url"] {
		shard := cluster.Shard(0) // which says what is wrong
		if u, err := weburl.Parse(text); err == nil {
			shard = s.shardOf(u.Host())
		}
		if byShard[shard] == nil {
			byShard[shard] = url.Values{}
		}
		byShard[shard].Add("url", text)
		shards = append(shards, shard)
	}
	if len(shards) == 0 {
		s.passOn(w, r, 0, partOf(r, nil))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	check := func(ctx context.Context, shard cluster.Shard) (robotsChecks, error) {
		p := read("/robots/check", byShard[shard])
		return decode[robotsChecks](s.toShard(ctx, shard, &p))
	}
	parts, failed, err := gather(ctx, keysOf(byShard), check)
	all := robotsChecks{URLs: []inspect.Checked{}}
	if lacking := missing(failed); err == nil && lacking != nil {
		err = lacking
	}
	for _, shard := range shards {
		if part := parts[shard]; err == nil && len(part.URLs) > 0 {
			all.URLs = append(all.URLs, part.URLs[0])
			part.URLs = part.URLs[1:]
			parts[shard] = part
		}
	}
	writeObject(w, all, err)
}

func keysOf[K comparable, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}
