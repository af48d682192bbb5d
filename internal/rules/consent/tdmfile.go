package consent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/robots"
)

// TDMFilePath is where an origin may have a TDM file.
const TDMFilePath = "/.well-known/tdmrep.json"

// maxTDMRules bounds the rules that count of a TDM file; MaxTDMFile its octets.
const maxTDMRules, MaxTDMFile = 1000, 256 << 10

// TDMFile are the rules of a TDM file. The zero value has none. It may be used concurrently.
type TDMFile struct {
	rules []tdmRule
}

type tdmRule struct {
	location  string
	pattern   robots.Pattern
	policy    string // where the terms are for which the rights are given; empty: nowhere
	statement Statement
}

// ParseTDMFile reads the TDM file of an origin: a JSON array of rules. Rules without a usable location
// or reservation are left out, and so is what is beyond the bounds; an error says that it is no TDM
// file.
func ParseTDMFile(body []byte) (TDMFile, error) {
	if len(body) > MaxTDMFile {
		return TDMFile{}, fmt.Errorf("TDM file of %d bytes: at most %d are read", len(body), MaxTDMFile)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")), &list); err != nil {
		return TDMFile{}, fmt.Errorf("TDM file: %w", err)
	}
	var f TDMFile
	for i, raw := range list[:min(len(list), maxTDMRules)] {
		var rule struct {
			Location    string          `json:"location"`
			Reservation json.RawMessage `json:"tdm-reservation"`
			Policy      json.RawMessage `json:"tdm-policy"`
		}
		if json.Unmarshal(raw, &rule) != nil || rule.Location == "" || len(rule.Location) > maxValue {
			continue
		}
		value := string(bytes.Trim(rule.Reservation, `"`))
		p := ParseReservation(value)
		if p == (Preferences{}) {
			continue
		}
		text, policy := "tdm-reservation: "+value, tdmPolicy(rule.Policy)
		if policy != "" {
			text += ", tdm-policy: " + policy
		}
		f.rules = append(f.rules, tdmRule{rule.Location, robots.NewPattern(rule.Location), policy, Statement{
			Preferences: p, Source: SourceTDMFile, Line: i + 1, Text: text,
		}})
	}
	return f, nil
}

// maxPolicy bounds the octets of a tdm-policy. A longer one is left out.
const maxPolicy = 255

// tdmPolicy returns a policy of a rule; empty: there is none that can be used.
func tdmPolicy(raw json.RawMessage) string {
	var policy string
	if json.Unmarshal(raw, &policy) != nil || len(policy) > maxPolicy || !strings.HasPrefix(policy, "http") {
		return ""
	}
	return strings.ToValidUTF8(policy, "\ufffd")
}

// Size returns about how many octets the rules take that count; 0: there are none.
func (f TDMFile) Size() (n int) {
	for i := range f.rules {
		n += 2*len(f.rules[i].location) + len(f.rules[i].policy)
	}
	return n
}

// Encode returns a TDM file with the rules that count, at their numbers: ParseTDMFile reads the
// same from it. Nothing else of the file is in it.
func (f TDMFile) Encode() []byte {
	list := []any{}
	for _, r := range f.rules {
		for len(list) < r.statement.Line-1 {
			list = append(list, 0)
		}
		reservation := 0
		if r.statement.Preferences[Mining] == Disallowed {
			reservation = 1
		}
		rule := map[string]any{"location": r.location, "tdm-reservation": reservation}
		if r.policy != "" {
			rule["tdm-policy"] = r.policy
		}
		list = append(list, rule)
	}
	b, _ := json.Marshal(list) // of texts and numbers
	return b
}

// Statement returns what the file says about a URL, given as request URI: the first rule that matches
// counts (TDM Reservation Protocol, section "TDM File on the Origin Server").
func (f TDMFile) Statement(requestURI string) (Statement, bool) {
	for _, r := range f.rules {
		if r.pattern.Match(requestURI) {
			return r.statement, true
		}
	}
	return Statement{}, false
}
