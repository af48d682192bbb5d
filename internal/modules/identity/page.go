//go:build !core

package identity

import (
	"bytes"
	_ "embed"
	"html/template"
)

//go:embed page.html
var pageText string

// view is what the template of the bot page shows.
type view struct {
	*Profile
	Addresses, Directory, Card string // relative URLs
	ContactURI                 string
	Lookup                     string // path of the look-up; empty: there is none
}

// Page returns the bot page: HTML without a script, in one file.
func (p *Profile) Page(lookup string) ([]byte, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, err
	}
	v := view{Profile: p, Addresses: PathAddresses, Directory: PathDirectory, Card: PathCard,
		ContactURI: p.contactURI(), Lookup: lookup}
	var b bytes.Buffer
	err = t.Execute(&b, &v)
	return b.Bytes(), err
}
