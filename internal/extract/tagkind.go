package extract

// tagKind sorts the elements by what they mean to a stretch.
type tagKind uint8

const (
	otherTag      tagKind = iota // may change how what follows is read
	ordinaryTag                  // contains and is contained, nothing else
	voidTag                      // has no content
	foreignTag                   // of SVG; has no content if it says so
	formattingTag                // is reopened if it is left open
	rootTag                      // merges its attributes into an earlier one
)

// kindOf returns the kind of the element of that name. Tables, forms, templates
// and everything whose content is not markup are deliberately other.
func kindOf(name []byte) tagKind {
	switch string(name) {
	case "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u":
		return formattingTag
	case "abbr", "article", "aside", "bdi", "bdo", "blockquote", "cite", "data", "dd", "del", "dfn", "div",
		"dl", "dt", "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "ins",
		"kbd", "label", "li", "main", "mark", "nav", "ol", "p", "picture", "q", "samp", "section", "span",
		"sub", "sup", "time", "ul", "var":
		return ordinaryTag
	case "br", "hr", "img", "input", "source", "wbr":
		return voidTag
	case "svg":
		return foreignTag
	case "html", "body":
		return rootTag
	}
	return otherTag
}
