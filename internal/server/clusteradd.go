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
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/crawl"
)

// Bounds of the window of a list that is divided among shards.
const (
	maxDivided     = 100_000  // URLs
	maxDividedText = 16 << 20 // bytes
	dividedAge     = 10 * time.Second
)

// A shard that does not answer gets its part of the list again for so long: nodes take over from each
// other. The URLs that it has already are known then.
const (
	importPatience = time.Minute
	importRetry    = 250 * time.Millisecond
)

// newImport begins to import a list.
func (s *Server) newImport(ctx context.Context, o crawl.ImportOptions, again bool) (crawl.Import, error) {
	if c := s.crawl(ctx); c != nil {
		return c.NewImport(o)
	}
	return &dividedImport{s: s, o: o, again: again, shards: s.shards()}, nil
}

// dividedImport is the import of a list into a cluster: it sends each line to the owner of its shard.
type dividedImport struct {
	s      *Server
	o      crawl.ImportOptions
	again  bool
	shards int

	lists     map[cluster.Shard]*dividedList
	text      int // bytes
	gathered  int
	committed bool // the window is; the next Add begins another
	began     time.Time
	results   []crawl.InsertResult

	mu  sync.Mutex // guards sum
	sum crawl.Added
}

// dividedList is the part of a window for one shard.
type dividedList struct {
	lines   bytes.Buffer
	indexes []int // of its URLs in the window
}

// Add implements crawl.Import.
func (d *dividedImport) Add(a crawl.Addition) error {
	if d.committed || d.lists == nil {
		d.lists, d.text, d.committed, d.results = make(map[cluster.Shard]*dividedList), 0, false, nil
	}
	if d.gathered == 0 {
		d.began = d.s.o.Now()
	}
	line, err := json.Marshal(listedURL{a.URL.String(), a.Depth, a.Priority})
	if err != nil {
		return err
	}
	shard := cluster.ShardOf(a.URL.Host(), d.shards)
	list := d.lists[shard]
	if list == nil {
		list = new(dividedList)
		d.lists[shard] = list
	}
	list.lines.Write(append(line, '\n'))
	list.indexes = append(list.indexes, d.gathered)
	d.gathered++
	d.text += len(line)
	return nil
}

// Full implements crawl.Import.
func (d *dividedImport) Full() bool {
	return d.gathered >= maxDivided || d.text >= maxDividedText ||
		d.gathered > 0 && d.s.o.Now().Sub(d.began) >= dividedAge
}

// Gathered implements crawl.Import.
func (d *dividedImport) Gathered() int { return d.gathered }

// Commit implements crawl.Import.
func (d *dividedImport) Commit(ctx context.Context) error {
	if d.o.Results {
		d.results = make([]crawl.InsertResult, d.gathered)
	}
	d.gathered, d.committed = 0, true
	_, failed, wrong := gather(ctx, keysOf(d.lists), func(ctx context.Context, shard cluster.Shard) (struct{}, error) {
		return struct{}{}, d.commitShard(ctx, shard, d.lists[shard])
	})
	d.lists = nil
	if lacking := missing(failed); wrong == nil && lacking != nil {
		wrong = fmt.Errorf("the URLs that are not counted were not added, send the list again: %w", lacking)
	}
	return wrong
}

// commitShard commits the part of a shard, and again if its node dies meanwhile.
func (d *dividedImport) commitShard(ctx context.Context, shard cluster.Shard, list *dividedList) error {
	waiting, cancel := context.WithTimeout(ctx, importPatience)
	defer cancel()
	for {
		sum, err := d.sendShard(ctx, shard, list)
		if err == nil || isWrong(err) || waiting.Err() != nil {
			d.mu.Lock()
			d.sum = d.sum.Plus(sum)
			d.mu.Unlock()
			return err
		}
		select {
		case <-waiting.Done():
		case <-time.After(importRetry):
		}
	}
}

// sendShard sends the part of a shard to its owner, and returns what the reports say.
func (d *dividedImport) sendShard(ctx context.Context, shard cluster.Shard, list *dividedList) (sum crawl.Added,
	err error) {
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end()
	watching.Go(func() { d.s.endWithOwner(ctx, shard, end) })
	query := url.Values{}
	if d.o.Results {
		query.Set("each", "true")
	}
	if d.again {
		query.Set("again", "true")
	}
	p := read("/urls", query)
	p.method, p.kind, p.body = http.MethodPost, jsonLines, list.lines.Bytes()
	response, err := d.s.toShard(ctx, shard, &p)
	if err != nil {
		return sum, err
	}
	defer response.Body.Close()
	answered := 0
	for reports := json.NewDecoder(response.Body); ; {
		var report AddReport
		switch err := reports.Decode(&report); {
		case err == io.EOF:
			return sum, ofShard(shard, io.ErrUnexpectedEOF)
		case err != nil:
			return sum, ofShard(shard, err)
		}
		sum = report.Added
		for _, a := range report.Answers {
			if d.results == nil || answered == len(list.indexes) {
				break
			}
			d.results[list.indexes[answered]] = insertResultOf(a.Result)
			answered++
		}
		switch {
		case report.Error != "":
			return sum, ofShard(shard, errors.New(report.Error))
		case report.Done:
			return sum, nil
		}
	}
}

// endWithOwner calls end when the owner of a shard is another one. The one before may have been cut off: then
// a connection to it breaks only after some silence.
func (s *Server) endWithOwner(ctx context.Context, shard cluster.Shard, end func()) {
	for first := s.o.Cluster.Owner(shard); first == "" || s.o.Cluster.Owner(shard) == first; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(importRetry):
		}
	}
	end()
}

// insertResultOf is the inverse of crawl.InsertResult.String.
func insertResultOf(name string) crawl.InsertResult {
	for r := crawl.InsertNone; r <= crawl.InsertOptedOut; r++ {
		if r.String() == name {
			return r
		}
	}
	return crawl.InsertNone
}

// Results implements crawl.Import.
func (d *dividedImport) Results() []crawl.InsertResult { return d.results }

// Sum implements crawl.Import.
func (d *dividedImport) Sum() crawl.Added {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sum
}

// Close implements crawl.Import.
func (d *dividedImport) Close() error { return nil }
