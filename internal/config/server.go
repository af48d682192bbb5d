package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// server checks the addresses, names and tokens of the API.
func (k *checker) server() {
	s := k.c.Server
	if s.Listen != "" && !isListenAddress(s.Listen) {
		k.reject("server.listen", `want host:port such as 127.0.0.1:8377, or "" for no API`)
	}
	for key, token := range map[string]string{"server.token": s.Token, "server.read_token": s.ReadToken,
		"server.fetch_token": s.FetchToken} {
		if !isHeaderText(token) || strings.Contains(token, " ") {
			k.reject(key, "want at most 256 printable ASCII characters without spaces")
		}
	}
	for i, name := range s.Hosts {
		if name == "" || strings.ContainsAny(name, " /:@") || !isHeaderText(name) {
			k.rejectItem("server.hosts", i, name, "want the name of a host without scheme and port, such as "+
				"crawler.example.org")
		}
	}
}

// together checks the certificate and the key of a section.
func (k *checker) together(section, cert, key string) {
	alone := section + ".tls_cert"
	if cert == "" {
		alone = section + ".tls_key"
	}
	if (cert == "") != (key == "") {
		k.conflict(alone, section+".tls_cert and "+section+".tls_key belong together; set both or none")
	}
}

// exposure checks the protection of an API that other machines can reach.
func (k *checker) exposure() {
	s := k.c.Server
	switch {
	case s.ReadToken != "" && s.Token == "":
		k.conflict("server.read_token", "needs server.token too: without it every client may do everything")
	case s.ReadToken != "" && s.ReadToken == s.Token:
		k.conflict("server.read_token", "is the same as server.token; want another")
	}
	switch {
	case s.FetchToken != "" && s.Token == "":
		k.conflict("server.fetch_token", "needs server.token too: without it every client may do everything")
	case s.FetchToken != "" && (s.FetchToken == s.Token || s.FetchToken == s.ReadToken):
		k.conflict("server.fetch_token", "is the same as another token; want one of its own")
	}
	if k.c.Crawl.Workers == 0 && s.Listen == "" && k.c.URLFrontier.Listen == "" {
		k.conflict("crawl.workers", "then only fetchers with leases fetch pages, and they need server.listen or "+
			"urlfrontier.listen")
	}
	k.together("server", s.TLSCert, s.TLSKey)
	if s.Listen == "" || !isListenAddress(s.Listen) || isLoopback(s.Listen) || k.unsure("server.token") {
		return
	}
	switch {
	case s.Token == "":
		k.conflict("server.listen", "other machines can reach it, so server.token must be set too; or listen on "+
			"127.0.0.1")
	case s.TLSCert == "" && !s.BehindTLSProxy:
		k.conflict("server.listen", "other machines can reach it, and the token would cross the network unencrypted: "+
			"set server.tls_cert and server.tls_key, or server.behind_tls_proxy: true if something in front does "+
			"TLS; or listen on 127.0.0.1")
	}
}

func isListenAddress(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.ContainsAny(host, " /") {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && 0 <= n && n <= 65535
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
