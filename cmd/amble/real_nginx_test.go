//go:build real

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// page names a resource apart from the port it is served on.
type page struct{ site, uri string }

func (p page) String() string { return p.site + p.uri }

// isRobots reports whether p is a robots.txt, which is not a page to anybody.
func (p page) isRobots() bool { return p.uri == "/robots.txt" }

// request is a line of nginx's log. The log has milliseconds, cut off, not rounded.
type request struct {
	page       page
	status     int
	start, end time.Time
	run        int // which start of amble made it, from 1; 0: somebody else
}

// nginx is a server of the sites, with a log of its own. It is not the service of the system.
type nginx struct {
	process *process
	log     string            // path of the access log
	hosts   map[string]string // host and port to name of the site
	seeds   []string
}

// configuration is that of nginx. The worker that is told to quit finishes what it serves and logs
// it.
var configuration = template.Must(template.New("nginx").Parse(`
daemon off;
worker_processes 1;
user {{.User}} {{.Group}};
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/error.log;
events { worker_connections 512; }
http {
	include /etc/nginx/mime.types;
	default_type application/octet-stream;
	log_format real escape=json '{"end":$msec,"took":$request_time,"connection":$connection,"status":$status,"host":"$http_host","uri":"$request_uri","agent":"$http_user_agent"}';
	access_log {{.Dir}}/access.log real;
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	keepalive_requests 100000;
	{{if .Pace}}
	limit_req_zone $server_addr zone=pace:1m rate={{.Pace}}r/s;
	limit_req zone=pace burst=200;
	{{end}}
	{{range .Servers}}
	server {
		listen {{.Address}};
		root "{{.Folder}}";
		{{if .Gzip}}gzip on;{{end}}
		{{if .Robots}}location = /robots.txt { return 200 "{{.Robots}}"; }{{end}}
	}
	{{end}}
}
`))

// configurationServer is a site as the configuration has it.
type configurationServer struct {
	Address, Folder, Robots string
	Gzip                    bool
}

// serve starts a server of the sites on free ports. pace is how many requests a second each site
// answers, the others wait; 0: as many as come.
func serve(t *testing.T, sites []site, pace int) *nginx {
	t.Helper()
	const tries = 3 // a port that was free may be taken when nginx listens on it
	for i := 1; ; i++ {
		n, err := tryServe(t, sites, pace)
		if err == nil {
			return n
		}
		must.True(t, i != tries, "%v", err)
	}
}

func tryServe(t *testing.T, sites []site, pace int) (*nginx, error) {
	t.Helper()
	dir := t.TempDir()
	n := &nginx{log: filepath.Join(dir, "access.log"), hosts: make(map[string]string)}
	var servers []configurationServer
	for i, address := range freeAddresses(t, sites) {
		n.hosts[address] = sites[i].name
		n.seeds = append(n.seeds, "http://"+address+"/")
		servers = append(servers, configurationServer{
			Address: address, Folder: sites[i].folder, Robots: strings.ReplaceAll(sites[i].robots, "\n", `\n`),
			Gzip: sites[i].gzip,
		})
	}
	name, group := currentUser(t)
	var text bytes.Buffer
	must.Do(t, configuration.Execute(&text,
		map[string]any{"Dir": dir, "User": name, "Group": group, "Pace": pace, "Servers": servers}))
	file := filepath.Join(dir, "nginx.conf")
	must.Do(t, os.WriteFile(file, text.Bytes(), 0o600))
	n.process = start(t, "nginx", "-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"))
	return n, n.listening()
}

// listening waits until every host answers.
func (n *nginx) listening() error {
	for address := range n.hosts {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			connection, err := net.DialTimeout("tcp", address, time.Second)
			if err == nil {
				connection.Close()
				break
			}
			if !n.process.running() || time.Now().After(deadline) {
				return fmt.Errorf("nginx does not listen on %s: %v\n%s", address, err, &n.process.output)
			}
		}
	}
	return nil
}

// served counts the requests that nginx has logged so far.
func (n *nginx) served() int {
	content, _ := os.ReadFile(n.log) // not there yet: none
	return bytes.Count(content, []byte("\n"))
}

// stop ends the server and returns all requests it served, in the order they ended.
func (n *nginx) stop(t *testing.T) []request {
	t.Helper()
	n.process.signal(syscall.SIGQUIT)
	err := n.process.wait(20 * time.Second)
	must.True(t, err == nil, "%v\n%s", err, &n.process.output)
	content := must.Get(os.ReadFile(n.log))(t)
	var requests []request
	for line := range bytes.Lines(content) {
		r, err := n.parse(line)
		must.Do(t, err, "nginx's log:", line)
		requests = append(requests, r)
	}
	return requests
}

// parse reads a line of the log.
func (n *nginx) parse(line []byte) (request, error) {
	var l struct {
		End, Took        float64 // seconds
		Status           int
		Host, URI, Agent string
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return request{}, err
	}
	end := time.UnixMilli(int64(l.End*1000 + 0.5)) // the half rounds what the floating point number lost
	run, err := strconv.Atoi(strings.TrimPrefix(l.Agent, agentOfRun))
	if err != nil {
		run = 0
	}
	return request{
		page: page{n.hosts[l.Host], l.URI}, status: l.Status, run: run,
		start: end.Add(-time.Duration(l.Took*1000+0.5) * time.Millisecond), end: end,
	}, nil
}

// freeAddresses finds a free port for each site.
func freeAddresses(t *testing.T, sites []site) []string {
	t.Helper()
	var addresses []string
	for _, s := range sites {
		listener := must.Get(net.Listen("tcp", s.host+":0"))(t)
		defer listener.Close() // not before all are found
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses
}

// currentUser is who nginx's workers run as: nobody else could read what the test wrote.
func currentUser(t *testing.T) (name, group string) {
	t.Helper()
	u := must.Get(user.Current())(t)
	g := must.Get(user.LookupGroupId(u.Gid))(t)
	return u.Username, g.Name
}
