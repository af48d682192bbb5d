//go:build real

package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestRealServers crawls two servers of different make, nginx and lighttpd: HTTP/2 over TLS with
// certificates of an authority of the test's own, directory listings as each writes them, gzip, and
// redirects from one to the other.
func TestRealServers(t *testing.T) {
	forgetSettings(t)
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	installServers(t)
	binary, dir := build(t), t.TempDir()
	authority := newAuthority(t, dir)
	addresses := freeAddresses(t, []site{{host: "127.0.0.4"}, {host: "127.0.0.5"}})
	servers := []*secureServer{
		{name: "lighttpd", address: addresses[0], other: addresses[1], start: []string{"lighttpd", "-D", "-f"},
			configuration: lighttpdConfiguration},
		{name: "nginx", address: addresses[1], other: addresses[0], start: []string{"nginx", "-c"},
			configuration: nginxConfiguration},
	}
	seeds := []string{}
	for _, s := range servers {
		s.dir = filepath.Join(dir, s.name)
		s.plant(t)
		authority.certify(t, s.dir, s.address)
		s.run(t)
		seeds = append(seeds, "https://"+s.address+"/files/")
	}
	settings := fmt.Sprintf("data_dir: ./data\ncrawl: {seeds: [%s], workers: 16}\npoliteness: {%s}\nfetch: "+
		"{allow_private: true, tls_ca_file: ca.pem, user_agent: amble-real}\nserver: {listen: \"\"}\n",
		strings.Join(seeds, ", "), fast)
	must.Do(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(settings), 0o600))
	p := start(t, binary, "run", "-c", filepath.Join(dir, "config.yaml"))
	if err := p.wait(time.Minute); err != nil {
		t.Fatalf("amble run: %v\n%s", err, tail(p.output.String()))
	}
	for _, s := range servers {
		s.check(t)
	}

	// Without the authority nothing is fetched: every certificate is refused, and no seed was fetched.
	p = start(t, binary, "run", "-c", filepath.Join(dir, "config.yaml"), "--set", "fetch.tls_ca_file=", "--set",
		"data_dir="+filepath.Join(dir, "strict"), "--set", "crawl.give_up_after=1s")
	var exit *exec.ExitError
	if err := p.wait(time.Minute); !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Fatalf("amble run: %v, want exit status 4\n%s", err, tail(p.output.String()))
	}
	for _, s := range servers {
		if n := len(s.requests(t)); n != s.seen {
			t.Errorf("%s got %d requests from a crawler that does not trust it: %v", s.name, n-s.seen,
				s.requests(t)[s.seen:])
		}
	}
}

func installServers(t *testing.T) {
	t.Helper()
	var missing []string
	for _, need := range []struct {
		there bool
		name  string
	}{
		{has("nginx"), "nginx"}, {has("lighttpd"), "lighttpd"},
		{isFile("/usr/lib/lighttpd/mod_openssl.so"), "lighttpd-mod-openssl"},
		{isFile("/usr/lib/lighttpd/mod_deflate.so"), "lighttpd-mod-deflate"},
	} {
		if !need.there {
			missing = append(missing, need.name)
		}
	}
	if len(missing) > 0 {
		aptInstall(t, missing)
	}
}

// secureServer is a server of either make. It is not the service of the system.
type secureServer struct {
	name, dir      string
	address, other string
	start          []string
	configuration  string
	process        *process
	seen           int // requests that check saw
	marks          int // requests of log
}

// lighttpdConfiguration offers HTTP/2 by itself.
const lighttpdConfiguration = `
server.modules = ("mod_redirect", "mod_deflate", "mod_openssl", "mod_accesslog")
server.document-root = "{{.Dir}}/root"
server.bind = "{{.Host}}"
server.port = {{.Port}}
server.errorlog = "{{.Dir}}/error.log"
ssl.engine = "enable"
ssl.pemfile = "{{.Dir}}/server.pem"
dir-listing.activate = "enable"
index-file.names = ("index.html")
mimetype.assign = (".html" => "text/html", ".txt" => "text/plain")
deflate.mimetypes = ("text/")
deflate.allowed-encodings = ("gzip")
deflate.cache-dir = ""
url.redirect = ("^/moved/(.*)$" => "https://{{.Other}}/hidden/$1")
url.redirect-code = 301
accesslog.filename = "{{.Dir}}/access.log"
accesslog.format = "%U %s %H %{Content-Encoding}o"
`

const nginxConfiguration = `
daemon off;
worker_processes 1;
user {{.User}} {{.Group}};
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/error.log;
events { worker_connections 256; }
http {
	types { text/html html; text/plain txt; }
	log_format real '$request_uri $status $server_protocol $sent_http_content_encoding';
	access_log {{.Dir}}/access.log real;
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	server {
		listen {{.Host}}:{{.Port}} ssl http2;
		ssl_certificate {{.Dir}}/server.pem;
		ssl_certificate_key {{.Dir}}/server.pem;
		root {{.Dir}}/root;
		autoindex on;
		gzip on;
		gzip_types text/plain;
		location /moved/ { rewrite ^/moved/(.*)$ https://{{.Other}}/hidden/$1 permanent; }
	}
}
`

