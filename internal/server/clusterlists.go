package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
)

// hostsOfAll is a page of the hosts of all shards.
type hostsOfAll struct {
	inspect.HostPage
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// hostCursor says where a list of the hosts of all shards goes on.
type hostCursor map[cluster.Shard]string // after of each shard that has more

func (c hostCursor) String() string {
	if len(c) == 0 {
		return ""
	}
	text, _ := json.Marshal(c) // numbers and texts
	return base64.RawURLEncoding.EncodeToString(text)
}

// maxCursor bounds the text of a cursor, in bytes.
const maxCursor = 24 << 10

// parseHostCursor is the inverse of String. Without a text, the list begins in all shards.
func parseHostCursor(text string, shards []cluster.Shard) (hostCursor, error) {
	c := make(hostCursor)
	if text == "" {
		for _, shard := range shards {
			c[shard] = ""
		}
		return c, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &c)
	}
	for shard := range c {
		if shard < 0 || int(shard) >= len(shards) {
			err = errors.New("there is no such shard")
		}
	}
	if err == nil && len(text) > maxCursor {
		err = fmt.Errorf("it has more than %d bytes", maxCursor)
	}
	if err != nil {
		return nil, errQuery{fmt.Errorf("after: this is not the next of a page of hosts: %w", err)}
	}
	return c, nil
}

// compareHosts compares hosts as a list is sorted; nil: as each shard has found them.
func compareHosts(sort string) func(a, b *inspect.Host) int {
	most := func(f func(*inspect.Host) float64) func(a, b *inspect.Host) int {
		return func(a, b *inspect.Host) int { return cmp.Compare(f(b), f(a)) }
	}
	switch sort {
	case "waiting":
		return most(func(h *inspect.Host) float64 { return float64(h.Waiting) })
	case "urls":
		return most(func(h *inspect.Host) float64 { return float64(h.Known) })
	case "requests":
		return most(func(h *inspect.Host) float64 { return float64(h.Requests) })
	case "bytes":
		return most(func(h *inspect.Host) float64 { return float64(h.Bytes) })
	case "delay":
		return most(func(h *inspect.Host) float64 { return h.Delay })
	case "finish":
		return most(func(h *inspect.Host) float64 { return h.Finish })
	case "name":
		return func(a, b *inspect.Host) int {
			return strings.Compare(weburl.ReverseHost(a.Host), weburl.ReverseHost(b.Host))
		}
	case "next":
		return func(a, b *inspect.Host) int {
			if done := a.Waiting == 0; done != (b.Waiting == 0) {
				if done {
					return 1
				}
				return -1
			}
			return a.Next.Compare(b.Next)
		}
	}
	return nil
}

// listAllHosts answers a page of the hosts of all shards: the first ones of the pages of the shards.
func (s *Server) listAllHosts(w http.ResponseWriter, r *http.Request) {
	page, err := s.pageOfHosts(r.Context(), r.URL.Query())
	writeObject(w, page, err)
}

func (s *Server) pageOfHosts(ctx context.Context, query url.Values) (all hostsOfAll, err error) {
	limit, sort := 50, query.Get("sort")
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return all, errQuery{fmt.Errorf("limit is %q: want 1 to %d", text, maxPage)}
		}
	}
	if sort == "" {
		sort = "waiting"
		if query.Get("under") != "" || query.Get("contains") != "" {
			sort = "name"
		}
	}
	from, err := parseHostCursor(query.Get("after"), s.allShards())
	if err != nil {
		return all, err
	}
	pages, failed, err := s.pagesOfHosts(ctx, query, from, func(cluster.Shard) int { return limit })
	if err != nil {
		return all, err
	}
	taken := all.merge(pages, compareHosts(sort), limit)
	all.Incomplete = missing(failed)
	next := make(hostCursor)
	partly := make(hostCursor) // shards whose page is on this one in part
	for shard, page := range pages {
		switch n := taken[shard]; {
		case n == len(page.Hosts):
			if page.Next != "" {
				next[shard] = page.Next
			}
		case n == 0 && hasPages(sort):
			next[shard] = from[shard]
		case n > 0 && hasPages(sort):
			partly[shard] = from[shard]
		}
	}
	again, failed, err := s.pagesOfHosts(ctx, query, partly, func(shard cluster.Shard) int { return taken[shard] })
	for shard, page := range again {
		if page.Next != "" {
			next[shard] = page.Next
		}
	}
	if lacking := missing(failed); err == nil && lacking != nil {
		err = lacking // the page would leave out hosts
	}
	all.Next = next.String()
	return all, err
}

