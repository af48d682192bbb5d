//go:build !core

// Package identity proves who a crawler is. It has the keys of a crawler, signs its requests (RFC 9421 and the drafts
// of Web Bot Auth), and makes the public documents that a site's operator verifies them with: the bot page, the list
// of addresses, the key directory and the card. docs/IDENTITY.md says what the drafts said, and when.
package identity