// plant makes the files: a tree under /files/ that only its listings tell of, with a page that
// links to addresses that have moved, and what has moved to here, under /hidden/.
func (s *secureServer) plant(t *testing.T) {
	t.Helper()
	body := "<!DOCTYPE html><title>a page</title>" +
		strings.Repeat("<p>It has words enough to be worth a compression.", 100)
	var moved strings.Builder
	for i := range 5 {
		fmt.Fprintf(&moved, "<a href=\"/moved/%d.html\">moved</a>\n", i)
		s.write(t, fmt.Sprintf("hidden/%d.html", i), body)
	}
	s.write(t, "index.html", body) // the parent of the listing, which would tell of the rest
	s.write(t, "files/moved list.html", body+moved.String())
	for i := range 3 {
		for j := range 3 {
			for k := range 4 {
				s.write(t, fmt.Sprintf("files/part %d/ü%d/page&%d.html", i, j, k), body)
			}
			s.write(t, fmt.Sprintf("files/part %d/ü%d/100%%.txt", i, j), strings.Repeat("plain text\n", 200))
		}
	}
}

// write makes a file. Its name ends its text: the same document everywhere would be a wall.
func (s *secureServer) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, "root", name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(text+"\n"+name), 0o644))
}

// run starts the server and waits until it listens.
func (s *secureServer) run(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.address)
	must.Do(t, err)
	name, group := currentUser(t)
	var text bytes.Buffer
	must.Do(t, template.Must(template.New(s.name).Parse(s.configuration)).Execute(&text, map[string]any{
		"Dir": s.dir, "Host": host, "Port": port, "Other": s.other, "User": name, "Group": group,
	}))
	file := filepath.Join(s.dir, "server.conf")
	must.Do(t, os.WriteFile(file, text.Bytes(), 0o600))
	s.process = start(t, s.start[0], append(s.start[1:], file)...)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		connection, err := net.DialTimeout("tcp", s.address, time.Second)
		if err == nil {
			connection.Close()
			return
		}
		must.True(t, s.process.running() && !time.Now().After(deadline), "%s does not listen on %s: %v\n%s", s.name,
			s.address, err, &s.process.output)
	}
}

// logged is a line of the access log.
type logged struct {
	path, status, protocol, coding string
}

// markPath is the path of the requests by which the test knows that a log is complete.
const markPath = "/mark-of-the-test"

// log returns the access log with all requests that have ended: the test makes one of its own, and
// waits until that is in the log, because a server writes its log in the order of the responses.
// lighttpd writes it when it has time to, and in any case on SIGHUP.
func (s *secureServer) log(t *testing.T) string {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	s.marks++
	response := must.Get((&http.Client{Transport: transport}).Get("https://" + s.address + markPath))(t)
	response.Body.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if s.name == "lighttpd" {
			s.process.signal(syscall.SIGHUP)
		}
		content := must.Get(os.ReadFile(filepath.Join(s.dir, "access.log")))(t)
		if strings.Count(string(content), markPath) == s.marks {
			return string(content)
		}
		must.True(t, !time.Now().After(deadline), "%s does not write its log:\n%s", s.name, content)
	}
}

// requests reads the access log.
func (s *secureServer) requests(t *testing.T) (all []logged) {
	t.Helper()
	for line := range strings.Lines(s.log(t)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		n := len(words)
		if n < 4 || words[0] == "*" || words[0] == markPath { // lighttpd also writes down connections, as *
			continue
		}
		path := must.Get(url.PathUnescape(strings.Join(words[:n-3], " ")))(t)
		all = append(all, logged{path, words[n-3], words[n-2], words[n-1]})
	}
	return all
}

// check holds the log against the files: each was fetched once, over HTTP/2, what can be compressed
// was, and the other server's redirects led here.
func (s *secureServer) check(t *testing.T) {
	t.Helper()
	want := map[string]string{"/robots.txt": "404", "/files/": "200", "/": "200"}
	must.Do(t, filepath.WalkDir(filepath.Join(s.dir, "root"), func(path string, d os.DirEntry, err error) error {
		name := strings.TrimPrefix(path, filepath.Join(s.dir, "root"))
		switch {
		case err != nil || name == "" || name == "/index.html" || name == "/hidden":
		case d.IsDir():
			want[name+"/"] = "200"
		default:
			want[name] = "200"
		}
		return err
	}))
	for i := range 5 {
		want[fmt.Sprintf("/moved/%d.html", i)] = "301"
	}
	seen, compressed := make(map[string]string), 0
	requests := s.requests(t)
	s.seen = len(requests)
	for _, r := range requests {
		_, twice := seen[r.path]
		assert.True(t, !twice, "%s: %s was fetched twice", s.name, r.path)
		seen[r.path] = r.status
		assert.Equal(t, r.protocol, "HTTP/2.0", s.name, r.path, "came over")
		if r.coding == "gzip" {
			compressed++
		}
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		assert.Equal(t, seen[path], want[path], s.name, path, "was answered")
		delete(seen, path)
	}
	assert.True(t, len(seen) <= 0, "%s: also fetched: %v", s.name, seen)
	assert.True(t, compressed >= 30, "%s: %d answers were compressed", s.name, compressed)
	t.Logf("%-8s %d requests, %d answers compressed", s.name, s.seen, compressed)
}

// authority signs certificates. Its own is in ca.pem.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	a := &authority{key: key, certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	der := must.Get(x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key))(t)
	writePEM(t, filepath.Join(dir, "ca.pem"), &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// certify writes key and certificate for the host of an address into server.pem.
func (a *authority) certify(t *testing.T, dir, address string) {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	must.Do(t, err)
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host},
		IPAddresses: []net.IP{net.ParseIP(host)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))(t)
	private := must.Get(x509.MarshalECPrivateKey(key))(t)
	writePEM(t, filepath.Join(dir, "server.pem"), &pem.Block{Type: "EC PRIVATE KEY", Bytes: private},
		&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func writePEM(t *testing.T, path string, blocks ...*pem.Block) {
	t.Helper()
	var b bytes.Buffer
	for _, block := range blocks {
		must.Do(t, pem.Encode(&b, block))
	}
	must.Do(t, os.WriteFile(path, b.Bytes(), 0o600))
}
