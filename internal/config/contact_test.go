package config

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestNoContact: what is in examples is no contact, and what somebody may read is one.
func TestNoContact(t *testing.T) {
	for contact, reaches := range map[string]bool{
		"": false, "you@example.org": false, "YOUR@MAIL.ADDRESS": false,
		"https://www.example.com/bot": false, "bot@localhost": false,
		"mailto:bot@crawl.test": false, "https://127.0.0.1/": false, "crawler": false, "nobody@host": false,
		"bot@kite.dev": true, "https://kite.dev/bot": true, "mailto:bot@kite.dev": true, "Kite <bot@kite.dev>": true,
	} {
		c := Default()
		c.Fetch.Contact = contact
		why := NoContact(&c)
		assert.True(t, (why == "") == reaches && (reaches || strings.Contains(why, "fetch.contact")), "%q: %q", contact,
			why)
	}
	c := Default()
	if c.Fetch.UserAgent = "kite/1.0 (+https://kite.dev/bot)"; NoContact(&c) != "" {
		t.Errorf("a User-Agent with a URL: %s", NoContact(&c))
	}
}
