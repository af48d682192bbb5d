package inspect

import (
	"strings"

	"github.com/amble-crawler/amble/internal/weburl"
)

// RobotsText is the robots.txt of an origin as it is in force.
type RobotsText struct {
	Origin string `json:"origin"`
	Robots Robots `json:"robots"`
	Text   string `json:"text"` // the rules in force; octets that are no UTF-8 are replaced
}

// RobotsText is the robots.txt of an origin that the store has; one that was never fetched has no text.
func (v *View) RobotsText(o weburl.Origin) (RobotsText, error) {
	p, err := v.policy(o)
	if err != nil {
		return RobotsText{}, err
	}
	return RobotsText{Origin: o.String(), Robots: p.describe(), Text: strings.ToValidUTF8(string(p.record.Body), "\uFFFD")}, nil
}

// Checked is what the robots.txt that the store has says about a URL.
type Checked struct {
	URL string `json:"url"` // in its canonical form
	Verdict
}

// CheckRobots is the verdict of robots.txt about URLs, of which several origins may be.
func (v *View) CheckRobots(urls []weburl.URL) ([]Checked, error) {
	policies := make(map[weburl.Origin]policy)
	list := make([]Checked, 0, len(urls))
	for _, u := range urls {
		p, read := policies[u.Origin()]
		if !read {
			var err error
			if p, err = v.policy(u.Origin()); err != nil {
				return nil, err
			}
			policies[u.Origin()] = p
		}
		list = append(list, Checked{URL: u.String(), Verdict: p.verdict(u)})
	}
	return list, nil
}
