//go:build !core

package config

import (
	"strings"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// urlfrontier checks the addresses, the token and the delay of the service.
func (k *checker) urlfrontier() {
	u := k.c.URLFrontier
	if u.Listen != "" && !isListenAddress(u.Listen) {
		k.reject("urlfrontier.listen", `want host:port such as 127.0.0.1:7071, or "" for no service`)
	}
	if !isHeaderText(u.Token) || strings.Contains(u.Token, " ") {
		k.reject("urlfrontier.token", "want at most 256 printable ASCII characters without spaces")
	}
}

// serviceExposure checks the protection of a service that other machines can reach, and who fetches.
func (k *checker) serviceExposure() {
	u := k.c.URLFrontier
	k.together("urlfrontier", u.TLSCert, u.TLSKey)
	if u.Listen == "" {
		return
	}
	if !u.Robots && k.c.Crawl.Workers != 0 {
		k.conflict("urlfrontier.robots",
			"may be false only with crawl.workers: 0: amble itself always reads robots.txt")
	}
	if !isListenAddress(u.Listen) || isLoopback(u.Listen) || u.Plaintext || k.unsure("urlfrontier.token") {
		return
	}
	if u.Token == "" || u.TLSCert == "" {
		k.conflict("urlfrontier.listen",
			"other machines can reach it, so it needs urlfrontier.token, urlfrontier.tls_cert "+
				"and urlfrontier.tls_key; or set urlfrontier.plaintext: true in a network of your own, or listen on "+
				"127.0.0.1")
	}
}

// serve adapts the options of a crawl to the clients of the service.
func (u *URLFrontier) serve(o *crawl.Options) {
	if u.Listen == "" {
		return
	}
	o.ExitWhenDone = false // clients bring more
	if !u.Robots {
		o.IgnoreRobots, o.Frontier.Politeness.Delay = true, u.Delay
	}
}
