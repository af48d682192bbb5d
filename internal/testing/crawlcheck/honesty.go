package crawlcheck

import (
	"regexp"
	"strings"
	"sync"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// patterns of a User-Agent.
type agentPatterns struct{ token, contact, browser *regexp.Regexp }

var agents = sync.OnceValue(func() agentPatterns {
	return agentPatterns{
		token:   regexp.MustCompile(`^[A-Za-z_-]+`),
		contact: regexp.MustCompile(`https?://|[\w.+-]+@[\w-]+\.\w|www\.`),
		browser: regexp.MustCompile(`(Chrome|Firefox|Safari|Edg|OPR)/`),
	}
})

// ProductToken returns the product token in a User-Agent, as RFC 9309, 2.2.1 has it: that of the name
// after "compatible;" where a crawler calls itself a browser, else that at the beginning. Empty: there
// is none.
func ProductToken(agent string) string {
	if _, name, is := strings.Cut(agent, "compatible;"); is {
		return agents().token.FindString(strings.TrimSpace(name))
	}
	if strings.HasPrefix(agent, "Mozilla/") {
		return ""
	}
	return agents().token.FindString(agent)
}

// honestyStations judge what the crawler says of itself, in all requests.
func honestyStations() []Station {
	each := func(wrong func(q testweb.Request) string) func(*evidence) {
		return func(e *evidence) {
			for _, q := range e.log {
				if text := wrong(q); text != "" {
					e.broken(text+": "+quoted(q.UserAgent), q)
				}
			}
		}
	}
	return []Station{
		{
			Name: "honesty-token", Level: Should, Source: "RFC 9110, 10.1.5; RFC 9309, 2.2.1",
			Rule: "The User-Agent names the crawler by a product token, which robots.txt files can name too.",
			Mend: "Set a User-Agent that begins with the crawler's own name, such as \"examplebot/1.0\".",
			judge: each(func(q testweb.Request) string {
				if ProductToken(q.UserAgent) == "" {
					return "its User-Agent has no product token"
				}
				return ""
			}),
		}, {
			Name: "honesty-contact", Level: Courtesy, Source: "RFC 9110, 10.1.2; courtesy",
			Rule: "The User-Agent or the From field has an address at which the operator can be reached.",
			Mend: "Add the URL of a page about the crawler, or a mail address.",
			judge: each(func(q testweb.Request) string {
				if !agents().contact.MatchString(q.UserAgent + " " + q.From) {
					return "it names no way to reach its operator"
				}
				return ""
			}),
		}, {
			Name: "honesty-same", Level: Should, Source: "RFC 9309, 2.2.1",
			Rule: "The User-Agent is the same in all requests, those for robots.txt included.",
			Mend: "Fetch robots.txt with the same client and header fields as pages.",
			judge: func(e *evidence) {
				for _, q := range e.log {
					if q.UserAgent != e.log[0].UserAgent {
						e.broken("its User-Agent is "+quoted(e.log[0].UserAgent)+", and later "+quoted(q.UserAgent),
							e.log[0], q)
					}
				}
			},
		}, {
			Name: "honesty-browser", Level: Should, Source: "RFC 9110, 10.1.5",
			Rule: "The crawler does not pretend to be a browser.",
			Mend: "Do not use the User-Agent of a browser. In front of \"compatible; NAME\" it is no pretence.",
			judge: each(func(q testweb.Request) string {
				if agents().browser.MatchString(q.UserAgent) && !strings.Contains(q.UserAgent, "compatible;") {
					return "its User-Agent is that of a browser"
				}
				return ""
			}),
		},
	}
}