// hasPages reports whether lists in an order have more than one page.
func hasPages(sort string) bool {
	return !slices.Contains([]string{"urls", "requests", "bytes", "found"}, sort)
}

// pagesOfHosts reads a page of each shard in a cursor.
func (s *Server) pagesOfHosts(ctx context.Context, query url.Values, from hostCursor, limit func(cluster.Shard) int) (
	map[cluster.Shard]inspect.HostPage, map[cluster.Shard]error, error,
) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return gather(ctx, keysOf(from), func(ctx context.Context, shard cluster.Shard) (inspect.HostPage, error) {
		one := make(url.Values, len(query))
		for name, values := range query {
			one[name] = values
		}
		one.Set("limit", strconv.Itoa(limit(shard)))
		if one.Del("after"); from[shard] != "" {
			one.Set("after", from[shard])
		}
		p := read("/hosts", one)
		return decode[inspect.HostPage](s.toShard(ctx, shard, &p))
	})
}

// merge takes the first hosts of pages, and returns how many of each.
func (all *hostsOfAll) merge(pages map[cluster.Shard]inspect.HostPage, compare func(a, b *inspect.Host) int,
	limit int) (taken map[cluster.Shard]int) {
	taken = make(map[cluster.Shard]int)
	shards := keysOf(pages)
	slices.Sort(shards)
	all.Hosts = []inspect.Host{}
	for _, shard := range shards {
		if n := pages[shard].Matching; n < 0 || all.Matching < 0 {
			all.Matching = -1
		} else {
			all.Matching += n
		}
	}
	for len(all.Hosts) < limit {
		first := -1
		for i, shard := range shards {
			if taken[shard] == len(pages[shard].Hosts) {
				continue
			}
			if first < 0 || compare != nil &&
				compare(&pages[shard].Hosts[taken[shard]], &pages[shards[first]].Hosts[taken[shards[first]]]) < 0 {
				first = i
			}
		}
		if first < 0 {
			break
		}
		shard := shards[first]
		all.Hosts = append(all.Hosts, pages[shard].Hosts[taken[shard]])
		taken[shard]++
	}
	return taken
}

// urlsOfAll is a page of the URLs of all shards.
type urlsOfAll struct {
	inspect.URLPage
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// describePositions describes that positions in the URLs of all shards begin with a shard.
func describePositions(o *huma.OpenAPI) {
	for _, name := range []string{"/urls", "/export"} {
		for _, p := range o.Paths[basePath+name].Get.Parameters {
			if p.Name == "from" {
				p.Schema.Pattern = "^(([0-9]{1,5}[.])?[1-3]?[0-9]{1,9}[.][1-3]?[0-9]{1,9})?$"
				p.Schema.PrecomputeMessages()
			}
		}
	}
}

// splitPosition splits a position in the URLs of all shards: SHARD.QUEUE.ORDINAL.
func (s *Server) splitPosition(text string) (shard int, from string, err error) {
	if text == "" {
		return 0, "", nil
	}
	number, from, _ := strings.Cut(text, ".")
	shard, err = strconv.Atoi(number)
	if err != nil || shard < 0 || shard >= s.shards() || strings.Count(from, ".") != 1 {
		return 0, "", errQuery{fmt.Errorf("from: %q is not the next of a page of URLs", text)}
	}
	return shard, from, nil
}

// listAllURLs answers a page of URLs, shard by shard.
func (s *Server) listAllURLs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if host := query.Get("host"); host != "" {
		s.passOn(w, r, s.shardOf(host), partOf(r, nil))
		return
	}
	page, err := s.pageOfURLs(r.Context(), query)
	writeObject(w, page, err)
}

func (s *Server) pageOfURLs(ctx context.Context, query url.Values) (all urlsOfAll, err error) {
	limit := 100
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 1000 {
			return all, errQuery{fmt.Errorf("limit is %q: want 1 to 1000", text)}
		}
	}
	shard, from, err := s.splitPosition(query.Get("from"))
	if err != nil {
		return all, err
	}
	all.URLs = []inspect.URL{}
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	for ; shard < s.shards() && len(all.URLs) < limit; shard, from = shard+1, "" {
		query.Set("limit", strconv.Itoa(limit-len(all.URLs)))
		if query.Del("from"); from != "" {
			query.Set("from", from)
		}
		p := read("/urls", query)
		one, stop := context.WithTimeout(ctx, answerTimeout)
		page, err := decode[inspect.URLPage](s.toShard(one, cluster.Shard(shard), &p))
		stop()
		switch {
		case isWrong(err):
			return all, err
		case err != nil:
			all.Incomplete = missing(map[cluster.Shard]error{cluster.Shard(shard): err})
			all.Next = s.positionIn(shard+1, "")
			return all, nil
		}
		all.URLs = append(all.URLs, page.URLs...)
		if page.Next != "" {
			all.Next = s.positionIn(shard, page.Next)
			return all, nil
		}
	}
	all.Next = s.positionIn(shard, "")
	return all, nil
}

