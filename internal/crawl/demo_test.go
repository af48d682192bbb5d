package crawl

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/internal/weburl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testOptions are those of a crawl of a loopback web.
func testOptions(t testing.TB, web *testweb.Web) Options {
	o := DefaultOptions()
	o.DataDir = t.TempDir()
	o.Archive.Dir = t.TempDir()
	o.Fetch.UserAgent = "amble-test"
	o.Fetch.AllowPrivate = true
	o.Fetch.Resolver = web.ResolverAddr()
	o.GiveUpAfter = 2 * time.Second
	o.Frontier.Politeness.Delay = 20 * time.Millisecond
	o.Frontier.RetryDelay = 50 * time.Millisecond
	return o
}

func testLog(t testing.TB) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("AMBLE_TEST_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
}

func seed(t testing.TB, text string) Seed {
	t.Helper()
	u, err := weburl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Seed{URL: u, Source: "test"}
}

// TestDemoWeb crawls the web of the demo and compares what the web saw with
// what a correct crawler does there.
func TestDemoWeb(t *testing.T) {
	sites, facts := testweb.Demo()
	web, err := testweb.New(testweb.Config{Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	o := testOptions(t, web)
	o.Frontier.MaxDepth = uint16(facts.MaxDepth)
	var seeds []Seed
	for _, s := range facts.Seeds {
		seeds = append(seeds, seed(t, web.URL(s.Host, s.Path)))
	}
	e, err := Open(o, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sum, err := e.Run(ctx, seeds)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", sum)
	for _, complaint := range facts.Check(web.Requests()) {
		t.Error(complaint)
	}
}
