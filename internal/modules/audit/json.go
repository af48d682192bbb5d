//go:build !core

package audit

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report as one object, and holds the text of one host at a time.
func (r *Report) WriteJSON(w io.Writer) error {
	report, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(report[:len(report)-1], `,"hosts":[`...)); err != nil {
		return err
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for i, h := range r.Hosts() {
		if i > 0 {
			if _, err := io.WriteString(w, ","); err != nil {
				return err
			}
		}
		if err := lines.Encode(h); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}
