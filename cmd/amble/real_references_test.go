//go:build real

package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// references tell how the documents of a server name each page: by which element or attribute, such
// as "a href" or "link rel=next", and in which document, one for each. They are read with nothing
// of amble's, so that they can judge it.
type references struct {
	sources map[page]map[string]page
	digests map[page]string // of the content, as amble's output has it
	// URLs that a page links to by the sources that amble follows, other hosts included
	links map[page]map[string]bool
}

// followed are the sources by which amble goes on.
var followed = []string{
	"a href", "area href", "frame src", "iframe src", "meta refresh",
	"link rel=next", "link rel=prev", "link rel=alternate", "link rel=canonical",
}

// cssReference finds what a style sheet names.
var cssReference = regexp.MustCompile(`(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)`)

// readReferences fetches the pages once more and reads all of them.
func readReferences(t *testing.T, server *nginx, pages []page) *references {
	t.Helper()
	client := &http.Client{Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	addresses := make(map[string]string)
	for address, site := range server.hosts {
		addresses[site] = address
	}
	refs := &references{sources: make(map[page]map[string]page), digests: make(map[page]string),
		links: make(map[page]map[string]bool)}
	for _, p := range pages {
		u := must.Get(url.Parse("http://" + addresses[p.site] + p.uri))(t)
		must.Do(t, refs.read(client, server, p, u), p)
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
	add := func(base *url.URL, reference, source string) {
		target, err := base.Parse(strings.TrimSpace(reference))
		if err != nil || target.Scheme != "http" && target.Scheme != "https" {
			return
		}
		if slices.Contains(followed, source) && !strings.HasPrefix(reference, "#") {
			r.links[p][linked(target)] = true
		}
		if server.hosts[target.Host] == "" {
			return
		}
		listed := page{server.hosts[target.Host], target.RequestURI()}
		if r.sources[listed] == nil {
			r.sources[listed] = make(map[string]page)
		}
		r.sources[listed][source] = p
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
func readHTML(body []byte, base *url.URL, add func(base *url.URL, reference, source string)) {
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
					add(base, attributes[name], source(token.Data, name, attributes))
				}
			}
			if target, found := refreshTarget(attributes); found && token.Data == "meta" {
				add(base, target, "meta refresh")
			}
		}
	}
}

// source says how an attribute names something.
func source(element, attribute string, attributes map[string]string) string {
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

// describe lists the sources to a page, for people.
func (r *references) describe(p page) string {
	if len(r.sources[p]) == 0 {
		return "nothing that was fetched names it"
	}
	var b strings.Builder
	for source, from := range r.sources[p] {
		fmt.Fprintf(&b, "%s in %s; ", source, from)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// notFollowed are the sources by which wget goes on and amble does not, and why that is right. A
// page that only wget fetched is explained if every source to it is one of these. That amble
// fetches what wget does not is never right here.
var notFollowed = map[string]string{
	"img src":                "an image is shown in a page and is none",
	"script src":             "a script is run in a page and is none",
	"link rel=stylesheet":    "a style sheet is no page",
	"link rel=icon":          "an icon is no page",
	"link rel=shortcut icon": "an icon is no page",
	"link rel=search":        "a search description is for browsers",
	"link rev=made":          "names an author; rev is obsolete",
	"object data":            "an embedded object is no page",
	"embed src":              "an embedded object is no page",
	"input src":              "an image is shown in a page and is none",
	"video src":              "media are played in a page and are none",
	"audio src":              "media are played in a page and are none",
	"source src":             "media are played in a page and are none",
	"video poster":           "an image is shown in a page and is none",
	"body background":        "an image is shown in a page and is none",
	"form action":            "a form is for people to fill in",
	"css url":                "what a style sheet names is no page",
}

// compare holds what amble fetched against what wget fetched. Every difference must have a reason.
func compare(t *testing.T, ofAmble, ofWget map[page]int, refs *references) {
	t.Helper()
	reasons := make(map[string]int)
	for _, p := range sorted(ofWget) {
		status, both := ofAmble[p]
		switch reason := explain(refs.sources[p]); {
		case both && status != ofWget[p]:
			t.Errorf("%s: status %d for amble, %d for wget", p, status, ofWget[p])
		case both:
		case reason == "":
			t.Errorf("missed: wget fetched %s and amble did not: %s", p, refs.describe(p))
		default:
			reasons[reason]++
		}
	}
	for _, p := range sorted(ofAmble) {
		if _, both := ofWget[p]; !both {
			t.Errorf("invented: amble fetched %s and wget did not: %s", p, refs.describe(p))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%4d fetched by wget alone: %s", reasons[reason], reason)
	}
}

// explain says why these sources are not followed; it says nothing if one of them should be, or if
// there is none.
func explain(sources map[string]page) string {
	var reasons []string
	for source := range sources {
		reason := notFollowed[source]
		if reason == "" {
			return ""
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; ")
}

// sameSet reports what one of the two sets has and the other has not.
func sameSet[A, B any](t *testing.T, nameA string, a map[page]A, nameB string, b map[page]B) {
	t.Helper()
	for _, p := range sorted(a) {
		_, both := b[p]
		assert.True(t, both, "%s is in %s and not in %s", p, nameA, nameB)
	}
	for _, p := range sorted(b) {
		_, both := a[p]
		assert.True(t, both, "%s is in %s and not in %s", p, nameB, nameA)
	}
}

// sorted are the pages of a set in their order.
func sorted[V any](set map[page]V) []page {
	return slices.SortedFunc(maps.Keys(set), func(a, b page) int { return strings.Compare(a.String(), b.String()) })
}

// pagesOf is the status of each page of a log, robots.txt left out.
func pagesOf(log []request) map[page]int {
	pages := make(map[page]int)
	for _, r := range log {
		if !r.page.isRobots() {
			pages[r.page] = r.status
		}
	}
	return pages
}

const crawlTimeout = 20 * time.Minute // of one crawl by anybody, on a machine that does much else

// wget fetches the sites recursively, with robots.txt obeyed, and returns how long that took.
func wget(t *testing.T, server *nginx, more ...string) time.Duration {
	t.Helper()
	arguments := []string{
		"--recursive", "--level=inf", "--no-parent", "--execute", "robots=on",
		"--no-verbose", "--no-config", "--no-proxy", "--tries=1", "--timeout=20", "--directory-prefix", t.TempDir(),
	}
	begun := time.Now()
	output, err := command(t, crawlTimeout, "wget", slices.Concat(arguments, more, server.seeds)...)
	took := time.Since(begun)
	const serverError = "exit status 8" // an answer such as 404; the log has it
	if err != nil && !strings.HasSuffix(err.Error(), serverError) {
		t.Fatalf("%v\n%s", err, tail(output))
	}
	return took
}

// tail is the end of a long text.
func tail(text string) string {
	const enough = 3000
	if len(text) > enough {
		return "..." + text[len(text)-enough:]
	}
	return text
}
