package extract

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// maxDirectives bounds Directives.Seen and Directives.Preferences, maxDirective a single one in
	// bytes.
	maxDirectives, maxDirective = 32, 256
	// maxLicenses bounds Directives.Licenses, maxLicense a single one in bytes.
	maxLicenses, maxLicense = 8, 2048
	// maxTerms bounds one of Directives.Terms, in bytes; there are maxLicenses of them.
	maxTerms = 64 << 10
)

// Directives are the directives of a page for crawlers: in X-Robots-Tag, in <meta name=robots>, and
// in either under one of our tokens. The strictest of several sources counts. In the lists, what the
// header says comes before what the page says.
type Directives struct {
	// Seen are the directives for this crawler, in lower case, each once: "noindex",
	// "max-snippet:20".
	Seen []string
	// NoIndex and NoFollow are also set by "none".
	NoIndex, NoFollow bool
	// UnavailableAfter is the earliest time after which the page must not be shown; zero: none.
	UnavailableAfter time.Time
	// Preferences are the page's wishes for artificial intelligence and text mining, as name and
	// value: "content-usage: train-ai=n", "robots: noai", "tdm-reservation: 1".
	Preferences []string
	// Licenses are the targets of Link fields and of <link rel=license type=application/rsl+xml>, as
	// written: references to terms for the page (Really Simple Licensing 1.0).
	Licenses []string
	// Terms are the documents of Really Simple Licensing in scripts of the page.
	Terms []string
}

// SaysMore reports whether the directives of a page are more than those of its header.
func (d *Directives) SaysMore(header Directives) bool {
	return len(d.Seen) > len(header.Seen) || len(d.Preferences) > len(header.Preferences) ||
		len(d.Licenses)+len(d.Terms) > len(header.Licenses)
}

// HeaderFields returns the fields of a response that change what is read out of its body.
func HeaderFields() []string {
	return []string{"Content-Type", "Content-Usage", "Link", "Tdm-Policy", "Tdm-Reservation", "X-Robots-Tag"}
}

// HeaderDirectives returns the directives in the header of a response for a crawler with these
// tokens.
func HeaderDirectives(header http.Header, tokens []string) Directives {
	var d Directives
	for _, value := range header.Values("X-Robots-Tag") {
		d.addTag(value, tokens)
	}
	for _, name := range []string{"Content-Usage", "Tdm-Reservation", "Tdm-Policy"} {
		for _, value := range header.Values(name) {
			d.prefer(strings.ToLower(name), value)
		}
	}
	for _, value := range header.Values("Link") {
		d.addLinks(value)
	}
	return d
}

// addLinks takes a value of Link (RFC 8288, section 3). Only targets with rel=license matter.
func (d *Directives) addLinks(value string) {
	value = clip(value, maxDirectives*maxDirective)
	for {
		_, rest, ok := strings.Cut(value, "<")
		target, rest, closed := strings.Cut(rest, ">")
		if !ok || !closed {
			return
		}
		parameters, _, _ := strings.Cut(rest, "<") // up to the next target; one within quotes costs that link only
		for parameter := range strings.FieldsFuncSeq(parameters, func(r rune) bool { return r == ';' || r == ',' }) {
			name, value, _ := strings.Cut(parameter, "=")
			relations := strings.Trim(strings.TrimSpace(value), `"`)
			if strings.EqualFold(strings.TrimSpace(name), "rel") && hasWord(relations, "license") {
				d.addLicense(target)
			}
		}
		value = rest
	}
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

func (d *Directives) addLicense(target string) {
	if target = strings.TrimSpace(target); target != "" && len(d.Licenses) < maxLicenses && len(target) <= maxLicense &&
		!slices.Contains(d.Licenses, target) {
		d.Licenses = append(d.Licenses, strings.ToValidUTF8(target, "\ufffd"))
	}
}

// addTag takes a value of X-Robots-Tag. It may begin with the name of a crawler. Within a value,
// such a name applies to the directives behind it.
func (d *Directives) addTag(value string, tokens []string) {
	ours := true
	for _, part := range splitDirectives(value) {
		if name, rest, ok := strings.Cut(part, ":"); ok && !takesValue(name) {
			ours = isToken(name, tokens)
			part = rest
		}
		if ours {
			d.add(part)
		}
	}
}

// addMeta takes a <meta> with a name: "robots", one of our tokens, or a preference.
func (d *Directives) addMeta(name, content string, tokens []string) {
	switch {
	case strings.EqualFold(name, "robots") || isToken(name, tokens):
		for _, part := range splitDirectives(content) {
			if before, _, _ := strings.Cut(part, ":"); takesValue(before) {
				d.add(part)
				continue
			}
			for word := range strings.FieldsSeq(part) {
				d.add(word)
			}
		}
	case strings.EqualFold(name, "tdm-reservation"), strings.EqualFold(name, "tdm-policy"):
		d.prefer(strings.ToLower(name), content)
	}
}

// splitDirectives splits a list at its commas and semicolons, but not within a date such as "Wed,
// 25 Jun 2025".
func splitDirectives(list string) []string {
	parts := strings.FieldsFunc(clip(list, maxDirectives*maxDirective),
		func(r rune) bool { return r == ',' || r == ';' })
	for i := 0; i+1 < len(parts); i++ {
		colon := strings.LastIndexByte(parts[i], ':')
		if isWeekday(parts[i][colon+1:]) && strings.Contains(strings.ToLower(parts[i]), unavailableAfter) {
			parts[i] += "," + parts[i+1]
			parts = slices.Delete(parts, i+1, i+2)
		}
	}
	return parts
}

func isWeekday(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	for day := time.Sunday; day <= time.Saturday; day++ {
		if name := strings.ToLower(day.String()); len(text) >= 3 && strings.HasPrefix(name, text) {
			return true
		}
	}
	return false
}

const unavailableAfter = "unavailable_after"

// takesValue reports whether name is a directive that has a value, and so not the name of a
// crawler.
func takesValue(name string) bool {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case unavailableAfter, "max-snippet", "max-image-preview", "max-video-preview":
		return true
	}
	return false
}

