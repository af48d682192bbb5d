package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/urllist"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// SeedEntry is a seed as the API lists it.
type SeedEntry struct {
	URL string `json:"url"`
	seeds.Fields
	Source string `json:"source,omitempty" doc:"where it was given"`
	// Settings is Seed.Settings.
	Settings bool   `json:"settings,omitempty" doc:"the settings name it: a reload without it removes it"`
	Of       string `json:"of,omitempty" doc:"the seed whose redirect led here"`
}

// NewSeedEntry returns the entry of a seed.
func NewSeedEntry(s *crawl.Seed) SeedEntry {
	return SeedEntry{URL: s.URL.String(), Fields: s.Fields, Source: s.Source, Settings: s.Settings, Of: s.Of.String()}
}

// seedList is the request to add seeds.
type seedList struct {
	Settings bool   `query:"settings" doc:"true: they are of the settings, as those that a reload adds"`
	RawBody  []byte `contentType:"application/jsonl"`
}

// seedNames names seeds.
type seedNames struct {
	URLs []string `query:"url,explode" required:"true" minItems:"1" maxItems:"100" maxLength:"2048"`
}

// A request removes so many seeds, and has so many bytes of their URLs: a header of the nodes of a cluster has to hold
// them, escaped.
const (
	mostRemoved   = 100
	mostSeedNames = 8 << 10
)

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
		return answer(addSeeds(ctx, s, in))
	})
	remove := Operation("DELETE", "/seeds", "seeds-remove", "Remove seeds", http.StatusNotFound, http.StatusConflict)
	remove.Description = "If one of them is no seed, none is removed. URLs that wait and are of no other seed are " +
		"excluded in the background. What was fetched stays."
	Handle(api, remove, func(ctx context.Context, in *seedNames) (*Object[crawl.SeedCounts], error) {
		return answer(removeSeeds(ctx, s, in.URLs))
	})
}

// writeSeeds writes the seeds. All shards of a division have them: the first one, which changes them, answers, or the
// next one while it does not.
func writeSeeds(ctx context.Context, s *Server, t *Stream) (err error) {
	if d := s.divided(ctx); d != nil {
		var response *http.Response
		for shard := range d.Shards() {
			asking, cancel := context.WithTimeout(ctx, AnswerTimeout)
			defer cancel()
			if response, err = AskShard(asking, d, shard, asked(ctx)); err == nil {
				_, _, err = relay(t, response)
				return OfShard(shard, err)
			}
			if IsWrong(err) || ctx.Err() != nil {
				break
			}
		}
		return err
	}
	all, err := s.crawl(ctx).Seeds()
	for i := 0; i < len(all) && err == nil; i++ {
		err = t.Lines.Write(NewSeedEntry(&all[i]))
	}
	return err
}

// addSeeds adds seeds.
func addSeeds(ctx context.Context, s *Server, in *seedList) (done crawl.SeedCounts, err error) {
	add, err := readSeeds(in.RawBody)
	if err != nil {
		return done, errQuery{err}
	}
	for i := range add {
		if add[i].Settings = in.Settings; in.Settings {
			add[i].Source = "settings"
		}
	}
	return changeSeeds(ctx, s, crawl.SeedWish{Add: add}, in.RawBody)
}

// removeSeeds removes seeds.
func removeSeeds(ctx context.Context, s *Server, names []string) (done crawl.SeedCounts, err error) {
	var w crawl.SeedWish
	for _, text := range names {
		u, err := weburl.Parse(text)
		if err != nil {
			return done, errQuery{fmt.Errorf("%.80q: %w", text, err)}
		}
		w.Remove = append(w.Remove, u)
	}
	return changeSeeds(ctx, s, w, nil)
}

// changeSeeds changes seeds. In a division the first shard does, for all of them and one change after the other, and
// makes it known to the others. body is that of the request.
func changeSeeds(ctx context.Context, s *Server, w crawl.SeedWish, body []byte) (done crawl.SeedCounts, err error) {
	d := s.divided(ctx)
	if d == nil {
		return s.crawl(ctx).ChangeSeeds(ctx, w)
	}
	r := *asked(ctx)
	r.Body = body
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	return decode[crawl.SeedCounts](AskShard(ctx, d, 0, &r))
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
