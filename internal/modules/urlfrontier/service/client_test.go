package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// client is a client of the service by grpc-go.
type client struct {
	t    testing.TB
	conn *grpc.ClientConn
}

// start starts a service for a test. It ends with the test.
func start(t testing.TB, o Options, crawls Crawls) *Service {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := must.Get(Start(o, crawls))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	return s
}

// dial connects to an address.
func dial(t testing.TB, address string, options ...grpc.DialOption) *client {
	t.Helper()
	if len(options) == 0 {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	conn := must.Get(grpc.NewClient("passthrough:///"+address, options...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn}
}

// try calls an RPC.
func try[R any, P interface {
	*R
	proto.Message
}](c *client, name string, request proto.Message) (P, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	response := P(new(R))
	return response, c.conn.Invoke(ctx, "/urlfrontier.URLFrontier/"+name, request, response)
}

// do calls an RPC that succeeds.
func do[R any, P interface {
	*R
	proto.Message
}](c *client, name string, request proto.Message) P {
	c.t.Helper()
	response, err := try[R, P](c, name, request)
	must.Do(c.t, err, name)
	return response
}

// open opens an RPC with a stream.
func (c *client) open(ctx context.Context, name string) grpc.ClientStream {
	c.t.Helper()
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/urlfrontier.URLFrontier/"+name)
	must.Do(c.t, err, name)
	return stream
}

// tryList calls an RPC that answers with a stream.
func tryList[R any, P interface {
	*R
	proto.Message
}](c *client, name string, request proto.Message) (list []P, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	stream := c.open(ctx, name)
	if err := errors.Join(stream.SendMsg(request), stream.CloseSend()); err != nil {
		return nil, err
	}
	for {
		m := P(new(R))
		if err := stream.RecvMsg(m); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
		list = append(list, m)
	}
}

// list calls an RPC that answers with a stream, and succeeds.
func list[R any, P interface {
	*R
	proto.Message
}](c *client, name string, request proto.Message) []P {
	c.t.Helper()
	all, err := tryList[R, P](c, name, request)
	must.Do(c.t, err, name)
	return all
}

// get calls GetURLs, and returns the URLs.
func (c *client) get(r *urlfrontierpb.GetParams) (urls []string) {
	c.t.Helper()
	for _, info := range list[urlfrontierpb.URLInfo](c, "GetURLs", r) {
		urls = append(urls, info.GetUrl())
	}
	return urls
}

// put calls PutURLs, and returns the acknowledgements.
func (c *client) put(items ...*urlfrontierpb.URLItem) (acks []*urlfrontierpb.AckMessage) {
	c.t.Helper()
	return exchange[urlfrontierpb.AckMessage](c, "PutURLs", items)
}

// exchange sends messages over a stream, ends it, and returns what has come.
func exchange[A any, PA interface {
	*A
	proto.Message
}, M proto.Message](c *client, name string, messages []M) (acks []PA) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	stream := c.open(ctx, name)
	sent := make(chan error, 1)
	go func() {
		var err error
		for _, m := range messages {
			if err = stream.SendMsg(m); err != nil {
				break
			}
		}
		sent <- errors.Join(err, stream.CloseSend())
	}()
	for {
		ack := PA(new(A))
		err := stream.RecvMsg(ack)
		if errors.Is(err, io.EOF) {
			must.Do(c.t, <-sent, name, "send")
			return acks
		}
		must.Do(c.t, err, name, "after", len(acks))
		acks = append(acks, ack)
	}
}

// info returns what a client says of a URL.
func info(url string) *urlfrontierpb.URLInfo { return &urlfrontierpb.URLInfo{Url: url} }

// discovered returns an item of a discovered URL.
func discovered(i *urlfrontierpb.URLInfo) *urlfrontierpb.URLItem {
	return &urlfrontierpb.URLItem{Item: &urlfrontierpb.URLItem_Discovered{
		Discovered: &urlfrontierpb.DiscoveredURLItem{Info: i}}}
}

// known returns an item of a known URL; date 0: never again.
func known(i *urlfrontierpb.URLInfo, date int64) *urlfrontierpb.URLItem {
	return &urlfrontierpb.URLItem{Item: &urlfrontierpb.URLItem_Known{
		Known: &urlfrontierpb.KnownURLItem{Info: i, RefetchableFromDate: uint64(date)}}}
}

// ofQueue requests URLs of a queue of the default crawl.
func ofQueue(key string, n, delay uint32) *urlfrontierpb.GetParams {
	return &urlfrontierpb.GetParams{Key: key, MaxUrlsPerQueue: n, DelayRequestable: delay,
		Item: &urlfrontierpb.GetParams_CrawlID{CrawlID: "DEFAULT"}}
}
