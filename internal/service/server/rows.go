package server

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/amble-crawler/amble/internal/output/csvout"
)

// formatCSV is the value of format for CSV.
const formatCSV = "csv"

// rows are the rows of a list in a response: JSON lines or CSV.
type rows[T any] struct {
	t   *Stream
	csv *csvout.Writer[T] // nil: JSON lines
}

// newRows returns the rows of a response in a format. name is that of the file that a browser saves.
func newRows[T any](t *Stream, format, name string) *rows[T] {
	r := &rows[T]{t: t}
	if format == formatCSV {
		t.kind = "text/csv; charset=utf-8"
		t.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
		r.csv = csvout.New[T](t.buffer)
	}
	return r
}

// write writes a row.
func (r *rows[T]) write(value *T) error {
	if r.csv == nil {
		return r.t.Lines.Write(value)
	}
	return r.csv.Write(value)
}

// end completes the rows.
func (r *rows[T]) end() error {
	if r.csv == nil {
		return nil
	}
	return r.csv.Flush()
}

// relay sends the JSON lines of another response on, and returns how many there were, and its trailer.
func (r *rows[T]) relay(response *http.Response) (lines int, trailer http.Header, err error) {
	if r.csv == nil {
		return relay(r.t, response)
	}
	defer response.Body.Close()
	for all := json.NewDecoder(response.Body); ; lines++ {
		var value T
		switch err := all.Decode(&value); {
		case err == io.EOF:
			return lines, response.Trailer, nil
		case err != nil:
			return lines, nil, err
		}
		if err := r.csv.Write(&value); err != nil {
			return lines, nil, err
		}
	}
}
