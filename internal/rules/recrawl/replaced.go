//go:build !core

package recrawl

// Of returns the encoded state of a plan with other pages, whose recrawls have brought nothing yet. each calls add with
// the history of each of them.
func Of(encoded []byte, each func(add func(History, Importance)) error) ([]byte, error) {
	var p Plan
	if err := p.Restore(encoded); err != nil {
		return nil, err
	}
	p.census, p.yield = census{}, Yield{}
	if err := each(p.census.add); err != nil {
		return nil, err
	}
	return p.AppendBinary(nil)
}
