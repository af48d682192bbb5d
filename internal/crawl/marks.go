package crawl

import (
	"encoding/json"
	"fmt"

	"github.com/amble-crawler/amble/internal/archive"
)

// encodeMarks is how the store keeps the lengths of the output files: JSON, a
// handful of names and numbers that people may want to read.
func encodeMarks(marks []archive.Mark) []byte {
	b, err := json.Marshal(marks)
	if err != nil {
		panic(err) // strings and integers can be encoded
	}
	return b
}

func decodeMarks(b []byte) (marks []archive.Mark, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(b, &marks); err != nil {
		return nil, fmt.Errorf("mark %s: %w", MarkOutput, err)
	}
	return marks, nil
}
