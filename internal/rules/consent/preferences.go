package consent

import (
	"fmt"
	"strings"
)

// Category is a kind of use. The numbers are stored; new ones are added at the end.
type Category uint8

const (
	TrainAI     Category = iota // training models that generate content (draft-ietf-aipref-vocab, section 4.1)
	TrainImages                 // the same, with the images of the page only
	AIInput                     // as the input of a model, such as grounding (contentsignals.org)
	Search                      // search that leads to the page (draft-ietf-aipref-vocab, section 4.2)
	Mining                      // text and data mining (TDM Reservation Protocol)
	Archive                     // a copy that others can see (noarchive)
	Index                       // being found at all (noindex, none, a past unavailable_after)
	Snippet                     // quoting the page (nosnippet)
	categories
)

var categoryNames = [categories]string{
	"train-ai", "train-ai-images", "ai-input", "search", "tdm", "archive", "index", "snippet",
}

// String returns the name of the category in settings and output.
func (c Category) String() string {
	if c < categories {
		return categoryNames[c]
	}
	return "unknown"
}

// ParseCategory is the inverse of String.
func ParseCategory(name string) (Category, error) {
	for c, n := range categoryNames {
		if n == name {
			return Category(c), nil
		}
	}
	return 0, fmt.Errorf("category of use %q: should be one of %s", name, strings.Join(categoryNames[:], ", "))
}

// Preference is what somebody prefers for one category.
type Preference uint8

const (
	Unknown Preference = iota
	Allowed
	Disallowed
)

// String returns "y", "n", or "" for unknown, as in Content-Usage.
func (p Preference) String() string {
	return [...]string{Unknown: "", Allowed: "y", Disallowed: "n"}[min(p, Disallowed)]
}

// Preferences are preferences for all categories.
type Preferences [categories]Preference

// strictest returns both preferences in one: what either disallows is disallowed, and what either
// allows otherwise is allowed (draft-ietf-aipref-vocab, section 5.1).
func (p Preferences) strictest(q Preferences) Preferences {
	for c := range p {
		p[c] = max(p[c], q[c])
	}
	return p
}

// implied adds what a refusal of a wide category says about narrower ones: training is mining, and
// training with images is training. A permission implies nothing.
func (p Preferences) implied() Preferences {
	if p[Mining] == Disallowed {
		p[TrainAI] = Disallowed
	}
	if p[TrainAI] == Disallowed {
		p[TrainImages] = Disallowed
	}
	return p
}

// String returns the preferences in the form of Content-Usage, such as "train-ai=n, search=y".
func (p Preferences) String() string {
	var all []string
	for c, v := range p {
		if v != Unknown {
			all = append(all, categoryNames[c]+"="+v.String())
		}
	}
	return strings.Join(all, ", ")
}
