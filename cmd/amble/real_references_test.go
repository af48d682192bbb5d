//go:build real

package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// references tell how the documents of a server name each page: by which element or attribute, such as "a href" or
// "link rel=next", and in which document, one for each. They are read with nothing of amble's, so that they can judge it.
type references struct {
	ways    map[page]map[string]page
	digests map[page]string          // of the content, as amble's output has it
	links   map[page]map[string]bool // URLs that a page links to by the ways that amble follows, other hosts included
}

// followed are the ways by which amble goes on.
var followed = []string{
	"a href", "area href", "frame src", "iframe src", "meta refresh",
	"link rel=next", "link rel=prev", "link rel=alternate", "link rel=canonical",
}

// cssReference finds what a style sheet names.
var cssReference = regexp.MustCompile(`(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)`)

// readReferences fetches the pages once more and reads all of them.
func readReferences(t *testing.T, server *nginx, pages []page) *references {
	t.Helper()
	client := &http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	addresses := make(map[string]string)
	for address, site := range server.hosts {
		addresses[site] = address
	}
	refs := &references{ways: make(map[page]map[string]page), digests: make(map[page]string), links: make(map[page]map[string]bool)}
	for _, p := range pages {
		u, err := url.Parse("http://" + addresses[p.site] + p.uri)
		if err != nil {
			t.Fatal(err)
		}
		if err := refs.read(client, server, p, u); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	return refs
}

func (r *references) read(client *http.Client, server *nginx, p page, u *url.URL) error {
	response, err := client.Get(u.String())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	r.digests[p] = "sha256:" + hex.EncodeToString(sum[:])
	r.links[p] = make(map[string]bool)
	add := func(base *url.URL, reference, way string) {
		target, err := base.Parse(strings.TrimSpace(reference))
		if err != nil || target.Scheme != "http" && target.Scheme != "https" {
			return
		}
		if slices.Contains(followed, way) && !strings.HasPrefix(reference, "#") {
			r.links[p][linked(target)] = true
		}
		if server.hosts[target.Host] == "" {
			return
		}
		named := page{server.hosts[target.Host], target.RequestURI()}
		if r.ways[named] == nil {
			r.ways[named] = make(map[string]page)
		}
		r.ways[named][way] = p
	}
	switch kind := response.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "text/html"):
		readHTML(body, u, add)
	case strings.HasPrefix(kind, "text/css"):
		for _, match := range cssReference.FindAllSubmatch(body, -1) {
			add(u, string(match[1]), "css url")
		}
	}
	if location := response.Header.Get("Location"); location != "" {
		add(u, location, "redirect")
	}
	return nil
}

// linked is the text of a URL without its fragment, and with a path.
func linked(u *url.URL) string {
	c := *u
	c.Fragment, c.RawFragment = "", ""
	if c.Path == "" {
		c.Path = "/"
	}
	return c.String()
}

// readHTML reports every attribute that holds a URL.
func readHTML(body []byte, base *url.URL, add func(base *url.URL, reference, way string)) {
	for tokens := html.NewTokenizer(bytes.NewReader(body)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokens.Token()
			attributes := make(map[string]string)
			for _, a := range token.Attr {
				attributes[a.Key] = a.Val
			}
			if href := attributes["href"]; token.Data == "base" && href != "" {
				if changed, err := base.Parse(href); err == nil {
					base = changed
				}
				continue
			}
			for _, name := range []string{"href", "src", "data", "action", "poster", "background"} {
				if attributes[name] != "" {
					add(base, attributes[name], way(token.Data, name, attributes))
				}
			}
			if target, found := refreshTarget(attributes); found && token.Data == "meta" {
				add(base, target, "meta refresh")
			}
		}
	}
}

// way says how an attribute names something.
func way(element, attribute string, attributes map[string]string) string {
	switch {
	case element == "link" && attributes["rel"] != "":
		return "link rel=" + strings.ToLower(attributes["rel"])
	case element == "link" && attributes["rev"] != "":
		return "link rev=" + strings.ToLower(attributes["rev"])
	}
	return element + " " + attribute
}

// refreshTarget is the URL of <meta http-equiv=refresh content="0; url=...">.
func refreshTarget(attributes map[string]string) (string, bool) {
	if !strings.EqualFold(attributes["http-equiv"], "refresh") {
		return "", false
	}
	_, target, found := strings.Cut(attributes["content"], "=")
	return strings.Trim(target, ` "'`), found
}

// describe lists the ways to a page, for people.
func (r *references) describe(p page) string {
	if len(r.ways[p]) == 0 {
		return "nothing that was fetched names it"
	}
	var b strings.Builder
	for way, from := range r.ways[p] {
		fmt.Fprintf(&b, "%s in %s; ", way, from)
	}
	return strings.TrimSuffix(b.String(), "; ")
}
