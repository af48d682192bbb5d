package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// hostsOfAll is a page of the hosts of all shards.
type hostsOfAll struct {
	inspect.HostPage
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// hostCursor says where a list of the hosts of all shards goes on.
type hostCursor map[int]string // after of each shard that has more

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
func parseHostCursor(text string, shards []int) (hostCursor, error) {
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
	case "failures":
		return most(func(h *inspect.Host) float64 { return h.FailureShare })
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

// hostsOf answers a page of the hosts of all shards: the first ones of the pages of the shards.
func hostsOf(ctx context.Context, d Division, q *hostsQuery) (all hostsOfAll, err error) {
	limit, sort := q.Limit, q.Sort
	from, err := parseHostCursor(q.After, allShards(d))
	if err != nil {
		return all, err
	}
	pages, failed, err := pagesOfHosts(ctx, d, from, func(int) int { return limit })
	if err != nil {
		return all, err
	}
	taken := all.merge(pages, compareHosts(sort), limit)
	all.Incomplete = MissingShards(failed)
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
	again, failed, err := pagesOfHosts(ctx, d, partly, func(shard int) int { return taken[shard] })
	for shard, page := range again {
		if page.Next != "" {
			next[shard] = page.Next
		}
	}
	if lacking := MissingShards(failed); err == nil && lacking != nil {
		err = lacking // the page would leave out hosts
	}
	all.Next = next.String()
	return all, err
}

// hasPages reports whether lists in an order have more than one page.
func hasPages(sort string) bool {
	return !slices.Contains([]string{"urls", "requests", "bytes", "failures", "found"}, sort)
}

// pagesOfHosts reads a page of each shard in a cursor.
func pagesOfHosts(ctx context.Context, d Division, from hostCursor, limit func(int) int) (
	map[int]inspect.HostPage, map[int]error, error,
) {
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	return Gather(ctx, SortedKeys(from), func(ctx context.Context, shard int) (inspect.HostPage, error) {
		r := asked(ctx)
		r.with(only(r.URL.Query(), map[string]string{"limit": strconv.Itoa(limit(shard)), "after": from[shard]}))
		return decode[inspect.HostPage](AskShard(ctx, d, shard, r))
	})
}

// merge takes the first hosts of pages, and returns how many of each.
func (all *hostsOfAll) merge(pages map[int]inspect.HostPage, compare func(a, b *inspect.Host) int,
	limit int) (taken map[int]int) {
	taken = make(map[int]int)
	shards := SortedKeys(pages)
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
		for _, p := range o.Paths[BasePath+name].Get.Parameters {
			if p.Name == "from" {
				p.Schema.Pattern = "^(([0-9]{1,5}[.])?[1-3]?[0-9]{1,9}[.][1-3]?[0-9]{1,9})?$"
				p.Schema.PrecomputeMessages()
			}
		}
	}
}

// splitPosition splits a position in the URLs of all shards: SHARD.QUEUE.ORDINAL.
func splitPosition(d Division, text string) (shard int, from string, err error) {
	if text == "" {
		return 0, "", nil
	}
	number, from, _ := strings.Cut(text, ".")
	shard, err = strconv.Atoi(number)
	if err != nil || shard < 0 || shard >= d.Shards() || strings.Count(from, ".") != 1 {
		return 0, "", errQuery{fmt.Errorf("from: %q is not the next of a page of URLs", text)}
	}
	return shard, from, nil
}

// positionIn returns a position in the URLs of all shards; empty: it is their end.
func positionIn(d Division, shard int, next string) string {
	if shard >= d.Shards() {
		return ""
	}
	return strconv.Itoa(shard) + "." + cmp.Or(next, "0.0")
}

// urlsOf answers a page of the URLs of all shards, shard by shard.
func urlsOf(ctx context.Context, d Division, q *urlsQuery) (all urlsOfAll, err error) {
	shard, from, err := splitPosition(d, q.From)
	if err != nil {
		return all, err
	}
	all.URLs = []inspect.URL{}
	ctx, cancel := context.WithTimeout(ctx, 2*AnswerTimeout)
	defer cancel()
	for ; shard < d.Shards() && len(all.URLs) < q.Limit; shard, from = shard+1, "" {
		page, err := pageOfURLs(ctx, d, shard, from, q.Limit-len(all.URLs))
		switch {
		case IsWrong(err):
			return all, err
		case err != nil:
			all.Incomplete = MissingShards(map[int]error{shard: err})
			all.Next = positionIn(d, shard+1, "")
			return all, nil
		}
		all.URLs = append(all.URLs, page.URLs...)
		all.Matching = -1 // each shard knows its own
		if page.Next != "" {
			all.Next = positionIn(d, shard, page.Next)
			return all, nil
		}
	}
	all.Next = positionIn(d, shard, "")
	return all, nil
}

// pageOfURLs reads a page of one shard.
func pageOfURLs(ctx context.Context, d Division, shard int, from string, limit int) (inspect.URLPage, error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	r := asked(ctx)
	r.with(only(r.URL.Query(), map[string]string{"limit": strconv.Itoa(limit), "from": from}))
	return decode[inspect.URLPage](AskShard(ctx, d, shard, r))
}
