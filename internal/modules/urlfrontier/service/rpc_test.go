package service

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier/health"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// gathered returns the counts of metrics by name and labels.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families := must.Get(registry.Gather())(t)
	counts := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "rpc" {
					labels = append(labels, l.GetValue())
				} else {
					labels = append([]string{l.GetValue()}, labels...)
				}
			}
			counts[strings.Join(slices.Concat([]string{f.GetName()}, labels), " ")] = m.GetCounter().GetValue() +
				m.GetGauge().GetValue()
		}
	}
	return counts
}

// What a client wants of GetURLs reaches the crawl, within bounds.
func TestLeaseRequests(t *testing.T) {
	for _, x := range []struct {
		r    *urlfrontierpb.GetParams
		want remote.Request
	}{
		{&urlfrontierpb.GetParams{}, remote.Request{N: 1000, PerHost: 10_000, Visibility: 30 * time.Second}},
		{&urlfrontierpb.GetParams{MaxQueues: 10, MaxUrlsPerQueue: 5, DelayRequestable: 7},
			remote.Request{N: 50, Hosts: 10, PerHost: 5, Visibility: 7 * time.Second}},
		{&urlfrontierpb.GetParams{MaxQueues: 1 << 31, MaxUrlsPerQueue: 1 << 31, DelayRequestable: 1 << 31},
			remote.Request{N: 1000, Hosts: 1 << 31, PerHost: 10_000, Visibility: remote.MaxVisibility}},
		{&urlfrontierpb.GetParams{Key: "One.test:80"},
			remote.Request{N: 1000, PerHost: 10_000, Visibility: 30 * time.Second, Host: "one.test"}},
	} {
		f := newFakeCrawls()
		s := start(t, Options{}, f)
		c := dial(t, s.Address())
		c.put(discovered(info("http://one.test/")))
		c.get(x.r)
		x.want.Fetcher, x.want.Bare = "urlfrontier-127.0.0.1", true
		requests := f.crawls["DEFAULT"].requests
		assert.True(t, len(requests) != 0 && requests[0] == x.want, "%v: %+v, want %+v", x.r, requests, x.want)
	}
}

// A GetURLs that wants more than one lease request gives goes on, up to the bound.
func TestManyLeases(t *testing.T) {
	l := DefaultLimits()
	l.Lease = 2500
	s := start(t, Options{Limits: l}, newFakeCrawls())
	c := dial(t, s.Address())
	var batch []*urlfrontierpb.URLInfo
	for n := range 4000 {
		batch = append(batch, info(number("http://host", n)+".test/"))
	}
	exchange[urlfrontierpb.BatchAck](c, "PutDiscovered", []*urlfrontierpb.DiscoveredBatch{{Items: batch}})
	for _, x := range []struct{ queues, want int }{{2000, 2000}, {0, 2000}, {0, 0}} {
		assert.Equal(t, len(c.get(&urlfrontierpb.GetParams{MaxQueues: uint32(x.queues), MaxUrlsPerQueue: 1})), x.want,
			x.queues, "queues URLs")
	}
}

// TestLogLevel: SetLogLevel sets the level of the process. A service without a level answers with the gRPC status
// Unimplemented.
func TestLogLevel(t *testing.T) {
	var level slog.LevelVar
	c := dial(t, start(t, Options{SetLevel: level.Set}, newFakeCrawls()).Address())
	for name, want := range map[urlfrontierpb.LogLevelParams_Level]slog.Level{
		urlfrontierpb.LogLevelParams_TRACE: slog.LevelDebug, urlfrontierpb.LogLevelParams_DEBUG: slog.LevelDebug,
		urlfrontierpb.LogLevelParams_INFO: slog.LevelInfo, urlfrontierpb.LogLevelParams_WARN: slog.LevelWarn,
		urlfrontierpb.LogLevelParams_ERROR: slog.LevelError,
	} {
		if do[pbEmpty](c, "SetLogLevel", &urlfrontierpb.LogLevelParams{Level: name}); level.Level() != want {
			t.Errorf("%v: %v", name, level.Level())
		}
	}
	c = dial(t, start(t, Options{}, newFakeCrawls()).Address())
	if _, err := try[pbEmpty](c, "SetLogLevel",
		&urlfrontierpb.LogLevelParams{}); status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}

// The node, its health, and what it says of its services.
func TestNode(t *testing.T) {
	m := NewMetrics()
	s := start(t, Options{Metrics: m}, newFakeCrawls())
	c := dial(t, s.Address())
	assert.Slice(t, do[pbList](c, "ListNodes", &pbEmpty{}).GetValues(), []string{s.Address()})
	for name, code := range map[string]codes.Code{"": 0, "urlfrontier.URLFrontier": 0, "other": codes.NotFound} {
		var r health.HealthCheckResponse
		err := c.conn.Invoke(t.Context(), health.HealthCheckProcedure, &health.HealthCheckRequest{Service: name}, &r)
		if status.Code(err) != code || code == 0 && r.GetStatus() != health.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, r.GetStatus(), err)
		}
	}
	assert.Equal(t, status.Code(c.conn.Invoke(t.Context(), "/urlfrontier.URLFrontier/None", &pbEmpty{}, &pbEmpty{})),
		codes.Unimplemented)
	assert.Equal(t, gathered(t, m)["amble_urlfrontier_rpcs_total ListNodes ok"], 1, "ListNodes is counted times")
}

// Clients of gRPC-Web and Connect, over HTTP/1 and HTTP/2, do as those of gRPC.
func TestProtocols(t *testing.T) {
	s := start(t, Options{}, newFakeCrawls())
	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	over2 := &http.Client{Transport: &http.Transport{Protocols: h2}}
	over1 := &http.Client{Transport: &http.Transport{}}
	defer over1.CloseIdleConnections()
	defer over2.CloseIdleConnections()
	for name, c := range map[string]urlfrontierpb.URLFrontierClient{
		"connect":         urlfrontierpb.NewURLFrontierClient(over2, "http://"+s.Address()),
		"connect, HTTP/1": urlfrontierpb.NewURLFrontierClient(over1, "http://"+s.Address()),
		"connect, JSON":   urlfrontierpb.NewURLFrontierClient(over1, "http://"+s.Address(), connect.WithProtoJSON()),
		"gRPC-Web":        urlfrontierpb.NewURLFrontierClient(over1, "http://"+s.Address(), connect.WithGRPCWeb()),
		"gRPC":            urlfrontierpb.NewURLFrontierClient(over2, "http://"+s.Address(), connect.WithGRPC()),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := c.GetActive(ctx, &urlfrontierpb.Local{})
			assert.True(t, err == nil && r.GetState(), "%v, %v", r, err)
			stream := must.Get(c.ListURLs(ctx, &urlfrontierpb.ListUrlParams{}))(t)
			for stream.Receive() {
			}
			must.Do(t, stream.Err())
		})
	}
}

// Reflection names the services.
func TestReflection(t *testing.T) {
	s := start(t, Options{}, newFakeCrawls())
	// The request is list_services: "" of grpc.reflection.v1.ServerReflectionRequest (field 7).
	for _, version := range []string{"v1", "v1alpha"} {
		body := callRaw(t, s, "/grpc.reflection."+version+".ServerReflection/ServerReflectionInfo", []byte{0x3a, 0})
		for _, name := range []string{"urlfrontier.URLFrontier", "grpc.health.v1.Health"} {
			assert.Contains(t, body, name, version, "has no")
		}
	}
}
