package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/seeds"
	"github.com/amble-crawler/amble/internal/urllist"
	"github.com/amble-crawler/amble/internal/weburl"
)

// SeedEntry is a seed as the API lists it.
type SeedEntry struct {
	URL string `json:"url"`
	seeds.Fields
	Source string `json:"source,omitempty" doc:"where it was given"`
	Of     string `json:"of,omitempty" doc:"the seed whose redirect led here"`
}

// NewSeedEntry returns the entry of a seed.
func NewSeedEntry(s *crawl.Seed) SeedEntry {
	return SeedEntry{URL: s.URL.String(), Fields: s.Fields, Source: s.Source, Of: s.Of.String()}
}

// seedList is the request to add seeds.
type seedList struct {
	RawBody []byte `contentType:"application/jsonl"`
}

// seedName names a seed.
type seedName struct {
	URL string `query:"url" required:"true" minLength:"1" maxLength:"2048"`
}

// maxSeedList bounds the bytes of a list of seeds. All of it is one commit.
const maxSeedList = 1 << 20

// SeedSource is the source of seeds that commands give.
const SeedSource = "command"

func seedsAPI(s *Server, api huma.API) {
	list := streams[SeedEntry](api, Operation("GET", "/seeds", "seeds-list", "The seeds"))
	list.Description = "Those of the settings and those that were added, and where their redirects led."
	Handle(api, list, func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		return s.stream(func(t *Stream) error { return writeSeeds(ctx, s, t) }), nil
	})
	add := Operation("POST", "/seeds", "seeds-add", "Add seeds", append(bodyErrors(), http.StatusConflict)...)
	add.Description = "The body has one URL a line with fields such as tags=news behind it, or one JSON object " +
		"a line with url and fields. Of a known seed the fields are replaced. If a line is bad, none is added. " +
		"They are on disk and in their queues when the response is sent, and the scope is that of the new seeds."
	add.MaxBodyBytes = maxSeedList
	text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	add.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"text/plain": text}}
	Handle(api, add, func(ctx context.Context, in *seedList) (*Object[crawl.SeedCounts], error) {
		return answer(addSeeds(ctx, s, in.RawBody))
	})
	remove := Operation("DELETE", "/seeds", "seeds-remove", "Remove a seed", http.StatusNotFound, http.StatusConflict)
	remove.Description = "URLs that wait and are of no other seed are excluded in the background. What was fetched " +
		"stays."
	Handle(api, remove, ofOwner(s, hostOfURL(func(in *seedName) string { return in.URL }),
		func(ctx context.Context, in *seedName) (*Object[crawl.SeedCounts], error) {
			u, err := weburl.Parse(in.URL)
			if err != nil {
				return nil, errQuery{err}
			}
			return answer(s.crawl(ctx).ChangeSeeds(ctx, crawl.SeedWish{Remove: []weburl.URL{u}}))
		}))
}

// writeSeeds writes the seeds. All shards of a division have them.
func writeSeeds(ctx context.Context, s *Server, t *Stream) error {
	if d := s.divided(ctx); d != nil {
		_, _, err := exportShard(ctx, d, 0, make(map[string]string),
			func(r *http.Response) (int, http.Header, error) { return relay(t, r) })
		return err
	}
	all, err := s.crawl(ctx).Seeds()
	for i := 0; i < len(all) && err == nil; i++ {
		err = t.Lines.Write(NewSeedEntry(&all[i]))
	}
	return err
}

// addSeeds adds seeds. In a division the shard of the first one does, and makes them known to the others.
func addSeeds(ctx context.Context, s *Server, list []byte) (done crawl.SeedCounts, err error) {
	add, err := readSeeds(list)
	if err != nil {
		return done, errQuery{err}
	}
	d := s.divided(ctx)
	if d == nil {
		return s.crawl(ctx).ChangeSeeds(ctx, crawl.SeedWish{Add: add})
	}
	r := *asked(ctx)
	r.Body = list
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	return decode[crawl.SeedCounts](AskShard(ctx, d, d.ShardOf(add[0].URL.Host()), &r))
}

// readSeeds reads a list of seeds, one or more.
func readSeeds(text []byte) (all []crawl.Seed, err error) {
	if !utf8.Valid(text) { // also if it is compressed: nothing bounds what comes out
		return nil, errors.New("the list is not UTF-8 text")
	}
	list, err := urllist.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer list.Close()
	list.Seeds = true
	for {
		item, err := list.Next()
		switch {
		case err == io.EOF && len(all) == 0:
			return nil, errors.New("the list has no seed")
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, item.Seed(SeedSource))
	}
}

// ChangeSeeds is [crawl.Engine.ChangeSeeds] of the running crawl, one request for all to add, and one for each to
// remove.
func (c *Client) ChangeSeeds(ctx context.Context, w crawl.SeedWish) (sum crawl.SeedCounts, err error) {
	var list bytes.Buffer
	for i := range w.Add {
		e := NewSeedEntry(&w.Add[i])
		if e.Source = ""; w.Add[i].Bare {
			e.URL = strings.TrimPrefix(e.URL, "https://")
		}
		line, err := json.Marshal(&e)
		if err != nil {
			return sum, err
		}
		list.Write(append(line, '\n'))
	}
	change := func(method string, v url.Values, body io.Reader) error {
		response, err := c.send(ctx, method, BasePath+"/seeds", v, body)
		if err != nil {
			return err
		}
		more, err := decode[crawl.SeedCounts](response, nil)
		sum.Added, sum.Changed = sum.Added+more.Added, sum.Changed+more.Changed
		sum.Known, sum.Removed = sum.Known+more.Known, sum.Removed+more.Removed
		return err
	}
	if len(w.Add) > 0 {
		err = change(http.MethodPost, nil, &list)
	}
	for i := 0; i < len(w.Remove) && err == nil; i++ {
		err = change(http.MethodDelete, url.Values{"url": {w.Remove[i].String()}}, nil)
	}
	if err != nil {
		return sum, fmt.Errorf("change seeds: %w", err)
	}
	return sum, nil
}

// Seeds returns the seeds of the running crawl.
func (c *Client) Seeds(ctx context.Context) (all []SeedEntry, err error) {
	_, err = EachLine(ctx, c, BasePath+"/seeds", nil, func(e *SeedEntry) error {
		all = append(all, *e)
		return nil
	})
	return all, err
}
