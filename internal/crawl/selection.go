package crawl

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// Selection says which URLs are put back into their queues: those that meet all of it. The zero value is every URL that can be put back.
type Selection struct {
	States  storage.States   // a subset of frontier.CanPutBack; zero: all of these
	Reasons []storage.Reason // any of them; none: every reason
	Host    string           // canonical name; empty: every host
	Pattern *regexp.Regexp   // that the URL matches; nil: every URL
}

// states are those that a URL may be in. States that cannot be left are never among them.
func (s *Selection) states() storage.States {
	if s.States == 0 {
		return frontier.CanPutBack()
	}
	return s.States & frontier.CanPutBack()
}

// selects reports whether a URL is selected, as far as its host does not decide.
func (s *Selection) selects(l *storage.Located) bool {
	return s.states().Has(l.Last.State) &&
		(len(s.Reasons) == 0 || slices.Contains(s.Reasons, l.Last.Reason)) &&
		(s.Pattern == nil || s.Pattern.MatchString(l.URL.String()))
}

// storedSelection is a Selection as a mark has it. Its numbers are those of the storage package, which never change.
type storedSelection struct {
	States  int    `json:"states,omitempty"`
	Reasons []int  `json:"reasons,omitempty"`
	Host    string `json:"host,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

// MarshalJSON makes a storedSelection.
func (s Selection) MarshalJSON() ([]byte, error) {
	stored := storedSelection{States: int(s.States), Host: s.Host}
	for _, r := range s.Reasons {
		stored.Reasons = append(stored.Reasons, int(r))
	}
	if s.Pattern != nil {
		stored.Pattern = s.Pattern.String()
	}
	return json.Marshal(stored)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *Selection) UnmarshalJSON(b []byte) error {
	var stored storedSelection
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*s = Selection{States: storage.States(stored.States), Host: stored.Host}
	for _, r := range stored.Reasons {
		s.Reasons = append(s.Reasons, storage.Reason(r))
	}
	if stored.Pattern == "" {
		return nil
	}
	var err error
	if s.Pattern, err = regexp.Compile(stored.Pattern); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}
