package inspect

import (
	"encoding/json"
	"strconv"

	"github.com/amble-crawler/amble/storage"
)

// Counts are numbers of URLs by state. Their JSON is an object of the names of states, without
// zeros.
type Counts [7]uint32

// MarshalJSON encodes an object.
func (c Counts) MarshalJSON() ([]byte, error) {
	byName := make(map[string]uint32)
	for state, n := range c {
		if n > 0 {
			byName[storage.State(state).String()] = n
		}
	}
	return json.Marshal(byName)
}

// CSVColumns returns the names of all states: each is a column.
func (Counts) CSVColumns() (names []string) {
	for state := range len(Counts{}) {
		names = append(names, storage.State(state).String())
	}
	return names
}

// CSVCells returns the numbers.
func (c Counts) CSVCells() (cells []string) {
	for _, n := range c {
		cells = append(cells, strconv.FormatUint(uint64(n), 10))
	}
	return cells
}

// UnmarshalJSON decodes the result of MarshalJSON; it ignores unknown names.
func (c *Counts) UnmarshalJSON(b []byte) error {
	var byName map[string]uint32
	if err := json.Unmarshal(b, &byName); err != nil {
		return err
	}
	*c = Counts{}
	for name, n := range byName {
		if state, err := storage.ParseState(name); err == nil {
			c[state] = n
		}
	}
	return nil
}
