//go:build !core

package service

import (
	"context"
	"strings"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
)

// outcome is what became of an item that a client has sent.
type outcome uint8

const (
	itemAccepted outcome = iota // new, or updated
	itemKnown                   // discovered, and known before
	itemOutside                 // out of scope
	itemOptedOut                // an opt-out covers it
	itemInvalid                 // the crawl refuses it
	itemURL                     // it has no URL that can be parsed
	itemKey                     // its key is too long
	itemMetadata                // its metadata are too long
	itemCrawlID                 // no crawl can have its crawl id
	itemFailed                  // it could not be committed; the client may send it again
)

var outcomeNames = [...]string{"accepted", "known", "outside", "opted_out", "invalid", "bad_url", "long_key",
	"long_metadata", "bad_crawl_id", "failed"}

// String names it, in metrics and in the log.
func (o outcome) String() string { return outcomeNames[o] }

// status is what the client learns of it.
func (o outcome) status() urlfrontierpb.AckMessage_Status {
	switch o {
	case itemAccepted:
		return urlfrontierpb.AckMessage_OK
	case itemFailed, itemKey, itemMetadata, itemCrawlID: // nothing was decided about the URL
		return urlfrontierpb.AckMessage_FAIL
	}
	return urlfrontierpb.AckMessage_SKIPPED
}

// Metrics counts RPCs, for Prometheus. It is a connect.Interceptor and a prometheus.Collector.
type Metrics struct {
	rpcs  *prometheus.CounterVec // rpc, code
	items *prometheus.CounterVec // rpc, result
	urls  prometheus.Counter
	open  *prometheus.GaugeVec // rpc
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	return &Metrics{
		rpcs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "amble_urlfrontier_rpcs_total",
			Help: "RPCs of the URLFrontier service that ended, by name and code."}, []string{"rpc", "code"}),
		items: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "amble_urlfrontier_items_total",
			Help: "URLs that clients of the URLFrontier service put, by RPC and by what became of them."},
			[]string{"rpc", "result"}),
		urls: prometheus.NewCounter(prometheus.CounterOpts{Name: "amble_urlfrontier_urls_total",
			Help: "URLs that the URLFrontier service handed out."}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "amble_urlfrontier_rpcs_open",
			Help: "RPCs of the URLFrontier service at work, by name."}, []string{"rpc"}),
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.rpcs, m.items, m.urls, m.open}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

// nameOf returns the name of an RPC in metrics. path is that of a handler.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// begin counts an RPC that begins; end is called with its error.
func (m *Metrics) begin(path string) (end func(error)) {
	name := nameOf(path)
	m.open.WithLabelValues(name).Inc()
	return func(err error) {
		m.open.WithLabelValues(name).Dec()
		code := "ok"
		if err != nil {
			code = connect.CodeOf(err).String()
		}
		m.rpcs.WithLabelValues(name, code).Inc()
	}
}

// refused counts an RPC that does not begin. The path is as the client sent it.
func (m *Metrics) refused(path string, code connect.Code) {
	name := "other"
	if methods := urlfrontierpb.File_urlfrontier_proto.Services().ByName(
		"URLFrontier").Methods(); strings.HasPrefix(path,
		"/"+urlfrontierpb.URLFrontierName+"/") {
		for i := range methods.Len() {
			if string(methods.Get(i).Name()) == nameOf(path) {
				name = nameOf(path)
			}
		}
	}
	m.rpcs.WithLabelValues(name, code.String()).Inc()
}

// WrapUnary implements connect.Interceptor.
func (m *Metrics) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		end := m.begin(r.Spec().Procedure)
		response, err := next(ctx, r)
		end(err)
		return response, err
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (m *Metrics) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (m *Metrics) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		end := m.begin(conn.Spec().Procedure)
		err := next(ctx, conn)
		end(err)
		return err
	}
}

// count counts what became of items.
func (m *Metrics) count(rpc string, counts *[len(outcomeNames)]int) {
	for o, n := range counts {
		if n > 0 {
			m.items.WithLabelValues(rpc, outcomeNames[o]).Add(float64(n))
		}
	}
}
