//go:build real

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// frontierSettings are those of a service whose clients decide everything.
const frontierSettings = `
data_dir: ./data
crawl: {workers: 0}
scope: {mode: any}
server: {listen: ""}
output: {format: [none]}
urlfrontier: {listen: 127.0.0.1:0, robots: false}
`

// TestRealURLFrontier holds the program against what clients of the protocol rely on.
func TestRealURLFrontier(t *testing.T) {
	forgetSettings(t)
	binary := build(t)
	t.Run("Java", func(t *testing.T) { testJavaClient(t, binary) })
	t.Run("Kill", func(t *testing.T) { testFrontierKill(t, binary) })
}

// startFrontier starts the service in the working directory, and returns its host and port.
func startFrontier(t *testing.T, binary string) (p *process, host, port string) {
	t.Helper()
	p = start(t, binary, "run", "-c", "config.yaml")
	line := regexp.MustCompile(`URLFrontier service listens.*address=([^:]+):(\d+)`)
	for range 600 {
		if found := line.FindStringSubmatch(p.output.String()); found != nil {
			return p, found[1], found[2]
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no service\n%s", p.output.String())
	return nil, "", ""
}

// enterFrontier makes a directory with the settings of a service the working directory.
func enterFrontier(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(frontierSettings), 0o600))
	t.Chdir(dir)
}

// testJavaClient runs the assertions of the reference implementation's tests with its own API, from
// Maven Central, and grpc-java.
func testJavaClient(t *testing.T, binary string) {
	for _, tool := range []string{"mvn", "javac", "java"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s on this machine: apt-get install maven default-jdk-headless", tool)
		}
	}
	sources := must.Get(filepath.Abs("testdata/urlfrontier"))(t)
	classes := t.TempDir()
	libraries := filepath.Join(classes, "lib")
	if output, err := command(t, 10*time.Minute, "mvn", "-q", "-B", "-f", filepath.Join(sources, "pom.xml"),
		"dependency:copy-dependencies", "-DoutputDirectory="+libraries); err != nil {
		t.Skipf("urlfrontier-API cannot be had: %v\n%s", err, tail(output))
	}
	path := classes + string(os.PathListSeparator) + filepath.Join(libraries, "*")
	if output, err := command(t, 5*time.Minute, "javac", "-d", classes, "-cp", path,
		filepath.Join(sources, "Conformance.java")); err != nil {
		t.Fatalf("%v\n%s", err, tail(output))
	}
	enterFrontier(t)
	p, host, port := startFrontier(t, binary)
	output, err := command(t, 10*time.Minute, "java", "-cp", path, "Conformance", host, port)
	t.Log("\n" + output)
	if err != nil || strings.Contains(output, "FAILED") {
		t.Errorf("%v\n%s", err, tail(p.output.String()))
	}
	p.signal(syscall.SIGTERM)
	if err := p.wait(30 * time.Second); err != nil {
		t.Errorf("%v\n%s", err, tail(p.output.String()))
	}
}

// testFrontierKill kills the service in the middle of puts. The next process has every URL that was
// acknowledged, hands out nothing that a client holds, and keeps blocks and delays.
func testFrontierKill(t *testing.T, binary string) {
	enterFrontier(t)
	p, host, port := startFrontier(t, binary)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := frontierClient(t, host, port)
	for _, name := range []string{"blocked", "slow", "held"} {
		putDiscovered(t, c, 1, func(n int) string { return fmt.Sprintf("http://%s.example/%d", name, n) })
	}
	check := func(_ *urlfrontierpb.Empty, err error) {
		must.Do(t, err)
	}
	check(c.BlockQueueUntil(ctx, &urlfrontierpb.BlockQueueParams{Key: "blocked.example",
		Time: uint64(time.Now().Add(time.Hour).Unix())}))
	check(c.SetDelay(ctx, &urlfrontierpb.QueueDelayParams{Key: "slow.example", DelayRequestable: 3600}))
	for _, name := range []string{"slow.example", "held.example"} {
		n := getURLs(t, c, name)
		must.True(t, n == 1, "%s: %d URLs", name, n)
	}
	stop := make(chan struct{})
	acknowledged := make(chan int)
	go func() {
		total := 0
		defer func() { acknowledged <- total }()
		stream, err := c.PutDiscovered(ctx)
		if err != nil {
			return
		}
		defer stream.CloseResponse()
		for n := 0; ; n++ {
			select {
			case <-stop:
				p.signal(syscall.SIGKILL)
				stop = nil
			default:
			}
			batch := &urlfrontierpb.DiscoveredBatch{ID: fmt.Sprint(n)}
			for i := range 100 {
				batch.Items = append(batch.Items,
					&urlfrontierpb.URLInfo{Url: fmt.Sprintf("http://h%d.example/%d", i, n)})
			}
			if stream.Send(batch) != nil {
				return
			}
			ack, err := stream.Receive()
			if err != nil {
				return
			}
			for _, status := range ack.GetStatuses() {
				if status == urlfrontierpb.AckMessage_OK {
					total++
				}
			}
		}
	}()
	time.AfterFunc(2*time.Second, func() { close(stop) })
	total := <-acknowledged
	_ = p.wait(30 * time.Second)

	_, host, port = startFrontier(t, binary)
	c = frontierClient(t, host, port)
	n, err := c.CountURLs(ctx, &urlfrontierpb.CountUrlParams{})
	if err != nil || int(n.GetValue()) < total+3 || total == 0 {
		t.Errorf("%d URLs were acknowledged, %d are there: %v", total+3, n.GetValue(), err)
	}
	t.Logf("%d URLs acknowledged before the kill, %d there after it", total+3, n.GetValue())
	for _, name := range []string{"blocked.example", "slow.example", "held.example"} {
		n := getURLs(t, c, name)
		assert.True(t, n == 0, "%s hands out %d URLs after the kill", name, n)
	}
	if n := getURLs(t, c, "h1.example"); n != 1 {
		t.Errorf("h1.example hands out %d URLs", n)
	}
}

func frontierClient(t *testing.T, host, port string) urlfrontierpb.URLFrontierClient {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return urlfrontierpb.NewURLFrontierClient(&http.Client{Transport: transport}, "http://"+host+":"+port)
}

// putDiscovered puts n URLs.
func putDiscovered(t *testing.T, c urlfrontierpb.URLFrontierClient, n int, url func(int) string) {
	t.Helper()
	stream := must.Get(c.PutDiscovered(t.Context()))(t)
	batch := &urlfrontierpb.DiscoveredBatch{}
	for i := range n {
		batch.Items = append(batch.Items, &urlfrontierpb.URLInfo{Url: url(i)})
	}
	must.Do(t, stream.Send(batch))
	must.Get(stream.Receive())(t)
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
}

// getURLs returns how many URLs of a queue are handed out, for an hour.
func getURLs(t *testing.T, c urlfrontierpb.URLFrontierClient, key string) (n int) {
	t.Helper()
	stream := must.Get(c.GetURLs(t.Context(),
		&urlfrontierpb.GetParams{Key: key, MaxUrlsPerQueue: 1, DelayRequestable: 3600}))(t)
	defer stream.Close()
	for stream.Receive() {
		n++
	}
	must.Do(t, stream.Err())
	return n
}
