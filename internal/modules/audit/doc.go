//go:build !core

// Package audit proves from the request log what a crawl did: for each host the smallest gap
// between two requests, the robots.txt that allowed each page, and all violations. It trusts none
// of the verdicts in the log: it matches each page with the robots package again, by the file that
// was in force. docs/AUDIT.md says what that proves and what not.
package audit
