//go:build soak && linux

package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// BenchmarkScale imports a web of 100 pages a host by the program, crawls it for as long as AMBLE_SOAK says (ten
// minutes), kills the crawler and starts it again. AMBLE_BENCH_URLS is the number of URLs, in an order that looks
// random; by default a million. BENCH_HOSTS is over how many hosts they are. BENCH_STORE is a directory that keeps the
// store for the next run, BENCH_PROFILES one for profiles of the heap.
func BenchmarkScale(b *testing.B) {
	urls, length := 1_000_000, 10*time.Minute
	if n, err := strconv.Atoi(os.Getenv("AMBLE_BENCH_URLS")); err == nil {
		urls = n
	}
	if d, err := time.ParseDuration(os.Getenv("AMBLE_SOAK")); err == nil {
		length = d
	}
	hosts := urls / 100
	if n, err := strconv.Atoi(os.Getenv("BENCH_HOSTS")); err == nil {
		hosts = n
	}
	mesh := testweb.Mesh{Hosts: hosts, Pages: urls / hosts, Links: 10, PageBytes: 4 << 10, Addresses: 1000}
	config, kept := testweb.Config{CountOnly: true}, os.Getenv("BENCH_STORE")
	if kept != "" {
		config.Port = 18379 // the URLs of the store name it
	}
	web := must.Get(testweb.NewMesh(mesh, config))(b)
	b.Cleanup(func() { _ = web.Close() })
	b.Run(fmt.Sprintf("urls=%d/hosts=%d/crawl=%v", urls, mesh.Hosts, length), func(b *testing.B) {
		for range b.N {
			s := &scale{mesh: mesh, web: web, dir: cmp.Or(kept, b.TempDir()), api: freeAddress(b)}
			if _, err := os.Stat(filepath.Join(s.dir, storage.FileName)); err != nil {
				s.fill(b)
			}
			s.crawl(b, length)
		}
	})
}

// scale is one import and the crawl after it.
type scale struct {
	mesh testweb.Mesh
	web  *testweb.Web
	dir  string
	api  string // HOST:PORT
}

// freeAddress is where nothing listens.
func freeAddress(b *testing.B) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	defer l.Close()
	return l.Addr().String()
}

func (s *scale) amble(arguments ...string) *exec.Cmd {
	for _, setting := range []string{"data_dir=" + s.dir, "scope.mode=any", "fetch.allow_private=true",
		"fetch.resolver=" + s.web.ResolverAddr(), "fetch.contact=bot@one.example", "politeness.delay=1s",
		"politeness.ip_rate=0", "politeness.per_ip=64", "output.format=none", "server.listen=" + s.api,
		"server.pprof=true", "log.level=error"} {
		arguments = append(arguments, "--set", setting)
	}
	command := exec.Command(os.Args[0], arguments...)
	command.Args[0], command.Dir, command.Stderr = "amble", s.dir, os.Stderr
	command.Env = slices.DeleteFunc(os.Environ(), isSetting)
	return command
}

// fill imports all pages: those of a host are far from each other in the list.
func (s *scale) fill(b *testing.B) {
	command := s.amble("import", "-")
	list, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	must.Do(b, err)
	started, most := time.Now(), int64(0)
	w, total := bufio.NewWriterSize(list, 1<<20), s.mesh.TotalPages()
	step := 1_000_003 // a prime: all numbers come once
	for n, i := 0, 0; n < total; n, i = n+1, (i+step)%total {
		if _, err = fmt.Fprintln(w, s.web.URL(s.mesh.Host(i%s.mesh.Hosts), s.mesh.Path(i/s.mesh.Hosts))); err != nil {
			break
		}
		if n%100_000 == 0 {
			most = max(most, anonymousMemory(command.Process.Pid))
		}
	}
	must.Do(b, errors.Join(err, w.Flush(), list.Close(), command.Wait()))
	used := command.ProcessState
	file, err := os.Stat(filepath.Join(s.dir, storage.FileName))
	must.Do(b, err)
	b.ReportMetric(float64((used.UserTime()+used.SystemTime()).Microseconds())/float64(total), "import-cpu-µs/url")
	b.ReportMetric(time.Since(started).Seconds(), "import-s")
	b.ReportMetric(float64(file.Size())/float64(total), "disk-B/url")
	b.ReportMetric(float64(most)/(1<<20), "import-anonymous-MiB")
}

// crawl crawls for a while, and says how much memory that takes over time: at first hosts become active.
func (s *scale) crawl(b *testing.B, length time.Duration) {
	p := s.start(b)
	var memory []int64
	var list time.Duration
	before, end := s.web.Served(), time.Now().Add(length)
	for time.Now().Before(end) {
		time.Sleep(length / 100)
		memory = append(memory, anonymousMemory(p.Process.Pid))
		if n := len(memory); n%10 == 5 {
			s.profile(b, n)
		}
		for _, query := range []string{"", "?sort=waiting", "?state=ready", "?sort=name", "?contains=h999"} {
			took := must.Get(get("http://" + s.api + "/api/v1/hosts" + query))(b)
			list = max(list, took)
		}
	}
	for i := range memory {
		memory[i] >>= 20
	}
	b.Logf("MiB of anonymous memory over time: %d", memory)
	b.ReportMetric(float64(s.web.Served()-before)/length.Seconds(), "requests/s")
	b.ReportMetric(float64(slices.Max(memory[len(memory)/5:len(memory)*2/5])), "second-fifth-MiB")
	b.ReportMetric(float64(slices.Max(memory[len(memory)*4/5:])), "last-fifth-MiB")
	b.ReportMetric(float64(list.Milliseconds()), "longest-list-ms")
	_ = p.Process.Kill()
	_ = p.Wait()
	must.Do(b, s.web.Settle(b.Context()))
	before = s.web.Served()
	started := time.Now()
	p = s.amble("run")
	must.True(b, p.Start() == nil, "no second crawler")
	for s.web.Served() == before && time.Since(started) < 5*time.Minute {
		time.Sleep(time.Millisecond)
	}
	b.ReportMetric(float64(time.Since(started).Milliseconds()), "restart-ms")
	_ = p.Process.Kill()
	_ = p.Wait()
}

// start starts the crawler, and waits for its API.
func (s *scale) start(b *testing.B) *exec.Cmd {
	p := s.amble("run")
	must.Do(b, p.Start())
	b.Cleanup(func() { _ = p.Process.Kill() })
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := get("http://" + s.api + "/api/v1/status"); err == nil {
			return p
		} else if time.Now().After(end) {
			b.Fatal(err)
		}
	}
}

// get requests a page of the API, and says how long that took.
func get(url string) (time.Duration, error) {
	started := time.Now()
	r, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %.200s", url, r.Status, text)
	}
	return time.Since(started), err
}

// anonymousMemory is the anonymous memory of a process in bytes, 0 when it has ended.
func anonymousMemory(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// profile keeps a profile of the heap in the directory that BENCH_PROFILES names, if it names one.
func (s *scale) profile(b *testing.B, n int) {
	dir := os.Getenv("BENCH_PROFILES")
	if dir == "" {
		return
	}
	r, err := http.Get("http://" + s.api + "/debug/pprof/heap?debug=1")
	must.Do(b, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must.Do(b, errors.Join(err, os.WriteFile(fmt.Sprintf("%s/heap-%02d", dir, n), text, 0o600)))
}
