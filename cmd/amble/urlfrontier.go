//go:build !core

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/modules/operator"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier/crawlsapi"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier/service"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// formatURLFrontier is the value of --format for the lines of URLFrontier's client.
const formatURLFrontier = "urlfrontier"

// fetchersModule is the service of the URLFrontier protocol for crawlers of others.
func fetchersModule() module {
	counted := service.NewMetrics()
	clients := new(clientCrawls)
	return module{
		several: func(k *crawling) several {
			if k.config.URLFrontier.Listen == "" {
				return nil
			}
			return clients
		},
		operations: func(_ *server.Server, api huma.API) {
			if clients.node != nil {
				crawlsapi.Register(clients.node, api)
			}
		},
		serve: func(ctx context.Context, k *crawling) (context.Context, func(), error) {
			if clients.node == nil {
				node.TidyUp(k.config.DataDir, k.log)
				return ctx, func() {}, nil
			}
			s, err := startService(k, clients.node, counted)
			if err != nil {
				return nil, nil, err
			}
			running, stop := servedUntil(ctx, s, k.log)
			return running, stop, nil
		},
		collector: func(c *config.Config) prometheus.Collector {
			if c.URLFrontier.Listen == "" {
				return nil
			}
			return counted
		},
	}
}

// frontierFormat is their format of lists.
func frontierFormat() operator.ListFormat {
	return operator.ListFormat{
		Name:  formatURLFrontier,
		Read:  func() operator.LineReader { return new(frontierItems) },
		Write: func(w io.Writer) func(*inspect.URL) error { return (&frontierWriter{w: w}).Write },
	}
}

// frontierItems reads the lines of one import from URLFrontier.
type frontierItems struct {
	crawl string          // of all lines; empty: none was read yet
	put   *crawl.Imported // of the last line; nil: it was a plain URL
}

// Imported implements operator.LineReader.
func (f *frontierItems) Imported() *crawl.Imported {
	put := f.put
	f.put = nil
	return put
}

// Parse implements operator.LineReader.
func (f *frontierItems) Parse(line []byte) (seeds.Item, error) {
	item, err := urlfrontier.ParseItem(line)
	if err != nil {
		return seeds.Item{}, err
	}
	if f.crawl == "" {
		f.crawl = item.Crawl
	}
	if item.Crawl != f.crawl {
		return seeds.Item{},
			fmt.Errorf("is of crawl %q, and the lines before it are of crawl %q; a data_dir holds one "+
				"crawl, so dump each with DumpURLs -c", item.Crawl, f.crawl)
	}
	metadata, err := item.Metadata.Encode()
	if err != nil {
		return seeds.Item{}, err
	}
	f.put = &crawl.Imported{Created: item.Created, Metadata: metadata, Known: item.Known, Due: item.Due}
	return seeds.Item{URL: item.URL}, nil
}

// frontierWriter writes URLs as URLFrontier's client does.
type frontierWriter struct {
	w    io.Writer
	line []byte
}

// Write writes one URL. One without an outcome is discovered, any other known: with the date of its
// next request if there is one.
func (f *frontierWriter) Write(u *inspect.URL) (err error) {
	item := urlfrontier.Item{
		Crawl: urlfrontier.DefaultCrawl, Known: u.State != storage.Queued.String(), Due: u.Due, Created: u.FirstSeen,
		Metadata: u.Metadata,
	}
	if item.URL, err = weburl.Parse(u.URL); err != nil {
		return err
	}
	if f.line, err = urlfrontier.AppendItem(f.line[:0], &item); err == nil {
		_, err = f.w.Write(f.line)
	}
	return err
}

// clientCrawls opens the crawls of clients of URLFrontier.
type clientCrawls struct {
	node    *node.Node // nil: they are not open
	maxOpen int
}

