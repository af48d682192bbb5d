package server

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// BenchmarkAPI asks a crawl that is paused for everything that the API has, with the arguments that are hardest for it (see startSized). longest is that of all
// calls, the first after the start of the crawl among them; first-byte is the mean time to the first byte.
func BenchmarkAPI(b *testing.B) {
	c := startSized(b, time.Minute)
	ctx := context.Background()
	if err := c.engine.Pause(ctx); err != nil {
		b.Fatal(err)
	}
	some := c.mesh.Host(c.mesh.Hosts / 2)
	root := c.web.URL(some, "/")
	var checks []string
	for i := range 100 {
		checks = append(checks, "url="+url.QueryEscape(c.web.URL(c.mesh.Host(i*c.mesh.Hosts/100), "/private/x")))
	}
	b.Logf("there after %v", c.opened)
	for _, path := range []string{
		"/api/v1/hosts?sort=waiting",
		"/api/v1/hosts?sort=waiting&limit=1000",
		"/api/v1/hosts?sort=finish&limit=1000",
		"/api/v1/hosts?sort=delay&limit=1000",
		"/api/v1/hosts?sort=next&limit=1000",
		"/api/v1/hosts?sort=found&limit=1000",
		fmt.Sprintf("/api/v1/hosts?sort=found&limit=1000&after=0.%d", c.mesh.Hosts-500),
		"/api/v1/hosts?state=busy",
		"/api/v1/hosts?state=trouble&sort=finish",
		"/api/v1/hosts?sort=name&limit=1000",
		"/api/v1/hosts?sort=name&limit=1000&after=" + some,
		"/api/v1/hosts?contains=nowhere",
		"/api/v1/hosts?under=mesh.test&state=trouble",
		"/api/v1/hosts/" + some,
		"/api/v1/hosts/" + bigHost,
		"/api/v1/urls?limit=1000",
		"/api/v1/urls?limit=1000&state=queued",
		"/api/v1/urls?limit=1000&state=failed",
		"/api/v1/urls?limit=1000&state=queued&reason=robots",
		"/api/v1/urls?limit=1000&state=excluded",
		fmt.Sprintf("/api/v1/urls?limit=1000&from=%d.0", c.mesh.Hosts/2),
		fmt.Sprintf("/api/v1/urls?limit=1000&from=%d.%d", c.mesh.Hosts+1, c.mesh.Hosts-1000),
		"/api/v1/urls?limit=1000&host=" + bigHost + "&state=fetched&reason=robots",
		"/api/v1/url?url=" + url.QueryEscape(root),
		"/api/v1/robots?origin=" + url.QueryEscape(strings.TrimSuffix(root, "/")),
		"/api/v1/robots/check?" + strings.Join(checks, "&"),
		"/api/v1/plan?hosts=20",
		"/api/v1/plan?hosts=1000",
		"/api/v1/status",
		"/api/v1/history?window=24h",
		"/api/v1/openapi.json",
		"/api/v1/audit?host=" + some,
		"/api/v1/export?limit=1000",
		"/api/v1/export?state=failed",
		"/api/v1/export/hosts?limit=1000",
		"/api/v1/export/hosts?state=trouble&limit=1",
		"/metrics",
		"/",
	} {
		name, _, _ := strings.Cut(path, "&url=")
		b.Run(fmt.Sprintf("hosts=%d%s", c.mesh.Hosts, strings.TrimPrefix(name, "/api/v1")), func(b *testing.B) {
			var longest, firsts time.Duration
			for b.Loop() {
				begun := time.Now()
				first, _, err := c.get(ctx, path)
				if err != nil {
					b.Fatal(err)
				}
				longest, firsts = max(longest, time.Since(begun)), firsts+first
			}
			b.ReportMetric(longest.Seconds()*1000, "longest-ms")
			b.ReportMetric(firsts.Seconds()*1000/float64(b.N), "first-byte-ms")
		})
	}
}