// add takes one directive.
func (d *Directives) add(directive string) {
	name, value, has := strings.Cut(strings.ToLower(strings.Join(strings.Fields(directive), " ")), ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch name {
	case "":
		return
	case "noindex":
		d.NoIndex = true
	case "nofollow":
		d.NoFollow = true
	case "none":
		d.NoIndex, d.NoFollow = true, true
	case "noai", "noimageai", "noml":
		d.prefer("robots", name)
	case unavailableAfter:
		if at := parseDate(clip(directive[strings.Index(directive, ":")+1:], maxDirective)); !at.IsZero() &&
			(d.UnavailableAfter.IsZero() || at.Before(d.UnavailableAfter)) {
			d.UnavailableAfter = at
		}
	}
	if has {
		name += ":" + value
	}
	d.Seen = remember(d.Seen, name)
}

func (d *Directives) prefer(name, value string) {
	if value = strings.Join(strings.Fields(value), " "); value != "" {
		d.Preferences = remember(d.Preferences, name+": "+value)
	}
}

// remember adds a text to a list, once and within bounds.
func remember(list []string, text string) []string {
	text = clip(strings.ToValidUTF8(text, "\ufffd"), maxDirective)
	if len(list) >= maxDirectives || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

func isToken(name string, tokens []string) bool {
	name = strings.TrimSpace(name)
	return slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, name) })
}

// refreshTarget returns the URL of a refresh such as "5; url='next.html'", as HTML parses it (HTML,
// section 4.2.5.3, "shared declarative refresh steps"). It returns the empty text for a refresh of
// the page itself.
func refreshTarget(content string) string {
	s := strings.TrimLeft(content, space)
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits == 0 && !strings.HasPrefix(s, ".") {
		return ""
	}
	s = strings.TrimLeft(s[digits:], "0123456789.")
	rest := strings.TrimLeft(s, space)
	if rest == "" || (len(rest) == len(s) && rest[0] != ';' && rest[0] != ',') {
		return ""
	}
	s = strings.TrimLeft(rest, space)
	if s[0] == ';' || s[0] == ',' {
		s = strings.TrimLeft(s[1:], space)
	}
	s = afterURLEquals(s)
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		s, _, _ = strings.Cut(s[1:], s[:1])
	}
	return strings.Trim(s, space)
}

// afterURLEquals returns s without "url =" at its begin.
func afterURLEquals(s string) string {
	if len(s) < 3 || !strings.EqualFold(s[:3], "url") {
		return s
	}
	rest := strings.TrimLeft(s[3:], space)
	if !strings.HasPrefix(rest, "=") {
		return s
	}
	return strings.TrimLeft(rest[1:], space)
}