// descriptors implements several.
func (c *clientCrawls) descriptors(limit, least, full int) (leastOfAll, fullOfAll int, fewer string) {
	most := node.MaxOpen
	c.maxOpen = max(min(most, (limit-full)/node.CrawlDescriptors), 1)
	if c.maxOpen < most {
		fewer = fmt.Sprintf("%s besides DEFAULT may be open at a time, and not %d", console.Plural(c.maxOpen, "crawl"),
			most)
	}
	return least + node.CrawlDescriptors, full + most*node.CrawlDescriptors, fewer
}

// open implements several.
func (c *clientCrawls) open(o *crawl.Options, seeds []crawl.Seed, log *slog.Logger) (_ crawls, err error) {
	options := node.DefaultOptions(*o)
	options.Seeds = seeds
	if c.maxOpen > 0 {
		options.MaxOpen = c.maxOpen
	}
	if c.node, err = node.Open(options, log); err != nil {
		return nil, err
	}
	return c.node, nil
}

// nodeCrawls are the crawls of the process for the URLFrontier service.
type nodeCrawls struct{ node *node.Node }

// Use implements service.Crawls.
func (n nodeCrawls) Use(ctx context.Context, id string, create bool) (service.Crawl, func(), error) {
	e, release, err := n.node.Use(ctx, id, create)
	if err != nil {
		return nil, nil, nodeError(err)
	}
	return e, release, nil
}

// IDs implements service.Crawls.
func (n nodeCrawls) IDs(ctx context.Context) ([]string, error) { return n.node.IDs(ctx) }

// Delete implements service.Crawls.
func (n nodeCrawls) Delete(ctx context.Context, id string) (uint64, error) {
	urls, err := n.node.Delete(ctx, id)
	return urls, nodeError(err)
}

// SetDefaultDelay implements service.Crawls.
func (n nodeCrawls) SetDefaultDelay(ctx context.Context, delay time.Duration) error {
	return n.node.SetDefaultDelay(ctx, delay)
}

// nodeError makes an error of a node one of the service.
func nodeError(err error) error {
	switch {
	case errors.Is(err, node.ErrNoCrawl):
		return fmt.Errorf("%w: %w", service.ErrNoCrawl, err)
	case errors.Is(err, node.ErrID):
		return fmt.Errorf("%w: %w", service.ErrCrawlID, err)
	}
	return err
}

// startService starts the URLFrontier service.
func startService(k *crawling, n *node.Node, counted *service.Metrics) (*service.Service, error) {
	u := k.config.URLFrontier
	s, err := service.Start(service.Options{
		Listen: u.Listen, Token: u.Token, TLSCert: u.TLSCert, TLSKey: u.TLSKey, Plaintext: u.Plaintext,
		Metrics: counted, SetLevel: k.settings.level.Set, Log: k.log, Now: time.Now,
	}, nodeCrawls{n})
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("%s: urlfrontier.listen: %w; set another address, or "+
			"disable the service with --set urlfrontier.listen=", k.config.Source("urlfrontier.listen"), err))
	}
	k.settings.useToken(s.SetToken)
	k.log.Info("the URLFrontier service listens", "address", s.Address())
	return s, nil
}

// servedUntil returns a context for the crawls. When ctx ends, the service closes first, so that what
// its clients have sent is committed and acknowledged, and then the context ends. stop closes the
// service if that has not happened.
func servedUntil(ctx context.Context, s *service.Service, log *slog.Logger) (running context.Context, stop func()) {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	closed := make(chan struct{})
	closing := func() {
		defer close(closed)
		defer end()
		grace, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		if err := s.Close(grace); err != nil {
			log.Debug("the URLFrontier service had to break off RPCs", "error", err)
		}
	}
	notYet := context.AfterFunc(ctx, closing)
	return running, func() {
		if notYet() {
			closing()
		}
		<-closed
	}
}

// useToken sets the function that receives the changed token of the URLFrontier service.
func (l *liveSettings) useToken(set func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setToken = set
}
