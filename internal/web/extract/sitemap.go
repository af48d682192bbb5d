package extract

import (
	"io"
	"math"
	"strconv"
	"strings"
)

// maxAlternates bounds the alternates, images and videos that are taken from one page of a sitemap.
const maxAlternates = 200

// sitemapReader reads a <urlset> or a <sitemapindex> (https://www.sitemaps.org/protocol.html), with
// the extensions for images, videos, news and alternates.
type sitemapReader struct {
	*listReader
	x     *xmlReader
	role  Role   // of the open item
	open  bool   // an item is open
	part  string // the open element of an extension: image, video or news
	field string // the element whose text is gathered
	text  []byte

	loc    string
	item   Item
	others []otherURL
}

// otherURL is a URL that belongs to that of an item.
type otherURL struct {
	raw  string
	role Role
}

func (l *listReader) readSitemap(r io.Reader) error {
	s := &sitemapReader{listReader: l, x: newXMLReader(r)}
	for {
		e, broken := s.x.next()
		var err error
		switch e {
		case endOfFile:
			l.list.Truncated = l.list.Truncated || broken || s.open
			return s.end()
		case elementStart:
			if err = s.start(); err == nil && s.x.empty {
				err = s.finish()
			}
		case elementEnd:
			err = s.finish()
		case characterData:
			if s.field != "" {
				s.text = s.x.appendText(s.text)
			}
		}
		if err != nil {
			return err
		}
	}
}

// start takes the start of an element.
func (s *sitemapReader) start() error {
	name := s.x.name
	switch {
	case name == "url" || name == "sitemap":
		err := s.end() // it was left open
		s.open, s.role, s.item.Priority = true, RolePage, defaultPriority
		if name == "sitemap" {
			s.role = RoleSitemap
		}
		return err
	case !s.open:
	case s.part == "" && (name == "image" || name == "video" || name == "news"):
		s.part = name
	case name == "link" && strings.EqualFold(s.x.attribute("rel"), "alternate"):
		s.other(s.x.attribute("href"), RoleAlternate)
	default:
		s.field, s.text = name, s.text[:0]
	}
	return nil
}

// finish takes the end of an element.
func (s *sitemapReader) finish() error {
	switch name := s.x.name; {
	case name == "url" || name == "sitemap":
		return s.end()
	case name == s.field:
		s.set(name, strings.TrimSpace(string(s.text)))
		s.field = ""
	case name == s.part:
		s.part = ""
	}
	return nil
}

// set takes the text of an element.
func (s *sitemapReader) set(name, text string) {
	switch s.part {
	case "":
		s.setOwn(name, text)
	case "news":
		if name == "publication_date" && s.item.Modified.IsZero() {
			s.item.Modified = parseDate(text)
		}
	case "image":
		if name == "loc" {
			s.other(text, RoleMedia)
		}
	case "video":
		if name == "content_loc" || name == "thumbnail_loc" {
			s.other(text, RoleMedia)
		} else if name == "player_loc" {
			s.other(text, RoleAlternate)
		}
	}
}

func (s *sitemapReader) setOwn(name, text string) {
	switch name {
	case "loc":
		if s.loc == "" {
			s.loc = text
		}
	case "lastmod":
		if at := parseDate(text); !at.IsZero() {
			s.item.Modified = at
		}
	case "changefreq":
		s.item.Frequency = parseFrequency(text)
	case "priority":
		if p, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64); err == nil && !math.IsNaN(p) {
			s.item.Priority = min(max(p, 0), 1)
		}
	}
}

func (s *sitemapReader) other(raw string, role Role) {
	if raw != "" && len(s.others) < maxAlternates {
		s.others = append(s.others, otherURL{raw, role})
	}
}

// end passes on the open item, if there is one.
func (s *sitemapReader) end() error {
	if !s.open {
		return nil
	}
	s.item.Role = s.role
	err := s.next()
	if err == nil {
		err = s.add(s.base, s.loc, s.item)
	}
	for _, o := range s.others {
		if err != nil {
			return err
		}
		if s.role == RolePage {
			err = s.add(s.base, o.raw, Item{Role: o.role, Priority: defaultPriority})
		}
	}
	s.open, s.part, s.field, s.loc, s.item, s.others = false, "", "", "", Item{}, s.others[:0]
	return err
}

func parseFrequency(text string) Frequency {
	for f, name := range frequencyNames {
		if f > 0 && strings.EqualFold(text, name) {
			return Frequency(f)
		}
	}
	return FrequencyUnknown
}
