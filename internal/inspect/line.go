package inspect

import (
	"encoding/json"
	"io"
)

// Lines writes one JSON object a line. URLs stay readable: nothing of it ends up in a script.
type Lines struct{ encoder *json.Encoder }

// NewLines writes to w, each line in one write.
func NewLines(w io.Writer) Lines {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return Lines{encoder}
}

// Write writes a line.
func (l Lines) Write(value any) error { return l.encoder.Encode(value) }
