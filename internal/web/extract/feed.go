package extract

import (
	"io"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// feedReader reads RSS and Atom (RFC 4287). Both have a head and items; the names differ.
type feedReader struct {
	*listReader
	x     *xmlReader
	open  bool   // an item is open
	part  string // the element that is ignored: its content is not about the item
	field string // the element whose text is gathered
	text  []byte

	feedBase, itemBase weburl.URL // of xml:base
	link, guid         string
	permaLink          bool
	item               Item
	others             []otherURL
}

func (l *listReader) readFeed(r io.Reader) error {
	f := &feedReader{listReader: l, x: newXMLReader(r), feedBase: l.base}
	for {
		e, broken := f.x.next()
		var err error
		switch e {
		case endOfFile:
			l.list.Truncated = l.list.Truncated || broken || f.open
			return f.end()
		case elementStart:
			if err = f.start(); err == nil && f.x.empty {
				err = f.finish()
			}
		case elementEnd:
			err = f.finish()
		case characterData:
			if f.field != "" {
				f.text = f.x.appendText(f.text)
			}
		}
		if err != nil {
			return err
		}
	}
}

// start takes the start of an element.
func (f *feedReader) start() error {
	name := f.x.name
	switch {
	case name == "item" || name == "entry":
		err := f.end() // it was left open
		f.open, f.part, f.itemBase = true, "", f.rebase(f.feedBase)
		f.item.Priority = defaultPriority
		return err
	case f.part != "":
	case name == "feed":
		f.feedBase = f.rebase(f.feedBase)
	case passedOver(name):
		f.part = name
	case name == "link" && f.x.attribute("href") != "":
		return f.atomLink()
	case name == "enclosure":
		f.other(f.x.attribute("url"), RoleMedia)
	default:
		f.field, f.text = name, f.text[:0]
		f.permaLink = name == "guid" && !strings.EqualFold(f.x.attribute("ispermalink"), "false")
	}
	return nil
}

// passedOver reports whether the content of an element does not describe the item or the feed:
// texts, which may have markup, and parts of other formats.
func passedOver(name string) bool {
	switch name {
	case "description", "content", "summary", "encoded", "source", "image", "textinput", "author", "contributor":
		return true
	}
	return false
}

// rebase applies xml:base to a base.
func (f *feedReader) rebase(base weburl.URL) weburl.URL {
	if raw := f.x.attribute("xml:base"); raw != "" {
		if u, err := base.Resolve(raw); err == nil {
			return u
		}
	}
	return base
}

// atomLink takes a <link href>, of the feed or of an item.
func (f *feedReader) atomLink() error {
	href := f.x.attribute("href")
	rel := strings.ToLower(f.x.attribute("rel"))
	switch {
	case f.open && (rel == "" || rel == "alternate"):
		if u, err := f.rebase(f.itemBase).Resolve(href); err == nil {
			href = u.String()
		}
		if f.link == "" {
			f.link = href
		} else {
			f.other(href, RoleAlternate)
		}
	case f.open && rel == "enclosure":
		f.other(href, RoleMedia)
	case f.open:
	case rel == "next" || rel == "next-archive" || rel == "prev-archive":
		return f.add(f.rebase(f.feedBase), href, Item{Role: RoleNext, Priority: defaultPriority})
	case rel == "" || rel == "alternate":
		return f.add(f.rebase(f.feedBase), href, Item{Priority: defaultPriority})
	}
	return nil
}

// finish takes the end of an element.
func (f *feedReader) finish() error {
	switch name := f.x.name; {
	case name == "item" || name == "entry":
		return f.end()
	case name == f.part:
		f.part = ""
	case name == f.field && f.part == "":
		f.field = ""
		return f.set(name, strings.TrimSpace(string(f.text)))
	}
	return nil
}

// set takes the text of an element.
func (f *feedReader) set(name, text string) error {
	switch {
	case !f.open && name == "title" && f.list.Title == "":
		f.list.Title = collapse(strings.ToValidUTF8(text, "\ufffd"), maxTitleBytes)
	case !f.open && name == "link":
		return f.add(f.feedBase, text, Item{Priority: defaultPriority})
	case !f.open:
	case name == "link" && f.link == "":
		f.link = text
	case name == "guid" && f.permaLink:
		f.guid = text
	case name == "pubdate" || name == "published" || name == "date" || name == "updated" || name == "modified" ||
		name == "issued":
		if at := parseDate(text); at.After(f.item.Modified) {
			f.item.Modified = at
		}
	}
	return nil
}

func (f *feedReader) other(raw string, role Role) {
	if f.open && raw != "" && len(f.others) < maxAlternates {
		f.others = append(f.others, otherURL{raw, role})
	}
}

// end passes on the open item, if there is one.
func (f *feedReader) end() error {
	if !f.open {
		return nil
	}
	if f.link == "" {
		f.link = f.guid
	}
	err := f.next()
	if err == nil {
		err = f.add(f.itemBase, f.link, f.item)
	}
	for _, o := range f.others {
		if err != nil {
			return err
		}
		err = f.add(f.itemBase, o.raw, Item{Role: o.role, Priority: defaultPriority})
	}
	f.open, f.part, f.field, f.link, f.guid, f.item, f.others = false, "", "", "", "", Item{}, f.others[:0]
	return err
}
