//go:build !core

package clusterapi

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
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
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
	importTimeout = time.Minute
	importRetry   = 250 * time.Millisecond
)

// NewImport implements server.Division.
func (d *Division) NewImport(o crawl.ImportOptions, again bool) crawl.Import {
	return &dividedImport{d: d, o: o, again: again}
}

// dividedImport is the import of a list into a cluster: it sends each line to the owner of its shard.
type dividedImport struct {
	d     *Division
	o     crawl.ImportOptions
	again bool

	lists     map[int]*dividedList
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
func (i *dividedImport) Add(a crawl.Addition) error {
	if i.committed || i.lists == nil {
		i.lists, i.text, i.committed, i.results = make(map[int]*dividedList), 0, false, nil
	}
	if i.gathered == 0 {
		i.began = i.d.now()
	}
	line, err := json.Marshal(server.ListedURL{URL: a.URL.String(), Depth: a.Depth, Priority: a.Priority})
	if err != nil {
		return err
	}
	shard := i.d.ShardOf(a.URL.Host())
	list := i.lists[shard]
	if list == nil {
		list = new(dividedList)
		i.lists[shard] = list
	}
	list.lines.Write(append(line, '\n'))
	list.indexes = append(list.indexes, i.gathered)
	i.gathered++
	i.text += len(line)
	return nil
}

// Full implements crawl.Import.
func (i *dividedImport) Full() bool {
	return i.gathered >= maxDivided || i.text >= maxDividedText ||
		i.gathered > 0 && i.d.now().Sub(i.began) >= dividedAge
}

// Gathered implements crawl.Import.
func (i *dividedImport) Gathered() int { return i.gathered }

// Commit implements crawl.Import.
func (i *dividedImport) Commit(ctx context.Context) error {
	if i.o.Results {
		i.results = make([]crawl.InsertResult, i.gathered)
	}
	i.gathered, i.committed = 0, true
	shards := server.SortedKeys(i.lists)
	_, failed, wrong := server.Gather(ctx, shards, func(ctx context.Context, shard int) (struct{}, error) {
		return struct{}{}, i.commitShard(ctx, shard, i.lists[shard])
	})
	i.lists = nil
	if lacking := server.MissingShards(failed); wrong == nil && lacking != nil {
		wrong = fmt.Errorf("the URLs that are not counted were not added, send the list again: %w", lacking)
	}
	return wrong
}

// commitShard commits the part of a shard, and again if its node dies meanwhile.
func (i *dividedImport) commitShard(ctx context.Context, shard int, list *dividedList) error {
	waiting, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	for {
		sum, err := i.sendShard(ctx, shard, list)
		if err == nil || server.IsWrong(err) || waiting.Err() != nil {
			i.mu.Lock()
			i.sum = i.sum.Plus(sum)
			i.mu.Unlock()
			return err
		}
		select {
		case <-waiting.Done():
		case <-time.After(importRetry):
		}
	}
}

// sendShard sends the part of a shard to its owner, and returns what the reports say.
func (i *dividedImport) sendShard(ctx context.Context, shard int, list *dividedList) (sum crawl.Added,
	err error) {
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end()
	watching.Go(func() { i.d.endWithOwner(ctx, shard, end) })
	query := url.Values{}
	if i.o.Results {
		query.Set("each", "true")
	}
	if i.again {
		query.Set("again", "true")
	}
	r := server.Read("/urls", query)
	r.Method, r.Kind, r.Body = http.MethodPost, server.JSONLines, list.lines.Bytes()
	response, err := server.AskShard(ctx, i.d, shard, r)
	if err != nil {
		return sum, err
	}
	defer response.Body.Close()
	answered := 0
	for reports := json.NewDecoder(response.Body); ; {
		var report server.AddReport
		switch err := reports.Decode(&report); {
		case err == io.EOF:
			return sum, server.OfShard(shard, io.ErrUnexpectedEOF)
		case err != nil:
			return sum, server.OfShard(shard, err)
		}
		sum = report.Added
		for _, a := range report.Answers {
			if i.results == nil || answered == len(list.indexes) {
				break
			}
			i.results[list.indexes[answered]] = insertResultOf(a.Result)
			answered++
		}
		switch {
		case report.Error != "":
			return sum, server.OfShard(shard, errors.New(report.Error))
		case report.Done:
			return sum, nil
		}
	}
}

// endWithOwner calls end when the owner of a shard is another one. The one before may have been cut off: then
// a connection to it breaks only after some silence.
func (d *Division) endWithOwner(ctx context.Context, shard int, end func()) {
	for first := d.node.Owner(cluster.Shard(shard)); first == "" || d.node.Owner(cluster.Shard(shard)) == first; {
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
func (i *dividedImport) Results() []crawl.InsertResult { return i.results }

// Sum implements crawl.Import.
func (i *dividedImport) Sum() crawl.Added {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sum
}

// Close implements crawl.Import.
func (i *dividedImport) Close() error { return nil }
