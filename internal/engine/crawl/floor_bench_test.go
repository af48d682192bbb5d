package crawl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// floorChild is the environment variable of the child of BenchmarkFloor.
const floorChild = "AMBLE_FLOOR_CHILD"

// floorConfig is what that child fetches.
type floorConfig struct {
	Resolver string
	Port     uint16
	Mesh     testweb.Mesh
}

// BenchmarkFloor is BenchmarkHosts with the least that a program in Go does for a host: a query, one
// connection, robots.txt and the pages in a row. It reads them and looks for nothing in them.
func BenchmarkFloor(b *testing.B) {
	for _, hosts := range []int{100, 5000} {
		m := testweb.Mesh{Hosts: hosts, Pages: 10_000 / hosts, Links: 20, PageBytes: 8 << 10}
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			web := startMesh(b, m, testweb.Config{CountOnly: true})
			root := parse(b, web.URL(m.Host(0), "/"))
			var cpu time.Duration
			for b.Loop() {
				dir, before := b.TempDir(), web.Served()
				testkit.PrepareChild(b, dir, floorConfig{web.ResolverAddr(), root.Port(), m})
				child, done := testkit.StartChild(b, floorChild, dir)
				must.Do(b, <-done)
				cpu += child.ProcessState.UserTime() + child.ProcessState.SystemTime()
				n, want := web.Served()-before, int64(m.TotalPages()+hosts)
				must.True(b, n == want, "%d requests, want %d", n, want)
			}
			b.ReportMetric(float64(cpu.Microseconds())/float64(m.TotalPages()*b.N), "cpu-µs/page")
		})
	}
}

// fetchAsChild is the child of BenchmarkFloor.
func fetchAsChild(_ string, c floorConfig) error {
	hosts := make(chan int, c.Mesh.Hosts)
	for h := range c.Mesh.Hosts {
		hosts <- h
	}
	close(hosts)
	failed := make([]error, benchWorkers)
	var wg sync.WaitGroup
	for i := range failed {
		wg.Go(func() { failed[i] = c.fetchHosts(hosts) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// fetchHosts fetches one host after the other.
func (c *floorConfig) fetchHosts(hosts <-chan int) error {
	names, err := net.Dial("udp", c.Resolver)
	if err != nil {
		return err
	}
	defer names.Close()
	reader := bufio.NewReaderSize(nil, 16<<10)
	for h := range hosts {
		address, err := c.lookUp(names, c.Mesh.Host(h))
		if err != nil {
			return err
		}
		conn, err := net.Dial("tcp", address.String())
		if err != nil {
			return err
		}
		reader.Reset(conn)
		err = c.fetchPages(conn, reader, c.Mesh.Host(h))
		if err := errors.Join(err, conn.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lookUp queries the address of a name.
func (c *floorConfig) lookUp(names net.Conn, host string) (netip.AddrPort, error) {
	to := netip.AddrPortFrom(netip.Addr{}, c.Port)
	room := make([]byte, 1232)
	b := dnsmessage.NewBuilder(room[:0], dnsmessage.Header{RecursionDesired: true})
	q := dnsmessage.Question{Name: dnsmessage.MustNewName(host + "."), Type: dnsmessage.TypeA,
		Class: dnsmessage.ClassINET}
	if err := errors.Join(b.StartQuestions(), b.Question(q)); err != nil {
		return to, err
	}
	query, err := b.Finish()
	if err == nil {
		_, err = names.Write(query)
	}
	if err != nil {
		return to, err
	}
	n, err := names.Read(room)
	if err != nil {
		return to, err
	}
	var p dnsmessage.Parser
	if _, err := p.Start(room[:n]); err != nil {
		return to, err
	}
	if err := p.SkipAllQuestions(); err != nil {
		return to, err
	}
	if _, err := p.AnswerHeader(); err != nil {
		return to, err
	}
	a, err := p.AResource()
	return netip.AddrPortFrom(netip.AddrFrom4(a.A), c.Port), err
}

// fetchPages fetches robots.txt and the pages of a host.
func (c *floorConfig) fetchPages(conn net.Conn, reader *bufio.Reader, host string) error {
	for i := -1; i < c.Mesh.Pages; i++ {
		path := "/robots.txt"
		if i >= 0 {
			path = c.Mesh.Path(i)
		}
		const head = "GET %s HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: amble-test\r\n\r\n"
		if _, err := fmt.Fprintf(conn, head, path, host, c.Port); err != nil {
			return err
		}
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
	}
	return nil
}