// positionIn returns a position in the URLs of all shards; empty: it is their end.
func (s *Server) positionIn(shard int, next string) string {
	if shard >= s.shards() {
		return ""
	}
	return strconv.Itoa(shard) + "." + cmp.Or(next, "0.0")
}

// exportAllURLs writes the URLs of all shards, one shard after the other.
func (s *Server) exportAllURLs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	shard, from, err := s.splitPosition(query.Get("from"))
	shards := s.allShards()
	if host := query.Get("host"); host != "" {
		shards, from, err = []cluster.Shard{s.shardOf(host)}, query.Get("from"), nil
	} else if err == nil {
		shards = shards[shard:]
	}
	if err != nil {
		writeError(w, err)
		return
	}
	t := s.newStream(w, r)
	w.Header().Set("Trailer", trailerNext)
	t.end(s.export(r.Context(), t, "/export", query, shards, from, func(shard cluster.Shard, trailer http.Header) bool {
		next := trailer.Get(trailerNext)
		if next != "" && query.Get("host") == "" {
			next = s.positionIn(int(shard), next)
		}
		if next != "" {
			w.Header().Set(trailerNext, next)
		}
		return next == ""
	}))
}

// exportAllHosts writes the hosts of all shards, one shard after the other.
func (s *Server) exportAllHosts(w http.ResponseWriter, r *http.Request) {
	t := s.newStream(w, r)
	w.Header().Set("Trailer", trailerMatching)
	matching := 0
	t.end(s.export(r.Context(), t, "/export/hosts", r.URL.Query(), s.allShards(), "",
		func(_ cluster.Shard, trailer http.Header) bool {
			n, _ := strconv.Atoi(trailer.Get(trailerMatching)) // a shard that has not counted has none
			matching += n
			w.Header().Set(trailerMatching, strconv.Itoa(matching))
			return true
		}))
}

// export writes lines of shards, at most as many as the query allows. It begins in the first shard at from.
// ended gets the trailer of each, and reports whether the next one follows. If a shard does not answer
// the response is broken off.
func (s *Server) export(ctx context.Context, t *stream, path string, query url.Values, shards []cluster.Shard,
	from string, ended func(cluster.Shard, http.Header) bool) error {
	left, err := 0, error(nil)
	if text := query.Get("limit"); text != "" {
		if left, err = strconv.Atoi(text); err != nil || left < 0 {
			return errQuery{fmt.Errorf("limit is %q: want a number, or 0 for all", text)}
		}
	}
	limited := left > 0
	for i, shard := range shards {
		if query.Del("from"); from != "" && i == 0 {
			query.Set("from", from)
		}
		if query.Del("limit"); limited {
			query.Set("limit", strconv.Itoa(left))
		}
		p := read(path, query)
		response, err := s.toShard(ctx, shard, &p)
		if err != nil {
			return err
		}
		lines, err := copyLines(t, response.Body)
		_ = response.Body.Close() // it was read to its end, or is broken
		if err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
		if !ended(shard, response.Trailer) {
			return nil
		}
		if left -= lines; limited && left <= 0 {
			if i+1 < len(shards) && path == "/export" {
				t.w.Header().Set(trailerNext, s.positionIn(int(shards[i+1]), ""))
			}
			return nil
		}
	}
	return nil
}

// copyLines copies lines and counts them.
func copyLines(t *stream, from io.Reader) (lines int, err error) {
	buffered := bufio.NewReaderSize(from, streamBuffer)
	for {
		line, err := buffered.ReadSlice('\n')
		if len(line) > 0 && line[len(line)-1] == '\n' {
			lines++
		}
		if _, wrong := t.buffer.Write(line); wrong != nil {
			return lines, wrong
		}
		switch {
		case err == io.EOF:
			return lines, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return lines, err
		}
	}
}
