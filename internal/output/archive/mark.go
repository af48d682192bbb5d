package archive

import (
	"encoding/json"
	"fmt"
)

// Mark says how much of the output of one format belongs to the crawl: the text of one JSON value. Only the sink that
// made it knows what is in it.
type Mark string

// MarshalJSON implements json.Marshaler.
func (m Mark) MarshalJSON() ([]byte, error) { return []byte(m), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Mark) UnmarshalJSON(b []byte) error {
	*m = Mark(b)
	return nil
}

// EncodeMarks returns marks as the database keeps them: a JSON array, a handful of names and numbers for each commit.
func EncodeMarks(marks []Mark) []byte {
	b, err := json.Marshal(marks)
	if err != nil {
		panic(err) // a sink made a mark that is no JSON
	}
	return b
}

// DecodeMarks is the inverse of EncodeMarks. Nothing is no mark.
func DecodeMarks(b []byte) (marks []Mark, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(b, &marks); err != nil {
		return nil, fmt.Errorf("archive: marks: %w", err)
	}
	return marks, nil
}

// FileMark is what the mark of a Series says: the first Length bytes of File, and all files numbered before it, belong
// to the crawl. File is a name within Options.Dir, without SuffixOpen even while the file is unfinished.
type FileMark struct {
	File   string
	Length int64
	// Complete means that nothing more is written to the file, and that it may be moved away.
	Complete bool `json:",omitempty"`
}

// Mark returns the mark.
func (f FileMark) Mark() Mark {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // a string, a number and a boolean always have a form
	}
	return Mark(b)
}

// fileOf returns what a mark says; zero: it is not that of a Series.
func fileOf(m Mark) (f FileMark) {
	if json.Unmarshal([]byte(m), &f) != nil {
		return FileMark{}
	}
	return f
}
